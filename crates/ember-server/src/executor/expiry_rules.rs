//! Which server decides on expiry and eviction: this one, or the source of its data (`import-mode`, or its primary).
//!
//! While the source decides, this server removes no key on its own. Readers do not see expired keys, but the keys stay;
//! a writer removes an expired key first, because its change would build on it. The connection of the source sees
//! expired keys.

use std::sync::atomic::Ordering;

use super::Executor;
use crate::clients::client::Client;

impl Executor {
    /// Returns whether the source of the data decides.
    pub(super) fn leaves_expiry_to_others(&self) -> bool {
        self.config.import_mode || self.is_replica
    }

    /// Sets for the next commands which server decides.
    pub(super) fn update_expiry_rules(&mut self) {
        let leaves_expiry = self.leaves_expiry_to_others();
        // Writes wait for the end of a pause, and so does expiry.
        self.turn.keeps_expired = leaves_expiry || self.server.pause.holds(self.turn.now_ms, true);
        self.turn.keeps_past_expiries = leaves_expiry;
    }

    /// Sets whether the client whose commands run is the source.
    pub(super) fn update_source(&mut self, client: &Client) {
        self.turn.sees_expired =
            self.leaves_expiry_to_others() && client.view.is_import_source.load(Ordering::Relaxed);
    }
}
