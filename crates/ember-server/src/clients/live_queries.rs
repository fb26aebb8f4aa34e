//! What a connection watches: its interest in live queries, and their states on the way to it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ember_cluster::replication::position::Position;
use emberkv_core::live_query::LiveQuery;

use super::subscriptions::Name;

/// A live query that is to be run again.
#[derive(Debug)]
pub(crate) struct Marked {
    pub(crate) query: Arc<LiveQuery>,
    /// When the batch began in which one of its keys has changed.
    pub(crate) since: Instant,
}

/// The result of a live query at one moment.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) query: Arc<LiveQuery>,
    /// The number of the moment: later ones have higher numbers.
    pub(crate) sequence: u64,
    /// The result is that of the keyspace after the records of the journal up to this one, if there are records.
    pub(crate) record: Option<u64>,
    pub(crate) hash: u128,
    /// Where it stands in the stream of replication, once that is known; nothing without one.
    pub(crate) position: Option<Position>,
    /// When the first change began that it shows and the one before does not.
    pub(crate) since: Instant,
    /// The result as the command replies it.
    pub(crate) body: Arc<Vec<u8>>,
}

/// A state, and the workers whose connections are to be told of it.
pub(crate) type News = (State, Vec<u16>);

/// The run of a live query on a thread of its own is over.
pub(crate) struct EndedRun {
    pub(crate) query: Arc<LiveQuery>,
    pub(crate) took: Duration,
    /// None if all know the result.
    pub(crate) news: Option<News>,
}

/// How a client is told of states.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// As `GET.WATCH` does.
    Watch,
    /// As `WATCH.OPEN` does: with the version in every protocol.
    Open,
    /// As messages of a channel.
    Channel(Name),
}

/// How often a client is told.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pace {
    /// Also of results that equal the last one.
    pub(crate) wants_equal: bool,
    /// Not before this time has passed since the last one.
    pub(crate) interval: Duration,
}

/// What a client is told first.
pub(crate) enum First {
    /// It was sent the state with this number and hash.
    Sent(u64, u128),
    /// The first state with this number or a higher one is run for it elsewhere.
    Awaited(u64, AwaitedFirst),
}

/// A call that has begun to watch and is answered when there is a state.
#[derive(Debug)]
pub(crate) struct AwaitedFirst {
    /// When the call began.
    pub(crate) begun: Instant,
    /// The version of the state that the client has, with its hash.
    pub(crate) since: Option<(Box<str>, u128)>,
}

/// One interest in a query. There may be millions, nearly all of them without [`Extra`].
#[derive(Debug)]
pub(crate) struct Watcher {
    pub(crate) query: Arc<LiveQuery>,
    /// The number and the hash of the last state that it was sent; before the first one the number that this has at least.
    pub(crate) sequence: u64,
    pub(crate) hash: u128,
    /// The generation of the users when its rights were looked at.
    pub(crate) generation: u64,
    /// The newest state, if that has to wait.
    pub(crate) waiting: Option<Arc<State>>,
    /// States that it was sent, and those that newer ones have replaced before.
    pub(crate) sent: u64,
    pub(crate) coalesced: u64,
    extra: Option<Box<Extra>>,
    wants_equal: bool,
    /// Whether it is told versions in every protocol.
    is_open: bool,
}

/// What few watchers have.
#[derive(Debug)]
struct Extra {
    channel: Option<Name>,
    interval: Duration,
    /// When it may be sent the next state, if not at once.
    not_before: Option<Instant>,
    /// Until it is sent its first state.
    first: Option<AwaitedFirst>,
}

/// About what the place of a watcher takes in the tables of its connection and of its query, in bytes.
const PLACE_BYTES: usize = 56;

/// What becomes of a state that has come for a watcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reception {
    /// It is to be sent.
    Send,
    /// The client knows it, or a newer one.
    Known,
    /// It waits for the socket.
    Waits,
    /// It waits until then.
    WaitsUntil(Instant),
}

impl Extra {
    fn begin_interval(&mut self, now: Instant) {
        self.not_before = now.checked_add(self.interval).filter(|_| !self.interval.is_zero());
    }
}

