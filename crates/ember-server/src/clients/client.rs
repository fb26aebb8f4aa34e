//! Clients: the state that a connection's commands use, and the part of it that other connections may read.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, AtomicU32, AtomicU64, Ordering};

use emberkv_core::observers::WaiterSlot;
use parking_lot::Mutex;

use super::ending::{EndReason, EndingClients};
use super::primary::FromPrimary;
use super::replica::Replica;
use super::subscriptions::Subscriptions;
use super::sync_wish::SyncWish;
use super::tracking::Tracking;
use super::transaction::{Transaction, Watched};
use crate::acl::identity::Identity;
use crate::acl::user::User;
use crate::acl::users::Standing;
use crate::observability::stats::Counter;

/// The address from which a client is connected, and the server address that it has connected to.
#[derive(Clone, Debug)]
pub(crate) enum Peer {
    /// TCP: the addresses of client and server.
    Tcp {
        /// The client's address.
        remote: SocketAddr,
        /// The server's address.
        local: SocketAddr,
    },
    /// A Unix socket, with its path.
    Unix(Arc<str>),
    /// An HTTP request, whose commands arrive through a socket inside the process: the addresses of the HTTP
    /// connection.
    Http {
        /// The browser's address.
        remote: SocketAddr,
        /// The server's address.
        local: SocketAddr,
    },
}

impl Peer {
    /// Returns the client's address as `CLIENT LIST` shows it.
    pub(crate) fn remote(&self) -> String {
        match self {
            Peer::Tcp { remote, .. } | Peer::Http { remote, .. } => remote.to_string(),
            Peer::Unix(path) => format!("{path}:0"),
        }
    }

    /// Returns the server's address as `CLIENT LIST` shows it.
    pub(crate) fn local(&self) -> String {
        match self {
            Peer::Tcp { local, .. } | Peer::Http { local, .. } => local.to_string(),
            Peer::Unix(path) => format!("{path}:0"),
        }
    }

    /// Returns the client's address without its port, if it has one.
    pub(crate) fn remote_ip(&self) -> Option<IpAddr> {
        match self {
            Peer::Tcp { remote, .. } | Peer::Http { remote, .. } => Some(remote.ip()),
            Peer::Unix(_) => None,
        }
    }

    /// Returns whether the client is on this machine.
    pub(crate) fn is_loopback(&self) -> bool {
        match self {
            Peer::Tcp { remote, .. } | Peer::Http { remote, .. } => remote.ip().to_canonical().is_loopback(),
            Peer::Unix(_) => true,
        }
    }
}

/// The maximum bytes of a client's name that a log entry stores. Log entries outlive the client and are outside the
/// limit of its memory.
const LOGGED_NAME_BYTES: usize = 128;

/// Truncates a name to the length that log entries store.
pub(crate) fn cut_name(name: &str) -> &str {
    // Names are ASCII.
    name.get(..LOGGED_NAME_BYTES).unwrap_or(name)
}

/// The names that a client has set.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    /// The name set by `CLIENT SETNAME`.
    pub(crate) name: Box<str>,
    /// The library's name, set by `CLIENT SETINFO LIB-NAME`.
    pub(crate) library_name: Box<str>,
    /// The library's version, set by `CLIENT SETINFO LIB-VER`.
    pub(crate) library_version: Box<str>,
}

