//! The conditions under which a command does not run immediately: data are being loaded, a disk fails, a snapshot has
//! to save keys first, or keys are held (`server/held_keys.rs`).

use ember_protocol::Args;
use emberkv_core::error::CommandError;
use emberkv_core::keys::Guards;
use emberkv_core::keyspace::hash::KeyHash;
use emberkv_core::spec::Flags;

use super::Executor;
use crate::catalogue::registry::Command;
use crate::clients::client::Client;
use crate::clients::transaction::Transaction;
use crate::server::conditions::{
    Condition, FEW_REPLICAS_ERROR, LINK_DOWN_ERROR, LOADING_ERROR, READ_ONLY_ERROR,
};

/// Flags of commands that may change keys.
const CHANGES: Flags = Flags::WRITE.union(Flags::MAY_REPLICATE);

/// The conditions under which some keys must not be changed.
const KEEPS_KEYS: Condition = Condition::SNAPSHOT.union(Condition::KEYS_HELD);

/// Whether a command of a client runs now.
pub(super) enum Check {
    Runs,
    /// The command must be retried later.
    Waits,
    /// The connection is being closed.
    IsCut,
}

impl Executor {
    /// Checks a command of a client of this worker under the conditions that are in effect. `hash` is the hash of the
    /// command's key, if it has exactly one.
    ///
    /// # Errors
    /// Returns the error with which the command is refused.
    pub(super) fn check_conditions(
        &mut self,
        conditions: Condition,
        client: &Client,
        guards: &mut Guards<'static>,
        (command, hash): (&Command, Option<KeyHash>),
        args: Args<'_>,
    ) -> Result<Check, CommandError> {
        if conditions == Condition::CLUSTER {
            return self.check_slots_for(client, command, hash, args).map(|()| Check::Runs);
        }
        if client.view.is_cut() {
            return Ok(Check::IsCut);
        }
        if conditions.contains(Condition::CLUSTER) {
            self.check_slots_for(client, command, hash, args)?;
        }
        let waits = self.must_wait(Some(client), guards, command, args)?;
        Ok(if waits { Check::Waits } else { Check::Runs })
    }

    /// Returns whether a command must be retried later. The command comes from a client of this worker or from another
    /// worker.
    ///
    /// # Errors
    /// Returns the error with which the command is refused.
    #[cold]
    pub(super) fn must_wait(
        &mut self,
        client: Option<&Client>,
        guards: &mut Guards<'static>,
        command: &Command,
        args: Args<'_>,
    ) -> Result<bool, CommandError> {
        let conditions = &self.server.conditions;
        let now = conditions.get();
        let is_primary = client.is_some_and(|client| client.primary.is_some());
        let transaction = client.and_then(|client| client.transaction.as_deref());
        let queued = transaction.filter(|_| command.spec.name == "exec");
        if !is_primary {
            self.check_role(now, queued, command)?;
        }
        if now.contains(Condition::LOADING) && !command.spec.flags.contains(Flags::LOADING) {
            return Err(LOADING_ERROR.into());
        }
        if now.contains(Condition::PUSHES_LAG) {
            return Ok(true);
        }
        let flags = queued.map_or(command.spec.flags, |transaction| transaction.flags());
        if now.intersects(Condition::DISK_REFUSES_WRITES)
            && !is_primary
            && (flags.contains(Flags::WRITE) || command.spec.name == "ping")
            && let Some(error) = conditions.disk_refusal()
        {
            return Err(error.into());
        }
        if now.intersects(Condition::FEW_REPLICAS | Condition::FEW_TO_SYNC)
            && !is_primary
            && flags.contains(Flags::WRITE)
            && conditions.has_too_few_replicas(self.sync_replicas(client))
        {
            return Err(FEW_REPLICAS_ERROR.into());
        }
        let runs_now = transaction.is_none() || command.spec.is_immediate;
        if now.contains(Condition::AOF_LAGS) && flags.contains(Flags::WRITE) && runs_now {
            return Ok(true);
        }
        if now.contains(Condition::MEMORY_LAGS) && flags.contains(Flags::DENYOOM) && runs_now {
            return Ok(true);
        }
        if !now.intersects(KEEPS_KEYS) || !flags.intersects(CHANGES) || !runs_now {
            return Ok(false);
        }
        if flags.contains(Flags::DENYOOM) && self.waits_to_evict(args.total_bytes()) {
            return Ok(true);
        }
        Ok(match queued {
            None => self.is_kept_waiting(guards, command, args),
            Some(transaction) => transaction.calls().any(|(index, args)| {
                let command = self.server.registry.get(index);
                command.spec.flags.intersects(CHANGES) && self.is_kept_waiting(guards, command, args)
            }),
        })
    }

