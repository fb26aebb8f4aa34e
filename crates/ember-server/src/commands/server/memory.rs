//! MEMORY: reports the memory of keys and of the process, and releases unused memory.

use ember_protocol::Reply;
use emberkv_core::commands::arguments::{integer, is_word};
use emberkv_core::error::CommandError;
use emberkv_core::keys::Lookup;
use emberkv_core::keyspace::{Keyspace, SHARDS};
use emberkv_core::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};

use crate::aof::service::Aof;
use crate::commands::help::{help_subcommand, reply_help};
use crate::executor::session::{Outcome, ServerCommand, Session, SessionResult};
use crate::live_queries::LiveQueries;
use crate::metrics::memory_report::{self, MemoryReport};
use crate::metrics::system_figures::SystemFigures;
use crate::replication::primary::Primary;
use crate::system::heap;

const TEMPLATE: Spec = Spec {
    since: "4.0.0",
    group: Group::Server,
    tips: &["nondeterministic_output", "request_policy:all_shards", "response_policy:special"],
    ..Spec::DEFAULT
};

pub(super) const COMMANDS: &[ServerCommand] = &[Command::container(
    Spec {
        name: "memory",
        summary: "Contains subcommands for memory.",
        since: "4.0.0",
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
                summary: "Reports unusual memory use in sentences.",
                arity: 2,
                example: Example { given: &[], call: "MEMORY DOCTOR", reply: "..." },
                ..TEMPLATE
            },
            Some(doctor),
        ),
        help_subcommand(
            Group::Server,
            "4.0.0",
            Example {
                given: &[],
                call: "MEMORY HELP",
                reply: " 1) MEMORY <subcommand> [<arg> [value] [opt] ...]. Subcommands are:\n...",
            },
            |session| reply_help(session, HELP),
        ),
        Command::new(
            Spec {
                name: "malloc-stats",
                summary: "Returns the statistics of the allocator.",
                complexity: "Grows with the number of arenas and size classes of the allocator.",
                arity: 2,
                example: Example { given: &[], call: "MEMORY MALLOC-STATS", reply: "..." },
                ..TEMPLATE
            },
            Some(malloc_stats),
        ),
        Command::new(
            Spec {
                name: "purge",
                summary: "Returns unused memory of the allocator to the system.",
                complexity: "O(N) for N returned pages.",
                arity: 2,
                tips: &["request_policy:all_shards", "response_policy:all_succeeded"],
                example: Example { given: &[], call: "MEMORY PURGE", reply: "OK" },
                ..TEMPLATE
            },
            Some(purge),
        ),
        Command::new(
            Spec {
                name: "stats",
                summary: "Returns the memory use by purpose.",
                arity: 2,
                example: Example { given: &[], call: "MEMORY STATS", reply: "..." },
                ..TEMPLATE
            },
            Some(stats),
        ),
        Command::new(
            Spec {
                name: "usage",
                summary: "Returns the memory of a key and its value in bytes.",
                complexity: "O(N) for N elements sampled.",
                arity: -3,
                flags: Flags::READONLY,
                keys: &[KeySpec::one(2, KeyFlags::RO)],
                tips: &[],
                syntax: "key [SAMPLES count]",
                example: Example { given: &[], call: "MEMORY USAGE nothing", reply: "(nil)" },
                ..TEMPLATE
            },
            Some(usage),
        ),
    ],
)];

const HELP: &[&str] = &[
    "DOCTOR",
    "    Report unusual memory use in sentences.",
    "MALLOC-STATS",
    "    Return the statistics of the allocator.",
    "PURGE",
    "    Return unused memory of the allocator to the system.",
    "STATS",
    "    Return the memory use by purpose.",
    "USAGE <key> [SAMPLES <count>]",
    "    Return the bytes that <key> and its value take. Of nested values <count> elements",
    "    are sampled (default: 5, 0 means all).",
];

fn usage(session: &mut Session<'_>) -> SessionResult {
    let args = session.args;
    match args.len() {
        3 => {}
        5 if is_word(args, 3, "SAMPLES") => {
            if integer(args, 4)? < 0 {
                return Err(CommandError::Syntax);
            }
        }
        _ => return Err(CommandError::Syntax),
    }
    let bytes = session.with_keys(|keys| {
        keys.read_as(2, Lookup::Peek).map(|entry| entry.resident_bytes() + size_of::<u64>())
    });
    match bytes {
        Some(bytes) => session.reply.integer(bytes as i64),
        None => session.reply.null(),
    }
    Ok(Outcome::Done)
}

enum Field {
    Count(u64),
    Ratio(f64),
}

