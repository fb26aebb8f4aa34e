//! CONFIG: reads and changes the configuration at run time, and resets statistics.

use std::path::Path;
use std::sync::atomic::Ordering;

use ember_config::{
    Config, StoredUser, check_kept_files, is_key_file_parameter, is_secret_parameter, notice_of_those,
    tls_parameter,
};
use ember_persistence::full_path::without_directories;
use ember_protocol::Args;
use ember_protocol::number::parse_i64;
use emberkv_core::error::CommandError;
use emberkv_core::reclaim;
use emberkv_core::spec::{Command, Example, Flags, Group, Spec};

use crate::aof::rewriting;
use crate::clients::listener;
use crate::clients::listening::Listening;
use crate::clients::mailbox::Message;
use crate::cluster::changing;
use crate::commands::help::{help_subcommand, reply_help};
use crate::executor::Section;
use crate::executor::session::{Execution, Outcome, ServerCommand, Session, SessionResult};
use crate::journal::Reader;
use crate::observability::stats::WorkerStats;
use crate::replication::primary::Primary;
use crate::server::Server;
use crate::server::conditions::{Condition, LOADING_ERROR};
use crate::snapshot::state::SnapshotState;
use crate::system::{oom_score, open_files, process_title};

const TEMPLATE: Spec = Spec {
    group: Group::Server,
    flags: Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::LOADING).union(Flags::STALE),
    ..Spec::DEFAULT
};

pub(super) const COMMANDS: &[ServerCommand] = &[Command::container(
    Spec {
        name: "config",
        summary: "Contains subcommands for the configuration.",
        since: "2.0.0",
        group: Group::Server,
        complexity: "Depends on the subcommand.",
        arity: -2,
        ..Spec::DEFAULT
    },
    None,
    &[
        Command::new(
            Spec {
                name: "get",
                summary: "Returns the parameters whose names match a pattern.",
                since: "2.0.0",
                complexity: "O(N) for N parameters.",
                arity: -3,
                syntax: "parameter:<parameter> [parameter:<parameter> ...]",
                history: &[("7.0.0", "Several patterns.")],
                example: Example {
                    given: &[],
                    call: "CONFIG GET maxmemory-s*",
                    reply: "1) \"maxmemory-samples\"\n2) \"5\"",
                },
                ..TEMPLATE
            },
            Some(get),
        ),
        help_subcommand(
            Group::Server,
            "5.0.0",
            Example {
                given: &[],
                call: "CONFIG HELP",
                reply: " 1) CONFIG <subcommand> [<arg> [value] [opt] ...]. Subcommands are:\n...",
            },
            |session| reply_help(session, HELP),
        ),
        Command::new(
            Spec {
                name: "resetstat",
                summary: "Resets the counters of INFO.",
                since: "2.0.0",
                arity: 2,
                example: Example { given: &[], call: "CONFIG RESETSTAT", reply: "OK" },
                ..TEMPLATE
            },
            Some(resetstat),
        ),
        Command::new(
            Spec {
                name: "rewrite",
                summary: "Writes the current parameters to the configuration file.",
                since: "2.8.0",
                complexity: "O(N) for a file of N lines.",
                arity: 2,
                example: Example {
                    given: &[],
                    call: "CONFIG REWRITE",
                    reply: "(error) ERR The server is running without a config file",
                },
                ..TEMPLATE
            },
            Some(rewrite),
        ),
        Command::new(
            Spec {
                name: "set",
                summary: "Sets parameters, either all given ones or none.",
                since: "2.0.0",
                complexity: "O(N) for N parameters.",
                arity: -4,
                tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],
                syntax: "parameter value [parameter value ...]",
                history: &[("7.0.0", "Several parameters.")],
                is_secret: Some(is_secret_value),
                example: Example { given: &[], call: "CONFIG SET maxmemory 1gb", reply: "OK" },
                ..TEMPLATE
            },
            Some(|_| Ok(Outcome::Continue(set))),
        ),
    ],
)];

/// Returns whether an argument of CONFIG SET is the value of a secret parameter. If the number of words is odd, a value
/// with spaces may lack quotes. All words after the name of a secret parameter are then treated as secret.
fn is_secret_value(args: Args<'_>, arg: usize) -> bool {
    let is_name = |at: usize| is_secret_parameter(args.at(at));
    if args.len().is_multiple_of(2) {
        arg >= 3 && arg % 2 == 1 && is_name(arg - 1)
    } else {
        (2..arg).any(is_name)
    }
}

