//! DELEX.

use ember_protocol::Args;

use super::condition::StringCondition;
use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::effects::events::Event;
use crate::error::CommandError;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "delex",
        summary: "Removes a key if its string value or its digest meets a condition.",
        since: "8.4.0",
        group: Group::String,
        complexity: "O(N) for a value of N bytes.",
        arity: -2,
        flags: Flags::WRITE.union(Flags::FAST),
        keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::DELETE).union(KeyFlags::VARIABLE_FLAGS))],
        syntax: "key condition:[IFEQ ifeq-value | IFNE ifne-value | IFDEQ ifdeq-digest | IFDNE ifdne-digest]",
        key_flags_of: Some(key_flags_of),
        example: Example { given: &["SET lock mine"], call: "DELEX lock IFEQ mine", reply: "(integer) 1" },
        ..Spec::DEFAULT
    },
    Run::Keys(delex),
)];

/// Returns the key flags of a call: with a condition, the reply reveals information about the value.
fn key_flags_of(args: Args<'_>) -> KeyFlags {
    KeyFlags::DELETE | if args.len() > 2 { KeyFlags::RW | KeyFlags::ACCESS } else { KeyFlags::RM }
}

fn delex(call: &mut Call<'_, '_>) -> CommandResult {
    let args = call.args;
    let mut key = call.keys.key(1);
    // As in Redis, the condition is not parsed if the key is missing.
    let is_removed = key.exists() && {
        let holds = match args.len() {
            2 => true,
            4 => {
                let condition = StringCondition::read(args, 2)?;
                condition.ok_or(INVALID_CONDITION)?.holds(args, key.entry())?
            }
            _ => return Err(CommandError::WrongArity("delex".into())),
        };
        holds && key.remove().is_some()
    };
    if is_removed {
        key.journal_removal();
        key.notify(Event::DEL);
    }
    call.reply.integer(is_removed.into());
    Ok(())
}

const INVALID_CONDITION: &str = "ERR Invalid condition. Use IFEQ, IFNE, IFDEQ or IFDNE";
