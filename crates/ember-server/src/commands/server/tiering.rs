//! TIERING: shows and changes whether the values of keys are resident or cold.

use std::sync::atomic::Ordering;

use emberkv_core::commands::arguments::is_word;
use emberkv_core::error::CommandError;
use emberkv_core::keyspace::shard::cold_values::DemotionRules;
use emberkv_core::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};

use crate::commands::help::{help_subcommand, reply_help};
use crate::executor::session::{Outcome, ServerCommand, Session, SessionResult};
use crate::tiers::report::Figures;
use crate::tiers::{Tiers, demotion};

/// The ember version that introduced the command.
const SINCE: &str = "0.1.0";

const ABOUT_ALL: Spec = Spec {
    since: SINCE,
    group: Group::Server,
    complexity: "O(S) for S shards.",
    arity: 2,
    flags: Flags::LOADING.union(Flags::STALE),
    tips: &["nondeterministic_output", "request_policy:all_nodes", "response_policy:special"],
    ..Spec::DEFAULT
};

const ABOUT_KEYS: Spec = Spec {
    since: SINCE,
    group: Group::Server,
    complexity: "O(1) for each key.",
    flags: Flags::FAST,
    ..Spec::DEFAULT
};

pub(super) const COMMANDS: &[ServerCommand] = &[Command::container(
    Spec {
        name: "tiering",
        summary: "Contains subcommands for tiered values.",
        since: SINCE,
        group: Group::Server,
        complexity: "Depends on the subcommand.",
        arity: -2,
        ..Spec::DEFAULT
    },
    None,
    &[
        help_subcommand(
            Group::Server,
            SINCE,
            Example {
                given: &[],
                call: "TIERING HELP",
                reply: " 1) TIERING <subcommand> [<arg> [value] [opt] ...]. Subcommands are:\n...",
            },
            |session| reply_help(session, HELP),
        ),
        Command::new(
            Spec {
                name: "info",
                summary: "Returns the number of values per tier and the size of their files.",
                example: Example {
                    given: &[],
                    call: "TIERING INFO",
                    reply: " 1) \"enabled\"\n 2) (integer) 0\n...",
                },
                replies_pairs: true,
                ..ABOUT_ALL
            },
            Some(|session| pairs(session, Figures::now)),
        ),
        Command::new(
            Spec {
                name: "migrate",
                summary: "Fetches the value of a key into memory, or demotes it.",
                arity: 4,
                keys: &[KeySpec::one(2, KeyFlags::RW.union(KeyFlags::UPDATE))],
                syntax: "key <HOT | COLD>",
                // The command is not allowed in transactions, because the connection may have to wait for the disk.
                flags: Flags::NOSCRIPT.union(Flags::NO_MULTI),
                example: Example {
                    given: &[],
                    call: "TIERING MIGRATE nothing HOT",
                    reply: "(error) ERR no such key",
                },
                ..ABOUT_KEYS
            },
            Some(migrate),
        ),
        Command::new(
            Spec {
                name: "pin",
                summary: "Pins the values of keys in memory; returns the number of newly pinned keys.",
                arity: -3,
                keys: &[KeySpec::from(2, 1, KeyFlags::RO)],
                syntax: "key [key ...]",
                example: Example {
                    given: &["SET here 1", "TIERING PIN here"],
                    call: "TIERING PIN here nothing",
                    reply: "(integer) 0",
                },
                ..ABOUT_KEYS
            },
            Some(|session| set_pinned(session, true)),
        ),
        Command::new(
            Spec {
                name: "stats",
                summary: "Returns the numbers of demoted and fetched values since startup.",
                example: Example {
                    given: &[],
                    call: "TIERING STATS",
                    reply: " 1) \"demotions\"\n 2) (integer) 0\n...",
                },
                replies_pairs: true,
                ..ABOUT_ALL
            },
            Some(|session| pairs(session, Figures::since_start)),
        ),
        Command::new(
            Spec {
                name: "tier",
                summary: "Returns the tier of a key's value: hot, warm or cold.",
                arity: 3,
                keys: &[KeySpec::one(2, KeyFlags::RO)],
                syntax: "key",
                example: Example { given: &["SET here 1"], call: "TIERING TIER here", reply: "\"hot\"" },
                ..ABOUT_KEYS
            },
            Some(tier),
        ),
        Command::new(
            Spec {
                name: "unpin",
                summary: "Unpins the values of keys; returns the number of unpinned keys.",
                arity: -3,
                keys: &[KeySpec::from(2, 1, KeyFlags::RO)],
                syntax: "key [key ...]",
                example: Example {
                    given: &["SET here 1", "TIERING PIN here"],
                    call: "TIERING UNPIN here nothing",
                    reply: "(integer) 1",
                },
                ..ABOUT_KEYS
            },
            Some(|session| set_pinned(session, false)),
        ),
    ],
)];

