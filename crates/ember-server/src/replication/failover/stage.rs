//! How far a failover is, and what was asked for.

use std::sync::atomic::{AtomicU8, Ordering};

use parking_lot::Mutex;

use crate::server::Server;

/// How far a failover is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum FailoverStage {
    /// There is none.
    Off,
    /// Writes wait, and a replica is to get all that was written before.
    Waiting,
    /// The replica is asked to take over.
    HandingOver,
}

impl FailoverStage {
    /// The word of INFO.
    pub(crate) fn name(self) -> &'static str {
        match self {
            FailoverStage::Off => "no-failover",
            FailoverStage::Waiting => "waiting-for-sync",
            FailoverStage::HandingOver => "failover-in-progress",
        }
    }
}

/// What FAILOVER is asked for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wish {
    /// The address and port of the replica; any of them if that is not said.
    pub(crate) target: Option<(String, u16)>,
    /// The replica takes over even if it has not got all when the time is over.
    pub(crate) is_forced: bool,
    /// For how long writes wait at most, in ms.
    pub(crate) timeout_ms: Option<i64>,
}

/// Of a failover that is under way.
#[derive(Default)]
pub(super) struct Underway {
    pub(super) wish: Wish,
    /// Until when a replica is waited for, Unix time in ms.
    pub(super) until_ms: Option<i64>,
    /// When replicas were last asked what they have, Unix time in ms.
    pub(super) asked_ms: i64,
}

/// The failover of a server.
#[derive(Default)]
pub(crate) struct Failover {
    stage: AtomicU8,
    pub(super) underway: Mutex<Underway>,
}

impl Failover {
    /// That of a server.
    pub(crate) fn of(server: &Server) -> &Failover {
        server.services.get()
    }

    /// How far it is.
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

    /// Ends it: writes need not wait any more. `what` says how it has ended.
    pub(crate) fn end(&self, server: &Server, what: &str) {
        if self.stage() == FailoverStage::Off {
            return;
        }
        tracing::info!("the failover is over: {what}");
        self.enter(FailoverStage::Off);
        server.pause.wait_for_failover(false);
        server.look_at_paused();
    }
}
