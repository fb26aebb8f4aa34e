//! ZUNION, ZINTER and ZDIFF, their storing forms, and ZINTERCARD, which counts the result.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::HashMap;
use std::ops::ControlFlow;

use ember_protocol::{Args, number};

use super::reply;
use crate::call::{Attempt, AttemptResult, Call, DataCommand, Run};
use crate::commands::arguments::{integer, is_word};
use crate::effects::events::Event;
use crate::entries::entry::EntryRef;
use crate::error::CommandError;
use crate::keys::Keys;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::limits::EncodingLimits;
use crate::types::listpack::Element;
use crate::types::set::Set;
use crate::types::sorted_set::SortedSet;
use crate::types::{Aggregate, Collection};

const UNION_COMPLEXITY: &str =
    "O(N)+O(M*log(M)), N being the number of members in all sets and M in the result.";
const INTER_COMPLEXITY: &str = "O(N*K)+O(M*log(M)), N being the number of members in the smallest set, K the number of sets and M the number of members in the result.";
const DIFF_COMPLEXITY: &str =
    "O(L + (N-K)log(N)), L being the number of members in all sets, N in the first one and K in the result.";

const READ: Spec = Spec {
    group: Group::SortedSet,
    since: "6.2.0",
    arity: -3,
    flags: Flags::READONLY.union(Flags::MOVABLEKEYS),
    keys: &[KeySpec::counted(1, KeyFlags::RO.union(KeyFlags::ACCESS))],
    syntax: "numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE <SUM | MIN | MAX>] [WITHSCORES]",
    ..Spec::DEFAULT
};

const STORE: Spec = Spec {
    group: Group::SortedSet,
    since: "2.0.0",
    arity: -4,
    flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::MOVABLEKEYS),
    keys: &[
        KeySpec::one(1, KeyFlags::OW.union(KeyFlags::UPDATE)),
        KeySpec::counted(2, KeyFlags::RO.union(KeyFlags::ACCESS)),
    ],
    syntax: "destination numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE <SUM | MIN | MAX>]",
    ..Spec::DEFAULT
};

const GIVEN: &[&str] = &["ZADD one 1 a 2 b", "ZADD two 10 b 20 c"];

