//! Accepting: a worker turns accepted sockets into connections.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, AtomicU32, AtomicU64};

use ember_protocol::{Protocol, Reply};
use emberkv_core::observers::WaiterSlot;
use parking_lot::Mutex;

use super::Worker;
use super::connections::{Connections, LISTENER_TOKEN};
use crate::acl::identity::Identity;
use crate::clients::client::{Client, ClientView, Names, Peer};
use crate::clients::connection::Connection;
use crate::clients::listener::{self, Accepted, Incoming, Listener};
use crate::clients::mailbox::Message;
use crate::executor::Executor;
use crate::observability::stats::Counter;
use crate::tls::TlsStream;

impl Worker {
    pub(super) fn accept_waiting(&mut self) {
        self.connections.is_accepting = false;
        // The number of connections accepted per turn is limited, so that a flood of new connections does not delay
        // existing ones.
        let config = &self.executor.config;
        let (mut plain_left, mut tls_left) =
            (config.max_new_connections_per_cycle, config.max_new_tls_connections_per_cycle);
        for number in 0..self.connections.listeners.len() {
            let is_tls = self.connections.listeners[number].is_tls();
            loop {
                let left = if is_tls { &mut tls_left } else { &mut plain_left };
                if *left == 0 {
                    self.connections.is_accepting = true;
                    break;
                }
                match self.connections.listeners[number].accept() {
                    Accepted::Connection(incoming) => self.place(incoming),
                    Accepted::Nothing => break,
                    Accepted::Failed => {
                        self.connections.accepts_at_tick = true;
                        break;
                    }
                }
                *left -= 1;
            }
        }
    }

    /// Accepts connections on `listeners` and on the Unix socket from now on.
    pub(super) fn listen(&mut self, listeners: Vec<Arc<Listener>>) {
        if self.stop_at.is_some() {
            return;
        }
        let added = |listener: &&Arc<Listener>| {
            !self.connections.listeners.iter().any(|known| Arc::ptr_eq(known, listener))
        };
        for listener in listeners.iter().filter(added) {
            self.watch_listener(listener);
        }
        self.connections.listeners.retain(|known| known.is_unix());
        self.connections.listeners.extend(listeners);
        self.connections.is_accepting = true;
    }

    pub(super) fn watch_listener(&self, listener: &Listener) {
        if let Err(error) = self.connections.driver.watch(listener.as_fd(), LISTENER_TOKEN) {
            tracing::error!("cannot watch a listening socket: {error}");
            self.server.request_stop();
        }
    }

    /// Passes a new connection to the worker with the fewest connections.
    pub(super) fn place(&mut self, incoming: Incoming) {
        let chosen = self.server.reserve_place();
        if chosen == self.executor.index {
            self.accept(incoming);
        } else {
            self.server.workers[chosen].mailbox.send(Message::Accept(incoming));
        }
    }

    pub(super) fn accept(&mut self, incoming: Incoming) {
        if self.stop_at.is_some() || self.try_accept(incoming).is_none() {
            self.executor.stats.connections_rejected.add(1);
            self.discount();
        }
    }

    pub(super) fn try_accept(&mut self, incoming: Incoming) -> Option<()> {
        // The password is checked against the newest configuration: the reply to a CONFIG SET that has set one since
        // the turn began may already have been sent.
        if self.executor.take_new_config() {
            self.apply_config();
        }
        self.connections.try_accept(&mut self.executor, incoming)
    }
}

