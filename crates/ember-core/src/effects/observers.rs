//! Who wants to know when a key changes: transactions that watch it, clients that wait for it, clients that keep a copy,
//! live queries that read it.
//!
//! Each shard has its own [`Observers`], behind the shard's lock: a key that is looked at and then observed under one
//! lock cannot change unseen in between, and a change costs one branch while the shard has no observers.

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

/// About what one observed key takes in the tables of its shard besides its name, in bytes.
pub const OBSERVED_KEY_BYTES: usize = 160;

/// About what a key takes that some client may have a copy of, in bytes, besides its name and the clients' ids.
const TRACKED_KEY_BYTES: usize = 96;

/// Bytes that all those keys of a shard may take together, for each key that there may be: longer names and more clients
/// for each key leave room for fewer keys.
const TRACKED_BYTES_FOR_EACH_KEY: usize = 256;

/// Bytes that they may take however few there may be.
const TRACKED_BYTES_MIN: usize = 64 * 1024;

/// The keys that a client's next transaction depends on (`WATCH`); shared by the client and the shards.
#[derive(Debug, Default)]
pub struct Watch {
    is_broken: AtomicBool,
}

impl Watch {
    /// Whether a watched key has changed. Exact under the locks of the watched keys' shards.
    pub fn is_broken(&self) -> bool {
        // Set and read under the shard's lock, which orders them.
        self.is_broken.load(Ordering::Relaxed)
    }

    /// Notes that a watched key has changed.
    pub fn break_it(&self) {
        self.is_broken.store(true, Ordering::Relaxed);
    }
}

// The states of a waiter.
const WAITING: u8 = 0;
const CLAIMED: u8 = 1;
/// Claimed; if there is nothing for it, its waiting is over.
const CLAIMED_LAST: u8 = 2;
const SERVED: u8 = 3;
const CANCELLED: u8 = 4;

/// A client's call that waits for one of its keys to change.
pub struct Waiter {
    // Fixed.
    /// The call to be run again.
    pub call: OwnedBatch,
    /// What the server knows the command by.
    pub command: u16,
    /// The number of the selected database.
    pub database: usize,
    /// The protocol of the reply.
    pub protocol: Protocol,
    /// The client's worker, its number there and its id.
    pub worker: usize,
    /// The connection's number at its worker.
    pub token: usize,
    /// The client's id.
    pub client_id: u64,
    // Shared.
    state: AtomicU8,
}

impl Waiter {
    /// A waiter for the only command of `call`.
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
        // AcqRel: who gets the waiter sees all that was done with it before.
        self.state.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Takes the waiter in order to serve it; false if its waiting is over or another worker serves it.
    pub fn claim(&self) -> bool {
        self.step(WAITING, CLAIMED)
    }

    /// Lets a claimed waiter wait on; false if it was ended meanwhile, so that its waiting is over. The caller notifies its
    /// worker then.
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

    /// Ends the waiting from outside (time-out, `CLIENT UNBLOCK`); false if it is served just now or over already.
    pub fn cancel(&self) -> bool {
        self.step(WAITING, CANCELLED)
    }

    /// Ends the waiting because the client is disconnected. Nothing serves it from now on, except a worker that has claimed
    /// it already.
    pub fn end(&self) {
        let end = |state| match state {
            WAITING => Some(CANCELLED),
            CLAIMED => Some(CLAIMED_LAST),
            _ => None,
        };
        // Only a change of the state matters, not who made it.
        let _ = self.state.fetch_update(Ordering::AcqRel, Ordering::Acquire, end);
    }

    /// Whether its waiting is over.
    pub fn is_over(&self) -> bool {
        matches!(self.state.load(Ordering::Acquire), SERVED | CANCELLED)
    }

    /// Whether its waiting is over without a reply from the worker that would have served it.
    pub fn is_cancelled(&self) -> bool {
        self.state.load(Ordering::Acquire) == CANCELLED
    }
}

/// Where a client's waiter is found by others that end its waiting. The client's worker fills it; once the client is ended,
/// no waiter that comes later is served either.
#[derive(Default)]
pub struct WaiterSlot {
    /// The waiter, if the client waits, and whether the client is ended.
    state: Mutex<(Option<Arc<Waiter>>, bool)>,
}

impl WaiterSlot {
    /// Enters the waiter of a client that begins to wait.
    pub fn enter(&self, waiter: &Arc<Waiter>) {
        let mut state = self.state.lock();
        if state.1 {
            waiter.end();
        }
        state.0 = Some(Arc::clone(waiter));
    }

    /// Empties it: the client does not wait any more.
    pub fn leave(&self) {
        self.state.lock().0 = None;
    }

    /// Ends the waiting of the client now and for ever.
    pub fn end(&self) {
        let mut state = self.state.lock();
        state.1 = true;
        if let Some(waiter) = &state.0 {
            waiter.end();
        }
    }

    /// The waiter, if the client waits.
    pub fn get(&self) -> Option<Arc<Waiter>> {
        self.state.lock().0.clone()
    }
}

/// Lists by key and database.
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

    /// Lets `edit` change the list of a key, and forgets it when `edit` returns true.
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
    /// The ids of the clients that may have a copy of a key's value, whatever its database.
    tracked: HashMap<Box<[u8]>, Vec<u64>>,
    /// About the bytes that those take.
    tracked_bytes: usize,
    queries: Queries,
}

impl Observers {
    /// Whether there are no observers.
    pub fn is_empty(&self) -> bool {
        self.queries.is_empty() && !self.has_clients()
    }

