//! Who decides when keys expire and which are evicted: this server, or others, from whom it gets its data (`import-mode`,
//! or its primary).
//!
//! While others decide, nothing goes by itself. Readers do not find what has expired, but it stays; a writer that meets it
//! removes it first, since it would build on it otherwise. To the connection of those who decide nothing has expired.

use std::sync::atomic::Ordering;

use super::Executor;
use crate::clients::client::Client;

impl Executor {
    /// Whether others decide.
    pub(super) fn leaves_expiry_to_others(&self) -> bool {
        self.config.import_mode || self.is_replica
    }

    /// Notes for commands to come who decides.
    pub(super) fn note_expiry_rules(&mut self) {
        let leaves_expiry = self.leaves_expiry_to_others();
        // What writes waits for the end of a pause, so expiry does.
        self.turn.keeps_expired = leaves_expiry || self.server.pause.holds(self.turn.now_ms, true);
        self.turn.keeps_past_expiries = leaves_expiry;
    }

    /// Notes whether the client whose commands run is one of those.
    pub(super) fn note_who_decides(&mut self, client: &Client) {
        self.turn.sees_expired =
            self.leaves_expiry_to_others() && client.view.is_import_source.load(Ordering::Relaxed);
    }
}
