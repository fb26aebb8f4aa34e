//! VECTOR.CREATE.

use ember_protocol::{Args, number};

use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::commands::arguments::is_word;
use crate::commands::vector_set::scalar;
use crate::effects::events::Event;
use crate::error::CommandError;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::vector_set::{
    DIM_MAX, Kind, LINKS_DEFAULT, LINKS_MAX, LINKS_MIN, LISTS_MAX, Metric, Scalar, Shape, TUNING_DEFAULT,
    Tuning, VectorSet,
};

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "vector.create",
        summary: "Creates an empty index of vectors, which exists until it is dropped.",
        since: "0.1.0",
        group: Group::VectorSet,
        arity: -4,
        flags: Flags::WRITE.union(Flags::DENYOOM),
        keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::INSERT))],
        syntax: "index DIM dimensions [DISTANCE <COSINE | L2 | IP>] [TYPE <HNSW | IVF | FLAT>] [M numlinks] \
                 [EF_CONSTRUCTION build-exploration-factor] [EF_SEARCH search-exploration-factor] [NLIST lists] \
                 [NPROBE probed-lists] \
                 [QUANT <F32 | F16 | BF16 | Q8 | BIN>]",
        example: Example { given: &[], call: "VECTOR.CREATE films DIM 2 DISTANCE COSINE", reply: "OK" },
        ..Spec::DEFAULT
    },
    Run::Keys(create),
)];

/// The default number of lists of an IVF index.
const LISTS_DEFAULT: usize = 1024;

/// The maximum search width that the command accepts.
const WIDTH_MAX: i64 = 1_000_000;

fn shape(args: Args<'_>) -> Result<Shape, CommandError> {
    let mut shape = Shape {
        dim: 0,
        metric: Metric::Cosine,
        scalar: Scalar::F32,
        kind: Kind::Flat,
        projection: None,
        tuning: Some(TUNING_DEFAULT),
    };
    let mut kind = "HNSW";
    let (mut links, mut build_width, mut search_width) = (None, None, None);
    let (mut lists, mut probes) = (None, None);
    for at in (2..args.len()).step_by(2) {
        if at + 1 == args.len() {
            return Err(CommandError::Syntax);
        }
        let within = |range: std::ops::RangeInclusive<i64>| {
            number::parse_i64(args.at(at + 1)).filter(|number| range.contains(number)).map(|n| n as usize)
        };
        if is_word(args, at, "DIM") {
            shape.dim = within(1..=DIM_MAX as i64).ok_or("ERR invalid DIM")?;
        } else if is_word(args, at, "DISTANCE") || is_word(args, at, "METRIC") {
            shape.metric = scalar::metric(args, at + 1).ok_or("ERR invalid DISTANCE")?;
        } else if is_word(args, at, "TYPE") {
            let word = |word: &&str| is_word(args, at + 1, word);
            kind = ["HNSW", "IVF", "FLAT"].into_iter().find(word).ok_or("ERR invalid TYPE")?;
        } else if is_word(args, at, "M") {
            links = Some(within(LINKS_MIN as i64..=LINKS_MAX as i64).ok_or("ERR invalid M")?);
        } else if is_word(args, at, "EF_CONSTRUCTION") {
            build_width = Some(within(1..=WIDTH_MAX).ok_or("ERR invalid EF_CONSTRUCTION")?);
        } else if is_word(args, at, "EF_SEARCH") {
            search_width = Some(within(1..=WIDTH_MAX).ok_or("ERR invalid EF_SEARCH")?);
        } else if is_word(args, at, "NLIST") {
            lists = Some(within(1..=LISTS_MAX as i64).ok_or("ERR invalid NLIST")?);
        } else if is_word(args, at, "NPROBE") {
            probes = Some(within(1..=LISTS_MAX as i64).ok_or("ERR invalid NPROBE")?);
        } else if is_word(args, at, "QUANT") {
            shape.scalar = scalar::named(args, at + 1).ok_or("ERR invalid QUANT")?;
        } else {
            return Err(CommandError::Syntax);
        }
    }
    if shape.dim == 0 {
        return Err("ERR DIM is missing".into());
    }
    shape.kind = match kind {
        "HNSW" => Kind::Hnsw { links: links.unwrap_or(LINKS_DEFAULT) },
        "IVF" => Kind::Ivf { lists: lists.unwrap_or(LISTS_DEFAULT) },
        _ => Kind::Flat,
    };
    if kind != "IVF" && (lists.is_some() || probes.is_some()) {
        return Err("ERR NLIST and NPROBE apply only to indexes of type IVF".into());
    }
    if kind != "HNSW" && (links.is_some() || build_width.is_some() || search_width.is_some()) {
        return Err("ERR M, EF_CONSTRUCTION and EF_SEARCH apply only to indexes of type HNSW".into());
    }
    shape.tuning = Some(Tuning {
        build_width: build_width.unwrap_or(TUNING_DEFAULT.build_width),
        search_width: search_width.unwrap_or(TUNING_DEFAULT.search_width),
        probes: probes.unwrap_or(TUNING_DEFAULT.probes),
    });
    Ok(shape)
}

fn create(call: &mut Call<'_, '_>) -> CommandResult {
    let shape = shape(call.args)?;
    let mut key = call.keys.key(1);
    if key.exists() {
        return Err("ERR index already exists".into());
    }
    key.edit_or_create(Event::module("vector.create"), |set: &mut VectorSet| set.shape(shape))?;
    call.reply.ok();
    Ok(())
}
