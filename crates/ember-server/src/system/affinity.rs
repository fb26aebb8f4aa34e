//! Keeps a thread, and those that it starts, to some cores.

use rustix::thread::{CpuSet, sched_setaffinity};

use crate::config::CpuList;

/// Keeps the calling thread to the cores of `list`, the value of `parameter`; an empty one changes nothing. What the system
/// does not allow is told in the log.
pub(crate) fn keep_to(list: &CpuList, parameter: &str) {
    if list.cores().is_empty() {
        return;
    }
    let mut set = CpuSet::new();
    list.cores().iter().for_each(|&core| set.set(core));
    if let Err(error) = sched_setaffinity(None, &set) {
        tracing::warn!("{parameter}: the thread cannot be kept to these cores: {error}");
    }
}
