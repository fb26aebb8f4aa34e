//! The link of a replica to its primary.
//!
//! ```text
//! REPLICAOF ─ role.rs ─ the wanted primary                                      (exclusive access)
//! thread.rs   connect (channel.rs) ─ introduce itself, PSYNC (handshake.rs) ─ data, if they are sent (copying.rs)
//!             ─ the connection moves to a worker, which applies the stream  (worker/primary.rs, executor/applying.rs)
//!             ─ wait for its end, acknowledging each second ─ connect again
//! ```
//!
//! Each change of the role has a number. The thread works for one change, and abandons the work when there is a later
//! one.

mod channel;
mod copying;
mod handshake;
pub(crate) mod role;
mod thread;

use std::net::TcpStream;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use ember_config::PrimaryAddress;
use parking_lot::{Condvar, Mutex};

use crate::clients::mailbox::Message;
use crate::clients::primary::{PrimaryLink, PrimaryOrder};
use crate::journal::Reader;
use crate::replication::primary::Primary;
use crate::replication::shutdown::stage::{Shutdown, ShutdownStage};
use crate::server::Server;
use crate::server::conditions::Condition;
use crate::system::clock::unix_ms;

/// Interval at which the thread checks the state of the link.
const TICK: Duration = Duration::from_secs(1);

/// Interval at which a wait for another thread checks whether the server is shutting down.
const STOP_CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// The phase of the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Waiting to connect.
    Connect,
    /// Connecting to the primary.
    Connecting,
    /// Exchanging the handshake with the primary.
    Handshake,
    /// Loading the primary's data.
    Copying,
    /// Applying the primary's stream.
    Connected,
}

impl Phase {
    /// Returns the name of the phase in ROLE.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Phase::Connect => "connect",
            Phase::Connecting => "connecting",
            Phase::Handshake => "handshake",
            Phase::Copying => "sync",
            Phase::Connected => "connected",
        }
    }
}

/// Whether the server at the other end of the link is to take over as the primary from this server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TakeOver {
    /// The other server is already the primary, as far as this server knows.
    No,
    /// The other server is a replica of this server, and has not been asked to take over yet.
    Wanted,
    /// The other server is a replica of this server, and may have been asked to take over already.
    Asked,
    /// The other server replied that it has taken over; its new replication ID is not known here yet.
    Taken,
}

/// The progress of a full sync.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CopyProgress {
    /// The length of the snapshot in bytes, if the primary has announced it.
    pub(crate) total: Option<u64>,
    /// Bytes read so far.
    pub(crate) read: u64,
    /// When bytes of the snapshot were last read, Unix time in ms.
    pub(crate) read_ms: i64,
}

struct State {
    /// The number of role changes so far.
    change: u64,
    primary: PrimaryAddress,
    phase: Phase,
    /// The current link, whose connection belongs to a worker.
    link: Option<Arc<PrimaryLink>>,
    /// The database of the next command in the primary's stream.
    database: usize,
    take_over: TakeOver,
    /// The receiver of a message, sent when all writes that this server made as a primary are in its stream.
    given_over: Option<Receiver<()>>,
    /// When the last link ended, Unix time in ms.
    down_since_ms: i64,
    copy: CopyProgress,
    /// The reason why no new link is established; `None` unless reconnecting has stopped.
    stopped: Option<String>,
    /// The reason for the server's role, and the Unix time in ms since which it has the role.
    why: String,
    since_ms: i64,
    /// The error of the last link, or of the last attempt to connect.
    trouble: Option<String>,
    /// When the last link was established, Unix time in ms.
    linked_ms: i64,
    /// The socket on which the link thread blocks, so that a role change can close it.
    socket: Option<TcpStream>,
    /// Whether the append-only file was closed for a full sync and must be reopened.
    must_reopen_aof: bool,
    has_thread: bool,
}

/// The state of a replica's link, for INFO and ROLE.
pub(crate) struct LinkReport {
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) phase: Phase,
    /// The positions in the history up to which bytes were read and applied; `None` if the data belong to no history.
    pub(crate) offsets: Option<(u64, u64)>,
    /// When the primary last sent bytes, Unix time in ms, if there is a connection.
    pub(crate) read_ms: Option<i64>,
    /// When the last link ended, Unix time in ms.
    pub(crate) down_since_ms: i64,
    pub(crate) copy: CopyProgress,
    /// The reason why no new link is established; `None` unless reconnecting has stopped.
    pub(crate) stopped: Option<String>,
}

/// The role of a server, for the dashboard.
pub(crate) struct RoleReport {
    /// The reason for the server's role, and the Unix time in ms since which it has the role.
    pub(crate) why: String,
    pub(crate) since_ms: i64,
    /// The error of the last link to the primary, or of the last attempt to connect.
    pub(crate) trouble: Option<String>,
    /// When the last link was established, Unix time in ms.
    pub(crate) linked_ms: i64,
}

/// The link of a server to its primary; unused while the server is a primary.
pub(crate) struct Link {
    state: Mutex<State>,
    changed: Condvar,
}

impl Default for Link {
    fn default() -> Link {
        let state = State {
            change: 0,
            primary: PrimaryAddress::NONE,
            phase: Phase::Connect,
            link: None,
            database: 0,
            take_over: TakeOver::No,
            given_over: None,
            down_since_ms: 0,
            copy: CopyProgress::default(),
            stopped: None,
            why: String::new(),
            since_ms: 0,
            trouble: None,
            linked_ms: 0,
            socket: None,
            must_reopen_aof: false,
            has_thread: false,
        };
        Link { state: Mutex::new(state), changed: Condvar::new() }
    }
}

