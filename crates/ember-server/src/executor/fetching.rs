//! Calls with missing values: their connections are parked until the values are fetched.
//!
//! A call does not begin before all its values are in memory, so it can be run again from its beginning. Before the
//! connection is parked, the missing values of the later commands in its batch are requested, too: a pipeline waits for
//! the disk once, not once per command. Values whose records the system has cached are read at once; if the call misses
//! no others, it runs again in the same batch and its connection is not parked.

use std::sync::atomic::Ordering;

use ember_protocol::{Args, Batch};
use emberkv_core::dispatch::{self, Context, Waiting};
use emberkv_core::error::CommandError;
use emberkv_core::keys::Guards;
use emberkv_core::keyspace::shard::fetch_tickets::FetchWaiter;

use super::{Executor, Section};
use crate::catalogue::registry::Handler;
use crate::clients::assembly::Forwarded;
use crate::clients::client::Client;
use crate::clients::mailbox::{Awaiting, Message};
use crate::clients::transaction::Transaction;
use crate::tiers::Tiers;

impl Executor {
    /// Requests the missing values of a call. Returns true if all of them are resident now and `may_retry` permits that
    /// the caller runs the call again at once; otherwise the worker is notified once all are fetched, or one cannot be
    /// read.
    #[cold]
    fn request_missing(
        &mut self,
        guards: &mut Guards<'static>,
        database: usize,
        awaiting: Awaiting,
        may_retry: bool,
    ) -> bool {
        let (server, worker) = (self.server, self.index);
        let notified = awaiting.clone();
        let arrival = FetchWaiter::new(move |failure| {
            let message = Message::Arrived(notified.clone(), failure.map(Into::into));
            server.workers[worker].mailbox.send(message);
        });
        let tiers = Tiers::of(server);
        let mut ready = tiers.reader(server, self.turn.settings.encoding);
        let mut context = self.context(guards, database);
        let (orders, joined) = dispatch::request_missing(&mut context, &arrival, &mut ready);
        tiers.counters.joined.fetch_add(joined, Ordering::Relaxed);
        tiers.order(orders);
        let is_resident = arrival.finish_requests();
        if is_resident && !may_retry {
            server.workers[worker].mailbox.send(Message::Arrived(awaiting, None));
        }
        is_resident && may_retry
    }

