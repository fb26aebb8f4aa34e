//! VADD.

use std::borrow::Cow;

use ember_protocol::{Args, number};

use super::scalar;
use super::vector::{Given, INVALID, from_blob, has_a_length, to_blob};
use crate::call::{CommandResult, DataCommand, Locked, Run};
use crate::commands::arguments::is_word;
use crate::effects::events::Event;
use crate::effects::journal::Words;
use crate::error::CommandError;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::vector_set::{
    Kind, LINKS_DEFAULT, LINKS_MAX, LINKS_MIN, MATRIX_NUMBERS_MAX, Metric, Prepared, Projection, Scalar,
    Shape, VectorSet,
};

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "vadd",
        summary: "Sets the vector of an element of a vector set, creating the key if it is missing; returns whether the \
                  element is new.",
        since: "8.0.0",
        group: Group::VectorSet,
        complexity: "O(D + log N) for D dimensions and N elements; then O(EF · log N) distances on another thread.",
        arity: -5,
        flags: Flags::WRITE.union(Flags::DENYOOM),
        keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::INSERT))],
        syntax: "key reduce:[REDUCE dim] vector:<fp32:FP32 vector | values:VALUES num number [number ...]> element \
                 [CAS] quantization:[NOQUANT | Q8 | BIN | F16 | BF16] [METRIC <COSINE | L2 | IP>] \
                 [QUANT <F32 | F16 | BF16 | Q8 | BIN>] [EF build-exploration-factor] [SETATTR attributes] [M numlinks]",
        example: Example { given: &[], call: "VADD points VALUES 2 1.0 1.0 pt:A", reply: "(integer) 1" },
        ..Spec::DEFAULT
    },
    Run::Prepared(vadd),
)];

/// The number of near vectors from which the neighbors of a new node are chosen: the default, and the maximum.
pub(super) const WIDTH_DEFAULT: usize = 200;
const WIDTH_MAX: i64 = 1_000_000;

pub(super) struct Options<'a> {
    pub(super) width: usize,
    links: usize,
    pub(super) scalar: Scalar,
    /// The metric; `None` means the metric of the set.
    pub(super) metric: Option<Metric>,
    attributes: Option<&'a [u8]>,
}

