//! The memory budget: the part of `maxmemory` that is available for keys, values and clients when values can be
//! demoted.
//!
//! `maxmemory` limits resident memory, except for the memory of an empty server. Keys, their values, and the memory of
//! clients are counted whenever they change. All other memory counts once it is measured: buffers of segments, values
//! being read, memory that a snapshot retains, caches of a store, and unused space that freed values have left in slabs
//! of the allocator.
//!
//! ```text
//! resident = base + counted + uncounted + unused    unused: pages without allocations, which are returned at the limit
//! budget   = maxmemory - uncounted                   the limit on the counted bytes
//! ```
//!
//! A checkpoint of a store takes memory, and no value can be demoted meanwhile. So the amount that recent checkpoints
//! have taken is reserved between checkpoints.
//!
//! Demoted values leave unused space in slabs, so `counted` falls and `uncounted` grows. So after a measurement, no
//! more bytes are demoted than are resident above the limit, and new values fill the unused space.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::{Tiers, used_bytes};
use crate::server::Server;
use crate::system::abort_on_panic::AbortOnPanic;
use crate::system::heap;

/// The interval of measurements while more than half of `maxmemory` is resident.
const CHECK_INTERVAL: Duration = Duration::from_millis(10);

/// The interval of measurements while less is resident. While the system reports about the same size, the allocator is
/// also read only at this interval, because it takes up to a millisecond to sum its arenas.
const IDLE_CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// Two sizes that the system reports are about the same if they differ by less than `maxmemory` divided by this number.
const SAME_SHARE: u64 = 512;

/// `maxmemory` divided by this number is reserved for growth between two measurements.
const SPARE_SHARE: u64 = 16;

/// `maxmemory` divided by this number is the minimum budget, whatever else is in memory: otherwise the values of a call
/// could not stay in memory.
const BUDGET_SHARE_MIN: u64 = 4;

/// The `maxmemory`, in bytes, below which only counted bytes are limited: buffers and the memory that files need are as
/// large as with a larger limit, and would leave no memory for values.
const RESIDENT_LIMIT_MIN: u64 = 48 << 20;

/// `maxmemory` divided by this number is assumed to be the memory that a first checkpoint takes.
const FIRST_CHECKPOINT_SHARE: u64 = 8;

/// The results of the last measurement.
#[derive(Default)]
pub(crate) struct Resident {
    /// The resident bytes that are not counted, excluding those of an empty server.
    uncounted_bytes: AtomicU64,
    /// The counted bytes up to which no values are demoted.
    goal_bytes: AtomicU64,
}

impl Resident {
    /// Returns the resident bytes that are not counted, excluding those of an empty server.
    pub(crate) fn uncounted_bytes(&self) -> u64 {
        self.uncounted_bytes.load(Ordering::Relaxed)
    }

    /// Returns the counted bytes up to which no values are demoted.
    pub(crate) fn goal_bytes(&self) -> u64 {
        self.goal_bytes.load(Ordering::Relaxed)
    }
}

/// Starts the measuring thread, which is separate because the demoting thread waits for the disk. The memory in use at
/// this time is taken as that of an empty server.
///
/// # Errors
/// Returns the system's error if the thread cannot be started.
pub(crate) fn start(server: &'static Server) -> std::io::Result<()> {
    let mut observer = Observer::new(server);
    observer.measure();
    thread::Builder::new().name("storage-memory".to_owned()).spawn(move || {
        let _guard = AbortOnPanic;
        loop {
            thread::park_timeout(observer.interval);
            observer.measure();
        }
    })?;
    Ok(())
}

struct Observer {
    server: &'static Server,
    /// The resident bytes of an empty server.
    base_bytes: u64,
    interval: Duration,
    /// The time at which the allocator was last read, and the size that the system reported then.
    asked: Option<(Instant, u64)>,
    /// During a checkpoint: the uncounted bytes at its beginning, and their maximum since then.
    checkpoint: Option<(u64, u64)>,
    /// The bytes that a checkpoint is expected to take; `None` before the first one has ended.
    checkpoint_bytes: Option<u64>,
}

impl Observer {
    fn new(server: &'static Server) -> Observer {
        Observer {
            server,
            base_bytes: resident_bytes(heap::allocator().unused()),
            interval: IDLE_CHECK_INTERVAL,
            asked: None,
            checkpoint: None,
            checkpoint_bytes: None,
        }
    }