pub(crate) const COMMANDS: &[DataCommand] = &[
    Command::new(
        Spec {
            name: "zunion",
            summary: "Returns the union of several sorted sets.",
            complexity: UNION_COMPLEXITY,
            example: Example {
                given: GIVEN,
                call: "ZUNION 2 one two WITHSCORES",
                reply: "1) \"a\"\n2) \"1\"\n3) \"b\"\n4) \"12\"\n5) \"c\"\n6) \"20\"",
            },
            ..READ
        },
        Run::Long(|call| read(call, Operation::Union, "zunion")),
    ),
    Command::new(
        Spec {
            name: "zinter",
            summary: "Returns the intersection of several sorted sets.",
            complexity: INTER_COMPLEXITY,
            example: Example {
                given: GIVEN,
                call: "ZINTER 2 one two AGGREGATE MAX WITHSCORES",
                reply: "1) \"b\"\n2) \"10\"",
            },
            ..READ
        },
        Run::Long(|call| read(call, Operation::Inter, "zinter")),
    ),
    Command::new(
        Spec {
            name: "zdiff",
            summary: "Returns the difference of the first sorted set and the others.",
            complexity: DIFF_COMPLEXITY,
            syntax: "numkeys key [key ...] [WITHSCORES]",
            example: Example { given: GIVEN, call: "ZDIFF 2 one two", reply: "1) \"a\"" },
            ..READ
        },
        Run::Long(|call| read(call, Operation::Diff, "zdiff")),
    ),
    Command::new(
        Spec {
            name: "zintercard",
            summary: "Returns the number of members in the intersection of several sorted sets.",
            since: "7.0.0",
            complexity: "O(N*K), N being the number of members in the smallest set and K the number of sets.",
            syntax: "numkeys key [key ...] [LIMIT limit]",
            example: Example { given: GIVEN, call: "ZINTERCARD 2 one two", reply: "(integer) 1" },
            ..READ
        },
        Run::Long(zintercard),
    ),
    Command::new(
        Spec {
            name: "zunionstore",
            summary: "Stores the union of several sorted sets.",
            complexity: UNION_COMPLEXITY,
            example: Example {
                given: GIVEN,
                call: "ZUNIONSTORE all 2 one two WEIGHTS 2 1",
                reply: "(integer) 3",
            },
            ..STORE
        },
        Run::Long(|call| store(call, Operation::Union, "zunionstore")),
    ),
    Command::new(
        Spec {
            name: "zinterstore",
            summary: "Stores the intersection of several sorted sets.",
            complexity: INTER_COMPLEXITY,
            example: Example { given: GIVEN, call: "ZINTERSTORE both 2 one two", reply: "(integer) 1" },
            ..STORE
        },
        Run::Long(|call| store(call, Operation::Inter, "zinterstore")),
    ),
    Command::new(
        Spec {
            name: "zdiffstore",
            summary: "Stores the difference of the first sorted set and the others.",
            since: "6.2.0",
            complexity: DIFF_COMPLEXITY,
            syntax: "destination numkeys key [key ...]",
            example: Example { given: GIVEN, call: "ZDIFFSTORE rest 2 one two", reply: "(integer) 1" },
            ..STORE
        },
        Run::Long(|call| store(call, Operation::Diff, "zdiffstore")),
    ),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Operation {
    Union,
    Inter,
    Diff,
}

/// The way in which the scores of a member in several sets are combined.
#[derive(Clone, Copy)]
enum Combine {
    Sum,
    Min,
    Max,
}

impl Combine {
    fn apply(self, total: f64, score: f64) -> f64 {
        match self {
            // The sum of two opposite infinities is 0.
            Combine::Sum if (total + score).is_nan() => 0.0,
            Combine::Sum => total + score,
            Combine::Min if score < total => score,
            Combine::Max if score > total => score,
            _ => total,
        }
    }
}

/// The options that a command accepts after its keys.
#[derive(Clone, Copy)]
struct Allowed {
    weights: bool,
    with_scores: bool,
    limit: bool,
}

/// The arguments of a command.
struct Query {
    /// The argument indexes of the keys.
    keys: std::ops::Range<usize>,
    /// The weight of each key; empty if all weights are 1.
    weights: Vec<f64>,
    combine: Combine,
    with_scores: bool,
    /// The maximum number of members to count; 0 means no limit.
    limit: usize,
}

impl Query {
    /// Returns the argument indexes of the keys; their number is in argument `count_at`.
    fn keys(args: Args<'_>, count_at: usize, command: &str) -> Result<std::ops::Range<usize>, CommandError> {
        let count = integer(args, count_at)?;
        if count < 1 {
            return Err(format!("ERR at least 1 input key is needed for '{command}' command").into());
        }
        let count = usize::try_from(count).ok().filter(|&count| count < args.len() - count_at);
        let count = count.ok_or(CommandError::Syntax)?;
        Ok(count_at + 1..count_at + 1 + count)
    }

    /// Parses the arguments after the keys.
    fn parse(args: Args<'_>, keys: std::ops::Range<usize>, allowed: Allowed) -> Result<Query, CommandError> {
        let mut query =
            Query { keys, weights: Vec::new(), combine: Combine::Sum, with_scores: false, limit: 0 };
        let mut arg = query.keys.end;
        while arg < args.len() {
            let left = args.len() - arg;
            if allowed.weights && left > query.keys.len() && is_word(args, arg, "WEIGHTS") {
                let weights =
                    (arg + 1..arg + 1 + query.keys.len()).map(|arg| number::parse_f64(args.at(arg)));
                query.weights = weights.collect::<Option<_>>().ok_or("ERR weight value is not a float")?;
                arg += 1 + query.keys.len();
            } else if allowed.weights && left >= 2 && is_word(args, arg, "AGGREGATE") {
                let words = [("SUM", Combine::Sum), ("MIN", Combine::Min), ("MAX", Combine::Max)];
                let combine = words.into_iter().find(|(word, _)| is_word(args, arg + 1, word));
                query.combine = combine.ok_or(CommandError::Syntax)?.1;
                arg += 2;
            } else if allowed.with_scores && is_word(args, arg, "WITHSCORES") {
                query.with_scores = true;
                arg += 1;
            } else if allowed.limit && left >= 2 && is_word(args, arg, "LIMIT") {
                let limit = number::parse_i64(args.at(arg + 1)).and_then(|limit| usize::try_from(limit).ok());
                query.limit = limit.ok_or("ERR LIMIT can't be negative")?;
                arg += 2;
            } else {
                return Err(CommandError::Syntax);
            }
        }
        Ok(query)
    }

    fn weight(&self, index: usize) -> f64 {
        self.weights.get(index).copied().unwrap_or(1.0)
    }
}

/// A sorted set or a set that is combined with others. The members of a set have the score 1.
#[derive(Clone, Copy)]
enum Source<'a> {
    Missing,
    SortedSet(&'a SortedSet),
    Set(&'a Set),
}

impl<'a> Source<'a> {
    fn of(entry: Option<EntryRef<'a>>) -> Result<Source<'a>, CommandError> {
        let Some(entry) = entry else { return Ok(Source::Missing) };
        match entry.aggregate() {
            Some(Aggregate::SortedSet(set)) => Ok(Source::SortedSet(set)),
            Some(Aggregate::Set(set)) => Ok(Source::Set(set)),
            Some(
                Aggregate::List(_)
                | Aggregate::Hash(_)
                | Aggregate::Stream(_)
                | Aggregate::VectorSet(_)
                | Aggregate::Json(_)
                | Aggregate::Bloom(_)
                | Aggregate::Cuckoo(_)
                | Aggregate::CountMin(_)
                | Aggregate::TopK(_)
                | Aggregate::TDigest(_),
            )
            | None => Err(CommandError::WrongType),
        }
    }

    fn len(self) -> usize {
        match self {
            Source::Missing => 0,
            Source::SortedSet(set) => set.len(),
            Source::Set(set) => set.len(),
        }
    }

    fn score(self, member: &[u8]) -> Option<f64> {
        match self {
            Source::Missing => None,
            Source::SortedSet(set) => set.score(member),
            Source::Set(set) => set.contains(member).then_some(1.0),
        }
    }

    /// Calls `visit` for each member and its score, until `visit` returns a break.
    fn each(self, mut visit: impl FnMut(Element<'a>, f64) -> ControlFlow<()>) {
        // The result is ignored, because the caller knows whether all members were visited.
        let _ = match self {
            Source::Missing => ControlFlow::Continue(()),
            Source::SortedSet(set) => set.iter_all().try_for_each(|(member, score)| visit(member, score)),
            Source::Set(set) => set.try_for_each(|member| visit(member, 1.0)),
        };
    }

    /// Returns the members with their scores.
    fn members(self) -> Members<'a> {
        let mut members = Vec::with_capacity(self.len());
        self.each(|member, score| {
            members.push((owned(member), score));
            ControlFlow::Continue(())
        });
        members
    }
}

/// The members of a result with their scores.
type Members<'a> = Vec<(Cow<'a, [u8]>, f64)>;

fn owned(element: Element<'_>) -> Cow<'_, [u8]> {
    match element {
        Element::Bytes(bytes) => Cow::Borrowed(bytes),
        Element::Integer(_) => Cow::Owned(element.to_vec()),
    }
}

/// Returns the product of a weight and a score in the first set that contains the member; 0 times infinity is 0 there.
fn weighted(weight: f64, score: f64) -> f64 {
    let product = weight * score;
    if product.is_nan() { 0.0 } else { product }
}

/// Returns the members that any of the sets contains. O(members of all sets).
fn union<'a>(sources: &[(Source<'a>, f64)], combine: Combine) -> Members<'a> {
    let mut scores: HashMap<Cow<'a, [u8]>, f64> = HashMap::new();
    for &(source, weight) in sources {
        source.each(|member, score| {
            let score = weighted(weight, score);
            scores
                .entry(owned(member))
                .and_modify(|total| *total = combine.apply(*total, score))
                .or_insert(score);
            ControlFlow::Continue(())
        });
    }
    scores.into_iter().collect()
}

