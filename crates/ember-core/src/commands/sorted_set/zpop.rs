//! ZPOPMIN, ZPOPMAX and ZMPOP, and their blocking forms: BZPOPMIN, BZPOPMAX and BZMPOP.

use ember_protocol::{Args, Reply, number};

use super::reply;
use crate::call::{Attempt, AttemptResult, Call, DataCommand, Run, Wait};
use crate::commands::arguments::{is_large_count, is_word, timeout_ms};
use crate::effects::events::Event;
use crate::error::CommandError;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::Collection;
use crate::types::sorted_set::SortedSet;

const KEY_FLAGS: KeyFlags = KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::DELETE);

const ZPOP: Spec = Spec {
    group: Group::SortedSet,
    since: "5.0.0",
    complexity: "O(log(N)*M), N being the number of members in the sorted set and M of those removed.",
    arity: -2,
    flags: Flags::WRITE.union(Flags::FAST),
    keys: &[KeySpec::one(1, KEY_FLAGS)],
    syntax: "key [count]",
    ..Spec::DEFAULT
};

const BZPOP: Spec = Spec {
    group: Group::SortedSet,
    since: "5.0.0",
    complexity: "O(log(N)), N being the number of members in the sorted set.",
    arity: -3,
    flags: Flags::WRITE.union(Flags::BLOCKING).union(Flags::FAST),
    keys: &[KeySpec::range(1, -2, KEY_FLAGS)],
    syntax: "key [key ...] timeout",
    history: &[("6.0.0", "`timeout` may have a fraction.")],
    ..Spec::DEFAULT
};

const ZMPOP: Spec = Spec {
    group: Group::SortedSet,
    since: "7.0.0",
    complexity: "O(K) + O(M*log(N)), K being the number of keys, N of members in the sorted set, M of those removed.",
    ..Spec::DEFAULT
};

pub(crate) const COMMANDS: &[DataCommand] = &[
    Command::new(
        Spec {
            name: "zpopmin",
            summary: "Removes the members of a sorted set with the lowest scores, and returns them.",
            example: Example {
                given: &["ZADD board 100 alice 85 bob"],
                call: "ZPOPMIN board",
                reply: "1) \"bob\"\n2) \"85\"",
            },
            ..ZPOP
        },
        Run::KeysOrLong { long_if: |args| is_large_count(args, 2), run: |call| zpop(call, End::Min) },
    ),
    Command::new(
        Spec {
            name: "zpopmax",
            summary: "Removes the members of a sorted set with the highest scores, and returns them.",
            example: Example {
                given: &["ZADD board 100 alice 85 bob"],
                call: "ZPOPMAX board",
                reply: "1) \"alice\"\n2) \"100\"",
            },
            ..ZPOP
        },
        Run::KeysOrLong { long_if: |args| is_large_count(args, 2), run: |call| zpop(call, End::Max) },
    ),
    Command::new(
        Spec {
            name: "zmpop",
            summary: "Removes members with the lowest or highest scores from the first non-empty sorted set.",
            arity: -4,
            flags: Flags::WRITE.union(Flags::MOVABLEKEYS),
            keys: &[KeySpec::counted(1, KEY_FLAGS)],
            syntax: "numkeys key [key ...] <MIN | MAX> [COUNT count]",
            example: Example {
                given: &["ZADD board 100 alice 85 bob"],
                call: "ZMPOP 2 missing board MAX",
                reply: "1) \"board\"\n2) 1) 1) \"alice\"\n      2) \"100\"",
            },
            ..ZMPOP
        },
        Run::Long(zmpop),
    ),
    Command::new(
        Spec {
            name: "bzpopmin",
            summary: "Removes the member with the lowest score from a sorted set, waiting until there is one.",
            example: Example {
                given: &["ZADD board 100 alice 85 bob"],
                call: "BZPOPMIN missing board 1",
                reply: "1) \"board\"\n2) \"bob\"\n3) \"85\"",
            },
            ..BZPOP
        },
        Run::Blocking(|call| bzpop(call, End::Min)),
    ),
    Command::new(
        Spec {
            name: "bzpopmax",
            summary: "Removes the member with the highest score from a sorted set, waiting until there is one.",
            example: Example {
                given: &["ZADD board 100 alice 85 bob"],
                call: "BZPOPMAX missing board 1",
                reply: "1) \"board\"\n2) \"alice\"\n3) \"100\"",
            },
            ..BZPOP
        },
        Run::Blocking(|call| bzpop(call, End::Max)),
    ),
    Command::new(
        Spec {
            name: "bzmpop",
            summary: "Removes members with the lowest or highest scores from the first non-empty sorted set; waits until there \
                      is one.",
            arity: -5,
            flags: Flags::WRITE.union(Flags::BLOCKING).union(Flags::MOVABLEKEYS),
            keys: &[KeySpec::counted(2, KEY_FLAGS)],
            syntax: "timeout numkeys key [key ...] <MIN | MAX> [COUNT count]",
            example: Example {
                given: &["ZADD board 100 alice 85 bob"],
                call: "BZMPOP 1 1 board MIN COUNT 2",
                reply: "1) \"board\"\n2) 1) 1) \"bob\"\n      2) \"85\"\n   2) 1) \"alice\"\n      2) \"100\"",
            },
            ..ZMPOP
        },
        Run::Blocking(bzmpop),
    ),
];

