//! Vector arguments of commands on an index, which determines the number of dimensions. Forms: `FP32 blob`,
//! `VALUES number …`, a JSON array, or the bytes of the numbers.

use ember_protocol::{Args, number};

use crate::commands::arguments::is_word;
use crate::commands::vector_set::vector::{INVALID, has_a_length};
use crate::error::CommandError;
use crate::types::vector_set::DIM_MAX;

/// A parsed vector whose dimensions were not compared with those of the index yet.
pub(super) struct Given {
    vector: Vec<f32>,
    form: Form,
    /// The index of the argument after the vector.
    next: usize,
}

enum Form {
    /// The arguments determine the end of the vector.
    Closed,
    /// The argument consists of bytes, which are a vector only if their number matches the index.
    Bytes,
    /// The arguments are numbers, the first of which are the vector: the arguments after the vector may be numbers,
    /// too.
    Open,
}

/// Parses the vector that begins at argument `at`.
pub(super) fn read(args: Args<'_>, at: usize) -> Result<Given, CommandError> {
    let first = args.get(at).ok_or(INVALID)?;
    let (vector, form, next) = if is_word(args, at, "FP32") && args.len() > at + 1 {
        (from_bytes(args.at(at + 1)).ok_or(INVALID)?, Form::Closed, at + 2)
    } else if is_word(args, at, "VALUES") {
        let words = at + 1..args.len().min(at + 1 + DIM_MAX);
        let numbers = words.map_while(|arg| number::parse_f64(args.at(arg)));
        (numbers.map(|number| number as f32).collect(), Form::Open, at + 1)
    } else if let Some(vector) = from_json(first) {
        (vector, Form::Closed, at + 1)
    } else {
        (from_bytes(first).ok_or(INVALID)?, Form::Bytes, at + 1)
    };
    Ok(Given { vector, form, next })
}

impl Given {
    /// Returns the vector for an index with `dim` dimensions, and the index of the argument after it. All numbers of
    /// the vector are finite.
    pub(super) fn of(self, dim: usize) -> Result<(Vec<f32>, usize), CommandError> {
        let Given { mut vector, form, mut next } = self;
        match form {
            Form::Closed => {}
            Form::Bytes if vector.len() != dim => return Err(INVALID),
            Form::Bytes => {}
            Form::Open => {
                vector.truncate(dim);
                next += vector.len();
            }
        }
        if vector.len() != dim {
            return Err(format!("ERR vector has {} dimensions, but the index has {dim}", vector.len()).into());
        }
        let is_valid = vector.iter().all(|number| number.is_finite()) && has_a_length(&vector);
        if is_valid { Ok((vector, next)) } else { Err(INVALID) }
    }
}

/// Parses the vector that begins at argument `at`; returns the vector for an index with `dim` dimensions, and the index
/// of the argument after it. All numbers of the vector are finite.
pub(super) fn vector(args: Args<'_>, at: usize, dim: usize) -> Result<(Vec<f32>, usize), CommandError> {
    read(args, at)?.of(dim)
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
