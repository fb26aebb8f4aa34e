//! Listening sockets (TCP and Unix), and the setup of accepted sockets.

use std::io;
use std::net::{Shutdown, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ember_config::{BindAddress, Config};
use ember_persistence::full_path::full_path;
use socket2::{Domain, SockAddr, SockRef, Socket, TcpKeepalive, Type};

use crate::clients::client::Peer;
use crate::clients::listening;

/// The error sent to a client on another machine in protected mode.
pub(crate) const PROTECTED: &str = "-DENIED ember is running in protected mode because no password is set and it \
    listens beyond the loopback interface. Connect from this machine, or set a password (requirepass), or, if the \
    network can be trusted, set 'protected-mode no'.\r\n";

/// The error sent to a client that exceeds `maxclients`.
pub(crate) const TOO_MANY: &str = "-ERR max number of clients reached\r\n";

/// The number of unanswered keep-alive probes after which a peer counts as disconnected, as in Redis.
const KEEPALIVE_PROBES: u32 = 3;

/// The result of accepting.
pub(crate) enum Accepted {
    /// A new connection.
    Connection(Incoming),
    /// No connection waits to be accepted.
    Nothing,
    /// Accepting failed, for example for lack of a free descriptor; connections may still be waiting.
    Failed,
}

/// An accepted connection that no worker serves yet.
pub(crate) struct Incoming {
    pub(crate) socket: OwnedFd,
    pub(crate) peer: Peer,
    /// Whether the connection uses TLS.
    pub(crate) is_tls: bool,
}

/// An address on which the server accepts TCP connections, and whether they use TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    pub(super) socket: SocketAddr,
    /// Whether connections use TLS.
    is_tls: bool,
}

impl Address {
    fn is_open_to_others(self) -> bool {
        !self.socket.ip().is_loopback()
    }
}

/// A socket that accepts connections.
pub(crate) struct Listener {
    socket: Socket,
    /// The TCP address; `None` for a Unix socket.
    address: Option<Address>,
    /// The path of a Unix socket, which is removed when the listener is dropped.
    path: Option<PathBuf>,
}

impl Listener {
    /// Listens on all configured addresses.
    ///
    /// # Errors
    /// Returns one line that names the address and the problem.
    pub(crate) fn open_all(config: &Config) -> Result<Vec<Arc<Listener>>, String> {
        let mut listeners = listening::open(&Listener::addresses(config)?, config)?;
        if !config.unixsocket.is_empty() {
            let path = Path::new(&config.unixsocket);
            let opened = Listener::open_unix(path, config);
            let opened = opened.map_err(|error| format!("cannot listen on {}: {error}", path.display()))?;
            listeners.push(Arc::new(opened));
        }
        if listeners.is_empty() {
            return Err("nothing to listen on: set a port and bind address, or unixsocket".to_owned());
        }
        Ok(listeners)
    }

    /// Returns the configured TCP addresses, each with its configured text. Resolving host names may take long.
    ///
    /// # Errors
    /// Returns one line that says which name cannot be resolved.
    pub(super) fn addresses(config: &Config) -> Result<Vec<(Address, BindAddress)>, String> {
        let mut addresses: Vec<(Address, BindAddress)> = Vec::new();
        for (port, is_tls) in [(config.port, false), (config.tls_port, true)] {
            for bind in config.bind.iter().filter(|_| port != 0) {
                match bind.socket_addresses(port) {
                    Ok(sockets) => addresses
                        .extend(sockets.into_iter().map(|socket| (Address { socket, is_tls }, bind.clone()))),
                    Err(error) if bind.tolerates(&error) => {
                        tracing::info!("not listening on {}: {error}", bind.host);
                    }
                    Err(error) => {
                        return Err(format!("Failed listening on port {port} of {}: {error}", bind.host));
                    }
                }
            }
        }
        Ok(addresses)
    }

    /// Listens on one address.
    ///
    /// # Errors
    /// Returns the system's error.
    pub(super) fn open(address: Address, config: &Config) -> io::Result<Listener> {
        let socket = Socket::new(Domain::for_address(address.socket), Type::STREAM, None)?;
        socket.set_reuse_address(true)?;
        if address.socket.is_ipv6() {
            socket.set_only_v6(true)?;
        }
        socket.bind(&address.socket.into())?;
        Listener::listen(socket, config, Some(address), None)
    }

    /// Returns the TCP address; `None` for a Unix socket.
    pub(super) fn address(&self) -> Option<Address> {
        self.address
    }

