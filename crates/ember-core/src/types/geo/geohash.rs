//! Geohashes: alternating bits of longitude and latitude, as defined by G. Niemeyer's geohash.org.
//!
//! A [`Cell`] of `step` bits for each axis is one of the 4^step rectangles that the ranges are divided into. Scores are
//! cells of 26 bits for each axis: 52 bits, which a double holds exactly.

use super::Position;

/// The number of bits per axis of a score.
pub const STEP_MAX: u32 = 26;

/// An interval in degrees.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The lower end.
    pub min: f64,
    /// The upper end.
    pub max: f64,
}

/// All longitudes.
pub const LONGITUDE: Interval = Interval { min: -180.0, max: 180.0 };

/// The latitudes of the square that the Mercator projection (EPSG:900913) shows; the poles are outside of it.
pub const LATITUDE: Interval = Interval { min: -85.051_128_78, max: 85.051_128_78 };

/// The latitudes of a geohash as defined by geohash.org.
const LATITUDE_STANDARD: Interval = Interval { min: -90.0, max: 90.0 };

/// A mask of every second bit: the bits of the latitude. The others are the bits of the longitude.
const LATITUDE_BITS: u64 = 0x5555_5555_5555_5555;
const LONGITUDE_BITS: u64 = !LATITUDE_BITS;

/// The digits of a geohash as text: those of geohash.org.
const ALPHABET: &[u8; 32] = b"0123456789bcdefghjkmnpqrstuvwxyz";

/// The number of characters of a geohash as text. The last one is always `0`: 52 bits are enough for ten characters.
pub const TEXT_LEN: usize = 11;

impl Interval {
    /// Returns the position of `value` in the interval, in parts of 2^-step.
    fn part(self, value: f64, step: u32) -> u32 {
        let offset = (value - self.min) / (self.max - self.min);
        (offset * (1u64 << step) as f64) as u32
    }

    /// Returns the part with number `part` when the interval is divided into 2^`step` equal parts.
    fn of_part(self, part: u32, step: u32) -> Interval {
        let scale = self.max - self.min;
        let parts = (1u64 << step) as f64;
        Interval {
            min: self.min + f64::from(part) / parts * scale,
            max: self.min + f64::from(part.wrapping_add(1)) / parts * scale,
        }
    }

    fn middle(self) -> f64 {
        (self.min + self.max) / 2.0
    }
}

/// Spreads the bits of `number` to the even bit positions.
fn spread(number: u32) -> u64 {
    const STEPS: [(u32, u64); 5] = [
        (16, 0x0000_FFFF_0000_FFFF),
        (8, 0x00FF_00FF_00FF_00FF),
        (4, 0x0F0F_0F0F_0F0F_0F0F),
        (2, 0x3333_3333_3333_3333),
        (1, LATITUDE_BITS),
    ];
    STEPS.iter().fold(u64::from(number), |bits, (shift, mask)| (bits | bits << shift) & mask)
}

/// Gathers the bits at the even bit positions.
fn gather(bits: u64) -> u32 {
    const STEPS: [(u32, u64); 5] = [
        (1, 0x3333_3333_3333_3333),
        (2, 0x0F0F_0F0F_0F0F_0F0F),
        (4, 0x00FF_00FF_00FF_00FF),
        (8, 0x0000_FFFF_0000_FFFF),
        (16, 0x0000_0000_FFFF_FFFF),
    ];
    STEPS.iter().fold(bits & LATITUDE_BITS, |bits, (shift, mask)| (bits | bits >> shift) & mask) as u32
}

/// One rectangle of a division of the earth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    bits: u64,
    step: u32,
}

/// The rectangle of a cell in degrees.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CellBounds {
    /// The longitudes of the cell, from west to east.
    pub longitude: Interval,
    /// The latitudes of the cell, from south to north.
    pub latitude: Interval,
}

impl Cell {
    /// Returns the cell of 2·`step` bits that contains `position`, which must be valid.
    pub fn around(position: Position, step: u32) -> Cell {
        Cell::in_ranges(position, step, LATITUDE)
    }

    fn in_ranges(position: Position, step: u32, latitude: Interval) -> Cell {
        let latitude = latitude.part(position.latitude, step);
        let longitude = LONGITUDE.part(position.longitude, step);
        Cell { bits: spread(latitude) | spread(longitude) << 1, step }
    }

    /// Returns the rectangle of the cell.
    pub fn bounds(self) -> CellBounds {
        CellBounds {
            longitude: LONGITUDE.of_part(gather(self.bits >> 1), self.step),
            latitude: LATITUDE.of_part(gather(self.bits), self.step),
        }
    }

    /// Returns the adjacent cell: `east` and `north` are -1, 0 or 1. The neighbor of a cell at an edge of the map is at
    /// the opposite edge.
    pub fn neighbor(self, east: i32, north: i32) -> Cell {
        let unused = 64 - self.step * 2;
        let moved = |bits: u64, own: u64, other: u64, by: i32| {
            let (own_bits, other_bits) = (bits & own, bits & other);
            // The other axis's bits are set, so that a carry passes through them.
            let filler = other >> unused;
            let moved = match by {
                0 => own_bits,
                1.. => own_bits.wrapping_add(filler + 1),
                _ => (own_bits | filler).wrapping_sub(filler + 1),
            };
            let moved = if by == 0 { moved } else { moved & own >> unused };
            moved | other_bits
        };
        let bits = moved(self.bits, LONGITUDE_BITS, LATITUDE_BITS, east);
        Cell { bits: moved(bits, LATITUDE_BITS, LONGITUDE_BITS, north), step: self.step }
    }

