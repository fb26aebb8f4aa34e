//! The OOM score adjustment, which decides which process the kernel kills first: `/proc/self/oom_score_adj`.

use std::fs;
use std::io;

use parking_lot::Mutex;

use ember_config::{Config, OomScoreAdj};

const FILE: &str = "/proc/self/oom_score_adj";

/// The system's own scale.
const SCALE: std::ops::RangeInclusive<i32> = -1000..=1000;

/// The original value of the file while it is changed.
static FORMER: Mutex<Option<i32>> = Mutex::new(None);

/// Applies the configuration; `no` restores the original value.
///
/// # Errors
/// Those of the file: lowering the value requires a privilege.
pub(crate) fn apply(config: &Config) -> io::Result<()> {
    let mut former = FORMER.lock();
    if config.oom_score_adj == OomScoreAdj::No {
        return former.take().map_or(Ok(()), write);
    }
    let before = match *former {
        Some(before) => before,
        None => read()?,
    };
    *former = Some(before);
    let value = config.oom_score_adj_values.of_primary();
    write(if config.oom_score_adj == OomScoreAdj::Absolute { value } else { before + value })
}

fn read() -> io::Result<i32> {
    fs::read_to_string(FILE)?.trim().parse().map_err(io::Error::other)
}

fn write(value: i32) -> io::Result<()> {
    fs::write(FILE, format!("{}\n", value.clamp(*SCALE.start(), *SCALE.end())))
}
