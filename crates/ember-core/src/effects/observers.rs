//! Observers of keys: transactions that watch a key, blocked clients that wait for it, tracking clients that cache it,
//! live queries that read it.
//!
//! Each shard has its own [`Observers`], protected by the shard's lock: a key that is read and then observed under one
//! lock cannot change unobserved in between. While the shard has no observers, the cost per change is one branch.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use ember_protocol::{Args, OwnedBatch, Protocol};

use crate::effects::events::{ChangedKey, Notices};
use crate::effects::live_query::LiveQuery;
use crate::effects::queries::Queries;
pub(crate) use crate::effects::queries::TagFilter;
use crate::memory::size_class;
use crate::sync::{AtomicBool, AtomicU8, Mutex};

/// Approximate bytes of an observed key in the tables of its shard, excluding its name.
pub const OBSERVED_KEY_BYTES: usize = 160;

/// Approximate bytes of a tracked key, excluding its name and the clients' ids.
const TRACKED_KEY_BYTES: usize = 96;

/// The memory limit of a shard's tracked keys, in bytes for each key that the limit on their number permits. If the
/// names are longer or more clients track each key, fewer keys can be tracked.
const TRACKED_BYTES_FOR_EACH_KEY: usize = 256;

/// The minimum of that memory limit in bytes, which applies if the limit on the number of keys is low.
const TRACKED_BYTES_MIN: usize = 64 * 1024;

/// The keys that a client's next transaction depends on (`WATCH`); shared by the client and the shards.
#[derive(Debug, Default)]
pub struct Watch {
    is_broken: AtomicBool,
}

impl Watch {
    /// Returns whether a watched key has changed. The result is exact if the caller holds the locks of the watched
    /// keys' shards.
    pub fn is_broken(&self) -> bool {
        // Relaxed, because the shard's lock orders the store and the load.
        self.is_broken.load(Ordering::Relaxed)
    }

    /// Records that a watched key has changed.
    pub fn break_it(&self) {
        self.is_broken.store(true, Ordering::Relaxed);
    }
}

// The states of a waiter.
const WAITING: u8 = 0;
const CLAIMED: u8 = 1;
/// The waiter is claimed, and its wait ends after this attempt even if the waiter is not served.
const CLAIMED_LAST: u8 = 2;
const SERVED: u8 = 3;
const CANCELLED: u8 = 4;

/// The call of a blocked client, which waits until one of the call's keys changes.
pub struct Waiter {
    // Fields that do not change.
    /// The call to run again when one of its keys has changed.
    pub call: OwnedBatch,
    /// The server's number for the command.
    pub command: u16,
    /// The number of the selected database.
    pub database: usize,
    /// The protocol of the reply.
    pub protocol: Protocol,
    /// The number of the client's worker.
    pub worker: usize,
    /// The number that identifies the client's connection on its worker.
    pub token: usize,
    /// The id of the client.
    pub client_id: u64,
    // The state of the wait, which any thread may change.
    state: AtomicU8,
}

impl Waiter {
    /// Returns a waiter for `call`, which contains one command.
    pub fn new(
        call: OwnedBatch,
        command: u16,
        database: usize,
        protocol: Protocol,
        (worker, token, client_id): (usize, usize, u64),
    ) -> Waiter {
        let state = AtomicU8::new(WAITING);
        Waiter { call, command, database, protocol, worker, token, client_id, state }
    }