    /// Returns the range of scores of the places in the cell, the end of the range excluded.
    pub fn scores(self) -> (f64, f64) {
        let shift = 2 * (STEP_MAX - self.step);
        ((self.bits << shift) as f64, ((self.bits + 1) << shift) as f64)
    }
}

/// Returns the score of a valid position.
pub fn score(position: Position) -> f64 {
    Cell::around(position, STEP_MAX).bits as f64
}

/// Returns the bits of a score. Every number is converted, as by C on the processors that Redis runs on: fractions are
/// cut off, negative numbers wrap.
pub fn bits_of_score(score: f64) -> u64 {
    const HALF: f64 = 9_223_372_036_854_775_808.0;
    if score < HALF {
        score as i64 as u64
    } else if score < 2.0 * HALF {
        score as u64
    } else {
        0
    }
}

/// Returns the position that a score represents: the middle of its cell.
pub fn position(score: f64) -> Position {
    let bounds = Cell { bits: bits_of_score(score), step: STEP_MAX }.bounds();
    Position {
        longitude: bounds.longitude.middle().clamp(LONGITUDE.min, LONGITUDE.max),
        latitude: bounds.latitude.middle().clamp(LATITUDE.min, LATITUDE.max),
    }
}

/// Returns the geohash of a position as text.
pub fn text(position: Position) -> [u8; TEXT_LEN] {
    let bits = Cell::in_ranges(position, STEP_MAX, LATITUDE_STANDARD).bits;
    let mut text = [ALPHABET[0]; TEXT_LEN];
    for (index, digit) in text[..TEXT_LEN - 1].iter_mut().enumerate() {
        let shift = 2 * STEP_MAX as usize - (index + 1) * 5;
        *digit = ALPHABET[(bits >> shift) as usize & 31];
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(longitude: f64, latitude: f64) -> Position {
        Position { longitude, latitude }
    }

    #[test]
    fn spread_bits_can_be_gathered_again() {
        for number in [0, 1, 2, 0x03FF_FFFF, 0x1234_5678, u32::MAX] {
            let bits = spread(number);
            assert_eq!(bits & LONGITUDE_BITS, 0);
            assert_eq!((gather(bits), gather(bits | LONGITUDE_BITS)), (number, number));
        }
        assert_eq!(spread(0b1011), 0b1000101);
    }

    #[test]
    fn known_places_have_their_known_geohashes() {
        let palermo = at(13.361389, 38.115556);
        assert_eq!(score(palermo), 3_479_099_956_230_698.0);
        assert_eq!(&text(position(score(palermo))), b"sqc8b49rny0");
        let back = position(score(palermo));
        assert!((back.longitude - 13.361389).abs() < 1e-5 && (back.latitude - 38.115556).abs() < 1e-5);
    }

    #[test]
    fn neighbor_cells_are_adjacent() {
        for step in [1, 2, 5, 26] {
            let cell = Cell::around(at(10.0, 20.0), step);
            let bounds = cell.bounds();
            let near = |a: f64, b: f64| (a - b).abs() < 1e-9;
            assert!(near(cell.neighbor(0, 1).bounds().latitude.min, bounds.latitude.max) || step == 1);
            assert!(near(cell.neighbor(0, -1).bounds().latitude.max, bounds.latitude.min));
            assert!(near(cell.neighbor(-1, 0).bounds().longitude.max, bounds.longitude.min));
            assert_eq!(cell.neighbor(1, 1).neighbor(-1, 0), cell.neighbor(0, 1));
            assert_eq!(cell.neighbor(1, 0).neighbor(-1, 0), cell);
            assert_eq!(cell.neighbor(0, 1).neighbor(0, -1), cell);
            assert_eq!(cell.neighbor(0, 0), cell);
        }
        // The last cell before the 180th meridian, and the first one after it.
        let last = Cell::around(at(179.999, 0.0), 10);
        assert_eq!(last.neighbor(1, 0), Cell::around(at(-179.999, 0.0), 10));
    }

    #[test]
    fn a_cell_covers_the_scores_of_its_places() {
        let place = at(-73.9, 40.7);
        for step in 1..=STEP_MAX {
            let (first, end) = Cell::around(place, step).scores();
            assert!((first..end).contains(&score(place)), "{step}");
        }
    }

    #[test]
    fn every_score_converts_to_bits() {
        for (score, bits) in [
            (1.9, 1),
            (-1.0, u64::MAX),
            (f64::NEG_INFINITY, 1 << 63),
            (f64::INFINITY, 0),
            (9_223_372_036_854_775_808.0, 1 << 63),
            (1e300, 0),
        ] {
            assert_eq!(bits_of_score(score), bits, "{score}");
            assert!(position(score).is_valid(), "{score}");
        }
    }
}
