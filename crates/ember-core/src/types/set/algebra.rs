//! Unions, intersections and differences of sets.
//!
//! Each has two forms. For replies, members are visited one by one and copied only as far as finding duplicates
//! requires. For stored results, a set is built by adding the members in the same order as Redis 7.2, because that
//! determines the encoding.

use std::ops::ControlFlow;

use ember_protocol::number::parse_i64;

use super::{Element, Set};
use crate::entries::entry::NewValue;
use crate::types::collection::Collection;
use crate::types::elements::Elements;
use crate::types::intset::Intset;
use crate::types::limits::EncodingLimits;
use crate::types::listpack::Listpack;

/// Calls `visit` for every member that all `sets` contain, until it breaks, in the order of the smallest set; sorts
/// `sets` by size. O(N*M), N being the members of the smallest set and M the sets.
pub fn for_each_in_all(sets: &mut [&Set], mut visit: impl FnMut(Element<'_>) -> ControlFlow<()>) {
    sets.sort_by_key(|set| set.len());
    let Some((&smallest, others)) = sets.split_first() else { return };
    let _ = smallest.try_for_each_batch(|members| {
        if let Some(first) = others.first() {
            first.fetch_ahead(members);
        }
        members.iter().try_for_each(|&member| {
            let is_in = |&other: &&Set| std::ptr::eq(other, smallest) || other.contains_element(member);
            if others.iter().all(is_in) { visit(member) } else { ControlFlow::Continue(()) }
        })
    });
}

/// Returns the set of the members that all `sets` contain; see [`for_each_in_all`].
pub fn intersection(sets: &mut [&Set], limits: &EncodingLimits) -> Set {
    let mut integers_only = true;
    let mut result = match sets.iter().min_by_key(|set| set.len()) {
        Some(Set::Listpack(_) | Set::Table(_)) => Set::Listpack(Listpack::new()),
        _ => Set::default(),
    };
    for_each_in_all(sets, |member| {
        integers_only = integers_only && integer_in(member).is_some();
        result.insert_element(member, limits);
        ControlFlow::Continue(())
    });
    if integers_only && result.len() <= limits.set_max_intset_entries {
        result = intset_of(&result);
    }
    result
}

fn integer_in(member: Element<'_>) -> Option<i64> {
    match member {
        Element::Integer(number) => Some(number),
        Element::Bytes(bytes) => parse_i64(bytes),
    }
}

/// Returns an intset with the members of a set of integers.
fn intset_of(set: &Set) -> Set {
    let mut numbers = Vec::new();
    set.for_each(|member| numbers.extend(integer_in(member)));
    numbers.sort_unstable();
    let mut intset = Intset::new();
    for number in numbers {
        intset.insert(number);
    }
    Set::Intset(intset)
}

/// Like [`Set::try_for_each_batch`], for all members.
fn for_each_batch(set: &Set, mut visit: impl FnMut(&[Element<'_>])) {
    let _ = set.try_for_each_batch(|members| {
        visit(members);
        ControlFlow::Continue(())
    });
}

fn are_intsets(sets: &[&Set]) -> bool {
    sets.iter().all(|set| matches!(set, Set::Intset(_)))
}

/// Calls `visit` for every member that at least one of `sets` contains, in ascending order if all sets are intsets.
/// O(N) for N members in total; all members except those of the largest and the last set are copied.
pub fn for_each_in_any(sets: &[&Set], limits: &EncodingLimits, mut visit: impl FnMut(Element<'_>)) {
    if sets.len() > 1 && are_intsets(sets) {
        return union(sets, limits).for_each(visit);
    }
    let Some(largest) = sets.iter().copied().max_by_key(|set| set.len()) else { return };
    largest.for_each(&mut visit);
    let mut seen = Elements::new();
    let others: Vec<&Set> = sets.iter().copied().filter(|set| !std::ptr::eq(*set, largest)).collect();
    for (index, set) in others.iter().enumerate() {
        let is_last = index + 1 == others.len();
        for_each_batch(set, |members| {
            largest.fetch_ahead(members);
            for &member in members {
                let mut digits = itoa::Buffer::new();
                let bytes = member.bytes(&mut digits);
                let mut is_unseen = || {
                    if is_last {
                        !seen.contains(bytes)
                    } else {
                        seen.insert(bytes, NewValue::Bytes(b""), None)
                    }
                };
                if !largest.contains_element(member) && is_unseen() {
                    visit(member);
                }
            }
        });
    }
}

/// Returns the set of the members that at least one of `sets` contains. O(N) for N members in total.
pub fn union(sets: &[&Set], limits: &EncodingLimits) -> Set {
    let mut result = Set::default();
    for set in sets {
        for_each_batch(set, |members| {
            result.fetch_ahead(members);
            for &member in members {
                result.insert_element(member, limits);
            }
        });
    }
    result
}

/// The cheaper way to compute a difference.
enum DifferenceWay {
    /// The first set is also one of the others: the difference is empty.
    Nothing,
    /// Each member of the first set is looked up in the others.
    LookUp,
    /// The members of the other sets are removed from those of the first set.
    TakeAway,
}

impl DifferenceWay {
    /// Chooses the way as Redis does: look-ups are cheaper and may end early, so they count half.
    fn choose(first: &Set, others: &[&Set]) -> DifferenceWay {
        if others.iter().any(|other| std::ptr::eq(*other, first)) {
            return DifferenceWay::Nothing;
        }
        let look_ups = first.len().saturating_mul(others.len() + 1) / 2;
        let members = first.len() + others.iter().map(|other| other.len()).sum::<usize>();
        if look_ups <= members { DifferenceWay::LookUp } else { DifferenceWay::TakeAway }
    }
}

/// Calls `visit` for every member of `first` that none of `others` contains, in the order of `first`. O(N) for N
/// members in total, or O(N*M) for N members of the first of M sets if that is less.
pub fn for_each_difference(first: &Set, others: &mut [&Set], mut visit: impl FnMut(Element<'_>)) {
    match DifferenceWay::choose(first, others) {
        DifferenceWay::Nothing => {}
        DifferenceWay::LookUp => {
            // The larger a set, the sooner a member is found.
            others.sort_by_key(|other| std::cmp::Reverse(other.len()));
            for_each_batch(first, |members| {
                if let Some(largest) = others.first() {
                    largest.fetch_ahead(members);
                }
                for &member in members {
                    if !others.iter().any(|other| other.contains_element(member)) {
                        visit(member);
                    }
                }
            });
        }
        DifferenceWay::TakeAway => {
            let mut taken = Elements::new();
            for other in others {
                other.for_each(|member| {
                    let mut digits = itoa::Buffer::new();
                    taken.insert(member.bytes(&mut digits), NewValue::Bytes(b""), None);
                });
            }
            first.for_each(|member| {
                if !taken.contains(member.bytes(&mut itoa::Buffer::new())) {
                    visit(member);
                }
            });
        }
    }
}

/// Returns the set of the members of `first` that none of `others` contains; same cost as [`for_each_difference`].
pub fn difference(first: &Set, others: &mut [&Set], limits: &EncodingLimits) -> Set {
    let mut result = Set::default();
    if !matches!(DifferenceWay::choose(first, others), DifferenceWay::TakeAway) {
        for_each_difference(first, others, |member| {
            result.insert_element(member, limits);
        });
        return result;
    }
    first.for_each(|member| {
        result.insert_element(member, limits);
    });
    for other in others {
        let _ = other.try_for_each(|member| {
            result.remove_element(member);
            if result.is_empty() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
    }
    result
}