    fn step(&self, from: u8, to: u8) -> bool {
        // AcqRel: a thread that claims the waiter sees all effects of the threads that claimed it before.
        self.state.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Claims the waiter in order to serve it; returns false if the wait is over or another worker has claimed the
    /// waiter.
    pub fn claim(&self) -> bool {
        self.step(WAITING, CLAIMED)
    }

    /// Makes a claimed waiter wait again; returns false if the wait was ended meanwhile. In that case the caller
    /// notifies the client's worker.
    pub fn unclaim(&self) -> bool {
        if self.step(CLAIMED, WAITING) {
            return true;
        }
        self.step(CLAIMED_LAST, CANCELLED);
        false
    }

    /// Records that a claimed waiter was served.
    pub fn finish(&self) {
        self.state.store(SERVED, Ordering::Release);
    }

    /// Ends the wait after a timeout or `CLIENT UNBLOCK`; returns false if a worker is serving the waiter or the wait
    /// is over.
    pub fn cancel(&self) -> bool {
        self.step(WAITING, CANCELLED)
    }

    /// Ends the wait because the client is disconnected. From now on, only a worker that has claimed the waiter already
    /// may serve it.
    pub fn end(&self) {
        let end = |state| match state {
            WAITING => Some(CANCELLED),
            CLAIMED => Some(CLAIMED_LAST),
            _ => None,
        };
        // The result is ignored: if this has changed nothing, the wait is over or another thread has ended it.
        let _ = self.state.fetch_update(Ordering::AcqRel, Ordering::Acquire, end);
    }

    /// Returns whether the wait is over.
    pub fn is_over(&self) -> bool {
        matches!(self.state.load(Ordering::Acquire), SERVED | CANCELLED)
    }

    /// Returns whether the wait was ended without a reply from a serving worker.
    pub fn is_cancelled(&self) -> bool {
        self.state.load(Ordering::Acquire) == CANCELLED
    }
}

/// The shared slot in which other threads find a client's waiter to end its wait. The client's worker fills it. After
/// the client is disconnected, later waiters are ended at once, too.
#[derive(Default)]
pub struct WaiterSlot {
    /// The waiter, if the client is blocked; and whether the client is disconnected.
    state: Mutex<(Option<Arc<Waiter>>, bool)>,
}

impl WaiterSlot {
    /// Stores the waiter of a client that starts to wait; ends the wait at once if the client is disconnected.
    pub fn enter(&self, waiter: &Arc<Waiter>) {
        let mut state = self.state.lock();
        if state.1 {
            waiter.end();
        }
        state.0 = Some(Arc::clone(waiter));
    }

    /// Removes the waiter, because the client no longer waits.
    pub fn leave(&self) {
        self.state.lock().0 = None;
    }

    /// Ends the current wait of the client and all later ones, because the client is disconnected.
    pub fn end(&self) {
        let mut state = self.state.lock();
        state.1 = true;
        if let Some(waiter) = &state.0 {
            waiter.end();
        }
    }

    /// Returns the waiter, if the client is blocked.
    pub fn get(&self) -> Option<Arc<Waiter>> {
        self.state.lock().0.clone()
    }
}

/// A list of observers (of type `T`) for each key of each database; lists are found by key first, then by database.
struct ByKey<T>(HashMap<Box<[u8]>, Vec<(usize, T)>>);

impl<T> Default for ByKey<T> {
    fn default() -> Self {
        ByKey(HashMap::new())
    }
}

impl<T: Default> ByKey<T> {
    fn get(&self, database: usize, key: &[u8]) -> Option<&T> {
        self.0.get(key)?.iter().find(|(number, _)| *number == database).map(|(_, list)| list)
    }

    fn entry(&mut self, database: usize, key: &[u8]) -> &mut T {
        if !self.0.contains_key(key) {
            self.0.insert(key.into(), Vec::new());
        }
        let lists = self.0.get_mut(key).expect("it was inserted just now");
        let at = lists.iter().position(|(number, _)| *number == database);
        let at = at.unwrap_or_else(|| {
            lists.push((database, T::default()));
            lists.len() - 1
        });
        &mut lists[at].1
    }

    /// Calls `edit` on the list of a key, and removes the list if `edit` returns true.
    fn edit(&mut self, database: usize, key: &[u8], edit: impl FnOnce(&mut T) -> bool) {
        let Some(lists) = self.0.get_mut(key) else { return };
        let Some(at) = lists.iter().position(|(number, _)| *number == database) else { return };
        if edit(&mut lists[at].1) {
            lists.swap_remove(at);
            if lists.is_empty() {
                self.0.remove(key);
            }
        }
    }

    fn iter(&self) -> impl Iterator<Item = (usize, &[u8], &T)> {
        self.0.iter().flat_map(|(key, lists)| lists.iter().map(move |(number, list)| (*number, &**key, list)))
    }
}

/// The observers of one shard's keys.
#[derive(Default)]
pub struct Observers {
    watches: ByKey<Vec<Arc<Watch>>>,
    waiters: ByKey<VecDeque<Arc<Waiter>>>,
    /// For each key, the ids of the clients that may have a copy of its value, whatever the database.
    tracked: HashMap<Box<[u8]>, Vec<u64>>,
    /// The approximate memory of `tracked` in bytes.
    tracked_bytes: usize,
    queries: Queries,
}

impl Observers {
    /// Returns whether the shard has no observers.
    pub fn is_empty(&self) -> bool {
        self.queries.is_empty() && !self.has_clients()
    }

    /// Returns whether the shard has observers other than live queries.
    pub(crate) fn has_clients(&self) -> bool {
        !(self.watches.0.is_empty() && self.waiters.0.is_empty() && self.tracked.is_empty())
    }

    /// Marks the live queries of a changed key. Live queries of other keys are marked too if the hashes of these keys
    /// have the same tag.
    pub(crate) fn mark_queries(&self, database: usize, tag: u32, notices: &mut Notices) {
        for query in self.queries.of(tag) {
            if query.database() == database && query.mark() {
                notices.queries.push(Arc::clone(query));
            }
        }
    }

