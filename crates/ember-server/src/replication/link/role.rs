//! Role changes: a primary becomes a replica; a replica follows another primary or becomes a primary.

use std::sync::Arc;
use std::thread;

use ember_config::PrimaryAddress;
use emberkv_core::error::CommandError;
use emberkv_core::keys::Guards;

use super::{CopyProgress, Link, Phase, State, TakeOver, thread as link_thread};
use crate::aof::rewriting;
use crate::clients::ending::EndReason;
use crate::clients::mailbox::Message;
use crate::clients::primary::{PrimaryLink, PrimaryOrder};
use crate::executor::Executor;
use crate::journal::Reader;
use crate::replication::primary::Primary;
use crate::server::Server;
use crate::server::conditions::Condition;
use crate::snapshot::loading;
use crate::snapshot::state::SnapshotState;
use crate::system::clock::unix_ms;
use crate::system::oom_score;
use crate::system::random_name::random_name;

/// The reason for the role that a server has at startup.
const FROM_START: &str = "set in the configuration";

/// The result of a role change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Changed {
    /// The role has changed.
    Yes,
    /// The server already had this role.
    No,
}

/// Makes the server a replica of `primary`, or a primary if `primary` is none. Its data are kept until those of the new
/// primary arrive. The executor's worker is inside the gate and holds no lock; `client_id` is the client that requested
/// the change, and `why` is the reason for the log.
///
/// # Errors
/// Returns an error if the system provides no thread or no random numbers, or a script keeps the worker from exclusive
/// access; the role is then unchanged.
pub(crate) fn change(
    executor: &mut Executor,
    client_id: Option<u64>,
    primary: PrimaryAddress,
    why: &str,
) -> Result<Changed, CommandError> {
    let link = Link::of(executor.server);
    {
        let state = link.state.lock();
        if state.primary == primary && state.stopped.is_none() {
            return Ok(Changed::No);
        }
    }
    change_if(executor, client_id, (primary, why), TakeOver::No, |_| true)?;
    Ok(Changed::Yes)
}

/// Makes the server a replica of one of its replicas, which is then asked to become the primary. Does so only if
/// `is_fit` returns true with exclusive access; returns whether it did. The executor's worker is inside the gate and
/// holds no lock.
///
/// # Errors
/// Returns the errors of [`change`].
pub(crate) fn cede_role(
    executor: &mut Executor,
    replica: PrimaryAddress,
    why: &str,
    is_fit: impl FnOnce(&Server) -> bool,
) -> Result<bool, CommandError> {
    change_if(executor, None, (replica, why), TakeOver::Wanted, is_fit)
}

fn change_if(
    executor: &mut Executor,
    client_id: Option<u64>,
    (primary, why): (PrimaryAddress, &str),
    take_over: TakeOver,
    is_fit: impl FnOnce(&Server) -> bool,
) -> Result<bool, CommandError> {
    let server = executor.server;
    let link = Link::of(server);
    let name =
        random_name().map_err(|error| format!("ERR the system provides no random numbers: {error}"))?;
    if primary.get().is_some() {
        start_thread(server).map_err(|error| format!("ERR cannot start a thread for the link: {error}"))?;
    }
    let act = |executor: &mut Executor, _: &mut Guards<'static>| {
        // Journal records so far belong to the previous role.
        executor.publish();
        if !is_fit(server) {
            return None;
        }
        let mut state = link.state.lock();
        let was_primary = state.primary.get().is_none();
        take(&mut state, server, primary.clone(), why);
        state.take_over = take_over;
        if primary.get().is_none() {
            // Earlier writes belong to the previous history as well; later writes belong to the new one only.
            Primary::of(server).take_stream(server, name);
        } else if was_primary {
            state.given_over = Some(Primary::of(server).give_stream_over(server));
        }
        executor.turn.keeps_expired = primary.get().is_some();
        server.config.set_primary(primary.clone());
        Some(was_primary)
    };
    let changed = match client_id {
        Some(client_id) => executor.with_exclusive_access_for(client_id, act)?,
        None => executor.with_exclusive_access(act),
    };
    let Some(was_primary) = changed else { return Ok(false) };
    server.journal.call_thread();
    link.changed.notify_all();
    apply_oom_score(server);
    match primary.get() {
        None => tracing::info!("this server is a primary now: {why}"),
        Some((host, port)) => tracing::info!("this server is a replica of {host}:{port} now: {why}"),
    }
    if was_primary {
        for worker in &server.workers {
            worker.mailbox.send(Message::Primary(PrimaryOrder::Demote));
        }
    } else {
        link.see_to_aof(server);
    }
    Ok(true)
}