    /// Returns the address as users write it: `127.0.0.1:6379`, or a path.
    pub(crate) fn shown(&self) -> String {
        match (&self.address, &self.path) {
            (Some(address), _) => address.socket.to_string(),
            (None, path) => path.as_ref().map(full_path).unwrap_or_default(),
        }
    }

    /// Returns whether other machines can reach the listener, according to its address.
    pub(crate) fn is_open_to_others(&self) -> bool {
        self.address.is_some_and(Address::is_open_to_others)
    }

    /// Returns whether this is a Unix socket.
    pub(crate) fn is_unix(&self) -> bool {
        self.address.is_none()
    }

    /// Returns whether accepted connections use TLS.
    pub(crate) fn is_tls(&self) -> bool {
        self.address.is_some_and(|address| address.is_tls)
    }

    /// Stops accepting connections; other sockets can then be bound to the address.
    pub(super) fn suspend(&self) {
        if let Err(error) = self.socket.shutdown(Shutdown::Both) {
            tracing::debug!("a listening socket cannot be shut down: {error}");
        }
    }

    /// Accepts connections again.
    ///
    /// # Errors
    /// Returns the system's error, for example if the address is in use.
    pub(super) fn resume(&self, config: &Config) -> io::Result<()> {
        self.socket.listen(backlog(config))
    }

    fn open_unix(path: &Path, config: &Config) -> io::Result<Listener> {
        let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
        // A socket that a killed process has left would prevent binding. Any other file at this path does not belong to
        // the server.
        match std::fs::symlink_metadata(path) {
            Ok(found) if found.file_type().is_socket() => std::fs::remove_file(path)?,
            Ok(_) => {
                return Err(io::Error::new(
                    io::ErrorKind::AlreadyExists,
                    "the path exists and is not a socket",
                ));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        socket.bind(&SockAddr::unix(path)?)?;
        if !config.unixsocketgroup.is_empty() {
            give_to_group(config)?;
        }
        if config.unixsocketperm != 0 {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(config.unixsocketperm))?;
        }
        Listener::listen(socket, config, None, Some(path.to_owned()))
    }

    fn listen(
        socket: Socket,
        config: &Config,
        address: Option<Address>,
        path: Option<PathBuf>,
    ) -> io::Result<Listener> {
        socket.listen(backlog(config))?;
        socket.set_nonblocking(true)?;
        Ok(Listener { socket, address, path })
    }

    /// Returns the descriptor for the driver.
    pub(crate) fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Accepts one connection.
    pub(crate) fn accept(&self) -> Accepted {
        loop {
            match self.socket.accept() {
                Ok((socket, address)) => match self.peer(&socket, &address) {
                    Ok(peer) => {
                        let socket = socket.into();
                        let is_tls = self.is_tls();
                        return Accepted::Connection(Incoming { socket, peer, is_tls });
                    }
                    Err(error) => tracing::debug!("a connection broke before it was accepted: {error}"),
                },
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Accepted::Nothing,
                // The listener is suspended.
                Err(error) if error.kind() == io::ErrorKind::InvalidInput => return Accepted::Nothing,
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::Interrupted | io::ErrorKind::ConnectionAborted
                    ) => {}
                Err(error) => {
                    tracing::warn!("cannot accept a connection: {error}");
                    return Accepted::Failed;
                }
            }
        }
    }

    fn peer(&self, socket: &Socket, address: &SockAddr) -> io::Result<Peer> {
        match address.as_socket() {
            Some(remote) => {
                let local = socket.local_addr()?.as_socket();
                Ok(Peer::Tcp { remote, local: local.ok_or(io::ErrorKind::AddrNotAvailable)? })
            }
            None => {
                let path = self.path.as_deref().unwrap_or(Path::new(""));
                Ok(Peer::Unix(Arc::from(path.to_string_lossy().as_ref())))
            }
        }
    }
}

/// Sets the group of the Unix socket, if there is one, to the configured group.
///
/// # Errors
/// Returns an error if there is no such group, or the system does not permit the change.
pub(crate) fn give_to_group(config: &Config) -> io::Result<()> {
    let group = match &*config.unixsocketgroup {
        "" => rustix::process::getgid().as_raw(),
        group => group_number(group)?,
    };
    if config.unixsocket.is_empty() {
        Ok(())
    } else {
        std::os::unix::fs::chown(&config.unixsocket, None, Some(group))
    }
}

