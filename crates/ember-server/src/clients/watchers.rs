//! The watchers of live queries of one connection, and the states to be sent to them.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::{Duration, Instant};

use ember_replication::position::Position;
use emberkv_core::live_query::LiveQuery;
use emberkv_core::memory::size_class;

use super::subscriptions::Name;

/// A live query that is to be evaluated again.
#[derive(Debug)]
pub(crate) struct Marked {
    pub(crate) query: Arc<LiveQuery>,
    /// The start of the batch that has changed one of the query's keys.
    pub(crate) since: Instant,
}

/// The result of a live query at one moment.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) query: Arc<LiveQuery>,
    /// The sequence number of the moment; later moments have higher numbers.
    pub(crate) sequence: u64,
    /// The last journal record that the result includes, if there is a journal.
    pub(crate) record: Option<u64>,
    pub(crate) hash: u128,
    /// The position of the state in the replication stream, once it is known; `None` without a stream.
    pub(crate) position: Option<Position>,
    /// The start of the batch that made the first change that this state shows and the previous one does not.
    pub(crate) since: Instant,
    /// The encoded result, as in the reply to the command.
    pub(crate) body: Arc<Vec<u8>>,
    pub(crate) memory: StateMemory,
}

/// The bytes of all existing states, wherever they are queued.
#[derive(Debug, Default)]
pub(crate) struct StatesAccount {
    all: AtomicI64,
    /// The bytes of states that are stored for slow readers.
    kept: AtomicI64,
}

impl StatesAccount {
    /// Returns the approximate bytes of all states.
    pub(crate) fn all(&self) -> u64 {
        self.all.load(Ordering::Relaxed).max(0).unsigned_abs()
    }

    /// Returns the approximate bytes of the states that are being delivered, that is, not stored for slow readers.
    pub(crate) fn under_way(&self) -> u64 {
        let kept = self.kept.load(Ordering::Relaxed);
        (self.all.load(Ordering::Relaxed) - kept).max(0).unsigned_abs()
    }
}

/// A state's share of the account; it is returned when the state is dropped.
#[derive(Debug)]
pub(crate) struct StateMemory {
    account: &'static StatesAccount,
    bytes: i64,
    is_kept: AtomicBool,
}

impl StateMemory {
    /// Adds a state with this result to the account.
    pub(crate) fn new(account: &'static StatesAccount, body: &[u8]) -> StateMemory {
        let counts = 2 * size_of::<usize>();
        let sizes = [counts + size_of::<State>(), counts + size_of::<Vec<u8>>(), body.len().max(1)];
        let bytes = sizes.into_iter().map(size_class).sum::<usize>() as i64;
        account.all.fetch_add(bytes, Ordering::Relaxed);
        StateMemory { account, bytes, is_kept: AtomicBool::new(false) }
    }

    /// Returns the state's bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.unsigned_abs() as usize
    }

    /// Returns whether the state is already stored for a slow reader.
    pub(crate) fn is_kept(&self) -> bool {
        self.is_kept.load(Ordering::Relaxed)
    }

    /// Marks the state as stored for a slow reader.
    fn keep(&self) {
        if !self.is_kept.swap(true, Ordering::Relaxed) {
            self.account.kept.fetch_add(self.bytes, Ordering::Relaxed);
        }
    }
}

impl Drop for StateMemory {
    fn drop(&mut self) {
        self.account.all.fetch_sub(self.bytes, Ordering::Relaxed);
        if *self.is_kept.get_mut() {
            self.account.kept.fetch_sub(self.bytes, Ordering::Relaxed);
        }
    }
}

/// A state, and the workers whose connections are to receive it.
pub(crate) type Update = (State, Vec<u16>);

/// The result of a live query's evaluation on a job thread.
pub(crate) struct EndedRun {
    pub(crate) query: Arc<LiveQuery>,
    pub(crate) took: Duration,
    /// The new state; `None` if no watcher needs it.
    pub(crate) update: Option<Update>,
}

/// The form in which a client receives states.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// In the form of `GET.WATCH`.
    Watch,
    /// In the form of `WATCH.OPEN`: with the version, in every protocol.
    Open,
    /// In the form of messages on a channel.
    Channel(Name),
}

