//! Scheduler time slices of threads.
//!
//! From Linux 6.6 on, a running thread may run for about 3 ms after another thread wakes on its core, whatever their
//! priorities, unless the woken thread has requested shorter slices (`sched_setattr`, from Linux 6.12 on; earlier
//! kernels ignore the request). The total share of a core does not change.
#![allow(unsafe_code, reason = "neither the standard library nor rustix has these calls")]

use std::io;

use libc::{SYS_sched_getattr, SYS_sched_setattr, sched_attr, syscall};

/// The minimum slice that Linux grants, in nanoseconds.
const SHORTEST: u64 = 100_000;

/// Requests short slices for the calling thread, so that it runs soon after it wakes. Threads that it starts have the
/// default slices and no higher priority than the default. If the request is refused, or the thread has another
/// scheduling policy, nothing changes.
pub(crate) fn shorten() {
    if let Err(error) = try_shorten() {
        tracing::debug!("workers keep the default time slices: {error}");
    }
}

fn try_shorten() -> io::Result<()> {
    let mut attributes = attributes()?;
    if attributes.sched_policy != libc::SCHED_OTHER as u32 {
        return Ok(());
    }
    attributes.sched_flags |= libc::SCHED_FLAG_RESET_ON_FORK as u64;
    attributes.sched_runtime = SHORTEST;
    // SAFETY: the system reads the number of bytes in the first field, which is the size of the struct.
    succeeded(unsafe { syscall(SYS_sched_setattr, 0, &raw const attributes, 0) })
}

/// Returns the scheduling attributes of the calling thread.
fn attributes() -> io::Result<sched_attr> {
    let bytes = size_of::<sched_attr>() as u32;
    let mut attributes = sched_attr {
        size: bytes,
        sched_policy: 0,
        sched_flags: 0,
        sched_nice: 0,
        sched_priority: 0,
        sched_runtime: 0,
        sched_deadline: 0,
        sched_period: 0,
    };
    // SAFETY: the system writes at most `bytes` bytes, which is the size of the struct.
    succeeded(unsafe { syscall(SYS_sched_getattr, 0, &raw mut attributes, bytes, 0) })?;
    Ok(attributes)
}

fn succeeded(result: libc::c_long) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn time_slices_of_a_thread_are_short_and_those_of_its_children_are_default() {
        let (before, after, child) = thread::spawn(|| {
            let before = attributes().unwrap();
            try_shorten().unwrap();
            let child = thread::spawn(|| attributes().unwrap()).join().unwrap();
            (before, attributes().unwrap(), child)
        })
        .join()
        .unwrap();
        for attributes in [&after, &child] {
            assert_eq!(attributes.sched_policy, before.sched_policy);
            assert_eq!(attributes.sched_nice, before.sched_nice);
        }
        assert_eq!(child.sched_runtime, before.sched_runtime);
        // Kernels without such requests report no slices.
        if before.sched_runtime > 0 {
            assert_eq!(after.sched_runtime, SHORTEST);
        }
    }
}