    /// Notifies all observers of a key, except live queries, that the key has changed.
    pub(crate) fn notify_clients(&mut self, database: usize, key: &[u8], notices: &mut Notices) {
        for watch in self.watches.get(database, key).into_iter().flatten() {
            watch.break_it();
        }
        self.invalidate(key, notices);
        self.wake_waiters(database, key, notices);
    }

    /// Returns the live query that watches this call, if it reads a key whose hash has this tag.
    pub fn find_query(
        &self,
        tag: u32,
        call: Args<'_>,
        database: usize,
        protocol: Protocol,
    ) -> Option<&Arc<LiveQuery>> {
        self.queries.find(tag, call, database, protocol)
    }

    /// Returns the memory in bytes that the shard's live queries take, including this table of observers.
    pub(crate) fn queries_bytes(&self) -> usize {
        let own = size_class(size_of::<Observers>());
        if self.queries.is_empty() { 0 } else { own + self.queries.memory_bytes() }
    }

    /// Returns the live queries of all keys; a query of several keys in this shard appears several times.
    pub fn all_queries(&self) -> impl Iterator<Item = &Arc<LiveQuery>> {
        self.queries.all()
    }

    /// Adds a live query to a key whose hash has this tag; `filter` contains the tags of all queries.
    pub(crate) fn enter_query(&mut self, tag: u32, query: &Arc<LiveQuery>, filter: &mut TagFilter) {
        self.queries.enter(tag, query, filter);
    }

    /// Removes a live query from the keys whose hashes have this tag; `filter` contains the tags of all queries.
    pub(crate) fn leave_query(&mut self, tag: u32, query: &Arc<LiveQuery>, filter: &mut TagFilter) {
        self.queries.leave(tag, query, filter);
    }

    /// Wakes the clients that wait for a key.
    pub fn wake_waiters(&self, database: usize, key: &[u8], notices: &mut Notices) {
        if self.waiters.get(database, key).is_some() {
            let is_this = |(number, ready): &(usize, Box<[u8]>)| *number == database && **ready == *key;
            if !notices.ready.iter().any(is_this) {
                notices.ready.push((database, key.into()));
            }
        }
    }

    /// Records that a client may have a copy of a key's value. If more than `keys_max` keys are tracked, or they exceed
    /// the memory limit that follows from `keys_max`, the copies of some keys are invalidated as if these keys had
    /// changed: those of this key if its name alone exceeds the limit.
    pub fn track(&mut self, key: &[u8], client_id: u64, keys_max: usize, notices: &mut Notices) {
        let keys_max = keys_max.max(1);
        let bytes_max = keys_max.saturating_mul(TRACKED_BYTES_FOR_EACH_KEY).max(TRACKED_BYTES_MIN);
        if self.tracked.get(key).is_some_and(|clients| clients.contains(&client_id)) {
            return;
        }
        loop {
            let is_new = !self.tracked.contains_key(key);
            let bytes = size_of::<u64>() + if is_new { TRACKED_KEY_BYTES + key.len() } else { 0 };
            if !(is_new && self.tracked.len() >= keys_max) && self.tracked_bytes + bytes <= bytes_max {
                self.tracked_bytes += bytes;
                break;
            }
            let Some(other) = self.tracked.keys().next().cloned() else {
                let key = ChangedKey { name: key.into(), is_server_change: true };
                notices.invalidated.push((key, vec![client_id]));
                return;
            };
            self.invalidate(&other, notices);
        }
        match self.tracked.get_mut(key) {
            Some(clients) => clients.push(client_id),
            None => _ = self.tracked.insert(key.into(), vec![client_id]),
        }
    }

    /// Invalidates the copies that clients may have of a key's value.
    fn invalidate(&mut self, key: &[u8], notices: &mut Notices) {
        // Avoids hashing the key if the shard has only other observers.
        if self.tracked.is_empty() {
            return;
        }
        if let Some((key, clients)) = self.tracked.remove_entry(key) {
            self.tracked_bytes -= TRACKED_KEY_BYTES + key.len() + size_of_val(&clients[..]);
            let is_server_change = notices.is_server_change;
            notices.invalidated.push((ChangedKey { name: key, is_server_change }, clients));
        }
    }

    /// Invalidates the copies of `count` keys, as if these keys had changed.
    pub fn forget_some_tracked(&mut self, count: usize, notices: &mut Notices) {
        let keys: Vec<_> = self.tracked.keys().take(count).cloned().collect();
        keys.iter().for_each(|key| self.invalidate(key, notices));
    }

