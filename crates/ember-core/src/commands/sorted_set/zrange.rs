//! ZRANGE and ZRANGESTORE with all their options, and the older commands whose names contain an option.

use std::ops::Range;

use ember_protocol::{Args, Reply};

use super::reply;
use crate::call::{Attempt, AttemptResult, Call, DataCommand, Run};
use crate::commands::arguments::{integer, is_word};
use crate::effects::events::Event;
use crate::error::CommandError;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::Collection;
use crate::types::sorted_set::SortedSet;
use crate::types::sorted_set::range::{LexRange, ScoreRange};

const TEMPLATE: Spec = Spec {
    group: Group::SortedSet,
    complexity: "O(log(N)+M), N being the number of members in the sorted set and M of those returned.",
    arity: -4,
    flags: Flags::READONLY,
    keys: &[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))],
    ..Spec::DEFAULT
};

pub(crate) const COMMANDS: &[DataCommand] = &[
    Command::new(
        Spec {
            name: "zrange",
            summary: "Returns the members of a sorted set in a range of ranks, scores or members.",
            since: "1.2.0",
            syntax: "key start stop sortby:[BYSCORE | BYLEX]@6.2.0 [REV]@6.2.0 [LIMIT offset count]@6.2.0 [WITHSCORES]",
            history: &[("6.2.0", "`REV`, `BYSCORE`, `BYLEX` and `LIMIT` came.")],
            example: Example {
                given: &["ZADD board 100 alice 85 bob 70 carol"],
                call: "ZRANGE board 0 1 REV",
                reply: "1) \"alice\"\n2) \"bob\"",
            },
            ..TEMPLATE
        },
        Run::Long(|call| range(call, None, None)),
    ),
    Command::new(
        Spec {
            name: "zrangestore",
            summary: "Stores the members of a sorted set in a range in another key.",
            since: "6.2.0",
            complexity: "O(log(N)+M), N being the number of members in the sorted set and M of those stored.",
            arity: -5,
            flags: Flags::WRITE.union(Flags::DENYOOM),
            keys: &[
                KeySpec::one(1, KeyFlags::OW.union(KeyFlags::UPDATE)),
                KeySpec::one(2, KeyFlags::RO.union(KeyFlags::ACCESS)),
            ],
            syntax: "dst src min max sortby:[BYSCORE | BYLEX] [REV] [LIMIT offset count]",
            example: Example {
                given: &["ZADD board 100 alice 85 bob 70 carol"],
                call: "ZRANGESTORE best board 85 +inf BYSCORE",
                reply: "(integer) 2",
            },
            ..TEMPLATE
        },
        Run::Long(zrangestore),
    ),
    Command::new(
        Spec {
            name: "zrevrange",
            summary: "Returns the members of a sorted set in a range of ranks, the highest score first.",
            since: "1.2.0",
            syntax: "key start stop [WITHSCORES]",
            deprecated: Some(("6.2.0", "`ZRANGE` with the `REV` argument")),
            example: Example {
                given: &["ZADD board 100 alice 85 bob"],
                call: "ZREVRANGE board 0 0 WITHSCORES",
                reply: "1) \"alice\"\n2) \"100\"",
            },
            ..TEMPLATE
        },
        Run::Long(|call| range(call, Some(Kind::Rank), Some(true))),
    ),
    Command::new(
        Spec {
            name: "zrangebyscore",
            summary: "Returns the members of a sorted set whose scores are in a range.",
            since: "1.0.5",
            syntax: "key min max [WITHSCORES]@2.0.0 [LIMIT offset count]",
            deprecated: Some(("6.2.0", "`ZRANGE` with the `BYSCORE` argument")),
            history: &[("2.0.0", "`WITHSCORES` came.")],
            example: Example {
                given: &["ZADD board 100 alice 85 bob 70 carol"],
                call: "ZRANGEBYSCORE board (70 +inf LIMIT 0 1",
                reply: "1) \"bob\"",
            },
            ..TEMPLATE
        },
        Run::Long(|call| range(call, Some(Kind::Score), Some(false))),
    ),
    Command::new(
        Spec {
            name: "zrevrangebyscore",
            summary: "Returns the members of a sorted set whose scores are in a range, the highest first.",
            since: "2.2.0",
            syntax: "key max min [WITHSCORES] [LIMIT offset count]",
            deprecated: Some(("6.2.0", "`ZRANGE` with the `REV` and `BYSCORE` arguments")),
            history: &[("2.1.6", "`min` and `max` may be exclusive.")],
            example: Example {
                given: &["ZADD board 100 alice 85 bob 70 carol"],
                call: "ZREVRANGEBYSCORE board +inf 80",
                reply: "1) \"alice\"\n2) \"bob\"",
            },
            ..TEMPLATE
        },
        Run::Long(|call| range(call, Some(Kind::Score), Some(true))),
    ),
    Command::new(
        Spec {
            name: "zrangebylex",
            summary: "Returns the members in a lexicographic range of a sorted set with equal scores.",
            since: "2.8.9",
            syntax: "key min max [LIMIT offset count]",
            deprecated: Some(("6.2.0", "`ZRANGE` with the `BYLEX` argument")),
            example: Example {
                given: &["ZADD words 0 apple 0 banana 0 cherry"],
                call: "ZRANGEBYLEX words [b +",
                reply: "1) \"banana\"\n2) \"cherry\"",
            },
            ..TEMPLATE
        },
        Run::Long(|call| range(call, Some(Kind::Lex), Some(false))),
    ),
    Command::new(
        Spec {
            name: "zrevrangebylex",
            summary: "Returns the members in a lexicographic range of a sorted set with equal scores, in reverse order.",
            since: "2.8.9",
            syntax: "key max min [LIMIT offset count]",
            deprecated: Some(("6.2.0", "`ZRANGE` with the `REV` and `BYLEX` arguments")),
            example: Example {
                given: &["ZADD words 0 apple 0 banana 0 cherry"],
                call: "ZREVRANGEBYLEX words + [b",
                reply: "1) \"cherry\"\n2) \"banana\"",
            },
            ..TEMPLATE
        },
        Run::Long(|call| range(call, Some(Kind::Lex), Some(true))),
    ),
];

