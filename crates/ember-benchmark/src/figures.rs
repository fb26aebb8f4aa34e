//! The figures of a test, computed from the measurements, including its bottleneck.

use super::recorder::ms;
use super::target::TestResult;

/// The minimum share of its time that a fully busy thread spends on a processor.
const BUSY: f64 = 0.95;

/// The minimum share of the time of all its threads that a busy server uses: the threads are never all active at the
/// same time throughout a run.
const SERVER_BUSY: f64 = 0.9;

/// The minimum share of its time that a thread waits for a processor if the machine is overloaded.
const CROWDED: f64 = 0.2;

/// The minimum duration of a run, in seconds, for determining its bottleneck.
const SHORT_S: f64 = 0.1;

/// The bottleneck of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bound {
    /// The load generator was fully busy, the server was not.
    Client,
    /// The server was busy, the load generator was not.
    Server,
    /// The load generator and the server were both busy.
    Both,
    /// The load generator and the server, possibly with other programs, used all processors of the machine.
    Machine,
    /// The given rate (`--rate`): requests were sent at that rate.
    Rate,
    /// Neither was busy: both waited for the network, a disk, or each other.
    Neither,
    /// The run was too short to determine the bottleneck.
    TooShort,
}

impl Bound {
    /// Returns the name of the bottleneck in tables.
    pub(super) fn word(self) -> &'static str {
        match self {
            Bound::Client => "client",
            Bound::Server => "server",
            Bound::Both => "both",
            Bound::Machine => "machine",
            Bound::Rate => "rate",
            Bound::Neither => "neither",
            Bound::TooShort => "too short",
        }
    }
}

/// Latency in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct LatencyFigures {
    pub(super) average: f64,
    pub(super) min: f64,
    pub(super) p50: f64,
    pub(super) p95: f64,
    pub(super) p99: f64,
    pub(super) p99_9: f64,
    pub(super) max: f64,
}

/// The figures of a test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Figures {
    /// Replies per second.
    pub(super) rate: f64,
    pub(super) latency: LatencyFigures,
    /// The share of reading requests that found data, if there were any.
    pub(super) hit_rate: Option<f64>,
    /// Processor time of the load generator per request, in microseconds.
    pub(super) client_us: f64,
    /// The share of the time in which the busiest thread of the load generator was running or ready to run.
    pub(super) client_busy: f64,
    /// The share of the time in which that thread waited for a processor used by others.
    pub(super) client_waiting: f64,
    /// Processor time of the server per request, in microseconds.
    pub(super) server_us: Option<f64>,
    /// The number of processors that the server used.
    pub(super) server_processors: Option<f64>,
    pub(super) bound: Bound,
}

impl Figures {
    /// Computes the figures of a result.
    pub(super) fn of(result: &TestResult) -> Figures {
        let measured = &result.measured;
        let seconds = measured.elapsed.as_secs_f64().max(1e-9);
        let replies = (measured.tally.replies as f64).max(1.0);
        let share = |time: std::time::Duration| time.as_secs_f64() / seconds;
        let cpu: f64 = measured.threads.iter().map(|time| time.cpu.as_secs_f64()).sum();
        let busy = measured.threads.iter().map(|time| share(time.cpu + time.waiting)).fold(0.0, f64::max);
        let waiting = measured.threads.iter().map(|time| share(time.waiting)).fold(0.0, f64::max);
        let server = result.server_cpu.map(|time| time.as_secs_f64());
        let mut figures = Figures {
            rate: measured.tally.replies as f64 / seconds,
            latency: latency(measured),
            hit_rate: (measured.reads > 0)
                .then(|| 1.0 - measured.tally.misses as f64 / measured.reads as f64)
                .map(|rate| rate.max(0.0)),
            client_us: cpu * 1e6 / replies,
            client_busy: busy.min(1.0),
            client_waiting: waiting.min(1.0),
            server_us: server.map(|cpu| cpu * 1e6 / replies),
            server_processors: server.map(|cpu| cpu / seconds),
            bound: Bound::Neither,
        };
        figures.bound = bound(result, &figures, cpu / seconds);
        figures
    }
}

fn latency(measured: &super::engine::Measured) -> LatencyFigures {
    let latencies = &measured.latencies;
    let at = |quantile| ms(latencies.value_at_quantile(quantile));
    LatencyFigures {
        average: latencies.mean() / 1e6,
        min: ms(latencies.min()),
        p50: at(0.5),
        p95: at(0.95),
        p99: at(0.99),
        p99_9: at(0.999),
        max: ms(latencies.max()),
    }
}

fn bound(result: &TestResult, figures: &Figures, client_processors: f64) -> Bound {
    let measured_s = result.measured.elapsed.as_secs_f64();
    let is_client_busy = figures.client_busy >= BUSY;
    let threads = f64::from(result.server_threads.unwrap_or(1));
    let is_server_busy = figures.server_processors.is_some_and(|used| used >= SERVER_BUSY * threads);
    let processors = std::thread::available_parallelism().map_or(f64::INFINITY, |count| count.get() as f64);
    let used = client_processors + figures.server_processors.unwrap_or(0.0);
    if measured_s < SHORT_S {
        return Bound::TooShort;
    }
    match (is_client_busy, is_server_busy) {
        (true, _) if figures.client_waiting >= CROWDED => Bound::Machine,
        (true, true) => Bound::Both,
        (true, false) => Bound::Client,
        (false, true) => Bound::Server,
        (false, false) if result.is_local && used >= BUSY * processors => Bound::Machine,
        (false, false) if result.load.rate.is_some() => Bound::Rate,
        (false, false) => Bound::Neither,
    }
}

