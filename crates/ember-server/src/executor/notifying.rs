//! Delivers the notifications that a command has collected ([`Notices`]) once it has released its locks.
//!
//! [`Notices`]: emberkv_core::events::Notices

use emberkv_core::events::Errand;
use emberkv_core::keys::Guards;

use super::tracking::AtOnce;
use super::{AfterEmptying, Executor, Section, linking};
use crate::tiers::demotion;

impl Executor {
    /// Delivers the notifications of the last command. In a transaction, it does nothing: its notifications are
    /// delivered together at the end.
    #[inline]
    pub(crate) fn deliver(&mut self, guards: &mut Guards<'static>, changed_by: Option<u64>) {
        if !self.turn.notices.is_empty() && self.section == Section::Shared {
            self.deliver_notices(guards, changed_by, None);
        }
    }

    /// Delivers notifications now; notifications for the client of `at_once` are written between its replies.
    #[cold]
    pub(super) fn deliver_notices(
        &mut self,
        guards: &mut Guards<'static>,
        changed_by: Option<u64>,
        mut at_once: Option<AtOnce<'_>>,
    ) {
        guards.release(&self.server.keyspace, &mut self.turn);
        if self.turn.notices.is_flushed {
            self.log_emptying(changed_by);
        }
        self.publish_events();
        self.send_invalidations(changed_by, at_once.as_mut());
        while !self.turn.notices.ready.is_empty() {
            self.serve_ready();
            self.publish_events();
            self.send_invalidations(changed_by, at_once.as_mut());
        }
        self.send_marked();
        self.send_on_errands();
        if std::mem::take(&mut self.turn.notices.is_emptied) {
            let AfterEmptying(act) = *self.server.services.get::<AfterEmptying>();
            act(self);
        }
    }

    /// Logs that databases have been emptied, by a command or by the load of other data.
    fn log_emptying(&self, changed_by: Option<u64>) {
        let what = if self.turn.notices.is_emptied { "all databases have" } else { "a database has" };
        let client = || changed_by.and_then(|id| self.server.clients.get(id)).map(|view| view.log_name());
        tracing::debug!("{what} been emptied by {}", client().unwrap_or_else(|| "the server".to_owned()));
    }

    /// Passes the background work that the last command has requested to other threads. The caller holds no lock.
    fn send_on_errands(&mut self) {
        for (errand, database, key) in self.turn.notices.errands.drain(..) {
            match errand {
                Errand::Link => linking::Links::of(self.server).link(self.server, (database, key)),
                Errand::Demote => demotion::queue_demotion(self.server, database, key),
            }
        }
    }

    fn publish_events(&mut self) {
        for notice in std::mem::take(&mut self.turn.notices.events) {
            self.server.publish_event(&notice, self.config.notify_keyspace_events.0);
        }
    }
}
