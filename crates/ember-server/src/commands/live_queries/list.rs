//! WATCH.LIST: lists the queries that the connection watches.

use emberkv_core::spec::{Command, Example, Flags, Spec};

use super::TEMPLATE;
use crate::clients::watchers::Watcher;
use crate::executor::session::{Outcome, ServerCommand, Session, SessionResult};
use crate::live_queries::version;

pub(super) const COMMANDS: &[ServerCommand] = &[Command::new(
    Spec {
        name: "watch.list",
        summary: "Lists the live queries of the connection.",
        complexity: "O(N) for N live queries.",
        arity: 1,
        flags: TEMPLATE.flags.union(Flags::LOADING).union(Flags::STALE),
        example: Example { given: &[], call: "WATCH.LIST", reply: "(empty array)" },
        ..TEMPLATE
    },
    Some(list),
)];

fn list(session: &mut Session<'_>) -> SessionResult {
    let subscriptions = session.client.subscriptions.as_deref();
    let count = subscriptions.map_or(0, |subscriptions| subscriptions.queries.len());
    let reply = &mut *session.reply;
    reply.array(count);
    for (number, watcher) in subscriptions.iter().flat_map(|subscriptions| subscriptions.queries.iter()) {
        let Watcher { query, sent, coalesced, .. } = watcher;
        reply.map(5 + usize::from(watcher.is_channel()));
        reply.bulk(b"fingerprint");
        reply.bulk(number.to_string().as_bytes());
        reply.bulk(b"command");
        let call = query.call();
        reply.array(call.len());
        call.iter().for_each(|word| reply.bulk(word));
        if let Some(name) = watcher.channel() {
            reply.bulk(b"channel");
            reply.bulk(name);
        }
        reply.bulk(b"version");
        match watcher.is_new() {
            true => reply.null(),
            false => {
                let (sequence, hash) = (watcher.sequence, watcher.hash);
                reply.bulk(version::text(session.server, sequence, hash, watcher.position()).as_bytes());
            }
        }
        reply.bulk(b"sent");
        reply.integer(*sent as i64);
        reply.bulk(b"coalesced");
        reply.integer(*coalesced as i64);
    }
    Ok(Outcome::Done)
}
