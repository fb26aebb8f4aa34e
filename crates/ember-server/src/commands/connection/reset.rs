//! RESET: returns the connection to its initial state.

use std::sync::atomic::Ordering;

use ember_protocol::Protocol;
use emberkv_core::spec::{Command, Example, Group, Spec};

use super::handshake::HANDSHAKE;
use crate::acl::identity::Identity;
use crate::clients::client::{Client, ReplyMode};
use crate::clients::subscriptions::Address;
use crate::clients::transaction;
use crate::executor::session::{Outcome, ServerCommand, Session, SessionResult};
use crate::live_queries::opening;

pub(super) const COMMANDS: &[ServerCommand] = &[Command::new(
    Spec {
        name: "reset",
        summary: "Resets the connection to its initial state.",
        since: "6.2.0",
        group: Group::Connection,
        complexity: "O(1)",
        arity: 1,
        flags: HANDSHAKE,
        is_immediate: true,
        example: Example { given: &[], call: "RESET", reply: "RESET" },
        ..Spec::DEFAULT
    },
    Some(reset),
)];

fn reset(session: &mut Session<'_>) -> SessionResult {
    transaction::discard(&session.server.keyspace, session.turn, session.client);
    opening::end_all(session.server, session.turn, session.client);
    if let Some(mut subscriptions) = session.client.subscriptions.take() {
        session.server.pubsub.forget(Address::of(&session.client.view), &mut subscriptions);
    }
    let view = &session.client.view;
    session.server.trackers.end(view);
    if view.is_monitor.swap(false, Ordering::Relaxed) {
        session.server.monitors.remove(Address::of(view));
    }
    let view = session.client.view.clone();
    view.database.store(0, Ordering::Relaxed);
    view.is_resp3.store(false, Ordering::Relaxed);
    view.no_evict.store(false, Ordering::Relaxed);
    view.no_touch.store(false, Ordering::Relaxed);
    view.is_readonly.store(false, Ordering::Relaxed);
    view.is_import_source.store(false, Ordering::Relaxed);
    for count in [&view.channels, &view.patterns, &view.shard_channels] {
        count.store(0, Ordering::Relaxed);
    }
    view.edit_names(|names| names.name = Box::default());
    let skips = session.client.reply_mode == ReplyMode::Skip;
    *session.client = Client::new(view, Identity::unknown(&session.server.acl));
    if skips {
        session.client.reply_mode = ReplyMode::Skip;
    }
    session.reply.set_protocol(Protocol::Resp2);
    session.reply.simple("RESET");
    Ok(Outcome::Done)
}
