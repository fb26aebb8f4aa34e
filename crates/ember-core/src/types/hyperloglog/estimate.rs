//! The estimate, computed from how often each value occurs among the registers.
//!
//! Source: O. Ertl, "New cardinality estimation algorithms for HyperLogLog sketches", arXiv:1702.01284, algorithm 6.
//! The order of the operations is Redis's, so that the last digit is the same too.

use super::{RANK_BITS, REGISTERS};

/// The constant factor of the estimate: `1 / (2 ln 2)`.
const ALPHA: f64 = 0.721_347_520_444_481_7;

/// The number of registers with each value.
#[derive(Clone, Debug)]
pub struct Histogram {
    /// The number of registers with each value; a register has six bits.
    counts: [u32; 64],
    /// The number of added registers that are not zero.
    not_zero: usize,
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram { counts: [0; 64], not_zero: 0 }
    }
}

impl Histogram {
    /// Adds `len` registers with a value. Registers never added count as zero.
    pub fn add(&mut self, value: u8, len: usize) {
        if value != 0 {
            self.counts[usize::from(value)] += len as u32;
            self.not_zero += len;
        }
    }

    /// Returns the estimated number of distinct elements.
    pub fn estimate(&self) -> u64 {
        let registers = REGISTERS as f64;
        let rank_bits = RANK_BITS as usize;
        let full = f64::from(self.counts[rank_bits + 1]);
        let mut sum = registers * tau((registers - full) / registers);
        for value in (1..=rank_bits).rev() {
            sum += f64::from(self.counts[value]);
            sum *= 0.5;
        }
        let zero = REGISTERS.saturating_sub(self.not_zero) as f64;
        sum += registers * sigma(zero / registers);
        (ALPHA * registers * registers / sum).round() as u64
    }
}

fn sigma(mut x: f64) -> f64 {
    if x == 1.0 {
        return f64::INFINITY;
    }
    let (mut y, mut z) = (1.0, x);
    loop {
        x *= x;
        let before = z;
        z += x * y;
        y += y;
        if before == z {
            return z;
        }
    }
}

fn tau(mut x: f64) -> f64 {
    if x == 0.0 || x == 1.0 {
        return 0.0;
    }
    let (mut y, mut z) = (1.0, 1.0 - x);
    loop {
        x = x.sqrt();
        let before = z;
        y *= 0.5;
        z -= (1.0 - x).powi(2) * y;
        if before == z {
            return z / 3.0;
        }
    }
}
