//! Who asks, and where.

use std::net::SocketAddr;

use crate::clients::client::Peer;

/// The two ends of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Visitor {
    pub(super) remote: SocketAddr,
    pub(super) local: SocketAddr,
}

impl Visitor {
    /// What its commands' connection is to show.
    pub(super) fn into_peer(self) -> Peer {
        Peer::Http { remote: self.remote, local: self.local }
    }
}