/// The rate at which a client receives states.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pace {
    /// Whether results that equal the last one are sent, too.
    pub(crate) sends_equal: bool,
    /// The minimum time between two states.
    pub(crate) interval: Duration,
}

/// The origin of a watcher's first state.
pub(crate) enum First {
    /// The client was sent the state with this sequence number, hash, and position in the replication stream.
    Sent(u64, u128, Option<Position>),
    /// The owner evaluates the first state, which will have this sequence number or a higher one.
    Awaited(u64, AwaitedFirst),
}

/// A call that has begun a watch and is answered with the first state.
#[derive(Debug)]
pub(crate) struct AwaitedFirst {
    /// The time at which the call began.
    pub(crate) begun: Instant,
    /// The version of the state that the client already has, and the hash of that state.
    pub(crate) since: Option<(Box<str>, u128)>,
}

/// One client's watch of a query. There may be millions of watchers, nearly all of them without [`Extra`].
#[derive(Debug)]
pub(crate) struct Watcher {
    pub(crate) query: Arc<LiveQuery>,
    /// The sequence number and hash of the last state sent; before the first state, the lowest number that it can have.
    pub(crate) sequence: u64,
    pub(crate) hash: u128,
    /// The generation of the users at the last check of the watcher's rights.
    pub(crate) generation: u64,
    /// The newest state, if it cannot be sent yet.
    waiting: Option<Arc<State>>,
    /// The number of states sent, and the number of states replaced by newer ones before they were sent.
    pub(crate) sent: u64,
    pub(crate) coalesced: u64,
    extra: Option<Box<Extra>>,
    sends_equal: bool,
    /// Whether the watcher receives versions in every protocol.
    is_open: bool,
    /// Whether a newer state was discarded for lack of memory: the query is evaluated again when a state can be sent.
    is_missed: bool,
    /// Whether the watcher is in the queue of watchers whose states wait for the socket.
    is_queued: bool,
    /// Whether the watcher is registered under another number than the fingerprint of its call.
    is_displaced: bool,
}

/// A waiting state that may be sent now.
#[derive(Debug)]
pub(crate) enum Waited {
    State(Arc<State>),
    /// The state was discarded; this query must be evaluated again.
    Missed(Arc<LiveQuery>),
}

/// Fields that few watchers need.
#[derive(Debug, Default)]
struct Extra {
    channel: Option<Name>,
    interval: Duration,
    /// The earliest time at which the next state may be sent, if it may not be sent immediately.
    not_before: Option<Instant>,
    /// The call to be answered with the first state; `None` once that is sent.
    first: Option<AwaitedFirst>,
    /// The position in the replication stream of the last state sent, if there are replicas.
    position: Option<Position>,
}

/// The approximate bytes of a watcher's entry in the connection's table; the nodes of a B-tree are mostly full.
const PLACE_BYTES: usize = 21;

/// The approximate bytes of a watcher's entries in the worker's list of interval ends; a watcher may have two.
const INTERVAL_BYTES: usize = 2 * 50;

/// The decision about a state that has arrived for a watcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reception {
    /// The state is to be sent now.
    Send,
    /// The client already has this state or a newer one.
    Known,
    /// The state waits for the socket.
    Waits,
    /// The state waits until this time.
    WaitsUntil(Instant),
}

impl Extra {
    fn begin_interval(&mut self, now: Instant) {
        self.not_before = now.checked_add(self.interval).filter(|_| !self.interval.is_zero());
    }
}