    fn context<'c>(&'c mut self, guards: &'c mut Guards<'static>, database: usize) -> Context<'c, 'static> {
        let keyspace = &self.server.keyspace;
        Context { keyspace, guards, turn: &mut self.turn, database, waiting: Waiting::Never }
    }

    /// Requests the missing values of call `number` of the batch, and the missing values of the later calls. Returns
    /// whether the call can run again at once, which the caller has not done yet if `may_retry`; otherwise the connection
    /// must be parked. (A value can be demoted again before the call takes its locks.)
    #[cold]
    pub(super) fn begin_fetching(
        &mut self,
        client: &Client,
        guards: &mut Guards<'static>,
        batch: &Batch,
        input: &[u8],
        number: usize,
        may_retry: bool,
    ) -> bool {
        let awaiting = Awaiting::Connection(client.view.token, client.view.id);
        let is_resident = self.request_missing(guards, client.database, awaiting, may_retry);
        let first = batch.len() - self.prepared.len();
        let tiers = Tiers::of(self.server);
        let mut ready = tiers.reader(self.server, self.turn.settings.encoding);
        let mut orders = Vec::new();
        for number in number + 1..batch.len() {
            let args = batch.command(number, input);
            let Some(command) = self.prepared[number - first].command else { continue };
            let Handler::Data(_) = command.handler else {
                // The calls after this command may be for another database, or be queued.
                if command.spec.is_immediate || command.spec.name == "select" {
                    break;
                }
                continue;
            };
            if command.spec.accepts(args.len()) {
                let mut context = self.context(guards, client.database);
                orders.extend(dispatch::request_ahead(command.spec, &mut context, args, &mut ready));
            }
        }
        tiers.order(orders);
        is_resident
    }

    /// Returns whether values are missing for the queued calls of a transaction, as far as that is known in advance,
    /// and records the keys in `Turn::missing`.
    #[cold]
    pub(super) fn misses_queued_values(&mut self, database: usize, transaction: &Transaction) -> bool {
        let mut guards = Guards::None;
        self.turn.missing.clear();
        for (number, &index) in transaction.commands.iter().enumerate() {
            let command = self.server.registry.get(index);
            if command.spec.name == "select" {
                break;
            }
            if let Handler::Data(_) = command.handler {
                let mut context = self.context(&mut guards, database);
                dispatch::record_missing(command.spec, &mut context, transaction.calls.command(number));
            }
        }
        guards.release(&self.server.keyspace, &mut self.turn);
        !self.turn.missing.is_empty()
    }

    /// Returns whether values of a script's declared keys are missing, and records the keys in `Turn::missing`.
    #[cold]
    pub(crate) fn misses_declared_values(&mut self, database: usize, keys: &[&[u8]]) -> bool {
        let keyspace = &self.server.keyspace;
        self.turn.missing.clear();
        let mut bytes = 0;
        for key in keys {
            let hash = keyspace.hash(key);
            let data = keyspace.lock(hash.shard());
            let found = data.find(database, hash, key);
            bytes += found.map_or(0, |at| data.entry(database, at).resident_bytes());
            if data.is_missing(database, hash, key, self.turn.expired_ms()) {
                self.turn.missing.push((database, (*key).into()));
            }
        }
        // Values that together exceed the memory for values are not fetched here: each is read when the script accesses
        // it.
        !self.turn.missing.is_empty() && bytes <= self.turn.values_bytes_max
    }

    /// Reads the missing values of a call on this thread. The caller holds the locks of the call's keys.
    ///
    /// # Errors
    /// Returns an error if a value cannot be read.
    #[cold]
    pub(super) fn fetch_missing(
        &mut self,
        guards: &mut Guards<'static>,
        database: usize,
    ) -> Result<(), CommandError> {
        let tiers = Tiers::of(self.server);
        tiers.fetch_now(&mut self.context(guards, database))
    }

    /// Returns whether a call with missing values may be parked, that is, whether it can be run again later.
    pub(super) fn may_park(&self) -> bool {
        self.section == Section::Shared && !self.runs_script
    }

    /// Requests the missing values of the message's next command, and those of its later commands. The message is from
    /// another worker, or of a connection of this worker that already waits for answers. Returns whether the command can
    /// run again at once, like [`Executor::begin_fetching`]; otherwise the caller parks the message.
    #[cold]
    pub(super) fn request_for_message(
        &mut self,
        message: &mut Forwarded,
        guards: &mut Guards<'static>,
        may_retry: bool,
    ) -> bool {
        self.last_parked += 1;
        message.parked = self.last_parked;
        let awaiting = Awaiting::Forwarded(message.parked);
        let is_resident = self.request_missing(guards, message.database, awaiting, may_retry);
        let tiers = Tiers::of(self.server);
        let mut ready = tiers.reader(self.server, self.turn.settings.encoding);
        let mut orders = Vec::new();
        for number in message.marks.len() + 1..message.prepared.len() {
            let command = self.server.registry.get(message.prepared[number].0);
            let mut context = self.context(guards, message.database);
            let args = message.commands.command(number);
            orders.extend(dispatch::request_ahead(command.spec, &mut context, args, &mut ready));
        }
        tiers.order(orders);
        is_resident
    }

    /// Continues the commands that were parked under number `parked`.
    pub(crate) fn run_parked(&mut self, parked: u64, failure: Option<Box<str>>) {
        let Some(at) = self.fetching.iter().position(|message| message.parked == parked) else { return };
        let mut message = self.fetching.swap_remove(at);
        if let Some(failure) = failure {
            message.marks.push(message.reply.mark());
            let (index, _) = message.prepared[message.marks.len() - 1];
            let command = self.server.registry.get(index);
            self.answer_rejected(command, &CommandError::from(String::from(failure)), &mut message.reply);
        }
        self.run_forwarded(message);
    }

    /// Requests the missing values of a blocked call. Once they are fetched, the calls of the clients blocked on this
    /// key are run again.
    pub(super) fn request_for_blocked(&mut self, guards: &mut Guards<'static>, database: usize, key: &[u8]) {
        self.request_missing(guards, database, Awaiting::Waiters(database, key.into()), false);
    }

    /// Runs the calls of the clients blocked on a key again.
    pub(crate) fn serve_again(&mut self, database: usize, key: Box<[u8]>) {
        self.turn.notices.ready.push((database, key));
        self.deliver(&mut Guards::None, None);
    }

    /// Stops applying the primary's stream, because a value cannot be read.
    #[cold]
    pub(super) fn leave_unread(&mut self, client: &mut Client) -> super::Progress {
        if let Some(primary) = &client.primary {
            let at = primary.position();
            primary.link.fail(format!("a value that the command at offset {at} needs cannot be read"));
        }
        self.server.gate.leave(self.index);
        self.turn.sees_expired = false;
        self.publish();
        super::Progress::Close
    }

    /// Replies to the first command of a batch with the error that its values cannot be read.
    #[cold]
    pub(super) fn refuse_unread(
        &mut self,
        client: &mut Client,
        args: Args<'_>,
        failure: Box<str>,
        reply: &mut ember_protocol::Reply,
    ) {
        let command = self.server.registry.resolve(args).ok();
        let error = CommandError::from(String::from(failure));
        self.refuse(client, &mut Guards::None, command, error, reply);
    }
}
