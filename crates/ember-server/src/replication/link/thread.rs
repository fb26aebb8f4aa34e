//! The thread that connects to the primary, and reconnects when the link ends.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use ember_replication::answers::Answer;

use super::channel::{Channel, Parts};
use super::handshake::{self, NoAnswer};
use super::{Link, Phase, TICK, TakeOver, copying, role};
use crate::clients::mailbox::Message;
use crate::clients::primary::{NewPrimary, PrimaryLink, PrimaryOrder};
use crate::replication::failover::stage::Failover;
use crate::replication::primary::Primary;
use crate::replication::primary::relay::LinkRelay;
use crate::server::Server;
use crate::server::conditions::Condition;
use crate::server::slots::Slots;
use crate::snapshot::state::SnapshotState;
use crate::system::abort_on_panic::AbortOnPanic;
use crate::system::clock::unix_ms;

/// Pause between two attempts to connect.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Maintains the link until the server shuts down.
pub(super) fn run(server: &'static Server) {
    let _guard = AbortOnPanic;
    let link = Link::of(server);
    let mut logged = String::new();
    while let Some((host, port, change)) = link.wait_for_primary(server) {
        let Err(error) = attempt(server, link, change, (&host, port)) else {
            logged.clear();
            continue;
        };
        if link.is_current(change) && !server.is_stopping() {
            // A repeated error is logged once.
            if error != logged {
                tracing::warn!("no link to the primary {host}:{port}: {error}");
                logged = error;
            }
            link.pause(change, RETRY_AFTER);
        }
    }
}

/// Establishes the link and waits until it ends.
fn attempt(
    server: &'static Server,
    link: &'static Link,
    change: u64,
    (host, port): (&str, u16),
) -> Result<(), String> {
    let connected = connect(server, link, change, (host, port));
    let primary = match connected {
        Ok(primary) => primary,
        Err(error) => {
            link.edit(change, |state| {
                (state.phase, state.socket, state.trouble) = (Phase::Connect, None, Some(error.clone()));
            });
            return Err(error);
        }
    };
    watch(server, link, &primary);
    let failure = primary.failure();
    if let Some(why) = &failure {
        tracing::error!(
            "the link to the primary {host}:{port} is stopped: {why}; run REPLICAOF to start a new one"
        );
    } else if link.is_current(change) && !server.is_stopping() {
        let (offset, why) = (primary.applied(), primary.why_it_ended());
        tracing::warn!("the link to the primary {host}:{port} is broken at offset {offset}: {why}");
    }
    link.record_link_down(server, change, &primary);
    Ok(())
}

