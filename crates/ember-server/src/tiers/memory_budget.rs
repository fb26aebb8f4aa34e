//! The part of `maxmemory` that is left for keys and their values when values can be demoted.
//!
//! `maxmemory` limits resident memory, except for what an empty server takes. The account has the keys, their values,
//! and the memory of clients; everything else counts as soon as it is measured: buffers of segments, values being read,
//! what a snapshot holds back, caches of a store, and holes that values have left in slabs of the allocator.
//!
//! ```text
//! resident = base + counted + beside + unused       unused: pages without allocations, which are returned at the limit
//! room     = maxmemory - beside                      the account stays below it
//! ```
//!
//! A checkpoint of a store takes memory, and nothing can be demoted meanwhile: the amount that recent ones took is kept
//! free between them.
//!
//! Demoted values leave holes: `counted` falls then, and `uncounted` grows. So after one measurement no more is demoted
//! than is resident above the limit, and the holes are filled by new values.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::{Tiers, used_bytes};
use crate::server::Server;
use crate::system::abort_on_panic::AbortOnPanic;
use crate::system::heap;

/// The interval of measurements while more than half of the limit is resident.
const CHECK_INTERVAL: Duration = Duration::from_millis(10);

/// The interval while less is. The allocator, too, is read only at this interval while the system reports about the
/// same size: it takes up to a millisecond to sum its arenas.
const IDLE_CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// Two sizes from the system are about the same if they differ by less than this fraction of the limit.
const SAME_SHARE: u64 = 512;

/// The fraction of the limit that is kept free for growth between two measurements.
const SPARE_SHARE: u64 = 16;

/// The fraction of the limit that keys and values always have, whatever else is in memory: otherwise nothing could be
/// kept for a call.
const BUDGET_SHARE_MIN: u64 = 4;

/// With a smaller `maxmemory` only counted bytes are limited: buffers and what files need are as large as with more,
/// and would leave nothing for values.
const RESIDENT_LIMIT_MIN: u64 = 48 << 20;

/// The fraction of the limit that is assumed for a first checkpoint.
const FIRST_CHECKPOINT_SHARE: u64 = 8;

/// The results of the last measurement.
#[derive(Default)]
pub(crate) struct Resident {
    /// Resident bytes that are not counted, without those of an empty server.
    uncounted_bytes: AtomicU64,
    /// Nothing is demoted while the counted bytes are at most this.
    goal_bytes: AtomicU64,
}

impl Resident {
    /// Returns the resident bytes that are not counted, without those of an empty server.
    pub(crate) fn uncounted_bytes(&self) -> u64 {
        self.uncounted_bytes.load(Ordering::Relaxed)
    }

    /// Returns the counted bytes up to which nothing is demoted.
    pub(crate) fn goal_bytes(&self) -> u64 {
        self.goal_bytes.load(Ordering::Relaxed)
    }
}

/// Starts the measuring thread. The memory in use now is taken for that of an empty server. It is a separate thread
/// because the demoting thread waits for the disk.
///
/// # Errors
/// The thread cannot be started.
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
    /// When the allocator was last read, and the size that the system reported then.
    asked: Option<(Instant, u64)>,
    /// During a checkpoint: the uncounted bytes at its beginning, and their maximum since.
    checkpoint: Option<(u64, u64)>,
    /// The memory that a checkpoint takes; `None` before the first.
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

    /// Measures resident memory and sets the headroom.
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
            // If that fails, the allocator returns the pages itself a little later.
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

    /// Returns whether the last measurement is recent and the system reports about the same size.
    fn is_as_before(&self, anonymous: Option<u64>, limit: u64) -> bool {
        anonymous.zip(self.asked).is_some_and(|(bytes, (at, before))| {
            bytes.abs_diff(before) < limit / SAME_SHARE && at.elapsed() < IDLE_CHECK_INTERVAL
        })
    }

    /// Returns the bytes to keep free for a checkpoint, or the rest of them during one.
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
        // A checkpoint with few changes says little about the next.
        let needed = (most - begun).max(self.checkpoint_bytes.unwrap_or(0) / 2);
        *self.checkpoint_bytes.insert(needed)
    }
}

/// Returns the resident bytes, without pages of files and without `unused` bytes that are to be returned.
fn resident_bytes(unused: u64) -> u64 {
    let anonymous = heap::anonymous_bytes().unwrap_or_else(|| heap::allocator().resident);
    anonymous.saturating_sub(unused)
}

fn spared(limit: u64) -> u64 {
    limit - limit / SPARE_SHARE
}

/// Returns the limit of counted bytes when `uncounted` others are resident, and the size up to which nothing is
/// demoted: at most `goal_max`.
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
