//! HSETEX.

use std::ops::Range;

use ember_protocol::Args;

use super::access::{self, new_field};
use super::fields;
use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::commands::arguments::{expiry_unit, integer, is_word};
use crate::effects::events::Event;
use crate::error::CommandError;
use crate::keys::Key;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::hash::{Hash, NewExpiry};

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "hsetex",
        summary: "Sets fields of a hash with an expiry, either all of them or none.",
        since: "8.0.0",
        group: Group::Hash,
        complexity: "O(N) for N fields.",
        arity: -6,
        flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::FAST),
        keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::UPDATE))],
        syntax: "key key-condition:[NX | XX]@9.1.0 [FNX | FXX] [EX seconds | PX milliseconds | EXAT unix-time-seconds | \
                 PXAT unix-time-milliseconds | KEEPTTL] FIELDS numfields field value [field value ...]",
        history: &[("9.1.0", "Added `NX` and `XX`, in Valkey.")],
        example: Example {
            given: &["HSET user name Ann"],
            call: "HSETEX user EX 60 FIELDS 2 token xyz code 42",
            reply: "(integer) 1",
        },
        ..Spec::DEFAULT
    },
    Run::Keys(hsetex),
)];

/// The condition on the fields for setting any of them.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Condition {
    Always,
    IfNone,
    IfAll,
}

struct Options {
    /// The condition on the key for setting any field: whether the key must exist or must be missing; `None` for no
    /// condition.
    is_key_there: Option<bool>,
    condition: Condition,
    /// The new expiry of the fields, which may be in the past.
    expiry: NewExpiry,
    /// The argument indexes of the names and values of fields.
    pairs: Range<usize>,
}

impl Options {
    fn parse(args: Args<'_>, now_ms: i64) -> Result<Options, CommandError> {
        let (mut is_key_there, mut condition, mut expiry) = (None, Condition::Always, NewExpiry::None);
        let mut arg = 2;
        while arg < args.len() {
            if is_word(args, arg, "FIELDS") {
                return Ok(Options { is_key_there, condition, expiry, pairs: pairs(args, arg)? });
            } else if let Some(unit) = expiry_unit(args, arg) {
                refuse_if(expiry != NewExpiry::None, SECOND_EXPIRY)?;
                arg += 1;
                refuse_if(arg == args.len(), "ERR missing expire time")?;
                expiry = NewExpiry::At(fields::expiry(args, arg, unit, now_ms, "hsetex")?);
            } else if is_word(args, arg, "KEEPTTL") {
                refuse_if(expiry != NewExpiry::None, SECOND_EXPIRY)?;
                expiry = NewExpiry::Kept;
            } else if is_word(args, arg, "FXX") || is_word(args, arg, "FNX") {
                refuse_if(condition != Condition::Always, SECOND_CONDITION)?;
                let is_if_all = is_word(args, arg, "FXX");
                condition = if is_if_all { Condition::IfAll } else { Condition::IfNone };
            } else if is_word(args, arg, "NX") || is_word(args, arg, "XX") {
                let is_there = is_word(args, arg, "XX");
                refuse_if(is_key_there.is_some(), SECOND_KEY_CONDITION)?;
                is_key_there = Some(is_there);
            } else {
                return Err(CommandError::quoting("ERR unknown argument: ", args.at(arg), ""));
            }
            arg += 1;
        }
        Err(CommandError::WrongArity("hsetex".into()))
    }
}

const SECOND_EXPIRY: &str = "ERR Only one of EX, PX, EXAT, PXAT or KEEPTTL arguments can be specified";
const SECOND_CONDITION: &str = "ERR Only one of FXX or FNX arguments can be specified";

const SECOND_KEY_CONDITION: &str = "ERR Only one of NX or XX arguments can be specified";

fn refuse_if(is_refused: bool, error: &'static str) -> Result<(), CommandError> {
    if is_refused { Err(error.into()) } else { Ok(()) }
}

/// Returns the argument indexes of the names and values of fields, which follow the word `FIELDS` in argument `at` and
/// the number of fields.
fn pairs(args: Args<'_>, at: usize) -> Result<Range<usize>, CommandError> {
    let given = at + 2..args.len();
    if given.len() < 2 {
        return Err(CommandError::WrongArity("hsetex".into()));
    }
    let count = integer(args, at + 1).ok().and_then(|count| i32::try_from(count).ok());
    let count = count.filter(|&count| count > 0).ok_or("ERR invalid number of fields")?;
    if given.len() % 2 != 0 || count as usize != given.len() / 2 {
        return Err(CommandError::WrongArity("hsetex".into()));
    }
    Ok(given)
}