impl<'a> Options<'a> {
    /// Parses the options from argument `first` on; `scalar` is the default number format.
    pub(super) fn parse(args: Args<'a>, first: usize, scalar: Scalar) -> Result<Options<'a>, CommandError> {
        let mut options =
            Options { width: WIDTH_DEFAULT, links: LINKS_DEFAULT, scalar, metric: None, attributes: None };
        let mut at = first;
        while at < args.len() {
            let has_value = at + 1 < args.len();
            let within = |range: std::ops::RangeInclusive<i64>| {
                number::parse_i64(args.at(at + 1)).filter(|number| range.contains(number)).map(|n| n as usize)
            };
            at += if is_word(args, at, "CAS") {
                // CAS has no effect: no other client sees the element before the call is done.
                1
            } else if is_word(args, at, "EF") && has_value {
                options.width = within(1..=WIDTH_MAX).ok_or("ERR invalid EF")?;
                2
            } else if is_word(args, at, "M") && has_value {
                options.links = within(LINKS_MIN as i64..=LINKS_MAX as i64).ok_or("ERR invalid M")?;
                2
            } else if is_word(args, at, "SETATTR") && has_value {
                options.attributes = Some(args.at(at + 1));
                2
            } else if is_word(args, at, "METRIC") && has_value {
                options.metric = Some(scalar::metric(args, at + 1).ok_or("ERR invalid METRIC")?);
                2
            } else if is_word(args, at, "QUANT") && has_value {
                options.scalar = scalar::named(args, at + 1).ok_or("ERR invalid QUANT")?;
                2
            } else if let Some(scalar) = scalar::option(args, at) {
                options.scalar = scalar;
                1
            } else {
                return Err("ERR invalid option after element".into());
            };
        }
        Ok(options)
    }

    /// Returns the shape of the set that the call creates for a vector with `dim` dimensions.
    pub(super) fn shape(&self, dim: usize, projection: Option<Projection>) -> Shape {
        let (metric, kind) = (self.metric.unwrap_or(Metric::Cosine), Kind::Hnsw { links: self.links });
        Shape { dim, metric, scalar: self.scalar, kind, projection, tuning: None }
    }
}

fn mismatch(given: usize, set: usize) -> CommandError {
    format!("ERR Vector dimension mismatch - got {given} but set has {set}").into()
}

/// Returns an error if a vector with `dim` dimensions, to be reduced to `reduced`, cannot be added to a set with these
/// options.
pub(super) fn check(
    set: &VectorSet,
    dim: usize,
    reduced: Option<usize>,
    options: &Options<'_>,
) -> CommandResult {
    if set.scalar() != options.scalar {
        return Err("ERR asked quantization mismatch with existing vector set".into());
    }
    if options.metric.is_some_and(|metric| metric != set.metric()) {
        return Err("ERR asked metric mismatch with existing vector set".into());
    }
    if matches!(set.kind(), Kind::Hnsw { links } if links != options.links) {
        return Err("ERR asked M value mismatch with existing vector set".into());
    }
    match set.projection() {
        None if set.dim() != dim => Err(mismatch(dim, set.dim())),
        None if reduced.is_some() => {
            Err("ERR cannot add projection to existing set without projection".into())
        }
        None => Ok(()),
        Some(_) if reduced != Some(set.dim()) => Err(mismatch(dim, set.dim())),
        Some(projection) if projection.input != dim => Err(input_mismatch(dim, projection.input)),
        Some(_) => Ok(()),
    }
}

/// Returns the error for a vector whose number of dimensions differs from that of the input of the set's projection.
pub(super) fn input_mismatch(given: usize, input: usize) -> CommandError {
    format!("ERR Input dimension mismatch for projection - got {given} but projection expects {input}").into()
}

/// Returns the error for a projection whose matrix would have too many numbers.
fn too_large(dim: usize, reduced: usize) -> CommandError {
    format!("ERR REDUCE of {dim} to {reduced} dimensions: their product is limited to {MATRIX_NUMBERS_MAX}")
        .into()
}

fn vadd(args: Args<'_>) -> Result<Locked<'_>, CommandError> {
    let (name, given, options) = match Given::parse(args, 2, true) {
        Ok(given) => {
            if args.len() <= given.next {
                return Err(CommandError::WrongArity("vadd".into()));
            }
            let options = Options::parse(args, given.next + 1, Scalar::Int8)?;
            (args.at(given.next), given, options)
        }
        // An element with one of these names, followed by numbers, is an error in Redis, too.
        Err(error) if ["REDUCE", "FP32", "VALUES"].iter().any(|word| is_word(args, 2, word)) => {
            return Err(error);
        }
        Err(error) => {
            let given = Given::bare(args, 3).ok_or(error)?;
            let options = Options::parse(args, given.next, Scalar::F32)?;
            (args.at(2), given, options)
        }
    };
    let Given { vector, blob, reduced, .. } = given;
    let blob = blob.map_or_else(|| Cow::Owned(to_blob(&vector)), Cow::Borrowed);
    let (dim, projection) = (vector.len(), reduced.map(|_| Projection::new(vector.len())));
    let vector = match (&projection, reduced) {
        (Some(projection), Some(dim)) => projection.apply(&vector, dim),
        _ => vector,
    };
    let metric = options.metric.unwrap_or(Metric::Cosine);
    let prepared = Prepared::new(&vector, metric, options.scalar);
    Ok(Box::new(move |call| {
        // Older files and primaries may contain such a projection, which increases the number of dimensions.
        if reduced.is_some_and(|reduced| reduced > dim) && !call.keys.turn.is_replay() {
            return Err(INVALID);
        }
        let mut key = call.keys.key(1);
        let set = key.value::<VectorSet>()?;
        set.map_or(Ok(()), |set| check(set, dim, reduced, &options))?;
        if let Some(reduced) = reduced
            && dim.saturating_mul(reduced) > MATRIX_NUMBERS_MAX
            && !key.is_replay()
        {
            return Err(too_large(dim, reduced));
        }
        // Only a set loaded from a file may have another projection.
        let of_set = set.filter(|set| set.projection() != projection.as_ref());
        let vector = match of_set {
            Some(set) => set.reduced(from_blob(&blob)?),
            None => vector,
        };
        if !has_a_length(&vector) {
            return Err(INVALID);
        }
        // Prepares the vector again for a set with another metric, which stores vectors differently.
        let others = of_set.or(set.filter(|set| set.metric() != metric)).map(|set| set.prepared(&vector));
        let prepared = others.unwrap_or(prepared);
        let is_linked_later = key.links_later();
        let mut must_notify = false;
        let is_new = key.edit_or_create(Event::module("vadd"), |set: &mut VectorSet| {
            if !set.has_shape() {
                set.shape(options.shape(vector.len(), projection));
            }
            let is_new = set.set(name, &prepared, options.attributes, options.width, is_linked_later);
            must_notify = set.needs_linkers();
            set.keep_up();
            is_new
        })?;
        if must_notify {
            key.request_linking();
        }
        let is_new = is_new.ok_or("ERR the vector set has reached its maximum number of elements")?;
        key.journal("VADD", |words| write_effect(words, reduced, &blob, name, &options));
        call.reply.boolean(is_new);
        Ok(())
    }))
}

/// Writes the call for the journal, with the default values of omitted options and with rounded numbers.
fn write_effect(
    words: &mut Words<'_>,
    reduced: Option<usize>,
    blob: &[u8],
    name: &[u8],
    options: &Options<'_>,
) {
    if let Some(dim) = reduced {
        words.word(b"REDUCE").integer(dim);
    }
    words.word(b"FP32").word(blob).word(name).word(scalar::option_of(options.scalar).as_bytes());
    words.word(b"M").integer(options.links).word(b"EF").integer(options.width);
    if let Some(metric) = options.metric {
        words.word(b"METRIC").word(scalar::metric_name(metric).as_bytes());
    }
    if let Some(attributes) = options.attributes {
        words.word(b"SETATTR").word(attributes);
    }
}
