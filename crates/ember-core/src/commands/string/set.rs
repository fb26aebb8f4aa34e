//! SET with all its options, and SETEX, PSETEX, SETNX and GETSET, whose names contain the option.

use ember_protocol::Args;

use super::condition::StringCondition;
use super::options::{Condition, Expiry, Options};
use super::value;
use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::commands::arguments::{ExpiryUnit, is_word, positive_expiry};
use crate::error::CommandError;
use crate::keys::Key;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};

const SETEX: Spec = Spec {
    name: "setex",
    summary: "Sets the value of a key and its expiry in seconds from now.",
    since: "2.0.0",
    group: Group::String,
    arity: 4,
    flags: Flags::WRITE.union(Flags::DENYOOM),
    keys: &[KeySpec::one(1, KeyFlags::OW.union(KeyFlags::UPDATE))],
    syntax: "key seconds value",
    deprecated: Some(("2.6.12", "`SET` with the `EX` argument")),
    example: Example { given: &[], call: "SETEX session 60 data", reply: "OK" },
    ..Spec::DEFAULT
};

pub(crate) const COMMANDS: &[DataCommand] = &[
    Command::new(
        Spec {
            name: "set",
            summary: "Sets the string value of a key, ignoring its type. The key is created if it doesn't exist.",
            since: "1.0.0",
            group: Group::String,
            arity: -3,
            flags: Flags::WRITE.union(Flags::DENYOOM),
            keys: &[KeySpec::one(
                1,
                KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::UPDATE).union(KeyFlags::VARIABLE_FLAGS),
            )
            .with_notes("RW and ACCESS due to the optional `GET` argument")],
            syntax: "key value condition:[NX @2.6.12 | XX @2.6.12 | IFEQ comparison-value @8.1.0 | IFNE ifne-value @8.4.0 | IFDEQ ifdeq-digest @8.4.0 | IFDNE ifdne-digest @8.4.0] [GET]@6.2.0 [EX seconds @2.6.12 | PX milliseconds @2.6.12 | EXAT unix-time-seconds @6.2.0 | PXAT unix-time-milliseconds @6.2.0 | KEEPTTL @6.0.0] tier:[TIER <HOT | COLD>] [PIN]",
            key_flags_of: Some(key_flags_of),
            history: &[
                ("2.6.12", "`EX`, `PX`, `NX` and `XX` came."),
                ("6.0.0", "`KEEPTTL` came."),
                ("6.2.0", "`GET`, `EXAT` and `PXAT` came."),
                ("7.0.0", "`NX` and `GET` can be combined."),
                ("8.1.0", "`IFEQ` came, in Valkey."),
                ("8.4.0", "`IFNE`, `IFDEQ` and `IFDNE` came."),
            ],
            example: Example { given: &[], call: "SET hello world", reply: "OK" },
            ..Spec::DEFAULT
        },
        Run::Keys(set),
    ),
    Command::new(SETEX, Run::Keys(|call| set_expiring(call, ExpiryUnit::Seconds, "setex"))),
    Command::new(
        Spec {
            name: "psetex",
            summary: "Sets the value of a key and its expiry in milliseconds from now.",
            since: "2.6.0",
            syntax: "key milliseconds value",
            deprecated: Some(("2.6.12", "`SET` with the `PX` argument")),
            example: Example { given: &[], call: "PSETEX session 60000 data", reply: "OK" },
            ..SETEX
        },
        Run::Keys(|call| set_expiring(call, ExpiryUnit::Milliseconds, "psetex")),
    ),
    Command::new(
        Spec {
            name: "setnx",
            summary: "Sets the value of a key, only if the key is missing.",
            since: "1.0.0",
            group: Group::String,
            arity: 3,
            flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::FAST),
            keys: &[KeySpec::one(1, KeyFlags::OW.union(KeyFlags::INSERT))],
            syntax: "key value",
            deprecated: Some(("2.6.12", "`SET` with the `NX` argument")),
            example: Example { given: &["SET hello world"], call: "SETNX hello you", reply: "(integer) 0" },
            ..Spec::DEFAULT
        },
        Run::Keys(setnx),
    ),
    Command::new(
        Spec {
            name: "getset",
            summary: "Sets the value of a key and returns the string it held before.",
            since: "1.0.0",
            group: Group::String,
            arity: 3,
            flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::FAST),
            keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::UPDATE))],
            syntax: "key value",
            deprecated: Some(("6.2.0", "`SET` with the `GET` argument")),
            example: Example { given: &["SET hello world"], call: "GETSET hello you", reply: "\"world\"" },
            ..Spec::DEFAULT
        },
        Run::Keys(getset),
    ),
];

fn key_flags_of(args: Args<'_>) -> KeyFlags {
    let reads = (3..args.len()).any(|arg| is_word(args, arg, "GET") || StringCondition::is_at(args, arg));
    KeyFlags::UPDATE | if reads { KeyFlags::RW | KeyFlags::ACCESS } else { KeyFlags::OW }
}

/// The options of SET.
struct SetOptions {
    common: Options,
    /// The value is set only if this condition holds for the old value.
    string_condition: Option<StringCondition>,
    get: bool,
    tier: Option<Tier>,
    /// Whether the value becomes pinned in memory.
    pin: bool,
}