    /// Whether there are others than live queries.
    pub(crate) fn has_clients(&self) -> bool {
        !(self.watches.0.is_empty() && self.waiters.0.is_empty() && self.tracked.is_empty())
    }

    /// Marks the live queries of a key that has changed, and perhaps of others whose hashes have this tag too.
    pub(crate) fn mark_queries(&self, database: usize, tag: u32, notices: &mut Notices) {
        for query in self.queries.of(tag) {
            if query.database() == database && query.mark() {
                notices.queries.push(Arc::clone(query));
            }
        }
    }

    /// Notifies the observers of a key that it has changed, but for live queries.
    pub(crate) fn notify_clients(&mut self, database: usize, key: &[u8], notices: &mut Notices) {
        for watch in self.watches.get(database, key).into_iter().flatten() {
            watch.break_it();
        }
        self.invalidate(key, notices);
        self.wake_waiters(database, key, notices);
    }

    /// The live query of keys whose hashes have this tag that is this call.
    pub fn find_query(
        &self,
        tag: u32,
        call: Args<'_>,
        database: usize,
        protocol: Protocol,
    ) -> Option<&Arc<LiveQuery>> {
        self.queries.find(tag, call, database, protocol)
    }

    /// The memory in bytes that live queries take here, with that of the observers themselves.
    pub(crate) fn queries_bytes(&self) -> usize {
        let own = size_class(size_of::<Observers>());
        if self.queries.is_empty() { 0 } else { own + self.queries.memory_bytes() }
    }

    /// The live queries of all keys; one with several keys here comes several times.
    pub fn all_queries(&self) -> impl Iterator<Item = &Arc<LiveQuery>> {
        self.queries.all()
    }

    /// Enters a live query for a key whose hash has this tag; `filter` knows the tags of all of them.
    pub(crate) fn enter_query(&mut self, tag: u32, query: &Arc<LiveQuery>, filter: &mut TagFilter) {
        self.queries.enter(tag, query, filter);
    }

    /// Takes a live query away from the keys whose hashes have this tag; `filter` knows the tags of all of them.
    pub(crate) fn leave_query(&mut self, tag: u32, query: &Arc<LiveQuery>, filter: &mut TagFilter) {
        self.queries.leave(tag, query, filter);
    }

    /// Wakes those who wait for a key.
    pub fn wake_waiters(&self, database: usize, key: &[u8], notices: &mut Notices) {
        if self.waiters.get(database, key).is_some() {
            let is_this = |(number, ready): &(usize, Box<[u8]>)| *number == database && **ready == *key;
            if !notices.ready.iter().any(is_this) {
                notices.ready.push((database, key.into()));
            }
        }
    }

    /// Notes that a client may have a copy of a key's value. When there are more than `keys_max` such keys, or they take
    /// more memory than that many short ones, some are forgotten as if they had changed: this one if it is too long itself.
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
        // Nothing is hashed in vain where only others observe.
        if self.tracked.is_empty() {
            return;
        }
        if let Some((key, clients)) = self.tracked.remove_entry(key) {
            self.tracked_bytes -= TRACKED_KEY_BYTES + key.len() + size_of_val(&clients[..]);
            let is_server_change = notices.is_server_change;
            notices.invalidated.push((ChangedKey { name: key, is_server_change }, clients));
        }
    }

    /// Forgets who has copies of `count` keys, as if these had changed.
    pub fn forget_some_tracked(&mut self, count: usize, notices: &mut Notices) {
        let keys: Vec<_> = self.tracked.keys().take(count).cloned().collect();
        keys.iter().for_each(|key| self.invalidate(key, notices));
    }

    /// Forgets who has copies.
    pub fn forget_tracked(&mut self) {
        self.tracked = HashMap::new();
        self.tracked_bytes = 0;
    }

    /// The number of keys that clients may have copies of.
    pub fn tracked_keys(&self) -> usize {
        self.tracked.len()
    }

    /// The number of those copies. O(keys).
    pub fn tracked_copies(&self) -> usize {
        self.tracked.values().map(Vec::len).sum()
    }

    /// The watched keys of a database, with their watches.
    pub fn watched(&self, database: usize) -> impl Iterator<Item = (&[u8], &[Arc<Watch>])> {
        let here = self.watches.iter().filter(move |(number, ..)| *number == database);
        here.map(|(_, key, watches)| (key, watches.as_slice()))
    }

    /// The keys of a database that clients wait for.
    pub fn awaited(&self, database: usize) -> impl Iterator<Item = &[u8]> {
        self.waiters.iter().filter(move |(number, ..)| *number == database).map(|(_, key, _)| key)
    }

    /// The watches of each watched key of any database.
    pub fn all_watches(&self) -> impl Iterator<Item = &[Arc<Watch>]> {
        self.watches.iter().map(|(.., watches)| watches.as_slice())
    }

    /// The queue of waiters for each key of any database that clients wait for.
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

    /// Puts a waiter at the end of a key's queue, once.
    pub fn enqueue(&mut self, database: usize, key: &[u8], waiter: &Arc<Waiter>) {
        let queue = self.waiters.entry(database, key);
        if !queue.iter().any(|other| Arc::ptr_eq(other, waiter)) {
            queue.push_back(Arc::clone(waiter));
        }
    }

    /// Takes a waiter out of a key's queue.
    pub fn dequeue(&mut self, database: usize, key: &[u8], waiter: &Arc<Waiter>) {
        self.waiters.edit(database, key, |queue| {
            queue.retain(|other| !Arc::ptr_eq(other, waiter));
            queue.is_empty()
        });
    }

    /// The waiters for a key, first come first.
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
        assert_eq!(keys + notices.invalidated.len(), 1000, "who is no longer tracked is notified");
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
