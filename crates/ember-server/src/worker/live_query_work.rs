//! A worker's part in live queries: it evaluates the queries that it owns, and sends new states to its connections.
//!
//! The work per turn is limited, because the worker's other connections have to wait.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use ember_protocol::Reply;
use emberkv_core::error::CommandError;
use emberkv_core::keys::Guards;
use emberkv_core::live_query::{LiveQuery, Receiver};

use super::Worker;
use super::connections::{connection_of, list};
use super::serving::lend_buffer;
use super::waits::Ending;
use crate::clients::connection::Connection;
use crate::clients::mailbox::Message;
use crate::clients::watchers::{
    AwaitedFirst, EndedRun, Marked, Reception, State, Update, Waited, Watcher, Watchers,
};
use crate::executor::jobs::{Finished, Settled};
use crate::live_queries::LiveQueries;
use crate::live_queries::evaluation::{Renewed, renew};
use crate::live_queries::fair_queue::FairQueue;
use crate::live_queries::long_runs::DELAY_FACTOR;
use crate::live_queries::opening::{self, Refused};
use crate::live_queries::version;
use crate::live_queries::writing::{self, Written};
use crate::replication::primary::Primary;
use crate::replication::primary::position::Standing;
use crate::server::Server;

/// The time limit for evaluations in one turn; the last evaluation may exceed it.
const EVALUATION_SLICE: Duration = Duration::from_micros(200);

/// The run time from which on an evaluation delays the next one of its query, by four times that run time. So a query
/// takes at most a fifth of a worker's time. Shorter evaluations run once per turn.
const DELAYING_RUN: Duration = Duration::from_micros(50);

/// The maximum number of long-running queries that are checked per turn to find one that may run.
const LONG_TRIED_MAX: usize = 64;

/// The interval at which a state without a position in the replication stream is checked again.
const PLACE_AWAITED: Duration = Duration::from_micros(500);

/// The delay of evaluations while the unsent states of all queries together use up the memory limit.
const MEMORY_RETRY_DELAY: Duration = Duration::from_millis(5);

/// The maximum number of connections to which states are sent in one turn.
const RECEIVERS_PER_TURN: usize = 256;

/// The maximum number of watchers of closed connections that are removed in one turn.
const LEFT_MAX: usize = 256;

/// The interval ends of removed watchers are not purged while there are fewer than twice this number of interval ends.
const INTERVALS_MIN: usize = 1024;

/// The unsent bytes of a connection from which on only the newest state of each query is stored for it.
const CONGESTED_BYTES: usize = 64 * 1024;

/// A worker's pending work for live queries.
#[derive(Default)]
pub(super) struct QueryWork {
    /// Queries to be evaluated.
    marked: FairQueue,
    /// The time at which evaluations are retried, if they wait for memory.
    memory_retry_at: Option<Instant>,
    /// Queries that must not be evaluated before a time.
    delayed: BTreeMap<(Instant, usize), Marked>,
    /// Long-running queries that wait for other queries on their keys or for a thread, and the time at which they are
    /// retried.
    long: FairQueue,
    long_at: Option<Instant>,
    /// Queries that are being evaluated on job threads, by address, and their marks since the evaluation began.
    running: HashMap<usize, Option<Marked>>,
    /// The newest states that have no position in the replication stream yet, by the query's address, and the time at
    /// which they are checked again.
    unplaced: HashMap<usize, Update>,
    placed_at: Option<Instant>,
    /// The state that is being sent.
    delivery: Option<Delivery>,
    /// The newest unsent state of each query, by the query's address, and the addresses in order of arrival.
    unsent: HashMap<usize, Arc<State>>,
    unsent_order: VecDeque<usize>,
    intervals: Intervals,
    /// Watchers of closed connections that are still to be removed from their queries.
    left: Vec<(Receiver, Box<Watcher>)>,
}

/// The end of a watcher's interval: the time, the connection's token, the client id, and the watcher's number.
type IntervalEnd = (Instant, usize, u64, u32);

