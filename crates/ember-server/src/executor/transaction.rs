//! Transactions: calls queued by MULTI that EXEC runs atomically, unless a watched key has changed.
//!
//! If all keys are arguments of the queued calls, the transaction holds the locks of only their shards, from its first
//! call to its last, and runs in parallel with commands on other shards. Otherwise it runs with exclusive access: it
//! closes the gate.

use std::sync::atomic::Ordering;

use ember_protocol::{Args, Mark, Reply};
use emberkv_core::error::CommandError;
use emberkv_core::gate::ExclusiveAccess;
use emberkv_core::keys::{Guards, Keys};
use emberkv_core::spec::Flags;

use super::session::{Outcome, SessionResult};
use super::{Executor, Section, authorization};
use crate::catalogue::registry::Command;
use crate::clients::client::Client;
use crate::clients::transaction::{Transaction, Watched, discard};
use crate::server::slots::Refusal;

/// Returns the error of EXEC if EXEC itself is refused with `error`. Clients follow redirections, so these are unchanged.
pub(crate) fn aborted_because_of(error: &CommandError) -> CommandError {
    let text = error.text();
    if Refusal::is_error_of_one(&text) {
        return CommandError::Bytes(text.into_owned());
    }
    let reason = text.strip_prefix(b"ERR ").unwrap_or(&text);
    CommandError::Bytes([b"EXECABORT Transaction discarded because of: ", reason].concat())
}

/// The maximum number of times that EXEC waits for cold values. After that, missing values are read while it runs.
const FETCHES_MAX: u32 = 3;

impl Executor {
    /// Queues a call of a client whose transaction is open.
    #[cold]
    pub(crate) fn queue(
        &mut self,
        client: &mut Client,
        guards: &mut Guards<'static>,
        command: &'static Command,
        args: Args<'_>,
        reply: &mut Reply,
    ) -> Result<(), CommandError> {
        let Some(transaction) = &mut client.transaction else {
            unreachable!("the caller has seen the transaction");
        };
        if command.spec.flags.contains(Flags::NO_MULTI) {
            return Err("ERR Command not allowed inside a transaction".into());
        }
        // Every queued call takes memory, even a call that takes no memory when it runs.
        if self.config.maxmemory != 0 {
            self.free_memory(guards, args.total_bytes())?;
        }
        // Calls that EXEC will refuse or not run are not stored.
        let will_run = !transaction.is_aborted
            && client.watched.as_ref().is_none_or(|watched| !watched.watch.is_broken());
        if will_run {
            transaction.calls.append(args);
            transaction.commands.push(command.index);
            transaction.flags |= command.spec.flags;
            client.view.queued.store(transaction.len() as i64, Ordering::Relaxed);
            self.client_memory.set(&client.view.multi_bytes, transaction.memory_bytes());
        }
        reply.simple("QUEUED");
        Ok(())
    }

