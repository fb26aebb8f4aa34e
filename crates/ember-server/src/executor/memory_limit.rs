//! Enforces `maxmemory`: keys are evicted before commands run, and by periodic work.
//!
//! Before a command that may need memory, enough is freed for the size of its request, or the command is refused.
//! Before any other command of a connection, at most [`EVICTED_TOGETHER_BYTES`] are freed, so that reads are not
//! delayed for long after the limit was lowered.
//!
//! The memory of the server without data counts, too, as in Redis, so that `used_memory` stays close to `maxmemory`.
//!
//! The memory that a running snapshot retains (old values not yet written) counts, and evicting a key that the snapshot
//! has not saved yet adds to it. While this memory is at its maximum, calls that would have to evict wait, and periodic
//! work evicts no keys.

use std::sync::atomic::Ordering;

use ember_protocol::Reply;
use emberkv_core::error::CommandError;
use emberkv_core::eviction::EvictionPolicy;
use emberkv_core::keys::Guards;

use super::{Executor, Section};
use crate::catalogue::registry::Command;
use crate::clients::client::Client;
use crate::server::conditions::Condition;
use crate::tiers::Tiers;

/// The growth of the data, in bytes, that a worker publishes before its batch ends. The memory limit is exact to within
/// this size per worker.
const GROWTH_PUBLISHED_BYTES: i64 = 64 * 1024;

/// The maximum bytes freed per tick, or before one command that needs no memory: some hundred keys.
const EVICTED_TOGETHER_BYTES: usize = 1024 * 1024;

/// The memory that a snapshot retains counts up to `maxmemory` divided by this number.
const HELD_BACK_SHARE: usize = 8;

impl Executor {
    /// Logs that a command is refused, if it is for lack of memory; `client` returns the name of the client.
    pub(super) fn log_refusal(command: &Command, error: &CommandError, client: impl FnOnce() -> String) {
        if matches!(error, CommandError::OutOfMemory) {
            tracing::trace!("{} of {} is refused: maxmemory is reached", command.full_name, client());
        }
    }

    /// Like [`Executor::log_refusal`], for a client that another worker may serve.
    pub(super) fn log_refusal_of(&self, command: &Command, error: &CommandError, client_id: u64) {
        Self::log_refusal(command, error, || match self.server.clients.get(client_id) {
            Some(view) => view.log_name(),
            None => format!("client {client_id}"),
        });
    }

    /// Returns the limit of the memory of keys, clients and snapshots: `maxmemory` without the memory of the server.
    #[inline]
    fn limit_bytes(&self) -> usize {
        let maxmemory = self.config.maxmemory;
        usize::try_from(maxmemory - self.server.counted_startup_bytes(maxmemory)).unwrap_or(usize::MAX)
    }

    /// Returns whether `incoming` more bytes would exceed `maxmemory`. The memory of clients counts, but only keys are
    /// evicted here.
    #[inline]
    fn exceeds_limit(&self, incoming: usize) -> bool {
        self.exceeds(self.limit_bytes(), incoming)
    }

    /// Returns whether memory is limited and `bytes` more bytes would exceed the budget.
    pub(super) fn exceeds_memory_with(&self, bytes: usize) -> bool {
        self.config.maxmemory != 0 && self.exceeds_budget(bytes)
    }

    /// Returns whether `incoming` more bytes would exceed the budget: with demotion, `maxmemory` limits all resident
    /// memory.
    #[inline]
    fn exceeds_budget(&self, incoming: usize) -> bool {
        self.exceeds(self.limit_bytes().min(self.server.budget_bytes.load(Ordering::Relaxed)), incoming)
    }

    #[inline]
    fn exceeds(&self, limit: usize, incoming: usize) -> bool {
        let growth = usize::try_from(self.turn.growth_bytes).unwrap_or(0);
        let used = (self.server.keyspace.used_bytes() + growth).saturating_add(self.non_key_bytes());
        used.saturating_add(incoming) > limit
    }

    /// Returns the bytes that count in addition to the keys: the memory of clients, and the memory that a snapshot
    /// retains. The latter is a small part of `maxmemory`, unless `maxmemory` is very low.
    #[inline]
    fn non_key_bytes(&self) -> usize {
        let held_back = self.server.keyspace.held_back().bytes().min(self.limit_bytes() / HELD_BACK_SHARE);
        self.client_memory.total() + held_back
    }

    /// Returns whether a call of `incoming` bytes must wait, because it would evict keys while a snapshot retains its
    /// maximum of memory. The call is retried when the snapshot has written some of it.
    pub(super) fn waits_to_evict(&self, incoming: usize) -> bool {
        let held_back = self.server.keyspace.held_back();
        self.config.maxmemory != 0
            && self.config.maxmemory_policy != EvictionPolicy::NoEviction
            && !self.is_replica
            && held_back.is_full()
            && self.exceeds_limit(incoming)
            && held_back.must_wait()
    }

