//! Long-running commands: a call that reads more than `long-call-elements` elements runs on a job thread, on borrowed
//! values, while its worker serves other clients.
//!
//! During the call its keys are held (`server/held_keys.rs`): calls that name a held key and may change it wait, as
//! they would for the long call itself. Keys are not held if a borrowed value of their kind can be changed at little
//! cost. A change that does not name the key copies the borrowed value. A call that stores a result watches its keys to
//! detect such changes, and is then run again on its worker.

use std::sync::Arc;
use std::time::Instant;

use ember_protocol::{Args, Reply};
use emberkv_core::call::{CommandResult, DataCommand};
use emberkv_core::dispatch::loan::Loan;
use emberkv_core::dispatch::{self, Context, Waiting};
use emberkv_core::error::CommandError;
use emberkv_core::keys::Guards;
use emberkv_core::memory::reclaim;

use super::Executor;
use super::jobs::{Effort, Finished, Job, Jobs, Settled};
use super::session::{Outcome, SessionResult};
use crate::catalogue::registry::{Command, Handler};
use crate::clients::client::{Client, ClientView};
use crate::server::Server;
use crate::server::conditions::{Condition, READ_ONLY_ERROR};
use crate::server::slots::Refusal;
use crate::tiers::Tiers;

/// The maximum bytes of values that an offloaded call may copy in order to change them. Larger values are changed in
/// place, because the machine may not have the memory for a second copy.
const COPIED_BYTES_MAX: usize = 1 << 30;

/// The size in bytes from which on a call's arguments are freed in the background, together with the borrowed values.
const FREED_LATER_BYTES: usize = 1 << 20;

/// A call that runs on a job thread.
struct LongCall {
    client: Arc<ClientView>,
    command: &'static Command,
    begun: Instant,
    /// The number of replicas that must have the call's writes.
    replicas: u32,
    /// The keys that are held during the call.
    keys: Vec<Box<[u8]>>,
    loan: Loan,
    reply: Box<Reply>,
    result: CommandResult,
}

impl Executor {
    /// Offloads a call and parks its connection. The caller holds the locks of the call's keys. A call that would copy
    /// more than memory permits runs on the worker.
    ///
    /// # Errors
    /// Returns the handler's error.
    #[cold]
    pub(super) fn offload(
        &mut self,
        (command, data): (&'static Command, &'static DataCommand),
        args: Args<'_>,
        client: &Client,
        guards: &mut Guards<'static>,
        reply: &mut Reply,
    ) -> SessionResult {
        let server = self.server;
        let (keyspace, database) = (&server.keyspace, client.database);
        let mut context =
            Context { keyspace, guards, turn: &mut self.turn, database, waiting: Waiting::Never };
        let copied_bytes = Loan::copied_bytes(data, &mut context, args);
        if copied_bytes > COPIED_BYTES_MAX || (copied_bytes > 0 && self.exceeds_memory_with(copied_bytes)) {
            let mut context =
                Context { keyspace, guards, turn: &mut self.turn, database, waiting: Waiting::Never };
            dispatch::run(data, command.access, None, &mut context, args, reply)?;
            return Ok(Outcome::Done);
        }
        let mut context =
            Context { keyspace, guards, turn: &mut self.turn, database, waiting: Waiting::Never };
        let keys: Vec<Box<[u8]>> = if Loan::is_dear_to_change(data, &mut context, args) {
            command.spec.key_positions(args).map(|arg| args.at(arg).into()).collect()
        } else {
            Vec::new()
        };
        if !server.hold_keys_unless_awaited(&keys) {
            return Ok(Outcome::Again);
        }
        let loan = Loan::take(data, &mut context, args);
        let call = Box::new(LongCall {
            client: Arc::clone(&client.view),
            command,
            begun: self.clock,
            replicas: self.sync_replicas(Some(client)),
            keys,
            loan,
            reply: Box::new(Reply::new(reply.protocol())),
            result: Ok(()),
        });
        self.stats.long_calls.add(1);
        if let Err((mut call, error)) = Jobs::begin(server, Effort::Processor, call) {
            tracing::warn!("a long-running command runs on its worker: cannot start a thread: {error}");
            guards.release(keyspace, &mut self.turn);
            call.run(server);
            Jobs::of(server).notify(server, call);
        }
        Ok(Outcome::Wait(self.park(command, client, reply)))
    }
}

impl Job for LongCall {
    fn worker(&self) -> usize {
        self.client.worker
    }

    fn run(&mut self, server: &'static Server) {
        self.result = self.loan.run(&server.keyspace, &mut self.reply);
    }

    fn settle(self: Box<Self>, executor: &mut Executor) -> Option<Settled> {
        let LongCall { client, command, begun, replicas, keys, mut loan, mut reply, mut result } = *self;
        let server = executor.server;
        if loan.may_store() {
            let Handler::Data(data) = command.handler else { unreachable!("it runs on keys") };
            // Earlier records are published first, so that the call's records need not be copied.
            executor.publish();
            // The slot of the keys may have been removed from this cluster node since the call began.
            executor.refresh_lease();
            let lost_slot = if client.is_primary {
                None
            } else {
                let checked = executor.check_slots(client.slot_caller(), command, None, loan.call());
                checked.err().map(Refusal::error)
            };
            let (keyspace, turn, database) = (&server.keyspace, &mut executor.turn, loan.database());
            let mut guards = Guards::None;
            let mut shards = keys.iter().map(|key| keyspace.hash(key).shard()).collect();
            guards.hold_many(keyspace, turn, &mut shards);
            let waiting = Waiting::Never;
            let mut context = Context { keyspace, guards: &mut guards, turn, database, waiting };
            let is_unchanged = loan.end_watch(&mut context);
            // The role and the state of the disk may have changed since the call began.
            let is_replica = server.conditions.get().contains(Condition::REPLICA);
            let refusal = is_replica.then(|| READ_ONLY_ERROR.to_owned());
            let refusal =
                refusal.or_else(|| server.conditions.write_refusal(replicas)).map(CommandError::from);
            if let Some(refusal) = refusal.or(lost_slot) {
                reply.clear();
                result = Err(refusal);
            } else if is_unchanged {
                loan.give_back(&mut context);
            } else {
                reply.clear();
                let tiers = Tiers::of(server);
                let call = (data, command.access);
                let again = tiers.run_fetching(call, &mut context, loan.call(), &mut reply);
                result = again.map(|_| ());
            }
            guards.release(keyspace, &mut executor.turn);
        }
        let (args, wire_bytes_max) = (loan.call(), loan.wire_bytes_max());
        let call = Finished { client: &client, command, args, wire_bytes_max, begun, keys: &keys };
        let settled = executor.finish_job(&call, result, reply);
        if wire_bytes_max >= FREED_LATER_BYTES {
            // The number of values is 0: no part of the loan counts as a freed value.
            reclaim::later(loan, 0);
        }
        Some(settled)
    }
}