/// The part of a client that other connections may read. Its own worker writes it once per batch.
pub(crate) struct ClientView {
    // These fields are set when the client connects and never change.
    pub(crate) id: u64,
    pub(crate) peer: Peer,
    pub(crate) descriptor: i32,
    pub(crate) worker: usize,
    /// The connection's token: its index among the worker's connections.
    pub(crate) token: usize,
    pub(crate) created_ms: i64,
    /// The size in bytes of the connection itself, without its buffers.
    pub(crate) connection_bytes: usize,
    /// Whether the client is this server's primary.
    pub(crate) is_primary: bool,
    pub(crate) uses_tls: bool,
    // Mutable: plain values for display, or flags that the worker checks later.
    pub(crate) names: Mutex<Names>,
    /// The authenticated user.
    pub(crate) user: Mutex<Arc<User>>,
    pub(crate) active_ms: AtomicI64,
    pub(crate) database: AtomicU32,
    /// The registry index of the last command, plus one; 0 before the first.
    pub(crate) command: AtomicU32,
    pub(crate) is_resp3: AtomicBool,
    pub(crate) no_evict: AtomicBool,
    pub(crate) no_touch: AtomicBool,
    /// Whether the client reads slots of other nodes that this node replicates (`READONLY`).
    pub(crate) is_readonly: AtomicBool,
    /// Whether the client sends data from another server (`CLIENT IMPORT-SOURCE`).
    pub(crate) is_import_source: AtomicBool,
    /// Whether the client follows redirections to another server (`CLIENT CAPA redirect`).
    pub(crate) follows_redirects: AtomicBool,
    // The client's memory in bytes, counted by its worker
    // ([`ClientMemory`](crate::clients::client_memory::ClientMemory)).
    /// Requests that have not run.
    pub(crate) query_bytes: AtomicU64,
    /// Bytes of unsent replies.
    pub(crate) output_bytes: AtomicU64,
    /// Bytes of the calls queued since MULTI.
    pub(crate) multi_bytes: AtomicU64,
    /// Bytes of state that the client's calls have created: watched and awaited keys, subscriptions, prefixes, names.
    pub(crate) kept_bytes: AtomicU64,
    /// Bytes of the live-query states that wait to be sent to the client.
    pub(crate) state_bytes: AtomicU64,
    /// The bytes of names that `kept_bytes` includes.
    pub(crate) names_bytes: AtomicU64,
    /// The number of the reason ([`EndReason`]) for which the worker closes the connection; 0 while it stays open.
    pub(crate) end_reason: AtomicU8,
    /// All clients that are being disconnected.
    pub(crate) ending: Arc<EndingClients>,
    /// Set while the connection waits for `CLIENT PAUSE` to end.
    pub(crate) is_paused: AtomicBool,
    /// The waiter of a blocking command: the event that the connection waits for.
    pub(crate) waiter: WaiterSlot,
    /// Whether the client receives the commands of other clients (MONITOR).
    pub(crate) is_monitor: AtomicBool,
    /// Whether the client is a replica of this server.
    pub(crate) is_replica: AtomicBool,
    /// The client's tracking options; `None` without client-side caching.
    pub(crate) tracking: Mutex<Option<Arc<Tracking>>>,
    /// The number of calls queued since MULTI; -1 outside a transaction.
    pub(crate) queued: AtomicI64,
    /// The number of watched keys.
    pub(crate) watched_keys: AtomicU32,
    // Counted by the client's worker.
    /// Bytes read from the client's socket.
    pub(crate) input_bytes: Counter,
    /// Bytes written to the client's socket.
    pub(crate) sent_bytes: Counter,
    /// The number of commands called.
    pub(crate) commands: Counter,
    /// The numbers of the client's subscriptions by kind: channels, patterns, shard channels.
    pub(crate) channels: AtomicU32,
    pub(crate) patterns: AtomicU32,
    pub(crate) shard_channels: AtomicU32,
    /// The number of watched live queries.
    pub(crate) queries: AtomicU32,
}

/// The characters that the field `flags` of CLIENT LIST may contain: those of Redis and Valkey, including those of
/// links between servers.
pub(crate) const FLAG_LETTERS: &[u8] = b"AbBcdeEiIkMNOPrRStTuUx";

/// The maximum output bytes that CLIENT LIST reports as `obl`; it reports the rest as `omem`. In Redis, `obl` is the
/// client's own buffer.
const OUTPUT_BUFFER_BYTES: u64 = 16 * 1024;

/// The properties of a client that decide whether a cluster node runs its calls, and what it replies otherwise.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SlotCaller {
    /// Whether the client reads slots of other nodes that this node replicates.
    pub(crate) is_readonly: bool,
    pub(crate) uses_tls: bool,
}

/// The replies that a client receives (`CLIENT REPLY`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReplyMode {
    /// All replies.
    On,
    /// No replies until `CLIENT REPLY ON`.
    Off,
    /// All replies except the one to the command after the current one.
    SkipNext,
    /// All replies except the one to the current command.
    Skip,
}