/// The times at which watchers' intervals end. The times of removed watchers remain until they pass, possibly for a
/// day, unless there are many.
#[derive(Default)]
struct Intervals {
    ends: BTreeSet<IntervalEnd>,
    /// The number of ends that remained after the last purge.
    kept: usize,
}

impl Intervals {
    /// Adds the end of an interval. If the number of ends has doubled since the last purge, the ends for which
    /// `is_awaited` returns false are purged first.
    fn insert(&mut self, end: IntervalEnd, is_awaited: impl FnMut(&IntervalEnd) -> bool) {
        if self.ends.len() >= 2 * self.kept.max(INTERVALS_MIN) {
            self.ends.retain(is_awaited);
            self.kept = self.ends.len();
        }
        self.ends.insert(end);
    }

    fn first(&self) -> Option<Instant> {
        self.ends.first().map(|&(at, ..)| at)
    }

    /// Removes and returns an interval end that is due.
    fn pop_due(&mut self, now: Instant) -> Option<IntervalEnd> {
        self.first().filter(|&at| at <= now)?;
        self.ends.pop_first()
    }
}

/// The delivery of a state to its receivers.
struct Delivery {
    state: Arc<State>,
    /// The receivers. A client that begins to watch later has already read this state or a newer one, under the locks
    /// of the keys.
    receivers: Vec<Receiver>,
    /// The number of receivers to which the state was sent.
    sent: usize,
    /// The state in its last encoding, which is reused for receivers that need the same encoding.
    written: Option<Written>,
}

impl QueryWork {
    /// Returns whether there is immediate work.
    pub(super) fn is_due(&self, server: &Server) -> bool {
        let has_states = self.delivery.is_some() || !self.unsent_order.is_empty();
        let runs = !self.marked.is_empty() && self.memory_retry_at.is_none() && !server.is_loading();
        has_states || !self.left.is_empty() || runs
    }

    /// Returns the time at which the next work is due.
    pub(super) fn next_at(&self) -> Option<Instant> {
        let delayed = self.delayed.first_key_value().map(|(&(at, _), _)| at);
        let times = [self.intervals.first(), self.placed_at, self.memory_retry_at, self.long_at];
        delayed.into_iter().chain(times.into_iter().flatten()).min()
    }

    fn is_idle(&self) -> bool {
        let has_states = self.delivery.is_some() || !self.unsent_order.is_empty();
        let is_empty = self.marked.is_empty() && self.delayed.is_empty() && self.intervals.ends.is_empty();
        is_empty && !has_states && self.long.is_empty() && self.left.is_empty() && self.unplaced.is_empty()
    }

    /// Adds a query to be evaluated.
    pub(super) fn mark(&mut self, marked: Marked) {
        self.marked.push(marked);
    }

    /// Queues a long-running query that is to be retried at time `until`.
    fn wait(&mut self, marked: Marked, until: Instant) {
        self.long.push(marked);
        self.long_at = Some(self.long_at.map_or(until, |at| at.min(until)));
    }

    /// Takes the next long-running query that may run now.
    fn take_up_long(&mut self, server: &Server, now: Instant) {
        let runs = LiveQueries::of(server).long_runs();
        self.long_at = None;
        for _ in 0..self.long.len().min(LONG_TRIED_MAX) {
            let Some(marked) = self.long.pop() else { return };
            let call = marked.query.call();
            let positions = server.registry.get(marked.query.command).spec.key_positions(call);
            let keys: Vec<&[u8]> = positions.map(|arg| call.at(arg)).collect();
            match runs.busy_until(keys, server.workers.len(), now) {
                Some(until) => self.wait(marked, until),
                None => {
                    self.marked.push(marked);
                    // The others are checked when this query runs.
                    self.long_at = (!self.long.is_empty()).then_some(now);
                    return;
                }
            }
        }
    }
}