impl Connections {
    /// Creates a connection from a socket; returns `None` if that is not possible, after sending the reason to the
    /// peer.
    pub(super) fn try_accept(&mut self, executor: &mut Executor, incoming: Incoming) -> Option<()> {
        let config = &executor.config;
        if let Err(error) = listener::prepare(&incoming.socket, &incoming.peer, config.tcp_keepalive) {
            tracing::warn!("cannot set up a connection: {error}");
            return None;
        }
        let identity = Identity::unknown(&executor.server.acl);
        let needs_password = !identity.user().needs_no_password();
        if listener::is_protected_from(&incoming.peer, config.protected_mode, needs_password) {
            tracing::debug!("a client at {} is refused by protected mode", incoming.peer.remote());
            listener::refuse_client(&incoming, listener::PROTECTED);
            return None;
        }
        let tls = match incoming.is_tls.then(|| executor.server.tls.accept()).transpose() {
            Ok(tls) => tls.map(Box::new),
            Err(error) => {
                tracing::warn!("cannot begin a TLS connection: {error}");
                return None;
            }
        };
        let Incoming { socket, peer, .. } = incoming;
        let clients_max = config.maxclients as usize;
        let opened = self.open(executor, Socket { socket, tls, peer }, identity, clients_max, false);
        match opened {
            Ok(connection) => {
                let token = connection.client.view.token;
                executor.stats.connections_received.add(1);
                tracing::debug!("{} is connected", connection.client.view.log_name());
                self.all[token] = Some(Box::new(connection));
                Some(())
            }
            Err(Some(incoming)) => {
                tracing::debug!("a client at {} is refused: maxclients is reached", incoming.peer.remote());
                listener::refuse_client(&incoming, listener::TOO_MANY);
                None
            }
            Err(None) => None,
        }
    }

    /// Creates a connection with a reserved index in this worker's table, in which it is not stored yet. Returns the
    /// socket if there are already `clients_max` clients.
    pub(super) fn open(
        &mut self,
        executor: &mut Executor,
        Socket { socket, tls, peer }: Socket,
        identity: Identity,
        clients_max: usize,
        is_primary: bool,
    ) -> Result<Connection, Option<Incoming>> {
        let token = self.vacant.pop().unwrap_or_else(|| {
            self.all.push(None);
            self.all.len() - 1
        });
        let now_ms = executor.turn.now_ms;
        let worker = executor.index;
        let view = executor.server.clients.enter(clients_max, |id, ending| ClientView {
            id,
            peer: peer.clone(),
            descriptor: socket.as_raw_fd(),
            worker,
            token,
            created_ms: now_ms,
            connection_bytes: size_of::<Connection>(),
            is_primary,
            uses_tls: tls.is_some(),
            names: Mutex::new(Names::default()),
            user: Mutex::new(Arc::clone(identity.user())),
            active_ms: AtomicI64::new(now_ms),
            database: AtomicU32::new(0),
            command: AtomicU32::new(0),
            is_resp3: AtomicBool::new(false),
            no_evict: AtomicBool::new(false),
            no_touch: AtomicBool::new(false),
            is_readonly: AtomicBool::new(false),
            is_import_source: AtomicBool::new(false),
            follows_redirects: AtomicBool::new(false),
            query_bytes: AtomicU64::new(0),
            output_bytes: AtomicU64::new(0),
            multi_bytes: AtomicU64::new(0),
            kept_bytes: AtomicU64::new(0),
            state_bytes: AtomicU64::new(0),
            names_bytes: AtomicU64::new(0),
            end_reason: AtomicU8::new(0),
            ending,
            is_paused: AtomicBool::new(false),
            waiter: WaiterSlot::default(),
            is_monitor: AtomicBool::new(false),
            is_replica: AtomicBool::new(false),
            tracking: Mutex::new(None),
            queued: AtomicI64::new(-1),
            watched_keys: AtomicU32::new(0),
            input_bytes: Counter::default(),
            sent_bytes: Counter::default(),
            commands: Counter::default(),
            channels: AtomicU32::new(0),
            patterns: AtomicU32::new(0),
            shard_channels: AtomicU32::new(0),
            queries: AtomicU32::new(0),
        });
        let Ok(view) = view else {
            self.vacant.push(token);
            return Err(Some(Incoming { socket, peer, is_tls: tls.is_some() }));
        };
        if let Err(error) = self.driver.watch(socket.as_fd(), token) {
            tracing::warn!("cannot watch a connection: {error}");
            executor.server.leave(&view);
            self.vacant.push(token);
            return Err(None);
        }
        executor.client_memory.enter(&view);
        let client = Client::new(view, identity);
        Ok(Connection::new(socket, tls, client, Reply::new(Protocol::Resp2)))
    }
}

/// A socket that is to become a connection, with its TLS session and the peer's address.
pub(super) struct Socket {
    pub(super) socket: OwnedFd,
    pub(super) tls: Option<Box<TlsStream>>,
    pub(super) peer: Peer,
}