/// Parses a range of scores; the arguments `min` and `max` are its bounds.
pub(super) fn score_range(args: Args<'_>, min: usize, max: usize) -> Result<ScoreRange, CommandError> {
    ScoreRange::parse(args.at(min), args.at(max)).ok_or_else(|| "ERR min or max is not a float".into())
}

/// Parses a range of members; the arguments `min` and `max` are its bounds.
pub(super) fn lex_range(args: Args<'_>, min: usize, max: usize) -> Result<LexRange<'_>, CommandError> {
    LexRange::parse(args.at(min), args.at(max))
        .ok_or_else(|| "ERR min or max not valid string range item".into())
}

/// The kind of a range's bounds.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Rank,
    Score,
    Lex,
}

/// A range of members, defined by its bounds.
pub(super) enum By<'a> {
    /// The bounds are ranks in the requested order, from 0; negative ranks count from the end.
    Rank(i64, i64),
    /// The bounds are scores.
    Score(ScoreRange),
    /// The bounds are members.
    Lex(LexRange<'a>),
}

impl By<'_> {
    /// Returns the ranks of the members in the range. If the bounds are ranks and `is_reverse`, they count from the
    /// highest score.
    pub(super) fn ranks(&self, set: &SortedSet, is_reverse: bool) -> Range<usize> {
        match self {
            By::Score(range) => set.score_range(range),
            By::Lex(range) => set.lex_range(range, is_reverse),
            By::Rank(start, end) => {
                let len = set.len() as i64;
                let absolute = |index: i64| if index < 0 { len + index } else { index };
                let (start, end) = (absolute(*start).max(0), absolute(*end).min(len - 1));
                if start > end {
                    return 0..0;
                }
                let (start, end) = (start as usize, end as usize + 1);
                if is_reverse { set.len() - end..set.len() - start } else { start..end }
            }
        }
    }
}

/// The maximum number of members that are counted to find the other end of a range; beyond that, the other end is
/// searched.
const COUNTED_MAX: usize = 128;

/// The parameters of a command.
struct Query<'a> {
    by: By<'a>,
    is_reverse: bool,
    /// The number of members to skip at the beginning; a negative number skips all members.
    offset: i64,
    /// The maximum number of members to return; a negative number means no limit.
    count: i64,
    with_scores: bool,
}