const HELP: &[&str] = &[
    "GET <pattern> [<pattern> ...]",
    "    Return the parameters that match a glob-like <pattern> and their values.",
    "RESETSTAT",
    "    Reset the counters of INFO.",
    "REWRITE",
    "    Write the current parameters to the configuration file.",
    "SET <parameter> <value> [<parameter> <value> ...]",
    "    Change parameters.",
];

fn get(session: &mut Session<'_>) -> SessionResult {
    let patterns: Vec<&[u8]> = session.args.skip(2).iter().collect();
    let pairs = session.server.config.get(&patterns);
    session.reply.map(pairs.len());
    for (name, value) in pairs {
        session.reply.bulk(name);
        session.reply.bulk(value.as_bytes());
    }
    Ok(Outcome::Done)
}

/// Parameters that cannot be changed during loading, as in Redis.
const REFUSED_WHILE_LOADING: [&[u8]; 3] = [b"appendonly", b"dir", b"repl-diskless-load"];

fn set(execution: &mut Execution<'_>) -> SessionResult {
    let (args, server) = (execution.args, execution.executor.server);
    if !args.len().is_multiple_of(2) {
        return Err(CommandError::Syntax);
    }
    let pairs: Vec<(&[u8], &[u8])> =
        (2..args.len()).step_by(2).map(|arg| (args.at(arg), args.at(arg + 1))).collect();
    for (name, value) in &pairs {
        if name.eq_ignore_ascii_case(b"maxclients") {
            check_maxclients(value, server.config.snapshot().streams_max())?;
        }
    }
    let names: Vec<&[u8]> = pairs.iter().map(|(name, _)| *name).collect();
    let before = (server.config.snapshot(), server.config.get(&names));
    let is_local = execution.client.view.peer.is_loopback();
    let may_change_protected = before.0.enable_protected_configs.allows(is_local);
    let refused_while_loading =
        |name: &&[u8]| REFUSED_WHILE_LOADING.iter().any(|refused| name.eq_ignore_ascii_case(refused));
    if server.is_loading() && names.iter().any(refused_while_loading) {
        return Err(LOADING_ERROR.into());
    }
    let accept = |before: &Config, after: &Config| put_into_effect_or_back(server, &pairs, before, after);
    server.config.set_if(&pairs, may_change_protected, accept)?;
    let after = server.config.snapshot();
    if before.0.appendonly != after.appendonly
        && let Err(error) = switch_aof(execution, &after)
    {
        let former: Vec<_> = before.1.iter().map(|(name, value)| (*name, value.as_bytes())).collect();
        server.config.set_if(&former, true, accept)?;
        return Err(error);
    }
    tracing::debug!("CONFIG SET: {} sets {}", execution.client.view.log_name(), without_secrets(args));
    server.log.set(&after);
    if before.0.proc_title_template != after.proc_title_template
        && let Err(error) = process_title::set(&after, server.config.file())
    {
        tracing::info!("CONFIG SET: the process title cannot be changed: {error}");
    }
    if let Some(notice) = notice_of_those(&after, names.iter().copied()) {
        tracing::warn!("CONFIG SET: {notice}");
    }
    execution.reply.ok();
    Ok(Outcome::Done)
}

/// Returns the parameters and values of a CONFIG SET for the log.
fn without_secrets(args: Args<'_>) -> String {
    let shown = |arg: usize| match is_secret_value(args, arg) {
        true => "(redacted)".to_owned(),
        false => args.at(arg).escape_ascii().to_string(),
    };
    let pairs = (2..args.len()).step_by(2).map(|arg| format!("{} = \"{}\"", shown(arg), shown(arg + 1)));
    pairs.collect::<Vec<_>>().join(", ")
}

