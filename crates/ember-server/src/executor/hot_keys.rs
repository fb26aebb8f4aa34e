//! The most accessed keys of all workers, for commands and subscribers.

use crate::clients::subscriptions::Kind;
use crate::observability::hot_keys::{Access, Announced, HotKey, Merged};
use crate::server::Server;
use crate::system::clock::unix_ms;

impl Server {
    /// Returns the most accessed keys of the last seconds; `wanted` selects reads or writes only.
    pub(crate) fn hottest_keys(&self, wanted: Option<Access>, count: usize) -> Vec<HotKey> {
        let now_ms = unix_ms();
        let mut merged = Merged::default();
        self.workers.iter().for_each(|worker| merged.add(now_ms, &mut worker.hot_keys.lock()));
        merged.hottest(self.config.snapshot().hotkeys_sampling, wanted, count)
    }

    /// Publishes the keys that have become hot, if any client has subscriptions: on the channel
    /// `__hotkeys@<database>__:read` or `__hotkeys@<database>__:write`, with the key as the message.
    pub(crate) fn announce_hot_keys(&self, announced: &mut Announced) {
        if self.pubsub.len(Kind::Channel) + self.pubsub.len(Kind::Pattern) == 0 {
            *announced = Announced::default();
            return;
        }
        for key in announced.update(self.hottest_keys(None, usize::MAX)) {
            let channel = format!("__hotkeys@{}__:{}", key.database, key.access.name());
            self.publish(Kind::Channel, channel.as_bytes(), &key.key);
        }
    }
}
