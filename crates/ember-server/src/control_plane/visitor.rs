//! The two ends of an HTTP connection.

use std::net::SocketAddr;

use crate::clients::client::Peer;

/// The two ends of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Visitor {
    pub(super) remote: SocketAddr,
    pub(super) local: SocketAddr,
}

impl Visitor {
    /// Returns the peer that the connection of its commands shows.
    pub(super) fn into_peer(self) -> Peer {
        Peer::Http { remote: self.remote, local: self.local }
    }
}
