//! Enforces `maxmemory`: keys are evicted before commands run, and by the periodic work.
//!
//! For a command that may need memory, as much is freed as the command brings, or it is refused. Before any other
//! command of a connection at most [`EVICTED_TOGETHER_BYTES`] are freed, so that reads are not delayed for long after
//! the limit was lowered.
//!
//! The memory that a snapshot holds back counts, and evicting a key that it has still to save adds to it. While that
//! memory is at its maximum, calls that would have to evict wait, and nothing else evicts.

use std::sync::atomic::Ordering;

use ember_protocol::Reply;
use emberkv_core::error::CommandError;
use emberkv_core::eviction::EvictionPolicy;
use emberkv_core::keys::Guards;

use super::{Executor, Section};
use crate::clients::client::Client;
use crate::server::conditions::Condition;
use crate::tiers::Tiers;

/// Growth that is published before the batch ends, so that the memory limit is exact to within this size per worker.
const GROWTH_PUBLISHED_BYTES: i64 = 64 * 1024;

/// Bytes freed per tick, or before one command that needs none: some hundred keys.
const EVICTED_TOGETHER_BYTES: usize = 1024 * 1024;

/// The memory that a snapshot holds back counts up to this fraction of the limit.
const HELD_BACK_SHARE: usize = 8;

impl Executor {
    fn limit_bytes(&self) -> usize {
        usize::try_from(self.config.maxmemory).unwrap_or(usize::MAX)
    }

    /// Returns whether `incoming` more bytes would exceed the limit. The memory of clients counts like that of the
    /// data, but only keys are evicted here.
    #[inline]
    fn exceeds_limit(&self, incoming: usize) -> bool {
        self.exceeds(self.limit_bytes(), incoming)
    }

    /// Returns whether memory is limited and `bytes` more would exceed the limit.
    pub(super) fn exceeds_memory_with(&self, bytes: usize) -> bool {
        self.config.maxmemory != 0 && self.exceeds_budget(bytes)
    }

    /// Returns whether `incoming` more bytes exceed the headroom: with demotion, the limit applies to all resident
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

    /// Returns the bytes that count in addition to the keys: the memory of clients, and what a snapshot holds back. The
    /// latter is a small part of the limit, unless the limit is very low.
    #[inline]
    fn non_key_bytes(&self) -> usize {
        let held_back = self.server.keyspace.held_back().bytes().min(self.limit_bytes() / HELD_BACK_SHARE);
        self.client_memory.total() + held_back
    }

    /// Returns whether a call of `incoming` bytes must wait because it would evict keys while a snapshot holds back its
    /// maximum. It is retried when some of that is written.
    pub(super) fn waits_to_evict(&self, incoming: usize) -> bool {
        let held_back = self.server.keyspace.held_back();
        self.config.maxmemory != 0
            && self.config.maxmemory_policy != EvictionPolicy::NoEviction
            && !self.is_replica
            && held_back.is_full()
            && self.exceeds_limit(incoming)
            && held_back.must_wait()
    }

    /// Frees memory for a write of `incoming` bytes, if memory is limited and short.
    pub(crate) fn free_memory(
        &mut self,
        guards: &mut Guards<'static>,
        incoming: usize,
    ) -> Result<(), CommandError> {
        // A replica leaves eviction to its primary, but demotes values itself.
        if self.is_replica && !self.turn.checks_values {
            return Ok(());
        }
        // The write may be to a key that can be evicted.
        self.has_nothing_to_evict = false;
        let keyspace = &self.server.keyspace;
        guards.release(keyspace, &mut self.turn);
        if self.turn.growth_bytes.abs() > GROWTH_PUBLISHED_BYTES {
            keyspace.publish_bytes(std::mem::take(&mut self.turn.growth_bytes));
        }
        if !self.exceeds_budget(incoming) {
            return Ok(());
        }
        // Below the limit a write does not wait where nothing can be demoted; at the limit that is checked again before
        // it is refused.
        let waits = |executor: &Executor| {
            executor.turn.checks_values
                && (!Tiers::of(executor.server).is_spent() || executor.exceeds_limit(incoming))
        };
        if waits(self) && self.leaves_to_demotion(incoming) {
            return Ok(());
        }
        // No command is refused and no key evicted because of memory that is not counted.
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

    /// Returns whether values are demoted for a call of `incoming` bytes, instead of keys evicted. Later calls wait
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
        if self.config.maxmemory != 0 {
            self.evict_some();
        }
    }

    /// Frees memory before a command of a connection that needs none itself. Clients are notified of evicted keys that
    /// they have read; the caller is notified before it gets its reply.
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

    /// Frees a limited amount of memory, and none while writes are paused or another server decides. The caller holds
    /// no lock.
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
        // No error here: the next write receives it.
        self.has_nothing_to_evict =
            self.evictor.free_memory(keyspace, &mut self.turn, limit, samples).is_err();
    }
}