impl Watcher {
    /// Creates a watcher whose rights were checked in this generation of the users.
    pub(crate) fn new(
        query: &Arc<LiveQuery>,
        form: &Form,
        pace: Pace,
        first: First,
        generation: u64,
    ) -> Watcher {
        let channel = if let Form::Channel(name) = form { Some(Arc::clone(name)) } else { None };
        let (sequence, hash, sent, first, position) = match first {
            First::Sent(sequence, hash, position) => (sequence, hash, 1, None, position),
            First::Awaited(sequence, first) => (sequence, 0, 0, Some(first), None),
        };
        let interval = pace.interval;
        let has_extra = channel.is_some() || !interval.is_zero() || first.is_some() || position.is_some();
        let extra = has_extra.then(|| {
            let mut extra = Box::new(Extra { channel, interval, not_before: None, first, position });
            if extra.first.is_none() {
                extra.begin_interval(Instant::now());
            }
            extra
        });
        Watcher {
            query: Arc::clone(query),
            sequence,
            hash,
            generation,
            waiting: None,
            sent,
            coalesced: 0,
            extra,
            sends_equal: pace.sends_equal,
            is_open: *form == Form::Open,
            is_missed: false,
            is_queued: false,
            is_displaced: false,
        }
    }

    /// Returns the bytes of a watcher with this form and pace whose first state is sent immediately.
    pub(crate) fn bytes_of(form: &Form, pace: Pace) -> usize {
        let has_extra = matches!(form, Form::Channel(_)) || !pace.interval.is_zero();
        let extra = if has_extra { size_class(size_of::<Extra>()) } else { 0 };
        let interval = if pace.interval.is_zero() { 0 } else { INTERVAL_BYTES };
        size_class(size_of::<Watcher>()) + PLACE_BYTES + extra + interval
    }

    /// Returns the form in which states are sent.
    pub(crate) fn form(&self) -> Form {
        match self.channel() {
            Some(name) => Form::Channel(Arc::clone(name)),
            None if self.is_open => Form::Open,
            None => Form::Watch,
        }
    }

    /// Returns the channel on which the states are sent, if any.
    pub(crate) fn channel(&self) -> Option<&Name> {
        self.extra.as_ref()?.channel.as_ref()
    }

    /// Returns the memory in bytes, excluding the waiting state.
    pub(crate) fn memory_bytes(&self) -> usize {
        let extra = self.extra.as_deref();
        let interval = if extra.is_some_and(|extra| !extra.interval.is_zero()) { INTERVAL_BYTES } else { 0 };
        let extra = if extra.is_some() { size_class(size_of::<Extra>()) } else { 0 };
        size_class(size_of::<Watcher>()) + PLACE_BYTES + extra + interval
    }

    /// Returns the bytes of the waiting state.
    fn waiting_bytes(&self) -> usize {
        self.waiting.as_ref().map_or(0, |state| state.memory.bytes())
    }

    /// Takes the waiting state.
    fn take_waiting(&mut self) -> Option<Waited> {
        let is_missed = std::mem::take(&mut self.is_missed);
        let missed = || is_missed.then(|| Waited::Missed(Arc::clone(&self.query)));
        self.waiting.take().map(Waited::State).or_else(missed)
    }

    /// Returns the position in the replication stream of the last state sent, if there are replicas.
    pub(crate) fn position(&self) -> Option<Position> {
        self.extra.as_ref()?.position
    }

    /// Returns whether no state was sent yet.
    pub(crate) fn is_new(&self) -> bool {
        self.sent == 0
    }

    /// Returns whether a state waits for the watcher's interval to end at this time.
    pub(crate) fn waits_until(&self, at: Instant) -> bool {
        let has_state = self.waiting.is_some() || self.is_missed;
        has_state && self.extra.as_ref().is_some_and(|extra| extra.not_before == Some(at))
    }

    /// Takes the call that is to be answered with the first state, if that was not sent yet.
    pub(crate) fn take_first(&mut self) -> Option<AwaitedFirst> {
        self.extra.as_mut()?.first.take()
    }

    /// Decides how to handle a state that has arrived; `is_congested`: whether the client has much unread output. A
    /// state that cannot be sent yet is stored if `may_keep` permits it.
    pub(crate) fn receive(
        &mut self,
        state: &Arc<State>,
        is_congested: bool,
        now: Instant,
        may_keep: impl FnOnce(&State) -> bool,
    ) -> Reception {
        let is_new = self.is_new();
        if state.sequence < self.sequence || (state.sequence == self.sequence && !is_new) {
            return Reception::Known;
        }
        if state.hash == self.hash && !self.sends_equal && !is_new {
            // The waiting state is older.
            self.coalesced += u64::from(self.take_waiting().is_some());
            return Reception::Known;
        }
        let not_before = self.extra.as_ref().and_then(|extra| extra.not_before).filter(|&time| time > now);
        if !is_congested && not_before.is_none() {
            return Reception::Send;
        }
        let newer = self.waiting.as_ref().is_none_or(|waiting| waiting.sequence < state.sequence);
        self.coalesced += u64::from(self.waiting.is_some() || self.is_missed || !newer);
        if newer && may_keep(state) {
            state.memory.keep();
            (self.waiting, self.is_missed) = (Some(Arc::clone(state)), false);
        } else if newer {
            (self.waiting, self.is_missed) = (None, true);
        }
        not_before.map_or(Reception::Waits, Reception::WaitsUntil)
    }

