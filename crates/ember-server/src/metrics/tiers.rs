//! Metrics of values that go away when memory has no room for them: where they are, and how many go and come.

use super::metric::{Kind, Metric, counter, gauge, labelled};
use crate::storage::FETCH_TIMES;

pub(super) const METRICS: &[Metric] = &[
    labelled(
        Kind::Gauge,
        "ember_tier_keys",
        &["tier"],
        "Keys by where their values are: in memory (hot) or away (cold)",
        |scene, samples| {
            samples.add(&["hot"], scene.tiers.hot_keys as f64);
            samples.add(&["cold"], scene.tiers.cold_keys as f64);
        },
    ),
    labelled(
        Kind::Gauge,
        "ember_tier_bytes",
        &["tier"],
        "Memory of the data set (hot), and what the values that are away would take of it (cold)",
        |scene, samples| {
            samples.add(&["hot"], scene.tiers.hot_bytes as f64);
            samples.add(&["cold"], scene.tiers.cold_bytes as f64);
        },
    ),
    gauge("ember_tier_pinned_keys", "Keys whose values stay in memory", |scene| {
        scene.tiers.pinned_keys as f64
    }),
    gauge("ember_tier_segments", "Files that values are in", |scene| scene.tiers.segments as f64),
    gauge("ember_tier_stored_bytes", "What these files or those of a store take", |scene| {
        scene.tiers.stored_bytes as f64
    }),
    gauge("ember_tier_live_bytes", "The part of files of tiers that is still referred to", |scene| {
        scene.tiers.live_bytes as f64
    }),
    gauge("ember_tier_buffered_bytes", "What waits to be written to them", |scene| {
        scene.tiers.buffered_bytes as f64
    }),
    gauge("ember_tier_limit_bytes", "What the files may take", |scene| scene.tiers.limit_bytes as f64),
    gauge(
        "ember_tier_beside_bytes",
        "What is in memory beside an empty server and what is counted",
        |scene| scene.tiers.beside_bytes as f64,
    ),
    gauge("ember_tier_goal_bytes", "What may be counted before values go away", |scene| {
        scene.tiers.goal_bytes as f64
    }),
    gauge("ember_tier_reads_waiting", "Values that are to be read", |scene| scene.tiers.reads_waiting as f64),
    gauge("ember_tier_demotion_stuck", "1 while no value can be sent away, else 0", |scene| {
        f64::from(u8::from(scene.tiers.demotion_stuck))
    }),
    counter("ember_tier_demotions_total", "Values that were written to files and left memory", |scene| {
        scene.tiers.demotions as f64
    }),
    counter(
        "ember_tier_free_drops_total",
        "Values that left memory with nothing written: their records were there still",
        |scene| scene.tiers.free_drops as f64,
    ),
    counter("ember_tier_fetches_total", "Values that came back", |scene| scene.tiers.fetches as f64),
    counter(
        "ember_tier_unwanted_fetches_total",
        "Values that nobody wanted any more when they were read",
        |scene| scene.tiers.fetches_unwanted as f64,
    ),
    counter(
        "ember_tier_joined_fetches_total",
        "Values that a call lacked and that were being read for another one",
        |scene| scene.tiers.fetches_joined as f64,
    ),
    labelled(
        Kind::Histogram,
        "ember_tier_fetch_duration_seconds",
        &[],
        "How long values took to come back from being asked for, whether they were wanted then or could be read or not",
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
        "Times that values could no longer be sent away: nothing could go, or a write had failed",
        |scene| scene.tiers.demotion_pauses as f64,
    ),
    counter("ember_tier_script_reads_total", "Values for which a worker had to wait", |scene| {
        scene.tiers.script_reads as f64
    }),
    counter("ember_tier_read_errors_total", "Values that could not be read", |scene| {
        scene.tiers.read_errors as f64
    }),
    counter("ember_tier_write_errors_total", "Writes that failed", |scene| scene.tiers.write_errors as f64),
    counter(
        "ember_tier_records_moved_total",
        "Values that were moved so that their file could go",
        |scene| scene.tiers.records_moved as f64,
    ),
    counter("ember_tier_written_bytes_total", "What was written to the files", |scene| {
        scene.tiers.bytes_written as f64
    }),
];
