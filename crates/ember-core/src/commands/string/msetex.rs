//! MSETEX.

use std::ops::Range;

use ember_protocol::Args;

use super::options::{Condition, Expiry, Options};
use super::{set, value};
use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::commands::arguments::integer;
use crate::error::CommandError;
use crate::spec::{Begin, Command, Example, Find, Flags, Group, KeyFlags, KeySpec, Spec};

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "msetex",
        summary: "Sets the values of several keys atomically with one expiry.",
        since: "8.4.0",
        group: Group::String,
        complexity: "O(N), N being the number of keys",
        arity: -4,
        flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::MOVABLEKEYS),
        keys: &[KeySpec {
            begin: Begin::Index(1),
            find: Find::Counted { count_at: 0, first: 1, step: 2 },
            flags: KeyFlags::OW.union(KeyFlags::UPDATE),
            notes: None,
        }],
        tips: &["request_policy:multi_shard", "response_policy:agg_min"],
        syntax: "numkeys data:<key value [key value ...]> condition:[NX | XX] expiration:[EX seconds | \
                 PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds | KEEPTTL]",
        example: Example { given: &[], call: "MSETEX 2 one 1 two 2 EX 60", reply: "(integer) 1" },
        ..Spec::DEFAULT
    },
    Run::Keys(msetex),
)];

fn msetex(call: &mut Call<'_, '_>) -> CommandResult {
    let (args, now_ms) = (call.args, call.keys.turn.clock_ms());
    let pairs = pairs(args)?;
    let mut options = Options::NONE;
    let mut arg = pairs.end;
    while arg < args.len() {
        arg = options.read(args, arg)?;
    }
    let expire_at_ms = options.expiry.resolve(args, now_ms, "msetex")?;
    let mut names = pairs.clone().step_by(2);
    let is_allowed = match options.condition {
        Condition::Always => true,
        Condition::IfAbsent => !names.any(|arg| call.keys.key(arg).exists()),
        Condition::IfPresent => names.all(|arg| call.keys.key(arg).exists()),
    };
    if is_allowed {
        for arg in pairs.clone().step_by(2) {
            let mut key = call.keys.key(arg);
            value::store_as(&mut key, value::of_argument(args, arg + 1), options.expiry, expire_at_ms);
        }
        journal(call, pairs, options.expiry, expire_at_ms);
    }
    call.reply.integer(i64::from(is_allowed));
    Ok(())
}

/// Returns the argument indexes of the keys and values, which follow the number of keys.
fn pairs(args: Args<'_>) -> Result<Range<usize>, CommandError> {
    let count = integer(args, 1).ok().and_then(|count| i32::try_from(count).ok());
    let count = count.filter(|&count| count > 0).ok_or("ERR invalid numkeys value")?;
    let end = 2 + 2 * count as usize;
    if end > args.len() {
        return Err("ERR wrong number of key-value pairs".into());
    }
    Ok(2..end)
}

/// Records the keys that were set, without the conditions, in commands that Redis before 8.4 also supports.
fn journal(call: &mut Call<'_, '_>, pairs: Range<usize>, expiry: Expiry, expire_at_ms: Option<i64>) {
    let (args, past_ms) = (call.args, call.keys.turn.past_ms());
    match expire_at_ms {
        Some(at_ms) if at_ms <= past_ms => call.keys.journal(|words| {
            words.word(b"DEL");
            pairs.step_by(2).for_each(|arg| _ = words.word(args.at(arg)));
        }),
        None if !matches!(expiry, Expiry::Keep) => call.keys.journal(|words| {
            words.word(b"MSET");
            pairs.for_each(|arg| _ = words.word(args.at(arg)));
        }),
        _ => pairs.step_by(2).for_each(|arg| {
            set::journal_set(&mut call.keys.key(arg), args.at(arg + 1), expiry, expire_at_ms);
        }),
    }
}
