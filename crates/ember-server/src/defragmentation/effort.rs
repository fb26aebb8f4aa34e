//! How much of a processor defragmentation takes, as Redis's parameters say.

use crate::config::Config;

/// Where pages in use are so many per cent above `maxmemory`, more of them matter: whoever sets a limit gives the machine's
/// other memory to somebody else.
const EXCESS_LOWER_PERCENT: f64 = 5.0;

/// The effort is at its most when they are so many per cent above it.
const EXCESS_UPPER_PERCENT: f64 = 25.0;

/// The least memory for which it is worth it to begin, and how the effort grows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Effort {
    ignored_bytes: u64,
    lower_percent: u64,
    upper_percent: u64,
    least_percent: u64,
    most_percent: u64,
}

impl Effort {
    /// What a configuration says.
    pub(super) fn of(config: &Config) -> Effort {
        Effort {
            ignored_bytes: config.active_defrag_ignore_bytes,
            lower_percent: config.active_defrag_threshold_lower,
            upper_percent: config.active_defrag_threshold_upper,
            least_percent: config.active_defrag_cycle_min,
            most_percent: config.active_defrag_cycle_max,
        }
    }

    /// The effort in per cent of a processor when of `active` bytes `allocated` are in use: the least one at the lower
    /// threshold, the most at the upper one, in proportion in between. `None` if it is not worth it.
    ///
    /// While `active` is above a `limit`, which is 0 for none, half of the lower threshold is enough however few bytes that
    /// is, and the effort grows with the excess too.
    pub(super) fn percent(self, active: u64, allocated: u64, limit: u64) -> Option<u64> {
        let unused = active.saturating_sub(allocated);
        let unused_percent = percent(unused, allocated);
        let excess_percent = if limit == 0 { 0.0 } else { percent(active.saturating_sub(limit), limit) };
        let is_above_limit = excess_percent >= EXCESS_LOWER_PERCENT;
        let lower = self.lower_percent as f64 / if is_above_limit { 2.0 } else { 1.0 };
        if unused_percent < lower || unused < self.ignored_bytes && !is_above_limit {
            return None;
        }
        let share = share(unused_percent, lower, self.upper_percent as f64).max(share(
            excess_percent,
            EXCESS_LOWER_PERCENT,
            EXCESS_UPPER_PERCENT,
        ));
        let (least, most) = (self.least_percent, self.most_percent.max(self.least_percent));
        Some(least + ((most - least) as f64 * share) as u64)
    }
}

/// A part in per cent of the whole.
fn percent(part: u64, whole: u64) -> f64 {
    part as f64 / whole.max(1) as f64 * 100.0
}

/// How far a number has come from the lower to the upper bound, 0 to 1.
fn share(number: f64, lower: f64, upper: f64) -> f64 {
    if number >= upper { 1.0 } else { ((number - lower) / (upper - lower)).max(0.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_effort_grows_with_what_is_unused() {
        let effort = Effort {
            ignored_bytes: 1000,
            lower_percent: 10,
            upper_percent: 100,
            least_percent: 1,
            most_percent: 25,
        };
        for (unused, expected) in [
            (0, None),
            (999, None),
            (1000, Some(1)),
            (5500, Some(13)),
            (10_000, Some(25)),
            (90_000, Some(25)),
        ] {
            assert_eq!(effort.percent(10_000 + unused, 10_000, 0), expected, "{unused}");
        }
        assert_eq!(effort.percent(101_000, 100_000, 0), None, "one per cent");
        assert_eq!(
            effort.percent(5, 10, 0),
            None,
            "what is in caches may count as allocated and not be active"
        );
        let above = |limit| effort.percent(11_000, 10_000, limit);
        let limits = [1_000_000, 11_000, 10_500, 10_000, 9_565, 8_800, 1_000];
        assert_eq!(limits.map(above), [1, 1, 1, 7, 13, 25, 25].map(Some));
        // Above a limit little is worth it.
        assert_eq!(effort.percent(10_600, 10_000, 0), None);
        assert_eq!(effort.percent(10_600, 10_000, 10_000), Some(2));
        assert_eq!(effort.percent(10_400, 10_000, 5_000), None);
        // Parameters that contradict each other mean something still.
        let odd = Effort { upper_percent: 5, most_percent: 1, least_percent: 7, ..effort };
        assert_eq!(odd.percent(20_000, 10_000, 0), Some(7));
    }
}
