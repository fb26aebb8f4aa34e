//! How far the end of the server is, how it is to come, and who waits for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use ember_protocol::Reply;
use emberkv_core::observers::Waiter;
use parking_lot::Mutex;

use crate::clients::mailbox::Message;
use crate::config::ShutdownOptions;
use crate::server::Server;

/// How far it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum ShutdownStage {
    /// Nobody has asked for it.
    Off,
    /// Writes wait, and replicas are to get all that was written before.
    Waiting,
    /// The stream has ended: nothing is added to it any more.
    Ending,
}

/// Of a shutdown that is under way.
#[derive(Default)]
pub(super) struct Underway {
    pub(super) options: ShutdownOptions,
    /// Until when replicas are waited for, Unix time in ms.
    pub(super) until_ms: i64,
    /// Clients that have asked for it.
    pub(super) waiting: Vec<Arc<Waiter>>,
}

/// The shutdown of a server.
#[derive(Default)]
pub(crate) struct Shutdown {
    stage: AtomicU8,
    pub(super) underway: Mutex<Underway>,
}

impl Shutdown {
    /// That of a server.
    pub(crate) fn of(server: &Server) -> &Shutdown {
        server.services.get()
    }

    /// How far it is.
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

    /// For how many ms replicas are waited for at most, if they are.
    pub(crate) fn left_ms(&self, now_ms: i64) -> Option<i64> {
        (self.stage() == ShutdownStage::Waiting).then(|| (self.underway.lock().until_ms - now_ms).max(0))
    }

    /// Gives it up: the server goes on. Whoever has asked for it is told that.
    pub(super) fn give_up(&self, server: &Server) {
        self.enter(ShutdownStage::Off);
        server.pause.wait_for_shutdown(false);
        server.look_at_paused();
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
