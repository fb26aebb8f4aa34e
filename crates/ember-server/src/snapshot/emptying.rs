//! What becomes of the RDB file when all keys are removed: it must not bring them back.

use crate::executor::Executor;
use crate::snapshot::saving;
use crate::snapshot::state::SnapshotState;

/// Called when a command has removed all keys. A BGSAVE of them is abandoned, and where there are save rules the file is
/// written before the command is answered, as in Redis. Other clients wait meanwhile: for what was written since the
/// keys were removed, and for the disk. The worker is inside the gate and holds no lock.
///
/// A replica has its file written in the background: the place that the file names in the stream of its primary is known
/// after the command only, and a replica that starts from the file of before goes on from the place of that one.
#[cold]
pub(crate) fn save_emptied(executor: &mut Executor) {
    let server = executor.server;
    let state = SnapshotState::of(server);
    state.claims.abandon_save();
    if executor.config.save.is_empty() {
        return;
    }
    if executor.is_applying() {
        return state.background.schedule();
    }
    let saved = executor.with_exclusive_access(|executor, _| {
        executor.publish();
        saving::save(server, &executor.config, &executor.turn)
    });
    if let Err(error) = saved {
        // If that fails, too, writes are refused as after every failed BGSAVE.
        state.background.schedule();
        tracing::error!(
            "all keys are removed, and the file that has them cannot be written anew yet: {error}"
        );
    }
}
