//! BITOP.

use super::value;
use crate::algorithms::bits::{self, Operation};
use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::commands::arguments::is_word;
use crate::effects::events::Event;
use crate::error::CommandError;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "bitop",
        summary: "Stores the result of a bitwise operation on string values and returns its length.",
        since: "2.6.0",
        group: Group::Bitmap,
        complexity: "O(N), N being the length of all strings together",
        arity: -4,
        flags: Flags::WRITE.union(Flags::DENYOOM),
        keys: &[
            KeySpec::one(2, KeyFlags::OW.union(KeyFlags::UPDATE)),
            KeySpec::from(3, 1, KeyFlags::RO.union(KeyFlags::ACCESS)),
        ],
        syntax: "operation:<AND | OR | XOR | NOT> destkey key [key ...]",
        example: Example {
            given: &["MSET key1 foobar key2 abcdef"],
            call: "BITOP AND dest key1 key2",
            reply: "(integer) 6",
        },
        ..Spec::DEFAULT
    },
    Run::Keys(bitop),
)];

/// The argument with the first source key.
const FIRST_SOURCE: usize = 3;

fn bitop(call: &mut Call<'_, '_>) -> CommandResult {
    let args = call.args;
    let operations = [("AND", Operation::And), ("OR", Operation::Or), ("XOR", Operation::Xor)];
    let operation = operations.into_iter().find(|(word, _)| is_word(args, 1, word)).map(|(_, found)| found);
    if operation.is_none() && !is_word(args, 1, "NOT") {
        return Err(CommandError::Syntax);
    }
    if operation.is_none() && args.len() != FIRST_SOURCE + 1 {
        return Err("ERR BITOP NOT must be called with a single source key.".into());
    }
    let mut result = Vec::new();
    for source in FIRST_SOURCE..args.len() {
        let mut digits = itoa::Buffer::new();
        let bytes = value::bytes_or_empty(value::string(call.keys.read(source))?, &mut digits);
        match operation {
            Some(operation) if source > FIRST_SOURCE => bits::combine(operation, &mut result, bytes),
            _ => result.extend_from_slice(bytes),
        }
    }
    if operation.is_none() {
        bits::invert(&mut result);
    }
    call.reply.integer(result.len() as i64);
    let mut target = call.keys.key(2);
    if result.is_empty() {
        if target.remove().is_some() {
            target.notify(Event::DEL);
        }
    } else {
        value::set_raw(&mut target, result, None);
        target.notify(value::SET);
    }
    Ok(())
}
