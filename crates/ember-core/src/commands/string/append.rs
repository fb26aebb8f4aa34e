//! APPEND.

use super::value;
use crate::call::{Attempt, AttemptResult, Call, DataCommand, Run};
use crate::effects::events::Event;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "append",
        summary: "Adds bytes to the end of a string value, creating the key if it is missing.",
        since: "2.0.0",
        group: Group::String,
        complexity: "O(M) amortized, M being the length of the appended value",
        arity: 3,
        flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::FAST),
        keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::INSERT))],
        syntax: "key value",
        example: Example {
            given: &["SET greeting Hello"],
            call: "APPEND greeting \" World\"",
            reply: "(integer) 11",
        },
        ..Spec::DEFAULT
    },
    Run::KeysOrLong { long_if: |args| args.shared(2).is_some(), run: append },
)];

fn append(call: &mut Call<'_, '_>) -> AttemptResult {
    let added = call.args.at(2);
    let old_len = value::len(value::string(call.keys.key(1).entry())?);
    let len = value::len_with(call.keys.turn, old_len, added.len())?;
    let exists = call.keys.entry(1).is_some();
    if exists && call.is_long_change(added.len() / value::BYTES_PER_STEP, old_len / value::BYTES_PER_STEP) {
        return Ok(Attempt::Offload);
    }
    let mut key = call.keys.key(1);
    if key.exists() {
        value::edit_bytes(&mut key, len, |bytes| bytes[old_len..].copy_from_slice(added));
    } else {
        key.set(value::of_argument(call.args, 2), None);
    }
    key.notify(Event::string("append"));
    call.reply.integer(len as i64);
    Ok(Attempt::Done)
}
