//! Access of a command to one key, which was looked up under its shard's lock: reading, changing and removing it.

use super::effect::Effect;
use crate::effects::capture::State;
use crate::effects::events::{Errand, Event};
use crate::effects::journal::{Names, Removal, Words};
use crate::entries::entry::{EntryRef, NewValue, Slot};
use crate::entries::hash::KeyHash;
use crate::entries::table::Position;
use crate::error::CommandError;
use crate::keyspace::shard::ShardData;
use crate::keyspace::states::state_of;
use crate::turn::Turn;
use crate::types::Variant;

/// Returns the value of type `T` in an entry that may be missing.
///
/// # Errors
/// Returns `WrongType` if the entry holds another type.
#[inline]
pub(super) fn typed<T: Variant>(entry: Option<EntryRef<'_>>) -> Result<Option<&T>, CommandError> {
    let Some(entry) = entry else { return Ok(None) };
    entry.aggregate().and_then(T::of).map(Some).ok_or(CommandError::WrongType)
}

/// A key whose shard's lock is held; the key may be missing.
pub struct Key<'x> {
    pub(super) shard: &'x mut ShardData,
    pub(super) turn: &'x mut Turn,
    pub(super) database: usize,
    hash: KeyHash,
    pub(super) name: &'x [u8],
    at: Option<Position>,
}

