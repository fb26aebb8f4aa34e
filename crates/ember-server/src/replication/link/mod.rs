//! The link to the primary of this server, as long as it is a replica.
//!
//! ```text
//! REPLICAOF ─ role.rs ─ the wanted primary                                      (exclusive access)
//! thread.rs   connect (channel.rs) ─ introduce itself, PSYNC (handshake.rs) ─ data, if they are sent (copying.rs)
//!             ─ the connection goes to a worker, which applies what comes       (worker/primary.rs, executor/applying.rs)
//!             ─ wait for its end; each second an acknowledgement ─ connect again
//! ```
//!
//! Each change of the role has a number. Whatever the thread does it does for one of them, and gives up when there is a
//! later one.

mod channel;
mod copying;
mod handshake;
pub(crate) mod role;
mod thread;

use std::net::TcpStream;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::clients::mailbox::Message;
use crate::clients::primary::{PrimaryLink, PrimaryOrder};
use crate::config::PrimaryAddress;
use crate::journal::Reader;
use crate::replication::primary::Primary;
use crate::replication::shutdown::stage::{Shutdown, ShutdownStage};
use crate::server::Server;
use crate::server::conditions::Condition;
use crate::system::clock::unix_ms;

/// How often the thread looks whether there is something else to do.
const TICK: Duration = Duration::from_secs(1);

/// Between two looks whether the server ends while somebody else has something to do.
const LOOK: Duration = Duration::from_millis(100);

/// What the link is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// It waits until it is to connect.
    Connect,
    /// It connects.
    Connecting,
    /// It introduces itself.
    Handshake,
    /// It loads the data of the primary.
    Copying,
    /// It applies what the primary sends.
    Connected,
}

impl Phase {
    /// The word of ROLE.
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

/// Whether what the link is made to is to take this server's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TakeOver {
    /// It is a primary already, as far as is known.
    No,
    /// It is a replica of this server, and to be asked.
    Wanted,
    /// The same, and perhaps it has been asked before.
    Asked,
    /// It has taken it, as it says: the name that it has given to the stream is not known yet.
    Taken,
}

/// How far a copy of the primary's data is.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CopyProgress {
    /// Its bytes, if the primary has said how many.
    pub(crate) total: Option<u64>,
    /// Those that were read.
    pub(crate) read: u64,
    /// When the last ones were, Unix time in ms.
    pub(crate) read_ms: i64,
}

struct State {
    /// Counts changes of the role.
    change: u64,
    primary: PrimaryAddress,
    phase: Phase,
    /// The connection that a worker has.
    link: Option<Arc<PrimaryLink>>,
    /// The database that the next command of the stream is for.
    database: usize,
    take_over: TakeOver,
    /// Says when all that this server has done as a primary is in its stream.
    given_over: Option<Receiver<()>>,
    /// Since when there is no link, Unix time in ms.
    down_since_ms: i64,
    copy: CopyProgress,
    /// Why no link is made any more, if that is so.
    stopped: Option<String>,
    /// Why the server has its role, and since when, Unix time in ms.
    why: String,
    since_ms: i64,
    /// What was wrong with the last link, or the last try to make one.
    trouble: Option<String>,
    /// When the last link was made, Unix time in ms.
    linked_ms: i64,
    /// The socket that the thread is at.
    socket: Option<TcpStream>,
    /// The append-only file has ended because its data is not that of the server any more.
    wants_aof: bool,
    has_thread: bool,
}

/// What a replica tells of itself.
pub(crate) struct LinkReport {
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) phase: Phase,
    /// Bytes of the history that were read, and applied; `None` if there is no history.
    pub(crate) offsets: Option<(u64, u64)>,
    /// When the primary last sent something, Unix time in ms, if there is a connection.
    pub(crate) read_ms: Option<i64>,
    /// Since when there is no link, Unix time in ms.
    pub(crate) down_since_ms: i64,
    pub(crate) copy: CopyProgress,
    /// Why no link is made any more, if that is so.
    pub(crate) stopped: Option<String>,
}

/// What is told of the role of a server.
pub(crate) struct RoleReport {
    /// Why it has it, and since when, Unix time in ms.
    pub(crate) why: String,
    pub(crate) since_ms: i64,
    /// What was wrong with the last link to its primary, or the last try to make one.
    pub(crate) trouble: Option<String>,
    /// When the last link was made, Unix time in ms.
    pub(crate) linked_ms: i64,
}

/// The link of a server; nothing as long as it is a primary.
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
            wants_aof: false,
            has_thread: false,
        };
        Link { state: Mutex::new(state), changed: Condvar::new() }
    }
}

impl Link {
    /// That of a server.
    pub(crate) fn of(server: &Server) -> &Link {
        server.services.get()
    }