    /// Frees memory for a write of `incoming` bytes, if memory is limited and not sufficient.
    pub(crate) fn free_memory(
        &mut self,
        guards: &mut Guards<'static>,
        incoming: usize,
    ) -> Result<(), CommandError> {
        // A replica leaves eviction to its primary, but it demotes values itself.
        if self.is_replica && !self.turn.checks_values {
            return Ok(());
        }
        // After the write, there may be a key that can be evicted.
        self.has_nothing_to_evict = false;
        let keyspace = &self.server.keyspace;
        guards.release(keyspace, &mut self.turn);
        if self.turn.growth_bytes.abs() > GROWTH_PUBLISHED_BYTES {
            keyspace.publish_bytes(std::mem::take(&mut self.turn.growth_bytes));
        }
        if !self.exceeds_budget(incoming) {
            return Ok(());
        }
        // Between budget and limit, a write does not wait if no value can be demoted. Above the limit,
        // `leaves_to_demotion` checks again whether values can be demoted, before the write is refused.
        let waits = |executor: &Executor| {
            executor.turn.checks_values
                && (!Tiers::of(executor.server).is_spent() || executor.exceeds_limit(incoming))
        };
        if waits(self) && self.leaves_to_demotion(incoming) {
            return Ok(());
        }
        // Memory that is not counted never causes a command to be refused or a key to be evicted.
        if self.is_replica || !self.exceeds_limit(incoming) {
            return Ok(());
        }
        if self.leaves_expiry_to_others() {
            return Err(CommandError::OutOfMemory);
        }
        keyspace.publish_bytes(std::mem::take(&mut self.turn.growth_bytes));
        let (limit, samples) = (self.limit_bytes(), self.config.maxmemory_samples);
        let left = limit.saturating_sub(incoming.saturating_add(self.non_key_bytes()));
        let made = self.evictor.free_memory(keyspace, &mut self.turn, left, samples);
        let is_too_much = incoming.saturating_add(self.client_memory.total()) > limit;
        if made.is_err() || is_too_much { Err(CommandError::OutOfMemory) } else { Ok(()) }
    }

    /// Returns whether values are demoted for a call of `incoming` bytes instead of evicting keys. Later calls wait
    /// until memory is free.
    #[cold]
    fn leaves_to_demotion(&self, incoming: usize) -> bool {
        let tiers = Tiers::of(self.server);
        let can_fit = incoming.saturating_add(self.client_memory.total()) <= self.limit_bytes() / 2;
        let leaves = can_fit && tiers.can_demote();
        if leaves {
            self.server.conditions.set(Condition::MEMORY_LAGS, true);
            tiers.wake_demoter();
        }
        leaves
    }

    /// Frees memory in the background, after the limit was lowered or while no client writes.
    pub(crate) fn free_memory_in_background(&mut self) {
        self.has_nothing_to_evict = false;
        if !self.config.maxmemory_policy.has_ghosts() {
            self.server.keyspace.forget_ghosts();
        }
        if self.config.maxmemory != 0 {
            self.evict_some();
        }
    }

    /// Frees memory before a command of a connection that itself needs none. Clients are notified of evicted keys that
    /// they have read; the caller is notified before it receives its reply.
    #[inline]
    pub(super) fn free_memory_before(
        &mut self,
        client: &Client,
        guards: &mut Guards<'static>,
        reply: &mut Reply,
    ) {
        if self.config.maxmemory != 0 && !self.has_nothing_to_evict && self.exceeds_limit(0) {
            self.evict_before(client, guards, reply);
        }
    }

    #[cold]
    fn evict_before(&mut self, client: &Client, guards: &mut Guards<'static>, reply: &mut Reply) {
        if client.transaction.is_some() || self.section != Section::Shared {
            return;
        }
        guards.release(&self.server.keyspace, &mut self.turn);
        self.evict_some();
        self.deliver_notices(guards, None, Some((client, reply)));
    }

    /// Frees a limited amount of memory; none while writes are paused or another server decides on eviction. The caller
    /// holds no lock.
    fn evict_some(&mut self) {
        if self.turn.keeps_expired {
            return;
        }
        if self.turn.checks_values && Tiers::of(self.server).can_demote() {
            return;
        }
        let keyspace = &self.server.keyspace;
        if keyspace.held_back().is_full() {
            return;
        }
        keyspace.publish_bytes(std::mem::take(&mut self.turn.growth_bytes));
        let limit = self.limit_bytes().saturating_sub(self.non_key_bytes());
        let limit = limit.max(keyspace.used_bytes().saturating_sub(EVICTED_TOGETHER_BYTES));
        let samples = self.config.maxmemory_samples;
        // An error is not reported here: the next write receives it.
        self.has_nothing_to_evict =
            self.evictor.free_memory(keyspace, &mut self.turn, limit, samples).is_err();
    }
}
