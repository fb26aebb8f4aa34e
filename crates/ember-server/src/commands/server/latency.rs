//! LATENCY: shows the events of the latency monitor and the latency histograms of commands.

use emberkv_core::error::CommandError;
use emberkv_core::spec::{Command, Example, Flags, Group, Spec};

use crate::catalogue::registry::Command as Registered;
use crate::commands::help::{help_subcommand, reply_help};
use crate::executor::session::{Outcome, ServerCommand, Session, SessionResult};
use crate::observability::latency::{History, Sample};
use crate::observability::stats::LATENCY_BUCKETS;

const TEMPLATE: Spec = Spec {
    since: "2.8.13",
    group: Group::Server,
    flags: Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::LOADING).union(Flags::STALE),
    tips: &["nondeterministic_output", "request_policy:all_nodes", "response_policy:special"],
    ..Spec::DEFAULT
};

pub(super) const COMMANDS: &[ServerCommand] = &[Command::container(
    Spec {
        name: "latency",
        summary: "Contains subcommands for latency monitoring.",
        since: "2.8.13",
        group: Group::Server,
        complexity: "Depends on the subcommand.",
        arity: -2,
        ..Spec::DEFAULT
    },
    None,
    &[
        Command::new(
            Spec {
                name: "doctor",
                summary: "Reports causes of latency and possible remedies in sentences.",
                arity: 2,
                example: Example { given: &[], call: "LATENCY DOCTOR", reply: "..." },
                ..TEMPLATE
            },
            Some(doctor),
        ),
        Command::new(
            Spec {
                name: "graph",
                summary: "Draws the samples of an event.",
                arity: 3,
                syntax: "event",
                example: Example {
                    given: &[],
                    call: "LATENCY GRAPH nothing",
                    reply: "(error) ERR No samples available for event 'nothing'",
                },
                ..TEMPLATE
            },
            Some(graph),
        ),
        help_subcommand(
            Group::Server,
            "2.8.13",
            Example {
                given: &[],
                call: "LATENCY HELP",
                reply: " 1) LATENCY <subcommand> [<arg> [value] [opt] ...]. Subcommands are:\n...",
            },
            |session| reply_help(session, HELP),
        ),
        Command::new(
            Spec {
                name: "histogram",
                summary: "Returns histograms of command latencies.",
                since: "7.0.0",
                complexity: "O(N) for N commands.",
                arity: -2,
                syntax: "[command [command ...]]",
                example: Example { given: &[], call: "LATENCY HISTOGRAM nothing", reply: "(empty array)" },
                ..TEMPLATE
            },
            Some(histogram),
        ),
        Command::new(
            Spec {
                name: "history",
                summary: "Returns the samples of an event.",
                arity: 3,
                syntax: "event",
                example: Example { given: &[], call: "LATENCY HISTORY nothing", reply: "(empty array)" },
                ..TEMPLATE
            },
            Some(history),
        ),
        Command::new(
            Spec {
                name: "latest",
                summary: "Returns the newest sample of each event.",
                arity: 2,
                example: Example {
                    given: &["LATENCY RESET"],
                    call: "LATENCY LATEST",
                    reply: "(empty array)",
                },
                ..TEMPLATE
            },
            Some(latest),
        ),
        Command::new(
            Spec {
                name: "reset",
                summary: "Clears the samples of some or all events.",
                arity: -2,
                tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],
                syntax: "[event [event ...]]",
                example: Example { given: &[], call: "LATENCY RESET nothing", reply: "(integer) 0" },
                ..TEMPLATE
            },
            Some(reset),
        ),
    ],
)];

const HELP: &[&str] = &[
    "DOCTOR",
    "    Report causes of latency and possible remedies in sentences.",
    "GRAPH <event>",
    "    Draw the samples of <event>.",
    "HISTOGRAM [COMMAND ...]",
    "    Return the cumulative distribution of the latencies of these commands, or of all.",
    "HISTORY <event>",
    "    Return the samples of <event>: Unix time and milliseconds.",
    "LATEST",
    "    Return the newest sample of each event.",
    "RESET [<event> ...]",
    "    Clear the samples of these events, or of all.",
];

