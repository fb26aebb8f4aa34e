//! The fields of a large hash: a hash table, and an index of expiries.
//!
//! # Invariants
//!
//! * `volatile` counts the fields with an expiry.
//! * For each of these fields `due` has an element with its position and its expiry or an earlier time: when that time
//!   comes, or the element is checked, another element is added for the field. Without such fields `due` is empty.
//! * The clock of a field's entry is the round of checks in which an element was last added for the field.

use std::sync::Arc;

use super::due::DueTimes;
use super::field::{Field, NewExpiry, NewField};
use crate::algorithms::random::Random;
use crate::effects::journal::Names;
use crate::entries::entry::{EntryRef, NewValue};
use crate::memory::moving::Mover;
use crate::memory::size_class;
use crate::types::elements::{Elements, Place};
use crate::types::value::StringValue;

/// The number of elements checked per change of an expiry: enough to finish a round long before there are too many
/// elements again.
const CHECKS_PER_CHANGE: usize = 4;

/// The fields of a large hash.
#[derive(Clone, Default)]
pub(super) struct Table {
    fields: Elements,
    due: DueTimes,
    volatile: usize,
}

fn field(entry: EntryRef<'_>) -> Field<'_> {
    Field {
        name: StringValue::Inline(entry.key()),
        value: entry.string(),
        expire_at_ms: entry.expire_at_ms(),
    }
}

/// Returns a new field's value in the form in which a table stores it.
#[inline]
fn stored<'a>(new: &NewField<'a>) -> NewValue<'a> {
    match new.shared {
        Some(shared) => NewValue::Large(Arc::clone(shared)),
        None => NewValue::from_bytes(new.value),
    }
}

impl Table {
    pub(super) fn len(&self) -> usize {
        self.fields.len()
    }

    /// Returns the bytes of memory taken, including this struct's allocation.
    pub(super) fn memory_bytes(&self) -> usize {
        size_class(size_of::<Table>()) + self.fields.memory_bytes() + self.due.memory_bytes()
    }

