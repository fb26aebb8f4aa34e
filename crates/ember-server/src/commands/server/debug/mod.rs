//! DEBUG: commands for tests and developers, disabled unless `enable-debug-command` allows them.

mod digest;
mod protocol;
mod reload;
mod signature;
mod stored_keys;
mod switches;

use std::thread;
use std::time::Duration;

use ember_config::DebugCommand;
use emberkv_core::commands::arguments::is_word;
use emberkv_core::error::CommandError;
use emberkv_core::glob::{self, Case};
use emberkv_core::spec::{Command, Example, Flags, Group, Spec};

use crate::catalogue::registry::wrong_subcommand;
use crate::commands::help::reply_help;
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
    "    Set the minimum duration of each write to the append-only file.",
    "CHANGE-REPL-ID",
    "    Change the replication ID, which INFO reports as master_replid.",
    "CONFIG-REWRITE-FORCE-ALL",
    "    Like CONFIG REWRITE, with a line for every parameter, including defaults.",
    "DIGEST",
    "    Return a signature of all data: equal data has equal signatures.",
    "DIGEST-VALUE <key> [<key> ...]",
    "    Return signatures of the values of keys.",
    "ERROR <string>",
    "    Reply with <string> as an error.",
    "HTSTATS <dbid>",
    "    Return statistics about the tables of a database.",
    "HTSTATS-KEY <key>",
    "    Return statistics about the table in the value of <key>.",
    "LOADAOF",
    "    Flush the AOF, then replace the data by its contents.",
    "LOG <message>",
    "    Write <message> to the log.",
    "OBJECT <key>",
    "    Return how <key> and its value are stored.",
    "PAUSE-CRON <0|1>",
    "    Set whether background work pauses: expiry, eviction, timeouts, save rules and rewrites.",
    "POPULATE <count> [<prefix>] [<size>]",
    "    Create <count> strings with the keys <prefix>:0, <prefix>:1, … (default: key),",
    "    of <size> bytes each. Existing keys stay unchanged.",
    "PROTOCOL (STRING|INTEGER|DOUBLE|BIGNUM|NULL|ARRAY|SET|MAP|ATTRIB|PUSH|VERBATIM|TRUE|FALSE)",
    "    Reply with a value of this type.",
    "QUICKLIST-PACKED-THRESHOLD <size>",
    "    Store list elements above this size in separate nodes, regardless of list-max-listpack-size.",
    "    0, the default, disables this.",
    "RELOAD [MERGE] [NOFLUSH] [NOSAVE]",
    "    Save the RDB file, then replace the data by its contents.",
    "    NOSAVE reads the existing file; NOFLUSH keeps the existing data;",
    "    MERGE lets keys of the file replace existing ones, which are an error otherwise.",
    "REPLICATE <command> [<argument> ...]",
    "    Send a command to replicas without running it here: their data may differ afterwards.",
    "SDSLEN <key>",
    "    Return the lengths of <key> and of its string value.",
    "SET-ACTIVE-EXPIRE <0|1>",
    "    Set whether expired keys are removed before a client accesses them.",
    "SET-DISABLE-DENY-SCRIPTS <0|1>",
    "    Set whether scripts may call server and connection commands that are denied to scripts.",
    "SET-SKIP-CHECKSUM-VALIDATION <0|1>",
    "    Set whether the checksums of RDB files and of payloads of RESTORE are ignored.",
    "SLEEP <seconds>",
    "    Block all access to the data for <seconds>; decimals are allowed.",
    "STRINGMATCH-LEN <pattern> <string>",
    "    Return whether a glob-like <pattern> matches <string>.",
    "TIER-CACHED-READS <0|1>",
    "    Set whether a worker reads small values from the page cache, or leaves all to the reader threads.",
    "TIER-HOLD-READS <0|1>",
    "    Set whether fetches are held: commands that need the values wait.",
    "TIER [DEMOTE] <key>",
    "    Return the location of the record of <key>'s value; DEMOTE demotes the value first, whatever its \
     size.",
];

/// The name of a subcommand, the minimum and maximum number of its arguments, and its handler.
type Subcommand = (&'static str, usize, usize, fn(&mut Session<'_>) -> SessionResult);

const SUBCOMMANDS: &[Subcommand] = &[
    ("AOF-FLUSH-SLEEP", 1, 1, switches::aof_flush_sleep),
    ("CHANGE-REPL-ID", 0, 0, switches::change_repl_id),
    ("CONFIG-REWRITE-FORCE-ALL", 0, 0, super::config::rewrite_in_full),
    ("DIGEST", 0, 0, digest::digest),
    ("DIGEST-VALUE", 0, usize::MAX, digest::digest_value),
    ("ERROR", 1, 1, error),
    ("HELP", 0, 0, |session| reply_help(session, HELP)),
    ("HTSTATS", 1, 2, stored_keys::htstats),
    ("HTSTATS-KEY", 1, 2, stored_keys::htstats_key),
    ("LOADAOF", 0, 0, reload::loadaof),
    ("LOG", 1, 1, log),
    ("OBJECT", 1, 2, stored_keys::object),
    ("PAUSE-CRON", 1, 1, switches::pause_cron),
    ("POPULATE", 1, 3, stored_keys::populate),
    ("PROTOCOL", 1, 1, protocol::protocol),
    ("QUICKLIST-PACKED-THRESHOLD", 1, 1, switches::quicklist_packed_threshold),
    ("RELOAD", 0, usize::MAX, reload::reload),
    ("REPLICATE", 1, usize::MAX, replicate),
    ("SDSLEN", 1, 1, stored_keys::sdslen),
    ("SET-ACTIVE-EXPIRE", 1, 1, switches::set_active_expire),
    ("SET-DISABLE-DENY-SCRIPTS", 1, 1, switches::set_disable_deny_scripts),
    ("SET-SKIP-CHECKSUM-VALIDATION", 1, 1, switches::set_skip_checksum_validation),
    ("SLEEP", 1, 1, sleep),
    ("STRINGMATCH-LEN", 2, 2, stringmatch_len),
    ("TIER", 1, 2, stored_keys::tier),
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

/// The maximum duration of DEBUG SLEEP. A longer sleep is a mistake, and only a signal would end it.
const SLEEP_MAX: Duration = Duration::from_secs(3600);

fn sleep(session: &mut Session<'_>) -> SessionResult {
    let seconds = ember_protocol::number::parse_f64(session.args.at(2)).unwrap_or(0.0);
    let duration = Duration::try_from_secs_f64(seconds).unwrap_or_default().min(SLEEP_MAX);
    let keyspace = &session.server.keyspace;
    let guards = keyspace.lock_all();
    thread::sleep(duration);
    keyspace.release_all(guards);
    // Updates the time, so that keys that expired during the sleep are expired for the next clients.
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
