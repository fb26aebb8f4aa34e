//! The share of a processor that defragmentation may use, according to Redis's parameters.

use ember_config::Config;

/// The percentage by which pages in use exceed `maxmemory` from which the excess increases the effort: memory above the
/// limit is meant for other processes of the machine.
const EXCESS_LOWER_PERCENT: f64 = 5.0;

/// The percentage by which pages in use exceed `maxmemory` at which the effort reaches its maximum.
const EXCESS_UPPER_PERCENT: f64 = 25.0;

/// The parameters of defragmentation: thresholds of fragmentation, and the effort at each of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Effort {
    ignored_bytes: u64,
    lower_percent: u64,
    upper_percent: u64,
    least_percent: u64,
    most_percent: u64,
}

impl Effort {
    /// Returns the effort parameters of a configuration.
    pub(super) fn of(config: &Config) -> Effort {
        Effort {
            ignored_bytes: config.active_defrag_ignore_bytes,
            lower_percent: config.active_defrag_threshold_lower,
            upper_percent: config.active_defrag_threshold_upper,
            least_percent: config.active_defrag_cycle_min,
            most_percent: config.active_defrag_cycle_max,
        }
    }

    /// Returns the effort in per cent of a processor when `allocated` of `active` bytes are in use: the minimum at the
    /// lower threshold, the maximum at the upper threshold, and linearly interpolated in between. `None` if the
    /// fragmentation is too low.
    ///
    /// While `active` exceeds `limit` (0 means no limit) by at least [`EXCESS_LOWER_PERCENT`], half of the lower
    /// threshold suffices, the minimum number of unused bytes does not apply, and the effort also grows with the
    /// excess.
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

/// Returns `part` as a percentage of `whole`.
fn percent(part: u64, whole: u64) -> f64 {
    part as f64 / whole.max(1) as f64 * 100.0
}

/// Returns where `number` lies between `lower` (0) and `upper` (1), clamped to that range.
fn share(number: f64, lower: f64, upper: f64) -> f64 {
    if number >= upper { 1.0 } else { ((number - lower) / (upper - lower)).max(0.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_effort_grows_with_unused_memory() {
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
        assert_eq!(effort.percent(5, 10, 0), None, "cached memory may count as allocated and not as active");
        let above = |limit| effort.percent(11_000, 10_000, limit);
        let limits = [1_000_000, 11_000, 10_500, 10_000, 9_565, 8_800, 1_000];
        assert_eq!(limits.map(above), [1, 1, 1, 7, 13, 25, 25].map(Some));
        // Above a limit, less fragmentation suffices.
        assert_eq!(effort.percent(10_600, 10_000, 0), None);
        assert_eq!(effort.percent(10_600, 10_000, 10_000), Some(2));
        assert_eq!(effort.percent(10_400, 10_000, 5_000), None);
        // Contradictory parameters still have an effect.
        let odd = Effort { upper_percent: 5, most_percent: 1, least_percent: 7, ..effort };
        assert_eq!(odd.percent(20_000, 10_000, 0), Some(7));
    }
}
