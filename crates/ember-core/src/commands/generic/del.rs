//! DEL and UNLINK, which differ in the thread that frees a large value.

use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::effects::events::Event;
use crate::entries::entry::Slot;
use crate::memory::reclaim;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec, Values};
use crate::types::Aggregate;

const KEYS: &[KeySpec] = &[KeySpec::from(1, 1, KeyFlags::RM.union(KeyFlags::DELETE))];
const TIPS: &[&str] = &["request_policy:multi_shard", "response_policy:agg_sum"];

pub(crate) const COMMANDS: &[DataCommand] = &[
    Command::new(
        Spec {
            name: "del",
            summary: "Removes keys; returns the number of removed keys.",
            since: "1.0.0",
            group: Group::Generic,
            complexity: "O(N) for N keys, and O(M) more for each aggregate of M elements.",
            arity: -2,
            flags: Flags::WRITE,
            keys: KEYS,
            tips: TIPS,
            syntax: "key [key ...]",
            example: Example {
                given: &["SET one 1", "SET two 2"],
                call: "DEL one two three",
                reply: "(integer) 2",
            },
            values: Values::Unneeded,
            ..Spec::DEFAULT
        },
        Run::Keys(|call| {
            let free = if call.keys.turn.settings.frees_deleted_lazily { free_in_background } else { drop };
            remove_all(call, free)
        }),
    ),
    Command::new(
        Spec {
            name: "unlink",
            summary: "Removes keys and frees large values in the background.",
            since: "4.0.0",
            group: Group::Generic,
            complexity: "O(1) for each key, whatever its size; a background thread frees the values.",
            arity: -2,
            flags: Flags::WRITE.union(Flags::FAST),
            keys: KEYS,
            tips: TIPS,
            syntax: "key [key ...]",
            example: Example { given: &["SET one 1"], call: "UNLINK one two", reply: "(integer) 1" },
            values: Values::Unneeded,
            ..Spec::DEFAULT
        },
        Run::Keys(|call| remove_all(call, free_in_background)),
    ),
];

fn remove_all(call: &mut Call<'_, '_>, free: fn(Slot)) -> CommandResult {
    let mut removed = 0;
    for arg in 1..call.args.len() {
        let mut key = call.keys.key(arg);
        if let Some(slot) = key.remove() {
            key.notify(Event::DEL);
            free(slot);
            removed += 1;
        }
    }
    call.reply.integer(removed);
    Ok(())
}

fn free_in_background(slot: Slot) {
    let entry = slot.entry();
    if entry.footprint_bytes() >= reclaim::WORTH_BYTES_MIN
        || entry.aggregate().is_some_and(Aggregate::is_of_many_parts)
    {
        reclaim::later(slot, 1);
    }
}
