//! SETRANGE.

use ember_protocol::Args;

use super::value;
use crate::call::{Attempt, AttemptResult, Call, DataCommand, Run};
use crate::commands::arguments::integer;
use crate::effects::events::Event;
use crate::error::CommandError;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::value::StringValue;

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "setrange",
        summary: "Overwrites a part of a string value from an offset on, padding with zero bytes up to it.",
        since: "2.2.0",
        group: Group::String,
        complexity: "O(M) amortized, M being the length of the new part and of the padding",
        arity: 4,
        flags: Flags::WRITE.union(Flags::DENYOOM),
        keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::UPDATE))],
        syntax: "key offset value",
        example: Example {
            given: &["SET greeting \"Hello World\""],
            call: "SETRANGE greeting 6 Redis",
            reply: "(integer) 11",
        },
        ..Spec::DEFAULT
    },
    Run::KeysOrLong { long_if: may_be_long, run: setrange },
)];

/// The maximum number of digits of an offset for which padding is always short.
const SMALL_OFFSET_DIGITS: usize = 6;

fn may_be_long(args: Args<'_>) -> bool {
    args.get(2).is_some_and(|offset| offset.len() > SMALL_OFFSET_DIGITS) || args.shared(3).is_some()
}

fn setrange(call: &mut Call<'_, '_>) -> AttemptResult {
    let offset = integer(call.args, 2)?;
    let offset = usize::try_from(offset).map_err(|_| CommandError::from("ERR offset is out of range"))?;
    let part = call.args.at(3);
    let key = call.keys.key(1);
    let old = value::string(key.entry())?;
    let (old_len, grows_by_zeros) = (value::len(old), old.is_some_and(StringValue::grows_by_zeros));
    if part.is_empty() {
        call.reply.integer(old_len as i64);
        return Ok(Attempt::Done);
    }
    let end = value::len_with(call.keys.turn, offset, part.len())?;
    let padding = if grows_by_zeros { 0 } else { end.saturating_sub(old_len) };
    let changed = part.len().max(padding);
    if call.is_long_change(changed / value::BYTES_PER_STEP, old_len / value::BYTES_PER_STEP) {
        return Ok(Attempt::Offload);
    }
    let mut key = call.keys.key(1);
    value::edit_bytes(&mut key, end, |bytes| bytes[offset..end].copy_from_slice(part));
    key.notify(Event::string("setrange"));
    call.reply.integer(old_len.max(end) as i64);
    Ok(Attempt::Done)
}
