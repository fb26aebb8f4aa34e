//! Decides which server expires and evicts keys: this one, or the source of its data (with `import-mode`, or on a
//! replica).
//!
//! While the source decides, this server does not remove keys on its own. Expired keys remain, but reads do not see
//! them; a write first removes an expired key, because it would otherwise change the old value. The connection of the
//! source sees expired keys.

use std::sync::atomic::Ordering;

use super::Executor;
use crate::clients::client::Client;

impl Executor {
    /// Returns whether the source of the data decides on expiry and eviction.
    pub(super) fn leaves_expiry_to_others(&self) -> bool {
        self.config.import_mode || self.is_replica
    }

    /// Updates the expiry rules for the next commands.
    pub(super) fn update_expiry_rules(&mut self) {
        let leaves_expiry = self.leaves_expiry_to_others();
        // Expiry waits for the end of a pause, as writes do.
        self.turn.keeps_expired = leaves_expiry || self.server.pause.holds(self.turn.now_ms, true);
        self.turn.keeps_past_expiries = leaves_expiry;
    }

    /// Sets whether the client whose commands run next is the source of the data.
    pub(super) fn update_source(&mut self, client: &Client) {
        self.turn.sees_expired =
            self.leaves_expiry_to_others() && client.view.is_import_source.load(Ordering::Relaxed);
    }
}
