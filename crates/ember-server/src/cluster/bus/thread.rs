//! The event loop of the bus.

use std::collections::HashMap;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ember_cluster::member::{Member, Outputs, Recipient, Sender};
use ember_cluster::message::Parcel;
use ember_cluster::node::Name;
use ember_cluster::topology::Topology;
use ember_config::Config;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, ServerConfig, ServerConnection};
use socket2::{Domain, Protocol, SockRef, Socket, TcpKeepalive, Type};

use super::link::Link;
use super::{Bus, LinkFacts, Order, OwnChanges, check_reach};
use crate::cluster::calls::{ChangeCall, HandOver, Publication};
use crate::cluster::files::{AgreementFiles, Stored};
use crate::cluster::starting::{address_of, bus_port_of, path_of};
use crate::cluster::{shard, store};
use crate::executor::jobs::Jobs;
use crate::server::Server;
use crate::server::slots::Slots;
use crate::system::abort_on_panic::AbortOnPanic;
use crate::system::clock::{boot_ms, unix_ms};
use crate::system::driver::Driver;
use crate::system::random_name::random_name;
use crate::tls::{client_config, server_config};

/// The minimum of the effective `cluster-node-timeout` in ms: with a shorter one, a node on a busy machine would be
/// taken for a failed one.
const NODE_TIMEOUT_MIN_MS: u64 = 200;

/// The interval in ms at which the thread of a node in no group wakes.
const IDLE_TICK_MS: u64 = 1_000;

/// The time in ms in which a new link must be authenticated.
const HELLO_TIMEOUT_MS: u64 = 5_000;

/// The time in ms after which a link without messages is closed.
const IDLE_LINK_MS: u64 = 60_000;

/// The minimum time in ms between two attempts to connect to one node.
const REDIAL_MS: u64 = 200;

/// The maximum number of links whose other node is not authenticated yet.
const UNKNOWN_LINKS_MAX: usize = 256;

/// The first token of listeners; the tokens of links are smaller.
const LISTENER_TOKENS: usize = 1 << 40;

/// The parts of the bus that are created before the data set is loaded.
pub(crate) struct Prepared {
    driver: Driver,
    listeners: Vec<TcpListener>,
    member: Member,
    tls: Option<(Arc<ClientConfig>, Arc<ServerConfig>)>,
}

impl Prepared {
    /// Listens for other nodes, and continues with the stored topology, vote and log.
    ///
    /// # Errors
    /// Returns a line with the reason why the node cannot start.
    pub(crate) fn open(
        config: &Config,
        topology: Topology,
        stored: Option<Stored>,
    ) -> Result<Prepared, String> {
        let system = |error: io::Error| format!("the system provides no event queue: {error}");
        let driver = Driver::new().map_err(system)?;
        let seed =
            getrandom::u64().map_err(|error| format!("the system provides no random numbers: {error}"))?;
        let timeout_ms = timeout_of(config);
        let member = match stored {
            None => Member::outside(topology, timeout_ms, seed),
            Some(Stored { vote, log, .. }) => {
                Member::resume(topology, vote, log, timeout_ms, seed).map_err(|reason| {
                    format!(
                        "the directory raft and {} do not belong together: {reason}",
                        config.cluster_config_file
                    )
                })?
            }
        };
        let tls = match config.tls_cluster {
            true => Some((client_config(config)?, server_config(config)?)),
            false => None,
        };
        let mut listeners = Vec::new();
        for address in addresses(config)? {
            let listener = listen(address).map_err(|error| {
                format!("cannot listen on {address} for other nodes: {error}; see cluster-port")
            })?;
            driver.watch(listener.as_fd(), LISTENER_TOKENS + listeners.len()).map_err(system)?;
            listeners.push(listener);
        }
        Ok(Prepared { driver, listeners, member, tls })
    }

