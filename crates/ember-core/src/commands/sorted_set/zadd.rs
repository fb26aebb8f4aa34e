//! ZADD, and ZINCRBY, which is ZADD with INCR.

use ember_protocol::{Args, number};

use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::commands::arguments::is_word;
use crate::effects::events::Event;
use crate::error::CommandError;
use crate::keys::Edited;
use crate::spec::{Command, ElementArgs, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::limits::EncodingLimits;
use crate::types::sorted_set::SortedSet;

pub(crate) const COMMANDS: &[DataCommand] = &[
    Command::new(
        Spec {
            name: "zadd",
            summary: "Adds members with scores to a sorted set, or updates their scores.",
            since: "1.2.0",
            group: Group::SortedSet,
            complexity: "O(log(N)) for each member, N being the number of members in the sorted set.",
            arity: -4,
            flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::FAST),
            keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::UPDATE))],
            elements: Some(ElementArgs::each(3, 2)),
            syntax: "key [NX | XX]@3.0.2 [GT | LT]@6.2.0 [CH]@3.0.2 [INCR]@3.0.2 score member [score member ...]",
            history: &[
                ("2.4.0", "Takes several members."),
                ("3.0.2", "`XX`, `NX`, `CH` and `INCR` came."),
                ("6.2.0", "`GT` and `LT` came."),
            ],
            example: Example { given: &[], call: "ZADD board 100 alice 85 bob", reply: "(integer) 2" },
            ..Spec::DEFAULT
        },
        Run::Keys(|call| zadd(call, Options::default())),
    ),
    Command::new(
        Spec {
            name: "zincrby",
            summary: "Increments the score of a member of a sorted set, adding the member if it is missing.",
            since: "1.2.0",
            group: Group::SortedSet,
            complexity: "O(log(N)), N being the number of members in the sorted set.",
            arity: 4,
            flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::FAST),
            keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::UPDATE))],
            elements: Some(ElementArgs::one(3)),
            syntax: "key increment member",
            example: Example {
                given: &["ZADD board 100 alice"],
                call: "ZINCRBY board 20 alice",
                reply: "\"120\"",
            },
            ..Spec::DEFAULT
        },
        Run::Keys(|call| zadd(call, Options { increment: true, ..Options::default() })),
    ),
];

/// The options, which determine the changed members and the kind of reply.
#[derive(Clone, Copy, Default)]
pub(in crate::commands) struct Options {
    /// `NX`: existing members are not changed.
    pub(in crate::commands) only_new: bool,
    /// `XX`: no members are added.
    pub(in crate::commands) only_existing: bool,
    /// `GT`: scores of existing members are changed only to greater ones.
    pub(in crate::commands) only_greater: bool,
    /// `LT`: scores of existing members are changed only to lower ones.
    pub(in crate::commands) only_less: bool,
    /// `CH`: the reply also counts members whose score has changed.
    pub(in crate::commands) counts_changed: bool,
    /// `INCR`: the given number is added to the score, and the reply is the new score.
    pub(in crate::commands) increment: bool,
}

impl Options {
    /// Sets the option in argument `arg`; returns false if the argument is not an option.
    fn take(&mut self, args: Args<'_>, arg: usize) -> bool {
        let options = [
            ("NX", &mut self.only_new),
            ("XX", &mut self.only_existing),
            ("CH", &mut self.counts_changed),
            ("INCR", &mut self.increment),
            ("GT", &mut self.only_greater),
            ("LT", &mut self.only_less),
        ];
        let option = options.into_iter().find(|(word, _)| is_word(args, arg, word));
        option.map(|(_, is_set)| *is_set = true).is_some()
    }

    fn check(&self) -> Result<(), CommandError> {
        if self.only_new && self.only_existing {
            return Err("ERR XX and NX options at the same time are not compatible".into());
        }
        let exclusive = [self.only_new, self.only_greater, self.only_less];
        if exclusive.into_iter().filter(|&is_set| is_set).count() > 1 {
            return Err("ERR GT, LT, and/or NX options at the same time are not compatible".into());
        }
        Ok(())
    }