impl Watcher {
    /// One whose rights were looked at in this generation.
    pub(crate) fn new(
        query: &Arc<LiveQuery>,
        form: &Form,
        pace: Pace,
        first: First,
        generation: u64,
    ) -> Watcher {
        let channel = if let Form::Channel(name) = form { Some(Arc::clone(name)) } else { None };
        let (sequence, hash, sent, first) = match first {
            First::Sent(sequence, hash) => (sequence, hash, 1, None),
            First::Awaited(sequence, first) => (sequence, 0, 0, Some(first)),
        };
        let extra = (channel.is_some() || !pace.interval.is_zero() || first.is_some()).then(|| {
            let mut extra = Box::new(Extra { channel, interval: pace.interval, not_before: None, first });
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
            wants_equal: pace.wants_equal,
            is_open: *form == Form::Open,
        }
    }

    /// How its client is told.
    pub(crate) fn form(&self) -> Form {
        match self.channel() {
            Some(name) => Form::Channel(Arc::clone(name)),
            None if self.is_open => Form::Open,
            None => Form::Watch,
        }
    }

    /// The channel whose messages its states are, if they are.
    pub(crate) fn channel(&self) -> Option<&Name> {
        self.extra.as_ref()?.channel.as_ref()
    }

    /// About the memory in bytes that it takes.
    pub(crate) fn memory_bytes(&self) -> usize {
        let extra = if self.extra.is_some() { size_of::<Extra>() } else { 0 };
        size_of::<Watcher>() + PLACE_BYTES + extra
    }

    /// Whether it was sent nothing yet.
    pub(crate) fn is_new(&self) -> bool {
        self.sent == 0
    }

    /// Whether it waits for this end of its interval, with a state to be sent then.
    pub(crate) fn waits_until(&self, at: Instant) -> bool {
        self.waiting.is_some() && self.extra.as_ref().is_some_and(|extra| extra.not_before == Some(at))
    }

    /// Its call that is answered with the first state, as long as it was sent none.
    pub(crate) fn take_first(&mut self) -> Option<AwaitedFirst> {
        self.extra.as_mut()?.first.take()
    }

    /// Receives a state; `is_congested` says that the client has much to read already.
    pub(crate) fn receive(&mut self, state: &Arc<State>, is_congested: bool, now: Instant) -> Reception {
        let is_new = self.is_new();
        if state.sequence < self.sequence || (state.sequence == self.sequence && !is_new) {
            return Reception::Known;
        }
        if state.hash == self.hash && !self.wants_equal && !is_new {
            // One that waits is older.
            self.coalesced += u64::from(self.waiting.take().is_some());
            return Reception::Known;
        }
        let not_before = self.extra.as_ref().and_then(|extra| extra.not_before).filter(|&time| time > now);
        if !is_congested && not_before.is_none() {
            return Reception::Send;
        }
        let newer = self.waiting.as_ref().is_none_or(|waiting| waiting.sequence < state.sequence);
        self.coalesced += u64::from(self.waiting.is_some() || !newer);
        if newer {
            self.waiting = Some(Arc::clone(state));
        }
        not_before.map_or(Reception::Waits, Reception::WaitsUntil)
    }

    /// Notes that it was sent a state.
    pub(crate) fn note_sent(&mut self, state: &State, now: Instant) {
        (self.sequence, self.hash) = (state.sequence, state.hash);
        self.sent += 1;
        self.waiting = None;
        if let Some(extra) = &mut self.extra {
            extra.begin_interval(now);
        }
    }
}

/// All that one connection watches, by the numbers that it knows them by.
#[derive(Debug, Default)]
pub(crate) struct Watchers {
    by_number: BTreeMap<u32, Box<Watcher>>,
    /// Those whose states wait for the socket, in the order they came.
    waiting: VecDeque<u32>,
    /// Since when a call waits for the server to have what the client has seen of another.
    pub(crate) behind_since: Option<Instant>,
}

impl Watchers {
    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.by_number.is_empty()
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.by_number.len()
    }

    /// Those there are, by ascending number.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &Watcher)> {
        self.by_number.iter().map(|(&number, watcher)| (number, &**watcher))
    }

    /// The watcher with a number.
    pub(crate) fn get_mut(&mut self, number: u32) -> Option<&mut Watcher> {
        self.by_number.get_mut(&number).map(Box::as_mut)
    }

    /// The number of the watcher of a query in a form; the forms of commands are alike.
    pub(crate) fn number_of(&self, wanted: u32, query: &Arc<LiveQuery>, form: &Form) -> Option<u32> {
        let is_it = |watcher: &Watcher| {
            Arc::ptr_eq(&watcher.query, query)
                && match form {
                    Form::Channel(name) => watcher.channel() == Some(name),
                    Form::Watch | Form::Open => watcher.channel().is_none(),
                }
        };
        self.numbers_from(wanted)
            .map_while(|number| Some((number, self.by_number.get(&number)?)))
            .find_map(|(number, watcher)| is_it(watcher).then_some(number))
    }

    /// The first free number from this one on.
    pub(crate) fn free_number(&self, wanted: u32) -> u32 {
        let mut numbers = self.numbers_from(wanted);
        numbers.find(|number| !self.by_number.contains_key(number)).unwrap_or(wanted)
    }

    fn numbers_from(&self, wanted: u32) -> impl Iterator<Item = u32> + use<> {
        (0..=u32::MAX).map(move |step| wanted.wrapping_add(step))
    }

    /// Enters a watcher; returns that which had its number.
    pub(crate) fn enter(&mut self, number: u32, watcher: Watcher) -> Option<Box<Watcher>> {
        self.by_number.insert(number, Box::new(watcher))
    }

    /// Takes a watcher out.
    pub(crate) fn leave(&mut self, number: u32) -> Option<Box<Watcher>> {
        self.by_number.remove(&number)
    }

    /// All of them, taken out.
    pub(crate) fn into_all(self) -> impl Iterator<Item = (u32, Box<Watcher>)> {
        self.by_number.into_iter()
    }

    /// The number of the watcher of a channel.
    pub(crate) fn of_channel(&self, channel: &[u8]) -> Option<u32> {
        let is_it = |watcher: &Watcher| watcher.channel().is_some_and(|name| **name == *channel);
        self.iter().find(|(_, watcher)| is_it(watcher)).map(|(number, _)| number)
    }

    /// Lets the state of a watcher wait for the socket.
    pub(crate) fn wait(&mut self, number: u32) {
        if !self.waiting.contains(&number) {
            self.waiting.push_back(number);
        }
    }

    /// Whether states wait for the socket.
    pub(crate) fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// The next watcher whose state waits for the socket.
    pub(crate) fn next_waiting(&mut self) -> Option<u32> {
        self.waiting.pop_front()
    }
}