    /// Records that a state was sent; returns the growth of the watcher's memory in bytes.
    pub(crate) fn record_sent(&mut self, state: &State, now: Instant) -> usize {
        let before = self.memory_bytes();
        (self.sequence, self.hash) = (state.sequence, state.hash);
        self.sent += 1;
        (self.waiting, self.is_missed) = (None, false);
        if state.position.is_some() {
            self.extra.get_or_insert_default();
        }
        if let Some(extra) = &mut self.extra {
            extra.position = state.position;
            extra.begin_interval(now);
        }
        self.memory_bytes() - before
    }
}

/// All watchers of one connection, by number.
#[derive(Debug, Default)]
pub(crate) struct Watchers {
    by_number: BTreeMap<u32, Box<Watcher>>,
    /// The number of watchers registered under another number than the fingerprint of their call, because that number
    /// was in use.
    displaced: usize,
    /// The watchers whose states wait for the socket, in order of arrival; `unwatched` of the entries are watchers that
    /// have been removed.
    waiting: VecDeque<u32>,
    unwatched: usize,
    /// The bytes of all waiting states.
    waiting_bytes: usize,
    /// The watcher whose query is being evaluated again because its state was discarded. Other discarded states are not
    /// evaluated again before this watcher has received its state.
    asked: Option<u32>,
    /// The time since which a call waits for this server to receive the state that the client has seen on another
    /// server.
    pub(crate) lagging_since: Option<Instant>,
}

impl Watchers {
    /// Returns whether there are no watchers.
    pub(crate) fn is_empty(&self) -> bool {
        self.by_number.is_empty()
    }

    /// Returns the number of watchers.
    pub(crate) fn len(&self) -> usize {
        self.by_number.len()
    }

