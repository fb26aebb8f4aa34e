//! The sparse form of the registers: runs of equal ones.
//!
//! ```text
//! 00xxxxxx            a run of x + 1 zeros
//! 01xxxxxx yyyyyyyy   a run of xy + 1 zeros
//! 1vvvvvxx            a run of x + 1 registers with value v + 1
//! ```
//!
//! Runs are split and joined as in Redis, so that the same commands produce the same bytes.

use super::{Corrupt, Observation};

const ZEROS_MAX: usize = 64;
const VALUE_MAX: u8 = 32;
const VALUE_RUN_MAX: usize = 4;
/// The number of runs examined for joining after a change, beginning with the run before the changed one.
const JOINED_RUNS: usize = 5;

/// A run of equal registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opcode {
    /// Up to 64 zeros, in one byte.
    Zeros(usize),
    /// Any number of zeros, in two bytes.
    ManyZeros(usize),
    /// Registers that are not zero.
    Value {
        /// The value of the registers: 1 to 32.
        value: u8,
        /// The number of registers: 1 to 4.
        len: usize,
    },
}

impl Opcode {
    /// Returns the opcode at the beginning of `bytes`.
    fn read(bytes: &[u8]) -> Option<Opcode> {
        let &first = bytes.first()?;
        let low = usize::from(first & 0x3F);
        Some(match first >> 6 {
            0 => Opcode::Zeros(low + 1),
            1 => Opcode::ManyZeros((low << 8 | usize::from(*bytes.get(1)?)) + 1),
            _ => Opcode::Value { value: (first >> 2 & 0x1F) + 1, len: usize::from(first & 0x03) + 1 },
        })
    }

    /// Returns the number of registers in the run.
    #[expect(clippy::len_without_is_empty, reason = "no run is empty")]
    pub fn len(self) -> usize {
        match self {
            Opcode::Zeros(len) | Opcode::ManyZeros(len) | Opcode::Value { len, .. } => len,
        }
    }

    fn bytes(self) -> usize {
        if matches!(self, Opcode::ManyZeros(_)) { 2 } else { 1 }
    }

    fn push(self, bytes: &mut Vec<u8>) {
        match self {
            Opcode::Zeros(len) => bytes.push((len - 1) as u8),
            Opcode::ManyZeros(len) => bytes.extend([0x40 | ((len - 1) >> 8) as u8, (len - 1) as u8]),
            Opcode::Value { value, len } => bytes.push(0x80 | (value - 1) << 2 | (len - 1) as u8),
        }
    }
}

/// Appends the opcode for `len` zeros, unless there are none.
pub(super) fn push_zeros(bytes: &mut Vec<u8>, len: usize) {
    match len {
        0 => {}
        1..=ZEROS_MAX => Opcode::Zeros(len).push(bytes),
        _ => Opcode::ManyZeros(len).push(bytes),
    }
}

/// The runs in a byte slice, in order; the last may be [`Corrupt`].
#[derive(Clone, Debug)]
pub struct Opcodes<'a> {
    rest: &'a [u8],
}

impl<'a> Opcodes<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Opcodes<'a> {
        Opcodes { rest: bytes }
    }
}

impl Iterator for Opcodes<'_> {
    type Item = Result<Opcode, Corrupt>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let opcode = Opcode::read(self.rest);
        self.rest = opcode.map_or(&[], |opcode| &self.rest[opcode.bytes()..]);
        Some(opcode.ok_or(Corrupt))
    }
}

/// The result of adding an observation.
pub(super) enum Outcome {
    /// The register already had that value or a greater one.
    Unchanged,
    /// The register was raised.
    Changed,
    /// The value is too large for the sparse form, or the bytes would exceed their limit. Nothing was changed.
    DoesNotFit,
}

