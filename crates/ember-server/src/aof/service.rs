//! The interface of the AOF to the rest of the server.

use std::path::Path;
use std::sync::atomic::Ordering;

use ember_config::Config;
use ember_persistence::aof::AofDirectory;
use parking_lot::Mutex;

use super::orders::Order;
use super::state::{AofState, Reported};
use crate::journal::Reader;
use crate::journal::order_queue::OrderQueue;
use crate::server::Server;

/// The AOF of a server: its state, and the orders to its subscriber.
#[derive(Default)]
pub(crate) struct Aof {
    /// The state for INFO, metrics and commands.
    pub(crate) state: AofState,
    /// The orders to the AOF subscriber.
    pub(super) orders: OrderQueue<Order>,
    /// The state of the reports of a slow disk.
    pub(super) slow_disk: Mutex<Reported>,
}

impl Aof {
    /// Returns the server's AOF.
    pub(crate) fn of(server: &Server) -> &Aof {
        server.services.get()
    }

    /// Returns the bytes of records that are not in the file yet: records in the journal, and records that workers have
    /// published but the journal has not taken because a disk call delays it.
    pub(crate) fn buffer_bytes(&self, server: &Server) -> u64 {
        let published =
            if self.state.is_enabled.load(Ordering::Relaxed) { server.journal.published_bytes() } else { 0 };
        self.state.waiting_bytes.load(Ordering::Relaxed) + published
    }

    /// Whether the AOF is disabled but its files are still in use.
    pub(super) fn is_ending(&self, server: &Server) -> bool {
        !server.journal.is_read_by(Reader::Aof) && self.state.is_enabled.load(Ordering::Relaxed)
    }
}

/// Opens the AOF directory, which may contain no files yet.
///
/// # Errors
/// Returns one line with the error and a remedy.
pub(super) fn open(server: &Server, config: &Config) -> Result<AofDirectory, String> {
    let directory = Path::new(&config.appenddirname);
    let opened = AofDirectory::open(&server.disk, directory, &config.appendfilename, &server.encryption());
    let mut directory = opened.map_err(|error| error.to_string())?;
    directory.set_keep_s(config.aof_keep_seconds);
    Ok(directory)
}

/// Adds an order to the subscriber of a server's AOF.
pub(super) fn order(server: &Server, order: Order) {
    Aof::of(server).orders.add(order);
    server.journal.call_thread();
}
