//! SET with all its options, and SETEX, PSETEX, SETNX, GETSET: the same with the option in the name.

use ember_protocol::Args;

use super::get::reply_value;
use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::commands::arguments::{ExpiryUnit, is_word, positive_expiry};
use crate::error::CommandError;
use crate::keyspace::entry::NewValue;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "set",
        summary: "Sets the string value of a key, ignoring its type. The key is created if it doesn't exist.",
        since: "1.0.0",
        group: Group::String,
        complexity: "O(1)",
        arity: -3,
        flags: Flags::WRITE.union(Flags::DENYOOM),
        keys: &[KeySpec::one(
            1,
            KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::UPDATE).union(KeyFlags::VARIABLE_FLAGS),
        )
        .with_notes("RW and ACCESS due to the optional `GET` argument")],
        syntax: "key value [NX | XX] [GET] [EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds | KEEPTTL]",
        example: Example { given: &[], call: "SET hello world", reply: "OK" },
        ..Spec::DEFAULT
    },
    Run::Keys(set),
)];

/// The value in argument `arg` in the form to store.
pub(crate) fn value_of(args: Args<'_>, arg: usize) -> NewValue<'_> {
    match args.shared(arg) {
        Some(large) => NewValue::Large(large.clone()),
        None => NewValue::from_bytes(args.at(arg)),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Condition {
    Always,
    IfAbsent,
    IfPresent,
}

enum Expiry {
    None,
    Keep,
    At(i64),
}

fn set(call: &mut Call<'_, '_>) -> CommandResult {
    if call.args.len() == 3 {
        call.keys.key(1).set(value_of(call.args, 2), None);
        call.reply.ok();
        return Ok(());
    }
    set_with_options(call)
}

fn set_with_options(call: &mut Call<'_, '_>) -> CommandResult {
    let args = call.args;
    let now_ms = call.keys.turn.now_ms;
    let (mut condition, mut expiry, mut get) = (Condition::Always, Expiry::None, false);
    let mut arg = 3;
    let mut pending: Option<(usize, ExpiryUnit)> = None;
    while arg < args.len() {
        let unit = expiry_unit(args, arg);
        let free = matches!(expiry, Expiry::None) && pending.is_none();
        if is_word(args, arg, "NX") && condition != Condition::IfPresent {
            condition = Condition::IfAbsent;
        } else if is_word(args, arg, "XX") && condition != Condition::IfAbsent {
            condition = Condition::IfPresent;
        } else if is_word(args, arg, "GET") {
            get = true;
        } else if is_word(args, arg, "KEEPTTL") && pending.is_none() {
            expiry = Expiry::Keep;
        } else if let Some(unit) = unit
            && free
            && arg + 1 < args.len()
        {
            arg += 1;
            pending = Some((arg, unit));
        } else {
            return Err(CommandError::Syntax);
        }
        arg += 1;
    }
    if let Some((arg, unit)) = pending {
        expiry = Expiry::At(positive_expiry(args, arg, unit, now_ms, "set")?);
    }
    let mut key = call.keys.key(1);
    if get {
        reply_value(call.reply, key.entry());
    }
    let skip = match condition {
        Condition::Always => false,
        Condition::IfAbsent => key.exists(),
        Condition::IfPresent => !key.exists(),
    };
    if skip {
        if !get {
            call.reply.null();
        }
        return Ok(());
    }
    let expire_at_ms = match expiry {
        Expiry::None => None,
        Expiry::Keep => key.expire_at_ms(),
        Expiry::At(at) => Some(at),
    };
    key.set(value_of(args, 2), expire_at_ms);
    if !get {
        call.reply.ok();
    }
    Ok(())
}

fn expiry_unit(args: Args<'_>, arg: usize) -> Option<ExpiryUnit> {
    const UNITS: [(&str, ExpiryUnit); 4] = [
        ("EX", ExpiryUnit::Seconds),
        ("PX", ExpiryUnit::Milliseconds),
        ("EXAT", ExpiryUnit::UnixSeconds),
        ("PXAT", ExpiryUnit::UnixMilliseconds),
    ];
    UNITS.iter().find(|(word, _)| is_word(args, arg, word)).map(|&(_, unit)| unit)
}