fn stats(session: &mut Session<'_>) -> SessionResult {
    use Field::{Count, Ratio};
    let server = session.server;
    let report = MemoryReport::of(server);
    let allocator = report.allocator;
    let keyspace = &server.keyspace;
    let scripting = &server.scripting;
    let backlog = Primary::of(server).backlog_bytes() as u64;
    let aof_buffer = Aof::of(server).buffer_bytes(server);
    let scripts = scripting.interpreter_bytes() + scripting.scripts.text_bytes() as u64;
    let functions = scripting.libraries.snapshot().code_bytes() as u64;
    let databases: Vec<(usize, usize)> = (0..keyspace.databases())
        .map(|database| (keyspace.len(database), table_bytes(keyspace, database)))
        .collect();
    let keys: u64 = databases.iter().map(|&(keys, _)| keys as u64).sum();
    let reply = &mut *session.reply;
    let mark = reply.mark();
    let mut fields = 0;
    for (name, field) in [
        ("peak.allocated", Count(report.peak)),
        ("total.allocated", Count(report.allocated)),
        ("startup.allocated", Count(report.startup)),
        ("replication.backlog", Count(backlog)),
        ("clients.slaves", Count(report.replicas)),
        ("clients.normal", Count(report.other_clients())),
        ("cluster.links", Count(0)),
        ("aof.buffer", Count(aof_buffer)),
        ("lua.caches", Count(scripts)),
        ("functions.caches", Count(functions)),
        ("live.queries", Count(LiveQueries::of(server).memory_bytes())),
    ] {
        reply_field(reply, name, &field);
        fields += 1;
    }
    for (database, &(_, table_bytes)) in databases.iter().enumerate().filter(|(_, (keys, _))| *keys > 0) {
        reply.bulk(format!("db.{database}").as_bytes());
        reply.map(3);
        reply_field(reply, "overhead.hashtable.main", &Count(table_bytes as u64));
        // The expiry times are stored in the entries, and there is no table of cluster slots.
        reply_field(reply, "overhead.hashtable.expires", &Count(0));
        reply_field(reply, "overhead.hashtable.slot-to-keys", &Count(0));
        fields += 1;
    }
    for (name, field) in [
        ("overhead.total", Count(report.overhead())),
        ("keys.count", Count(keys)),
        ("keys.bytes-per-key", Count((report.dataset + report.overhead()).checked_div(keys).unwrap_or(0))),
        ("dataset.bytes", Count(report.dataset)),
        ("dataset.percentage", Ratio(report.dataset_percentage())),
        ("peak.percentage", Ratio(report.peak_percentage())),
        ("allocator.allocated", Count(allocator.allocated)),
        ("allocator.active", Count(allocator.active)),
        ("allocator.resident", Count(allocator.resident)),
        ("allocator-fragmentation.ratio", Ratio(memory_report::ratio(allocator.active, allocator.allocated))),
        ("allocator-fragmentation.bytes", Count(allocator.active.saturating_sub(allocator.allocated))),
        ("allocator-rss.ratio", Ratio(memory_report::ratio(allocator.resident, allocator.active))),
        ("allocator-rss.bytes", Count(allocator.resident.saturating_sub(allocator.active))),
        ("rss-overhead.ratio", Ratio(memory_report::ratio(report.resident, allocator.resident))),
        ("rss-overhead.bytes", Count(report.resident.saturating_sub(allocator.resident))),
        ("fragmentation", Ratio(memory_report::ratio(report.resident, report.allocated))),
        ("fragmentation.bytes", Count(report.resident.saturating_sub(report.allocated))),
    ] {
        reply_field(reply, name, &field);
        fields += 1;
    }
    reply.insert_map(mark, fields);
    Ok(Outcome::Done)
}

/// Returns the size in bytes of the hash tables of a database.
fn table_bytes(keyspace: &Keyspace, database: usize) -> usize {
    (0..SHARDS).map(|shard| keyspace.lock(shard).database(database).table().slots_bytes()).sum()
}

fn reply_field(reply: &mut Reply, name: &str, field: &Field) {
    reply.bulk(name.as_bytes());
    match *field {
        Field::Count(count) => reply.integer(count as i64),
        Field::Ratio(ratio) => reply.double(ratio),
    }
}

/// The memory use in bytes below which MEMORY DOCTOR makes no diagnosis, because ratios are meaningless.
const DIAGNOSED_MIN_BYTES: u64 = 5 * 1024 * 1024;

fn doctor(session: &mut Session<'_>) -> SessionResult {
    let report = MemoryReport::of(session.server);
    let mut text = String::new();
    let findings = [
        (
            memory_report::ratio(report.peak, report.allocated) > 1.5,
            "Peak: the peak of allocated memory is over 1.5 times the current amount. Resident memory may \
             stay high; MEMORY PURGE returns unused memory of the allocator to the system.",
        ),
        (
            memory_report::ratio(report.resident, report.allocated) > 1.4,
            "Fragmentation: resident memory is over 1.4 times the allocated memory. MEMORY PURGE may help; a \
             restart does.",
        ),
        (
            memory_report::ratio(report.allocator.active, report.allocator.allocated) > 1.1,
            "Allocator fragmentation: the pages in use exceed the allocated memory by over a tenth. Values \
             that often change their size cause this.",
        ),
    ];
    if report.allocated < DIAGNOSED_MIN_BYTES {
        text += "The data set is too small for meaningful ratios.\n";
    } else {
        for (_, finding) in findings.iter().filter(|(applies, _)| *applies) {
            text += finding;
            text.push('\n');
        }
        if text.is_empty() {
            text += "Nothing unusual was found.\n";
        }
    }
    session.reply.verbatim(b"txt", text.as_bytes());
    Ok(Outcome::Done)
}

fn malloc_stats(session: &mut Session<'_>) -> SessionResult {
    session.reply.verbatim(b"txt", heap::allocator_statistics().as_bytes());
    Ok(Outcome::Done)
}

fn purge(session: &mut Session<'_>) -> SessionResult {
    heap::purge().map_err(|error| format!("ERR Error purging dirty pages: {error}"))?;
    // Renews the cached figures, so that the next reader sees the effect.
    SystemFigures::renewed(session.server);
    session.reply.ok();
    Ok(Outcome::Done)
}