/// Sets the configured role at startup, after the data set is loaded. No worker is inside the gate.
///
/// # Errors
/// Returns an error if the system provides no thread or no random numbers.
pub(crate) fn take_at_start(server: &'static Server) -> Result<(), String> {
    let primary = server.config.snapshot().replicaof.clone();
    let (link, is_replica) = (Link::of(server), primary.get().is_some());
    if is_replica {
        start_thread(server).map_err(|error| format!("cannot start a thread for the link: {error}"))?;
        take(&mut link.state.lock(), server, primary.clone(), FROM_START);
    } else {
        let mut state = link.state.lock();
        (state.why, state.since_ms) = (FROM_START.to_owned(), unix_ms());
    }
    if let Some((host, port)) = primary.get() {
        tracing::info!("this server is a replica of {host}:{port} now: {FROM_START}");
    }
    resume(server, is_replica)?;
    link.changed.notify_all();
    apply_oom_score(server);
    Ok(())
}

/// Continues at the stream position of the loaded data, if their files contain one.
fn resume(server: &Server, is_replica: bool) -> Result<(), String> {
    let Some(origin) = SnapshotState::of(server).loading.origin() else { return Ok(()) };
    if origin.database >= server.keyspace.databases() {
        return Ok(());
    }
    Link::of(server).state.lock().database = origin.database;
    let resumed = Primary::of(server).resume(server, &origin, is_replica);
    resumed.map_err(|error| format!("the system provides no random numbers: {error}"))?;
    tracing::info!("the data belong to history {} at offset {}", origin.id(), origin.position);
    Ok(())
}

/// Applies the OOM score adjustment of the current role, after a change of it.
fn apply_oom_score(server: &Server) {
    let is_replica = || server.conditions.get().contains(Condition::REPLICA);
    if let Err(error) = oom_score::apply(&server.config.snapshot(), is_replica) {
        tracing::warn!("oom-score-adj: {error}");
    }
}

/// Sets a role. The caller has exclusive access to the keyspace, so nothing more of the previous primary's stream is
/// applied.
fn take(state: &mut State, server: &Server, primary: PrimaryAddress, why: &str) {
    let is_replica = primary.get().is_some();
    if let Some(link) = state.link.take() {
        cut(server, &link);
        state.database = link.database();
        if link.failure().is_some() {
            Primary::of(server).end_relay(server);
        }
    }
    if let Some(socket) = state.socket.take() {
        // The link thread may be blocked on the socket. An error means that the socket is closed already.
        let _ = socket.shutdown(std::net::Shutdown::Both);
    }
    if state.primary.get().is_none() || state.phase == Phase::Connected {
        state.down_since_ms = unix_ms();
    }
    state.change += 1;
    (state.why, state.since_ms, state.trouble) = (why.to_owned(), unix_ms(), None);
    (state.primary, state.phase) = (primary, Phase::Connect);
    (state.copy, state.stopped, state.take_over) = (CopyProgress::default(), None, TakeOver::No);
    server.conditions.set(Condition::REPLICA, is_replica);
    server.conditions.set(Condition::LINK_DOWN, is_replica);
}

/// Ends a link: no further commands are applied, and the connection is closed soon.
pub(super) fn cut(server: &Server, link: &Arc<PrimaryLink>) {
    link.cut();
    if let Some((_, _, client_id)) = link.address()
        && let Some(view) = server.clients.get(client_id)
    {
        server.kill(&view, EndReason::Killed);
    }
}

/// Removes all data before a full sync is loaded. From then on, clients receive LOADING, and nothing is written to the
/// append-only file. The executor's worker is inside the gate and holds no lock. If `change` is given and is no longer
/// the number of the latest role change, does nothing and returns false.
pub(crate) fn empty(executor: &mut Executor, change: Option<u64>) -> bool {
    let server = executor.server;
    let link = Link::of(server);
    executor.with_exclusive_access(|executor, _| {
        if change.is_some_and(|change| !link.is_current(change)) {
            return false;
        }
        server.conditions.set(Condition::LOADING, true);
        if let Some(slots) = &server.slots {
            slots.begin_copy();
        }
        if server.journal.is_read_by(Reader::Aof) {
            executor.publish();
            rewriting::switch_off(executor);
            link.state.lock().must_reopen_aof = true;
        }
        // The replicas of this server receive neither the removal nor the loaded data as commands.
        Primary::of(server).end_relay(server);
        loading::empty(executor);
        true
    })
}

/// Starts the thread of the link, unless it is running.
fn start_thread(server: &'static Server) -> std::io::Result<()> {
    let link = Link::of(server);
    let mut state = link.state.lock();
    if !state.has_thread {
        thread::Builder::new().name("link".to_owned()).spawn(move || link_thread::run(server))?;
        state.has_thread = true;
    }
    Ok(())
}