impl Worker {
    /// Does this turn's share of the work for live queries.
    pub(super) fn work_on_queries(&mut self) {
        if self.executor.marked.is_empty() && self.queries.is_idle() {
            return;
        }
        self.queries.marked.extend(self.executor.marked.drain(..));
        let now = Instant::now();
        while let Some(entry) = self.queries.delayed.first_entry().filter(|entry| entry.key().0 <= now) {
            self.queries.marked.push(entry.remove());
        }
        if self.queries.long_at.is_some_and(|at| at <= now) {
            self.queries.take_up_long(self.server, now);
        }
        self.queries.memory_retry_at.take_if(|at| *at <= now);
        if !self.queries.marked.is_empty()
            && self.queries.memory_retry_at.is_none()
            && !self.server.is_loading()
        {
            self.run_marked(now);
        }
        self.end_intervals(now);
        if self.queries.placed_at.is_some_and(|at| at <= now) {
            self.queries.placed_at = None;
            std::mem::take(&mut self.queries.unplaced)
                .into_values()
                .for_each(|update| self.send_update(update));
        }
        self.send_states();
        for _ in 0..LEFT_MAX {
            let Some((receiver, watcher)) = self.queries.left.pop() else { break };
            opening::leave(self.server, &mut self.executor.turn, receiver, &watcher);
        }
    }

    /// Evaluates marked queries for [`EVALUATION_SLICE`].
    fn run_marked(&mut self, begun: Instant) {
        if !self.executor.enter_gate() {
            return; // a script runs for long; the next turn tries again
        }
        let mut states = Vec::new();
        let mut now = begun;
        // Queries that are marked during this turn are evaluated in the next one.
        for _ in 0..self.queries.marked.len() {
            if !LiveQueries::of(self.server).may_run(self.executor.config.watch_max_memory) {
                self.queries.memory_retry_at = Some(now + MEMORY_RETRY_DELAY);
                break;
            }
            let Some(marked) = self.queries.marked.pop() else { break };
            let query = Arc::clone(&marked.query);
            let name = Arc::as_ptr(&query).addr();
            if let Some(next) = self.queries.running.get_mut(&name) {
                next.get_or_insert(marked);
                continue;
            }
            let since = |time: u64| self.server.started + Duration::from_nanos(time);
            let not_before = since(query.not_before.load(Ordering::Relaxed));
            if not_before > now {
                self.queries.delayed.insert((not_before, name), marked);
                continue;
            }
            match renew(&mut self.executor, &marked) {
                Renewed::Known => {}
                Renewed::Update(update) => states.push(update),
                Renewed::Runs => _ = self.queries.running.insert(name, None),
                Renewed::Waits(until) => self.queries.wait(marked, until),
            }
            let ended = Instant::now();
            self.record_run(&query, ended - now, ended);
            now = ended;
            if now - begun >= EVALUATION_SLICE {
                break;
            }
        }
        self.executor.deliver(&mut Guards::None, None);
        self.server.gate.leave(self.executor.index);
        self.executor.publish();
        states.into_iter().for_each(|update| self.send_update(update));
    }

    /// Counts the time of an evaluation, and delays the next evaluation of the same query.
    fn record_run(&self, query: &LiveQuery, took: Duration, ended: Instant) {
        self.executor.stats.query_nanoseconds.add(took.as_nanos() as u64);
        if took >= DELAYING_RUN {
            let until = ended + took * DELAY_FACTOR - self.server.started;
            query.not_before.store(until.as_nanos() as u64, Ordering::Relaxed);
        }
    }

    /// Sends a state to the workers with watchers, with its position in the replication stream. A state that has no
    /// position yet is sent later.
    fn send_update(&mut self, (mut state, workers): Update) {
        state.position = match Primary::of(self.server).standing(self.server, state.record) {
            Standing::Nowhere => None,
            Standing::At(position) => Some(position),
            Standing::NotYet => {
                self.server.journal.pass_on_published();
                // A state of the same query that is already in the map is older.
                self.queries.unplaced.insert(Arc::as_ptr(&state.query).addr(), (state, workers));
                self.queries.placed_at.get_or_insert_with(|| Instant::now() + PLACE_AWAITED);
                return;
            }
        };
        let state = Arc::new(state);
        for worker in workers.into_iter().map(usize::from) {
            if worker == self.executor.index {
                self.accept_state(Arc::clone(&state));
            } else {
                self.server.workers[worker].mailbox.send(Message::State(Arc::clone(&state)));
            }
        }
    }

