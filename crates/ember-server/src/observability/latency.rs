//! The latency monitor, which records the occurrences of each event that took at least `latency-monitor-threshold` ms.

use std::collections::{BTreeMap, VecDeque};

use parking_lot::Mutex;

/// The maximum number of samples per event, as in Redis.
const SAMPLES_MAX: usize = 160;

/// The longest occurrence of an event in one second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sample {
    /// The second, as Unix time.
    pub(crate) at_seconds: i64,
    /// The duration of the longest occurrence in ms.
    pub(crate) milliseconds: u64,
}

/// The samples of one event.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    /// The samples, oldest first.
    pub(crate) samples: VecDeque<Sample>,
    /// The duration in ms of the longest occurrence since the last reset.
    pub(crate) milliseconds_max: u64,
}

/// The samples of all events, by event name.
#[derive(Default)]
pub(crate) struct LatencyMonitor(Mutex<BTreeMap<&'static str, History>>);

impl LatencyMonitor {
    /// Adds an occurrence of `event` that took `milliseconds`.
    pub(crate) fn enter(&self, event: &'static str, at_seconds: i64, milliseconds: u64) {
        let mut events = self.0.lock();
        let history = events.entry(event).or_default();
        history.milliseconds_max = history.milliseconds_max.max(milliseconds);
        match history.samples.back_mut() {
            Some(last) if last.at_seconds == at_seconds => {
                last.milliseconds = last.milliseconds.max(milliseconds);
            }
            _ => history.samples.push_back(Sample { at_seconds, milliseconds }),
        }
        if history.samples.len() > SAMPLES_MAX {
            history.samples.pop_front();
        }
    }

    /// Returns all events and their samples.
    pub(crate) fn all(&self) -> Vec<(&'static str, History)> {
        self.0.lock().iter().map(|(&event, history)| (event, history.clone())).collect()
    }

    /// Returns the samples of an event, whose name may be in any case.
    pub(crate) fn get(&self, event: &[u8]) -> Option<History> {
        let events = self.0.lock();
        let found = events.iter().find(|(name, _)| name.as_bytes().eq_ignore_ascii_case(event));
        found.map(|(_, history)| history.clone())
    }

    /// Removes the named events, or all events; returns the number of removed events.
    pub(crate) fn reset(&self, events: Option<&[&[u8]]>) -> usize {
        let mut all = self.0.lock();
        let before = all.len();
        match events {
            None => all.clear(),
            Some(events) => {
                all.retain(|name, _| !events.iter().any(|event| name.as_bytes().eq_ignore_ascii_case(event)));
            }
        }
        before - all.len()
    }
}
