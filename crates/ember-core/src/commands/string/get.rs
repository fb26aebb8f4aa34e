//! GET, and its variants that change the key: GETDEL and GETEX.

use super::value;
use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::commands::arguments::{expiry_unit, is_word, positive_expiry};
use crate::effects::events::Event;
use crate::error::CommandError;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};

pub(crate) const COMMANDS: &[DataCommand] = &[
    Command::new(
        Spec {
            name: "get",
            summary: "Returns the string value of a key.",
            since: "1.0.0",
            group: Group::String,
            arity: 2,
            flags: Flags::READONLY.union(Flags::FAST),
            keys: &[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))],
            syntax: "key",
            example: Example { given: &["SET hello world"], call: "GET hello", reply: "\"world\"" },
            ..Spec::DEFAULT
        },
        Run::Keys(get),
    ),
    Command::new(
        Spec {
            name: "getdel",
            summary: "Returns the string value of a key and deletes the key.",
            since: "6.2.0",
            group: Group::String,
            arity: 2,
            flags: Flags::WRITE.union(Flags::FAST),
            keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::DELETE))],
            syntax: "key",
            example: Example { given: &["SET hello world"], call: "GETDEL hello", reply: "\"world\"" },
            ..Spec::DEFAULT
        },
        Run::Keys(getdel),
    ),
    Command::new(
        Spec {
            name: "getex",
            summary: "Returns the string value of a key and sets or removes its expiry.",
            since: "6.2.0",
            group: Group::String,
            arity: -2,
            flags: Flags::WRITE.union(Flags::FAST),
            keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::UPDATE))
                .with_notes("RW and UPDATE because it changes the TTL")],
            syntax: "key [EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds | PERSIST]",
            example: Example { given: &["SET hello world"], call: "GETEX hello EX 60", reply: "\"world\"" },
            ..Spec::DEFAULT
        },
        Run::Keys(getex),
    ),
];

fn get(call: &mut Call<'_, '_>) -> CommandResult {
    let value = value::string(call.keys.read(1))?;
    value::reply(call.reply, value);
    Ok(())
}

fn getdel(call: &mut Call<'_, '_>) -> CommandResult {
    let value = value::string(call.keys.read(1))?;
    value::reply(call.reply, value);
    let mut key = call.keys.key(1);
    if key.remove().is_some() {
        key.notify(Event::DEL);
        key.journal_removal();
    }
    Ok(())
}

fn getex(call: &mut Call<'_, '_>) -> CommandResult {
    let (args, now_ms) = (call.args, call.keys.turn.clock_ms());
    let mut persist = false;
    let mut expiry = None;
    let mut arg = 2;
    while arg < args.len() {
        match expiry_unit(args, arg) {
            // The same unit may be repeated: the last occurrence counts.
            Some(unit) if !persist && arg + 1 < args.len() => {
                if expiry.is_some_and(|(_, other)| other != unit) {
                    return Err(CommandError::Syntax);
                }
                arg += 1;
                expiry = Some((arg, unit));
            }
            None if is_word(args, arg, "PERSIST") && expiry.is_none() => persist = true,
            _ => return Err(CommandError::Syntax),
        }
        arg += 1;
    }
    let Some(value) = value::string(call.keys.read(1))? else {
        call.reply.null();
        return Ok(());
    };
    let expire_at_ms = match expiry {
        Some((arg, unit)) => Some(positive_expiry(args, arg, unit, now_ms, "getex")?),
        None => None,
    };
    value::reply(call.reply, Some(value));
    let mut key = call.keys.key(1);
    if expire_at_ms.is_some() || (persist && key.expire_at_ms().is_some()) {
        key.set_expiry(expire_at_ms);
        key.journal_expiry();
        key.notify(match expire_at_ms {
            None => Event::PERSIST,
            Some(_) if key.exists() => Event::EXPIRE,
            Some(_) => Event::DEL,
        });
    }
    Ok(())
}