    /// Accepts the results of job threads, and queues the queries that were marked during their evaluation.
    pub(super) fn end_evaluations(&mut self) {
        let now = Instant::now();
        for EndedRun { query, took, update } in std::mem::take(&mut self.executor.ended_runs) {
            self.record_run(&query, took, now);
            let next = self.queries.running.remove(&Arc::as_ptr(&query).addr());
            self.queries.marked.extend(next.flatten());
            update.into_iter().for_each(|update| self.send_update(update));
        }
        if !self.queries.long.is_empty() {
            self.queries.long_at = Some(now);
        }
    }

    /// Adds a state to be sent to this worker's connections; it replaces an older one of the same query.
    pub(super) fn accept_state(&mut self, state: Arc<State>) {
        let QueryWork { unsent, unsent_order, .. } = &mut self.queries;
        match unsent.entry(Arc::as_ptr(&state.query).addr()) {
            Entry::Occupied(mut entry) if entry.get().sequence < state.sequence => _ = entry.insert(state),
            Entry::Occupied(_) => {}
            Entry::Vacant(entry) => {
                unsent_order.push_back(*entry.key());
                entry.insert(state);
            }
        }
    }

    /// Sends states to at most [`RECEIVERS_PER_TURN`] connections.
    fn send_states(&mut self) {
        let mut left = RECEIVERS_PER_TURN;
        while left > 0
            && let Some(mut delivery) = self.next_delivery()
        {
            let Delivery { state, receivers, sent, written } = &mut delivery;
            let until = receivers.len().min(*sent + left);
            let now = Instant::now();
            for &receiver in &receivers[*sent..until] {
                self.send_to(state, receiver, now, written);
            }
            left -= until - *sent;
            *sent = until;
            if until < receivers.len() {
                self.queries.delivery = Some(delivery);
            }
        }
    }

    /// Returns the delivery in progress, or begins the next one.
    fn next_delivery(&mut self) -> Option<Delivery> {
        if let Some(delivery) = self.queries.delivery.take() {
            return Some(delivery);
        }
        let query = self.queries.unsent_order.pop_front()?;
        let state = self.queries.unsent.remove(&query)?;
        let worker = self.executor.index;
        let receivers = state.query.with_audience(|audience| audience.receivers_of(worker).collect());
        Some(Delivery { state, receivers, sent: 0, written: None })
    }

    /// Passes a state to one connection, which receives it now or later; `written` is the state's last encoding.
    fn send_to(
        &mut self,
        state: &Arc<State>,
        receiver: Receiver,
        now: Instant,
        written: &mut Option<Written>,
    ) {
        let Receiver { token, client_id, number } = receiver;
        let token = token as usize;
        let Some(connection) = connection_of(&mut self.connections.all, token, client_id) else { return };
        let is_congested = connection.unsent_bytes() >= CONGESTED_BYTES;
        let (live, bytes_max) = (LiveQueries::of(self.server), self.executor.config.watch_max_memory);
        let Some(watchers) = watchers_of(connection) else { return };
        let received = watchers.edit(number, |watcher| {
            // The number may since have been assigned to another query.
            Arc::ptr_eq(&watcher.query, &state.query).then(|| {
                let coalesced = watcher.coalesced;
                let may_keep = |state: &State| live.may_keep(state, bytes_max);
                let reception = watcher.receive(state, is_congested, now, may_keep);
                (reception, watcher.coalesced - coalesced)
            })
        });
        let Some((reception, coalesced)) = received.flatten() else { return };
        let may_ask = watchers.end_asking(number);
        let waiting_bytes = watchers.waiting_bytes();
        self.executor.client_memory.set(&connection.client.view.state_bytes, waiting_bytes);
        self.executor.stats.query_coalesced.add(coalesced);
        if may_ask {
            list(&mut self.connections.ready, connection, token); // others have waited for this one
        }
        match reception {
            Reception::Known => {}
            Reception::Waits => {
                if let Some(watchers) = watchers_of(connection) {
                    watchers.wait(number);
                }
            }
            Reception::WaitsUntil(time) => {
                let connections = &mut self.connections.all;
                self.queries.intervals.insert(
                    (time, token, client_id, number),
                    |&(at, token, client, number)| {
                        let connection = connection_of(connections, token, client);
                        let watcher = connection.and_then(watchers_of).and_then(|all| all.get_mut(number));
                        watcher.is_some_and(|watcher| watcher.waits_until(at))
                    },
                );
            }
            Reception::Send => self.write_state(state, receiver, now, written),
        }
    }