impl ReplyMode {
    /// Returns whether replies written now are discarded.
    pub(crate) fn is_silent(self) -> bool {
        matches!(self, ReplyMode::Off | ReplyMode::Skip)
    }

    /// Returns the mode for the next command, when the current one ends in this mode.
    pub(crate) fn next(self) -> ReplyMode {
        match self {
            ReplyMode::SkipNext => ReplyMode::Skip,
            ReplyMode::Skip => ReplyMode::On,
            ReplyMode::On | ReplyMode::Off => self,
        }
    }
}

/// A client as its own worker sees it: the caller of a connection's commands.
pub(crate) struct Client {
    /// The part that other connections may read.
    pub(crate) view: Arc<ClientView>,
    /// The selected database.
    pub(crate) database: usize,
    /// Whether the client may run commands other than AUTH, HELLO, QUIT and RESET; derived from `identity`.
    pub(crate) is_authenticated: bool,
    /// Whether the user has all permissions, so that no call needs a check; derived from `identity`.
    pub(crate) is_unrestricted: bool,
    /// The user, and the ACL from which it was looked up.
    pub(crate) identity: Identity,
    /// The replies that the client receives.
    pub(crate) reply_mode: ReplyMode,
    /// The calls queued since MULTI.
    pub(crate) transaction: Option<Box<Transaction>>,
    /// The client's tracking options; `None` without client-side caching.
    pub(crate) tracking: Option<Arc<Tracking>>,
    /// The choice of `CLIENT CACHING` that applies to the next call.
    pub(crate) caching: Option<bool>,
    /// The subscribed channels and patterns, if any.
    pub(crate) subscriptions: Option<Box<Subscriptions>>,
    /// The watched keys, whose changes abort the next transaction (WATCH).
    pub(crate) watched: Option<Box<Watched>>,
    /// The number of the client's last journal record; 0 if the client has not changed anything.
    pub(crate) last_record: u64,
    /// The number of replicas that must have the client's writes, if the client has set it.
    pub(crate) sync_wish: Option<SyncWish>,
    /// The state of the link if this client is the server's primary.
    pub(crate) primary: Option<Box<FromPrimary>>,
    /// The client's state as a replica, if it is one or has begun the handshake.
    pub(crate) replica: Option<Box<Replica>>,
}

impl Client {
    /// Creates a client in the state of a new connection, which is also the state after `RESET`.
    pub(crate) fn new(view: Arc<ClientView>, identity: Identity) -> Client {
        *view.user.lock() = Arc::clone(identity.user());
        Client {
            view,
            database: 0,
            is_authenticated: identity.has_authenticated(),
            is_unrestricted: identity.is_unrestricted(),
            identity,
            reply_mode: ReplyMode::On,
            transaction: None,
            tracking: None,
            caching: None,
            subscriptions: None,
            last_record: 0,
            watched: None,
            sync_wish: None,
            primary: None,
            replica: None,
        }
    }

    /// Returns the bytes of the calls queued since MULTI.
    pub(crate) fn multi_bytes(&self) -> usize {
        self.transaction.as_ref().map_or(0, |transaction| transaction.memory_bytes())
    }

    /// Returns whether the client is a replica that receives a replication feed instead of replies.
    pub(crate) fn is_fed(&self) -> bool {
        self.replica.as_ref().is_some_and(|replica| replica.feed.is_some())
    }

    /// Returns the bytes of live-query states that wait to be sent to the client.
    pub(crate) fn waiting_states_bytes(&self) -> usize {
        self.subscriptions.as_ref().map_or(0, |subscriptions| subscriptions.queries.waiting_bytes())
    }

    /// Returns the bytes of the state that the client's calls have created.
    pub(crate) fn kept_bytes(&self) -> usize {
        let watched = self.watched.as_ref().map_or(0, |watched| watched.memory_bytes());
        let subscriptions = self.subscriptions.as_ref().map_or(0, |names| names.memory_bytes());
        let tracking = self.tracking.as_ref().map_or(0, |tracking| tracking.prefixes_bytes());
        watched + subscriptions + tracking + self.view.names_bytes.load(Ordering::Relaxed) as usize
    }
}

