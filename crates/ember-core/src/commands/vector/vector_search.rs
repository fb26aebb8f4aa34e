//! VECTOR.SEARCH.

use super::reply::{Options, score};
use super::{NO_INDEX, given, tuning};
use crate::call::{Attempt, AttemptResult, Call, DataCommand, Run};
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::vector_set::{Search, VectorSet};

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "vector.search",
        summary: "Returns the elements of an index nearest to a vector, with the requested parts of each.",
        since: "0.1.0",
        group: Group::VectorSet,
        complexity: "O(EF · log N) distances for N elements; O(N) in an index of type FLAT, O(N · NPROBE / NLIST) in one of type IVF.",
        arity: -3,
        flags: Flags::READONLY,
        keys: &[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))],
        tips: &["nondeterministic_output"],
        syntax: "index vector:<array | blob | fp32:FP32 blob | values:VALUES number [number ...]> \
                 count:[K count | TOP count | KNN count | LIMIT count] [EF search-exploration-factor] [NPROBE probed-lists] \
                 [FILTER conditions] [RETURN field [field ...]] [WITHSCORES] [WITHVECTORS]",
        example: Example {
            given: &[
                "VECTOR.CREATE films DIM 2",
                "VECTOR.ADD films alien [1,0] '{\"year\":1979}'",
                "VECTOR.ADD films brazil [0,1] '{\"year\":1985}'",
            ],
            call: "VECTOR.SEARCH films [1,0] K 2 WITHSCORES RETURN year",
            reply: "1) 1) \"alien\"\n   2) \"1\"\n   3) 1) \"year\"\n      2) \"1979\"\n2) 1) \"brazil\"\n   2) \"0\"\n   \
                    3) 1) \"year\"\n      2) \"1985\"",
        },
        ..Spec::DEFAULT
    },
    Run::Long(search),
)];

fn search(call: &mut Call<'_, '_>) -> AttemptResult {
    let args = call.args;
    let steps_max = call.search_steps_max();
    let set = call.keys.read_value::<VectorSet>(1)?.ok_or(NO_INDEX)?;
    let dim = set.projection().map_or(set.dim(), |projection| projection.input);
    let (vector, next) = given::vector(args, 2, dim)?;
    let options = Options::parse(set, args, next, false)?;
    let mut steps = set.steps_of_reduction().saturating_add(options.steps_to_compile());
    if steps > steps_max {
        return Ok(Attempt::Offload);
    }
    let count = options.count;
    let search = Search {
        count,
        width: options.width.unwrap_or(tuning(set).search_width).max(count),
        probes: options.probes,
        is_exact: false,
        filter: options.filter()?,
        filter_effort: None,
    };
    steps = steps.saturating_add(set.steps_of(&search));
    if steps > steps_max {
        return Ok(Attempt::Offload);
    }
    let vector = set.reduced(vector);
    let Some((hits, filter_steps)) = set.search(&vector, &search, steps_max) else {
        return Ok(Attempt::Offload);
    };
    let hits: Vec<(u32, f64)> = hits.iter().map(|hit| (hit.slot, score(set, hit.distance))).collect();
    steps = steps.max(filter_steps).saturating_add(options.steps_to_write(set, &hits));
    if steps > steps_max {
        return Ok(Attempt::Offload);
    }
    options.write(set, &hits, call.reply);
    call.keys.turn.count_search(steps);
    Ok(Attempt::Done)
}