    /// Returns the watchers, ordered by number.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &Watcher)> {
        self.by_number.iter().map(|(&number, watcher)| (number, &**watcher))
    }

    /// Returns the watcher with this number. Its waiting state must only be changed through [`Watchers::edit`].
    pub(crate) fn get_mut(&mut self, number: u32) -> Option<&mut Watcher> {
        self.by_number.get_mut(&number).map(Box::as_mut)
    }

    /// Changes the watcher with this number through `edit`, and updates the bytes of waiting states.
    pub(crate) fn edit<R>(&mut self, number: u32, edit: impl FnOnce(&mut Watcher) -> R) -> Option<R> {
        let watcher = self.by_number.get_mut(&number)?;
        let before = watcher.waiting_bytes();
        let returned = edit(watcher);
        self.waiting_bytes = self.waiting_bytes + watcher.waiting_bytes() - before;
        Some(returned)
    }

    /// Returns the number of the watcher of a query; `wanted` is the fingerprint of the call. The watcher must have the
    /// same channel, or none; the forms of the watching commands count as equal.
    pub(crate) fn number_of(&self, wanted: u32, query: &Arc<LiveQuery>, form: &Form) -> Option<u32> {
        self.find(wanted, |watcher| {
            Arc::ptr_eq(&watcher.query, query)
                && match form {
                    Form::Channel(name) => watcher.channel() == Some(name),
                    Form::Watch | Form::Open => watcher.channel().is_none(),
                }
        })
    }

    /// Returns the number of a watcher for which `is_it` returns true and whose call has the fingerprint `wanted`.
    /// O(log watchers), or O(watchers) if several calls have the same fingerprint.
    fn find(&self, wanted: u32, is_it: impl Fn(&Watcher) -> bool) -> Option<u32> {
        if self.by_number.get(&wanted).is_some_and(|watcher| is_it(watcher)) {
            return Some(wanted);
        }
        let mut others = self.iter().filter(|_| self.displaced > 0);
        others.find_map(|(number, watcher)| is_it(watcher).then_some(number))
    }

    /// Returns the first unused number, counting up from `wanted`.
    pub(crate) fn free_number(&self, wanted: u32) -> u32 {
        let mut numbers = (0..=u32::MAX).map(|step| wanted.wrapping_add(step));
        numbers.find(|number| !self.by_number.contains_key(number)).unwrap_or(wanted)
    }

    /// Adds a watcher whose call has the fingerprint `wanted`; returns the watcher that had `number` before, if any.
    pub(crate) fn enter(&mut self, number: u32, wanted: u32, mut watcher: Watcher) -> Option<Box<Watcher>> {
        watcher.is_displaced = number != wanted;
        self.displaced += usize::from(watcher.is_displaced);
        let before = self.by_number.insert(number, Box::new(watcher));
        before.inspect(|before| self.forget(number, before))
    }

    /// Removes and returns a watcher.
    pub(crate) fn leave(&mut self, number: u32) -> Option<Box<Watcher>> {
        let watcher = self.by_number.remove(&number);
        watcher.inspect(|watcher| self.forget(number, watcher))
    }

    /// Updates the counts for a removed watcher.
    fn forget(&mut self, number: u32, watcher: &Watcher) {
        self.displaced -= usize::from(watcher.is_displaced);
        self.waiting_bytes -= watcher.waiting_bytes();
        self.asked.take_if(|asked| *asked == number);
        self.unwatched += usize::from(watcher.is_queued);
        if self.unwatched > self.waiting.len() / 2 {
            let (by_number, mut seen) = (&self.by_number, HashSet::new());
            let is_queued = |number: &u32| by_number.get(number).is_some_and(|watcher| watcher.is_queued);
            self.waiting.retain(|number| is_queued(number) && seen.insert(*number));
            self.unwatched = 0;
        }
    }

    /// Returns all watchers, consuming the table.
    pub(crate) fn into_all(self) -> impl Iterator<Item = (u32, Box<Watcher>)> {
        self.by_number.into_iter()
    }

    /// Returns the number of a channel's watcher whose call has the fingerprint `wanted`.
    pub(crate) fn of_channel(&self, wanted: u32, channel: &[u8]) -> Option<u32> {
        self.find(wanted, |watcher| watcher.channel().is_some_and(|name| **name == *channel))
    }

    /// Adds a watcher to the queue of watchers whose states wait for the socket.
    pub(crate) fn wait(&mut self, number: u32) {
        let Some(watcher) = self.by_number.get_mut(&number) else { return };
        if !std::mem::replace(&mut watcher.is_queued, true) {
            self.waiting.push_back(number);
        }
    }

    /// Returns whether states wait for the socket.
    pub(crate) fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Returns the bytes of all waiting states.
    pub(crate) fn waiting_bytes(&self) -> usize {
        self.waiting_bytes
    }

    /// Takes the next waiting state, with the number of its watcher. Returns `None` if the state of the first watcher
    /// was discarded while another query is being evaluated again.
    pub(crate) fn next_waiting(&mut self) -> Option<(u32, Waited)> {
        while let Some(&number) = self.waiting.front() {
            let watcher = self.by_number.get_mut(&number).filter(|watcher| watcher.is_queued);
            if watcher.as_ref().is_some_and(|watcher| watcher.is_missed) && self.asked.is_some() {
                return None;
            }
            self.waiting.pop_front();
            let Some(watcher) = watcher else {
                self.unwatched = self.unwatched.saturating_sub(1);
                continue;
            };
            watcher.is_queued = false;
            if let Some(waited) = self.take_waiting(number) {
                if matches!(waited, Waited::Missed(_)) {
                    self.asked = Some(number);
                }
                return Some((number, waited));
            }
        }
        None
    }

    /// Takes the waiting state of a watcher.
    pub(crate) fn take_waiting(&mut self, number: u32) -> Option<Waited> {
        self.edit(number, Watcher::take_waiting).flatten()
    }

    /// Records that a state has arrived for a watcher; returns whether its evaluation was requested, so that the next
    /// one may be requested.
    pub(crate) fn end_asking(&mut self, number: u32) -> bool {
        self.asked.take_if(|asked| *asked == number).is_some()
    }
}