    /// Returns whether every member receives the given score, because no option prevents this.
    fn is_plain(&self) -> bool {
        !(self.only_new || self.only_existing || self.only_greater || self.only_less || self.increment)
    }

    /// Returns the new score of a member whose current score is `current`; `None` if the member is not changed.
    fn score(&self, current: Option<f64>, given: f64) -> Result<Option<f64>, CommandError> {
        let Some(current) = current else { return Ok((!self.only_existing).then_some(given)) };
        if self.only_new {
            return Ok(None);
        }
        let score = if self.increment { current + given } else { given };
        if score.is_nan() {
            return Err("ERR resulting score is not a number (NaN)".into());
        }
        let is_refused = (self.only_less && score >= current) || (self.only_greater && score <= current);
        Ok((!is_refused).then_some(score))
    }
}

fn score(args: Args<'_>, arg: usize) -> Result<f64, CommandError> {
    number::parse_f64(args.at(arg)).ok_or(CommandError::NotFloat)
}

fn zadd(call: &mut Call<'_, '_>, mut options: Options) -> CommandResult {
    let args = call.args;
    let mut first = 2;
    while first < args.len() && options.take(args, first) {
        first += 1;
    }
    let count = (args.len() - first) / 2;
    if count == 0 || !(args.len() - first).is_multiple_of(2) {
        return Err(CommandError::Syntax);
    }
    options.check()?;
    if options.increment && count > 1 {
        return Err("ERR INCR option supports a single increment-element pair".into());
    }
    // All scores are parsed before any member changes; a single score needs no allocation.
    let (one, many);
    let scores: &[f64] = if count == 1 {
        one = [score(args, first)?];
        &one
    } else {
        many = (0..count).map(|index| score(args, first + 2 * index)).collect::<Result<Vec<f64>, _>>()?;
        &many
    };
    let members = scores.iter().enumerate().map(|(index, &score)| (args.at(first + 2 * index + 1), score));
    add(call, options, members)
}

/// The numbers of changed members, and the last score.
#[derive(Clone, Copy, Default)]
struct Outcome {
    added: usize,
    changed: usize,
    /// The score of the last member that was set.
    score: Option<f64>,
}

/// Adds members to the sorted set of the key in argument 1, and writes the reply.
pub(in crate::commands) fn add<'a>(
    call: &mut Call<'_, '_>,
    options: Options,
    members: impl ExactSizeIterator<Item = (&'a [u8], f64)>,
) -> CommandResult {
    let limits = call.keys.turn.settings.encoding;
    let event = Event::sorted_set(if options.increment { "zincr" } else { "zadd" });
    let edit = |set: &mut SortedSet| {
        let mut outcome = Outcome::default();
        set.expect_members(members.len(), &limits);
        for (member, score) in members {
            add_member(set, member, score, options, &limits, &mut outcome)?;
        }
        Ok(Edited { is_change: outcome.added + outcome.changed > 0, result: outcome })
    };
    let edited: Result<_, CommandError> = call.keys.key(1).edit_or_create(event, edit)?;
    let outcome = edited?.result;
    match outcome.score {
        Some(score) if options.increment => call.reply.double(score),
        None if options.increment => call.reply.null(),
        _ => {
            let changed = if options.counts_changed { outcome.changed } else { 0 };
            call.reply.integer((outcome.added + changed) as i64);
        }
    }
    Ok(())
}

fn add_member(
    set: &mut SortedSet,
    member: &[u8],
    given: f64,
    options: Options,
    limits: &EncodingLimits,
    outcome: &mut Outcome,
) -> CommandResult {
    let (previous, score) = if options.is_plain() {
        (set.set(member, given, limits), given)
    } else {
        let previous = set.score(member);
        let Some(score) = options.score(previous, given)? else { return Ok(()) };
        (set.set(member, score, limits), score)
    };
    match previous {
        None => outcome.added += 1,
        Some(previous) => outcome.changed += usize::from(previous != score),
    }
    outcome.score = Some(score);
    Ok(())
}