impl<'a> Query<'a> {
    /// Parses the arguments from the key that precedes the range on. The command's name determines `kind` and
    /// `is_reverse`; `None` means that options may set them.
    fn parse(
        args: Args<'a>,
        source: usize,
        kind: Option<Kind>,
        is_reverse: Option<bool>,
        may_have_scores: bool,
    ) -> Result<Query<'a>, CommandError> {
        let (mut chosen_kind, mut chosen_reverse) = (kind, is_reverse);
        let (mut offset, mut count, mut with_scores) = (0, -1, false);
        let mut arg = source + 3;
        while arg < args.len() {
            if may_have_scores && is_word(args, arg, "WITHSCORES") {
                with_scores = true;
            } else if is_word(args, arg, "LIMIT") && arg + 2 < args.len() {
                (offset, count) = (integer(args, arg + 1)?, integer(args, arg + 2)?);
                arg += 2;
            } else if chosen_reverse.is_none() && is_word(args, arg, "REV") {
                chosen_reverse = Some(true);
            } else if chosen_kind.is_none() && is_word(args, arg, "BYLEX") {
                chosen_kind = Some(Kind::Lex);
            } else if chosen_kind.is_none() && is_word(args, arg, "BYSCORE") {
                chosen_kind = Some(Kind::Score);
            } else {
                return Err(CommandError::Syntax);
            }
            arg += 1;
        }
        let (kind, is_reverse) = (chosen_kind.unwrap_or(Kind::Rank), chosen_reverse.unwrap_or(false));
        if count != -1 && kind == Kind::Rank {
            return Err(
                "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX"
                    .into(),
            );
        }
        if with_scores && kind == Kind::Lex {
            return Err("ERR syntax error, WITHSCORES not supported in combination with BYLEX".into());
        }
        let (first, second) = (source + 1, source + 2);
        // Scores and members are given in the order of the reply; ranks are not.
        let (min, max) = if is_reverse { (second, first) } else { (first, second) };
        let by = match kind {
            Kind::Rank => By::Rank(integer(args, first)?, integer(args, second)?),
            Kind::Score => By::Score(score_range(args, min, max)?),
            Kind::Lex => By::Lex(lex_range(args, min, max)?),
        };
        Ok(Query { by, is_reverse, offset, count, with_scores })
    }

    /// Returns the ranks of the members to return.
    fn ranks(&self, set: &SortedSet) -> Range<usize> {
        let most = usize::try_from(self.offset.saturating_add(self.count)).ok().filter(|_| self.offset >= 0);
        let ranks = match (&self.by, most) {
            (By::Score(range), Some(most @ 0..=COUNTED_MAX)) if self.count >= 0 => {
                set.score_range_end(range, self.is_reverse, most)
            }
            _ => self.by.ranks(set, self.is_reverse),
        };
        if matches!(self.by, By::Rank(..)) {
            return ranks;
        }
        let offset = usize::try_from(self.offset).unwrap_or(usize::MAX).min(ranks.len());
        let left = ranks.len() - offset;
        let count = usize::try_from(self.count).unwrap_or(left).min(left);
        if self.is_reverse {
            let end = ranks.end - offset;
            end - count..end
        } else {
            let start = ranks.start + offset;
            start..start + count
        }
    }

    fn write(&self, set: &SortedSet, steps_max: usize, reply: &mut Reply) -> Attempt {
        let ranks = self.ranks(set);
        if ranks.len() > steps_max {
            return Attempt::Offload;
        }
        reply::members_head(reply, ranks.len(), self.with_scores);
        let mut write = |member, score| reply::element(reply, member, score, self.with_scores);
        if self.is_reverse {
            set.iter(ranks).rev().for_each(|(member, score)| write(member, score));
        } else {
            set.visit(ranks, write);
        }
        Attempt::Done
    }
}

fn range(call: &mut Call<'_, '_>, kind: Option<Kind>, is_reverse: Option<bool>) -> AttemptResult {
    let query = Query::parse(call.args, 1, kind, is_reverse, true)?;
    let steps_max = call.steps_max();
    match call.keys.read_value::<SortedSet>(1)? {
        Some(set) => Ok(query.write(set, steps_max, call.reply)),
        None => {
            call.reply.array(0);
            Ok(Attempt::Done)
        }
    }
}

fn zrangestore(call: &mut Call<'_, '_>) -> AttemptResult {
    let query = Query::parse(call.args, 2, None, None, false)?;
    let (limits, steps_max) = (call.keys.turn.settings.encoding, call.steps_max());
    let source = call.keys.read_value::<SortedSet>(2)?.map(|set| (set, query.ranks(set)));
    if source.as_ref().is_some_and(|(_, ranks)| ranks.len() > steps_max) {
        return Ok(Attempt::Offload);
    }
    let stored = source.map_or_else(SortedSet::default, |(set, ranks)| {
        let mut digits = itoa::Buffer::new();
        let mut stored = SortedSet::for_members(ranks.len(), 0, &limits);
        for (member, score) in set.iter(ranks) {
            stored.push_back(member.bytes(&mut digits), score, &limits);
        }
        stored
    });
    let (len, mut target) = (stored.len(), call.keys.key(1));
    call.reply.integer(len as i64);
    let was_there = target.exists();
    target.store_value(Event::sorted_set("zrangestore"), stored);
    // Redis 8 and Valkey return members for a negative offset of LIMIT, so a replica would store them; the removal is
    // recorded instead.
    if len == 0 && was_there {
        target.journal_removal();
    }
    Ok(Attempt::Done)
}
