//! Rounds: commands of the primary that several workers apply together.

use std::ops::Range;

use ember_protocol::OwnedBatch;
use emberkv_core::keyspace::hash::KeyHash;
use emberkv_core::lanes::{Lanes, Plan};
use parking_lot::Mutex;

/// A call of a round.
pub(crate) struct RoundCall {
    /// The command's index in the registry.
    pub(crate) command: u16,
    /// The hash of the call's key, if it has exactly one.
    pub(crate) hash: Option<KeyHash>,
    pub(crate) database: usize,
}

/// Consecutive calls that run as a unit.
pub(crate) struct RoundUnit {
    /// The indexes of the calls.
    pub(crate) calls: Range<usize>,
    /// Whether the calls were sent between MULTI and EXEC.
    pub(crate) is_transaction: bool,
}

/// Consecutive commands of the primary that all access keys. Commands in the same lane keep their order; each lane
/// contains the commands on the shards of one worker.
pub(crate) struct Round {
    pub(crate) commands: OwnedBatch,
    pub(crate) calls: Vec<RoundCall>,
    pub(crate) units: Vec<RoundUnit>,
    pub(crate) lanes: Lanes,
    /// The client id of the primary.
    pub(crate) client_id: u64,
    /// The number of the first call that has failed, and the reason.
    failure: Mutex<Option<(usize, String)>>,
}

/// A round under construction.
pub(crate) struct RoundPlan {
    pub(crate) commands: OwnedBatch,
    pub(crate) calls: Vec<RoundCall>,
    pub(crate) units: Vec<RoundUnit>,
    pub(crate) plan: Plan,
}

impl RoundPlan {
    /// Creates an empty plan for this many workers.
    pub(crate) fn new(workers: usize) -> RoundPlan {
        let plan = Plan::new(workers);
        RoundPlan { commands: OwnedBatch::new(), calls: Vec::new(), units: Vec::new(), plan }
    }

    /// Completes the round.
    pub(crate) fn complete(self, client_id: u64) -> Round {
        let RoundPlan { commands, calls, units, plan } = self;
        Round { commands, calls, units, lanes: Lanes::new(plan), client_id, failure: Mutex::default() }
    }
}

impl Round {
    /// Records that a call has failed.
    pub(crate) fn fail(&self, call: usize, why: String) {
        let mut failure = self.failure.lock();
        if failure.as_ref().is_none_or(|&(first, _)| call < first) {
            *failure = Some((call, why));
        }
    }

    /// Returns the number of the first call that has failed, and the reason.
    pub(crate) fn failure(&self) -> Option<(usize, String)> {
        self.failure.lock().clone()
    }
}