    /// Writes a state to a connection, if the client's user still has the right to read it.
    fn write_state(
        &mut self,
        state: &Arc<State>,
        receiver: Receiver,
        now: Instant,
        written: &mut Option<Written>,
    ) {
        let Receiver { token, client_id, number } = receiver;
        let token = token as usize;
        let Some(connection) = connection_of(&mut self.connections.all, token, client_id) else { return };
        if connection.is_closing() {
            return;
        }
        lend_buffer(&mut self.buffers, connection);
        list(&mut self.connections.ready, connection, token);
        let client = &mut connection.client;
        if client.is_user_stale() && !client.refresh_user() {
            connection.begin_closing();
            return;
        }
        let refused = opening::check_rights(self.server, client, number);
        let Some(watchers) = client.subscriptions.as_mut().map(|all| &mut all.queries) else { return };
        let Some(watcher) = watchers.get_mut(number) else { return };
        let is_new = watcher.is_new();
        if let Some(first) = watcher.take_first().filter(|_| !watcher.is_channel()) {
            return self.answer_first(state, receiver, &first, refused);
        }
        if let Err(Refused(error)) = refused {
            let form = watcher.form();
            let text = version::text(self.server, state.sequence, state.hash, state.position);
            writing::write_end(number, &form, &state.query, &text, &error, &mut connection.output);
            opening::end(self.server, &mut self.executor.turn, &mut connection.client, number);
            return;
        }
        let form = watcher.form();
        let grown = watchers.edit(number, |watcher| watcher.record_sent(state, now));
        LiveQueries::of(self.server).count_growth(grown.unwrap_or(0));
        let protocol = connection.output.protocol();
        written.take_if(|written| !written.is_for(number, &form, protocol));
        written
            .get_or_insert_with(|| Written::new(self.server, number, form, protocol, state))
            .write(&mut connection.output);
        self.executor.stats.query_sent.add(1);
        if !is_new {
            let lag = now.saturating_duration_since(state.since);
            self.executor.stats.query_lag.count(1, lag.as_nanos() as u64, true);
        }
        connection.acknowledges = connection.acknowledges.max(state.record.unwrap_or(0));
    }

    /// Answers a call that has begun a watch and has waited for the first state.
    fn answer_first(
        &mut self,
        state: &State,
        receiver: Receiver,
        first: &AwaitedFirst,
        refused: Result<(), Refused>,
    ) {
        let Receiver { token, client_id, number } = receiver;
        let token = token as usize;
        let Some(connection) = connection_of(&mut self.connections.all, token, client_id) else { return };
        let Some(blocked) = &connection.blocked else { return };
        let command = self.server.registry.get(blocked.waiter.command);
        let mut reply = Box::new(Reply::new(connection.output.protocol()));
        let result = match refused {
            Ok(()) => {
                let watcher = watchers_of(connection).and_then(|watchers| watchers.get_mut(number));
                let Some(watcher) = watcher else { return };
                LiveQueries::of(self.server).count_growth(watcher.record_sent(state, Instant::now()));
                let since = first.since.as_ref().filter(|(_, hash)| *hash == state.hash);
                let given = since.map(|(text, _)| &**text);
                writing::write_first(self.server, number, &watcher.form(), state, given, &mut reply);
                Ok(())
            }
            Err(Refused(error)) => {
                opening::end(self.server, &mut self.executor.turn, &mut connection.client, number);
                Err(CommandError::from(String::from_utf8_lossy(&error).into_owned()))
            }
        };
        let Some(connection) = connection_of(&mut self.connections.all, token, client_id) else { return };
        let (client, args, begun) = (&*connection.client.view, state.query.call(), first.begun);
        let call = Finished { client, command, args, wire_bytes_max: 0, begun, keys: &[] };
        let Settled { reply, .. } = self.executor.finish_job(&call, result, reply);
        self.end_waiting(token, client_id, Ending::Served(reply, state.record.unwrap_or(0)));
    }

