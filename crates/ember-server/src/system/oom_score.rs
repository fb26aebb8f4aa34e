//! Which process the system ends first when memory runs out: `/proc/self/oom_score_adj`.

use std::fs;
use std::io;

use parking_lot::Mutex;

use crate::config::{Config, OomScoreAdj};

const FILE: &str = "/proc/self/oom_score_adj";

/// The system's own scale.
const SCALE: std::ops::RangeInclusive<i32> = -1000..=1000;

/// What the file said before it was changed; none while it is not.
static FORMER: Mutex<Option<i32>> = Mutex::new(None);

/// Sets what the configuration says; `no` sets back what there was before.
///
/// # Errors
/// Those of the file: lowering the value takes a privilege.
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