fn latest(session: &mut Session<'_>) -> SessionResult {
    let events = session.server.latency.all();
    session.reply.array(events.len());
    for (event, history) in events {
        let last = history.samples.back().copied().unwrap_or(Sample { at_seconds: 0, milliseconds: 0 });
        session.reply.array(4);
        session.reply.bulk(event.as_bytes());
        session.reply.integer(last.at_seconds);
        session.reply.integer(last.milliseconds as i64);
        session.reply.integer(history.milliseconds_max as i64);
    }
    Ok(Outcome::Done)
}

fn history(session: &mut Session<'_>) -> SessionResult {
    let history = session.server.latency.get(session.args.at(2)).unwrap_or_default();
    session.reply.array(history.samples.len());
    for sample in history.samples {
        session.reply.array(2);
        session.reply.integer(sample.at_seconds);
        session.reply.integer(sample.milliseconds as i64);
    }
    Ok(Outcome::Done)
}

fn reset(session: &mut Session<'_>) -> SessionResult {
    let events: Vec<&[u8]> = session.args.skip(2).iter().collect();
    let forgotten = session.server.latency.reset((!events.is_empty()).then_some(&events));
    session.reply.integer(forgotten as i64);
    Ok(Outcome::Done)
}

fn graph(session: &mut Session<'_>) -> SessionResult {
    let event = session.args.at(2);
    let history = session
        .server
        .latency
        .get(event)
        .ok_or_else(|| CommandError::quoting("ERR No samples available for event '", event, "'"))?;
    let drawn = draw(&String::from_utf8_lossy(event), &history, session.turn.now_ms / 1000);
    session.reply.verbatim(b"txt", drawn.as_bytes());
    Ok(Outcome::Done)
}

/// The height of a graph's bars in rows.
const GRAPH_ROWS: u64 = 4;

/// The width of a graph in columns, one for each of the newest samples.
const GRAPH_COLUMNS: usize = 80;

/// The characters for the topmost row of a bar, ordered by the height of the bar within that row.
const GRAPH_TIPS: [char; 4] = ['_', '.', 'o', '#'];

/// Draws a graph with one column per sample, the oldest first. The bars are scaled between the lowest and the highest
/// sample; the age of each sample is below its bar.
fn draw(event: &str, history: &History, now_seconds: i64) -> String {
    let skipped = history.samples.len().saturating_sub(GRAPH_COLUMNS);
    let samples: Vec<Sample> = history.samples.iter().skip(skipped).copied().collect();
    let heights = samples.iter().map(|sample| sample.milliseconds);
    let low = heights.clone().min().unwrap_or(0);
    let high = heights.max().unwrap_or(0);
    let mut graph = format!(
        "{event} - high {high} ms, low {low} ms (all time high {} ms)\n{}\n",
        history.milliseconds_max,
        "-".repeat(GRAPH_COLUMNS)
    );
    let steps = GRAPH_ROWS * GRAPH_TIPS.len() as u64;
    let height = |sample: &Sample| (sample.milliseconds - low) * (steps - 1) / (high - low).max(1);
    for row in (0..GRAPH_ROWS).rev() {
        let mark = |sample: &Sample| match height(sample).checked_sub(row * GRAPH_TIPS.len() as u64) {
            None => ' ',
            Some(above) => GRAPH_TIPS.get(above as usize).copied().unwrap_or('|'),
        };
        let line: String = samples.iter().map(mark).collect();
        graph += line.trim_end();
        graph.push('\n');
    }
    let ages: Vec<String> = samples.iter().map(|sample| age(now_seconds - sample.at_seconds)).collect();
    graph.push('\n');
    for row in 0..ages.iter().map(String::len).max().unwrap_or(0) {
        let line: String = ages.iter().map(|age| age.chars().nth(row).unwrap_or(' ')).collect();
        graph += line.trim_end();
        graph.push('\n');
    }
    graph
}

fn age(seconds: i64) -> String {
    match seconds.max(0) {
        seconds @ 0..60 => format!("{seconds}s"),
        seconds @ 60..3600 => format!("{}m", seconds / 60),
        seconds @ 3600..86_400 => format!("{}h", seconds / 3600),
        seconds => format!("{}d", seconds / 86_400),
    }
}

