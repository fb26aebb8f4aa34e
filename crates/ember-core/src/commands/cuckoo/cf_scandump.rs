//! CF.SCANDUMP and CF.LOADCHUNK.

use ember_protocol::number;

use super::bytes_of;
use crate::call::{Attempt, AttemptResult, Call, CommandResult, DataCommand, Run};
use crate::commands::sketch::{self, CHUNK_BYTES_MAX, EXISTS, NOT_FOUND};
use crate::effects::events::Event;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::sketches::Cuckoo;

pub(crate) const COMMANDS: &[DataCommand] = &[
    Command::new(
        Spec {
            name: "cf.scandump",
            summary: "Returns a part of a cuckoo filter for CF.LOADCHUNK, and the iterator of the next part.",
            since: "8.0.0",
            group: Group::Cuckoo,
            complexity: "O(N) for N bytes of the part.",
            arity: 3,
            flags: Flags::READONLY.union(Flags::FAST),
            keys: &[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))],
            syntax: "key iterator",
            example: Example {
                given: &["CF.RESERVE seen 4", "CF.ADD seen ann"],
                call: "CF.SCANDUMP seen 5",
                reply: "1) (integer) 0\n2) (nil)",
            },
            ..Spec::DEFAULT
        },
        Run::Long(cf_scandump),
    ),
    Command::new(
        Spec {
            name: "cf.loadchunk",
            summary: "Restores a part of a cuckoo filter that CF.SCANDUMP has returned; the first part creates the key.",
            since: "8.0.0",
            group: Group::Cuckoo,
            complexity: "O(N) for N bytes of the part.",
            arity: 4,
            flags: Flags::WRITE.union(Flags::DENYOOM),
            keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::INSERT))],
            syntax: "key iterator data",
            example: Example { given: &["CF.RESERVE seen 4"], call: "CF.LOADCHUNK seen 5 abcd", reply: "OK" },
            ..Spec::DEFAULT
        },
        Run::Keys(cf_loadchunk),
    ),
];

fn cf_scandump(call: &mut Call<'_, '_>) -> AttemptResult {
    if sketch::is_long(call, bytes_of(call).min(CHUNK_BYTES_MAX)) {
        return Ok(Attempt::Offload);
    }
    let position = number::parse_i64(call.args.at(2)).filter(|&position| position >= 0);
    let position = position.ok_or("Invalid position")?;
    let filter = call.keys.read_value::<Cuckoo>(1)?.ok_or(NOT_FOUND)?;
    let part = match position {
        _ if filter.facts().items == 0 => None,
        0 => Some((1, filter.header())),
        _ => filter.chunk(position, CHUNK_BYTES_MAX),
    };
    call.reply.array(2);
    match part {
        Some((next, bytes)) => {
            call.reply.integer(next);
            call.reply.bulk(&bytes);
        }
        None => {
            call.reply.integer(0);
            call.reply.null();
        }
    }
    Ok(Attempt::Done)
}

fn cf_loadchunk(call: &mut Call<'_, '_>) -> CommandResult {
    let args = call.args;
    let position =
        number::parse_i64(args.at(2)).filter(|&position| position != 0).ok_or("Invalid position")?;
    let event = Event::module("cf.loadchunk");
    let mut key = call.keys.key(1);
    if position == 1 {
        if key.value::<Cuckoo>()?.is_some() {
            return Err(EXISTS.into());
        }
        let header = args.at(3).try_into().map_err(|_| "Invalid header")?;
        let filter = Cuckoo::from_header(header).ok_or("Couldn't create filter!")?;
        sketch::check_memory(call.keys.turn, filter.bytes())?;
        call.keys.key(1).edit_or_create(event, |empty: &mut Cuckoo| *empty = filter)?;
    } else {
        let loaded = key.edit_value(event, |filter: &mut Cuckoo| {
            filter.load_chunk(position, args.at(3)).ok_or("Couldn't load chunk!")
        })?;
        loaded.ok_or(NOT_FOUND)??;
    }
    call.reply.ok();
    Ok(())
}