    /// Removes all records of copies; no client is notified.
    pub fn forget_tracked(&mut self) {
        self.tracked = HashMap::new();
        self.tracked_bytes = 0;
    }

    /// Returns the number of keys of which clients may have copies.
    pub fn tracked_keys(&self) -> usize {
        self.tracked.len()
    }

    /// Returns the number of copies that clients may have. O(keys).
    pub fn tracked_copies(&self) -> usize {
        self.tracked.values().map(Vec::len).sum()
    }

    /// Returns the watched keys of a database, each with its watches.
    pub fn watched(&self, database: usize) -> impl Iterator<Item = (&[u8], &[Arc<Watch>])> {
        let here = self.watches.iter().filter(move |(number, ..)| *number == database);
        here.map(|(_, key, watches)| (key, watches.as_slice()))
    }

    /// Returns the keys of a database that blocked clients wait for.
    pub fn awaited(&self, database: usize) -> impl Iterator<Item = &[u8]> {
        self.waiters.iter().filter(move |(number, ..)| *number == database).map(|(_, key, _)| key)
    }

    /// Returns the watches of each watched key, in all databases.
    pub fn all_watches(&self) -> impl Iterator<Item = &[Arc<Watch>]> {
        self.watches.iter().map(|(.., watches)| watches.as_slice())
    }

    /// Returns the queue of waiters of each key that clients wait for, in all databases.
    pub fn all_waiters(&self) -> impl Iterator<Item = &VecDeque<Arc<Waiter>>> {
        self.waiters.iter().map(|(.., waiters)| waiters)
    }

    /// Adds a watch of a key.
    pub fn watch(&mut self, database: usize, key: &[u8], watch: &Arc<Watch>) {
        self.watches.entry(database, key).push(Arc::clone(watch));
    }

    /// Removes a watch of a key.
    pub fn unwatch(&mut self, database: usize, key: &[u8], watch: &Arc<Watch>) {
        self.watches.edit(database, key, |watches| {
            watches.retain(|other| !Arc::ptr_eq(other, watch));
            watches.is_empty()
        });
    }

    /// Adds a waiter to the end of a key's queue, unless the queue contains it already.
    pub fn enqueue(&mut self, database: usize, key: &[u8], waiter: &Arc<Waiter>) {
        let queue = self.waiters.entry(database, key);
        if !queue.iter().any(|other| Arc::ptr_eq(other, waiter)) {
            queue.push_back(Arc::clone(waiter));
        }
    }

    /// Removes a waiter from a key's queue.
    pub fn dequeue(&mut self, database: usize, key: &[u8], waiter: &Arc<Waiter>) {
        self.waiters.edit(database, key, |queue| {
            queue.retain(|other| !Arc::ptr_eq(other, waiter));
            queue.is_empty()
        });
    }

    /// Returns the waiters of a key, in the order in which they were added.
    pub fn waiters(&self, database: usize, key: &[u8]) -> impl Iterator<Item = &Arc<Waiter>> {
        self.waiters.get(database, key).into_iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tracked_keys_take_bounded_memory_whatever_their_lengths() {
        let mut observers = Observers::default();
        let mut notices = Notices::default();
        for number in 0..1000_u64 {
            let key = format!("{number}{}", "k".repeat(number as usize * 20));
            observers.track(key.as_bytes(), number % 3, 100, &mut notices);
            assert!(observers.tracked_bytes <= TRACKED_BYTES_MIN, "{number}: {}", observers.tracked_bytes);
        }
        let (keys, copies) = (observers.tracked_keys(), observers.tracked_copies());
        assert!(keys > 0 && keys == copies, "{keys} {copies}");
        assert_eq!(keys + notices.invalidated.len(), 1000, "each evicted client is notified");
        let notified = notices.invalidated.len();
        observers.track(&[b'k'; TRACKED_BYTES_MIN], 7, 100, &mut notices);
        assert_eq!(notices.invalidated.last().map(|(_, clients)| clients.as_slice()), Some(&[7][..]));
        assert_eq!(notices.invalidated.len(), notified + keys + 1);
        assert!(observers.is_empty() && observers.tracked_bytes == 0);
    }

    #[test]
    fn every_client_that_tracks_a_key_takes_memory_too() {
        let mut observers = Observers::default();
        let mut notices = Notices::default();
        for client in 0..20_000 {
            observers.track(b"key", client, 1, &mut notices);
        }
        assert!(observers.tracked_bytes <= TRACKED_BYTES_MIN);
        let notified: usize = notices.invalidated.iter().map(|(_, clients)| clients.len()).sum();
        assert_eq!(notified + observers.tracked_copies(), 20_000);
    }
}