    /// Returns the field `name`, expired or not. O(1).
    #[inline]
    pub(super) fn get(&self, name: &[u8]) -> Option<Field<'_>> {
        self.fields.get(name).map(field)
    }

    /// Moves fields to other allocations; the index of their expiries stays in place.
    pub(super) fn move_inside(&mut self, from: u64, most: usize, mover: &mut Mover<'_>) -> u64 {
        self.fields.move_inside(from, most, mover)
    }

    /// Prefetches the memory that look-ups of these fields will read.
    pub(super) fn fetch_ahead(&self, names: &[&[u8]]) {
        self.fields.fetch_ahead(names.iter().copied());
    }

    /// Returns every field, expired or not.
    pub(super) fn iter(&self) -> impl Iterator<Item = Field<'_>> {
        self.fields.iter().map(field)
    }

    /// Returns a field chosen uniformly at random. Expected O(1).
    pub(super) fn random(&self, random: &mut Random) -> Option<Field<'_>> {
        self.fields.random(random).map(field)
    }

    /// Returns a field chosen uniformly at random, and its place. Expected O(1).
    pub(super) fn random_place(&self, random: &mut Random) -> Option<(Place, Field<'_>)> {
        let place = self.fields.random_place(random)?;
        Some((place, field(self.fields.entry(place))))
    }

    /// Visits fields as [`Elements::scan`] does.
    pub(super) fn scan(&self, cursor: u64, count: usize, mut visit: impl FnMut(Field<'_>)) -> u64 {
        self.fields.scan(cursor, count, |entry| visit(field(entry)))
    }

    /// Returns the earliest time at which a field may have expired, Unix time in ms: never later than the first expiry,
    /// sometimes earlier. O(1).
    #[inline]
    pub(super) fn earliest_ms(&self) -> Option<i64> {
        self.due.earliest_ms()
    }

    /// Sets a field. Returns true if no field of this name existed that had not expired at `now_ms`. O(1).
    #[inline]
    pub(super) fn set(&mut self, new: &NewField<'_>, now_ms: i64) -> bool {
        match new.expiry {
            NewExpiry::None | NewExpiry::Kept if self.volatile == 0 => {
                self.fields.set(new.name, stored(new), None)
            }
            _ => self.set_volatile(new, now_ms),
        }
    }

    /// Like [`Table::set`], for a field that receives an expiry or may have one.
    fn set_volatile(&mut self, new: &NewField<'_>, now_ms: i64) -> bool {
        let place = self.fields.find(new.name);
        let old = place.map(|place| field(self.fields.entry(place)));
        let was_live = old.is_some_and(|old| !old.is_expired(now_ms));
        let old_expiry = old.and_then(|old| old.expire_at_ms);
        let expire_at_ms = new.expiry.instead_of(old_expiry.filter(|_| was_live));
        match place {
            Some(place) => self.fields.edit(place, |slot| slot.set(stored(new), expire_at_ms)),
            None => {
                self.fields.insert(new.name, stored(new), expire_at_ms);
            }
        }
        self.update_expiry(new.name, old_expiry, expire_at_ms);
        !was_live
    }

    /// Changes the expiry of the existing field `name`. O(1).
    pub(super) fn set_expiry(&mut self, name: &[u8], expire_at_ms: Option<i64>) {
        let Some(place) = self.fields.find(name) else { return };
        let old = self.fields.entry(place).expire_at_ms();
        self.fields.edit(place, |slot| slot.set_expiry(expire_at_ms));
        self.update_expiry(name, old, expire_at_ms);
    }

    /// Updates counter and index after the expiry of the field `name` has changed from `old` to `new`.
    fn update_expiry(&mut self, name: &[u8], old: Option<i64>, new: Option<i64>) {
        if old == new {
            return;
        }
        self.volatile = self.volatile + usize::from(new.is_some()) - usize::from(old.is_some());
        // If the new expiry is later, the field keeps its earlier element, so that repeated extensions of an expiry add
        // nothing.
        if let Some(at_ms) = new
            && old.is_none_or(|old| at_ms < old)
            && let Some(place) = self.fields.find(name)
        {
            let position = self.fields.position_of(name);
            self.add_due(place, at_ms, position);
        }
        self.tend_due();
    }

    fn add_due(&mut self, place: Place, at_ms: i64, position: u64) {
        self.due.add(at_ms, position);
        let round = self.due.round();
        self.fields.edit(place, |slot| slot.set_clock(round));
    }

    /// Limits the number of elements in the index.
    fn tend_due(&mut self) {
        if self.volatile == 0 {
            return self.due.clear();
        }
        for _ in 0..CHECKS_PER_CHANGE {
            let Some((due_ms, position)) = self.due.next_to_check(self.volatile) else { return };
            let round = self.due.round();
            self.renew_due(position, |at_ms, clock| at_ms >= due_ms && clock != round);
        }
    }

    /// Adds an element for each field at `position` whose expiry and clock satisfy `is_wanted`.
    fn renew_due(&mut self, position: u64, is_wanted: impl Fn(i64, u32) -> bool) {
        let round = self.due.round();
        let needs_one =
            |entry: EntryRef<'_>| entry.expire_at_ms().is_some_and(|at_ms| is_wanted(at_ms, entry.clock()));
        while let Some(place) = self.fields.find_at(position, needs_one) {
            let expire_at_ms = self.fields.entry(place).expire_at_ms();
            self.add_due(place, expire_at_ms.unwrap_or(i64::MAX), position);
            debug_assert_eq!(self.fields.entry(place).clock(), round);
        }
    }

    /// Removes a field. Returns true if it existed and had not expired at `now_ms`. O(1).
    #[inline]
    pub(super) fn remove(&mut self, name: &[u8], now_ms: i64) -> bool {
        self.fields.find(name).is_some_and(|place| !self.remove_at(place, now_ms))
    }

    /// Removes the field at a place. Returns true if it had expired at `now_ms`.
    fn remove_at(&mut self, place: Place, now_ms: i64) -> bool {
        let removed = self.fields.remove_at(place);
        let entry = removed.entry();
        if entry.expire_at_ms().is_some() {
            self.volatile -= 1;
            self.tend_due();
        }
        entry.is_expired(now_ms)
    }

    /// Removes fields that have expired at `now_ms`, examining at most `max` places, and returns how many were removed.
    /// O(log fields) per place.
    pub(super) fn remove_expired(&mut self, now_ms: i64, max: usize, names: &mut Names) -> usize {
        let mut removed = 0;
        for _ in 0..max {
            let Some(position) = self.due.pop(now_ms) else { break };
            // Several fields may share a position. The expired fields are removed; the others may have lost their
            // element.
            while let Some(place) = self.fields.find_at(position, |entry| entry.is_expired(now_ms)) {
                names.add(self.fields.entry(place).key());
                self.remove_at(place, now_ms);
                removed += 1;
            }
            if let Some(at_ms) = self.earliest_at(position) {
                self.due.add(at_ms, position);
            }
        }
        removed
    }

    /// Returns the earliest expiry of the fields at a position.
    fn earliest_at(&self, position: u64) -> Option<i64> {
        let mut earliest: Option<i64> = None;
        self.fields.find_at(position, |entry| {
            let at_ms = entry.expire_at_ms();
            earliest = [earliest, at_ms].into_iter().flatten().min();
            false
        });
        earliest
    }

    /// Checks the invariants in the module's text. O(fields); for tests.
    pub(super) fn check_invariants(&self) {
        self.fields.check_invariants();
        let mut due: Vec<(u64, i64)> = self.due.iter().map(|(at_ms, position)| (position, at_ms)).collect();
        due.sort_unstable();
        let mut volatile = 0;
        for entry in self.fields.iter() {
            let Some(at_ms) = entry.expire_at_ms() else { continue };
            volatile += 1;
            let position = self.fields.position_of(entry.key());
            let first = due.partition_point(|&(other, _)| other < position);
            let leads = due.get(first).is_some_and(|&(other, due_ms)| other == position && due_ms <= at_ms);
            assert!(leads, "an element leads to each field with an expiry, in time");
        }
        assert_eq!(volatile, self.volatile, "volatile counts the fields with an expiry");
        assert!(self.due.len() <= 3 * self.volatile + 256, "stale elements are few");
        assert!(volatile > 0 || due.is_empty(), "without volatile fields there is nothing to check");
    }
}
