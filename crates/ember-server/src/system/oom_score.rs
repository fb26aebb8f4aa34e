//! The OOM score adjustment in `/proc/self/oom_score_adj`, which influences which process the kernel kills first.

use std::fs;
use std::io;

use ember_config::{Config, OomScoreAdj};
use parking_lot::Mutex;

const FILE: &str = "/proc/self/oom_score_adj";

/// The range of adjustments that the kernel accepts.
const SCALE: std::ops::RangeInclusive<i32> = -1000..=1000;

/// The original value in the file; `None` unless the server has changed it.
static FORMER: Mutex<Option<i32>> = Mutex::new(None);

/// Applies the configured adjustment of the server's role; `no` restores the original value. `is_replica` is called with
/// the lock of the file's value held, so that the latest of several concurrent changes prevails.
///
/// # Errors
/// Returns the error of writing the file: lowering the value requires a privilege.
pub(crate) fn apply(config: &Config, is_replica: impl FnOnce() -> bool) -> io::Result<()> {
    let mut former = FORMER.lock();
    if config.oom_score_adj == OomScoreAdj::No {
        return former.take().map_or(Ok(()), write);
    }
    let before = match *former {
        Some(before) => before,
        None => read()?,
    };
    *former = Some(before);
    let value = config.oom_score_adj_values.of_role(is_replica());
    write(if config.oom_score_adj == OomScoreAdj::Absolute { value } else { before + value })
}

fn read() -> io::Result<i32> {
    fs::read_to_string(FILE)?.trim().parse().map_err(io::Error::other)
}

fn write(value: i32) -> io::Result<()> {
    fs::write(FILE, format!("{}\n", value.clamp(*SCALE.start(), *SCALE.end())))
}