    /// Measures resident memory and sets the budget and the goal.
    fn measure(&mut self) {
        let (server, tiers) = (self.server, Tiers::of(self.server));
        let config = server.config.snapshot();
        let limit = config.maxmemory;
        if limit == 0 {
            server.budget_bytes.store(usize::MAX, Ordering::Relaxed);
            self.asked = None;
            return;
        }
        let anonymous = heap::anonymous_bytes();
        if self.is_as_before(anonymous, limit) {
            return;
        }
        self.asked = anonymous.map(|bytes| (Instant::now(), bytes));
        let unused = heap::allocator().unused();
        let used = used_bytes(server) as u64;
        let without_base = resident_bytes(unused).saturating_sub(self.base_bytes);
        let limits_all = limit >= RESIDENT_LIMIT_MIN;
        if limits_all && without_base + unused > spared(limit) {
            // If this fails, the allocator returns the pages itself a little later.
            let _ = heap::purge();
        }
        self.interval = if without_base > limit / 2 { CHECK_INTERVAL } else { IDLE_CHECK_INTERVAL };
        let uncounted = without_base.saturating_sub(used);
        let uncounted_soon =
            if limits_all { uncounted + self.for_checkpoint(tiers, limit, uncounted) } else { 0 };
        let (budget, goal) = budget_and_goal(limit, limit / 100 * config.tiered_goal, uncounted_soon);
        tiers.resident.uncounted_bytes.store(uncounted, Ordering::Relaxed);
        tiers.resident.goal_bytes.store(goal, Ordering::Relaxed);
        server.budget_bytes.store(usize::try_from(budget).unwrap_or(usize::MAX), Ordering::Relaxed);
    }

    /// Returns whether the last measurement is recent and the system still reports about the same size.
    fn is_as_before(&self, anonymous: Option<u64>, limit: u64) -> bool {
        anonymous.zip(self.asked).is_some_and(|(bytes, (at, before))| {
            bytes.abs_diff(before) < limit / SAME_SHARE && at.elapsed() < IDLE_CHECK_INTERVAL
        })
    }

    /// Returns the bytes to reserve for a checkpoint; during a checkpoint, the part that it has not taken yet.
    fn for_checkpoint(&mut self, tiers: &Tiers, limit: u64, uncounted: u64) -> u64 {
        if tiers.store().is_none() {
            return 0;
        }
        let needed = self.checkpoint_bytes.unwrap_or(limit / FIRST_CHECKPOINT_SHARE);
        if tiers.is_checkpointing.load(Ordering::Relaxed) {
            let (begun, most) = self.checkpoint.get_or_insert((uncounted, uncounted));
            *most = uncounted.max(*most);
            return needed.saturating_sub(uncounted.saturating_sub(*begun));
        }
        let Some((begun, most)) = self.checkpoint.take() else { return needed };
        // A checkpoint with few changes predicts little about the next one.
        let needed = (most - begun).max(self.checkpoint_bytes.unwrap_or(0) / 2);
        *self.checkpoint_bytes.insert(needed)
    }
}

/// Returns the resident bytes, excluding pages of files and `unused` bytes that are about to be returned.
fn resident_bytes(unused: u64) -> u64 {
    let anonymous = heap::anonymous_bytes().unwrap_or_else(|| heap::allocator().resident);
    anonymous.saturating_sub(unused)
}

fn spared(limit: u64) -> u64 {
    limit - limit / SPARE_SHARE
}

/// Returns the budget, which is the limit of counted bytes when `uncounted` other bytes are resident, and the goal,
/// which is the size up to which no values are demoted (at most `goal_max`).
fn budget_and_goal(limit: u64, goal_max: u64, uncounted: u64) -> (u64, u64) {
    let least = limit / BUDGET_SHARE_MIN;
    let budget = limit.saturating_sub(uncounted).max(least);
    let goal = spared(limit).saturating_sub(uncounted).max(least - least / SPARE_SHARE);
    (budget, goal.min(goal_max))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_beyond_the_data_reduces_the_budget() {
        let mib = |count: u64| count << 20;
        let limit = mib(320);
        for (uncounted, budget, goal) in
            [(0, 320, 287), (10, 310, 287), (40, 280, 260), (230, 90, 75), (400, 80, 75)]
        {
            let found = budget_and_goal(limit, limit / 100 * 90, mib(uncounted));
            assert_eq!((found.0 >> 20, found.1 >> 20), (budget, goal), "{uncounted}");
        }
        assert_eq!(budget_and_goal(1, 0, 0), (1, 0));
        assert_eq!(budget_and_goal(limit, 0, 0), (limit, 0));
    }
}