/// Connects, loads a full sync if the primary sends one, and passes the connection to a worker. Returns the link.
fn connect(
    server: &'static Server,
    link: &'static Link,
    change: u64,
    (host, port): (&str, u16),
) -> Result<Arc<PrimaryLink>, String> {
    let changed = || "the role has changed".to_owned();
    if !link.wait_until_given_over(server, change) {
        return Err(changed());
    }
    let mut known = (0, TakeOver::No);
    let is_current = link.edit(change, |state| {
        state.phase = Phase::Connecting;
        known = (state.database, state.take_over);
        if state.take_over == TakeOver::Taken {
            state.take_over = TakeOver::No;
        }
    });
    if !is_current {
        return Err(changed());
    }
    let (mut database, take_over) = known;
    let mut failover = (take_over == TakeOver::Taken).then(|| EndedFailover(server));
    let config = server.config.snapshot();
    let mut channel = Channel::connect(link, change, &config, (host, port))?;
    if !handshake::begin(link, change) {
        return Err(changed());
    }
    let data = server.slots.as_ref().and_then(Slots::shown_data);
    handshake::introduce(&mut channel, &config, data.as_deref())?;
    let stream = Primary::of(server);
    // A server that is asked to take over knows the current replication ID of this server; other servers may know only
    // the previous one.
    let held = match take_over {
        TakeOver::No | TakeOver::Taken => stream.held_by_known_name(),
        TakeOver::Wanted | TakeOver::Asked => stream.held(),
    };
    let requests_role = matches!(take_over, TakeOver::Wanted | TakeOver::Asked);
    let answer = handshake::ask(&mut channel, held.as_ref(), requests_role);
    if requests_role && takes_over(server, link, change, &answer, take_over) {
        failover = Some(EndedFailover(server));
    }
    let (id, offset, input) = match (answer.map_err(NoAnswer::text)?, held) {
        (Answer::Continue(name), Some((id, offset))) => {
            tracing::info!("the primary {host}:{port} resumes the stream after offset {offset}");
            (Some(name.unwrap_or(id)), offset, channel.take_unread())
        }
        (Answer::Continue(_), None) => {
            return Err("the primary resumes a stream that this server does not have".to_owned());
        }
        (Answer::Copy { id, offset }, _) => {
            // Clients that wait for the end of the failover need not wait for the full sync.
            drop(failover.take());
            let origin = format!("{host}:{port}");
            let input = copying::receive(server, link, change, &mut channel, &origin)?;
            database = SnapshotState::of(server).loading.stream_database();
            if !link.edit(change, |_| stream.begin_relay(id, offset)) {
                return Err(changed());
            }
            (None, offset, input)
        }
    };
    let primary = Arc::new(PrimaryLink::new(offset, database, unix_ms()));
    let Parts { socket, tls, peer } = channel.into_parts();
    let is_current = link.edit(change, |state| {
        id.into_iter().for_each(|id| stream.relay_as(server, id));
        (state.phase, state.link, state.socket) = (Phase::Connected, Some(Arc::clone(&primary)), None);
        (state.trouble, state.linked_ms) = (None, unix_ms());
        server.conditions.set(Condition::LINK_DOWN, false);
        if let Some(slots) = &server.slots {
            slots.record_link();
        }
    });
    drop(failover);
    if !is_current {
        return Err(changed());
    }
    let relay = Box::new(LinkRelay::new(server));
    let new = NewPrimary { socket, tls, peer, input, link: Arc::clone(&primary), relay };
    let worker = server.reserve_place();
    server.workers[worker].mailbox.send(Message::Primary(PrimaryOrder::Adopt(Box::new(new))));
    tracing::info!("linked to the primary {host}:{port} at offset {}", primary.applied());
    Ok(primary)
}

/// A failover in which the other server has taken over. Dropping this value ends the failover: once this server has the
/// new replication ID of the stream, or knows that it will not receive it soon.
struct EndedFailover(&'static Server);

impl Drop for EndedFailover {
    fn drop(&mut self) {
        Failover::of(self.0).end(self.0, "the replica has taken over");
    }
}

/// Records the outcome of the request to take over. Returns whether the other server accepted it with this reply.
fn takes_over(
    server: &Server,
    link: &Link,
    change: u64,
    answer: &Result<Answer, NoAnswer>,
    before: TakeOver,
) -> bool {
    let set_take_over = |take_over| _ = link.edit(change, |state| state.take_over = take_over);
    match answer {
        Ok(_) => set_take_over(TakeOver::No),
        Err(NoAnswer::Unknown(_)) => set_take_over(TakeOver::Asked),
        // If a server that was asked before replies that it is a primary, it has received the earlier request, whose
        // reply was lost.
        Err(NoAnswer::Refused(why)) if before == TakeOver::Asked && why.contains("to a master") => {
            set_take_over(TakeOver::Taken);
        }
        Err(NoAnswer::Refused(why)) => {
            tracing::warn!("Failover target rejected psync request: {why}");
            let order = PrimaryOrder::StayPrimary { why: why.clone() };
            server.workers[0].mailbox.send(Message::Primary(order));
        }
    }
    answer.is_ok()
}

/// Waits until a link ends, and makes its worker send this server's offset to the primary each second.
fn watch(server: &Server, link: &Link, primary: &Arc<PrimaryLink>) {
    link.see_to_aof(server);
    while !primary.wait_for_end(TICK) {
        link.see_to_aof(server);
        let timeout_ms = i64::from(server.config.snapshot().repl_timeout) * 1000;
        if primary.is_cut() {
            role::cut(server, primary);
        } else if unix_ms() - primary.read_ms() > timeout_ms {
            primary.record_end("the primary has been silent for more than repl-timeout");
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
