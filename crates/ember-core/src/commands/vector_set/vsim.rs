//! VSIM.

use super::score;
use super::search::Options;
use super::vadd::input_mismatch;
use super::vector::{Given, INVALID, has_a_length};
use crate::call::{Attempt, AttemptResult, Call, DataCommand, Run};
use crate::commands::arguments::is_word;
use crate::error::CommandError;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::vector_set::{Metric, VectorSet, steps_to_compile};
use ember_protocol::{Args, number};

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "vsim",
        summary: "Returns the elements of a vector set that are nearest to a vector or to an element.",
        since: "8.0.0",
        group: Group::VectorSet,
        complexity: "O(EF · log N) distances for N elements; O(N) with TRUTH.",
        arity: -4,
        flags: Flags::READONLY,
        keys: &[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))],
        tips: &["nondeterministic_output"],
        // The levels of the graph are random; searches are not.
        repeats: true,
        syntax: "key query:<ele:ELE element | fp32:FP32 vector | values:VALUES num number [number ...]> [WITHSCORES] \
                 [WITHATTRIBS] [COUNT count] [EPSILON max-distance] [EF search-exploration-factor] [FILTER expression] \
                 [FILTER-EF max-filtering-effort] [TRUTH] [NOTHREAD]",
        example: Example {
            given: &["VADD points VALUES 2 1 0 pt:A", "VADD points VALUES 2 0 1 pt:B"],
            call: "VSIM points VALUES 2 1 0 WITHSCORES",
            reply: "1) \"pt:A\"\n2) \"1\"\n3) \"pt:B\"\n4) \"0.5\"",
        },
        ..Spec::DEFAULT
    },
    Run::Long(vsim),
)];

/// Returns whether the call contains numbers without one of Redis's words before them. This is the form of the original
/// ember, whose reply contains distances.
fn is_bare(args: Args<'_>) -> bool {
    !["FP32", "VALUES"].iter().any(|word| is_word(args, 2, word)) && number::parse_f64(args.at(2)).is_some()
}

/// The query vector of a call, before or after its reduction.
enum Query {
    /// The vector has the dimensions of the stored vectors.
    Ready(Vec<f32>),
    /// The vector must be reduced to the dimensions of the stored vectors.
    Whole(Vec<f32>),
}

/// Returns the query vector, and the index of the argument after it.
fn query(set: &VectorSet, args: Args<'_>) -> Result<(Query, usize), CommandError> {
    if is_word(args, 2, "ELE") {
        let slot = set.find(args.at(3)).ok_or("ERR element not found in set")?;
        return Ok((Query::Ready(set.vector(slot)), 4));
    }
    let given =
        if is_bare(args) { Given::bare(args, 2).ok_or(INVALID) } else { Given::parse(args, 2, false) };
    let Given { vector, next, .. } = given?;
    let dim = vector.len();
    match set.projection() {
        // A vector that already has the reduced number of dimensions is not reduced.
        Some(projection) if dim != set.dim() => {
            if dim != projection.input {
                return Err(input_mismatch(dim, projection.input));
            }
            Ok((Query::Whole(vector), next))
        }
        _ if dim != set.dim() => {
            let text = format!("ERR Vector dimension mismatch - got {dim} but set has {}", set.dim());
            Err(text.into())
        }
        _ if has_a_length(&vector) => Ok((Query::Ready(vector), next)),
        _ => Err(INVALID),
    }
}

fn vsim(call: &mut Call<'_, '_>) -> AttemptResult {
    let args = call.args;
    let steps_max = call.search_steps_max();
    let Some(set) = call.keys.read_value::<VectorSet>(1)? else {
        call.reply.array(0);
        return Ok(Attempt::Done);
    };
    let (query, next) = query(set, args)?;
    let options = Options::parse(args, next)?;
    if set.metric() == Metric::InnerProduct && options.epsilon.is_finite() {
        return Err("ERR EPSILON requires a distance, which the inner product is not".into());
    }
    let reduction = if matches!(query, Query::Whole(_)) { set.steps_of_reduction() } else { 0 };
    let mut steps = reduction.saturating_add(options.filter.map_or(0, steps_to_compile));
    if steps > steps_max {
        return Ok(Attempt::Offload);
    }
    let search = options.search()?;
    steps = steps.saturating_add(set.steps_of(&search));
    if steps > steps_max {
        return Ok(Attempt::Offload);
    }
    let vector = match query {
        Query::Ready(vector) => vector,
        Query::Whole(vector) => set.reduced(vector),
    };
    if !has_a_length(&vector) {
        return Err(INVALID);
    }
    let Some((hits, filter_steps)) = set.search(&vector, &search, steps_max) else {
        return Ok(Attempt::Offload);
    };
    // With metrics other than the cosine, EPSILON limits the reported distance.
    let is_near = |distance: f32| match set.metric() {
        Metric::Cosine => distance / 2.0 <= options.epsilon,
        Metric::L2 => set.metric_distance(distance) <= options.epsilon,
        // Inner products have no limit: all elements count as near.
        Metric::InnerProduct => true,
    };
    let count = hits.iter().take_while(|hit| is_near(hit.distance)).count();
    let Options { with_scores, with_attributes, .. } = options;
    if with_attributes {
        let slots = hits[..count].iter().map(|hit| hit.slot);
        steps = steps.saturating_add(set.steps_of_attributes(set.attributes_len(slots)));
        if steps > steps_max {
            return Ok(Attempt::Offload);
        }
    }
    let reply = &mut *call.reply;
    if reply.is_resp3() && (with_scores || with_attributes) {
        reply.map(count);
    } else {
        reply.array(count * (1 + usize::from(with_scores) + usize::from(with_attributes)));
    }
    for hit in &hits[..count] {
        let element = set.element(hit.slot);
        reply.bulk(element.name());
        if reply.is_resp3() && with_scores && with_attributes {
            reply.array(2);
        }
        if with_scores {
            let is_distance = !is_word(args, 2, "ELE") && is_bare(args);
            reply.double(if is_distance {
                set.metric_distance(hit.distance).into()
            } else {
                score(set, hit.distance)
            });
        }
        if with_attributes {
            match element.attributes() {
                Some(attributes) => reply.bulk(attributes),
                None => reply.null(),
            }
        }
    }
    call.keys.turn.count_search(steps.max(filter_steps));
    Ok(Attempt::Done)
}
