//! Calls that lack values which are away: their connections are parked until those are here.
//!
//! A call has all its values or has not begun, so it is run again from its beginning. Before its connection is parked, the
//! values of the commands behind it in its batch are asked for too: a pipeline waits for the disk once, not once for each
//! command.

use std::sync::atomic::Ordering;

use ember_protocol::{Args, Batch};
use emberkv_core::dispatch::{self, Context, Waiting};
use emberkv_core::error::CommandError;
use emberkv_core::keys::Guards;
use emberkv_core::keyspace::shard::aside::Arrival;

use super::{Executor, Section};
use crate::catalogue::registry::Handler;
use crate::clients::assembly::Forwarded;
use crate::clients::client::Client;
use crate::clients::mailbox::{Awaiting, Message};
use crate::clients::transaction::Transaction;
use crate::storage::Storage;

impl Executor {
    /// Asks for the values that a call lacks; the worker is told when all are here, or one cannot be read.
    #[cold]
    pub(super) fn ask_for_lacking(
        &mut self,
        guards: &mut Guards<'static>,
        database: usize,
        awaiting: Awaiting,
    ) {
        let (server, worker) = (self.server, self.index);
        let arrival = Arrival::new(move |failure| {
            let message = Message::Arrived(awaiting.clone(), failure.map(Into::into));
            server.workers[worker].mailbox.send(message);
        });
        let storage = Storage::of(server);
        let mut ready = storage.reader(server, self.turn.settings.encoding);
        let mut context = self.context(guards, database);
        let (orders, joined) = dispatch::ask_for_lacking(&mut context, &arrival, &mut ready);
        storage.counters.joined.fetch_add(joined, Ordering::Relaxed);
        storage.order(orders);
        arrival.is_complete();
    }

    fn context<'c>(&'c mut self, guards: &'c mut Guards<'static>, database: usize) -> Context<'c, 'static> {
        let keyspace = &self.server.keyspace;
        Context { keyspace, guards, turn: &mut self.turn, database, waiting: Waiting::Never }
    }

    /// Asks for what the call of number `number` lacks, and what those behind it will need.
    #[cold]
    pub(super) fn begin_fetching(
        &mut self,
        client: &Client,
        guards: &mut Guards<'static>,
        batch: &Batch,
        input: &[u8],
        number: usize,
    ) {
        let awaiting = Awaiting::Connection(client.view.token, client.view.id);
        self.ask_for_lacking(guards, client.database, awaiting);
        let first = batch.len() - self.prepared.len();
        let storage = Storage::of(self.server);
        let mut ready = storage.reader(self.server, self.turn.settings.encoding);
        let mut orders = Vec::new();
        for number in number + 1..batch.len() {
            let args = batch.command(number, input);
            let Some(command) = self.prepared[number - first].command else { continue };
            let Handler::Data(_) = command.handler else {
                // It may select another database, or be MULTI.
                if command.spec.is_immediate || command.spec.name == "select" {
                    break;
                }
                continue;
            };
            if command.spec.accepts(args.len()) {
                let mut context = self.context(guards, client.database);
                orders.extend(dispatch::ask_ahead(command.spec, &mut context, args, &mut ready));
            }
        }
        storage.order(orders);
    }

    /// Whether values are away that the queued calls of a transaction need, as far as that can be told before: what is noted
    /// as lacking then.
    #[cold]
    pub(super) fn lacks_queued(&mut self, database: usize, transaction: &Transaction) -> bool {
        let mut guards = Guards::None;
        self.turn.lacking.clear();
        for (number, &index) in transaction.commands.iter().enumerate() {
            let command = self.server.registry.get(index);
            if command.spec.name == "select" {
                break;
            }
            if let Handler::Data(_) = command.handler {
                let mut context = self.context(&mut guards, database);
                dispatch::note_lacking(command.spec, &mut context, transaction.calls.command(number));
            }
        }
        guards.release(&self.server.keyspace, &mut self.turn);
        !self.turn.lacking.is_empty()
    }

    /// Whether values of these keys are away, which a script declares: what is noted as lacking then.
    #[cold]
    pub(crate) fn lacks_declared(&mut self, database: usize, keys: &[&[u8]]) -> bool {
        let keyspace = &self.server.keyspace;
        self.turn.lacking.clear();
        let mut bytes = 0;
        for key in keys {
            let hash = keyspace.hash(key);
            let data = keyspace.lock(hash.shard());
            let found = data.find(database, hash, key);
            bytes += found.map_or(0, |at| data.entry(database, at).resident_bytes());
            if data.lacks(database, hash, key, self.turn.expired_ms()) {
                self.turn.lacking.push((database, (*key).into()));
            }
        }
        // More than fits is read when it is asked for.
        !self.turn.lacking.is_empty() && bytes <= self.turn.values_bytes_max
    }

    /// Puts what a call lacks in its place here and now. The locks of its keys are held.
    ///
    /// # Errors
    /// If something cannot be read.
    #[cold]
    pub(super) fn bring_lacking(
        &mut self,
        guards: &mut Guards<'static>,
        database: usize,
    ) -> Result<(), CommandError> {
        let storage = Storage::of(self.server);
        storage.bring(&mut self.context(guards, database))
    }

    /// Whether a call that lacks values may be parked: others cannot be run again later.
    pub(super) fn may_park(&self) -> bool {
        self.section == Section::Shared && !self.runs_script
    }

    /// Asks for what the next command lacks of those that another worker has sent, or that this one runs for a
    /// connection that waits for answers anyhow; and for what those behind it will need. They are to be parked.
    #[cold]
    pub(super) fn ask_for_message(&mut self, message: &mut Forwarded, guards: &mut Guards<'static>) {
        self.last_parked += 1;
        message.parked = self.last_parked;
        self.ask_for_lacking(guards, message.database, Awaiting::Forwarded(message.parked));
        let storage = Storage::of(self.server);
        let mut ready = storage.reader(self.server, self.turn.settings.encoding);
        let mut orders = Vec::new();
        for number in message.marks.len() + 1..message.prepared.len() {
            let command = self.server.registry.get(message.prepared[number].0);
            let mut context = self.context(guards, message.database);
            let args = message.commands.command(number);
            orders.extend(dispatch::ask_ahead(command.spec, &mut context, args, &mut ready));
        }
        storage.order(orders);
    }

    /// Goes on with commands that were parked.
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

    /// Values that a blocked call lacks: whoever waits for this key is looked at again when they are here.
    pub(super) fn look_again(&mut self, guards: &mut Guards<'static>, database: usize, key: &[u8]) {
        self.ask_for_lacking(guards, database, Awaiting::Waiters(database, key.into()));
    }

    /// Looks at those again who wait for a key.
    pub(crate) fn serve_again(&mut self, database: usize, key: Box<[u8]>) {
        self.turn.notices.ready.push((database, key));
        self.deliver(&mut Guards::None, None);
    }

    /// Stops applying what the primary sends: a value cannot be read.
    #[cold]
    pub(super) fn leave_unread(&mut self, client: &mut Client) -> super::Progress {
        if let Some(primary) = &client.primary {
            let at = primary.position();
            primary.link.fail(format!("a value cannot be read that the command at offset {at} needs"));
        }
        self.server.gate.leave(self.index);
        self.turn.sees_expired = false;
        self.publish();
        super::Progress::Close
    }

    /// Answers the first command of a batch whose values cannot be read.
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
