//! The data set in an RDB file: read when the server starts, written by SAVE, BGSAVE, save rules and at the end.
//!
//! The file is [`rdb_file`](ember_persistence::rdb_file)'s: Redis 7 reads what is written here, as long as no field of a
//! hash expires, and what any Redis from 2.8 on has written is read here. It appears under its name all at once, or not at
//! all.
//!
//! * [`point_in_time`]: the keyspace at one moment, written while commands go on: for BGSAVE and the base of an AOF.
//! * [`emptying`]: the file when a command has removed all keys.
//! * [`background`]: BGSAVE and when it is due. [`saving`]: SAVE, and the file at the end. [`loading`]: the start.

pub(crate) mod background;
pub(crate) mod delay;
pub(crate) mod emptying;
pub(crate) mod loading;
pub(crate) mod point_in_time;
pub(crate) mod saving;
pub(crate) mod state;
