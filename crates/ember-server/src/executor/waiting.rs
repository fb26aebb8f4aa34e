//! Blocking commands: parks a call that cannot be answered yet, and serves it when one of its keys has changed.
//!
//! ```text
//! BLPOP finds no element ─ its waiter joins the queues of its keys, under their locks ─ the connection is parked
//! RPUSH changes a key ─ the shard's observers record it as ready
//! after the command   ─ the worker that ran it runs the first waiter's call, under the locks of all the waiter's keys
//!                     ─ the reply goes to the waiter's worker, which sends it and continues with the connection
//! ```
//!
//! A waiter is claimed only under the lock of a key it waits for, by the first worker that finds it at the head of that
//! key's queue, so waiters are served in order of arrival. A waiter that is claimed cannot be ended from outside (by a
//! timeout, `CLIENT UNBLOCK`, a closed connection), and vice versa ([`Waiter`]): a call is answered once, and the
//! elements that it has popped are never lost. The decision to close a connection, on any worker, ends its waiter in
//! the same step (`clients/ending.rs`).

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use ember_protocol::{Args, OwnedBatch, Reply};
use emberkv_core::call::{Attempt, Wait};
use emberkv_core::dispatch::{self, Context, Waiting};
use emberkv_core::error::CommandError;
use emberkv_core::keys::{Guards, Keys};
use emberkv_core::keyspace::entry::ValueType;
use emberkv_core::observers::{OBSERVED_KEY_BYTES, Waiter};
use emberkv_core::spec::{Group, KeyFlags, Spec};

use super::{Executor, authorization};
use crate::catalogue::registry::{Command, Handler};
use crate::clients::blocked::Blocked;
use crate::clients::client::{Client, ClientView};
use crate::clients::mailbox::Message;
use crate::server::Server;

/// The maximum timeout; longer ones are treated as infinite.
const TIMEOUT_MAX: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// Returns the type of value from which commands of a group take elements, if such a value is removed when it is empty.
fn awaited_type(group: Group) -> Option<ValueType> {
    match group {
        Group::List => Some(ValueType::List),
        Group::SortedSet => Some(ValueType::SortedSet),
        _ => None,
    }
}

impl Server {
    /// Returns a claimed waiter to its queues. If its client was disconnected in the meantime, the client's worker is
    /// notified that the call was not served.
    fn requeue(&self, waiter: &Waiter) {
        if !waiter.unclaim() {
            self.check_connection(waiter.worker, waiter.token, waiter.client_id);
        }
    }
}

impl Executor {
    /// Adds a call that found no element to the queues of its keys, whose locks the caller holds.
    pub(crate) fn enlist(
        &mut self,
        command: &'static Command,
        wait: Wait,
        args: Args<'_>,
        client: &Client,
        guards: &mut Guards<'static>,
        reply: &Reply,
    ) -> Box<Blocked> {
        self.settle_quick();
        let run_ns = self.lap();
        let call = wait.instead.unwrap_or_else(|| {
            let mut call = OwnedBatch::new();
            call.append(args);
            call
        });
        let view = &client.view;
        let address = (view.worker, view.token, view.id);
        let (keys, names_bytes) = (args.len(), args.total_bytes());
        let bytes = call.memory_bytes() + names_bytes + keys * OBSERVED_KEY_BYTES;
        let waiter = Waiter::new(call, command.index, client.database, reply.protocol(), address);
        let waiter = Arc::new(waiter);
        self.with_waiter_keys(&waiter, command.spec, guards, |keys, arg| keys.enqueue(arg, &waiter));
        view.waiter.enter(&waiter);
        self.server.blocked_clients.fetch_add(1, Ordering::Relaxed);
        let timeout = wait.timeout_ms.map(|ms| Duration::from_millis(ms).min(TIMEOUT_MAX));
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        self.server.waiting_in_time.fetch_add(u64::from(deadline.is_some()), Ordering::Relaxed);
        Box::new(Blocked {
            waiter,
            deadline,
            on_timeout: Box::new(Reply::null_array),
            durable: None,
            is_under_way: false,
            run_ns,
            bytes,
        })
    }