fn doctor(session: &mut Session<'_>) -> SessionResult {
    let threshold_ms = session.server.config.snapshot().latency_monitor_threshold;
    let events = session.server.latency.all();
    let mut report = String::new();
    if threshold_ms == 0 {
        report += "The latency monitor is off. Enable it with \"CONFIG SET latency-monitor-threshold \
             <milliseconds>\", for example 100.\n";
    }
    if events.is_empty() {
        report += "No event took longer than the threshold.\n";
    }
    for (event, history) in &events {
        report += &diagnose(event, history);
    }
    session.reply.verbatim(b"txt", report.as_bytes());
    Ok(Outcome::Done)
}

fn diagnose(event: &str, history: &History) -> String {
    let count = history.samples.len() as u64;
    let mean = history.samples.iter().map(|sample| sample.milliseconds).sum::<u64>() / count.max(1);
    let advice = match event {
        "command" => {
            "Slow commands hold the locks of their keys: SLOWLOG GET shows them. Prefer commands that read a \
             bounded number of elements."
        }
        "fast-command" => {
            "Commands of constant time were slow: the machine is short of processor time, or it swaps. \
             Compare the number of workers (shards) with the processor's cores."
        }
        "eviction-cycle" => "Eviction was slow: write less at once, or raise maxmemory.",
        "expire-cycle" => "Many keys expired at the same time: spread their times to live.",
        _ => "",
    };
    format!(
        "{event}: {count} samples, {mean} ms on average, {} ms at most. {advice}\n",
        history.milliseconds_max
    )
}

fn histogram(session: &mut Session<'_>) -> SessionResult {
    let server = session.server;
    let registry = &server.registry;
    let names = session.args.skip(2);
    let mut commands: Vec<&Registered> = Vec::new();
    if names.is_empty() {
        commands.extend(registry.all());
    }
    for name in names.iter() {
        // A container stands for all of its subcommands.
        let Some(command) = registry.find_full(name) else { continue };
        commands.push(command);
        commands.extend(command.subcommands.iter().map(|&index| registry.get(index)));
    }
    let mut histograms: Vec<(&str, Vec<(u64, u64)>)> = Vec::new();
    for command in commands {
        let cumulative = cumulative(&server.totals_of(command.index).latency);
        if !cumulative.is_empty() {
            histograms.push((&command.full_name, cumulative));
        }
    }
    session.reply.map(histograms.len());
    for (name, cumulative) in histograms {
        session.reply.bulk(name.as_bytes());
        session.reply.map(2);
        session.reply.bulk(b"calls");
        session.reply.integer(cumulative.last().map_or(0, |&(_, calls)| calls as i64));
        session.reply.bulk(b"histogram_usec");
        session.reply.map(cumulative.len());
        for (microseconds, calls) in cumulative {
            session.reply.integer(microseconds as i64);
            session.reply.integer(calls as i64);
        }
    }
    Ok(Outcome::Done)
}

/// Returns, for each bucket that contains calls, its upper bound in µs and the number of calls up to that bound.
fn cumulative(counts: &[u64; LATENCY_BUCKETS]) -> Vec<(u64, u64)> {
    let mut sum = 0;
    let mut points = Vec::new();
    for (bucket, &count) in counts.iter().enumerate() {
        sum += count;
        if count > 0 {
            points.push((1 << bucket, sum));
        }
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_histogram_is_cumulative_and_leaves_out_empty_buckets() {
        let mut counts = [0; LATENCY_BUCKETS];
        (counts[0], counts[3], counts[5]) = (2, 1, 4);
        assert_eq!(cumulative(&counts), [(1, 2), (8, 3), (32, 7)]);
        assert_eq!(cumulative(&[0; LATENCY_BUCKETS]), []);
    }

    #[test]
    fn a_graph_has_a_column_for_each_sample() {
        let sample = |at_seconds, milliseconds| Sample { at_seconds, milliseconds };
        let history = History {
            samples: [sample(100, 10), sample(160, 25), sample(170, 20)].into(),
            milliseconds_max: 99,
        };
        let graph = draw("command", &history, 175);
        let lines: Vec<&str> = graph.lines().collect();
        assert_eq!(lines[0], "command - high 25 ms, low 10 ms (all time high 99 ms)");
        assert_eq!(lines[2..], [" #", " |o", " ||", "_||", "", "115", "m5s", " s"]);
    }
}
