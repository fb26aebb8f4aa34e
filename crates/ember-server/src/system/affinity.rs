//! The CPU affinity of a thread and of the threads that it starts.

use ember_config::CpuList;
use rustix::thread::{CpuSet, sched_setaffinity};

/// Restricts the calling thread to the cores of `list`, the value of `parameter`; an empty list changes nothing. Logs
/// errors of the system.
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
