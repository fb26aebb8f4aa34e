//! Vector arguments of commands on vector sets: `FP32 blob`, or `VALUES count number …`.

use ember_protocol::{Args, number};

use crate::commands::arguments::is_word;
use crate::error::CommandError;
use crate::types::vector_set::DIM_MAX;

/// A parsed vector argument.
pub(super) struct Given<'a> {
    /// The vector, which has at least one dimension.
    pub(super) vector: Vec<f32>,
    /// The vector as a blob, if the call contains it as a blob.
    pub(super) blob: Option<&'a [u8]>,
    /// The number of dimensions after the reduction, if the vector is to be reduced.
    pub(super) reduced: Option<usize>,
    /// The index of the argument after the vector.
    pub(super) next: usize,
}

pub(crate) const INVALID: CommandError =
    CommandError::Text(std::borrow::Cow::Borrowed("ERR invalid vector specification"));

impl<'a> Given<'a> {
    /// Parses the vector that begins at argument `at`, with `REDUCE dimensions` before it if it `may_be_reduced`. The
    /// numbers of the vector are finite, and it does not exceed the maximum number of dimensions of an index.
    pub(super) fn parse(args: Args<'a>, at: usize, may_be_reduced: bool) -> Result<Given<'a>, CommandError> {
        let mut at = at;
        let mut reduced = None;
        if may_be_reduced && args.len() > at + 2 && is_word(args, at, "REDUCE") {
            reduced = Some(dimensions(args, at + 1)?);
            at += 2;
        }
        let mut blob = None;
        let (vector, next) = if args.len() < at + 2 {
            return Err(INVALID);
        } else if is_word(args, at, "FP32") {
            blob = Some(args.at(at + 1));
            (from_blob(args.at(at + 1))?, at + 2)
        } else if is_word(args, at, "VALUES") {
            let next = at + 2 + dimensions(args, at + 1)?;
            if args.len() < next {
                return Err(INVALID);
            }
            let numbers =
                (at + 2..next).map(|arg| number::parse_f64(args.at(arg)).map(|number| number as f32));
            (numbers.collect::<Option<Vec<f32>>>().ok_or(INVALID)?, next)
        } else {
            return Err(INVALID);
        };
        if vector.iter().all(|number| number.is_finite()) {
            Ok(Given { vector, blob, reduced, next })
        } else {
            Err(INVALID)
        }
    }

    /// Parses the numbers from argument `at` on, up to the first argument that is not a number; this is the form `VADD
    /// key element number …`. Returns `None` if the first argument is not a number, or a number is not finite.
    pub(super) fn bare(args: Args<'a>, at: usize) -> Option<Given<'a>> {
        let words = (at..args.len()).take(DIM_MAX + 1);
        let numbers = words.map_while(|arg| number::parse_f64(args.at(arg)).map(|number| number as f32));
        let vector: Vec<f32> = numbers.collect();
        let is_vector =
            (1..=DIM_MAX).contains(&vector.len()) && vector.iter().all(|number| number.is_finite());
        is_vector.then(|| Given { next: at + vector.len(), vector, blob: None, reduced: None })
    }
}

fn dimensions(args: Args<'_>, arg: usize) -> Result<usize, CommandError> {
    let count = number::parse_i64(args.at(arg)).and_then(|count| usize::try_from(count).ok());
    count.filter(|count| (1..=DIM_MAX).contains(count)).ok_or(INVALID)
}

pub(super) fn from_blob(blob: &[u8]) -> Result<Vec<f32>, CommandError> {
    let (numbers, rest) = blob.as_chunks::<4>();
    if !rest.is_empty() || !(1..=DIM_MAX).contains(&numbers.len()) {
        return Err(INVALID);
    }
    Ok(numbers.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect())
}

/// Returns a vector encoded as a blob.
pub(crate) fn to_blob(vector: &[f32]) -> Vec<u8> {
    vector.iter().flat_map(|number| number.to_le_bytes()).collect()
}

/// Returns whether the Euclidean length of a vector is finite, so that the vector can be stored.
pub(crate) fn has_a_length(vector: &[f32]) -> bool {
    vector.iter().map(|number| number * number).sum::<f32>().is_finite()
}
