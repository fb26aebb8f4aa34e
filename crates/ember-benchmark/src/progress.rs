//! Shows the progress of a test on a terminal: the share completed, requests per second, latencies.

use std::io::IsTerminal;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::engine::Goal;
use super::recorder::Series;

/// The interval of updates.
const REFRESH: Duration = Duration::from_millis(200);

const BAR: &str = "{prefix} [{bar:30}] {percent:>3} % {msg}";

/// Runs `work`, which records into `series`, and shows its progress if standard error is a terminal.
pub(super) fn show<T>(name: &str, goal: Goal, series: &Series, work: impl FnOnce() -> T) -> T {
    if !std::io::stderr().is_terminal() {
        return work();
    }
    let (over, is_over) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || follow(name, goal, series, &is_over));
        let done = work();
        drop(over);
        done
    })
}

fn follow(name: &str, goal: Goal, series: &Series, is_over: &mpsc::Receiver<()>) {
    let length = match goal {
        Goal::Requests(count) => count,
        Goal::Time(time) => u64::try_from(time.as_millis()).unwrap_or(u64::MAX),
    };
    let bar = ProgressBar::with_draw_target(Some(length), ProgressDrawTarget::stderr());
    bar.set_style(ProgressStyle::with_template(BAR).expect("a valid template").progress_chars("=> "));
    bar.set_prefix(name.to_owned());
    let start = Instant::now();
    while is_over.recv_timeout(REFRESH) == Err(RecvTimeoutError::Timeout) {
        let (replies, moment) = series.now();
        bar.set_position(match goal {
            Goal::Requests(_) => replies,
            Goal::Time(_) => u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX),
        });
        if let Some(moment) = moment {
            let rate = moment.replies as f64 / moment.length_s;
            bar.set_message(format!("{rate:.0}/s p50={:.3} p99={:.3} ms", moment.p50_ms, moment.p99_ms));
        }
    }
    bar.finish_and_clear();
}
