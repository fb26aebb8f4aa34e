//! Client-side caching: records the keys that clients read, and notifies them of changes.
//!
//! A client in default mode is notified of keys that it has read: the shard's observers record the keys while the read
//! holds the shard's lock, so no change is missed. A client in broadcasting mode is notified of all keys with certain
//! prefixes. An invalidation may follow the reply to the read, but never precede it: the reads of a tracking client are
//! not forwarded to other workers, and notifications from other workers arrive as messages, after the batch.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;

use ember_protocol::{Args, Reply};
use emberkv_core::keys::{Guards, Keys};
use emberkv_core::keyspace::SHARDS;
use emberkv_core::spec::Flags;

use super::{Executor, Section};
use crate::catalogue::registry::{Command, Handler};
use crate::clients::client::{Client, ClientView};
use crate::clients::push::Push;
use crate::clients::subscriptions::Address;
use crate::clients::tracking::Choice;
use crate::server::Server;

/// A client that is notified before its next reply, and the buffer of its replies.
pub(super) type AtOnce<'a> = (&'a Client, &'a mut Reply);

impl Server {
    /// Notifies a tracking client, or the client to which it redirects, that keys have changed; `None` means all keys.
    /// If the client is that of `at_once`, the notification is written between its replies, before the next one.
    fn invalidate(
        &self,
        view: &ClientView,
        keys: Option<Vec<Box<[u8]>>>,
        changed_by: Option<u64>,
        at_once: Option<&mut AtOnce<'_>>,
    ) {
        let Some(tracking) = view.tracking.lock().clone() else { return };
        if tracking.no_loop && changed_by == Some(view.id) {
            return;
        }
        let address = match tracking.redirect {
            None => match at_once {
                Some((client, reply)) if client.view.id == view.id => {
                    return Push::Invalidation(keys).write(None, client.subscriptions.is_some(), reply);
                }
                _ => Address::of(view),
            },
            Some(id) => match self.clients.get(id) {
                Some(other) if other.end_reason().is_none() => Address::of(&other),
                _ => {
                    if !tracking.is_redirect_broken.swap(true, Ordering::Relaxed) {
                        self.push(Push::RedirectBroken(id), vec![(Address::of(view), None)]);
                    }
                    return;
                }
            },
        };
        self.push(Push::Invalidation(keys), vec![(address, None)]);
    }
}

impl Executor {
    /// Records the keys that a tracking client has read. The caller still holds the locks of the command's keys.
    #[cold]
    pub(crate) fn track(
        &mut self,
        client: &mut Client,
        command: &'static Command,
        args: Args<'_>,
        guards: &mut Guards<'static>,
    ) {
        let Some(tracking) = &client.tracking else { return };
        let caching = client.caching;
        // In a transaction, CLIENT CACHING applies to all calls until the transaction ends.
        let is_transaction = client.transaction.is_some() || self.section != Section::Shared;
        if !is_transaction && !command.full_name.starts_with("client|") {
            client.caching = None;
        }
        let is_wanted = match tracking.choice {
            Choice::All => true,
            Choice::OptIn => caching == Some(true),
            Choice::OptOut => caching != Some(false),
        };
        let reads =
            matches!(command.handler, Handler::Data(_)) && command.spec.flags.contains(Flags::READONLY);
        if !is_wanted || !reads || tracking.is_broadcast() {
            return;
        }
        let keyspace = &self.server.keyspace;
        let keys_max = usize::try_from(self.config.tracking_table_max_keys).unwrap_or(usize::MAX);
        let keys_max = if keys_max == 0 { usize::MAX } else { keys_max.div_ceil(SHARDS) };
        let known = (0, keyspace.hash(&[]));
        let mut keys = Keys::new(keyspace, guards, args, client.database, known, &mut self.turn);
        for arg in command.spec.key_positions(args) {
            keys.track(arg, client.view.id, keys_max);
        }
    }

    /// Enforces `tracking-table-max-keys` for all shards; each shard enforces its share.
    pub(crate) fn limit_tracked(&mut self) {
        let keys_max = usize::try_from(self.config.tracking_table_max_keys).unwrap_or(usize::MAX);
        if keys_max != 0 && self.server.trackers.len() > 0 {
            // The client that has lowered the limit must be notified, too.
            let is_server_change = std::mem::replace(&mut self.turn.notices.is_server_change, true);
            self.server.keyspace.limit_tracked(keys_max, &mut self.turn);
            self.turn.notices.is_server_change = is_server_change;
        }
    }

    /// Notifies tracking clients of the changes by the last command, or of evictions before a command. The caller holds
    /// no lock.
    pub(super) fn send_invalidations(
        &mut self,
        changed_by: Option<u64>,
        mut at_once: Option<&mut AtOnce<'_>>,
    ) {
        let server = self.server;
        let notices = &mut self.turn.notices;
        if std::mem::take(&mut notices.is_flushed) {
            notices.invalidated.clear();
            for view in server.trackers.all() {
                server.invalidate(&view, None, changed_by, at_once.as_deref_mut());
            }
        }
        for (key, clients) in std::mem::take(&mut notices.invalidated) {
            let changed_by = changed_by.filter(|_| !key.is_server_change);
            for view in clients.into_iter().filter_map(|id| server.trackers.get(id)) {
                // In broadcasting mode, keys that the client has read before are covered by the notifications of all
                // changes.
                if !view.tracking.lock().as_ref().is_some_and(|tracking| tracking.is_broadcast()) {
                    server.invalidate(
                        &view,
                        Some(vec![key.name.clone()]),
                        changed_by,
                        at_once.as_deref_mut(),
                    );
                }
            }
        }
        let changed = std::mem::take(&mut notices.changed);
        if changed.is_empty() {
            return;
        }
        for view in server.trackers.all() {
            let Some(tracking) = view.tracking.lock().clone() else { continue };
            let skips_own = tracking.no_loop && changed_by == Some(view.id);
            // As in Redis: one message per prefix, with all of its keys.
            let mut by_prefix: BTreeMap<usize, BTreeSet<&[u8]>> = BTreeMap::new();
            for key in changed.iter().filter(|key| key.is_server_change || !skips_own) {
                if let Some(prefix) = tracking.prefix_of(&key.name) {
                    by_prefix.entry(prefix).or_default().insert(&key.name);
                }
            }
            for names in by_prefix.into_values() {
                let names = names.into_iter().map(Box::from).collect();
                server.invalidate(&view, Some(names), None, at_once.as_deref_mut());
            }
        }
    }
}