    /// Parks a call whose work another thread does: only that thread's result ends the wait.
    pub(crate) fn park(&self, command: &'static Command, client: &Client, reply: &Reply) -> Box<Blocked> {
        let view = &client.view;
        // The waiter is not in the queue of any key.
        let mut call = OwnedBatch::new();
        call.push(&[command.spec.name.as_bytes()]);
        let address = (view.worker, view.token, view.id);
        let waiter = Waiter::new(call, command.index, client.database, reply.protocol(), address);
        let waiter = Arc::new(waiter);
        waiter.claim();
        view.waiter.enter(&waiter);
        self.server.blocked_clients.fetch_add(1, Ordering::Relaxed);
        let bytes = waiter.call.memory_bytes();
        Box::new(Blocked {
            waiter,
            deadline: None,
            on_timeout: Box::new(Reply::null),
            durable: None,
            is_under_way: true,
            run_ns: 0,
            bytes,
        })
    }

    /// Calls `act` for each key that a waiter waits for: the keys from which it takes elements, not the destination of
    /// BLMOVE. `guards` holds the locks of the keys.
    fn with_waiter_keys(
        &mut self,
        waiter: &Waiter,
        spec: &Spec,
        guards: &mut Guards<'static>,
        act: impl Fn(&mut Keys<'_, 'static>, usize),
    ) {
        let keyspace = &self.server.keyspace;
        let args = waiter.call.command(0);
        let known = (0, keyspace.hash(&[]));
        let mut keys = Keys::new(keyspace, guards, args, waiter.database, known, &mut self.turn);
        let awaited = spec.keys.iter().filter(|keys| keys.flags.contains(KeyFlags::ACCESS));
        awaited.flat_map(|keys| keys.positions(args)).for_each(|arg| act(&mut keys, arg));
    }

    /// Returns the shards of the keys of a waiter's call.
    fn shards_of_waiter(&self, waiter: &Waiter, spec: &Spec) -> Vec<usize> {
        let args = waiter.call.command(0);
        spec.key_positions(args).map(|arg| self.server.keyspace.hash(args.at(arg)).shard()).collect()
    }

    /// Removes a waiter whose wait was ended from outside from the queues of all its keys.
    pub(crate) fn withdraw(&mut self, blocked: &Blocked) {
        let spec = self.server.registry.get(blocked.waiter.command).spec;
        let mut guards = Guards::None;
        let mut shards = self.shards_of_waiter(&blocked.waiter, spec);
        guards.hold_many(&self.server.keyspace, &mut self.turn, &mut shards);
        let waiter = &blocked.waiter;
        self.with_waiter_keys(waiter, spec, &mut guards, |keys, arg| keys.dequeue(arg, waiter));
        guards.release(&self.server.keyspace, &mut self.turn);
    }

    /// Serves the waiters of changed keys as long as there are elements for them. Serving may change further keys
    /// (BLMOVE), whose waiters are then served, too. The caller holds no lock.
    pub(crate) fn serve_ready(&mut self) {
        let sees_expired = std::mem::take(&mut self.turn.sees_expired);
        for (database, key) in std::mem::take(&mut self.turn.notices.ready) {
            self.serve_key(database, &key);
        }
        self.turn.sees_expired = sees_expired;
    }

    fn serve_key(&mut self, database: usize, key: &[u8]) {
        let mut tried: Vec<Arc<Waiter>> = Vec::new();
        let mut exhausted: Vec<Group> = Vec::new();
        while let Some(waiter) = self.first_waiter(database, key, &tried, &exhausted) {
            let command = self.server.registry.get(waiter.command);
            let Handler::Data(data) = command.handler else {
                unreachable!("only data commands wait for keys");
            };
            let mut guards = Guards::None;
            let mut shards = self.shards_of_waiter(&waiter, command.spec);
            guards.pin(&self.server.keyspace, &mut self.turn, &mut shards);
            let is_first = self.is_first_waiter(&guards, database, key, &waiter, &tried, &exhausted);
            if !is_first || !waiter.claim() {
                if is_first {
                    self.with_waiter_keys(&waiter, command.spec, &mut guards, |keys, arg| {
                        keys.dequeue(arg, &waiter);
                    });
                }
                guards.unpin(&self.server.keyspace, &mut self.turn);
                continue;
            }
            let mut reply = Reply::new(waiter.protocol);
            let args = waiter.call.command(0);
            let denial = authorization::authorize_waiter(self.server, waiter.client_id, command, args).err();
            let attempt = if denial.is_some() {
                Ok(Attempt::Done)
            } else if self.has_something_for(&mut guards, database, key, command.spec.group) {
                let (keyspace, turn) = (&self.server.keyspace, &mut self.turn);
                let mut context =
                    Context { keyspace, guards: &mut guards, turn, database, waiting: Waiting::Retry };
                dispatch::run(data, command.access, None, &mut context, args, &mut reply)
            } else {
                Ok(Attempt::Wait(Wait { timeout_ms: None, empty_reply: Reply::null, instead: None }))
            };
            if let Ok(Attempt::Fetch) = attempt {
                // Later waiters of the key must wait, too.
                self.server.requeue(&waiter);
                self.request_for_blocked(&mut guards, database, key);
                guards.unpin(&self.server.keyspace, &mut self.turn);
                return;
            }
            if let Ok(Attempt::Wait(_)) = attempt {
                self.server.requeue(&waiter);
                match awaited_type(command.spec.group) {
                    Some(_) => exhausted.push(command.spec.group),
                    None => tried.push(waiter),
                }
                guards.unpin(&self.server.keyspace, &mut self.turn);
                continue;
            }
            waiter.finish();
            self.with_waiter_keys(&waiter, command.spec, &mut guards, |keys, arg| keys.dequeue(arg, &waiter));
            guards.unpin(&self.server.keyspace, &mut self.turn);
            match denial {
                Some(error) => self.answer_rejected(command, &error, &mut reply),
                None => self.account_served(command, attempt.err(), &waiter, &mut reply),
            }
            let record = self.turn.journal.last_number().unwrap_or(0);
            let message = Message::Served(waiter.token, waiter.client_id, Box::new(reply), record);
            self.server.workers[waiter.worker].mailbox.send(message);
        }
    }

