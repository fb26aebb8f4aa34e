//! XREAD.

use ember_protocol::{Args, OwnedBatch};

use super::ids::{exact_id, reply_entries};
use super::reading::{ReadOptions, Words, keys_from, read_options};
use crate::call::{Attempt, AttemptResult, Call, DataCommand, Run, Waiting};
use crate::error::CommandError;
use crate::spec::{Command, Example, Flags, Group, Spec};
use crate::types::Collection;
use crate::types::stream::{Stream, StreamId};

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "xread",
        summary: "Returns entries of streams that follow given IDs, and may wait for them.",
        since: "5.0.0",
        group: Group::Stream,
        complexity: "O(N) for N entries returned; an XADD takes O(M) to serve M clients that wait",
        arity: -4,
        flags: Flags::READONLY.union(Flags::BLOCKING).union(Flags::MOVABLEKEYS),
        keys: &[keys_from(1)],
        syntax: "[COUNT count] [BLOCK milliseconds] STREAMS streams:<key [key ...] id [id ...]>",
        history: &[("7.4.0", "`+` as an ID asks for the last entry.")],
        example: Example {
            given: &["XADD readings 1-1 a 1", "XADD readings 2-1 a 2"],
            call: "XREAD STREAMS readings 1-1",
            reply: "1) 1) \"readings\"\n   2) 1) 1) \"2-1\"\n         2) 1) \"a\"\n            2) \"2\"",
        },
        ..Spec::DEFAULT
    },
    Run::Blocking(xread),
)];

const WORDS: Words = Words { name: "xread", new_entries: '$', takes_group: false };

fn xread(call: &mut Call<'_, '_>) -> AttemptResult {
    let args = call.args;
    let options = read_options(args, WORDS, call.keys.turn.now_ms)?;
    options.refuse_in_script(call.waiting, args)?;
    let after = read_ids(call, &options)?;
    let mut found = Vec::new();
    for ((key, _), after) in options.streams().zip(&after) {
        let stream = call.keys.value::<Stream>(key).ok().flatten();
        let last = stream.and_then(|stream| stream.log().last_entry_id());
        if last.is_some_and(|last| last > *after) {
            found.push((key, after.next().expect("an entry has a greater ID")));
        }
    }
    if found.is_empty() {
        return Ok(match options.wait() {
            Some(mut wait) => {
                wait.instead = with_ids(args, &options, &after);
                Attempt::Wait(wait)
            }
            None => {
                call.reply.null_array();
                Attempt::Done
            }
        });
    }
    let most =
        |stream: &Stream| if options.count == 0 { stream.len() } else { options.count.min(stream.len()) };
    let steps_max = call.steps_max();
    let streams =
        || found.iter().filter_map(|&(key, start)| Some((call.keys.value::<Stream>(key).ok()??, start)));
    if streams().map(|(stream, _)| most(stream)).sum::<usize>() > steps_max {
        // The entries are counted, because most clients read the last few entries of a long stream.
        let mut left = steps_max;
        for (stream, start) in streams() {
            let entries = stream.log().range(start..=StreamId::MAX).take(most(stream).min(left + 1)).count();
            match left.checked_sub(entries) {
                Some(rest) => left = rest,
                None => return Ok(Attempt::Offload),
            }
        }
    }
    let Call { keys, reply, .. } = call;
    if reply.is_resp3() {
        reply.map(found.len());
    } else {
        reply.array(found.len());
    }
    for (key, start) in found {
        let stream = keys.value::<Stream>(key)?.expect("it was read under the same lock");
        if !reply.is_resp3() {
            reply.array(2);
        }
        reply.bulk(args.at(key));
        reply_entries(reply, stream.log().range(start..=StreamId::MAX), options.count);
    }
    Ok(Attempt::Done)
}

/// Returns the IDs after which the requested entries begin; `$` means the last ID of its stream, `+` the ID before that
/// of its last entry.
fn read_ids(call: &mut Call<'_, '_>, options: &ReadOptions<'_>) -> Result<Vec<StreamId>, CommandError> {
    let mut ids = Vec::new();
    for (key, id) in options.streams() {
        let stream = match call.keys.read_value::<Stream>(key) {
            // While the call waits, a key may temporarily hold another type.
            Err(CommandError::WrongType) if call.waiting == Waiting::Retry => None,
            stream => stream?,
        };
        ids.push(match call.args.at(id) {
            b"$" => stream.map_or(StreamId::MIN, |stream| stream.log().last_id()),
            b"+" => stream.map_or(StreamId::MIN, |stream| {
                let last = stream.log().last_entry_id().and_then(StreamId::previous);
                last.unwrap_or_else(|| stream.log().last_id())
            }),
            b">" => {
                return Err(
                    "ERR The > ID can be specified only when calling XREADGROUP using the GROUP <group> \
                            <consumer> option."
                        .into(),
                );
            }
            id => exact_id(id, 0)?,
        });
    }
    Ok(ids)
}

/// Returns the call with `$` and `+` replaced by IDs, because they would mean other entries when the call is run again.
fn with_ids(args: Args<'_>, options: &ReadOptions<'_>, ids: &[StreamId]) -> Option<OwnedBatch> {
    let mut words: Vec<Vec<u8>> = args.iter().map(<[u8]>::to_vec).collect();
    let mut is_needed = false;
    for ((_, arg), id) in options.streams().zip(ids) {
        if matches!(words[arg].as_slice(), b"$" | b"+") {
            words[arg] = id.to_string().into_bytes();
            is_needed = true;
        }
    }
    is_needed.then(|| {
        let mut call = OwnedBatch::new();
        call.push(&words.iter().map(Vec::as_slice).collect::<Vec<_>>());
        call
    })
}
