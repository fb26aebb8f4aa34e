//! Measures the round-trip time of PING (`--latency`, `--latency-history`).

use std::time::{Duration, Instant};

use super::failure::Failure;
use super::key_scan::answered;
use crate::output::Form;
use crate::pause::pause;
use ember_client::Connection;
use ember_client::put;

/// The pause between two PINGs.
const PAUSE: Duration = Duration::from_millis(10);
/// The default duration of a measurement if standard output is not a terminal.
const PERIOD: Duration = Duration::from_secs(1);
/// The default interval between the lines of a history.
const HISTORY_PERIOD: Duration = Duration::from_secs(15);

/// The measured times, in ms.
#[derive(Default)]
struct Measured {
    least: u128,
    most: u128,
    total: u128,
    count: u128,
}

impl Measured {
    fn add(&mut self, time: Duration) {
        let time = time.as_millis();
        self.least = if self.count == 0 { time } else { self.least.min(time) };
        self.most = self.most.max(time);
        self.total += time;
        self.count += 1;
    }

    fn shown(&self, form: Form) -> String {
        let Measured { least, most, total, count } = self;
        let average = *total as f64 / (*count).max(1) as f64;
        match form {
            Form::Standard => format!("min: {least}, max: {most}, avg: {average:.2} ({count} samples)"),
            Form::Raw => format!("{least} {most} {average:.2} {count}\n"),
            Form::Csv => format!("{least},{most},{average:.2},{count}\n"),
            Form::Json | Form::QuotedJson => {
                format!("{{\"min\": {least}, \"max\": {most}, \"avg\": {average:.2}, \"count\": {count}}}\n")
            }
        }
    }
}

/// Measures latency: endlessly on a terminal, otherwise for one period.
pub(super) fn run(
    connection: &mut Connection,
    interval: Duration,
    is_history: bool,
    form: Form,
) -> Result<(), Failure> {
    let usual = if is_history { HISTORY_PERIOD } else { PERIOD };
    let period = if interval.is_zero() { usual } else { interval };
    let mut measured = Measured::default();
    let mut begin = Instant::now();
    loop {
        measured.add(ping(connection)?);
        if form == Form::Standard {
            // Moves to the first column and clears the line.
            put(format!("\x1b[0G\x1b[2K{}", measured.shown(form)).as_bytes());
        } else if begin.elapsed() > period {
            put(measured.shown(form).as_bytes());
            return Ok(());
        }
        if is_history && begin.elapsed() > period {
            put(format!(" -- {:.2} seconds range\n", begin.elapsed().as_secs_f64()).as_bytes());
            (measured, begin) = (Measured::default(), Instant::now());
        }
        pause(PAUSE);
    }
}

/// Measures one PING.
pub(super) fn ping(connection: &mut Connection) -> Result<Duration, Failure> {
    let begin = Instant::now();
    answered(connection.ask(&["PING"])?)?;
    Ok(begin.elapsed())
}