    /// Sends states to watchers whose interval has ended.
    fn end_intervals(&mut self, now: Instant) {
        while let Some((_, token, client_id, number)) = self.queries.intervals.pop_due(now) {
            let Some(connection) = connection_of(&mut self.connections.all, token, client_id) else {
                continue;
            };
            let waited = watchers_of(connection).and_then(|watchers| watchers.take_waiting(number));
            let Some(waited) = waited else { continue };
            self.send_waited(waited, Receiver { token: token as u32, client_id, number });
        }
    }

    /// Writes states that have waited for a connection's socket, as long as the socket accepts them; returns whether
    /// there were any.
    pub(super) fn write_waiting(&mut self, token: usize) -> bool {
        let mut has_written = false;
        while let Some(connection) = self.connections.all[token].as_deref_mut()
            && connection.unsent_bytes() < CONGESTED_BYTES
        {
            let client_id = connection.client.view.id;
            let Some(watchers) = watchers_of(connection) else { break };
            let Some((number, waited)) = watchers.next_waiting() else { break };
            has_written |= matches!(waited, Waited::State(_));
            self.send_waited(waited, Receiver { token: token as u32, client_id, number });
        }
        has_written
    }

    /// Sends a waiting state to one connection, or requests a new evaluation of its query if the state was discarded.
    fn send_waited(&mut self, waited: Waited, receiver: Receiver) {
        match waited {
            Waited::State(state) => self.send_to(&state, receiver, Instant::now(), &mut None),
            Waited::Missed(query) => {
                // The owner delivers the next state even if it equals the last one that it has delivered.
                query.with_audience(|audience| audience.set_known(None));
                if query.mark() {
                    self.executor.send_to_owner(query);
                }
            }
        }
    }

    /// Removes the watchers of a closing connection from their queries, in this turn and the following ones.
    pub(super) fn leave_queries(&mut self, connection: &mut Connection, token: usize) {
        let (client_id, token) = (connection.client.view.id, token as u32);
        let Some(watchers) = watchers_of(connection) else { return };
        let watchers = std::mem::take(watchers);
        let left =
            watchers.into_all().map(|(number, watcher)| (Receiver { token, client_id, number }, watcher));
        self.queries.left.extend(left);
    }
}

fn watchers_of(connection: &mut Connection) -> Option<&mut Watchers> {
    connection.client.subscriptions.as_mut().map(|subscriptions| &mut subscriptions.queries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_of_removed_watchers_do_not_accumulate() {
        let begun = Instant::now();
        let mut intervals = Intervals::default();
        let end = |number: u32| (begun + Duration::from_secs(u64::from(number)), 1, 2, number);
        for number in 0..100_000 {
            intervals.insert(end(number), |&(.., number)| number < 10);
        }
        assert!(intervals.ends.len() <= 2 * INTERVALS_MIN, "{}", intervals.ends.len());
        let due: Vec<u32> = std::iter::from_fn(|| intervals.pop_due(begun + Duration::from_secs(9)))
            .map(|(.., number)| number)
            .collect();
        assert_eq!(due, (0..10).collect::<Vec<_>>(), "waiting watchers are still notified");
        // If the watchers of all ends still wait, the number of checks stays proportional to the number of added ends.
        let mut checks = 0;
        for number in 0..100_000 {
            intervals.insert(end(number), |_| {
                checks += 1;
                true
            });
        }
        assert!(checks <= 200_000, "{checks}");
    }
}
