//! What other parts of the server know of the AOF.

use std::path::Path;

use ember_persistence::aof::AofDirectory;

use super::orders::Order;
use super::state::AofState;
use crate::config::Config;
use crate::journal::Reader;
use crate::journal::order_queue::OrderQueue;
use crate::server::Server;

/// The AOF.
#[derive(Default)]
pub(crate) struct Aof {
    /// How it goes.
    pub(crate) state: AofState,
    /// What its subscriber is to do.
    pub(super) orders: OrderQueue<Order>,
}

impl Aof {
    /// That of a server.
    pub(crate) fn of(server: &Server) -> &Aof {
        server.services.get()
    }

    /// Whether its files are still in use although it is switched off.
    pub(super) fn is_ending(&self, server: &Server) -> bool {
        !server.journal.is_read_by(Reader::Aof)
            && self.state.is_enabled.load(std::sync::atomic::Ordering::Relaxed)
    }
}

/// The files of the AOF, which may be none.
///
/// # Errors
/// One line that says what is wrong with them, and what to do.
pub(super) fn open(server: &Server, config: &Config) -> Result<AofDirectory, String> {
    let directory = Path::new(&config.appenddirname);
    AofDirectory::open(&server.disk, directory, &config.appendfilename, &server.encryption())
        .map_err(|error| error.to_string())
}

/// Has the subscriber of a server's AOF do something.
pub(super) fn order(server: &Server, order: Order) {
    Aof::of(server).orders.add(order);
    server.journal.call_thread();
}
