//! Fields of a hash chosen at random. Expired fields must be removed first.

use std::collections::HashSet;

use super::{Field, Hash, View, packed};
use crate::algorithms::random::Random;
use crate::types::collection::Collection;

/// The minimum number of a table's fields per requested field for drawing them one by one. With fewer, drawing would
/// repeat the same fields too often, and all fields are read instead. Redis uses the same factor.
const FIELDS_PER_DRAW_MIN: usize = 3;

impl Hash {
    /// Returns a field chosen uniformly at random. Expected O(1), or O(fields) while they are packed.
    pub fn random(&self, random: &mut Random) -> Option<Field<'_>> {
        match self.view() {
            View::Table(table) => table.random(random),
            View::Packed(..) if self.is_empty() => None,
            View::Packed(list, stride) => {
                let at = packed::at_index(list, stride, random.below(self.len()));
                Some(packed::field(list, stride, at))
            }
        }
    }

    /// Calls `visit` with `count` fields, each drawn independently, until it returns false. The hash must not be empty.
    /// Expected O(count), plus O(fields) while they are packed.
    pub fn draw(&self, count: u64, random: &mut Random, mut visit: impl FnMut(Field<'_>) -> bool) {
        let mut draws = 0..count;
        match self.view() {
            View::Table(table) => {
                let _ = draws.all(|_| table.random(random).is_some_and(&mut visit));
            }
            View::Packed(list, stride) => {
                let all: Vec<Field<'_>> = packed::fields(list, stride).collect();
                let _ = draws.all(|_| visit(all[random.below(all.len())]));
            }
        }
    }

    /// Calls `visit` with `count` different fields, or all if there are fewer; every choice has the same probability.
    /// Expected O(count), or O(fields) while they are packed.
    pub fn draw_different(&self, count: usize, random: &mut Random, mut visit: impl FnMut(Field<'_>)) {
        match self.view() {
            View::Packed(list, stride) => {
                select(packed::fields(list, stride), self.len(), count, random, visit);
            }
            View::Table(table) if count.saturating_mul(FIELDS_PER_DRAW_MIN) > self.len() => {
                select(table.iter(), self.len(), count, random, visit);
            }
            View::Table(table) => {
                let mut drawn = HashSet::new();
                while drawn.len() < count
                    && let Some((place, field)) = table.random_place(random)
                {
                    if drawn.insert(place) {
                        visit(field);
                    }
                }
            }
        }
    }
}

/// Calls `visit` with `count` of the `len` fields (selection sampling: Knuth, TAOCP vol. 2, 3.4.2, algorithm S).
fn select<'a>(
    fields: impl Iterator<Item = Field<'a>>,
    len: usize,
    count: usize,
    random: &mut Random,
    mut visit: impl FnMut(Field<'a>),
) {
    let mut wanted = count.min(len);
    for (field, left) in fields.zip((1..=len).rev()) {
        if random.below(left) < wanted {
            wanted -= 1;
            visit(field);
        }
    }
}
