//! What `maxmemory` leaves for keys and their values, where values can go away.
//!
//! `maxmemory` limits what is resident, but for what an empty server takes. The account has the keys, their values, and what
//! is kept for clients; all else counts as soon as it is seen: buffers of segments, values that are read, what a snapshot
//! holds back, caches of a store, and holes that values have left in slabs of the allocator.
//!
//! ```text
//! resident = base + counted + beside + unused       unused: pages without allocations, which are given back at the limit
//! room     = maxmemory - beside                      the account stays below it
//! ```
//!
//! A checkpoint of a store takes memory, and lets nothing go meanwhile: what the last ones took is kept free between them.
//!
//! Values that go leave holes: what is counted falls then, and `beside` grows. So no more goes after one look than what is
//! resident above the limit, and holes are filled by what comes next.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::{Storage, used_bytes};
use crate::server::Server;
use crate::system::abort_on_panic::AbortOnPanic;
use crate::system::heap;

/// How often it is looked while more than half of the limit is resident.
const LOOK_INTERVAL: Duration = Duration::from_millis(10);

/// And while less is; the allocator is asked as seldom as long as the system says about the same. It takes up to a
/// millisecond to add up what each of its arenas has.
const IDLE_LOOK_INTERVAL: Duration = Duration::from_millis(50);

/// What the system says is about the same if it is within one part in so many of the limit.
const SAME_SHARE: u64 = 512;

/// One part in so many of the limit is kept free for what comes between two looks.
const SPARE_SHARE: u64 = 16;

/// Whatever else is in memory, keys and values may have one part in so many: else nothing could be held for a call.
const ROOM_SHARE_MIN: u64 = 4;

/// With less as `maxmemory` only what is counted is limited: buffers and what files need are as large as for more, and would
/// leave nothing for values.
const RESIDENT_LIMIT_MIN: u64 = 48 << 20;

/// A first checkpoint is taken to need one part in so many of the limit.
const FIRST_CHECKPOINT_SHARE: u64 = 8;

/// What was seen last.
#[derive(Default)]
pub(crate) struct Resident {
    /// In memory without being counted, beyond an empty server's.
    beside_bytes: AtomicU64,
    /// Up to this much of what is counted nothing goes away.
    goal_bytes: AtomicU64,
}

impl Resident {
    /// In memory without being counted, beyond an empty server's.
    pub(crate) fn beside_bytes(&self) -> u64 {
        self.beside_bytes.load(Ordering::Relaxed)
    }

    /// Up to this much of what is counted nothing goes away.
    pub(crate) fn goal_bytes(&self) -> u64 {
        self.goal_bytes.load(Ordering::Relaxed)
    }
}

/// Starts the thread that looks. What is in memory now is taken for what an empty server takes. It is a thread of its own:
/// the one that sends values away waits for the disk.
///
/// # Errors
/// If there is no thread.
pub(crate) fn start(server: &'static Server) -> std::io::Result<()> {
    let mut observer = Observer::new(server);
    observer.look();
    thread::Builder::new().name("storage-memory".to_owned()).spawn(move || {
        let _guard = AbortOnPanic;
        loop {
            thread::park_timeout(observer.interval);
            observer.look();
        }
    })?;
    Ok(())
}

struct Observer {
    server: &'static Server,
    /// Of an empty server.
    base_bytes: u64,
    interval: Duration,
    /// When the allocator was asked last, and what the system said then.
    asked: Option<(Instant, u64)>,
    /// While a checkpoint is under way: what was beside when it began, and the most since then.
    checkpoint: Option<(u64, u64)>,
    /// What a checkpoint takes; None before the first.
    checkpoint_bytes: Option<u64>,
}

impl Observer {
    fn new(server: &'static Server) -> Observer {
        Observer {
            server,
            base_bytes: resident_bytes(heap::allocator().unused()),
            interval: IDLE_LOOK_INTERVAL,
            asked: None,
            checkpoint: None,
            checkpoint_bytes: None,
        }
    }

