//! Disconnected replicas: replicas for which the stream is still kept, and replicas whose next full sync is delayed
//! because they were too slow or did not load their snapshots.

use std::collections::BTreeMap;

/// The maximum number of replicas in each table.
const MANY: usize = 64;

/// The delay of the next full sync of a replica that was too slow or did not load its snapshots, in ms: the first
/// delay, and the maximum. The delay doubles each time.
const HELD_BACK_MIN_MS: i64 = 10_000;
const HELD_BACK_MAX_MS: i64 = 300_000;

/// The number of consecutive snapshots that a replica receives without loading them before its next full sync is
/// delayed: up to then, a broken link may be the reason.
const UNLOADED_MAX: u32 = 3;

/// Time in ms after which a delayed replica is treated like any other.
const FORGIVEN_AFTER_MS: i64 = 1_800_000;

struct Absent {
    /// The stream position from which the replica will resume.
    position: u64,
    /// When the replica disconnected, Unix time in ms.
    since_ms: i64,
}

/// The reason why the next full sync of a replica is delayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// The replica was too slow for the stream.
    Slow,
    /// The replica did not load its last snapshots.
    Unloaded,
}

struct Slow {
    fault: Fault,
    /// The number of times that the replica was at fault.
    times: u32,
    /// When the replica was last at fault, Unix time in ms.
    at_ms: i64,
}

impl Slow {
    fn held_back_until_ms(&self) -> i64 {
        let pause_ms = HELD_BACK_MIN_MS.saturating_mul(1 << self.times.clamp(1, 10).saturating_sub(1));
        self.at_ms + pause_ms.min(HELD_BACK_MAX_MS)
    }
}

/// Disconnected replicas, identified by address and port.
#[derive(Default)]
pub(super) struct AbsentReplicas {
    disconnected: BTreeMap<String, Absent>,
    slow: BTreeMap<String, Slow>,
    /// The number of consecutive snapshots that each replica received and did not load.
    unloaded: BTreeMap<String, u32>,
}

impl AbsentReplicas {
    /// Records that a replica disconnected and will resume at `position`.
    pub(super) fn record_disconnected(&mut self, name: String, position: u64, now_ms: i64) {
        if self.disconnected.len() < MANY || self.disconnected.contains_key(&name) {
            self.disconnected.insert(name, Absent { position, since_ms: now_ms });
        }
    }

    /// Records that a replica is connected.
    pub(super) fn record_connected(&mut self, name: &str) {
        self.disconnected.remove(name);
    }

    /// Records that a replica was dropped because it was too slow.
    pub(super) fn record_slow(&mut self, name: String, now_ms: i64) {
        self.hold_back(name, Fault::Slow, now_ms);
    }

    fn hold_back(&mut self, name: String, fault: Fault, now_ms: i64) {
        self.disconnected.remove(&name);
        self.slow.retain(|_, slow| now_ms - slow.at_ms < FORGIVEN_AFTER_MS);
        if self.slow.len() < MANY || self.slow.contains_key(&name) {
            let slow = self.slow.entry(name).or_insert(Slow { fault, times: 0, at_ms: now_ms });
            *slow = Slow { fault, times: slow.times + 1, at_ms: now_ms };
        }
    }

    /// Records that a replica received a snapshot and disconnected without confirming that it loaded the snapshot.
    /// Returns whether its next full sync is delayed.
    pub(super) fn record_unloaded(&mut self, name: &str, now_ms: i64) -> bool {
        if self.unloaded.len() >= MANY && !self.unloaded.contains_key(name) {
            return false;
        }
        let copies = self.unloaded.entry(name.to_owned()).or_default();
        *copies += 1;
        let is_held_back = *copies >= UNLOADED_MAX;
        if is_held_back {
            self.hold_back(name.to_owned(), Fault::Unloaded, now_ms);
        }
        is_held_back
    }

    /// Records that a replica has loaded its snapshot.
    pub(super) fn record_loaded(&mut self, name: &str) {
        self.unloaded.remove(name);
    }

    /// Returns the remaining delay of a replica's next full sync in ms, and the reason; `None` without a delay.
    pub(super) fn held_back_ms(&self, name: &str, now_ms: i64) -> Option<(i64, Fault)> {
        let slow = self.slow.get(name).filter(|slow| now_ms - slow.at_ms < FORGIVEN_AFTER_MS)?;
        let left_ms = slow.held_back_until_ms() - now_ms;
        (left_ms > 0).then_some((left_ms, slow.fault))
    }

    /// Removes disconnected replicas that need bytes before `position`, or that disconnected before this Unix time in
    /// ms.
    pub(super) fn forget(&mut self, position: u64, disconnected_before_ms: i64) {
        self.disconnected
            .retain(|_, absent| absent.position >= position && absent.since_ms >= disconnected_before_ms);
    }

    /// Returns the earliest position that a disconnected replica still needs.
    pub(super) fn needed(&self) -> Option<u64> {
        self.disconnected.values().map(|absent| absent.position).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_is_needed_until_the_last_replica_reconnects_or_is_forgotten() {
        let mut absent = AbsentReplicas::default();
        assert_eq!(absent.needed(), None);
        absent.record_disconnected("a:1".to_owned(), 100, 1000);
        absent.record_disconnected("b:2".to_owned(), 50, 2000);
        assert_eq!(absent.needed(), Some(50));
        absent.record_connected("b:2");
        assert_eq!(absent.needed(), Some(100));
        absent.record_disconnected("b:2".to_owned(), 150, 3000);
        absent.forget(101, 0);
        assert_eq!(absent.needed(), Some(150));
        absent.forget(0, 3001);
        assert_eq!(absent.needed(), None);
    }

    #[test]
    fn repeatedly_slow_replicas_wait_longer() {
        let mut absent = AbsentReplicas::default();
        assert_eq!(absent.held_back_ms("a:1", 0), None);
        for pause_ms in [10_000, 20_000, 40_000, 80_000, 160_000, 300_000, 300_000] {
            absent.record_slow("a:1".to_owned(), 5000);
            assert_eq!(absent.held_back_ms("a:1", 5000), Some((pause_ms, Fault::Slow)));
            assert_eq!(absent.held_back_ms("a:1", 5000 + pause_ms), None);
            assert_eq!(absent.held_back_ms("b:1", 5000), None);
        }
        absent.record_slow("b:1".to_owned(), 5000 + FORGIVEN_AFTER_MS);
        absent.record_slow("a:1".to_owned(), 5000 + FORGIVEN_AFTER_MS);
        let held_back = absent.held_back_ms("a:1", 5000 + FORGIVEN_AFTER_MS);
        assert_eq!(held_back, Some((10_000, Fault::Slow)));
    }

    #[test]
    fn replicas_that_load_no_copy_wait_for_the_next_one() {
        let mut absent = AbsentReplicas::default();
        let disconnected = |absent: &mut AbsentReplicas| absent.record_unloaded("a:1", 5000);
        assert_eq!([disconnected(&mut absent), disconnected(&mut absent)], [false, false]);
        absent.record_loaded("a:1");
        assert_eq!([(); 4].map(|()| disconnected(&mut absent)), [false, false, true, true]);
        assert_eq!(absent.held_back_ms("a:1", 5000), Some((20_000, Fault::Unloaded)));
        assert_eq!(absent.held_back_ms("b:1", 5000), None);
    }
}
