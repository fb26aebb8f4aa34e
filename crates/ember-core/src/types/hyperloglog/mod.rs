//! HyperLogLog: an estimate of the number of distinct elements added, in the bytes of a string, in Redis's format.
//!
//! ```text
//! offset  bytes
//!  0      4   "HYLL"
//!  4      1   encoding: 0 dense, 1 sparse
//!  5      3   zero
//!  8      8   the estimate, little-endian; its highest bit marks it as out of date
//! 16      …   the registers
//! ```
//!
//! In the dense form, the 16384 registers take six bits each, the first one in the lowest bits of the first byte.
//! [`sparse`] describes the sparse form.
//!
//! The low 14 bits of an element's hash select a register, which stores the maximum number of trailing zeros of the
//! other 50 bits, plus one. The estimate ([`estimate`]) follows from how often each value occurs among the registers.
//!
//! The bytes may come from a client: [`encoding`] checks their length and first bytes; if the rest is invalid,
//! functions return [`Corrupt`].
//!
//! Source: Flajolet et al., "HyperLogLog: the analysis of a near-optimal cardinality estimation algorithm" (2007);
//! Heule et al., "HyperLogLog in practice" (2013). The format: Redis, `hyperloglog.c` by S. Sanfilippo.

mod estimate;
mod sparse;

pub use estimate::Histogram;
pub use sparse::{Opcode, Opcodes};

use crate::algorithms::murmur::murmur64a;

/// The number of registers.
pub const REGISTERS: usize = 1 << INDEX_BITS;

/// The seed of the hash of elements.
const SEED: u64 = 0xADC8_3B19;

const INDEX_BITS: u32 = 14;
/// The number of hash bits after the register's index.
const RANK_BITS: u32 = 64 - INDEX_BITS;
const REGISTER_BITS: usize = 6;
const REGISTER_MASK: u32 = (1 << REGISTER_BITS) - 1;

const HEADER_BYTES: usize = 16;
const MAGIC: &[u8; 4] = b"HYLL";
const ENCODING_AT: usize = 4;
const ESTIMATE: std::ops::Range<usize> = 8..16;
const OUT_OF_DATE: u8 = 1 << 7;
const DENSE: u8 = 0;
const SPARSE: u8 = 1;
const DENSE_BYTES: usize = HEADER_BYTES + REGISTERS * REGISTER_BITS / 8;

/// The layout of the registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// Six bits per register.
    Dense,
    /// Runs of equal registers.
    Sparse,
}

/// The bytes look like a HyperLogLog, but their registers are invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Corrupt;

/// The contribution of an element: a minimum value for a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Observation {
    /// The index of the register.
    pub register: usize,
    /// The value: 1 to 51.
    pub rank: u8,
}

impl Observation {
    /// Returns the observation that `element` adds. O(bytes).
    pub fn of(element: &[u8]) -> Observation {
        let hash = murmur64a(element, SEED);
        let rest = (hash >> INDEX_BITS) | (1 << RANK_BITS);
        Observation {
            register: (hash & (REGISTERS as u64 - 1)) as usize,
            rank: rest.trailing_zeros() as u8 + 1,
        }
    }
}

/// Returns the layout of the registers in `bytes`; `None` if the bytes are not a HyperLogLog.
pub fn encoding(bytes: &[u8]) -> Option<Encoding> {
    if bytes.len() < HEADER_BYTES || !bytes.starts_with(MAGIC) {
        return None;
    }
    match bytes[ENCODING_AT] {
        DENSE => (bytes.len() == DENSE_BYTES).then_some(Encoding::Dense),
        SPARSE => Some(Encoding::Sparse),
        _ => None,
    }
}

/// Returns an empty HyperLogLog.
pub fn empty() -> Vec<u8> {
    let mut bytes = vec![0; HEADER_BYTES];
    bytes[..MAGIC.len()].copy_from_slice(MAGIC);
    bytes[ENCODING_AT] = SPARSE;
    sparse::push_zeros(&mut bytes, REGISTERS);
    bytes
}

/// Returns the stored estimate, unless it is out of date.
pub fn kept_estimate(bytes: &[u8]) -> Option<u64> {
    let kept = u64::from_le_bytes(*bytes.get(ESTIMATE)?.first_chunk()?);
    (kept >> 63 == 0).then_some(kept)
}

/// Stores an estimate with the registers.
pub fn keep_estimate(bytes: &mut [u8], estimate: u64) {
    bytes[ESTIMATE].copy_from_slice(&estimate.to_le_bytes());
}

/// Marks the stored estimate as out of date.
pub fn forget_estimate(bytes: &mut [u8]) {
    bytes[ESTIMATE.end - 1] |= OUT_OF_DATE;
}