const HELP: &[&str] = &[
    "INFO",
    "    Return the number of values per tier and the size of their files.",
    "MIGRATE <key> HOT|COLD",
    "    Fetch the value of <key> into memory, or demote it.",
    "PIN <key> [<key> ...]",
    "    Pin the values of keys in memory, until UNPIN or until they are deleted.",
    "STATS",
    "    Return the numbers of demoted and fetched values since startup.",
    "TIER <key>",
    "    Return the tier of the value of <key>: hot (in memory), warm (in a write buffer),",
    "    or cold (in a file).",
    "UNPIN <key> [<key> ...]",
    "    Unpin the values of keys.",
];

fn pairs(session: &mut Session<'_>, figures: fn(&Figures) -> Vec<(&'static str, u64)>) -> SessionResult {
    let figures = figures(&Figures::of(session.server));
    session.reply.map(figures.len());
    for (name, figure) in figures {
        session.reply.bulk(name.as_bytes());
        session.reply.integer(i64::try_from(figure).unwrap_or(i64::MAX));
    }
    Ok(Outcome::Done)
}

/// Returns whether a key exists.
fn exists(session: &mut Session<'_>, key: &[u8]) -> bool {
    let (keyspace, database) = (&session.server.keyspace, session.client.database);
    let hash = keyspace.hash(key);
    let data = keyspace.lock(hash.shard());
    let found = data.find(database, hash, key);
    found.is_some_and(|at| !data.entry(database, at).is_expired(session.turn.expired_ms()))
}

fn tier(session: &mut Session<'_>) -> SessionResult {
    let (server, key) = (session.server, session.args.at(2));
    if !exists(session, key) {
        session.reply.null();
        return Ok(Outcome::Done);
    }
    let name = match demotion::location_of(server, session.client.database, key) {
        None => "hot",
        Some(location) if Tiers::of(server).records.is_buffered(location) => "warm",
        Some(_) => "cold",
    };
    session.reply.bulk(name.as_bytes());
    Ok(Outcome::Done)
}

fn set_pinned(session: &mut Session<'_>, is_pinned: bool) -> SessionResult {
    let (keyspace, database) = (&session.server.keyspace, session.client.database);
    let mut changed = 0;
    for key in session.args.skip(2).iter() {
        if is_pinned && !exists(session, key) {
            continue;
        }
        let mut data = keyspace.lock(keyspace.hash(key).shard());
        changed += i64::from(data.set_pinned(database, keyspace.hash(key), key, is_pinned));
    }
    session.reply.integer(changed);
    Ok(Outcome::Done)
}

fn migrate(session: &mut Session<'_>) -> SessionResult {
    let (server, database, args) = (session.server, session.client.database, session.args);
    let key = args.at(2);
    let is_cold = match () {
        () if is_word(args, 3, "HOT") => false,
        () if is_word(args, 3, "COLD") => true,
        () => return Err(CommandError::Syntax),
    };
    if !exists(session, key) {
        return Err(CommandError::NoSuchKey);
    }
    let is_demoted = demotion::location_of(server, database, key).is_some();
    if is_cold && !is_demoted {
        demotion::demote_key(server, database, key, &DemotionRules::ANY)?;
    } else if !is_cold && is_demoted {
        // Only this connection waits until the value is fetched.
        session.turn.missing.clear();
        session.turn.missing.push((database, key.into()));
        return Ok(Outcome::Fetch);
    }
    Tiers::of(server).counters.migrated.fetch_add(1, Ordering::Relaxed);
    session.reply.ok();
    Ok(Outcome::Done)
}
