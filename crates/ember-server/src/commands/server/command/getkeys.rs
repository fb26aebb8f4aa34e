//! COMMAND GETKEYS and GETKEYSANDFLAGS: find the keys among the arguments of a call.

use emberkv_core::error::CommandError;
use emberkv_core::spec::{Command, Example, Flags, KeyFlags, Spec};

use super::TEMPLATE;
use super::info::reply_words;
use crate::executor::session::{Outcome, ServerCommand, Session, SessionResult};

pub(super) const GETKEYS: ServerCommand = Command::new(
    Spec {
        name: "getkeys",
        summary: "Returns the keys among a command's arguments.",
        since: "2.8.13",
        complexity: "O(N) for N arguments.",
        arity: -3,
        syntax: "command [arg ...]",
        example: Example { given: &[], call: "COMMAND GETKEYS SET hello world", reply: "1) \"hello\"" },
        ..TEMPLATE
    },
    Some(getkeys),
);

pub(super) const GETKEYSANDFLAGS: ServerCommand = Command::new(
    Spec {
        name: "getkeysandflags",
        summary: "Returns the keys among a command's arguments with their access flags.",
        since: "7.0.0",
        complexity: "O(N) for N arguments.",
        arity: -3,
        syntax: "command [arg ...]",
        example: Example {
            given: &[],
            call: "COMMAND GETKEYSANDFLAGS TYPE hello",
            reply: "1) 1) \"hello\"\n   2) 1) RO",
        },
        ..TEMPLATE
    },
    Some(getkeysandflags),
);

const NO_COMMAND: &str = "ERR Invalid command specified";

/// Returns the keys, with their flags, of the call that the arguments contain.
fn keys_of<'c>(session: &Session<'c>) -> Result<Vec<(&'c [u8], KeyFlags)>, CommandError> {
    let call = session.args.skip(2);
    let registry = &session.server.registry;
    let container = registry.find(call.at(0)).ok_or(NO_COMMAND)?;
    let command = match call.get(1) {
        Some(name) if !container.subcommands.is_empty() => {
            registry.find_in(container, name).ok_or(NO_COMMAND)?
        }
        _ => container,
    };
    let spec = command.spec;
    if spec.keys.iter().all(|keys| keys.flags.contains(KeyFlags::NOT_KEY)) {
        return Err("ERR The command has no key arguments".into());
    }
    if !spec.accepts(call.len()) {
        return Err("ERR Invalid number of arguments specified for command".into());
    }
    let are_given = match spec.keys_of {
        Some(keys_of) => !keys_of(call).is_empty(),
        None => spec.keys.iter().all(|keys| keys.are_given(call)),
    };
    if !are_given {
        let may_have_none = spec.flags.contains(Flags::NO_MANDATORY_KEYS);
        return if may_have_none {
            Ok(Vec::new())
        } else {
            Err("ERR Invalid arguments specified for command".into())
        };
    }
    Ok(spec.keys_with_flags(call).map(|(position, flags)| (call.at(position), flags)).collect())
}

fn getkeys(session: &mut Session<'_>) -> SessionResult {
    let keys = keys_of(session)?;
    session.reply.array(keys.len());
    keys.iter().for_each(|(key, _)| session.reply.bulk(key));
    Ok(Outcome::Done)
}

fn getkeysandflags(session: &mut Session<'_>) -> SessionResult {
    let keys = keys_of(session)?;
    session.reply.array(keys.len());
    for (key, flags) in keys {
        session.reply.array(2);
        session.reply.bulk(key);
        reply_words(session.reply, flags.names());
    }
    Ok(Outcome::Done)
}
