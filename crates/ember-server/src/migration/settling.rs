//! The last step of MIGRATE, on the worker of the client: keys that the target has accepted are removed here, and the
//! client receives the reply.

use std::sync::Arc;
use std::time::Instant;

use ember_protocol::{OwnedBatch, Protocol, Reply};
use emberkv_core::dispatch::{self, Context, Waiting};
use emberkv_core::error::CommandError;
use emberkv_core::keys::Guards;

use super::order::Order;
use super::service::Migrations;
use super::transfer::{Sent, Transferred};
use crate::catalogue::registry::{Command, Handler};
use crate::clients::client::ClientView;
use crate::clients::transaction::Watched;
use crate::executor::Executor;
use crate::executor::jobs::{Finished, Job, Settled};
use crate::server::Server;
use crate::server::conditions::{Condition, READ_ONLY_ERROR};

/// The error reply if a key has changed although it was held.
const CHANGED: &str = "ERR A key was changed while the target instance was given it: it stays here, and the target \
                       instance has the value from before";

/// A MIGRATE call of which at least one key exists.
pub(super) struct Migration {
    pub(super) client: Arc<ClientView>,
    pub(super) protocol: Protocol,
    pub(super) command: &'static Command,
    pub(super) call: OwnedBatch,
    pub(super) begun: Instant,
    pub(super) database: usize,
    pub(super) keys: Vec<Box<[u8]>>,
    /// A watch of each key; empty if the worker has exclusive access throughout, which prevents changes.
    pub(super) watches: Vec<Watched>,
    pub(super) order: Order,
    /// The result of the transfer.
    pub(super) transferred: Transferred,
}

impl Migration {
    /// Removes the keys that the target has accepted, unless they are to be kept here. Returns whether any key existed
    /// and was sent.
    ///
    /// # Errors
    /// Returns the error for the client.
    pub(super) fn conclude(
        &self,
        executor: &mut Executor,
        transferred: &Transferred,
    ) -> Result<bool, CommandError> {
        if !self.order.copies && executor.server.conditions.get().contains(Condition::REPLICA) {
            // The server has become a replica since the call began: only its primary removes keys.
            return Err(READ_ONLY_ERROR.into());
        }
        let keyspace = &executor.server.keyspace;
        let taken = &transferred.taken;
        let mut shards = taken.iter().map(|sent| keyspace.hash(&self.keys[sent.number]).shard()).collect();
        let mut guards = Guards::None;
        guards.pin(keyspace, &mut executor.turn, &mut shards);
        let (unchanged, changed): (Vec<&Sent>, Vec<&Sent>) =
            taken.iter().partition(|sent| !self.is_watch_broken(sent));
        if !self.order.copies && !unchanged.is_empty() {
            self.remove(executor, &mut guards, &unchanged);
        }
        guards.unpin(keyspace, &mut executor.turn);
        // A watch also breaks when a key expires, which is not an error.
        let now_ms = executor.turn.now_ms;
        let has_expired = |sent: &&Sent| sent.expire_at_ms.is_some_and(|at_ms| at_ms <= now_ms);
        match &transferred.failure {
            Some(failure) => Err(failure.text().into()),
            None if !changed.iter().all(has_expired) => Err(CHANGED.into()),
            None => Ok(transferred.has_sent),
        }
    }

    /// Whether a key has changed since the call began. Its shard is locked.
    fn is_watch_broken(&self, sent: &Sent) -> bool {
        self.watches.get(sent.number).is_some_and(|watched| watched.watch.is_broken())
    }

    /// Removes keys, whose shards are locked.
    fn remove(&self, executor: &mut Executor, guards: &mut Guards<'static>, keys: &[&Sent]) {
        let mut words: Vec<&[u8]> = vec![b"DEL"];
        words.extend(keys.iter().map(|sent| &*self.keys[sent.number]));
        let mut call = OwnedBatch::new();
        call.push(&words);
        // UNLINK frees large values in the background, so that other clients need not wait.
        let unlink = executor.server.registry.find_full(b"unlink").expect("there is such a command");
        let Handler::Data(data) = unlink.handler else { unreachable!("it is a command on keys") };
        let (keyspace, turn, database) = (&executor.server.keyspace, &mut executor.turn, self.database);
        let mut context = Context { keyspace, guards, turn, database, waiting: Waiting::Never };
        let mut count = Reply::new(Protocol::Resp2);
        let removed = dispatch::run(data, unlink.access, None, &mut context, call.command(0), &mut count);
        debug_assert!(removed.is_ok(), "removing keys does not fail");
    }
}

/// Writes the reply of a successful migration.
pub(super) fn answer(had_key: bool, reply: &mut Reply) {
    reply.simple(if had_key { "OK" } else { "NOKEY" });
}

impl Job for Migration {
    fn worker(&self) -> usize {
        self.client.worker
    }

    fn run(&mut self, server: &'static Server) {
        self.transferred = Migrations::of(server).transfer_here(server, self);
    }

    fn settle(self: Box<Self>, executor: &mut Executor) -> Option<Settled> {
        let concluded = self.conclude(executor, &self.transferred);
        let keyspace = &executor.server.keyspace;
        self.watches.iter().for_each(|watched| watched.end(keyspace, &mut executor.turn));
        let mut reply = Box::new(Reply::new(self.protocol));
        let result = concluded.map(|had_key| answer(had_key, &mut reply));
        let call = Finished {
            client: &self.client,
            command: self.command,
            args: self.call.command(0),
            wire_bytes_max: self.call.wire_bytes_max(),
            begun: self.begun,
            keys: &self.keys,
        };
        Some(executor.finish_job(&call, result, reply))
    }
}
