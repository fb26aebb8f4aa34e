//! The results of recently used filters for elements, so that attributes are not read again.
//!
//! Each thread that searches stores two bits per element and filter: whether the element was examined, and whether it
//! matched. The bits are valid as long as the chunk of the element has the version that it had when the element was
//! examined ([`Elements::version`]): no two states of any chunks have the same version. The memory of these results is
//! limited per thread; it is not part of a set and is not counted as a set's memory.

use std::cell::RefCell;

use super::elements::{CHUNK_ELEMENTS, Elements};
use super::filter::{Filter, Work};

/// The maximum number of filters whose results a thread stores, and the maximum size of these results in bytes.
const FILTERS_MAX: usize = 8;
const BYTES_MAX: usize = 4 << 20;

/// The maximum number of elements that one search examines in addition to those it needs, so that the results of all
/// elements become known.
const ASKED_AHEAD: usize = 4096;

const WORDS: usize = CHUNK_ELEMENTS / 64;

thread_local! {
    /// The stored results of filters; those of the most recently used filter are last.
    static KEPT: RefCell<Vec<Verdicts>> = const { RefCell::new(Vec::new()) };
}

/// The known results of a filter for the elements of a set.
#[derive(Debug)]
pub(super) struct Verdicts {
    set: u64,
    filter: Filter,
    /// The results by chunk of elements; empty while the filter has been used only once.
    chunks: Vec<Chunk>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Chunk {
    version: u64,
    asked: [u64; WORDS],
    matched: [u64; WORDS],
}

/// Runs a search with the known results of a filter for the set with number `set`.
pub(super) fn with<R>(
    set: u64,
    filter: &Filter,
    elements: &Elements,
    search: impl FnOnce(&mut Verdicts) -> R,
) -> R {
    let mut verdicts = KEPT.with_borrow_mut(|kept| {
        let at = kept.iter().position(|verdicts| verdicts.set == set && verdicts.filter.is_same(filter));
        match at {
            Some(at) => {
                let mut verdicts = kept.remove(at);
                // Results are recorded from a filter's second use on; after a single use, only the filter itself is
                // stored.
                verdicts.chunks.resize(elements.chunks(), Chunk::default());
                verdicts
            }
            None => Verdicts { set, filter: filter.clone(), chunks: Vec::new() },
        }
    });
    let result = search(&mut verdicts);
    KEPT.with_borrow_mut(|kept| {
        kept.push(verdicts);
        let mut bytes: usize = kept.iter().map(Verdicts::bytes).sum();
        while kept.len() > FILTERS_MAX || bytes > BYTES_MAX {
            bytes -= kept.remove(0).bytes();
        }
    });
    result
}

impl Verdicts {
    fn bytes(&self) -> usize {
        self.chunks.capacity() * size_of::<Chunk>() + self.filter.bytes()
    }

    /// Returns whether an element matches. If the work would exceed its limit, `work` is exhausted and nothing is
    /// recorded.
    pub(super) fn matches(&mut self, elements: &Elements, slot: u32, work: &mut Work) -> bool {
        let mut matches = |filter: &Filter| {
            let Some(attributes) = elements.at(slot).attributes() else { return Some(false) };
            if !work.allows(attributes.len()) {
                work.exhaust();
                return None;
            }
            Some(filter.matches_counting(attributes, work))
        };
        let (at, place) = (slot as usize / CHUNK_ELEMENTS, slot as usize % CHUNK_ELEMENTS);
        let Some(chunk) = self.chunks.get_mut(at) else { return matches(&self.filter).unwrap_or(false) };
        let version = elements.version(at);
        if chunk.version != version {
            *chunk = Chunk { version, ..Chunk::default() };
        }
        let (word, bit) = (place / 64, 1 << (place % 64));
        if chunk.asked[word] & bit == 0 {
            let Some(is_match) = matches(&self.filter) else { return false };
            chunk.asked[word] |= bit;
            chunk.matched[word] |= if is_match { bit } else { 0 };
        }
        chunk.matched[word] & bit != 0
    }

