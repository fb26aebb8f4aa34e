//! BF.SCANDUMP and BF.LOADCHUNK.

use ember_protocol::number;

use super::bytes_of;
use crate::call::{Attempt, AttemptResult, Call, CommandResult, DataCommand, Run};
use crate::commands::sketch::{self, CHUNK_BYTES_MAX, NOT_FOUND};
use crate::effects::events::Event;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::sketches::Bloom;
use crate::types::sketches::bloom::NotLoaded;

pub(crate) const COMMANDS: &[DataCommand] = &[
    Command::new(
        Spec {
            name: "bf.scandump",
            summary: "Returns a part of a Bloom filter for BF.LOADCHUNK, and the iterator of the next part.",
            since: "8.0.0",
            group: Group::Bloom,
            complexity: "O(N) for N bytes of the part.",
            arity: 3,
            flags: Flags::READONLY.union(Flags::FAST),
            keys: &[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))],
            syntax: "key iterator",
            example: Example {
                given: &["BF.RESERVE seen 0.5 10"],
                call: "BF.SCANDUMP seen 1",
                reply: "1) (integer) 9\n2) \"\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\"",
            },
            ..Spec::DEFAULT
        },
        Run::Long(bf_scandump),
    ),
    Command::new(
        Spec {
            name: "bf.loadchunk",
            summary: "Restores a part of a Bloom filter that BF.SCANDUMP has returned; the first part creates the key.",
            since: "8.0.0",
            group: Group::Bloom,
            complexity: "O(N) for N bytes of the part.",
            arity: 4,
            flags: Flags::WRITE.union(Flags::DENYOOM),
            keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::INSERT))],
            syntax: "key iterator data",
            example: Example {
                given: &["BF.RESERVE seen 0.5 10"],
                call: "BF.LOADCHUNK seen 9 abcdefgh",
                reply: "OK",
            },
            ..Spec::DEFAULT
        },
        Run::Keys(bf_loadchunk),
    ),
];

fn bf_scandump(call: &mut Call<'_, '_>) -> AttemptResult {
    if sketch::is_long(call, bytes_of(call).min(CHUNK_BYTES_MAX)) {
        return Ok(Attempt::Offload);
    }
    let filter = call.keys.read_value::<Bloom>(1)?.ok_or(NOT_FOUND)?;
    let position = number::parse_i64(call.args.at(2)).ok_or("Second argument must be numeric")?;
    let (next, bytes) = match position {
        0 => (1, filter.header()),
        _ => filter.chunk(position, CHUNK_BYTES_MAX).unwrap_or_default(),
    };
    call.reply.array(2);
    call.reply.integer(next);
    call.reply.bulk(&bytes);
    Ok(Attempt::Done)
}

fn bf_loadchunk(call: &mut Call<'_, '_>) -> CommandResult {
    let args = call.args;
    let position = number::parse_i64(args.at(2)).ok_or("ERR Second argument must be numeric")?;
    let event = Event::module("bf.loadchunk");
    let mut key = call.keys.key(1);
    if !key.exists() && position == 1 {
        let filter = Bloom::from_header(args.at(3)).ok_or("ERR received bad data")?;
        sketch::check_memory(call.keys.turn, usize::try_from(filter.reported_bytes()).unwrap_or(usize::MAX))?;
        call.keys.key(1).edit_or_create(event, |empty: &mut Bloom| *empty = filter)?;
    } else {
        let loaded = key.edit_value(event, |filter: &mut Bloom| filter.load_chunk(position, args.at(3)))?;
        loaded.ok_or(NOT_FOUND)?.map_err(|error| match error {
            NotLoaded::BadData => "ERR received bad data",
            NotLoaded::NoLink => "ERR invalid offset - no link found",
            NotLoaded::TooLong => "ERR invalid chunk - Too big for current filter",
        })?;
    }
    call.reply.ok();
    Ok(())
}
