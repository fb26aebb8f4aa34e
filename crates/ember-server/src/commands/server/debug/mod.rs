//! DEBUG: for tests and developers, disabled unless `enable-debug-command` allows it.

mod digest;
mod keys;
mod protocol;
mod reload;
mod signature;
mod switches;

use std::thread;
use std::time::Duration;

use emberkv_core::commands::arguments::is_word;
use emberkv_core::error::CommandError;
use emberkv_core::glob::{self, Case};
use emberkv_core::spec::{Command, Example, Flags, Group, Spec};

use crate::catalogue::registry::wrong_subcommand;
use crate::commands::help::reply_help;
use crate::config::DebugCommand;
use crate::executor::session::{Outcome, ServerCommand, Session, SessionResult};
use crate::replication::primary::Primary;
use crate::system::clock::unix_ms;

const REFUSED: &str = "ERR DEBUG command not allowed. If the enable-debug-command option is set to \"local\", you can \
                       run it from a local connection, otherwise you need to set this option in the configuration \
                       file, and then restart the server.";

pub(super) const COMMANDS: &[ServerCommand] = &[Command::new(
    Spec {
        name: "debug",
        is_system: true,
        summary: "Contains subcommands for tests and debugging.",
        since: "1.0.0",
        group: Group::Server,
        complexity: "Depends on the subcommand.",
        arity: -2,
        flags: Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::LOADING).union(Flags::STALE),
        example: Example {
            given: &[],
            call: "DEBUG SLEEP 0",
            reply: "(error) ERR DEBUG command not allowed. If the enable-debug-command option is set to \"local\", you \
                    can run it from a local connection, otherwise you need to set this option in the configuration \
                    file, and then restart the server.",
        },
        ..Spec::DEFAULT
    },
    Some(debug),
)];

const HELP: &[&str] = &[
    "AOF-FLUSH-SLEEP <microseconds>",
    "    How long each write to the append-only file takes at least.",
    "CHANGE-REPL-ID",
    "    Give the history of the data another name, which INFO tells as master_replid.",
    "CONFIG-REWRITE-FORCE-ALL",
    "    As CONFIG REWRITE, with a line for every parameter, defaults too.",
    "DIGEST",
    "    Tell a signature of all data: equal data has equal signatures.",
    "DIGEST-VALUE <key> [<key> ...]",
    "    Tell signatures of the values of keys.",
    "ERROR <string>",
    "    Answer <string> as an error.",
    "HTSTATS <dbid>",
    "    Tell about the tables of a database.",
    "HTSTATS-KEY <key>",
    "    Tell about the table that is the value of <key>.",
    "LOADAOF",
    "    Write out the AOF, then read it in the place of the data.",
    "LOG <message>",
    "    Write <message> to the log.",
    "OBJECT <key>",
    "    Tell how <key> and its value are kept.",
    "PAUSE-CRON <0|1>",
    "    Whether nothing happens by itself: no expiry, eviction, timeouts, save rules or rewrites.",
    "POPULATE <count> [<prefix>] [<size>]",
    "    Make <count> strings whose keys are <prefix>:0, <prefix>:1, … (default: key),",
    "    of <size> bytes each. Keys that exist stay as they are.",
    "PROTOCOL (STRING|INTEGER|DOUBLE|BIGNUM|NULL|ARRAY|SET|MAP|ATTRIB|PUSH|VERBATIM|TRUE|FALSE)",
    "    Answer a value of this type.",
    "QUICKLIST-PACKED-THRESHOLD <size>",
    "    Elements of lists above this size get a node of their own, whatever list-max-listpack-size says.",
    "    0 is the default: no such size.",
    "RELOAD [MERGE] [NOFLUSH] [NOSAVE]",
    "    Write the RDB file, then read it in the place of the data.",
    "    NOSAVE reads the file that there is; NOFLUSH keeps the data that there is;",
    "    MERGE lets keys of the file replace those that are there, which are an error otherwise.",
    "REPLICATE <command> [<argument> ...]",
    "    Send a command to replicas that is not run here: their data may be others then.",
    "SDSLEN <key>",
    "    Tell the lengths of <key> and of the string that is its value.",
    "SET-ACTIVE-EXPIRE <0|1>",
    "    Whether keys expire before somebody asks for them.",
    "SET-DISABLE-DENY-SCRIPTS <0|1>",
    "    Whether scripts may call commands about the server and its clients that are not for scripts.",
    "SET-SKIP-CHECKSUM-VALIDATION <0|1>",
    "    Whether the checksums of RDB files and of what RESTORE is given are left unread.",
    "SLEEP <seconds>",
    "    Let nobody access the data for <seconds>; decimals are allowed.",
    "STRINGMATCH-LEN <pattern> <string>",
    "    Tell whether a glob-like <pattern> matches <string>.",
    "TIER-CACHED-READS <0|1>",
    "    Whether a worker reads small values that the system has in memory, or leaves all to the threads that read.",
    "TIER-HOLD-READS <0|1>",
    "    Whether values that are asked for stay away for now: what needs them waits.",
    "TIER [DEMOTE] <key>",
    "    Tell where the record of <key>'s value is; DEMOTE sends the value away before, whatever its size.",
];