/// The end of a sorted set from which members are popped.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Min,
    Max,
}

/// The structure of the reply.
#[derive(Clone, Copy)]
enum Form {
    /// A flat array of members and scores.
    Flat,
    /// An array of pairs, each of a member and its score.
    Pairs,
    /// A flat array of the key, the member and its score.
    KeyAndFlat,
    /// An array of the key and an array of pairs.
    KeyAndPairs,
}

/// The result of an attempt to pop.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Popped {
    Nothing,
    Done,
    /// The pop would be a long change ([`Call::is_long_change`]), and was not done.
    Long,
}

impl Popped {
    /// Returns the handler's result; `None` if the sorted set was missing.
    fn attempt(self) -> Option<Attempt> {
        match self {
            Popped::Nothing => None,
            Popped::Done => Some(Attempt::Done),
            Popped::Long => Some(Attempt::Offload),
        }
    }
}

/// Pops up to `count` members from the sorted set in argument `arg` and writes the reply. Writes nothing if the set is
/// missing, or if the pop would be a long change.
fn pop(
    call: &mut Call<'_, '_>,
    arg: usize,
    end: End,
    count: usize,
    form: Form,
) -> Result<Popped, CommandError> {
    if let Some(set) = call.keys.value::<SortedSet>(arg)?
        && call.is_long_change(count.min(set.len()), set.len())
    {
        return Ok(Popped::Long);
    }
    let (reply, name) = (&mut *call.reply, call.args.at(arg));
    let event = Event::sorted_set(if end == End::Min { "zpopmin" } else { "zpopmax" });
    let edit = |set: &mut SortedSet| {
        let (len, count) = (set.len(), count.min(set.len()));
        let ranks = if end == End::Min { 0..count } else { len - count..len };
        write_head(reply, name, count, form);
        let mut members = set.iter(ranks.clone());
        let next = if end == End::Min { Iterator::next } else { DoubleEndedIterator::next_back };
        while let Some((member, score)) = next(&mut members) {
            if matches!(form, Form::Pairs | Form::KeyAndPairs) {
                reply.array(2);
            }
            reply::member(reply, member);
            reply.double(score);
        }
        set.remove_range(ranks);
        count
    };
    let mut key = call.keys.key(arg);
    let popped = key.edit_value(event, edit)?;
    if let Some(count @ 1..) = popped {
        let command = if end == End::Min { "ZPOPMIN" } else { "ZPOPMAX" };
        key.journal(command, |words| _ = words.integer(count));
    }
    Ok(if popped.is_some() { Popped::Done } else { Popped::Nothing })
}