    /// Counts and times a blocked call that ends without being run again, and counts its error, if any. As in Redis,
    /// the time counted is the run time, without the time spent waiting.
    pub(crate) fn count_unserved(&mut self, blocked: &Blocked, client: &ClientView, error: Option<&str>) {
        let command = self.server.registry.get(blocked.waiter.command);
        self.stats.commands.add(1);
        let counts = &self.stats.by_command[usize::from(command.index)];
        counts.count(1, blocked.run_ns, self.config.latency_tracking);
        if let Some(error) = error {
            counts.failed.add(1);
            self.count_error(error.as_bytes());
        }
        self.log_if_slow(command, blocked.run_ns, blocked.waiter.call.command(0), Some(client));
    }

    fn account_served(
        &mut self,
        command: &'static Command,
        error: Option<CommandError>,
        waiter: &Waiter,
        reply: &mut Reply,
    ) {
        let result = error.map_or(Ok(super::session::Outcome::Done), Err);
        let args = waiter.call.command(0);
        self.finish(command, &result, args, None, reply);
        self.log_sizes(command, args, waiter.client_id, reply.len_bytes());
    }

    /// Returns the first waiter in a key's queue that has not been tried yet.
    fn first_waiter(
        &self,
        database: usize,
        key: &[u8],
        tried: &[Arc<Waiter>],
        exhausted: &[Group],
    ) -> Option<Arc<Waiter>> {
        let keyspace = &self.server.keyspace;
        let data = keyspace.lock(keyspace.hash(key).shard());
        self.next_of(data.observers()?.waiters(database, key), tried, exhausted).cloned()
    }

    fn next_of<'w>(
        &self,
        mut waiters: impl Iterator<Item = &'w Arc<Waiter>>,
        tried: &[Arc<Waiter>],
        exhausted: &[Group],
    ) -> Option<&'w Arc<Waiter>> {
        waiters.find(|waiter| {
            !exhausted.contains(&self.server.registry.get(waiter.command).spec.group)
                && !tried.iter().any(|other| Arc::ptr_eq(other, waiter))
        })
    }

    fn is_first_waiter(
        &self,
        guards: &Guards<'static>,
        database: usize,
        key: &[u8],
        waiter: &Arc<Waiter>,
        tried: &[Arc<Waiter>],
        exhausted: &[Group],
    ) -> bool {
        let shard = guards.data(self.server.keyspace.hash(key).shard());
        let waiters = shard.observers().map(|observers| observers.waiters(database, key));
        let first = waiters.and_then(|waiters| self.next_of(waiters, tried, exhausted));
        first.is_some_and(|first| Arc::ptr_eq(first, waiter))
    }

    /// Returns whether a key has the type of value that commands of the group wait for. For streams it returns true in
    /// any case, because waiters of a stream also wait for its removal.
    fn has_something_for(
        &self,
        guards: &mut Guards<'static>,
        database: usize,
        key: &[u8],
        group: Group,
    ) -> bool {
        let Some(wanted) = awaited_type(group) else { return true };
        let hash = self.server.keyspace.hash(key);
        let shard = guards.data(hash.shard());
        let entry = shard.find(database, hash, key).map(|at| shard.entry(database, at));
        entry.is_some_and(|entry| entry.value_type() == wanted && !entry.is_expired(self.turn.now_ms))
    }
}