/// Enables or disables the AOF. Creates its files first, before any client waits for them.
fn switch_aof(execution: &mut Execution<'_>, config: &Config) -> Result<(), CommandError> {
    let failed = |error: &str| {
        let error = without_directories(error);
        format!("ERR CONFIG SET failed (possibly related to argument 'appendonly') - {error}").into()
    };
    let Execution { executor, .. } = execution;
    if executor.section != Section::Shared {
        return Err(failed("it cannot be changed inside a transaction or script"));
    }
    if config.store.engine().is_some() {
        return Err(failed("it is the log of the store"));
    }
    if config.appendonly {
        return rewriting::switch_on(executor).map_err(|error| failed(&error));
    }
    rewriting::switch_off(executor);
    Ok(())
}

/// Applies parameters whose values are also stored outside the configuration. If one of them cannot be applied,
/// restores the previous values.
fn put_into_effect_or_back(
    server: &Server,
    pairs: &[(&[u8], &[u8])],
    before: &Config,
    after: &Config,
) -> Result<(), (&'static str, String)> {
    let directory = std::env::current_dir();
    put_into_effect(server, pairs, before, after).inspect_err(|_| {
        let changes = |is_its: fn(&[u8]) -> bool| pairs.iter().any(|(name, _)| is_its(name));
        // All these values were in effect before, so restoring them can fail only if files have changed since.
        let back = [
            if changes(|name| tls_parameter(name).is_some()) { server.tls.reload(before) } else { Ok(()) },
            if changes(is_key_file_parameter) { server.encryption.reload(before) } else { Ok(()) },
            oom_score::apply(before, || is_replica(server)).map_err(|error| error.to_string()),
            changing::apply_config(server, after, before),
            directory.map_or(Ok(()), |directory| server.data_lock.change_directory(&directory, before)),
        ];
        back.into_iter().filter_map(Result::err).for_each(|error| tracing::warn!("CONFIG SET: {error}"));
    })
}

fn is_replica(server: &Server) -> bool {
    server.conditions.get().contains(Condition::REPLICA)
}

/// Applies parameters whose values are also stored outside the configuration.
fn put_into_effect(
    server: &Server,
    pairs: &[(&[u8], &[u8])],
    before: &Config,
    after: &Config,
) -> Result<(), (&'static str, String)> {
    if let Some(name) = pairs.iter().find_map(|(name, _)| tls_parameter(name)) {
        server.tls.reload(after).map_err(|error| {
            tracing::warn!("CONFIG SET {name}: {error}");
            (name, "Unable to update TLS configuration. Check server logs.".to_owned())
        })?;
    }
    if pairs.iter().any(|(name, _)| is_key_file_parameter(name)) {
        server.encryption.reload(after).map_err(|error| for_client("encryption-key-file", &error))?;
    }
    check_kept_files(after).map_err(|error| ("aof-keep-seconds", error))?;
    changing::apply_config(server, before, after)
        .map_err(|error| for_client("cluster-announce-ip", &error))?;
    if before.dir != after.dir {
        change_directory(server, after).map_err(|error| for_client("dir", &error))?;
    }
    if before.save.is_empty() && !after.save.is_empty() {
        server.data_lock.take_if_writing(after).map_err(|error| for_client("save", &error))?;
    }
    if (before.oom_score_adj, before.oom_score_adj_values)
        != (after.oom_score_adj, after.oom_score_adj_values)
    {
        oom_score::apply(after, || is_replica(server)).map_err(|error| {
            tracing::warn!("CONFIG SET: oom_score_adj cannot be written: {error}");
            (oom_parameter(pairs), "Failed to set current oom_score_adj. Check server logs.".to_owned())
        })?;
    }
    if before.unixsocketgroup != after.unixsocketgroup {
        listener::give_to_group(after).map_err(|error| {
            tracing::warn!("CONFIG SET unixsocketgroup: {error}");
            ("unixsocketgroup", format!("Unable to change the group of the Unix socket: {error}"))
        })?;
    }
    // Listeners are changed last, after everything else that may fail: removing an address refuses the clients that
    // wait to be accepted there.
    if (&before.bind, before.port, before.tls_port) != (&after.bind, after.port, after.tls_port) {
        let listeners = server.services.get::<Listening>().change(after).map_err(|error| {
            tracing::warn!("CONFIG SET: {error}");
            listening_failed(before, after)
        })?;
        server.workers[0].mailbox.send(Message::Listen(listeners));
    }
    if before.requirepass != after.requirepass {
        server.acl.set_default_password(after.requirepass.reveal().as_bytes());
    }
    Ok(())
}