/// A subcommand, the minimum and maximum number of its arguments, and its handler.
type Subcommand = (&'static str, usize, usize, fn(&mut Session<'_>) -> SessionResult);

const SUBCOMMANDS: &[Subcommand] = &[
    ("AOF-FLUSH-SLEEP", 1, 1, switches::aof_flush_sleep),
    ("CHANGE-REPL-ID", 0, 0, switches::change_repl_id),
    ("CONFIG-REWRITE-FORCE-ALL", 0, 0, super::config::rewrite_in_full),
    ("DIGEST", 0, 0, digest::digest),
    ("DIGEST-VALUE", 0, usize::MAX, digest::digest_value),
    ("ERROR", 1, 1, error),
    ("HELP", 0, 0, |session| reply_help(session, HELP)),
    ("HTSTATS", 1, 2, keys::htstats),
    ("HTSTATS-KEY", 1, 2, keys::htstats_key),
    ("LOADAOF", 0, 0, reload::loadaof),
    ("LOG", 1, 1, log),
    ("OBJECT", 1, 2, keys::object),
    ("PAUSE-CRON", 1, 1, switches::pause_cron),
    ("POPULATE", 1, 3, keys::populate),
    ("PROTOCOL", 1, 1, protocol::protocol),
    ("QUICKLIST-PACKED-THRESHOLD", 1, 1, switches::quicklist_packed_threshold),
    ("RELOAD", 0, usize::MAX, reload::reload),
    ("REPLICATE", 1, usize::MAX, replicate),
    ("SDSLEN", 1, 1, keys::sdslen),
    ("SET-ACTIVE-EXPIRE", 1, 1, switches::set_active_expire),
    ("SET-DISABLE-DENY-SCRIPTS", 1, 1, switches::set_disable_deny_scripts),
    ("SET-SKIP-CHECKSUM-VALIDATION", 1, 1, switches::set_skip_checksum_validation),
    ("SLEEP", 1, 1, sleep),
    ("STRINGMATCH-LEN", 2, 2, stringmatch_len),
    ("TIER", 1, 2, keys::tier),
    ("TIER-CACHED-READS", 1, 1, switches::tier_cached_reads),
    ("TIER-HOLD-READS", 1, 1, switches::tier_hold_reads),
];

fn replicate(session: &mut Session<'_>) -> SessionResult {
    Primary::of(session.server).pass_on(session.server, session.args.iter().skip(2), None);
    session.reply.ok();
    Ok(Outcome::Done)
}

fn debug(session: &mut Session<'_>) -> SessionResult {
    let is_allowed = match session.server.config.snapshot().enable_debug_command {
        DebugCommand::No => false,
        DebugCommand::Yes => true,
        DebugCommand::Local => session.client.view.peer.is_loopback(),
    };
    if !is_allowed {
        return Err(REFUSED.into());
    }
    let arguments = session.args.len() - 2;
    let found = SUBCOMMANDS
        .iter()
        .find(|(name, min, max, _)| is_word(session.args, 1, name) && (*min..=*max).contains(&arguments));
    match found {
        Some((_, _, _, run)) => run(session),
        None => Err(wrong_subcommand("DEBUG", session.args.at(1))),
    }
}

/// The longest sleep. A longer one is a mistake: only a signal would end it.
const SLEEP_MAX: Duration = Duration::from_secs(3600);

fn sleep(session: &mut Session<'_>) -> SessionResult {
    let seconds = ember_protocol::number::parse_f64(session.args.at(2)).unwrap_or(0.0);
    let duration = Duration::try_from_secs_f64(seconds).unwrap_or_default().min(SLEEP_MAX);
    let keyspace = &session.server.keyspace;
    let guards = keyspace.lock_all();
    thread::sleep(duration);
    keyspace.release_all(guards);
    // Keys that have expired meanwhile have expired for the clients served next, too.
    session.turn.catch_up(unix_ms());
    session.reply.ok();
    Ok(Outcome::Done)
}

fn stringmatch_len(session: &mut Session<'_>) -> SessionResult {
    let matches = glob::matches(session.args.at(2), session.args.at(3), Case::Sensitive);
    session.reply.integer(i64::from(matches));
    Ok(Outcome::Done)
}

fn error(session: &mut Session<'_>) -> SessionResult {
    Err(CommandError::Bytes(session.args.at(2).to_vec()))
}

fn log(session: &mut Session<'_>) -> SessionResult {
    tracing::warn!("DEBUG LOG: {}", String::from_utf8_lossy(session.args.at(2)));
    session.reply.ok();
    Ok(Outcome::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_names_every_subcommand() {
        for (name, ..) in SUBCOMMANDS.iter().filter(|(name, ..)| *name != "HELP") {
            assert!(HELP.iter().any(|line| line.split(' ').next() == Some(name)), "{name}");
        }
    }
}
