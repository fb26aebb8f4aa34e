//! The addresses of an HTTP connection.

use std::net::SocketAddr;

use crate::clients::client::Peer;

/// The addresses of the client and of the server.
#[derive(Clone, Copy, Debug)]
pub(super) struct Visitor {
    pub(super) remote: SocketAddr,
    pub(super) local: SocketAddr,
}

impl Visitor {
    /// Returns these addresses as those of a client connection that runs commands.
    pub(super) fn into_peer(self) -> Peer {
        Peer::Http { remote: self.remote, local: self.local }
    }
}