    /// Returns how many replicas must have a client's writes before the client receives the reply.
    #[inline]
    pub(crate) fn sync_replicas(&self, client: Option<&Client>) -> u32 {
        let own = client.and_then(|client| client.sync_wish.as_ref());
        own.map_or(self.config.sync_replicas, |wish| wish.replicas)
    }

    /// Checks that the server's role permits a client's call.
    ///
    /// # Errors
    /// Returns `READONLY` or `MASTERDOWN` if this server is a replica that must refuse the call.
    fn check_role(
        &self,
        now: Condition,
        queued: Option<&Transaction>,
        command: &Command,
    ) -> Result<(), CommandError> {
        let has_flag = |flag| {
            command.spec.flags.contains(flag) || queued.is_some_and(|queued| queued.flags().contains(flag))
        };
        if now.contains(Condition::REPLICA) && has_flag(Flags::WRITE) {
            return Err(READ_ONLY_ERROR.into());
        }
        if now.contains(Condition::LINK_DOWN) && !self.config.replica_serve_stale_data {
            let is_allowed = |flags: Flags| flags.contains(Flags::STALE);
            let mut calls = queued.into_iter().flat_map(|queued| queued.calls());
            let all = is_allowed(command.spec.flags)
                && calls.all(|(index, _)| is_allowed(self.server.registry.get(index).spec.flags));
            if !all {
                return Err(LINK_DOWN_ERROR.into());
            }
        }
        Ok(())
    }

    /// Returns whether a key of the call cannot be changed now, because the key is held or a snapshot has to save it
    /// first.
    fn is_kept_waiting(&mut self, guards: &mut Guards<'static>, command: &Command, args: Args<'_>) -> bool {
        let keyspace = &self.server.keyspace;
        let holds_keys = self.server.conditions.get().contains(Condition::KEYS_HELD);
        command.spec.key_positions(args).any(|arg| {
            if holds_keys && self.server.waits_for_held(args.at(arg)) {
                return true;
            }
            let hash = keyspace.hash(args.at(arg));
            guards.hold_one(keyspace, &mut self.turn, hash);
            guards.data(hash.shard()).must_wait(hash, args.at(arg))
        })
    }

    /// Returns whether no condition refuses or delays a command on one key. Only then may it be sent to the key's
    /// owner, because other workers cannot park the connection.
    #[inline]
    pub(super) fn meets_nothing(
        &mut self,
        guards: &mut Guards<'static>,
        client: &Client,
        (command, hash): (&Command, KeyHash),
        args: Args<'_>,
    ) -> bool {
        let now = self.server.conditions.get();
        if now.contains(Condition::CLUSTER)
            && self.check_slots_for(client, command, Some(hash), args).is_err()
        {
            return false;
        }
        let now = now.difference(Condition::CLUSTER);
        now.is_empty() || (!client.view.is_cut() && self.meets_no(now, guards, command, args))
    }

    #[cold]
    fn meets_no(
        &mut self,
        now: Condition,
        guards: &mut Guards<'static>,
        command: &Command,
        args: Args<'_>,
    ) -> bool {
        if now.contains(Condition::MEMORY_LAGS) && command.spec.flags.contains(Flags::DENYOOM) {
            return false;
        }
        let changes = command.spec.flags.intersects(CHANGES);
        let delays = Condition::REFUSES_WRITES | Condition::AOF_LAGS | Condition::REPLICA;
        if now.intersects(Condition::LOADING | Condition::PUSHES_LAG | Condition::LINK_DOWN)
            || (changes && now.intersects(delays))
        {
            return false;
        }
        if command.spec.flags.contains(Flags::DENYOOM) && self.waits_to_evict(args.total_bytes()) {
            return false;
        }
        !changes || !self.is_kept_waiting(guards, command, args)
    }
}