impl Watcher {
    /// Returns whether states are sent as messages of a channel.
    pub(crate) fn is_channel(&self) -> bool {
        self.channel().is_some()
    }
}

#[cfg(test)]
mod tests {
    use ember_protocol::{OwnedBatch, Protocol};

    use super::*;

    fn query() -> Arc<LiveQuery> {
        let mut batch = OwnedBatch::new();
        batch.push(&[b"GET", b"k"]);
        Arc::new(LiveQuery::new(batch.command(0), 1, 0, Protocol::Resp2, 0).unwrap())
    }

    fn state(query: &Arc<LiveQuery>, sequence: u64, hash: u128) -> Arc<State> {
        let (query, since) = (Arc::clone(query), Instant::now());
        let account: &'static StatesAccount = Box::leak(Box::default());
        let memory = StateMemory::new(account, &[]);
        let body = Arc::default();
        Arc::new(State { query, sequence, record: None, hash, position: None, since, body, memory })
    }

    fn receive(watcher: &mut Watcher, state: &Arc<State>, is_congested: bool, now: Instant) -> Reception {
        watcher.receive(state, is_congested, now, |_| true)
    }

    fn watcher(query: &Arc<LiveQuery>, pace: Pace) -> Watcher {
        Watcher::new(query, &Form::Watch, pace, First::Sent(10, 1, None), 0)
    }

    #[test]
    fn a_watcher_is_small() {
        assert!(size_of::<Watcher>() <= 80, "{}", size_of::<Watcher>());
    }

    #[test]
    fn old_and_equal_states_are_not_sent() {
        let query = query();
        let now = Instant::now();
        let mut watcher = watcher(&query, Pace::default());
        assert_eq!(receive(&mut watcher, &state(&query, 10, 2), false, now), Reception::Known);
        assert_eq!(receive(&mut watcher, &state(&query, 11, 1), false, now), Reception::Known);
        assert_eq!(receive(&mut watcher, &state(&query, 11, 2), false, now), Reception::Send);
        watcher.sends_equal = true;
        assert_eq!(receive(&mut watcher, &state(&query, 12, 1), false, now), Reception::Send);
        assert_eq!(receive(&mut watcher, &state(&query, 10, 1), false, now), Reception::Known);
    }

    #[test]
    fn the_first_state_is_always_sent_unless_it_is_older() {
        let query = query();
        let now = Instant::now();
        let awaited = || AwaitedFirst { begun: now, since: None };
        let pace = Pace { interval: Duration::from_secs(1), sends_equal: false };
        let mut watcher = Watcher::new(&query, &Form::Watch, pace, First::Awaited(10, awaited()), 0);
        assert_eq!(receive(&mut watcher, &state(&query, 9, 2), false, now), Reception::Known);
        assert_eq!(receive(&mut watcher, &state(&query, 10, 0), false, now), Reception::Send);
        assert!(watcher.take_first().is_some() && watcher.take_first().is_none());
        watcher.record_sent(&state(&query, 10, 0), now);
        assert!(!watcher.is_new());
        assert_eq!(receive(&mut watcher, &state(&query, 10, 3), false, now), Reception::Known);
        let until = Reception::WaitsUntil(now + Duration::from_secs(1));
        assert_eq!(receive(&mut watcher, &state(&query, 11, 3), false, now), until);
    }

    #[test]
    fn a_slow_client_receives_the_newest_state_unless_it_is_equal() {
        let query = query();
        let now = Instant::now();
        let mut watcher = watcher(&query, Pace::default());
        assert_eq!(receive(&mut watcher, &state(&query, 11, 2), true, now), Reception::Waits);
        assert_eq!(receive(&mut watcher, &state(&query, 12, 3), true, now), Reception::Waits);
        assert_eq!((watcher.waiting.as_ref().unwrap().sequence, watcher.coalesced), (12, 1));
        assert_eq!(receive(&mut watcher, &state(&query, 13, 1), true, now), Reception::Known);
        assert!(watcher.waiting.is_none(), "the state equals the last one sent");
    }