    /// Starts the thread.
    ///
    /// # Errors
    /// Returns an error if the system provides no thread.
    pub(crate) fn start(self, server: &'static Server) -> Result<(), String> {
        Bus::of(server).connect(&self.driver);
        let run = move || {
            let _guard = AbortOnPanic;
            Thread::new(server, self).run();
        };
        let spawned = std::thread::Builder::new().name("bus".to_owned()).spawn(run);
        spawned.map(drop).map_err(|error| format!("cannot start a thread: {error}"))
    }
}

fn timeout_of(config: &Config) -> u64 {
    config.cluster_node_timeout.max(NODE_TIMEOUT_MIN_MS)
}

/// Returns the addresses to listen on: those of `bind` that nodes may use.
fn addresses(config: &Config) -> Result<Vec<SocketAddr>, String> {
    let port = bus_port_of(config)?;
    let mut addresses = Vec::new();
    for bind in &config.bind {
        let sockets = match bind.socket_addresses(port) {
            Ok(sockets) => sockets,
            Err(error) if bind.tolerates(&error) => continue,
            Err(error) => return Err(format!("Failed listening on port {port} of {}: {error}", bind.host)),
        };
        for mut socket in sockets {
            if let Err(reason) = check_reach(config, socket.ip()) {
                tracing::warn!("not listening on {socket} for other nodes: {reason}");
                match socket.ip() {
                    // The loopback interface is a part of it.
                    IpAddr::V4(ip) if ip.is_unspecified() => {
                        socket.set_ip(IpAddr::V4(std::net::Ipv4Addr::LOCALHOST));
                    }
                    _ => continue,
                }
            }
            addresses.push(socket);
        }
    }
    addresses.sort_unstable();
    addresses.dedup();
    Ok(addresses)
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    const BACKLOG: i32 = 511;
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_nonblocking(true)?;
    match socket.connect(&address.into()) {
        Ok(()) => {}
        Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => {}
        Err(error) if error.kind() == ErrorKind::WouldBlock => {}
        Err(error) => return Err(error),
    }
    Ok(socket.into())
}

struct Thread {
    server: &'static Server,
    driver: Driver,
    listeners: Vec<TcpListener>,
    tls: Option<(Arc<ClientConfig>, Arc<ServerConfig>)>,
    member: Member,
    files: AgreementFiles,
    topology_path: PathBuf,
    links: HashMap<usize, Link>,
    next_token: usize,
    /// When this node last connected to each address.
    dialed: HashMap<SocketAddr, u64>,
    calls: HashMap<u64, Box<ChangeCall>>,
    next_ticket: u64,
    /// Successful calls that wait for a topology to be in effect.
    done: Vec<(u64, u64)>,
    /// The newest topology, and its number.
    newest: (u64, Topology),
    /// The number of the topology that is in effect, and of the one that a worker puts into effect.
    published: u64,
    publishing: Option<u64>,
    is_loaded: bool,
    /// Whether storing has failed. The node then no longer proposes, votes or confirms.
    is_halted: bool,
}

impl Thread {
    fn new(server: &'static Server, prepared: Prepared) -> Thread {
        let Prepared { driver, listeners, member, tls } = prepared;
        let config = server.config.snapshot();
        Thread {
            server,
            driver,
            listeners,
            tls,
            files: AgreementFiles::new(path_of(&config)),
            topology_path: path_of(&config).to_owned(),
            links: HashMap::new(),
            next_token: 0,
            dialed: HashMap::new(),
            calls: HashMap::new(),
            next_ticket: 0,
            done: Vec::new(),
            newest: (0, member.topology().clone()),
            member,
            published: 0,
            publishing: None,
            is_loaded: false,
            is_halted: false,
        }
    }