impl Client {
    /// Authenticates the connection as user `name` if `password` is right.
    ///
    /// # Errors
    /// Returns [`WrongPassword`] if the password is wrong; the connection is unchanged.
    pub(crate) fn log_in(&mut self, name: &[u8], password: &[u8]) -> Result<(), WrongPassword> {
        let acl = self.identity.acl;
        let Standing { user, generation, .. } = acl.look_up(name);
        let user = user.filter(|user| user.accepts(password)).ok_or(WrongPassword)?;
        self.become_user(Identity { acl, user, generation, has_authenticated: true });
        Ok(())
    }

    /// Authenticates the connection as the first of these users that is enabled. Passwords are not checked, because the
    /// client has presented a certificate. If none of the users is enabled, nothing changes.
    pub(crate) fn log_in_as_one_of(&mut self, names: &[Vec<u8>]) {
        let acl = self.identity.acl;
        for name in names {
            let Standing { user, generation, .. } = acl.look_up(name);
            if let Some(user) = user.filter(|user| user.may_log_in()) {
                self.become_user(Identity { acl, user, generation, has_authenticated: true });
                return;
            }
        }
    }

    fn become_user(&mut self, identity: Identity) {
        self.is_authenticated = identity.has_authenticated();
        self.is_unrestricted = identity.is_unrestricted();
        *self.view.user.lock() = Arc::clone(&identity.user);
        self.identity = identity;
    }

    /// Returns whether the users have changed since the connection's user was looked up.
    #[inline]
    pub(crate) fn is_user_stale(&self) -> bool {
        self.identity.generation != self.identity.acl.generation()
    }

    /// Looks up the connection's user again; returns false if the user no longer exists.
    #[cold]
    pub(crate) fn refresh_user(&mut self) -> bool {
        // The connection to a primary has no user.
        if self.primary.is_some() {
            self.identity.generation = self.identity.acl.generation();
            return true;
        }
        let Identity { acl, ref user, has_authenticated, .. } = self.identity;
        let Standing { user: found, is_open, generation } = acl.look_up(&user.name);
        let Some(found) = found.filter(|found| found.id == user.id) else { return false };
        self.become_user(Identity { acl, user: found, generation, has_authenticated });
        // A client that has not authenticated may run commands only while the default user needs no password.
        self.is_authenticated |= is_open;
        true
    }
}

/// The error of a login: no user has this name and password, or the user is disabled.
pub(crate) struct WrongPassword;

/// All connected clients by id. Ids are never reused.
#[derive(Default)]
pub(crate) struct Clients {
    next_id: AtomicU64,
    by_id: Mutex<BTreeMap<u64, Arc<ClientView>>>,
    /// The clients that are being disconnected.
    pub(crate) ending: Arc<EndingClients>,
}

/// The error of a new connection when the number of clients has reached its limit.
pub(crate) struct TooManyClients;

impl Clients {
    /// Adds a client, which `make` builds from the new id, unless there are already `max` clients.
    pub(crate) fn enter(
        &self,
        max: usize,
        make: impl FnOnce(u64, Arc<EndingClients>) -> ClientView,
    ) -> Result<Arc<ClientView>, TooManyClients> {
        let mut by_id = self.by_id.lock();
        if by_id.len() >= max {
            return Err(TooManyClients);
        }
        let id = self.next_id.fetch_add(1, Ordering::Relaxed) + 1;
        let view = Arc::new(make(id, Arc::clone(&self.ending)));
        by_id.insert(id, Arc::clone(&view));
        Ok(view)
    }

    /// Removes a client whose connection is closed. Returns whether the connection was to be closed immediately.
    pub(crate) fn leave(&self, view: &ClientView) -> bool {
        self.by_id.lock().remove(&view.id);
        self.ending.leave(view.id, &view.end_reason)
    }

    /// Returns the clients by ascending id.
    pub(crate) fn all(&self) -> Vec<Arc<ClientView>> {
        self.by_id.lock().values().cloned().collect()
    }

    /// Returns the number of clients. As in Redis, replicas and killed clients do not count.
    pub(crate) fn count(&self) -> usize {
        let counts = |view: &&Arc<ClientView>| !view.is_replica.load(Ordering::Relaxed) && !view.is_cut();
        self.by_id.lock().values().filter(counts).count()
    }

