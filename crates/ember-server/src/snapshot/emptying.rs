//! The RDB file after a command has removed all keys: a restart must not restore them.

use crate::executor::Executor;
use crate::snapshot::saving;
use crate::snapshot::state::SnapshotState;

/// Aborts a running BGSAVE and saves the data set after a command has removed all keys. If there are save rules, the
/// file is written before the reply, as in Redis. Other clients wait until this file is on the disk; it includes the
/// data that were written since the keys were removed. The worker is inside the gate and holds no lock.
///
/// A replica writes its file in the background: the file's position in the primary's stream is known only after the
/// command, and a replica that starts from the previous file resumes at the position of that file.
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
        // If this scheduled save fails, too, writes are refused as after any failed BGSAVE.
        state.background.schedule();
        tracing::error!(
            "all keys were removed, but the file that contains them cannot be rewritten yet: {error}"
        );
    }
}