/// Returns the id of a group that is given by name or by id.
fn group_number(group: &str) -> io::Result<u32> {
    // Without this file, only numeric ids can be used.
    let groups = std::fs::read_to_string("/etc/group").unwrap_or_default();
    let number = groups.lines().find_map(|line| {
        let mut fields = line.split(':');
        (fields.next() == Some(group)).then(|| fields.nth(1)?.parse().ok())?
    });
    number.or_else(|| group.parse().ok()).ok_or_else(|| {
        io::Error::new(io::ErrorKind::NotFound, format!("unixsocketgroup: there is no group '{group}'"))
    })
}

/// Returns the maximum number of connections that wait to be accepted.
fn backlog(config: &Config) -> i32 {
    i32::try_from(config.tcp_backlog).unwrap_or(i32::MAX)
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Some(path) = &self.path
            && let Err(error) = std::fs::remove_file(path)
        {
            tracing::debug!("cannot remove {}: {error}", path.display());
        }
    }
}

/// Returns whether protected mode refuses a client: as long as no password is set, only clients on this machine are
/// accepted.
pub(crate) fn is_protected_from(peer: &Peer, protected_mode: bool, has_password: bool) -> bool {
    protected_mode && !has_password && !peer.is_loopback()
}

/// Configures a new socket: non-blocking, without Nagle's delay, with keep-alive probes every `keepalive` seconds (0
/// disables them).
///
/// # Errors
/// Returns the system's error.
pub(crate) fn prepare(socket: &OwnedFd, peer: &Peer, keepalive: u32) -> io::Result<()> {
    let socket = SockRef::from(socket);
    socket.set_nonblocking(true)?;
    if let Peer::Tcp { .. } = peer {
        socket.set_tcp_nodelay(true)?;
        if keepalive != 0 {
            let between = Duration::from_secs(u64::from((keepalive / KEEPALIVE_PROBES).max(1)));
            let keepalive = TcpKeepalive::new()
                .with_time(Duration::from_secs(u64::from(keepalive)))
                .with_interval(between)
                .with_retries(KEEPALIVE_PROBES);
            socket.set_tcp_keepalive(&keepalive)?;
        }
    }
    Ok(())
}

/// Sends the reason to a refused client if the socket accepts it without waiting; the caller then closes the socket.
/// TLS clients receive nothing, because that would require a handshake.
pub(crate) fn refuse_client(incoming: &Incoming, reason: &str) {
    let Incoming { socket, is_tls: false, .. } = incoming else { return };
    if let Err(error) = rustix::io::write(socket, reason.as_bytes()) {
        tracing::debug!("the reason could not be sent to a refused client: {error}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_have_names_and_numbers() {
        assert_eq!(group_number("root").unwrap(), 0);
        assert_eq!(group_number("4711").unwrap(), 4711);
        assert!(group_number("no such group").unwrap_err().to_string().contains("'no such group'"));
    }

    #[test]
    fn non_loopback_addresses_are_reachable_by_others() {
        let is_open =
            |text: &str| Address { socket: text.parse().unwrap(), is_tls: false }.is_open_to_others();
        assert!(["0.0.0.0:1", "[::]:1", "192.0.2.1:1"].into_iter().all(is_open));
        assert!(!["127.0.0.1:1", "127.1.2.3:1", "[::1]:1"].into_iter().any(is_open));
    }

    #[test]
    fn protected_mode_keeps_out_other_machines_while_there_is_no_password() {
        let local: SocketAddr = "127.0.0.1:1".parse().unwrap();
        let peer = |remote: &str| Peer::Tcp { remote: remote.parse().unwrap(), local };
        for here in ["127.0.0.1:1", "127.8.9.10:1", "[::1]:1", "[::ffff:127.0.0.1]:1"] {
            assert!(!is_protected_from(&peer(here), true, false), "{here}");
        }
        assert!(!is_protected_from(&Peer::Unix(Arc::from("/x")), true, false));
        let browser = |remote: &str| Peer::Http { remote: remote.parse().unwrap(), local };
        assert!(!is_protected_from(&browser("127.0.0.1:1"), true, false));
        assert!(is_protected_from(&browser("10.0.0.1:1"), true, false));
        for there in ["10.0.0.1:1", "192.0.2.7:1", "[2001:db8::1]:1", "[::ffff:10.0.0.1]:1"] {
            assert!(is_protected_from(&peer(there), true, false), "{there}");
            assert!(!is_protected_from(&peer(there), true, true));
            assert!(!is_protected_from(&peer(there), false, false));
        }
    }
}