fn write_head(reply: &mut Reply, key: &[u8], count: usize, form: Form) {
    match form {
        Form::Flat => reply.array(2 * count),
        Form::Pairs => reply.array(count),
        Form::KeyAndFlat => {
            reply.array(1 + 2 * count);
            reply.bulk(key);
        }
        Form::KeyAndPairs => {
            reply.array(2);
            reply.bulk(key);
            reply.array(count);
        }
    }
}

fn zpop(call: &mut Call<'_, '_>, end: End) -> AttemptResult {
    let args = call.args;
    if args.len() > 3 {
        return Err(CommandError::Syntax);
    }
    let count = match args.get(2) {
        None => 1,
        Some(text) => count_of_at_least(text, 0, "ERR value is out of range, must be positive")?,
    };
    let form = if call.reply.is_resp3() && args.len() == 3 { Form::Pairs } else { Form::Flat };
    let popped = pop(call, 1, end, count, form)?.attempt();
    Ok(popped.unwrap_or_else(|| {
        call.reply.array(0);
        Attempt::Done
    }))
}

/// Parses `text` as a number, which must be at least `min`; otherwise returns an error with the text `error`.
fn count_of_at_least(text: &[u8], min: usize, error: &'static str) -> Result<usize, CommandError> {
    let count = number::parse_i64(text).and_then(|count| usize::try_from(count).ok());
    count.filter(|&count| count >= min).ok_or_else(|| error.into())
}

/// The arguments of ZMPOP and BZMPOP, from the number of keys on.
struct FromFirst {
    keys: std::ops::Range<usize>,
    end: End,
    count: usize,
}

impl FromFirst {
    fn parse(args: Args<'_>, keys_at: usize) -> Result<FromFirst, CommandError> {
        let keys = count_of_at_least(args.at(keys_at), 1, "ERR numkeys should be greater than 0")?;
        let end_at = keys.saturating_add(keys_at + 1);
        let end = match end_at < args.len() {
            true if is_word(args, end_at, "MIN") => End::Min,
            true if is_word(args, end_at, "MAX") => End::Max,
            _ => return Err(CommandError::Syntax),
        };
        let mut count = None;
        let mut arg = end_at + 1;
        while arg < args.len() {
            if count.is_some() || !is_word(args, arg, "COUNT") || arg + 1 == args.len() {
                return Err(CommandError::Syntax);
            }
            count = Some(count_of_at_least(args.at(arg + 1), 1, "ERR count should be greater than 0")?);
            arg += 2;
        }
        Ok(FromFirst { keys: keys_at + 1..end_at, end, count: count.unwrap_or(1) })
    }

    fn pop(&self, call: &mut Call<'_, '_>) -> Result<Option<Attempt>, CommandError> {
        for key in self.keys.clone() {
            let popped = pop(call, key, self.end, self.count, Form::KeyAndPairs)?;
            if popped != Popped::Nothing {
                return Ok(popped.attempt());
            }
        }
        Ok(None)
    }
}

fn zmpop(call: &mut Call<'_, '_>) -> AttemptResult {
    let popped = FromFirst::parse(call.args, 1)?.pop(call)?;
    Ok(popped.unwrap_or_else(|| {
        call.reply.null_array();
        Attempt::Done
    }))
}

fn wait(timeout_ms: Option<u64>) -> Attempt {
    Attempt::Wait(Wait { timeout_ms, empty_reply: Reply::null_array, instead: None })
}

fn bzpop(call: &mut Call<'_, '_>, end: End) -> AttemptResult {
    let last = call.args.len() - 1;
    let timeout = timeout_ms(call.args, last, call.keys.turn.now_ms)?;
    for key in 1..last {
        if let Some(attempt) = pop(call, key, end, 1, Form::KeyAndFlat)?.attempt() {
            return Ok(attempt);
        }
    }
    Ok(wait(timeout))
}

fn bzmpop(call: &mut Call<'_, '_>) -> AttemptResult {
    let arguments = FromFirst::parse(call.args, 2)?;
    let timeout = timeout_ms(call.args, 1, call.keys.turn.now_ms)?;
    Ok(arguments.pop(call)?.unwrap_or_else(|| wait(timeout)))
}