/// Logs why a parameter cannot be applied. Returns the error for the client, without details that are only for the log.
fn for_client(parameter: &'static str, error: &str) -> (&'static str, String) {
    tracing::warn!("CONFIG SET {parameter}: {error}");
    (parameter, without_directories(error))
}

/// Changes the working directory of the server. Fails if files are being written in the current directory.
fn change_directory(server: &Server, config: &Config) -> Result<(), String> {
    if config.appendonly || server.journal.is_read_by(Reader::Aof) {
        return Err("the directory contains the files of the AOF: set appendonly to no first".to_owned());
    }
    if SnapshotState::of(server).claims.purpose().is_some() {
        return Err("a snapshot is being written to the directory; try again when it has ended".to_owned());
    }
    server.data_lock.change_directory(Path::new(&config.dir), config)
}

/// Returns Redis's error for new addresses on which the server cannot listen.
fn listening_failed(before: &Config, after: &Config) -> (&'static str, String) {
    let port = "Unable to listen on this port. Check server logs.";
    let (name, error) = if before.bind != after.bind {
        ("bind", "Failed to bind to specified addresses.")
    } else if before.port != after.port {
        ("port", port)
    } else {
        ("tls-port", port)
    };
    (name, error.to_owned())
}

/// Returns the parameter that the error names if the system does not accept the OOM score.
fn oom_parameter(pairs: &[(&[u8], &[u8])]) -> &'static str {
    let is_choice = |(name, _): &(&[u8], &[u8])| name.eq_ignore_ascii_case(b"oom-score-adj");
    if pairs.iter().any(is_choice) { "oom-score-adj" } else { "oom-score-adj-values" }
}

/// Checks that the system permits as many open files as `maxclients` connections and `streams` streams need.
fn check_maxclients(value: &[u8], streams: u64) -> Result<(), CommandError> {
    // A value that is not a number, or is out of range, is accepted here: a later check returns its error.
    let Some(wanted) = parse_i64(value).and_then(|wanted| u32::try_from(wanted).ok()) else { return Ok(()) };
    let possible = open_files::clients_possible(wanted, streams);
    if possible >= wanted {
        return Ok(());
    }
    Err(format!(
        "ERR CONFIG SET failed (possibly related to argument 'maxclients') - The operating system is not able to \
         handle the specified number of clients, try with {possible}"
    )
    .into())
}

fn rewrite(session: &mut Session<'_>) -> SessionResult {
    let server = session.server;
    server.config.rewrite(&users_of_file(server)?).map_err(|error| not_rewritten(&error))?;
    tracing::info!("CONFIG REWRITE executed");
    session.reply.ok();
    Ok(Outcome::Done)
}

/// Logs why the configuration file was not rewritten, and returns the error for the client.
fn not_rewritten(error: &str) -> String {
    tracing::warn!("CONFIG REWRITE: {error}");
    without_directories(error)
}

/// Handles DEBUG CONFIG-REWRITE-FORCE-ALL.
pub(super) fn rewrite_in_full(session: &mut Session<'_>) -> SessionResult {
    let server = session.server;
    server.config.rewrite_in_full(&users_of_file(server)?).map_err(|error| not_rewritten(&error))?;
    tracing::info!("DEBUG CONFIG-REWRITE-FORCE-ALL executed");
    session.reply.ok();
    Ok(Outcome::Done)
}

/// Returns the users to write to the configuration file; none if there is an ACL file.
fn users_of_file(server: &Server) -> Result<Vec<StoredUser>, CommandError> {
    let config = server.config.snapshot();
    if !config.aclfile.is_empty() {
        return Ok(Vec::new());
    }
    Ok(server.acl.stored_users(config.requirepass.reveal().as_bytes(), &config.users, server.grammar())?)
}

fn resetstat(session: &mut Session<'_>) -> SessionResult {
    let server = session.server;
    server.workers.iter().map(|worker| &worker.stats).for_each(WorkerStats::reset);
    server.rates.reset();
    server.over_limit.reset();
    server.own_traffic.reset();
    server.copied_bytes.store(0, Ordering::Relaxed);
    Primary::of(server).counts.reset();
    reclaim::forget_freed();
    session.reply.ok();
    Ok(Outcome::Done)
}
