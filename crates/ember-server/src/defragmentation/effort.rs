//! How much of a processor defragmentation takes, as Redis's parameters say.

use crate::config::Config;

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
    pub(super) fn percent(self, active: u64, allocated: u64) -> Option<u64> {
        let unused = active.saturating_sub(allocated);
        let unused_percent = unused as f64 / allocated.max(1) as f64 * 100.0;
        if unused < self.ignored_bytes || unused_percent < self.lower_percent as f64 {
            return None;
        }
        let (least, most) = (self.least_percent, self.most_percent.max(self.least_percent));
        let range = self.upper_percent.saturating_sub(self.lower_percent);
        let above = unused_percent - self.lower_percent as f64;
        if range == 0 || above >= range as f64 {
            return Some(most);
        }
        Some(least + ((most - least) as f64 * above / range as f64) as u64)
    }
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
            assert_eq!(effort.percent(10_000 + unused, 10_000), expected, "{unused}");
        }
        assert_eq!(effort.percent(101_000, 100_000), None, "one per cent");
        assert_eq!(effort.percent(5, 10), None, "what is in caches may count as allocated and not be active");
        // Parameters that contradict each other mean something still.
        let odd = Effort { upper_percent: 5, most_percent: 1, least_percent: 7, ..effort };
        assert_eq!(odd.percent(20_000, 10_000), Some(7));
    }
}