impl Watcher {
    /// Whether it is told by messages of a channel.
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
        Arc::new(State { query, sequence, record: None, hash, position: None, since, body: Arc::default() })
    }

    fn watcher(query: &Arc<LiveQuery>, pace: Pace) -> Watcher {
        Watcher::new(query, &Form::Watch, pace, First::Sent(10, 1), 0)
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
        assert_eq!(watcher.receive(&state(&query, 10, 2), false, now), Reception::Known);
        assert_eq!(watcher.receive(&state(&query, 11, 1), false, now), Reception::Known);
        assert_eq!(watcher.receive(&state(&query, 11, 2), false, now), Reception::Send);
        watcher.wants_equal = true;
        assert_eq!(watcher.receive(&state(&query, 12, 1), false, now), Reception::Send);
        assert_eq!(watcher.receive(&state(&query, 10, 1), false, now), Reception::Known);
    }

    #[test]
    fn the_first_state_is_sent_whatever_it_is_but_none_from_before() {
        let query = query();
        let now = Instant::now();
        let awaited = || AwaitedFirst { begun: now, since: None };
        let pace = Pace { interval: Duration::from_secs(1), wants_equal: false };
        let mut watcher = Watcher::new(&query, &Form::Watch, pace, First::Awaited(10, awaited()), 0);
        assert_eq!(watcher.receive(&state(&query, 9, 2), false, now), Reception::Known);
        assert_eq!(watcher.receive(&state(&query, 10, 0), false, now), Reception::Send);
        assert!(watcher.take_first().is_some() && watcher.take_first().is_none());
        watcher.note_sent(&state(&query, 10, 0), now);
        assert!(!watcher.is_new());
        assert_eq!(watcher.receive(&state(&query, 10, 3), false, now), Reception::Known);
        let until = Reception::WaitsUntil(now + Duration::from_secs(1));
        assert_eq!(watcher.receive(&state(&query, 11, 3), false, now), until);
    }

    #[test]
    fn a_slow_client_gets_the_newest_state_unless_it_has_it() {
        let query = query();
        let now = Instant::now();
        let mut watcher = watcher(&query, Pace::default());
        assert_eq!(watcher.receive(&state(&query, 11, 2), true, now), Reception::Waits);
        assert_eq!(watcher.receive(&state(&query, 12, 3), true, now), Reception::Waits);
        assert_eq!((watcher.waiting.as_ref().unwrap().sequence, watcher.coalesced), (12, 1));
        assert_eq!(watcher.receive(&state(&query, 13, 1), true, now), Reception::Known);
        assert!(watcher.waiting.is_none(), "what it was sent last is the state again");
    }

    #[test]
    fn an_interval_keeps_the_newest_state_back() {
        let query = query();
        let now = Instant::now();
        let interval = Duration::from_millis(100);
        let mut watcher = watcher(&query, Pace { interval, wants_equal: false });
        watcher.note_sent(&state(&query, 11, 2), now);
        let until = Reception::WaitsUntil(now + interval);
        assert_eq!(watcher.receive(&state(&query, 12, 3), false, now), until);
        assert_eq!(watcher.receive(&state(&query, 13, 4), false, now + interval), Reception::Send);
    }

    #[test]
    fn numbers_of_different_queries_never_meet() {
        let (one, other) = (query(), query());
        let mut watchers = Watchers::default();
        watchers.enter(7, watcher(&one, Pace::default()));
        assert_eq!(watchers.number_of(7, &one, &Form::Open), Some(7));
        assert_eq!(watchers.number_of(7, &one, &Form::Channel(b"c".as_slice().into())), None);
        assert_eq!((watchers.number_of(7, &other, &Form::Watch), watchers.free_number(7)), (None, 8));
        watchers.enter(8, watcher(&other, Pace::default()));
        assert_eq!(watchers.number_of(7, &other, &Form::Watch), Some(8));
    }
}