/// Calls `visit` for each member that all sets contain, with its score, until `visit` returns a break. O(members of the
/// first set · number of sets).
fn each_common<'a>(
    sources: &[(Source<'a>, f64)],
    combine: Combine,
    mut visit: impl FnMut(Element<'a>, f64) -> ControlFlow<()>,
) {
    let Some((&(first, weight), others)) = sources.split_first() else { return };
    let mut digits = itoa::Buffer::new();
    first.each(|member, score| {
        let bytes = member.bytes(&mut digits);
        let total = others.iter().try_fold(weighted(weight, score), |total, (other, weight)| {
            other.score(bytes).map(|score| combine.apply(total, score * weight))
        });
        total.map_or(ControlFlow::Continue(()), |total| visit(member, total))
    });
}

fn inter<'a>(sources: &[(Source<'a>, f64)], combine: Combine) -> Members<'a> {
    let mut members = Vec::new();
    each_common(sources, combine, |member, score| {
        members.push((owned(member), score));
        ControlFlow::Continue(())
    });
    members
}

/// Returns the members of the first set that no other set contains. Either looks up each of these members in the other
/// sets or removes the members of the other sets, whichever takes fewer steps.
fn diff<'a>(sources: &[(Source<'a>, f64)]) -> Members<'a> {
    let Some((&(first, _), others)) = sources.split_first() else { return Vec::new() };
    let look_ups = first.len() * others.len() / 2;
    let removals = first.len() + others.iter().map(|(other, _)| other.len()).sum::<usize>();
    if look_ups <= removals {
        let is_nowhere = |member: &[u8]| others.iter().all(|(other, _)| other.score(member).is_none());
        let mut members = first.members();
        members.retain(|(member, _)| is_nowhere(member));
        return members;
    }
    let mut left: HashMap<Cow<'a, [u8]>, f64> = first.members().into_iter().collect();
    for (other, _) in others {
        other.each(|member, _| {
            left.remove(&owned(member));
            ControlFlow::Continue(())
        });
    }
    left.into_iter().collect()
}