/// Returns the value of a register of a dense HyperLogLog.
fn dense_register(registers: &[u8], index: usize) -> u8 {
    let bit = index * REGISTER_BITS;
    let (at, shift) = (bit / 8, bit % 8);
    let low = u32::from(registers[at]);
    let high = registers.get(at + 1).map_or(0, |&byte| u32::from(byte));
    (((low | high << 8) >> shift) & REGISTER_MASK) as u8
}

fn set_dense_register(registers: &mut [u8], index: usize, value: u8) {
    let bit = index * REGISTER_BITS;
    let (at, shift) = (bit / 8, bit % 8);
    let (mask, value) = (REGISTER_MASK << shift, u32::from(value) << shift);
    registers[at] = registers[at] & !(mask as u8) | value as u8;
    if let Some(next) = registers.get_mut(at + 1) {
        *next = *next & !((mask >> 8) as u8) | (value >> 8) as u8;
    }
}

/// Returns whether an observation would change a dense HyperLogLog. O(1).
pub fn changes_dense(bytes: &[u8], observation: Observation) -> bool {
    dense_register(&bytes[HEADER_BYTES..], observation.register) < observation.rank
}

/// Adds an observation to a dense HyperLogLog. Returns false if that changes nothing. O(1).
pub fn observe_dense(bytes: &mut [u8], observation: Observation) -> bool {
    let is_change = changes_dense(bytes, observation);
    if is_change {
        set_dense_register(&mut bytes[HEADER_BYTES..], observation.register, observation.rank);
    }
    is_change
}

/// Adds an observation. Returns false if that changes nothing. A sparse HyperLogLog that would exceed
/// `sparse_bytes_max` becomes dense. O(bytes), in a dense one O(1).
///
/// # Errors
/// Returns [`Corrupt`] if the registers are invalid; they may have changed.
pub fn observe(
    bytes: &mut Vec<u8>,
    observation: Observation,
    sparse_bytes_max: usize,
) -> Result<bool, Corrupt> {
    if encoding(bytes) == Some(Encoding::Dense) {
        return Ok(observe_dense(bytes, observation));
    }
    match sparse::observe(bytes, HEADER_BYTES, observation, sparse_bytes_max)? {
        sparse::Outcome::Unchanged => Ok(false),
        sparse::Outcome::Changed => Ok(true),
        sparse::Outcome::DoesNotFit => {
            convert_to_dense(bytes)?;
            Ok(observe_dense(bytes, observation))
        }
    }
}

/// Converts a HyperLogLog to the dense form. Returns false if it is dense already. O(registers).
///
/// # Errors
/// Returns [`Corrupt`] if the registers are invalid; they are then unchanged.
pub fn convert_to_dense(bytes: &mut Vec<u8>) -> Result<bool, Corrupt> {
    if encoding(bytes) == Some(Encoding::Dense) {
        return Ok(false);
    }
    let mut dense = vec![0; DENSE_BYTES];
    dense[..HEADER_BYTES].copy_from_slice(&bytes[..HEADER_BYTES]);
    dense[ENCODING_AT] = DENSE;
    each_run(bytes, |first, len, value| {
        (first..first + len).for_each(|index| set_dense_register(&mut dense[HEADER_BYTES..], index, value));
    })?;
    *bytes = dense;
    Ok(true)
}

/// Calls `each` with the first index, the length and the value of each run of registers; runs of zeros may be omitted.
fn each_run(bytes: &[u8], mut each: impl FnMut(usize, usize, u8)) -> Result<(), Corrupt> {
    let registers = &bytes[HEADER_BYTES..];
    if encoding(bytes) == Some(Encoding::Dense) {
        (0..REGISTERS).for_each(|index| each(index, 1, dense_register(registers, index)));
        return Ok(());
    }
    let mut first = 0;
    for opcode in Opcodes::new(registers) {
        let opcode = opcode?;
        let len = opcode.len();
        if first + len > REGISTERS {
            return Err(Corrupt);
        }
        if let Opcode::Value { value, len } = opcode {
            each(first, len, value);
        }
        first += len;
    }
    if first == REGISTERS { Ok(()) } else { Err(Corrupt) }
}

/// Returns the runs of a sparse HyperLogLog's registers.
pub fn opcodes(bytes: &[u8]) -> Opcodes<'_> {
    Opcodes::new(&bytes[HEADER_BYTES..])
}

/// Returns the estimated number of distinct elements added. O(registers).
///
/// # Errors
/// Returns [`Corrupt`] if the registers are invalid.
pub fn estimate(bytes: &[u8]) -> Result<u64, Corrupt> {
    let mut histogram = Histogram::default();
    each_run(bytes, |_, len, value| histogram.add(value, len))?;
    Ok(histogram.estimate())
}