    /// Returns the bytes that the server holds for replicas. O(clients).
    pub(crate) fn replica_memory(&self) -> u64 {
        let clients = self.by_id.lock();
        let replicas = clients.values().filter(|view| view.is_replica.load(Ordering::Relaxed));
        replicas.map(|view| view.memory_bytes()).sum()
    }

    /// Returns the client with this id.
    pub(crate) fn get(&self, id: u64) -> Option<Arc<ClientView>> {
        self.by_id.lock().get(&id).cloned()
    }
}

impl ClientView {
    /// Returns the client's name for the log: `client 7 at 127.0.0.1:40000`.
    pub(crate) fn log_name(&self) -> String {
        format!("client {} at {}", self.id, self.peer.remote())
    }

    /// Returns the properties of the client that decide whether a cluster node runs its calls.
    #[inline]
    pub(crate) fn slot_caller(&self) -> SlotCaller {
        SlotCaller { is_readonly: self.is_readonly.load(Ordering::Relaxed), uses_tls: self.uses_tls }
    }

    /// Decides that the connection is closed: from now on, its waiting calls are not served and it does not count as a
    /// receiver of messages. Returns false if this was already decided for an equally strong reason.
    pub(crate) fn begin_ending(&self, reason: EndReason) -> bool {
        let is_new = self.ending.enter(self.id, &self.end_reason, reason);
        if is_new {
            self.waiter.end();
        }
        is_new
    }

    /// Returns why the connection is being closed, if it is.
    pub(crate) fn end_reason(&self) -> Option<EndReason> {
        EndReason::from_number(self.end_reason.load(Ordering::SeqCst))
    }

    /// Returns whether the client's worker closes the connection without sending pending replies.
    pub(crate) fn is_cut(&self) -> bool {
        self.end_reason().is_some_and(EndReason::is_immediate)
    }

    /// Returns whether the client has subscriptions.
    pub(crate) fn is_subscribed(&self) -> bool {
        let counts = [&self.channels, &self.patterns, &self.shard_channels];
        counts.iter().any(|count| count.load(Ordering::Relaxed) > 0)
    }

    /// Returns the client's memory in bytes.
    pub(crate) fn memory_bytes(&self) -> u64 {
        let sizes =
            [&self.query_bytes, &self.output_bytes, &self.multi_bytes, &self.kept_bytes, &self.state_bytes];
        let fixed = size_of::<Self>() + self.connection_bytes;
        fixed as u64 + sizes.iter().map(|size| size.load(Ordering::Relaxed)).sum::<u64>()
    }

    /// Changes the client's names with `edit`.
    pub(crate) fn edit_names(&self, edit: impl FnOnce(&mut Names)) {
        let mut names = self.names.lock();
        edit(&mut names);
        let Names { name, library_name, library_version } = &*names;
        let bytes = name.len() + library_name.len() + library_version.len();
        self.names_bytes.store(bytes as u64, Ordering::Relaxed);
    }

    /// Records the client's last command, by its index in the registry.
    #[inline]
    pub(crate) fn record_command(&self, index: u16) {
        self.command.store(u32::from(index) + 1, Ordering::Relaxed);
    }

    /// Returns the registry index of the client's last command.
    pub(crate) fn last_command(&self) -> Option<u16> {
        let number = self.command.load(Ordering::Relaxed).checked_sub(1)?;
        u16::try_from(number).ok()
    }

    /// Appends the client's line of `CLIENT LIST` and `CLIENT INFO`, without the line end. `command` names the last
    /// command; `running_bytes` is the size of the running request if the client asks about itself.
    pub(crate) fn describe(&self, now_ms: i64, command: &str, running_bytes: u64, line: &mut Vec<u8>) {
        let names = self.names.lock().clone();
        self.describe_as(&names, now_ms, command, running_bytes, line);
    }

    /// Appends the line of [`ClientView::describe`] for a log, with long names truncated.
    pub(crate) fn describe_for_log(&self, now_ms: i64, command: &str, line: &mut Vec<u8>) {
        let names = {
            let names = self.names.lock();
            Names {
                name: cut_name(&names.name).into(),
                library_name: cut_name(&names.library_name).into(),
                library_version: cut_name(&names.library_version).into(),
            }
        };
        self.describe_as(&names, now_ms, command, 0, line);
    }

