//! The connections of a worker, and which of them have work.

use std::sync::Arc;
use std::time::Instant;

use ember_protocol::Limits;

use crate::clients::connection::{Connection, RequestLimits};
use crate::clients::listener::Listener;
use crate::clients::mailbox::Message;
use crate::system::driver::{Driver, Readiness};

/// The token of all listeners; tokens of connections count up from zero.
pub(super) const LISTENER_TOKEN: usize = usize::MAX / 2;

/// A token that no connection has.
pub(super) const NO_TOKEN: usize = usize::MAX;

/// The connections of a worker. While one of them runs a long script, the others are served
/// (`worker/other_connections.rs`).
pub(super) struct Connections {
    pub(super) driver: Driver,
    pub(super) listeners: Vec<Arc<Listener>>,
    /// All connections, at the index of their token; the connection whose batch runs is not in the table meanwhile.
    pub(super) all: Vec<Option<Box<Connection>>>,
    /// Unused indexes in `all`.
    pub(super) vacant: Vec<usize>,
    /// The tokens of connections with work.
    pub(super) ready: Vec<usize>,
    /// The connections served in the last turn; the vector is retained for its allocation.
    pub(super) served: Vec<usize>,
    /// Connections whose replies are to be sent together, and the time of the first reply.
    pub(super) unsent: Vec<usize>,
    pub(super) unsent_since: Instant,
    /// Connections that wait for the end of `CLIENT PAUSE`.
    pub(super) paused: Vec<usize>,
    /// Whether more connections may be waiting to be accepted.
    pub(super) is_accepting: bool,
    /// Whether accepting has failed, most likely for lack of descriptors, so that the next tick retries.
    pub(super) accepts_at_tick: bool,
    pub(super) limits: RequestLimits,
    /// Messages that arrived while a script ran, to be handled after it.
    pub(super) postponed: Vec<Message>,
    /// The token of the connection during whose batch the others are served, and the events of its socket in that time.
    pub(super) running: usize,
    pub(super) missed: Vec<Readiness>,
}

impl Connections {
    /// Returns the state of a worker without connections.
    pub(super) fn new(driver: Driver, listeners: Vec<Arc<Listener>>) -> Connections {
        Connections {
            driver,
            listeners,
            all: Vec::new(),
            vacant: Vec::new(),
            ready: Vec::new(),
            served: Vec::new(),
            unsent: Vec::new(),
            unsent_since: Instant::now(),
            paused: Vec::new(),
            is_accepting: false,
            accepts_at_tick: false,
            limits: RequestLimits::new(Limits::default().bulk_len_max),
            postponed: Vec::new(),
            running: NO_TOKEN,
            missed: Vec::new(),
        }
    }
}

/// Returns the connection with this token, unless the token belongs to another client by now.
pub(super) fn connection_of(
    connections: &mut [Option<Box<Connection>>],
    token: usize,
    client_id: u64,
) -> Option<&mut Connection> {
    let connection = connections.get_mut(token)?.as_deref_mut()?;
    (connection.client.view.id == client_id).then_some(connection)
}

/// Adds a connection to those with work.
pub(super) fn list(ready: &mut Vec<usize>, connection: &mut Connection, token: usize) {
    if !connection.is_listed {
        connection.is_listed = true;
        ready.push(token);
    }
}