fn hsetex(call: &mut Call<'_, '_>) -> CommandResult {
    let (args, now_ms) = (call.args, call.keys.turn.now_ms);
    let options = Options::parse(args, now_ms)?;
    let expired_ms = call.keys.turn.expired_ms();
    let key = access::key(&mut call.keys)?;
    let is_allowed = {
        let hash = key.value::<Hash>()?;
        let is_there = |arg: usize| hash.is_some_and(|hash| hash.get(args.at(arg), expired_ms).is_some());
        let mut names = options.pairs.clone().step_by(2);
        let is_key_allowed = options.is_key_there.is_none_or(|wanted| wanted == hash.is_some());
        is_key_allowed
            && match options.condition {
                Condition::Always => true,
                Condition::IfNone => !names.any(is_there),
                Condition::IfAll => names.all(is_there),
            }
    };
    if is_allowed {
        set(call, options)?;
    }
    call.reply.integer(is_allowed.into());
    Ok(())
}

/// Sets the fields. Publishes one event for the new values and another for the expiry; if the expiry has passed, the
/// second event reports the removal of the fields.
fn set(call: &mut Call<'_, '_>, options: Options) -> CommandResult {
    let (args, limits) = (call.args, call.keys.turn.settings.encoding);
    let (expired_ms, past_ms) = (call.keys.turn.expired_ms(), call.keys.turn.past_ms());
    let Options { expiry, pairs, .. } = options;
    let is_past = matches!(expiry, NewExpiry::At(at_ms) if at_ms <= past_ms);
    let names = pairs.clone().step_by(2);
    let mut key = call.keys.key(1);
    key.edit_or_create(Event::hash("hset"), |hash: &mut Hash| {
        hash.expect_fields(pairs.len() / 2, &limits);
        for arg in pairs.clone().step_by(2) {
            let expiry = if is_past { NewExpiry::Kept } else { expiry };
            hash.set(&new_field(args, arg, expiry), expired_ms, &limits);
        }
    })?;
    if is_past {
        key.journal("HDEL", |words| names.for_each(|arg| _ = words.word(args.at(arg))));
    } else {
        journal_set(&mut key, args, expiry, &pairs)?;
    }
    match expiry {
        NewExpiry::At(_) if !is_past => key.notify(Event::hash("hexpire")),
        NewExpiry::At(_) => {
            key.edit_value::<Hash, usize>(Event::hash("hdel"), |hash| {
                pairs.step_by(2).filter(|&arg| hash.remove(args.at(arg), expired_ms)).count()
            })?;
        }
        NewExpiry::None | NewExpiry::Kept => {}
    }
    Ok(())
}

/// Records the fields that were set, without the conditions, in commands that Redis 7.4 also supports.
fn journal_set(
    key: &mut Key<'_>,
    args: Args<'_>,
    expiry: NewExpiry,
    pairs: &Range<usize>,
) -> Result<(), CommandError> {
    if !key.is_journaled() {
        return Ok(());
    }
    key.journal("HSET", |words| pairs.clone().for_each(|arg| _ = words.word(args.at(arg))));
    let names = pairs.clone().step_by(2);
    match expiry {
        NewExpiry::None => {}
        NewExpiry::At(at_ms) => key.journal_fields_expiry(at_ms, names.map(|arg| args.at(arg))),
        NewExpiry::Kept => {
            // If the expiry is kept, it is recorded again, because HSET removes it.
            let expired_ms = key.expired_ms();
            let hash = key.value::<Hash>()?;
            let expiry_of = |arg| hash?.get(args.at(arg), expired_ms)?.expire_at_ms;
            let kept: Vec<(i64, &[u8])> =
                names.filter_map(|arg| Some((expiry_of(arg)?, args.at(arg)))).collect();
            for alike in kept.chunk_by(|one, other| one.0 == other.0) {
                key.journal_fields_expiry(alike[0].0, alike.iter().map(|&(_, name)| name));
            }
        }
    }
    Ok(())
}
