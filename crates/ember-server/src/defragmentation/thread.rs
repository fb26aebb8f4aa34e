//! The thread that defragments memory.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use ember_config::Config;
use emberkv_core::defragmentation::Defragmentation;

use super::ActiveDefrag;
use super::effort::Effort;
use crate::server::Server;
use crate::system::abort_on_panic::AbortOnPanic;
use crate::system::allocator::{SlabQuery, leave_thread_cache};
use crate::system::clock::unix_ms;
use crate::system::heap;

/// Interval at which the thread reads how much memory is unused, and the configuration.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// If a walk has moved less than one in this number of allocations, nearly all of them are placed well, and another
/// walk cannot reduce the unused memory.
const FRUITLESS_SHARE: u64 = 200;

/// The pause after a walk that has moved too few allocations.
const FRUITLESS_PAUSE: Duration = Duration::from_secs(10);

/// Starts the thread. It ends when defragmentation is disabled.
pub(super) fn start(server: &'static Server) {
    let spawned = thread::Builder::new().name("defragmentation".to_owned()).spawn(move || {
        let _guard = AbortOnPanic;
        let state = ActiveDefrag::of(server);
        match Defragmenter::new(server, state) {
            Ok(mut defragmenter) => defragmenter.run(),
            Err(error) => {
                tracing::error!("memory is not defragmented: {error}");
                // After an error, no new thread may be started until the parameter is set to `no` and then to `yes`.
                while server.config.snapshot().activedefrag {
                    thread::park_timeout(FRUITLESS_PAUSE);
                }
            }
        }
        state.set_effort(0, unix_ms());
        state.is_started.store(false, Ordering::Relaxed);
    });
    if let Err(error) = spawned {
        tracing::error!("memory is not defragmented: cannot start a thread: {error}");
        ActiveDefrag::of(server).is_started.store(false, Ordering::Relaxed);
    }
}

struct Defragmenter {
    server: &'static Server,
    state: &'static ActiveDefrag,
    query: SlabQuery,
    config: Arc<Config>,
    checked_at: Instant,
    /// The state of the current walk over all keys.
    walk: Defragmentation,
    /// The counts of the current walk that are already included in the shared state.
    counted: Counts,
    /// The time before which no walk may begin.
    rests_until: Option<Instant>,
}

#[derive(Clone, Copy, Default)]
struct Counts {
    hits: u64,
    misses: u64,
    key_hits: u64,
    key_misses: u64,
}

impl Counts {
    fn of(walk: &Defragmentation) -> Counts {
        Counts { hits: walk.moved, misses: walk.left, key_hits: walk.keys.moved, key_misses: walk.keys.left }
    }
}

impl Defragmenter {
    fn new(server: &'static Server, state: &'static ActiveDefrag) -> Result<Defragmenter, String> {
        let query = SlabQuery::new().ok_or("the allocator does not report how full its slabs are")?;
        leave_thread_cache()?;
        Ok(Defragmenter {
            server,
            state,
            query,
            config: server.config.snapshot(),
            checked_at: Instant::now(),
            walk: Defragmentation::new(),
            counted: Counts::default(),
            rests_until: None,
        })
    }

    /// Defragments until defragmentation is disabled.
    fn run(&mut self) {
        let mut effort = self.check();
        while self.config.activedefrag {
            match effort {
                Some(percent) => self.work(percent),
                None => thread::park_timeout(CHECK_INTERVAL),
            }
            if self.checked_at.elapsed() >= CHECK_INTERVAL {
                effort = self.check();
            }
        }
    }

    /// Reads the configuration, and how much memory is unused. Returns the effort in per cent of a processor, or `None`
    /// if there is no work.
    fn check(&mut self) -> Option<u64> {
        self.checked_at = Instant::now();
        self.config = self.server.config.snapshot();
        let now = heap::allocator();
        let rests = self.server.is_loading() || self.rests_until.is_some_and(|until| Instant::now() < until);
        let effort = Effort::of(&self.config).percent(now.active, now.allocated, self.config.maxmemory);
        let effort = effort.filter(|_| !rests);
        self.state.set_effort(effort.unwrap_or(0), unix_ms());
        effort
    }

    /// Works for one cycle, then pauses so that the thread uses at most `percent` per cent of a processor.
    fn work(&mut self, percent: u64) {
        let begun = Instant::now();
        let cycle = Duration::from_micros(self.config.active_defrag_cycle_us);
        let elements_max = usize::try_from(self.config.active_defrag_max_scan_fields).unwrap_or(usize::MAX);
        let query = &self.query;
        let mut continues = true;
        while continues {
            let keyspace = &self.server.keyspace;
            continues = self.walk.step(keyspace, elements_max, &mut |place| query.is_sparse(place));
            if begun.elapsed() >= cycle {
                break;
            }
        }
        self.count();
        if !continues {
            let is_fruitless = self.walk.moved <= (self.walk.moved + self.walk.left) / FRUITLESS_SHARE;
            self.rests_until = is_fruitless.then(|| Instant::now() + FRUITLESS_PAUSE);
            (self.walk, self.counted) = (Defragmentation::new(), Counts::default());
            self.state.walks.fetch_add(1, Ordering::Relaxed);
            // The end of a walk makes the next check due: the walk has freed all that it can, so another walk may not
            // be worth it.
            self.checked_at -= CHECK_INTERVAL;
        }
        let pause = begun.elapsed() * (100 - u32::try_from(percent).unwrap_or(99).min(99))
            / u32::try_from(percent).unwrap_or(1).max(1);
        thread::park_timeout(pause.min(CHECK_INTERVAL));
    }

    /// Adds the new counts of the current walk to the shared state.
    fn count(&mut self) {
        let now = Counts::of(&self.walk);
        let before = std::mem::replace(&mut self.counted, now);
        self.state.hits.fetch_add(now.hits - before.hits, Ordering::Relaxed);
        self.state.misses.fetch_add(now.misses - before.misses, Ordering::Relaxed);
        self.state.key_hits.fetch_add(now.key_hits - before.key_hits, Ordering::Relaxed);
        self.state.key_misses.fetch_add(now.key_misses - before.key_misses, Ordering::Relaxed);
    }
}
