//! The stage of a shutdown, its options, and the clients that wait for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use ember_config::ShutdownOptions;
use ember_protocol::Reply;
use emberkv_core::observers::Waiter;
use parking_lot::Mutex;

use crate::clients::mailbox::Message;
use crate::server::Server;

/// The stage of a shutdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum ShutdownStage {
    /// No shutdown was requested.
    Off,
    /// Writes are paused until the replicas have received all earlier writes.
    Waiting,
    /// The stream has ended: nothing more is appended to it.
    Ending,
}

/// The state of a running shutdown.
#[derive(Default)]
pub(super) struct Underway {
    pub(super) options: ShutdownOptions,
    /// The deadline for the replicas to receive all earlier writes, Unix time in ms.
    pub(super) until_ms: i64,
    /// The clients that requested the shutdown.
    pub(super) waiting: Vec<Arc<Waiter>>,
}

/// The shutdown state of a server.
#[derive(Default)]
pub(crate) struct Shutdown {
    stage: AtomicU8,
    pub(super) underway: Mutex<Underway>,
}

impl Shutdown {
    /// Returns the server's shutdown state.
    pub(crate) fn of(server: &Server) -> &Shutdown {
        server.services.get()
    }

    /// Returns the current stage.
    pub(crate) fn stage(&self) -> ShutdownStage {
        match self.stage.load(Ordering::SeqCst) {
            0 => ShutdownStage::Off,
            1 => ShutdownStage::Waiting,
            _ => ShutdownStage::Ending,
        }
    }

    pub(super) fn enter(&self, stage: ShutdownStage) {
        self.stage.store(stage as u8, Ordering::SeqCst);
    }

    /// Returns the remaining time in ms for the replicas to catch up, if the shutdown waits for them.
    pub(crate) fn left_ms(&self, now_ms: i64) -> Option<i64> {
        (self.stage() == ShutdownStage::Waiting).then(|| (self.underway.lock().until_ms - now_ms).max(0))
    }

    /// Aborts the shutdown: the server continues, and the clients that requested the shutdown are notified.
    pub(super) fn give_up(&self, server: &Server) {
        self.enter(ShutdownStage::Off);
        server.pause.wait_for_shutdown(false);
        server.check_paused();
        for waiter in std::mem::take(&mut self.underway.lock().waiting) {
            if waiter.claim() {
                let mut reply = Reply::new(waiter.protocol);
                reply.error("ERR Errors trying to SHUTDOWN. Check logs.");
                waiter.finish();
                let served = Message::Served(waiter.token, waiter.client_id, Box::new(reply), 0);
                server.workers[waiter.worker].mailbox.send(served);
            }
        }
    }
}