    /// What is told of it; nothing if the server is a primary.
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

    /// What is told of the role of a server.
    pub(crate) fn role(server: &Server) -> RoleReport {
        let state = Link::of(server).state.lock();
        let State { why, since_ms, trouble, linked_ms, .. } = &*state;
        let (since_ms, linked_ms) = (*since_ms, *linked_ms);
        RoleReport { why: why.clone(), since_ms, trouble: trouble.clone(), linked_ms }
    }

    /// Whether this server has data that replicas may get: its own, or those of a primary that it is linked to.
    pub(crate) fn has_data(&self) -> bool {
        let state = self.state.lock();
        state.primary.get().is_none() || state.phase == Phase::Connected
    }

    /// Whether the data of the primary come, whose place in the stream is noted when they are there.
    pub(crate) fn copies(&self) -> bool {
        self.state.lock().phase == Phase::Copying
    }

    /// The byte of the stream up to which commands were read, all or some of which are applied, as long as there is a
    /// connection.
    pub(crate) fn read_to(&self) -> Option<u64> {
        self.state.lock().link.as_ref().filter(|link| !link.has_ended()).map(|link| link.read())
    }

    /// The database that the next command of the primary is for, if this server has one. Exact with exclusive access.
    pub(crate) fn database(&self) -> Option<usize> {
        let state = self.state.lock();
        state.primary.get()?;
        Some(state.link.as_ref().map_or(state.database, |link| link.database()))
    }

    /// Waits until all that this server has done as a primary is in its stream; false if the role changes, or the server
    /// ends.
    fn wait_until_given_over(&self, server: &Server, change: u64) -> bool {
        let mut given_over = None;
        if !self.edit(change, |state| given_over = state.given_over.take()) {
            return false;
        }
        let Some(given_over) = given_over else { return true };
        loop {
            match given_over.recv_timeout(LOOK) {
                Ok(()) => return true,
                Err(RecvTimeoutError::Disconnected) => return false,
                Err(RecvTimeoutError::Timeout) if server.is_stopping() => return false,
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// Nothing more of what the primary sends is applied: the server ends. The caller has exclusive access.
    pub(crate) fn cut(&self) {
        if let Some(link) = &self.state.lock().link {
            link.cut();
        }
    }

    /// Whether no later change of the role has come behind change number `change`.
    fn is_current(&self, change: u64) -> bool {
        self.state.lock().change == change
    }

    /// Waits until there is a primary to connect to; nothing if the server ends.
    fn wait_for_primary(&self, server: &Server) -> Option<(String, u16, u64)> {
        loop {
            self.see_to_aof(server);
            let mut state = self.state.lock();
            if server.is_stopping() {
                return None;
            }
            // What came now would be behind what is saved.
            let goes_on = Shutdown::of(server).stage() != ShutdownStage::Ending;
            if state.stopped.is_none()
                && goes_on
                && let Some((host, port)) = state.primary.get()
            {
                return Some((host.to_owned(), port, state.change));
            }
            self.changed.wait_for(&mut state, TICK);
        }
    }

    /// Waits before the next try to connect, unless the role changes.
    fn pause(&self, change: u64, time: Duration) {
        let until = Instant::now() + time;
        let mut state = self.state.lock();
        while state.change == change && !self.changed.wait_until(&mut state, until).timed_out() {}
    }

    /// Lets `edit` change the state, if change number `change` is still the last one. Whether it was.
    fn edit(&self, change: u64, edit: impl FnOnce(&mut State)) -> bool {
        let mut state = self.state.lock();
        let is_current = state.change == change;
        if is_current {
            edit(&mut state);
        }
        is_current
    }

    /// Notes that there is no link any more.
    fn note_down(&self, server: &Server, change: u64, link: &PrimaryLink) {
        self.edit(change, |state| {
            if state.phase == Phase::Connected {
                state.down_since_ms = unix_ms();
            }
            (state.phase, state.link, state.socket) = (Phase::Connect, None, None);
            (state.database, state.stopped) = (link.database(), link.failure());
            state.trouble = Some(link.why_it_ended());
            server.conditions.set(Condition::LINK_DOWN, true);
            if state.stopped.is_some() {
                // What was applied may not be all of it.
                Primary::of(server).end_relay(server);
            }
        });
    }

    /// Lets the append-only file begin anew, if it has ended for a copy.
    fn see_to_aof(&self, server: &Server) {
        let mut state = self.state.lock();
        if !state.wants_aof || server.is_loading() {
            return;
        }
        if server.journal.is_read_by(Reader::Aof) || !server.config.snapshot().appendonly {
            state.wants_aof = false;
        } else {
            server.workers[0].mailbox.send(Message::Primary(PrimaryOrder::BeginAof));
        }
    }
}