/// Returns a warning if no request found data: then the figures are those of nil replies.
pub(super) fn all_missed(result: &TestResult) -> Option<String> {
    let tally = &result.measured.tally;
    (tally.misses > 0 && tally.misses == tally.replies)
        .then(|| format!("all {} replies were nil or empty: the requested data do not exist", tally.replies))
}

/// Returns remarks that prevent misinterpretation of a result.
pub(super) fn remarks(result: &TestResult, figures: &Figures) -> Vec<String> {
    let mut remarks = Vec::new();
    let busy = figures.client_busy * 100.0;
    let server = match (figures.server_processors, result.server_threads) {
        (Some(used), Some(1)) => format!("the server used {used:.2} processors with 1 thread"),
        (Some(used), Some(threads)) => format!("the server used {used:.2} processors with {threads} threads"),
        (Some(used), None) => format!("the server used {used:.2} processors"),
        (None, _) => "the server does not report its CPU time".to_owned(),
    };
    match figures.bound {
        Bound::Client => remarks.push(format!(
            "client-bound: a thread of the load generator was busy {busy:.0} % of the time, and {server}. The result \
             is the speed of the load generator; with more --threads it may be that of the server."
        )),
        Bound::Both => remarks.push(format!(
            "both sides were busy: a thread of the load generator {busy:.0} % of the time, and {server}."
        )),
        Bound::Machine => remarks.push(format!(
            "machine-bound: all processors of this machine were in use; {server}."
        )),
        Bound::TooShort => remarks.push("too short to determine the bottleneck: use a larger -n.".to_owned()),
        Bound::Server | Bound::Rate | Bound::Neither => {}
    }
    if figures.client_waiting >= 1.0 - BUSY {
        remarks.push(format!(
            "busy machine: a thread of the load generator waited for a processor {:.0} % of the time.",
            figures.client_waiting * 100.0
        ));
    }
    let tally = &result.measured.tally;
    remarks.extend(all_missed(result));
    if tally.errors > 0 {
        let text = result.measured.first_error.as_deref().unwrap_or_default();
        remarks.push(format!(
            "{} of {} replies were errors, the first one: {text}",
            tally.errors, tally.replies
        ));
    }
    if result.measured.never_sent > 0 {
        remarks.push(format!(
            "{} requests were due and never sent: the server did not keep up with the rate. Their latencies are counted up \
             to the end of the run.",
            result.measured.never_sent
        ));
    }
    remarks
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::engine::{Goal, Measured};
    use crate::recorder::no_latencies;
    use crate::replies::Tally;
    use crate::target::Load;
    use crate::thread_time::ThreadTime;

    /// Builds the result of a run of one second in which a load thread ran for `cpu` seconds and waited for a processor
    /// for `waiting` seconds, and a server with two threads used `server` seconds of processor time.
    fn result(cpu: f64, waiting: f64, server: Option<f64>) -> TestResult {
        let seconds = Duration::from_secs_f64;
        let goal = Goal::Requests(1000);
        let load = Load {
            goal,
            clients: 1,
            pipeline: 1,
            threads: 1,
            reconnects: false,
            rate: None,
            warm_up: None,
            timeout: Duration::MAX,
        };
        let measured = Measured {
            tally: Tally { replies: 1000, errors: 0, misses: 100 },
            reads: 400,
            never_sent: 0,
            first_error: None,
            latencies: no_latencies(),
            elapsed: seconds(1.0),
            threads: vec![ThreadTime { cpu: seconds(cpu), waiting: seconds(waiting) }],
            moments: Vec::new(),
        };
        TestResult {
            name: "GET".to_owned(),
            load,
            measured,
            server_cpu: server.map(seconds),
            server_threads: Some(2),
            is_local: false,
        }
    }

    #[test]
    fn the_bottleneck_is_reported() {
        let bound = |cpu, waiting, server| Figures::of(&result(cpu, waiting, server)).bound;
        assert_eq!(bound(0.97, 0.0, Some(1.0)), Bound::Client);
        assert_eq!(bound(0.97, 0.0, Some(1.95)), Bound::Both);
        assert_eq!(bound(0.5, 0.0, Some(1.95)), Bound::Server);
        assert_eq!(bound(0.5, 0.0, Some(1.0)), Bound::Neither);
        assert_eq!(bound(0.6, 0.39, Some(1.0)), Bound::Machine);
        assert_eq!(bound(0.97, 0.0, None), Bound::Client);
        let short = TestResult {
            measured: Measured { elapsed: Duration::from_millis(50), ..result(0.05, 0.0, None).measured },
            ..result(0.0, 0.0, None)
        };
        assert_eq!(Figures::of(&short).bound, Bound::TooShort);
    }

    #[test]
    fn client_bound_runs_are_reported() {
        let result = result(0.97, 0.0, Some(1.0));
        let said = remarks(&result, &Figures::of(&result));
        assert!(
            said[0].starts_with("client-bound") && said[0].contains("1.00 processors with 2 threads"),
            "{said:?}"
        );
    }

    #[test]
    fn costs_are_reported_per_request() {
        let figures = Figures::of(&result(0.5, 0.0, Some(1.0)));
        assert_eq!((figures.rate, figures.client_us, figures.server_us), (1000.0, 500.0, Some(1000.0)));
        assert_eq!(figures.hit_rate, Some(0.75));
    }
}
