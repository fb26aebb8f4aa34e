//! The stage of a failover, and its options.

use std::sync::atomic::{AtomicU8, Ordering};

use parking_lot::Mutex;

use crate::server::Server;

/// The stage of a failover.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum FailoverStage {
    /// No failover is running.
    Off,
    /// Writes are paused until a replica has received all earlier writes.
    Waiting,
    /// A replica with the whole stream is asked to take over.
    HandingOver,
}

impl FailoverStage {
    /// Returns the name of the stage in INFO.
    pub(crate) fn name(self) -> &'static str {
        match self {
            FailoverStage::Off => "no-failover",
            FailoverStage::Waiting => "waiting-for-sync",
            FailoverStage::HandingOver => "failover-in-progress",
        }
    }
}

/// The options of FAILOVER.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wish {
    /// The address and port of the replica that is to take over; any replica if not given.
    pub(crate) target: Option<(String, u16)>,
    /// Whether a replica takes over at the timeout even if it does not have the whole stream.
    pub(crate) is_forced: bool,
    /// The maximum pause of writes in ms.
    pub(crate) timeout_ms: Option<i64>,
}

/// The state of a running failover.
#[derive(Default)]
pub(super) struct Underway {
    pub(super) wish: Wish,
    /// The deadline for a replica to receive the whole stream, Unix time in ms.
    pub(super) until_ms: Option<i64>,
    /// When the last GETACK was requested, Unix time in ms.
    pub(super) requested_ms: i64,
}

/// The failover state of a server.
#[derive(Default)]
pub(crate) struct Failover {
    stage: AtomicU8,
    pub(super) underway: Mutex<Underway>,
}

impl Failover {
    /// Returns the server's failover state.
    pub(crate) fn of(server: &Server) -> &Failover {
        server.services.get()
    }

    /// Returns the current stage.
    pub(crate) fn stage(&self) -> FailoverStage {
        match self.stage.load(Ordering::SeqCst) {
            0 => FailoverStage::Off,
            1 => FailoverStage::Waiting,
            _ => FailoverStage::HandingOver,
        }
    }

    pub(super) fn enter(&self, stage: FailoverStage) {
        self.stage.store(stage as u8, Ordering::SeqCst);
    }

    /// Ends the failover and resumes paused writes. `what` describes the outcome for the log.
    pub(crate) fn end(&self, server: &Server, what: &str) {
        if self.stage() == FailoverStage::Off {
            return;
        }
        tracing::info!("the failover has ended: {what}");
        self.enter(FailoverStage::Off);
        server.pause.wait_for_failover(false);
        server.check_paused();
    }
}