    fn slots(&self) -> &'static Slots {
        self.server.slots.as_ref().expect("the server is a node of a cluster")
    }

    fn run(mut self) {
        let mut tick_at_ms = 0;
        loop {
            let now_ms = boot_ms();
            if now_ms >= tick_at_ms {
                tick_at_ms = now_ms + self.tick(now_ms);
            }
            let wait = Duration::from_millis(tick_at_ms.saturating_sub(boot_ms()).max(1));
            let mut ready = Vec::new();
            if let Err(error) = self.driver.wait(wait, |readiness| ready.push(readiness.token)) {
                tracing::error!("the bus of the cluster cannot wait for events: {error}");
            }
            for token in ready {
                match token.checked_sub(LISTENER_TOKENS) {
                    Some(listener) => self.accept(listener),
                    None => self.serve(token),
                }
            }
            for order in Bus::of(self.server).take_orders() {
                self.obey(order);
            }
        }
    }

    /// Runs the timers that are due, and returns the time in ms until the next tick.
    fn tick(&mut self, now_ms: u64) -> u64 {
        let config = self.server.config.snapshot();
        let timeout_ms = timeout_of(&config);
        self.close_old_links(now_ms);
        if !self.is_halted {
            // CONFIG SET may have changed them.
            self.readdress();
            self.member.set_timeout(timeout_ms);
            self.member.set_report(shard::report(self.server));
            self.member.tick(now_ms);
            self.carry_out(now_ms);
        }
        let is_idle = !self.member.is_in_group() && !self.member.is_meeting();
        if is_idle { IDLE_TICK_MS } else { (timeout_ms / 50).clamp(5, IDLE_TICK_MS / 4) }
    }

    fn close_old_links(&mut self, now_ms: u64) {
        let is_old = |link: &Link| match link.peer {
            None => now_ms > link.opened_ms + HELLO_TIMEOUT_MS,
            Some(_) => now_ms > link.received_ms + IDLE_LINK_MS,
        };
        let before = self.links.len();
        self.links.retain(|_, link| !is_old(link));
        self.dialed.retain(|_, dialed_ms| now_ms < *dialed_ms + REDIAL_MS);
        if self.links.len() != before {
            self.show_links();
        }
    }

    /// Reads the topology of a node in no group, which its workers may have changed. They do not change it again while the
    /// node meets another one.
    fn refresh_own(&mut self) {
        if self.member.is_in_group() {
            return;
        }
        *Bus::of(self.server).own_changes.lock() = OwnChanges::Refused;
        if self.published == self.newest.0 {
            self.member.set_own_topology(self.slots().view().topology.clone());
        }
    }

    /// Allows the workers to change the topology again if the node is in no group and is not meeting another node.
    fn allow_own(&self) {
        let is_settled = self.published == self.newest.0;
        if is_settled && !self.member.is_in_group() && !self.member.is_meeting() {
            *Bus::of(self.server).own_changes.lock() = OwnChanges::Allowed;
        }
    }

    fn obey(&mut self, order: Order) {
        let now_ms = boot_ms();
        if self.is_halted
            && let Order::Change(_, call)
            | Order::Meet(_, call)
            | Order::Leave(_, call)
            | Order::TakeOver(call) = order
        {
            let error = "this node cannot store changes of the topology: see its log";
            call.complete(self.server, Err(error.to_owned()));
            return;
        }
        match order {
            Order::Change(change, call) => {
                let ticket = self.enter(call);
                self.member.propose(ticket, change, now_ms);
            }
            Order::Meet(address, call) => {
                self.refresh_own();
                let ticket = self.enter(call);
                self.member.meet(ticket, address, now_ms);
            }
            Order::Leave(lone, call) => {
                let ticket = self.enter(call);
                self.member.leave(ticket, *lone, now_ms);
            }
            Order::Shard(change) => _ = self.member.propose_for_shard(change, now_ms),
            Order::TakeOver(call) => {
                let ticket = self.enter(call);
                self.member.take_over(ticket, now_ms);
            }
            Order::Keep(replica, why) => self.member.keep_slots(replica, why),
            Order::Published(number) => {
                (self.published, self.publishing) = (number, None);
                // Calls end after the slots can be used.
                self.renew_lease();
                self.complete_done();
                self.publish();
            }
            Order::Loaded => {
                self.is_loaded = true;
                let config = self.server.config.snapshot();
                if config.cluster_bootstrap && !self.member.is_in_group() {
                    self.bootstrap(now_ms);
                }
                self.publish();
            }
        }
        self.carry_out(now_ms);
    }

    /// Forms a cluster with all slots that have no owner.
    fn bootstrap(&mut self, now_ms: u64) {
        self.refresh_own();
        let mut topology = self.member.topology().clone();
        let unowned: Vec<u16> =
            (0..ember_cluster::slots::SLOTS as u16).filter(|&slot| topology.owner(slot).is_none()).collect();
        if let Err(error) = topology.assign(&unowned) {
            tracing::error!("cluster-bootstrap: {error}");
            return;
        }
        self.member.set_own_topology(topology);
        self.member.form_group(now_ms);
        tracing::info!("this node forms a cluster");
    }

    fn enter(&mut self, call: Box<ChangeCall>) -> u64 {
        self.next_ticket += 1;
        self.calls.insert(self.next_ticket, call);
        self.next_ticket
    }

    fn readdress(&mut self) {
        let config = self.server.config.snapshot();
        match address_of(&config, &self.member.topology().myself().address.ip) {
            Ok(address) => self.member.set_address(address),
            Err(error) => tracing::error!("{error}"),
        }
    }

    /// Carries out the outputs of the member: stores data, sends messages and completes calls.
    fn carry_out(&mut self, now_ms: u64) {
        let outputs = self.member.take_outputs();
        outputs.notes.iter().for_each(|note| tracing::info!("cluster: {note}"));
        if let Err(error) = self.store(&outputs) {
            tracing::error!(
                "changes of the topology cannot be stored: {error}. This node takes part in no further ones until it is \
                 restarted"
            );
            self.halt();
            return;
        }
        if let Some(topology) = outputs.topology {
            self.newest = (self.newest.0 + 1, topology);
            self.publish();
        }
        for (to, parcel) in outputs.messages {
            self.send(&to, &parcel, now_ms);
        }
        for (ticket, result) in outputs.results {
            match result {
                Ok(()) => self.done.push((self.newest.0, ticket)),
                Err(error) => self.complete(ticket, Err(error)),
            }
        }
        if let Some(replica) = outputs.cede_to {
            Jobs::of(self.server).notify(self.server, Box::new(HandOver { replica }));
        }
        self.complete_done();
        let bus = Bus::of(self.server);
        *bus.status.lock() = self.member.status();
        *bus.failed.lock() = self.member.failed(now_ms).to_vec();
        self.renew_lease();
        self.allow_own();
    }

    /// Lets the workers serve the slots for the time of the lease.
    fn renew_lease(&mut self) {
        let slots = self.slots();
        // The data may be replaced at any time while the node is a replica.
        self.member.set_report(shard::report(self.server));
        let until_ms = self.member.serves_until_ms(&slots.view().topology);
        // A node in no group needs no lease, and a new member has none.
        slots.set_lease(if until_ms == u64::MAX { 0 } else { until_ms });
    }

    fn store(&mut self, outputs: &Outputs) -> io::Result<()> {
        let me = self.member.topology().myself().name;
        let save_topology = |topology: &Option<Topology>| match topology {
            Some(topology) => store::save(&self.topology_path, topology),
            None => Ok(()),
        };
        if let (Some(group), Some(vote)) = (outputs.group, outputs.vote) {
            self.files.save_vote(group, me, vote)?;
        }
        if outputs.topology_first {
            save_topology(&outputs.topology)?;
        }
        if let (Some(group), Some(log)) = (outputs.group, &outputs.log) {
            self.files.write_log(group, log)?;
        }
        if !outputs.topology_first {
            save_topology(&outputs.topology)?;
        }
        Ok(())
    }

    fn halt(&mut self) {
        self.is_halted = true;
        self.links.clear();
        self.show_links();
        for (_, call) in self.calls.drain() {
            let error = "this node cannot store changes of the topology: see its log";
            call.complete(self.server, Err(error.to_owned()));
        }
    }

    /// Requests that a worker put the newest topology into effect, unless a worker is already doing so.
    fn publish(&mut self) {
        let (number, topology) = &self.newest;
        if !self.is_loaded || self.publishing.is_some() || *number == self.published {
            return;
        }
        self.publishing = Some(*number);
        let publication = Publication { number: *number, topology: topology.clone() };
        Jobs::of(self.server).notify(self.server, Box::new(publication));
    }

    fn complete_done(&mut self) {
        let published = self.published;
        let ready: Vec<u64> =
            self.done.extract_if(.., |(number, _)| *number <= published).map(|(_, ticket)| ticket).collect();
        ready.into_iter().for_each(|ticket| self.complete(ticket, Ok(())));
    }

    fn complete(&mut self, ticket: u64, result: Result<(), String>) {
        if let Some(call) = self.calls.remove(&ticket) {
            call.complete(self.server, result);
        }
    }

    fn send(&mut self, to: &Recipient, parcel: &Parcel, now_ms: u64) {
        let token = match to {
            Recipient::Link(link) => {
                usize::try_from(*link).ok().filter(|token| self.links.contains_key(token))
            }
            Recipient::Node(name) => self.link_to(*name).or_else(|| {
                let address = &self.member.topology().node(*name)?.address;
                let ip = address.ip.parse().ok()?;
                self.dial(SocketAddr::new(ip, address.bus_port), now_ms)
            }),
            Recipient::Address(address) => self.dial(*address, now_ms),
        };
        // A message that is lost is sent again.
        let Some(token) = token else { return };
        let Some(link) = self.links.get_mut(&token) else { return };
        Bus::of(self.server).count_sent();
        let sent = link.send(parcel.text()).and_then(|()| link.flush());
        if let Err(reason) = sent {
            self.close(token, &reason);
        }
    }

    /// Returns the newest link to a node.
    fn link_to(&self, name: Name) -> Option<usize> {
        let is_its = |(_, link): &(&usize, &Link)| link.peer == Some(name);
        self.links.iter().filter(is_its).map(|(token, _)| *token).max()
    }

    /// Connects to an address, or returns the link that this node has opened to it.
    fn dial(&mut self, address: SocketAddr, now_ms: u64) -> Option<usize> {
        let is_there =
            |link: &Link| link.is_dialed && link.stream.peer_addr().is_ok_and(|peer| peer == address);
        if let Some((token, _)) = self.links.iter().find(|(_, link)| is_there(link)) {
            return Some(*token);
        }
        if self.dialed.contains_key(&address) {
            return None;
        }
        self.dialed.insert(address, now_ms);
        let config = self.server.config.snapshot();
        let opened = check_reach(&config, address.ip()).and_then(|()| {
            let stream = connect(address).map_err(|error| error.to_string())?;
            let tls = match &self.tls {
                None => None,
                Some((client, _)) => {
                    let name = ServerName::IpAddress(address.ip().into());
                    let session = ClientConnection::new(Arc::clone(client), name);
                    Some(session.map_err(|error| error.to_string())?.into())
                }
            };
            self.add(stream, tls, true, now_ms)
        });
        match opened {
            Ok(token) => Some(token),
            Err(reason) => {
                tracing::debug!("no link to the node at {address}: {reason}");
                None
            }
        }
    }

    fn add(
        &mut self,
        stream: TcpStream,
        tls: Option<rustls::Connection>,
        is_dialed: bool,
        now_ms: u64,
    ) -> Result<usize, String> {
        let failed = |error: io::Error| error.to_string();
        stream.set_nonblocking(true).map_err(failed)?;
        stream.set_nodelay(true).map_err(failed)?;
        let keepalive = TcpKeepalive::new().with_time(Duration::from_secs(15));
        SockRef::from(&stream).set_tcp_keepalive(&keepalive).map_err(failed)?;
        let nonce = nonce().map_err(|error| format!("the system provides no random numbers: {error}"))?;
        let me = self.member.topology().myself().name;
        let config = self.server.config.snapshot();
        let secret = config.cluster_auth_pass.reveal();
        let link = Link::new(stream, tls, secret, is_dialed, (me, &nonce), now_ms);
        self.next_token += 1;
        let token = self.next_token;
        self.driver.watch(link.stream.as_fd(), token).map_err(failed)?;
        self.links.insert(token, link);
        self.show_links();
        Ok(token)
    }

    fn accept(&mut self, listener: usize) {
        loop {
            let (stream, peer) = match self.listeners[listener].accept() {
                Ok(accepted) => accepted,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) => {
                    tracing::warn!("cannot accept a link of another node: {error}");
                    return;
                }
            };
            let unknown = self.links.values().filter(|link| link.peer.is_none()).count();
            if self.is_halted || unknown >= UNKNOWN_LINKS_MAX {
                continue;
            }
            let now_ms = boot_ms();
            let tls = match &self.tls {
                None => Ok(None),
                Some((_, config)) => {
                    ServerConnection::new(Arc::clone(config)).map(|session| Some(session.into()))
                }
            };
            let added = tls
                .map_err(|error| error.to_string())
                .and_then(|tls| self.add(stream, tls, false, now_ms))
                .map(|token| self.serve(token));
            if let Err(reason) = added {
                tracing::warn!("the link of {peer} fails: {reason}");
            }
        }
    }

    fn close(&mut self, token: usize, reason: &str) {
        let Some(link) = self.links.remove(&token) else { return };
        let peer = link.stream.peer_addr().map_or("an unknown address".to_owned(), |peer| peer.to_string());
        match link.peer {
            // A node that is down is dialed again and again.
            None if link.is_dialed => tracing::debug!("the link to {peer} ends: {reason}"),
            _ => tracing::info!("the link with the node at {peer} ends: {reason}"),
        }
        self.show_links();
    }

    /// Reads and writes as much as a link accepts without blocking.
    fn serve(&mut self, token: usize) {
        let now_ms = boot_ms();
        let Some(link) = self.links.get_mut(&token) else { return };
        let was_known = link.peer.is_some();
        let received = link.receive(now_ms).and_then(|messages| link.flush().map(|()| messages));
        let messages = match received {
            Ok(messages) => messages,
            Err(reason) => return self.close(token, &reason),
        };
        let Some(peer) = link.peer else { return };
        let (local, remote) = (link.stream.local_addr(), link.stream.peer_addr());
        let ip = |address: io::Result<SocketAddr>| address.map_or(String::new(), |it| it.ip().to_string());
        let from = Sender { name: peer, link: token as u64, remote_ip: ip(remote), local_ip: ip(local) };
        if !was_known {
            self.show_links();
        }
        for text in messages {
            Bus::of(self.server).count_received();
            match Parcel::parse(&text) {
                Ok(parcel) => {
                    self.refresh_own();
                    self.member.receive(&from, parcel, now_ms);
                    self.carry_out(now_ms);
                }
                Err(reason) => return self.close(token, &reason),
            }
            if self.is_halted {
                return;
            }
        }
    }

    fn show_links(&self) {
        let age_ms = |link: &Link| boot_ms().saturating_sub(link.opened_ms) as i64;
        let facts = |link: &Link| {
            let peer = link.peer?.to_string();
            Some(LinkFacts { is_dialed: link.is_dialed, peer, created_ms: unix_ms() - age_ms(link) })
        };
        *Bus::of(self.server).links.lock() = self.links.values().filter_map(facts).collect();
    }
}

/// Returns 64 random hexadecimal digits.
fn nonce() -> Result<String, getrandom::Error> {
    let mut nonce = random_name()? + &random_name()?;
    nonce.truncate(64);
    Ok(nonce)
}