    /// Returns whether the results of all elements are known, and at most `most` match. Examines a limited number of
    /// elements to complete the results. O(n / 64).
    pub(super) fn are_known(&mut self, elements: &Elements, most: usize, work: &mut Work) -> bool {
        if self.chunks.is_empty() {
            return false;
        }
        let (mut count, mut asked) = (0, 0);
        for at in 0..elements.chunks() {
            let slots = at * CHUNK_ELEMENTS..((at + 1) * CHUNK_ELEMENTS).min(elements.slots());
            let chunk = &self.chunks[at];
            let known: u32 = chunk.asked.iter().map(|word| word.count_ones()).sum();
            if chunk.version != elements.version(at) || (known as usize) < slots.len() {
                asked += slots.len();
                if asked > ASKED_AHEAD {
                    return false;
                }
                slots.for_each(|slot| _ = self.matches(elements, slot as u32, work));
                if work.is_exhausted() {
                    return false;
                }
            }
            count += self.chunks[at].matched.iter().map(|word| word.count_ones() as usize).sum::<usize>();
            if count > most {
                return false;
            }
        }
        true
    }

    /// Returns the elements that match, if all [are known](Verdicts::are_known).
    pub(super) fn matching(&self) -> impl Iterator<Item = u32> + Clone + '_ {
        let words = self.chunks.iter().flat_map(|chunk| chunk.matched);
        words.enumerate().flat_map(|(at, word)| {
            let bits = std::iter::successors(Some(word), |word| Some(word & word.wrapping_sub(1)));
            bits.take_while(|&word| word != 0).map(move |word| at as u32 * 64 + word.trailing_zeros())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithms::random::Random;

    #[test]
    fn verdicts_match_the_attributes_after_any_changes() {
        let mut random = Random::seeded(3);
        let filter = Filter::compile(b".a < 3").unwrap();
        // Two states of one set, with the same number, that are changed independently.
        let mut states = vec![Elements::default()];
        let mut known = 0;
        for step in 0..6000_u32 {
            let at = random.below(states.len());
            let elements = &mut states[at];
            let attributes = format!("{{\"a\":{}}}", random.below(6));
            let attributes = (random.below(4) > 0).then_some(attributes.as_bytes());
            let slot = random.below(elements.slots().max(1)) as u32;
            match random.below(4) {
                0 | 1 if elements.slots() < 3000 => elements.push(&step.to_be_bytes(), attributes),
                2 if elements.slots() > 0 => {
                    elements.take_out(slot);
                    elements.free(slot);
                }
                _ if elements.slots() > 0 => _ = elements.set_attributes(slot, attributes),
                _ => {}
            }
            if step == 3000 {
                states.push(states[0].clone());
            }
            let at = random.below(states.len());
            let elements = &states[at];
            let matches = |slot: &u32| {
                elements.at(*slot).attributes().is_some_and(|attributes| filter.matches(attributes))
            };
            let mut work = Work::within(usize::MAX);
            with(7, &filter, elements, |verdicts| {
                if elements.slots() > 0 {
                    let slot = random.below(elements.slots()) as u32;
                    assert_eq!(verdicts.matches(elements, slot, &mut work), matches(&slot));
                }
                if step % 16 == 0 {
                    let expected: Vec<u32> = (0..elements.slots() as u32).filter(matches).collect();
                    if verdicts.are_known(elements, expected.len(), &mut work) {
                        known += 1;
                        assert!(verdicts.matching().eq(expected.iter().copied()));
                        assert!(
                            expected.is_empty()
                                || !verdicts.are_known(elements, expected.len() - 1, &mut work)
                        );
                    }
                }
            });
        }
        assert!(known > 300, "{known}");
    }

    #[test]
    fn the_number_of_verdicts_is_bounded_and_the_latest_stay() {
        let mut elements = Elements::default();
        (0..2000_u32).for_each(|number| elements.push(&number.to_be_bytes(), Some(b"{\"a\":1}")));
        let mut are_known = Vec::new();
        for number in 0..3 * FILTERS_MAX {
            let filter = Filter::compile(format!(".a == {}", number % (FILTERS_MAX + 1)).as_bytes()).unwrap();
            for _ in 0..2 {
                with(1, &filter, &elements, |verdicts| {
                    let mut work = Work::within(usize::MAX);
                    are_known.push(verdicts.are_known(&elements, elements.len(), &mut work));
                });
            }
        }
        // Each filter was removed before its next turn, but not between the two uses of one turn.
        assert!(are_known.chunks(2).all(|pair| pair == [false, true]), "{are_known:?}");
        KEPT.with_borrow(|kept| assert_eq!(kept.len(), FILTERS_MAX));
    }
}