    /// Runs the client's queued calls for EXEC. The caller holds no lock.
    pub(crate) fn run_transaction(
        &mut self,
        client: &mut Client,
        command: &Command,
        args: Args<'_>,
        reply: &mut Reply,
    ) -> SessionResult {
        let Some(transaction) = &client.transaction else {
            return Err("ERR EXEC without MULTI".into());
        };
        let keyspace = &self.server.keyspace;
        if transaction.is_aborted {
            discard(keyspace, &mut self.turn, client);
            return Err("EXECABORT Transaction discarded because of previous errors.".into());
        }
        if self.config.maxmemory != 0
            && transaction.flags.contains(Flags::DENYOOM)
            && let Err(error) = self.free_memory(&mut Guards::None, 0)
        {
            discard(keyspace, &mut self.turn, client);
            return Err(aborted_because_of(&error));
        }
        let tries = transaction.fetches;
        if self.turn.checks_values && self.may_park() && tries < FETCHES_MAX {
            let (database, transaction) = (client.database, client.transaction.take());
            let misses_values =
                transaction.as_ref().is_some_and(|it| self.misses_queued_values(database, it));
            client.transaction = transaction;
            if misses_values && let Some(transaction) = &mut client.transaction {
                transaction.fetches += 1;
                return Ok(Outcome::Fetch);
            }
        }
        let Some(transaction) = &client.transaction else { unreachable!("it was put back") };
        let mut commands = transaction.commands.iter();
        let access = match () {
            () if commands.all(|&index| self.server.registry.get(index).is_contained()) => None,
            () if self.applies => Some(self.close_gate_serving_others()),
            () => match self.close_gate_to_run(client, command, args) {
                Ok(Some(access)) => Some(access),
                Ok(None) => return Ok(Outcome::Again),
                Err(error) => {
                    discard(keyspace, &mut self.turn, client);
                    return Err(aborted_because_of(&error));
                }
            },
        };
        let transaction = client.transaction.take().expect("the client is in a transaction");
        client.view.queued.store(-1, Ordering::Relaxed);
        let watched = client.watched.take();
        client.view.watched_keys.store(0, Ordering::Relaxed);
        let run = |executor: &mut Executor, guards: &mut Guards<'static>| {
            if watched.as_deref().is_some_and(|watched| executor.is_broken(watched, guards)) {
                reply.null_array();
                Outcome::Done
            } else {
                executor.run_queued(client, &transaction, guards, reply)
            }
        };
        let outcome = if access.is_none() {
            let shards = self.shards_of_transaction(&transaction, watched.as_deref());
            self.with_pinned(shards, run)
        } else {
            self.run_exclusively(access, run)
        };
        if let Some(watched) = watched {
            watched.end(keyspace, &mut self.turn);
        }
        // The queued values that the calls have stored count as data from now on.
        drop(transaction);
        self.client_memory.set(&client.view.multi_bytes, 0);
        Ok(outcome)
    }

    /// Runs `act` while the locks of `shards` are held; commands in it may only access keys of these shards. The caller
    /// holds no lock.
    pub(crate) fn with_pinned<R>(
        &mut self,
        mut shards: Vec<usize>,
        act: impl FnOnce(&mut Executor, &mut Guards<'static>) -> R,
    ) -> R {
        let keyspace = &self.server.keyspace;
        let mut guards = Guards::None;
        guards.pin(keyspace, &mut self.turn, &mut shards);
        self.section = Section::Pinned;
        self.turn.begin_unit();
        let result = act(self, &mut guards);
        self.turn.end_unit();
        self.section = Section::Shared;
        guards.unpin(keyspace, &mut self.turn);
        result
    }

    /// Runs `act` with exclusive access; if the worker already has it, no gate is closed. The caller holds no lock.
    pub(crate) fn with_exclusive_access<R>(
        &mut self,
        act: impl FnOnce(&mut Executor, &mut Guards<'static>) -> R,
    ) -> R {
        let access = (self.section == Section::Shared).then(|| self.close_gate_serving_others());
        self.run_exclusively(access, act)
    }

    /// Runs `act` with exclusive access for a client's command.
    ///
    /// # Errors
    /// Returns `BUSY` if a script has had exclusive access for long.
    pub(crate) fn with_exclusive_access_for<R>(
        &mut self,
        client_id: u64,
        act: impl FnOnce(&mut Executor, &mut Guards<'static>) -> R,
    ) -> Result<R, CommandError> {
        let access =
            if self.section == Section::Shared { Some(self.close_gate(Some(client_id))?) } else { None };
        Ok(self.run_exclusively(access, act))
    }

    /// Runs `act` with exclusive access, which is `access` or that of the enclosing section.
    pub(crate) fn run_exclusively<R>(
        &mut self,
        access: Option<ExclusiveAccess<'static>>,
        act: impl FnOnce(&mut Executor, &mut Guards<'static>) -> R,
    ) -> R {
        let outer = std::mem::replace(&mut self.section, Section::Exclusive);
        let mut guards = Guards::None;
        self.turn.begin_unit();
        let result = act(self, &mut guards);
        self.turn.end_unit();
        self.section = outer;
        guards.release(&self.server.keyspace, &mut self.turn);
        // Readers of the journal may have been added or removed. Added readers receive the remaining records of an
        // enclosing unit.
        if access.is_some() || !self.turn.journal.is_on() {
            self.server.journal.attach(&mut self.turn.journal);
        }
        drop(access);
        result
    }

    fn shards_of_transaction(&self, transaction: &Transaction, watched: Option<&Watched>) -> Vec<usize> {
        let keyspace = &self.server.keyspace;
        let mut shards = Vec::new();
        for (number, &index) in transaction.commands.iter().enumerate() {
            let args = transaction.calls.command(number);
            let positions = self.server.registry.get(index).spec.key_positions(args);
            shards.extend(positions.map(|arg| keyspace.hash(args.at(arg)).shard()));
        }
        for (.., args) in watched.into_iter().flat_map(Watched::calls) {
            shards.extend(args.iter().skip(1).map(|key| keyspace.hash(key).shard()));
        }
        shards
    }

    /// Returns whether a watched key has changed or expired since it was watched.
    fn is_broken(&mut self, watched: &Watched, guards: &mut Guards<'static>) -> bool {
        let keyspace = &self.server.keyspace;
        for (database, since_ms, args) in watched.calls() {
            for arg in 1..args.len() {
                let hash = keyspace.hash(args.at(arg));
                guards.hold_one(keyspace, &mut self.turn, hash);
                let mut keys = Keys::new(keyspace, guards, args, database, (arg, hash), &mut self.turn);
                if keys.has_expired_since(arg, since_ms) {
                    return true;
                }
            }
        }
        watched.watch.is_broken() || self.has_lost_watched(watched)
    }

    /// Runs the queued calls. If the replies exceed the client's output limit, they are discarded, and the client is
    /// disconnected.
    fn run_queued(
        &mut self,
        client: &mut Client,
        transaction: &Transaction,
        guards: &mut Guards<'static>,
        reply: &mut Reply,
    ) -> Outcome {
        let limits = &self.config.client_output_buffer_limit;
        let limit = if client.view.is_subscribed() { limits.pubsub } else { limits.normal };
        let (start, start_bytes) = (reply.mark(), reply.len_bytes());
        let (mut is_too_much, mut closes) = (false, false);
        reply.array(transaction.len());
        take_back_if_silent(client, start, reply);
        self.sizes.include(transaction.calls.wire_bytes_max());
        for (number, &index) in transaction.commands.iter().enumerate() {
            let command = self.server.registry.get(index);
            let args = transaction.calls.command(number);
            let (mark, reply_start) = (reply.mark(), reply.len_bytes());
            self.turn.no_touch = client.view.no_touch.load(Ordering::Relaxed);
            let result = authorization::authorize_queued(self.server, client, command, args)
                .and_then(|()| self.complete(command, None, client, guards, args, reply));
            // The call may have killed its own client, whose connection is then closed after the reply.
            closes |= matches!(result, Ok(Outcome::Close));
            self.finish(command, &result, args, Some(&client.view), reply);
            self.log_sizes(command, args, client.view.id, reply.len_bytes() - reply_start);
            take_back_if_silent(client, mark, reply);
            let bytes = (reply.len_bytes() - start_bytes) as u64;
            is_too_much |= limit.hard_bytes != 0 && bytes > limit.hard_bytes;
            if is_too_much {
                reply.truncate_to(start);
            }
        }
        if !is_too_much {
            return if closes { Outcome::Close } else { Outcome::Done };
        }
        tracing::warn!(
            "closing client {}: the replies of its transaction exceed client-output-buffer-limit",
            client.view.id
        );
        self.stats.output_limit_closed.add(1);
        Outcome::Close
    }
}

/// Removes the reply of a queued call, beginning at `mark`, if the client now receives no replies.
fn take_back_if_silent(client: &Client, mark: Mark, reply: &mut Reply) {
    if client.reply_mode.is_silent() {
        reply.truncate_to(mark);
    }
}
