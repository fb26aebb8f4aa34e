//! Hash commands.

mod access;
mod fields;
mod hdel;
mod hexists;
mod hexpire;
mod hget;
mod hgetall;
mod hgetdel;
mod hgetex;
mod hincrby;
mod hincrbyfloat;
mod hlen;
mod hmget;
mod hpersist;
mod hrandfield;
mod hscan;
mod hset;
mod hsetex;
mod hsetnx;
mod hstrlen;
mod httl;

use crate::call::DataCommand;

/// The commands of this family, one list per file.
pub(super) const COMMANDS: &[&[DataCommand]] = &[
    hdel::COMMANDS,
    hexists::COMMANDS,
    hexpire::COMMANDS,
    hget::COMMANDS,
    hgetall::COMMANDS,
    hgetdel::COMMANDS,
    hgetex::COMMANDS,
    hincrby::COMMANDS,
    hincrbyfloat::COMMANDS,
    hlen::COMMANDS,
    hmget::COMMANDS,
    hpersist::COMMANDS,
    hrandfield::COMMANDS,
    hscan::COMMANDS,
    hset::COMMANDS,
    hsetex::COMMANDS,
    hsetnx::COMMANDS,
    hstrlen::COMMANDS,
    httl::COMMANDS,
];