    /// Looks, and sets how much room there is.
    fn look(&mut self) {
        let (server, storage) = (self.server, Storage::of(self.server));
        let config = server.config.snapshot();
        let limit = config.maxmemory;
        if limit == 0 {
            server.room_bytes.store(usize::MAX, Ordering::Relaxed);
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
            // Should that fail, the allocator does it by itself a little later.
            let _ = heap::purge();
        }
        self.interval = if without_base > limit / 2 { LOOK_INTERVAL } else { IDLE_LOOK_INTERVAL };
        let beside = without_base.saturating_sub(used);
        let beside_soon = if limits_all { beside + self.for_checkpoint(storage, limit, beside) } else { 0 };
        let (room, goal) = room_and_goal(limit, limit / 100 * config.tiered_goal, beside_soon);
        storage.resident.beside_bytes.store(beside, Ordering::Relaxed);
        storage.resident.goal_bytes.store(goal, Ordering::Relaxed);
        server.room_bytes.store(usize::try_from(room).unwrap_or(usize::MAX), Ordering::Relaxed);
    }

    /// Whether the last look was a moment ago, and the system says about the same.
    fn is_as_before(&self, anonymous: Option<u64>, limit: u64) -> bool {
        anonymous.zip(self.asked).is_some_and(|(bytes, (at, before))| {
            bytes.abs_diff(before) < limit / SAME_SHARE && at.elapsed() < IDLE_LOOK_INTERVAL
        })
    }

    /// Bytes to keep free for a checkpoint, or what is left of them while one is under way.
    fn for_checkpoint(&mut self, storage: &Storage, limit: u64, beside: u64) -> u64 {
        if storage.store().is_none() {
            return 0;
        }
        let needed = self.checkpoint_bytes.unwrap_or(limit / FIRST_CHECKPOINT_SHARE);
        if storage.is_checkpointing.load(Ordering::Relaxed) {
            let (begun, most) = self.checkpoint.get_or_insert((beside, beside));
            *most = beside.max(*most);
            return needed.saturating_sub(beside.saturating_sub(*begun));
        }
        let Some((begun, most)) = self.checkpoint.take() else { return needed };
        // One that has little to tell says little of the next.
        let needed = (most - begun).max(self.checkpoint_bytes.unwrap_or(0) / 2);
        *self.checkpoint_bytes.insert(needed)
    }
}

/// In memory, without pages of files and without `unused` bytes that are to be given back.
fn resident_bytes(unused: u64) -> u64 {
    let anonymous = heap::anonymous_bytes().unwrap_or_else(|| heap::allocator().resident);
    anonymous.saturating_sub(unused)
}

fn spared(limit: u64) -> u64 {
    limit - limit / SPARE_SHARE
}

/// What may be counted with so much beside it, and up to where nothing goes away: `goal_max` at most.
fn room_and_goal(limit: u64, goal_max: u64, beside: u64) -> (u64, u64) {
    let least = limit / ROOM_SHARE_MIN;
    let room = limit.saturating_sub(beside).max(least);
    let goal = spared(limit).saturating_sub(beside).max(least - least / SPARE_SHARE);
    (room, goal.min(goal_max))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_beside_takes_its_part_of_the_limit() {
        let mib = |count: u64| count << 20;
        let limit = mib(320);
        for (beside, room, goal) in
            [(0, 320, 287), (10, 310, 287), (40, 280, 260), (230, 90, 75), (400, 80, 75)]
        {
            let found = room_and_goal(limit, limit / 100 * 90, mib(beside));
            assert_eq!((found.0 >> 20, found.1 >> 20), (room, goal), "{beside}");
        }
        assert_eq!(room_and_goal(1, 0, 0), (1, 0));
        assert_eq!(room_and_goal(limit, 0, 0), (limit, 0));
    }
}