    #[test]
    fn an_interval_delays_the_newest_state() {
        let query = query();
        let now = Instant::now();
        let interval = Duration::from_millis(100);
        let mut watcher = watcher(&query, Pace { interval, sends_equal: false });
        watcher.record_sent(&state(&query, 11, 2), now);
        let until = Reception::WaitsUntil(now + interval);
        assert_eq!(receive(&mut watcher, &state(&query, 12, 3), false, now), until);
        assert_eq!(receive(&mut watcher, &state(&query, 13, 4), false, now + interval), Reception::Send);
    }

    #[test]
    fn different_queries_have_different_numbers() {
        let (one, other) = (query(), query());
        let mut watchers = Watchers::default();
        watchers.enter(7, 7, watcher(&one, Pace::default()));
        assert_eq!(watchers.number_of(7, &one, &Form::Open), Some(7));
        assert_eq!(watchers.number_of(7, &one, &Form::Channel(b"c".as_slice().into())), None);
        assert_eq!((watchers.number_of(7, &other, &Form::Watch), watchers.free_number(7)), (None, 8));
        watchers.enter(8, 7, watcher(&other, Pace::default()));
        assert_eq!(watchers.number_of(7, &other, &Form::Watch), Some(8));
    }

    #[test]
    fn a_watcher_with_a_displaced_number_is_found_after_its_number_is_freed() {
        let (one, other) = (query(), query());
        let mut watchers = Watchers::default();
        watchers.enter(7, 7, watcher(&one, Pace::default()));
        watchers.enter(8, 7, watcher(&other, Pace::default()));
        watchers.leave(7);
        assert_eq!(watchers.number_of(7, &other, &Form::Watch), Some(8));
        watchers.leave(8);
        assert_eq!((watchers.number_of(7, &other, &Form::Watch), watchers.displaced), (None, 0));
    }

    #[test]
    fn unretained_states_are_requested_one_by_one() {
        let query = query();
        let now = Instant::now();
        let mut watchers = Watchers::default();
        for number in 0..3 {
            watchers.enter(number, number, watcher(&query, Pace::default()));
            let refuse = |_: &State| false;
            let received = watchers.edit(number, |it| it.receive(&state(&query, 11, 2), true, now, refuse));
            assert_eq!(received, Some(Reception::Waits));
            watchers.wait(number);
        }
        let newer = state(&query, 12, 3);
        watchers.edit(1, |it| receive(it, &newer, true, now));
        assert_eq!(watchers.waiting_bytes(), newer.memory.bytes());
        assert_eq!(newer.memory.account.under_way(), 0);
        assert!(matches!(watchers.next_waiting(), Some((0, Waited::Missed(_)))));
        assert!(matches!(watchers.next_waiting(), Some((1, Waited::State(_)))), "this state was retained");
        assert!(watchers.next_waiting().is_none() && watchers.has_waiting() && watchers.waiting_bytes() == 0);
        assert!(!watchers.end_asking(2) && watchers.end_asking(0));
        assert!(matches!(watchers.next_waiting(), Some((2, Waited::Missed(_)))));
        watchers.leave(2);
        assert!(watchers.asked.is_none() && !watchers.has_waiting());
        let account = newer.memory.account;
        assert!(account.all() > 0);
        drop(newer);
        assert_eq!(account.all(), 0);
    }

    #[test]
    fn the_queue_of_states_does_not_grow_with_removed_watchers() {
        let query = query();
        let mut watchers = Watchers::default();
        for number in 0..20_000 {
            watchers.enter(number % 100, number % 100, watcher(&query, Pace::default()));
            watchers.wait(number % 100);
            if number % 3 == 0 {
                watchers.leave(number % 100);
            }
        }
        assert!(watchers.waiting.len() <= 300, "{}", watchers.waiting.len());
        while watchers.next_waiting().is_some() {}
        assert_eq!((watchers.unwatched, watchers.has_waiting()), (0, false));
    }
}