/// Adds an observation to the registers in `bytes` from `start` on. O(bytes).
pub(super) fn observe(
    bytes: &mut Vec<u8>,
    start: usize,
    observation: Observation,
    bytes_max: usize,
) -> Result<Outcome, Corrupt> {
    let Observation { register, rank } = observation;
    if rank > VALUE_MAX {
        return Ok(Outcome::DoesNotFit);
    }
    let (mut at, mut before, mut first) = (start, start, 0);
    let opcode = loop {
        let opcode = Opcode::read(&bytes[at..]).ok_or(Corrupt)?;
        if register < first + opcode.len() {
            break opcode;
        }
        before = at;
        at += opcode.bytes();
        first += opcode.len();
    };
    let (ahead, after) = (register - first, first + opcode.len() - 1 - register);
    let mut split = Vec::with_capacity(5);
    let raised = Opcode::Value { value: rank, len: 1 };
    match opcode {
        Opcode::Value { value, .. } if value >= rank => return Ok(Outcome::Unchanged),
        Opcode::Value { value, .. } => {
            let rest = |len: usize| (len > 0).then_some(Opcode::Value { value, len });
            let parts = [rest(ahead), Some(raised), rest(after)];
            parts.into_iter().flatten().for_each(|part| part.push(&mut split));
        }
        Opcode::Zeros(_) | Opcode::ManyZeros(_) => {
            push_zeros(&mut split, ahead);
            raised.push(&mut split);
            push_zeros(&mut split, after);
        }
    }
    let grown = bytes.len() - opcode.bytes() + split.len();
    if split.len() > opcode.bytes() && grown > bytes_max {
        return Ok(Outcome::DoesNotFit);
    }
    bytes.splice(at..at + opcode.bytes(), split);
    join(bytes, before);
    super::forget_estimate(bytes);
    Ok(Outcome::Changed)
}

/// Joins adjacent runs of equal values, beginning with the run at `at`.
fn join(bytes: &mut Vec<u8>, mut at: usize) {
    for _ in 0..JOINED_RUNS {
        let Some(opcode) = bytes.get(at..).and_then(Opcode::read) else { return };
        if let Opcode::Value { value, len } = opcode
            && let Some(Opcode::Value { value: next_value, len: next_len }) = Opcode::read(&bytes[at + 1..])
            && value == next_value
            && len + next_len <= VALUE_RUN_MAX
        {
            let mut joined = Vec::with_capacity(1);
            Opcode::Value { value, len: len + next_len }.push(&mut joined);
            bytes.splice(at..at + 2, joined);
        } else {
            at += opcode.bytes();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the runs after raising registers of an empty HyperLogLog to ranks, in the notation of `PFDEBUG DECODE`.
    fn runs(observations: &[(usize, u8)]) -> String {
        let mut bytes = super::super::empty();
        for &(register, rank) in observations {
            super::super::observe(&mut bytes, Observation { register, rank }, 3000)
                .expect("it is well-formed");
        }
        let runs = super::super::opcodes(&bytes).map(|opcode| match opcode.expect("it is well-formed") {
            Opcode::Zeros(len) => format!("z:{len}"),
            Opcode::ManyZeros(len) => format!("Z:{len}"),
            Opcode::Value { value, len } => format!("v:{value},{len}"),
        });
        runs.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn runs_are_split_and_joined() {
        assert_eq!(runs(&[]), "Z:16384");
        assert_eq!(runs(&[(0, 1)]), "v:1,1 Z:16383");
        assert_eq!(runs(&[(16_383, 2)]), "Z:16383 v:2,1");
        assert_eq!(runs(&[(64, 1)]), "z:64 v:1,1 Z:16319");
        assert_eq!(runs(&[(64, 1), (64, 1)]), "z:64 v:1,1 Z:16319");
        assert_eq!(runs(&[(1, 3), (0, 3), (2, 3)]), "v:3,3 Z:16381");
        assert_eq!(runs(&[(0, 3), (1, 3), (2, 3), (3, 3), (4, 3)]), "v:3,4 v:3,1 Z:16379");
        assert_eq!(runs(&[(0, 3), (1, 3), (2, 3), (1, 5)]), "v:3,1 v:5,1 v:3,1 Z:16381");
    }
}