/// Returns the result of an operation, ordered by score and member.
fn combined<'a>(
    keys: &'a Keys<'_, '_>,
    query: &Query,
    operation: Operation,
) -> Result<Members<'a>, CommandError> {
    let sources = sources(keys, query, operation)?;
    let mut members = match operation {
        Operation::Union => union(&sources, query.combine),
        Operation::Inter => inter(&sources, query.combine),
        Operation::Diff => diff(&sources),
    };
    members.sort_unstable_by(|(a, a_score), (b, b_score)| {
        a_score.partial_cmp(b_score).unwrap_or(Ordering::Equal).then_with(|| a.cmp(b))
    });
    Ok(members)
}

/// Returns the sets with their weights: in the order of the arguments for a difference, otherwise the smallest set
/// first.
fn sources<'a>(
    keys: &'a Keys<'_, '_>,
    query: &Query,
    operation: Operation,
) -> Result<Vec<(Source<'a>, f64)>, CommandError> {
    let sources = query.keys.clone().enumerate();
    let sources = sources.map(|(index, arg)| Ok((Source::of(keys.entry(arg))?, query.weight(index))));
    let mut sources = sources.collect::<Result<Vec<_>, CommandError>>()?;
    if operation != Operation::Diff {
        sources.sort_by_key(|(source, _)| source.len());
    }
    Ok(sources)
}

/// Returns the maximum number of members that an operation reads or looks up.
fn steps(sources: &[(Source<'_>, f64)], operation: Operation) -> usize {
    match (operation, sources) {
        (Operation::Inter, [(smallest, _), ..]) => smallest.len().saturating_mul(sources.len()),
        _ => sources.iter().map(|(source, _)| source.len()).sum(),
    }
}

/// Looks up the keys, counted as uses, and parses all arguments.
fn begin(
    call: &mut Call<'_, '_>,
    count_at: usize,
    command: &str,
    allowed: Allowed,
) -> Result<Query, CommandError> {
    let keys = Query::keys(call.args, count_at, command)?;
    for arg in keys.clone() {
        Source::of(call.keys.read(arg))?;
    }
    Query::parse(call.args, keys, allowed)
}

fn read(call: &mut Call<'_, '_>, operation: Operation, command: &str) -> AttemptResult {
    let weights = operation != Operation::Diff;
    let query = begin(call, 1, command, Allowed { weights, with_scores: true, limit: false })?;
    if steps(&sources(&call.keys, &query, operation)?, operation) > call.steps_max() {
        return Ok(Attempt::Offload);
    }
    let members = combined(&call.keys, &query, operation)?;
    reply::members_head(call.reply, members.len(), query.with_scores);
    for (member, score) in &members {
        reply::element(call.reply, Element::Bytes(member), *score, query.with_scores);
    }
    Ok(Attempt::Done)
}

fn zintercard(call: &mut Call<'_, '_>) -> AttemptResult {
    let allowed = Allowed { weights: false, with_scores: false, limit: true };
    let query = begin(call, 1, "zintercard", allowed)?;
    if steps(&sources(&call.keys, &query, Operation::Inter)?, Operation::Inter) > call.steps_max() {
        return Ok(Attempt::Offload);
    }
    let mut count = 0;
    each_common(&sources(&call.keys, &query, Operation::Inter)?, Combine::Sum, |_, _| {
        count += 1;
        if count == query.limit { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    call.reply.integer(count as i64);
    Ok(Attempt::Done)
}

fn store(call: &mut Call<'_, '_>, operation: Operation, command: &'static str) -> AttemptResult {
    let weights = operation != Operation::Diff;
    let query = begin(call, 2, command, Allowed { weights, with_scores: false, limit: false })?;
    if steps(&sources(&call.keys, &query, operation)?, operation) > call.steps_max() {
        return Ok(Attempt::Offload);
    }
    let limits = call.keys.turn.settings.encoding;
    let result = stored(&combined(&call.keys, &query, operation)?, &limits);
    call.reply.integer(result.len() as i64);
    call.keys.key(1).store_value(Event::sorted_set(command), result);
    Ok(Attempt::Done)
}

fn stored(members: &Members<'_>, limits: &EncodingLimits) -> SortedSet {
    let longest = members.iter().map(|(member, _)| member.len()).max().unwrap_or(0);
    let mut set = SortedSet::for_members(members.len(), longest, limits);
    for (member, score) in members {
        set.push_back(member, *score, limits);
    }
    set
}
