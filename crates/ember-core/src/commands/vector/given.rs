//! A vector among the arguments of a call on an index, whose dimensions are known: a JSON array, the bytes of its numbers,
//! `FP32 blob` or `VALUES number …`.

use ember_protocol::{Args, number};

use crate::commands::arguments::is_word;
use crate::commands::vector_set::vector::{INVALID, has_a_length};
use crate::error::CommandError;

/// The vector that begins at argument `at`, and the argument behind it. Numbers are finite.
pub(super) fn vector(args: Args<'_>, at: usize, dim: usize) -> Result<(Vec<f32>, usize), CommandError> {
    let first = args.get(at).ok_or(INVALID)?;
    let (vector, next) = if is_word(args, at, "FP32") && args.len() > at + 1 {
        (from_bytes(args.at(at + 1)).ok_or(INVALID)?, at + 2)
    } else if is_word(args, at, "VALUES") {
        let numbers = (at + 1..args.len().min(at + 1 + dim)).map_while(|arg| number::parse_f64(args.at(arg)));
        let numbers: Vec<f32> = numbers.map(|number| number as f32).collect();
        let next = at + 1 + numbers.len();
        (numbers, next)
    } else {
        let blob = || (first.len() == dim * size_of::<f32>()).then(|| from_bytes(first)).flatten();
        (from_json(first).or_else(blob).ok_or(INVALID)?, at + 1)
    };
    if vector.len() != dim {
        return Err(format!("ERR vector has {} dimensions, the index {dim}", vector.len()).into());
    }
    let is_valid = vector.iter().all(|number| number.is_finite()) && has_a_length(&vector);
    if is_valid { Ok((vector, next)) } else { Err(INVALID) }
}

fn from_bytes(bytes: &[u8]) -> Option<Vec<f32>> {
    let (numbers, rest) = bytes.as_chunks::<4>();
    rest.is_empty().then(|| numbers.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect())
}

fn from_json(text: &[u8]) -> Option<Vec<f32>> {
    let inside = text.trim_ascii().strip_prefix(b"[")?.strip_suffix(b"]")?;
    let number = |text: &[u8]| number::parse_f64(text.trim_ascii()).map(|number| number as f32);
    inside.split(|&byte| byte == b',').map(number).collect()
}
