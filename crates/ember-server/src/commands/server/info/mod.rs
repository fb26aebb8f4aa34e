//! INFO: reports the state of the server as text, in sections.

mod counters;
mod system;

use std::fmt::Write;
use std::rc::Rc;

use ember_config::Config;
use emberkv_core::spec::{Category, Command, Example, Flags, Group, Spec};

use crate::executor::session::{Outcome, ServerCommand, Session, SessionResult};
use crate::metrics::census::Census;
use crate::server::Server;

pub(super) const COMMANDS: &[ServerCommand] = &[Command::new(
    Spec {
        name: "info",
        summary: "Returns information about the server, section by section.",
        since: "1.0.0",
        group: Group::Server,
        complexity: "O(S) for S shards, and O(N) for N connections.",
        arity: -1,
        flags: Flags::LOADING.union(Flags::STALE),
        categories: Category::DANGEROUS,
        tips: &["nondeterministic_output", "request_policy:all_shards", "response_policy:special"],
        syntax: "[section [section ...]]",
        history: &[("7.0.0", "Several sections.")],
        example: Example {
            given: &[],
            call: "INFO modules",
            reply: "\"# Modules\\r\\nmodule:name=ReJSON,ver=20803,api=1,filters=0,usedby=[],using=[],options=[]\\r\\nmodule:name=bf,ver=20802,api=1,filters=0,usedby=[],using=[],options=[]\\r\\n\"",
        },
        ..Spec::DEFAULT
    },
    Some(info),
)];

/// The data for the sections of one reply, collected once.
struct Report<'r> {
    server: &'static Server,
    config: &'r Config,
    now_ms: i64,
    /// The census of clients and keys, collected when the first section needs it.
    census: Option<Rc<Census>>,
    /// The lines of the current section.
    text: String,
}

impl Report<'_> {
    /// Returns the census that all sections share.
    fn census(&mut self) -> Rc<Census> {
        let take = || Rc::new(Census::of(self.server, self.now_ms));
        Rc::clone(self.census.get_or_insert_with(take))
    }

    /// Adds the line `name:value`.
    fn line(&mut self, name: &str, value: impl std::fmt::Display) {
        // The parts are appended separately: formatting the whole line with `write!` takes twice as long.
        self.text += name;
        self.text += ":";
        _ = write!(self.text, "{value}");
        self.text += "\r\n";
    }

    /// Adds lines with the value zero for features that do not exist here, because clients expect the fields.
    fn zeros(&mut self, names: &[&str]) {
        names.iter().for_each(|name| self.line(name, 0));
    }
}

struct Section {
    name: &'static str,
    title: &'static str,
    /// Whether INFO without arguments includes this section.
    is_default: bool,
    write: fn(&mut Report<'_>),
}

const fn section(
    name: &'static str,
    title: &'static str,
    is_default: bool,
    write: fn(&mut Report<'_>),
) -> Section {
    Section { name, title, is_default, write }
}

/// All sections, in the order of the reply.
const SECTIONS: &[Section] = &[
    section("server", "Server", true, system::server),
    section("clients", "Clients", true, system::clients),
    section("memory", "Memory", true, system::memory),
    section("persistence", "Persistence", true, system::persistence),
    section("stats", "Stats", true, counters::stats),
    section("replication", "Replication", true, system::replication),
    section("cpu", "CPU", true, system::cpu),
    section("modules", "Modules", true, system::modules),
    section("commandstats", "Commandstats", false, counters::commandstats),
    section("errorstats", "Errorstats", true, counters::errorstats),
    section("latencystats", "Latencystats", false, counters::latencystats),
    section("cluster", "Cluster", true, |report| {
        report.line("cluster_enabled", u8::from(report.server.slots.is_some()));
    }),
    section("tls", "TLS", false, system::tls),
    section("tiers", "Tiers", false, system::tiers),
    section("history", "History", false, system::history),
    section("keyspace", "Keyspace", true, system::keyspace),
];

/// The initial capacity of the text in bytes, more than INFO without arguments needs.
const USUAL_BYTES: usize = 8 * 1024;

fn info(session: &mut Session<'_>) -> SessionResult {
    let wanted = session.args.skip(1);
    let is_wanted = |section: &&Section| {
        let names = |word: &[u8]| {
            let is = |name: &str| word.eq_ignore_ascii_case(name.as_bytes());
            is(section.name) || is("all") || is("everything") || (is("default") && section.is_default)
        };
        if wanted.is_empty() { section.is_default } else { wanted.iter().any(names) }
    };
    let config = session.server.config.snapshot();
    let mut report = Report {
        server: session.server,
        config: &config,
        now_ms: session.turn.now_ms,
        census: None,
        text: String::with_capacity(USUAL_BYTES),
    };
    for section in SECTIONS.iter().filter(is_wanted) {
        if !report.text.is_empty() {
            report.text += "\r\n";
        }
        report.text += &format!("# {}\r\n", section.title);
        (section.write)(&mut report);
    }
    session.reply.verbatim(b"txt", report.text.as_bytes());
    Ok(Outcome::Done)
}
