//! SETRANGE.

use super::value;
use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::commands::arguments::integer;
use crate::effects::events::Event;
use crate::error::CommandError;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};

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
    Run::Keys(setrange),
)];

fn setrange(call: &mut Call<'_, '_>) -> CommandResult {
    let offset = integer(call.args, 2)?;
    let offset = usize::try_from(offset).map_err(|_| CommandError::from("ERR offset is out of range"))?;
    let part = call.args.at(3);
    let old_len = value::len(value::string(call.keys.key(1).entry())?);
    if part.is_empty() {
        call.reply.integer(old_len as i64);
        return Ok(());
    }
    let end = value::len_with(call.keys.turn, offset, part.len())?;
    let mut key = call.keys.key(1);
    value::edit_bytes(&mut key, end, |bytes| bytes[offset..end].copy_from_slice(part));
    key.notify(Event::string("setrange"));
    call.reply.integer(old_len.max(end) as i64);
    Ok(())
}