/// The greatest value of each register over several HyperLogLogs: the registers of their union.
pub struct Union(Box<[u8; REGISTERS]>);

impl Default for Union {
    fn default() -> Union {
        Union(Box::new([0; REGISTERS]))
    }
}

impl Union {
    /// Adds a HyperLogLog. O(registers).
    ///
    /// # Errors
    /// Returns [`Corrupt`] if its registers are invalid.
    pub fn add(&mut self, bytes: &[u8]) -> Result<(), Corrupt> {
        each_run(bytes, |first, len, value| {
            self.0[first..first + len].iter_mut().for_each(|register| *register = value.max(*register));
        })
    }

    /// Returns the estimated number of distinct elements of the union. O(registers).
    pub fn estimate(&self) -> u64 {
        let mut histogram = Histogram::default();
        self.0.iter().for_each(|&value| histogram.add(value, 1));
        histogram.estimate()
    }

    /// Returns the values of the registers, in order.
    pub fn registers(&self) -> &[u8] {
        &*self.0
    }

    /// Returns the registers that are not zero, each as the observation that sets it.
    pub fn observations(&self) -> impl Iterator<Item = Observation> {
        let all = self.0.iter().enumerate();
        all.filter(|&(_, &rank)| rank != 0).map(|(register, &rank)| Observation { register, rank })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dense_registers_do_not_overlap() {
        let mut bytes = empty();
        convert_to_dense(&mut bytes).expect("it is well-formed");
        assert_eq!(bytes.len(), 12304);
        for index in 0..REGISTERS {
            set_dense_register(&mut bytes[HEADER_BYTES..], index, (index % 64) as u8);
        }
        for index in 0..REGISTERS {
            assert_eq!(dense_register(&bytes[HEADER_BYTES..], index), (index % 64) as u8);
        }
    }

    #[test]
    fn sparse_and_dense_estimates_are_equal() {
        let (mut sparse, mut dense) = (empty(), empty());
        convert_to_dense(&mut dense).expect("it is well-formed");
        for number in 0..3000 {
            let observation = Observation::of(format!("element {number}").as_bytes());
            let is_change = observe(&mut sparse, observation, 1 << 20);
            assert_eq!(is_change, Ok(observe_dense(&mut dense, observation)), "{number}");
        }
        assert_eq!(encoding(&sparse), Some(Encoding::Sparse));
        assert_eq!(estimate(&sparse), estimate(&dense));
        convert_to_dense(&mut sparse).expect("it is well-formed");
        assert!(sparse[HEADER_BYTES..] == dense[HEADER_BYTES..]);
    }

    #[test]
    fn arbitrary_registers_cause_no_panic() {
        let mut random = crate::algorithms::random::Random::seeded(5);
        for round in 0..20_000 {
            let mut bytes = empty();
            bytes.truncate(HEADER_BYTES);
            (0..random.below(40)).for_each(|_| bytes.push(random.next_u32() as u8));
            if round % 2 == 0 {
                // Nearly valid bytes: the lengths of the runs often add up.
                bytes.truncate(HEADER_BYTES + random.below(6));
                sparse::push_zeros(&mut bytes, 16_000 + random.below(400));
            }
            let observation =
                Observation { register: random.below(REGISTERS), rank: 1 + random.below(51) as u8 };
            let is_corrupt = estimate(&bytes).is_err();
            assert_eq!(Union::default().add(&bytes).is_err(), is_corrupt);
            assert_eq!(convert_to_dense(&mut bytes.clone()).is_err(), is_corrupt);
            let observed = observe(&mut bytes, observation, 3000);
            assert!(is_corrupt || observed.is_ok());
            assert!(is_corrupt || estimate(&bytes).is_ok());
        }
    }

    #[test]
    fn only_whole_headers_are_hyperloglogs() {
        let bytes = empty();
        assert_eq!(encoding(&bytes), Some(Encoding::Sparse));
        assert_eq!(encoding(&bytes[..HEADER_BYTES]), Some(Encoding::Sparse));
        assert_eq!(encoding(&bytes[..HEADER_BYTES - 1]), None);
        for (at, byte) in [(0, b'h'), (ENCODING_AT, 2), (ENCODING_AT, DENSE)] {
            let mut other = bytes.clone();
            other[at] = byte;
            assert_eq!(encoding(&other), None);
        }
    }

    #[test]
    fn a_cached_estimate_is_valid_until_it_is_discarded() {
        let mut bytes = empty();
        assert_eq!(kept_estimate(&bytes), Some(0));
        keep_estimate(&mut bytes, 300);
        assert_eq!(kept_estimate(&bytes), Some(300));
        forget_estimate(&mut bytes);
        assert_eq!(kept_estimate(&bytes), None);
    }
}