impl Link {
    /// Returns the link of the server.
    pub(crate) fn of(server: &Server) -> &Link {
        server.services.get()
    }

    /// Returns the report about the server's link; `None` if the server is a primary.
    pub(crate) fn report(server: &Server) -> Option<LinkReport> {
        let state = Link::of(server).state.lock();
        let (host, port) = state.primary.get()?;
        let held = Primary::of(server).held().map(|(_, position)| (position, position));
        let current = state.link.as_ref();
        Some(LinkReport {
            host: host.to_owned(),
            port,
            phase: state.phase,
            offsets: current.map(|link| (link.read(), link.applied())).or(held),
            read_ms: current.map(|link| link.read_ms()),
            down_since_ms: state.down_since_ms,
            copy: state.copy,
            stopped: state.stopped.clone(),
        })
    }

    /// Returns the report about the role of a server.
    pub(crate) fn role(server: &Server) -> RoleReport {
        let state = Link::of(server).state.lock();
        let State { why, since_ms, trouble, linked_ms, .. } = &*state;
        let (since_ms, linked_ms) = (*since_ms, *linked_ms);
        RoleReport { why: why.clone(), since_ms, trouble: trouble.clone(), linked_ms }
    }

    /// Whether this server has data that replicas may receive: its own data as a primary, or those of a primary to
    /// which the link is established.
    pub(crate) fn has_data(&self) -> bool {
        let state = self.state.lock();
        state.primary.get().is_none() || state.phase == Phase::Connected
    }

    /// Whether a full sync is being loaded; the position of its data in the stream is set afterwards.
    pub(crate) fn copies(&self) -> bool {
        self.state.lock().phase == Phase::Copying
    }

    /// Returns the stream position up to which commands were received, whether or not all of them are applied; `None`
    /// without a connection.
    pub(crate) fn read_to(&self) -> Option<u64> {
        self.state.lock().link.as_ref().filter(|link| !link.has_ended()).map(|link| link.read())
    }

    /// Returns the database of the next command in the primary's stream; `None` if this server is a primary. Exact with
    /// exclusive access.
    pub(crate) fn database(&self) -> Option<usize> {
        let state = self.state.lock();
        state.primary.get()?;
        Some(state.link.as_ref().map_or(state.database, |link| link.database()))
    }

    /// Waits until all writes that this server made as a primary are in its stream; returns false if the role changes,
    /// or the server shuts down.
    fn wait_until_given_over(&self, server: &Server, change: u64) -> bool {
        let mut given_over = None;
        if !self.edit(change, |state| given_over = state.given_over.take()) {
            return false;
        }
        let Some(given_over) = given_over else { return true };
        loop {
            match given_over.recv_timeout(STOP_CHECK_INTERVAL) {
                Ok(()) => return true,
                Err(RecvTimeoutError::Disconnected) => return false,
                Err(RecvTimeoutError::Timeout) if server.is_stopping() => return false,
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// Stops applying the primary's stream, because the server shuts down. The caller has exclusive access.
    pub(crate) fn cut(&self) {
        if let Some(link) = &self.state.lock().link {
            link.cut();
        }
    }

    /// Whether `change` is the number of the latest role change.
    fn is_current(&self, change: u64) -> bool {
        self.state.lock().change == change
    }

    /// Waits until there is a primary to connect to; returns `None` if the server shuts down.
    fn wait_for_primary(&self, server: &Server) -> Option<(String, u16, u64)> {
        loop {
            self.see_to_aof(server);
            let mut state = self.state.lock();
            if server.is_stopping() {
                return None;
            }
            // During a shutdown, data that are received now would not be part of the saved data set.
            let continues = Shutdown::of(server).stage() != ShutdownStage::Ending;
            if state.stopped.is_none()
                && continues
                && let Some((host, port)) = state.primary.get()
            {
                return Some((host.to_owned(), port, state.change));
            }
            self.changed.wait_for(&mut state, TICK);
        }
    }

    /// Waits before the next attempt to connect; a role change ends the wait.
    fn pause(&self, change: u64, time: Duration) {
        let until = Instant::now() + time;
        let mut state = self.state.lock();
        while state.change == change && !self.changed.wait_until(&mut state, until).timed_out() {}
    }

    /// Applies `edit` to the state if `change` is still the number of the latest role change; returns whether it was.
    fn edit(&self, change: u64, edit: impl FnOnce(&mut State)) -> bool {
        let mut state = self.state.lock();
        let is_current = state.change == change;
        if is_current {
            edit(&mut state);
        }
        is_current
    }

    /// Records that the link is down.
    fn record_link_down(&self, server: &Server, change: u64, link: &PrimaryLink) {
        self.edit(change, |state| {
            if state.phase == Phase::Connected {
                state.down_since_ms = unix_ms();
            }
            (state.phase, state.link, state.socket) = (Phase::Connect, None, None);
            (state.database, state.stopped) = (link.database(), link.failure());
            state.trouble = Some(link.why_it_ended());
            server.conditions.set(Condition::LINK_DOWN, true);
            if state.stopped.is_some() {
                // After a failure, the data may contain only a part of the stream.
                Primary::of(server).end_relay(server);
            }
        });
    }

    /// Enables the append-only file again, if it was closed for a full sync.
    fn see_to_aof(&self, server: &Server) {
        let mut state = self.state.lock();
        if !state.must_reopen_aof || server.is_loading() {
            return;
        }
        if server.journal.is_read_by(Reader::Aof) || !server.config.snapshot().appendonly {
            state.must_reopen_aof = false;
        } else {
            server.workers[0].mailbox.send(Message::Primary(PrimaryOrder::BeginAof));
        }
    }
}
