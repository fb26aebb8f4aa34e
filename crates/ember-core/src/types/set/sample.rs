//! Random members of a set.
//!
//! Different members are selected in one of two ways: few by drawing until there are enough, many by one pass over the
//! members that selects each with the probability `wanted / left` (Knuth, "The Art of Computer Programming", volume 2,
//! algorithm 3.4.2 S). Either way the work is proportional to the requested number.

use std::collections::HashSet;
use std::hash::Hash;

use super::{Element, Set};
use crate::algorithms::random::Random;
use crate::types::collection::Collection;
use crate::types::limits::EncodingLimits;
use crate::types::listpack::Listpack;

/// Different members are selected in one pass if at least one in this number of members is requested.
const PASS_SHARE: usize = 3;

/// The number of removed members per remaining one above which the set is rebuilt from the remaining members.
const KEEP_SHARE: usize = 5;

/// Selects `wanted` of `len` items in one pass, each with the same probability.
struct Selection {
    wanted: usize,
    left: usize,
}

impl Selection {
    fn takes(&mut self, random: &mut Random) -> bool {
        let takes = random.below(self.left) < self.wanted;
        self.left -= 1;
        self.wanted -= usize::from(takes);
        takes
    }
}

impl Set {
    /// Returns a member chosen uniformly at random. Expected O(1), O(N) in a listpack.
    pub fn random(&self, random: &mut Random) -> Option<Element<'_>> {
        match self {
            Set::Intset(intset) => intset.random(random).map(Element::Integer),
            Set::Listpack(listpack) => random_offset(listpack, random).map(|at| listpack.get(at)),
            Set::Table(elements) => elements.random(random).map(|entry| Element::Bytes(entry.key())),
        }
    }

    /// Calls `visit` for `count` members, each chosen independently, until it returns false. The set must not be empty.
    /// O(count + N) in a listpack, otherwise O(count).
    pub fn sample_with_repetition(
        &self,
        count: u64,
        random: &mut Random,
        mut visit: impl FnMut(Element<'_>) -> bool,
    ) {
        if let Set::Listpack(listpack) = self {
            let offsets = offsets(listpack);
            let _ = (0..count).all(|_| visit(listpack.get(offsets[random.below(offsets.len())])));
        } else {
            let _ = (0..count).all(|_| self.random(random).is_some_and(&mut visit));
        }
    }

    /// Calls `visit` for `count` different members, or for all if there are fewer. O(count), O(N) in a listpack.
    pub fn sample(&self, count: usize, random: &mut Random, mut visit: impl FnMut(Element<'_>)) {
        match self {
            _ if count >= self.len() => self.for_each(visit),
            Set::Intset(intset) if count < self.len() / PASS_SHARE => {
                different(
                    count,
                    || random.below(intset.len()),
                    |index| {
                        intset.get(index).map(Element::Integer).into_iter().for_each(&mut visit);
                    },
                );
            }
            Set::Table(elements) if count < self.len() / PASS_SHARE => {
                let draw = || elements.random_place(random).expect("there are more members than wanted");
                different(count, draw, |place| visit(Element::Bytes(elements.entry(place).key())));
            }
            _ => {
                let mut selection = Selection { wanted: count, left: self.len() };
                self.for_each(|member| {
                    if selection.takes(random) {
                        visit(member);
                    }
                });
            }
        }
    }

    /// Removes a member chosen uniformly at random, and calls `visit` with it. The set must not be empty. Expected
    /// O(1), O(N) in the compact encodings.
    pub fn pop_random(&mut self, random: &mut Random, visit: impl FnOnce(Element<'_>)) {
        match self {
            Set::Intset(intset) => {
                let number = intset.random(random).expect("the set is not empty");
                visit(Element::Integer(number));
                intset.remove(number);
            }
            Set::Listpack(listpack) => {
                let at = random_offset(listpack, random).expect("the set is not empty");
                visit(listpack.get(at));
                listpack.remove(at);
            }
            Set::Table(elements) => {
                let slot = elements.pop_random(random).expect("the set is not empty");
                visit(Element::Bytes(slot.entry().key()));
            }
        }
    }

    /// Removes `count` random members, which must be fewer than the set contains, and calls `visit` with each.
    /// O(count), O(N) in a listpack. If nearly all are removed, the rest becomes a new set, whose encoding may be more
    /// compact.
    pub fn pop_many(
        &mut self,
        count: usize,
        random: &mut Random,
        limits: &EncodingLimits,
        mut visit: impl FnMut(Element<'_>),
    ) {
        let kept_count = self.len() - count;
        if let Set::Listpack(listpack) = self {
            let mut selection = Selection { wanted: count, left: listpack.len() };
            listpack.retain(|member| {
                let takes = selection.takes(random);
                if takes {
                    visit(member);
                }
                !takes
            });
        } else if kept_count > count / KEEP_SHARE {
            for _ in 0..count {
                self.pop_random(random, &mut visit);
            }
        } else {
            let mut kept = match self {
                Set::Table(_) => Set::Listpack(Listpack::new()),
                _ => Set::default(),
            };
            for _ in 0..kept_count {
                self.pop_random(random, |member| {
                    kept.insert_element(member, limits);
                });
            }
            self.for_each(visit);
            *self = kept;
        }
    }
}

fn random_offset(listpack: &Listpack, random: &mut Random) -> Option<usize> {
    if listpack.is_empty() { None } else { listpack.at(random.below(listpack.len()) as isize) }
}

/// Returns the offsets of all elements.
fn offsets(listpack: &Listpack) -> Vec<usize> {
    std::iter::successors(listpack.first(), |&at| listpack.next(at)).collect()
}

/// Calls `visit` with `count` different results of `draw`.
fn different<T: Eq + Hash + Copy>(count: usize, mut draw: impl FnMut() -> T, mut visit: impl FnMut(T)) {
    let mut seen = HashSet::new();
    while seen.len() < count {
        let drawn = draw();
        if seen.insert(drawn) {
            visit(drawn);
        }
    }
}
