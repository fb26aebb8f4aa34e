//! The thread that makes the link to the primary, and makes it again.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::channel::{Channel, Parts};
use super::handshake::{self, Answer};
use super::{History, Link, Phase, TICK, copying, role};
use crate::clients::mailbox::Message;
use crate::clients::primary::{NewPrimary, PrimaryLink, PrimaryOrder};
use crate::server::Server;
use crate::server::conditions::Condition;
use crate::system::abort_on_panic::AbortOnPanic;
use crate::system::clock::unix_ms;

/// Time between two tries to connect.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Sees to the link until the server ends.
pub(super) fn run(server: &'static Server) {
    let _guard = AbortOnPanic;
    let link = Link::of(server);
    let mut told = String::new();
    while let Some((host, port, change)) = link.wait_for_primary(server) {
        let Err(error) = attempt(server, link, change, (&host, port)) else {
            told.clear();
            continue;
        };
        if link.is_current(change) && !server.is_stopping() {
            // The same again says nothing new.
            if error != told {
                tracing::warn!("no link to the primary {host}:{port}: {error}");
                told = error;
            }
            link.pause(change, RETRY_AFTER);
        }
    }
}

/// Makes the link and waits for its end.
fn attempt(
    server: &'static Server,
    link: &'static Link,
    change: u64,
    (host, port): (&str, u16),
) -> Result<(), String> {
    let connected = connect(server, link, change, (host, port));
    let (primary, id) = match connected {
        Ok(connected) => connected,
        Err(error) => {
            link.edit(change, |state| (state.phase, state.socket) = (Phase::Connect, None));
            return Err(error);
        }
    };
    watch(server, link, &primary);
    let failure = primary.failure();
    if let Some(why) = &failure {
        tracing::error!(
            "the link to the primary {host}:{port} is stopped: {why}; REPLICAOF begins a new one"
        );
    } else if link.is_current(change) && !server.is_stopping() {
        tracing::warn!("the link to the primary {host}:{port} is broken at offset {}", primary.applied());
    }
    let history = History { id, offset: primary.applied(), database: primary.database() };
    link.note_down(server, change, Some(history).filter(|_| failure.is_none()), failure);
    Ok(())
}

/// Connects, loads data if they are sent, and gives the connection to a worker. Returns the link and the name of the
/// history.
fn connect(
    server: &'static Server,
    link: &'static Link,
    change: u64,
    (host, port): (&str, u16),
) -> Result<(Arc<PrimaryLink>, String), String> {
    let changed = || "the role has changed".to_owned();
    let mut history = None;
    let is_current = link.edit(change, |state| {
        state.phase = Phase::Connecting;
        history = state.history.clone();
    });
    if !is_current {
        return Err(changed());
    }
    let config = server.config.snapshot();
    let mut channel = Channel::connect(link, change, &config, (host, port))?;
    if !handshake::begin(link, change) {
        return Err(changed());
    }
    handshake::introduce(&mut channel, &config)?;
    let answer = handshake::ask(&mut channel, history.as_ref())?;
    let (history, input) = match (answer, history) {
        (Answer::Continue(name), Some(history)) => {
            let id = name.unwrap_or(history.id);
            tracing::info!("the primary {host}:{port} goes on behind offset {}", history.offset);
            (History { id, ..history }, channel.take_unread())
        }
        (Answer::Continue(_), None) => {
            return Err("the primary goes on with what is not known here".to_owned());
        }
        (Answer::Copy { id, offset }, _) => {
            // What was known is gone with the first key.
            link.edit(change, |state| state.history = None);
            let origin = format!("{host}:{port}");
            let input = copying::receive(server, link, change, &mut channel, &origin)?;
            (History { id, offset, database: 0 }, input)
        }
    };
    let primary = PrimaryLink::new(history.offset, history.database, unix_ms());
    let primary = Arc::new(primary);
    let Parts { socket, tls, peer } = channel.into_parts();
    let id = history.id.clone();
    let is_current = link.edit(change, |state| {
        (state.phase, state.link, state.socket) = (Phase::Connected, Some(Arc::clone(&primary)), None);
        state.history = Some(history);
        server.conditions.set(Condition::LINK_DOWN, false);
    });
    if !is_current {
        return Err(changed());
    }
    let new = NewPrimary { socket, tls, peer, input, link: Arc::clone(&primary) };
    let worker = server.reserve_place();
    server.workers[worker].mailbox.send(Message::Primary(PrimaryOrder::Adopt(Box::new(new))));
    tracing::info!("linked to the primary {host}:{port} at offset {}", primary.applied());
    Ok((primary, id))
}

/// Waits for the end of a link. Meanwhile the primary is told each second how far this server is.
fn watch(server: &Server, link: &Link, primary: &Arc<PrimaryLink>) {
    while !primary.wait_for_end(TICK) {
        link.see_to_aof(server);
        let timeout_ms = i64::from(server.config.snapshot().repl_timeout) * 1000;
        if primary.is_cut() {
            role::cut(server, primary);
        } else if unix_ms() - primary.read_ms() > timeout_ms {
            tracing::warn!("the primary has been silent for more than repl-timeout");
            role::cut(server, primary);
        } else if let Some((worker, token, client_id)) = primary.address() {
            let order = PrimaryOrder::Acknowledge(token, client_id);
            server.workers[worker].mailbox.send(Message::Primary(order));
        }
        if server.is_stopping() && server.workers.iter().all(|it| it.connections.load(Ordering::SeqCst) == 0)
        {
            return;
        }
    }
}
