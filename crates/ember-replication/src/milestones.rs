//! Maps journal records to stream positions: replicas confirm positions, but clients wait for records.

use std::collections::VecDeque;

/// The maximum number of milestones; above it, every second milestone is dropped.
const MANY: usize = 64 * 1024;

/// Numbers of journal records, each with a stream position before which that record and all earlier ones are in the
/// stream.
#[derive(Debug, Default)]
pub struct Milestones(VecDeque<(u64, u64)>);

impl Milestones {
    /// Records that all records up to number `record` are in the stream before `position`. Both arguments must increase
    /// from call to call.
    pub fn mark(&mut self, record: u64, position: u64) {
        if self.0.len() >= MANY {
            // Dropping a milestone makes later queries return an earlier record: a number that may be too low, but
            // never too high.
            let mut at = 0;
            self.0.retain(|_| {
                at += 1;
                at % 2 == 0
            });
        }
        self.0.push_back((record, position));
    }

    /// Returns the number of the last record that is known to be in the stream before `position`; `None` if none is
    /// known. O(log milestones).
    pub fn record_at(&self, position: u64) -> Option<u64> {
        let after = self.0.partition_point(|&(_, end)| end <= position);
        Some(self.0.get(after.checked_sub(1)?)?.0)
    }

    /// Returns the lowest known position before which record `record` and all earlier records are in the stream; `None`
    /// if none is known. O(log milestones).
    pub fn position_of(&self, record: u64) -> Option<u64> {
        let at = self.0.partition_point(|&(known, _)| known < record);
        Some(self.0.get(at)?.1)
    }

    /// Drops the milestones that queries for `position` and later positions do not need.
    pub fn forget_before(&mut self, position: u64) {
        while self.0.get(1).is_some_and(|&(_, end)| end <= position) {
            self.0.pop_front();
        }
    }

    /// Drops all milestones.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_record_before_a_position_is_found() {
        let mut milestones = Milestones::default();
        assert_eq!(milestones.record_at(u64::MAX), None);
        milestones.mark(3, 100);
        milestones.mark(7, 250);
        assert_eq!(
            [99, 100, 249, 250, 900].map(|at| milestones.record_at(at)),
            [None, Some(3), Some(3), Some(7), Some(7)]
        );
        milestones.forget_before(249);
        assert_eq!(milestones.record_at(249), Some(3), "it may still be requested");
        milestones.forget_before(250);
        assert_eq!(milestones.record_at(249), None);
        assert_eq!(milestones.record_at(250), Some(7));
    }

    #[test]
    fn the_next_position_after_a_record_is_found() {
        let mut milestones = Milestones::default();
        assert_eq!(milestones.position_of(0), None);
        milestones.mark(3, 100);
        milestones.mark(7, 250);
        assert_eq!(
            [0, 3, 4, 7, 8].map(|record| milestones.position_of(record)),
            [Some(100), Some(100), Some(250), Some(250), None]
        );
    }

    #[test]
    fn thinned_milestones_never_return_a_later_record() {
        let mut milestones = Milestones::default();
        for record in 1..=200_000 {
            milestones.mark(record, record * 10);
        }
        assert!(milestones.0.len() <= MANY);
        assert_eq!(milestones.record_at(2_000_000), Some(200_000), "the last milestone is kept");
        for record in (1..200_000).step_by(997) {
            assert!(milestones.record_at(record * 10 + 9).is_none_or(|found| found <= record));
        }
    }
}
