//! EXPIRE, PEXPIRE, EXPIREAT, PEXPIREAT.

use ember_protocol::Args;

use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::commands::arguments::{ExpiryUnit, integer, is_word};
use crate::effects::events::Event;
use crate::error::CommandError;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec, Values};

const TEMPLATE: Spec = Spec {
    group: Group::Generic,
    complexity: "O(1)",
    arity: -3,
    flags: Flags::WRITE.union(Flags::FAST),
    keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::UPDATE))],
    history: &[("7.0.0", "Options `NX`, `XX`, `GT` and `LT`.")],
    values: Values::Unneeded,
    ..Spec::DEFAULT
};
const GIVEN: &[&str] = &["SET hello world"];

pub(crate) const COMMANDS: &[DataCommand] = &[
    Command::new(
        Spec {
            name: "expire",
            summary: "Sets the expiry of a key in seconds from now.",
            since: "1.0.0",
            syntax: "key seconds [NX | XX | GT | LT]@7.0.0",
            example: Example { given: GIVEN, call: "EXPIRE hello 10", reply: "(integer) 1" },
            ..TEMPLATE
        },
        Run::Keys(|call| expire(call, ExpiryUnit::Seconds, "expire")),
    ),
    Command::new(
        Spec {
            name: "pexpire",
            summary: "Sets the expiry of a key in milliseconds from now.",
            since: "2.6.0",
            syntax: "key milliseconds [NX | XX | GT | LT]@7.0.0",
            example: Example { given: GIVEN, call: "PEXPIRE hello 1500 XX", reply: "(integer) 0" },
            ..TEMPLATE
        },
        Run::Keys(|call| expire(call, ExpiryUnit::Milliseconds, "pexpire")),
    ),
    Command::new(
        Spec {
            name: "expireat",
            summary: "Sets the expiry of a key as Unix time in seconds.",
            since: "1.2.0",
            syntax: "key unix-time-seconds [NX | XX | GT | LT]@7.0.0",
            example: Example { given: GIVEN, call: "EXPIREAT hello 33177117420", reply: "(integer) 1" },
            ..TEMPLATE
        },
        Run::Keys(|call| expire(call, ExpiryUnit::UnixSeconds, "expireat")),
    ),
    Command::new(
        Spec {
            name: "pexpireat",
            summary: "Sets the expiry of a key as Unix time in milliseconds.",
            since: "2.6.0",
            syntax: "key unix-time-milliseconds [NX | XX | GT | LT]@7.0.0",
            example: Example { given: GIVEN, call: "PEXPIREAT hello 33177117420000", reply: "(integer) 1" },
            ..TEMPLATE
        },
        Run::Keys(|call| expire(call, ExpiryUnit::UnixMilliseconds, "pexpireat")),
    ),
];

/// The conditions for changing the expiry; all conditions of a call must hold.
#[derive(Default)]
struct Conditions {
    /// The expiry is changed only if the key has no expiry.
    if_none: bool,
    /// The expiry is changed only if the key has an expiry.
    if_some: bool,
    /// The expiry is changed only to a later time; no expiry counts as the latest time.
    if_greater: bool,
    /// The expiry is changed only to an earlier time.
    if_less: bool,
}

impl Conditions {
    fn parse(args: Args<'_>) -> Result<Conditions, CommandError> {
        let mut conditions = Conditions::default();
        for arg in 3..args.len() {
            let named = [
                ("NX", &mut conditions.if_none),
                ("XX", &mut conditions.if_some),
                ("GT", &mut conditions.if_greater),
                ("LT", &mut conditions.if_less),
            ];
            let option = named.into_iter().find(|(word, _)| is_word(args, arg, word));
            let (_, condition) = option.ok_or_else(|| unsupported(args.at(arg)))?;
            *condition = true;
        }
        let Conditions { if_none, if_some, if_greater, if_less } = conditions;
        if if_none && (if_some || if_greater || if_less) {
            return Err("ERR NX and XX, GT or LT options at the same time are not compatible".into());
        }
        if if_greater && if_less {
            return Err("ERR GT and LT options at the same time are not compatible".into());
        }
        Ok(conditions)
    }

    fn allow(&self, old: Option<i64>, new: i64) -> bool {
        !(self.if_none && old.is_some()
            || self.if_some && old.is_none()
            || self.if_greater && old.is_none_or(|old| new <= old)
            || self.if_less && old.is_some_and(|old| new >= old))
    }
}

fn unsupported(option: &[u8]) -> CommandError {
    CommandError::quoting("ERR Unsupported option ", option, "")
}

fn expire(call: &mut Call<'_, '_>, unit: ExpiryUnit, command: &'static str) -> CommandResult {
    let conditions = Conditions::parse(call.args)?;
    let amount = integer(call.args, 2)?;
    let expire_at_ms = unit.resolve(amount, call.keys.turn.clock_ms());
    let expire_at_ms = expire_at_ms.ok_or(CommandError::InvalidExpire(command))?;
    let mut key = call.keys.key(1);
    key.touch();
    let changed = key.exists() && conditions.allow(key.expire_at_ms(), expire_at_ms);
    if changed {
        key.set_expiry(Some(expire_at_ms));
        key.journal_expiry();
        key.notify(if key.exists() { Event::EXPIRE } else { Event::DEL });
    }
    call.reply.integer(changed.into());
    Ok(())
}