    fn describe_as(&self, names: &Names, now_ms: i64, command: &str, running_bytes: u64, line: &mut Vec<u8>) {
        let user = Arc::clone(&self.user.lock());
        let tracking = self.tracking.lock().clone();
        let seconds = |since_ms: i64| (now_ms - since_ms).max(0) / 1000;
        let query_bytes = self.query_bytes.load(Ordering::Relaxed) + running_bytes;
        let multi_bytes = self.multi_bytes.load(Ordering::Relaxed);
        let output_bytes = self.output_bytes.load(Ordering::Relaxed);
        let buffered = output_bytes.min(OUTPUT_BUFFER_BYTES);
        let listed = output_bytes - buffered;
        let blocks = listed.div_ceil(OUTPUT_BUFFER_BYTES);
        let before_user = format!(
            "id={} addr={} laddr={} fd={} name={} age={} idle={} flags={} db={} sub={} psub={} ssub={} multi={} \
             qbuf={query_bytes} qbuf-free=0 argv-mem=0 multi-mem={multi_bytes} rbs=0 rbp=0 obl={buffered} \
             oll={blocks} omem={listed} tot-mem={} events=r cmd={command} user=",
            self.id,
            self.peer.remote(),
            self.peer.local(),
            self.descriptor,
            names.name,
            seconds(self.created_ms),
            seconds(self.active_ms.load(Ordering::Relaxed)),
            self.flags(),
            self.database.load(Ordering::Relaxed),
            self.channels.load(Ordering::Relaxed),
            self.patterns.load(Ordering::Relaxed),
            self.shard_channels.load(Ordering::Relaxed),
            self.queued.load(Ordering::Relaxed),
            self.memory_bytes(),
        );
        line.extend_from_slice(before_user.as_bytes());
        line.extend_from_slice(&user.name);
        let redirect = tracking.as_deref().map_or(-1, |tracking| tracking.redirect.unwrap_or(0) as i64);
        let resp = if self.is_resp3.load(Ordering::Relaxed) { 3 } else { 2 };
        let Names { library_name, library_version, .. } = names;
        let after = format!(
            " redir={redirect} resp={resp} lib-name={library_name} lib-ver={library_version} \
             watch={} tot-net-in={} tot-net-out={} tot-cmds={} queries={}",
            self.watched_keys.load(Ordering::Relaxed),
            self.input_bytes.get(),
            self.sent_bytes.get(),
            self.commands.get(),
            self.queries.load(Ordering::Relaxed)
        );
        line.extend_from_slice(after.as_bytes());
    }

    /// Returns the characters of the field `flags`, all of them from [`FLAG_LETTERS`].
    pub(crate) fn flags(&self) -> String {
        let tracking = self.tracking.lock().clone();
        let tracks = |is: fn(&Tracking) -> bool| tracking.as_deref().is_some_and(is);
        let flags = [
            (self.is_primary, 'M'),
            (self.is_monitor.load(Ordering::Relaxed), 'O'),
            (self.is_replica.load(Ordering::Relaxed), 'S'),
            (self.is_subscribed(), 'P'),
            (self.queued.load(Ordering::Relaxed) >= 0, 'x'),
            (self.is_paused.load(Ordering::Relaxed) || self.waiter.get().is_some(), 'b'),
            (self.is_readonly.load(Ordering::Relaxed), 'r'),
            (tracking.is_some(), 't'),
            (tracks(|tracking| tracking.is_redirect_broken.load(Ordering::Relaxed)), 'R'),
            (tracks(Tracking::is_broadcast), 'B'),
            (matches!(self.peer, Peer::Unix(_)), 'U'),
            (self.no_evict.load(Ordering::Relaxed), 'e'),
            (self.no_touch.load(Ordering::Relaxed), 'T'),
            (self.is_import_source.load(Ordering::Relaxed), 'I'),
        ];
        let flags: String = flags.into_iter().filter(|&(is_set, _)| is_set).map(|(_, flag)| flag).collect();
        if flags.is_empty() { "N".to_owned() } else { flags }
    }
}