impl<'x> Key<'x> {
    /// Finds the key in its shard, which is the shard of `hash`. An expired key is not found; it is removed unless
    /// `keeps_expired`.
    #[inline(always)]
    pub(super) fn find(
        shard: &'x mut ShardData,
        turn: &'x mut Turn,
        database: usize,
        hash: KeyHash,
        name: &'x [u8],
        keeps_expired: bool,
    ) -> Key<'x> {
        let mut at = shard.find(database, hash, name);
        if keeps_expired {
            let expired_ms = turn.expired_ms();
            at = at.filter(|at| !shard.entry(database, *at).is_expired(expired_ms));
            return Key { shard, turn, database, hash, name, at };
        }
        let mut key = Key { shard, turn, database, hash, name, at };
        key.drop_if_expired();
        key
    }

    #[inline(always)]
    fn drop_if_expired(&mut self) {
        if let Some(entry) = self.entry()
            && let Some(expire_at_ms) = entry.expire_at_ms()
            && expire_at_ms <= self.turn.expired_ms()
        {
            self.drop_expired();
        }
    }

    #[cold]
    fn drop_expired(&mut self) {
        self.detach_for(Some("expired"));
        let removal = self.turn.settings.removals.expired;
        self.turn.journal.record_removal(self.database, self.name, removal);
        self.turn.counters.expired += 1;
        self.shard.notify_server_change(self.database, self.hash.tag(), self.name, &mut self.turn.notices);
        self.notify(Event::EXPIRED);
    }

    /// Returns an empty list for the names of elements that the command changes or removes.
    pub fn names(&self) -> Names {
        Names::for_journal(&self.turn.journal)
    }

    /// Counts the fields of this key's value that one edit has removed because they had expired, and records their
    /// removal in the journal.
    pub fn count_expired_fields(&mut self, count: u64, names: &Names) {
        self.turn.counters.expired_fields += count;
        names.journal_expired(&mut self.turn.journal, self.database, self.name, u64::from(count > 0));
    }

    /// Records a command on this key that replaces the current command in the journal
    /// ([`crate::effects::journal::Journal::record`]): the name `command`, this key, and the words that `write` adds.
    pub fn journal(&mut self, command: &str, write: impl FnOnce(&mut Words<'_>)) {
        let name = self.name;
        self.turn.journal.record(self.database, |words| write(words.word(command.as_bytes()).word(name)));
    }

    /// Records that the fields `names` of this hash expire at `at_ms`.
    pub fn journal_fields_expiry<'n>(&mut self, at_ms: i64, names: impl ExactSizeIterator<Item = &'n [u8]>) {
        self.journal("HPEXPIREAT", |words| {
            words.integer(at_ms).word(b"FIELDS").integer(names.len());
            names.for_each(|name| _ = words.word(name));
        });
    }

    /// Like [`Key::journal`], for commands whose key is not their first argument: `write` receives this key and adds
    /// all words.
    pub fn journal_words(&mut self, write: impl FnOnce(&mut Words<'_>, &[u8])) {
        let name = self.name;
        self.turn.journal.record(self.database, |words| write(words, name));
    }

    /// Returns whether the journal has a reader.
    pub fn is_journaled(&self) -> bool {
        self.turn.journal.is_on()
    }

    /// Records that the only effect of the command is the new expiry of this key, or the key's removal because that
    /// expiry has passed.
    pub fn journal_expiry(&mut self) {
        match (self.exists(), self.expire_at_ms()) {
            (false, _) => self.journal_removal_as(self.turn.settings.removals.expired),
            (true, None) => self.journal("PERSIST", |_| {}),
            (true, Some(at_ms)) => self.journal("PEXPIREAT", |words| _ = words.integer(at_ms)),
        }
    }

    /// Records that the only effect of the command is the removal of this key.
    pub fn journal_removal(&mut self) {
        self.journal_removal_as(Removal::Del);
    }

    /// Records the server's removal of this key as the only effect of the current command.
    pub fn journal_removal_by_server(&mut self) {
        self.journal_removal_as(self.turn.settings.removals.by_server);
    }

    fn journal_removal_as(&mut self, removal: Removal) {
        self.journal(removal.name(), |_| {});
    }

    /// Records an effect on this key separately from the current command: the command `name`, this key, and the words
    /// that `write` adds. `changes` is the number of counted changes that this effect covers.
    pub fn journal_separately(&mut self, command: &str, changes: u64, write: impl FnOnce(&mut Words<'_>)) {
        let name = self.name;
        let journal = &mut self.turn.journal;
        journal.record_separately(self.database, changes, |words| {
            write(words.word(command.as_bytes()).word(name))
        });
    }

    /// Notifies the subscribers of `event` of this key.
    #[inline]
    pub fn notify(&mut self, event: Event) {
        self.turn.notices.notify(event, self.database, self.name);
    }

    /// Counts a change, and notifies the observers of the key.
    #[inline]
    fn count_change(&mut self) {
        self.turn.counters.changes += 1;
        self.shard.notify_change(self.database, self.hash.tag(), self.name, &mut self.turn.notices);
    }

    /// Calls `edit` on the key's entry, and records its size if the key has become large.
    #[inline]
    fn edit_slot<R>(&mut self, at: Position, edit: impl FnOnce(&mut Slot) -> R) -> R {
        if self.turn.journal.captures() {
            self.mark(None);
        }
        let (result, before, after) = self.shard.edit_sized(self.database, at, edit);
        self.record_size(before, after);
        result
    }

    /// Records the size of the key if the key has become large: `before` and `after` are its bytes.
    #[inline]
    fn record_size(&mut self, before: usize, after: usize) {
        if after >= self.turn.settings.large_key_bytes && before < self.turn.settings.large_key_bytes {
            self.turn.notices.large_keys.push(after);
        }
    }

    /// Adds an entry for this key, which did not exist before the call, and publishes the event of a new key.
    #[inline]
    fn create(&mut self, value: NewValue<'_>, expire_at_ms: Option<i64>, clock: u32) {
        self.insert(value, expire_at_ms, clock);
        self.notify(Event::NEW);
    }

    /// Stores an entry for this key and returns the replaced entry, if any.
    fn replace(&mut self, value: NewValue<'_>, expire_at_ms: Option<i64>, clock: u32) -> Option<Slot> {
        let replaced = self.detach();
        if replaced.is_some() {
            self.insert(value, expire_at_ms, clock);
        } else {
            self.create(value, expire_at_ms, clock);
        }
        replaced
    }

    /// Adds an entry for this key, which does not exist now. Publishes no event: only the caller knows whether the key
    /// existed before the call.
    #[inline]
    fn insert(&mut self, value: NewValue<'_>, expire_at_ms: Option<i64>, clock: u32) {
        let has_ghosts = self.turn.settings.policy.has_ghosts();
        let clock = if has_ghosts { self.recalled_clock(clock) } else { clock };
        let bytes = match &value {
            NewValue::Int(_) | NewValue::External(_) => 0,
            NewValue::Bytes(bytes) | NewValue::Edited(bytes) => bytes.len(),
            NewValue::Large(_) | NewValue::Aggregate(_) => usize::MAX,
        };
        if self.turn.journal.captures() {
            self.mark(None);
        }
        let at = self.shard.insert(self.database, self.hash, self.name, value, expire_at_ms, clock);
        self.at = Some(at);
        // The entry's overhead is only computed if it and the short value together might make a large key.
        if bytes >= self.turn.settings.large_key_bytes / 2 {
            let bytes = self.shard.entry(self.database, at).footprint_bytes();
            self.record_size(0, bytes);
        }
    }

    /// Returns the eviction clock of a new key whose uses before an eviction count, too; `clock` is its clock without
    /// them.
    fn recalled_clock(&mut self, clock: u32) -> u32 {
        let Some(counter) = self.shard.recall_evicted(self.hash) else { return clock };
        self.turn.counters.recalled += 1;
        self.turn.recalled_clock(clock, counter)
    }

    /// Returns whether the command is a replayed change, to which current limits do not apply.
    pub fn is_replay(&self) -> bool {
        self.turn.is_replay()
    }

    /// Returns whether other threads link the vectors that the command adds.
    pub fn links_later(&self) -> bool {
        self.turn.settings.links_vectors_later
    }

    /// Notifies the linking threads that this key has vectors to link.
    pub fn request_linking(&mut self) {
        self.turn.notices.errands.push((Errand::Link, self.database, self.name.into()));
    }

    /// Pins the value in memory, or unpins it so that it may be demoted again.
    pub fn set_pinned(&mut self, is_pinned: bool) {
        self.shard.set_pinned(self.database, self.hash, self.name, is_pinned);
    }

    /// Unpins the value and requests its demotion after the command.
    pub fn request_demotion(&mut self) {
        self.set_pinned(false);
        self.turn.notices.errands.push((Errand::Demote, self.database, self.name.into()));
    }

    /// Returns the value, if the key exists.
    ///
    /// # Errors
    /// Returns `WrongType` if the key holds another type.
    #[inline]
    pub fn value<T: Variant>(&self) -> Result<Option<&T>, CommandError> {
        typed(self.entry())
    }

    /// Calls `edit` on the value of the key. If the key does not exist, returns `None` and does not call `edit`. A
    /// change counts as a use of the key and publishes `event`; a value left vacant is removed with its key.
    ///
    /// # Errors
    /// Returns `WrongType` if the key holds another type.
    pub fn edit_value<T: Variant, R: Effect>(
        &mut self,
        event: Event,
        edit: impl FnOnce(&mut T) -> R,
    ) -> Result<Option<R>, CommandError> {
        let Some(at) = self.at else { return Ok(None) };
        let changed = self.edit_slot(at, |slot| {
            let value = slot.aggregate_mut().and_then(T::of_mut)?;
            let result = edit(value);
            Some((result, value.is_vacant()))
        });
        let (result, is_vacant) = changed.ok_or(CommandError::WrongType)?;
        if result.is_change() {
            self.touch();
            self.count_change();
            self.notify(event);
        }
        if is_vacant {
            self.detach();
            self.notify(Event::DEL);
        }
        Ok(Some(result))
    }

    /// Calls `edit` on the value of the key without notifying observers, for changes such as those of a stream's
    /// consumer groups. If the key does not exist, returns `None` and does not call `edit`. Counts as a use of the key.
    /// The caller counts changes with [`Key::count_changes`].
    ///
    /// # Errors
    /// Returns `WrongType` if the key holds another type.
    pub fn edit_unobserved<T: Variant, R>(
        &mut self,
        edit: impl FnOnce(&mut T) -> R,
    ) -> Result<Option<R>, CommandError> {
        let Some(at) = self.at else { return Ok(None) };
        self.touch();
        let result = self.edit_slot(at, |slot| slot.aggregate_mut().and_then(T::of_mut).map(edit));
        result.map(Some).ok_or(CommandError::WrongType)
    }

    /// Counts `count` further changes of the keyspace.
    pub fn count_changes(&mut self, count: u64) {
        self.turn.counters.changes += count;
    }

    /// Wakes the blocked clients that wait for the key; other observers are not notified.
    pub fn wake(&mut self) {
        self.shard.wake_waiters(self.database, self.name, &mut self.turn.notices);
    }

    /// Like [`Key::edit_value`], but calls `edit` on a new empty value if the key does not exist. The new value is
    /// stored unless `edit` leaves it vacant or unchanged.
    ///
    /// # Errors
    /// Returns `WrongType` if the key holds another type.
    pub fn edit_or_create<T: Variant, R: Effect>(
        &mut self,
        event: Event,
        edit: impl FnOnce(&mut T) -> R,
    ) -> Result<R, CommandError> {
        if self.exists() {
            return Ok(self.edit_value(event, edit)?.expect("the key exists"));
        }
        let mut value = T::default();
        let result = edit(&mut value);
        if result.is_change() && !value.is_vacant() {
            let clock = self.turn.new_clock();
            self.create(NewValue::Aggregate(Box::new(value.into_aggregate())), None, clock);
            self.count_change();
            self.notify(event);
        }
        Ok(result)
    }

    /// Stores a value without an expiry, which replaces the key's value, if any, and publishes `event`. If the new
    /// value is vacant, removes the key instead and publishes the removal, if the key existed.
    pub fn store_value<T: Variant>(&mut self, event: Event, value: T) {
        if !value.is_vacant() {
            let clock = self.turn.new_clock();
            drop(self.replace(NewValue::Aggregate(Box::new(value.into_aggregate())), None, clock));
            self.count_change();
            self.notify(event);
        } else if self.detach().is_some() {
            self.count_change();
            self.notify(Event::DEL);
        }
    }

    /// See [`Turn::expired_ms`].
    pub fn expired_ms(&self) -> i64 {
        self.turn.expired_ms()
    }

    /// See [`Turn::past_ms`].
    pub fn past_ms(&self) -> i64 {
        self.turn.past_ms()
    }

    /// Returns whether the key exists.
    #[inline]
    pub fn exists(&self) -> bool {
        self.at.is_some()
    }

    /// Returns the entry, if the key exists.
    #[inline]
    pub fn entry(&self) -> Option<EntryRef<'_>> {
        self.at.map(|at| self.shard.entry(self.database, at))
    }

    pub(super) fn into_entry(self) -> Option<EntryRef<'x>> {
        let shard: &'x ShardData = self.shard;
        self.at.map(|at| shard.entry(self.database, at))
    }

    /// Returns the time at which the key expires; `None` if the key does not exist or has no expiry.
    pub fn expire_at_ms(&self) -> Option<i64> {
        self.entry().and_then(EntryRef::expire_at_ms)
    }

    /// Updates the eviction clock of the key, because the key is used.
    #[inline(always)]
    pub fn touch(&mut self) {
        let Some(at) = self.at else { return };
        if self.turn.no_touch {
            return;
        }
        let entry = self.shard.entry(self.database, at);
        if entry.is_fetched() {
            // The first use after a fetch does not update the clock, so that a scan of otherwise unused keys does not
            // make these keys look recently used.
            return self.shard.clear_fetched(self.database, at);
        }
        let clock = entry.clock();
        let touched = self.turn.touched_clock(clock);
        if touched != clock {
            self.shard.set_clock(self.database, at, touched);
        }
    }

    /// Sets the value and the expiry of the key, whether or not the key exists, and counts as a use. An expiry in the
    /// past removes the key.
    #[inline]
    pub fn set(&mut self, value: NewValue<'_>, expire_at_ms: Option<i64>) {
        self.count_change();
        if expire_at_ms.is_some_and(|at| at <= self.past_ms()) {
            self.detach();
            return;
        }
        match self.at {
            Some(at) => {
                self.touch();
                self.edit_slot(at, |slot| slot.set(value, expire_at_ms));
            }
            None => {
                let clock = self.turn.new_clock();
                self.create(value, expire_at_ms, clock);
            }
        }
    }

    /// Sets the value of the key and keeps its expiry.
    pub fn set_value(&mut self, value: NewValue<'_>) {
        self.set(value, self.expire_at_ms());
    }

    /// Changes the expiry of an existing key; an expiry in the past removes the key.
    pub fn set_expiry(&mut self, expire_at_ms: Option<i64>) {
        let Some(at) = self.at else { return };
        self.count_change();
        if expire_at_ms.is_some_and(|at| at <= self.past_ms()) {
            self.detach();
        } else {
            self.edit_slot(at, |slot| slot.set_expiry(expire_at_ms));
        }
    }

    /// Calls `edit` on the entry of an existing key, and counts as a use.
    pub fn edit<R>(&mut self, edit: impl FnOnce(&mut Slot) -> R) -> Option<R> {
        let at = self.at?;
        self.count_change();
        self.touch();
        Some(self.edit_slot(at, edit))
    }

    /// Like [`Key::edit`], for an `edit` that returns whether it has changed the entry; returns `None` if the key does
    /// not exist.
    pub fn edit_maybe(&mut self, edit: impl FnOnce(&mut Slot) -> bool) -> Option<bool> {
        let at = self.at?;
        self.touch();
        let is_change = self.edit_slot(at, edit);
        if is_change {
            self.count_change();
        }
        Some(is_change)
    }

    /// Stores a value with an expiry in the future and the given eviction clock, and returns the replaced entry, if
    /// any.
    pub fn put(&mut self, value: NewValue<'_>, expire_at_ms: Option<i64>, clock: u32) -> Option<Slot> {
        let replaced = self.replace(value, expire_at_ms, clock);
        self.count_change();
        replaced
    }

    /// Replaces the value of an existing key with a changed copy, counts as a use, and returns an entry with the old
    /// value. Counts as a change only if `is_observed`: then observers are notified.
    ///
    /// # Panics
    /// Panics if the key does not exist.
    pub fn exchange_value(&mut self, value: NewValue<'_>, is_observed: bool) -> Slot {
        let at = self.at.expect("the caller has seen the key");
        self.touch();
        let replaced = self.edit_slot(at, |slot| slot.exchange(value));
        if is_observed {
            self.count_change();
        }
        replaced
    }

    /// Removes the key and returns its entry; `None` if the key did not exist.
    pub fn remove(&mut self) -> Option<Slot> {
        let slot = self.detach()?;
        self.count_change();
        Some(slot)
    }

    /// Like [`Key::remove`], as part of a change that the caller counts.
    pub fn take(&mut self) -> Option<Slot> {
        let slot = self.detach()?;
        self.shard.notify_change(self.database, self.hash.tag(), self.name, &mut self.turn.notices);
        Some(slot)
    }

    /// Removes the entry without notifications.
    fn detach(&mut self) -> Option<Slot> {
        self.detach_for(None)
    }

    /// Like [`Key::detach`]; `cause` is the reason for which the server removes the key.
    fn detach_for(&mut self, cause: Option<&'static str>) -> Option<Slot> {
        if self.turn.journal.captures() && self.at.is_some() {
            self.mark(cause);
        }
        self.at.take().map(|at| self.shard.remove(self.database, at))
    }

    /// Marks the key for the history, before it changes.
    #[cold]
    fn mark(&mut self, cause: Option<&'static str>) {
        let Key { shard, turn, database, name, at, .. } = self;
        let state = |bytes_max| match *at {
            None => State::Absent,
            Some(at) => state_of(shard.entry(*database, at), bytes_max),
        };
        turn.journal.mark((*database, &**name), cause, state);
    }
}
