//! Set commands.

mod sadd;
mod scard;
mod sdiff;
mod sinter;
mod sismember;
mod smembers;
mod smove;
mod sources;
mod spop;
mod srandmember;
mod srem;
mod sscan;
mod sunion;

use ember_protocol::Reply;

use crate::call::DataCommand;
use crate::types::set::Element;

/// The commands of this family, one list per file.
pub(super) const COMMANDS: &[&[DataCommand]] = &[
    sadd::COMMANDS,
    scard::COMMANDS,
    sdiff::COMMANDS,
    sinter::COMMANDS,
    sismember::COMMANDS,
    smembers::COMMANDS,
    smove::COMMANDS,
    spop::COMMANDS,
    srandmember::COMMANDS,
    srem::COMMANDS,
    sscan::COMMANDS,
    sunion::COMMANDS,
];

/// Writes a member as a bulk string.
fn write_member(reply: &mut Reply, member: Element<'_>) {
    match member {
        Element::Integer(number) => reply.bulk_integer(number),
        Element::Bytes(bytes) => reply.bulk(bytes),
    }
}
