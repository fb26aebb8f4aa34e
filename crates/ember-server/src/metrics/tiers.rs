//! Metrics of tiered values: how many are hot and cold, and how many are demoted and fetched.

use super::metric::{Kind, Metric, counter, gauge, labelled};
use crate::tiers::FETCH_TIMES;

pub(super) const METRICS: &[Metric] = &[
    labelled(
        Kind::Gauge,
        "ember_tier_keys",
        &["tier"],
        "Keys with resident (hot) and cold values",
        |scene, samples| {
            samples.add(&["hot"], scene.tiers.hot_keys as f64);
            samples.add(&["cold"], scene.tiers.cold_keys as f64);
        },
    ),
    labelled(
        Kind::Gauge,
        "ember_tier_bytes",
        &["tier"],
        "Memory of the data set (hot), and the memory that cold values would take (cold)",
        |scene, samples| {
            samples.add(&["hot"], scene.tiers.hot_bytes as f64);
            samples.add(&["cold"], scene.tiers.cold_bytes as f64);
        },
    ),
    gauge("ember_tier_pinned_keys", "Keys with pinned values", |scene| scene.tiers.pinned_keys as f64),
    gauge("ember_tier_segments", "Files with cold values", |scene| scene.tiers.segments as f64),
    gauge("ember_tier_stored_bytes", "Size of these files, or of a store's", |scene| {
        scene.tiers.stored_bytes as f64
    }),
    gauge("ember_tier_live_bytes", "Referenced bytes of the files of tiers", |scene| {
        scene.tiers.live_bytes as f64
    }),
    gauge("ember_tier_buffered_bytes", "Bytes that wait to be written to these files", |scene| {
        scene.tiers.buffered_bytes as f64
    }),
    gauge("ember_tier_limit_bytes", "The size limit of these files", |scene| scene.tiers.limit_bytes as f64),
    gauge(
        "ember_tier_beside_bytes",
        "Resident memory beyond an empty server and the counted data",
        |scene| scene.tiers.uncounted_bytes as f64,
    ),
    gauge("ember_tier_goal_bytes", "The budget of counted data above which values are demoted", |scene| {
        scene.tiers.goal_bytes as f64
    }),
    gauge("ember_tier_reads_waiting", "Values that wait to be fetched", |scene| {
        scene.tiers.reads_waiting as f64
    }),
    gauge("ember_tier_demotion_stuck", "1 while no value can be demoted, else 0", |scene| {
        f64::from(u8::from(scene.tiers.demotion_stuck))
    }),
    counter("ember_tier_demotions_total", "Values that were written to files and demoted", |scene| {
        scene.tiers.demotions as f64
    }),
    counter(
        "ember_tier_free_drops_total",
        "Values demoted without a write, because their record still existed",
        |scene| scene.tiers.free_drops as f64,
    ),
    counter("ember_tier_fetches_total", "Fetched values", |scene| scene.tiers.fetches as f64),
    counter("ember_tier_unwanted_fetches_total", "Fetched values that no command needed any more", |scene| {
        scene.tiers.fetches_unwanted as f64
    }),
    counter(
        "ember_tier_joined_fetches_total",
        "Missing values that another command was already fetching",
        |scene| scene.tiers.fetches_joined as f64,
    ),
    labelled(
        Kind::Histogram,
        "ember_tier_fetch_duration_seconds",
        &[],
        "Time from the request to the end of a fetch, including unneeded and failed ones",
        |scene, samples| {
            let times = &scene.tiers.fetch_times;
            let mut at_most = 0;
            let bounds = times[..FETCH_TIMES - 1].iter().enumerate().map(|(part, count)| {
                at_most += count;
                ((1_u64 << part) as f64 / 1e6, at_most)
            });
            samples.histogram(&[], bounds, times.iter().sum(), scene.tiers.fetch_usec as f64 / 1e6);
        },
    ),
    counter(
        "ember_tier_demotion_pauses_total",
        "Number of times that no value could be demoted, because none was eligible or a write had failed",
        |scene| scene.tiers.demotion_pauses as f64,
    ),
    counter(
        "ember_tier_script_reads_total",
        "Values that a worker read itself, for scripts and transactions",
        |scene| scene.tiers.script_reads as f64,
    ),
    counter("ember_tier_read_errors_total", "Values that could not be read", |scene| {
        scene.tiers.read_errors as f64
    }),
    counter("ember_tier_write_errors_total", "Writes that failed", |scene| scene.tiers.write_errors as f64),
    counter("ember_tier_records_moved_total", "Values moved so that their file could be removed", |scene| {
        scene.tiers.records_moved as f64
    }),
    counter("ember_tier_written_bytes_total", "Bytes written to the files", |scene| {
        scene.tiers.bytes_written as f64
    }),
];