/// The tier of the value after the call.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tier {
    Hot,
    Cold,
}

impl SetOptions {
    /// Applies TIER and PIN to the stored value. They concern only this server and are not recorded in the journal.
    fn place(&self, key: &mut Key<'_>) {
        match self.tier {
            Some(Tier::Cold) => key.request_demotion(),
            Some(Tier::Hot) if self.pin => key.set_pinned(true),
            Some(Tier::Hot) | None => {}
        }
    }
}

fn set(call: &mut Call<'_, '_>) -> CommandResult {
    if call.args.len() == 3 {
        value::store(&mut call.keys.key(1), value::of_argument(call.args, 2), None);
        call.reply.ok();
        return Ok(());
    }
    set_with_options(call)
}

fn set_with_options(call: &mut Call<'_, '_>) -> CommandResult {
    let options = read_options(call)?;
    let SetOptions { common: Options { condition, expiry }, string_condition, get, .. } = options;
    let (args, now_ms) = (call.args, call.keys.turn.clock_ms());
    let expire_at_ms = expiry.resolve(args, now_ms, "set")?;
    if get {
        value::reply(call.reply, value::string(call.keys.read(1))?);
    }
    let mut key = call.keys.key(1);
    let refused = match (string_condition, condition) {
        (Some(condition), _) => !condition.holds(args, key.entry())?,
        (None, Condition::Always) => false,
        (None, Condition::IfAbsent) => key.exists(),
        (None, Condition::IfPresent) => !key.exists(),
    };
    if !refused {
        value::store_as(&mut key, value::of_argument(args, 2), expiry, expire_at_ms);
        journal_set(&mut key, args.at(2), expiry, expire_at_ms);
        if key.exists() {
            options.place(&mut key);
        }
    }
    match (get, refused) {
        (true, _) => {}
        (false, true) => call.reply.null(),
        (false, false) => call.reply.ok(),
    }
    Ok(())
}

/// Parses the options after the value; options that exclude each other are an error.
fn read_options(call: &Call<'_, '_>) -> Result<SetOptions, CommandError> {
    let args = call.args;
    let mut options =
        SetOptions { common: Options::NONE, string_condition: None, get: false, tier: None, pin: false };
    let mut arg = 3;
    while arg < args.len() {
        if options.string_condition.is_none()
            && let Some(condition) = StringCondition::read(args, arg)?
        {
            options.string_condition = Some(condition);
            arg += 2;
        } else if is_word(args, arg, "GET") {
            options.get = true;
            arg += 1;
        } else if is_word(args, arg, "TIER") && options.tier.is_none() && arg + 1 < args.len() {
            options.tier = match () {
                () if is_word(args, arg + 1, "HOT") => Some(Tier::Hot),
                () if is_word(args, arg + 1, "COLD") => Some(Tier::Cold),
                () => return Err(CommandError::Syntax),
            };
            arg += 2;
        } else if is_word(args, arg, "PIN") {
            options.pin = true;
            arg += 1;
        } else {
            arg = options.common.read(args, arg)?;
        }
    }
    let has_two_conditions =
        options.string_condition.is_some() && options.common.condition != Condition::Always;
    if has_two_conditions || (options.pin && options.tier != Some(Tier::Hot)) {
        return Err(CommandError::Syntax);
    }
    if options.tier.is_some() && !call.keys.turn.checks_values {
        return Err("ERR values cannot be demoted: tiered-path is not set".into());
    }
    Ok(options)
}

/// Records the stored value in the journal, without the conditions.
pub(super) fn journal_set(key: &mut Key<'_>, value: &[u8], expiry: Expiry, expire_at_ms: Option<i64>) {
    if !key.exists() {
        return key.journal_removal();
    }
    key.journal("SET", |words| {
        words.word(value);
        match expire_at_ms {
            Some(expire_at_ms) => _ = words.word(b"PXAT").integer(expire_at_ms),
            None if matches!(expiry, Expiry::Keep) => _ = words.word(b"KEEPTTL"),
            None => {}
        }
    });
}

fn set_expiring(call: &mut Call<'_, '_>, unit: ExpiryUnit, name: &'static str) -> CommandResult {
    let expire_at_ms = positive_expiry(call.args, 2, unit, call.keys.turn.clock_ms(), name)?;
    let mut key = call.keys.key(1);
    value::store(&mut key, value::of_argument(call.args, 3), Some(expire_at_ms));
    journal_set(&mut key, call.args.at(3), Expiry::None, Some(expire_at_ms));
    call.reply.ok();
    Ok(())
}

fn setnx(call: &mut Call<'_, '_>) -> CommandResult {
    let mut key = call.keys.key(1);
    let absent = !key.exists();
    if absent {
        value::store(&mut key, value::of_argument(call.args, 2), None);
    }
    call.reply.integer(i64::from(absent));
    Ok(())
}

fn getset(call: &mut Call<'_, '_>) -> CommandResult {
    value::reply(call.reply, value::string(call.keys.read(1))?);
    let mut key = call.keys.key(1);
    value::store(&mut key, value::of_argument(call.args, 2), None);
    journal_set(&mut key, call.args.at(2), Expiry::None, None);
    Ok(())
}
