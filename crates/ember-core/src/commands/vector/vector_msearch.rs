//! VECTOR.MSEARCH.

use std::collections::BTreeSet;

use super::reply::{Aggregate, Options, is_option, score};
use super::{NO_INDEX, given, tuning};
use crate::call::{Attempt, AttemptResult, Call, DataCommand, Run};
use crate::commands::arguments::is_word;
use crate::error::CommandError;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::Collection;
use crate::types::vector_set::{Metric, Search, VectorSet};

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "vector.msearch",
        summary: "Returns the elements of an index that are nearest to several vectors: the elements found for each \
                  vector are scored against all vectors.",
        since: "0.1.0",
        group: Group::VectorSet,
        complexity: "O(Q · EF · (log N + Q)) distances for Q vectors, N elements and EF near ones of each.",
        arity: -4,
        flags: Flags::READONLY,
        keys: &[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))],
        tips: &["nondeterministic_output"],
        syntax: "index VECTORS vector [vector ...] count:[K count | TOP count | KNN count | LIMIT count] \
                 [AGGREGATE <AVG | MAX | MIN>] [EF search-exploration-factor] [FILTER conditions] \
                 [RETURN field [field ...]] [WITHSCORES] [WITHVECTORS]",
        example: Example {
            given: &[
                "VECTOR.CREATE films DIM 2",
                "VECTOR.ADD films alien [1,0]",
                "VECTOR.ADD films brazil [0,1]",
                "VECTOR.ADD films both [1,1]",
            ],
            call: "VECTOR.MSEARCH films VECTORS [1,0] [0,1] K 1",
            reply: "1) \"both\"",
        },
        ..Spec::DEFAULT
    },
    Run::Long(search),
)];

/// Combines the scores of one element for several query vectors.
fn together(scores: impl ExactSizeIterator<Item = f64>, aggregate: Aggregate, is_distance: bool) -> f64 {
    let count = scores.len() as f64;
    match aggregate {
        Aggregate::Average => scores.sum::<f64>() / count,
        // Of distances, the smallest is the best.
        Aggregate::Maximum if !is_distance => scores.fold(f64::NEG_INFINITY, f64::max),
        Aggregate::Minimum if is_distance => scores.fold(f64::NEG_INFINITY, f64::max),
        Aggregate::Maximum | Aggregate::Minimum => scores.fold(f64::INFINITY, f64::min),
    }
}

fn search(call: &mut Call<'_, '_>) -> AttemptResult {
    let args = call.args;
    if !is_word(args, 2, "VECTORS") {
        return Err(CommandError::Syntax);
    }
    let steps_max = call.search_steps_max();
    let set = call.keys.read_value::<VectorSet>(1)?.ok_or(NO_INDEX)?;
    let dim = set.projection().map_or(set.dim(), |projection| projection.input);
    let mut vectors: Vec<Vec<f32>> = Vec::new();
    let mut at = 3;
    while at < args.len() && !is_option(args, at) {
        let (vector, next) = given::vector(args, at, dim)?;
        vectors.push(vector);
        at = next;
    }
    if vectors.is_empty() {
        return Err(CommandError::Syntax);
    }
    let options = Options::parse(set, args, at, true)?;
    let reductions = set.steps_of_reduction().saturating_mul(vectors.len());
    let mut steps = reductions.saturating_add(options.steps_to_compile());
    if steps > steps_max {
        return Ok(Attempt::Offload);
    }
    let count = options.count;
    // Searches for more elements than COUNT per query: the elements nearest to all queries need not be the nearest to
    // any single query.
    let width = options.width.unwrap_or(tuning(set).search_width).max(count);
    let search = Search {
        count: width,
        width,
        probes: options.probes,
        is_exact: false,
        filter: options.filter()?,
        filter_effort: None,
    };
    let scored = vectors.len().saturating_mul(width.min(set.len()));
    let steps_each = set.steps_of(&search).saturating_add(set.steps_of_distances(scored));
    steps = steps.saturating_add(steps_each.saturating_mul(vectors.len()));
    if steps > steps_max {
        return Ok(Attempt::Offload);
    }
    let vectors: Vec<Vec<f32>> = vectors.into_iter().map(|vector| set.reduced(vector)).collect();
    let mut found: BTreeSet<u32> = BTreeSet::new();
    let mut filter_steps_left = steps_max;
    for vector in &vectors {
        let Some((hits, filter_steps)) = set.search(vector, &search, filter_steps_left) else {
            return Ok(Attempt::Offload);
        };
        filter_steps_left = filter_steps_left.saturating_sub(filter_steps);
        found.extend(hits.iter().map(|hit| hit.slot));
    }
    let is_distance = set.metric() == Metric::L2;
    let all_scores = |slot: u32| {
        let scores = vectors.iter().map(|vector| score(set, set.distance_to(vector, slot)));
        (slot, together(scores, options.aggregate, is_distance))
    };
    let mut hits: Vec<(u32, f64)> = found.into_iter().map(all_scores).collect();
    hits.sort_by(|a, b| if is_distance { a.1.total_cmp(&b.1) } else { b.1.total_cmp(&a.1) });
    hits.truncate(count);
    steps = steps.saturating_add(options.steps_to_write(set, &hits));
    if steps > steps_max {
        return Ok(Attempt::Offload);
    }
    options.write(set, &hits, call.reply);
    call.keys.turn.count_search(steps);
    Ok(Attempt::Done)
}
