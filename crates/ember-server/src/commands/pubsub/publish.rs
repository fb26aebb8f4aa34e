//! PUBLISH and SPUBLISH: send a message to the subscribers of a channel.

use emberkv_core::spec::{Channels, Command, Example, Flags, KeyFlags, KeySpec, Spec};

use super::TEMPLATE;
use crate::clients::subscriptions::Kind;
use crate::executor::session::{Outcome, ServerCommand, Session, SessionResult};
use crate::journal::Reader;
use crate::live_queries::channel;
use crate::replication::primary::Primary;

pub(super) const COMMANDS: &[ServerCommand] = &[
    Command::new(
        Spec {
            name: "publish",
            channels: Channels::Published,
            summary: "Sends a message to the subscribers of a channel; returns their number.",
            complexity: "O(N+M) for N subscribers of the channel and M patterns of all clients.",
            arity: 3,
            flags: TEMPLATE.flags.union(Flags::FAST).union(Flags::MAY_REPLICATE),
            syntax: "channel message",
            example: Example { given: &[], call: "PUBLISH news hello", reply: "(integer) 0" },
            ..TEMPLATE
        },
        Some(|session| publish(session, Kind::Channel)),
    ),
    Command::new(
        Spec {
            name: "spublish",
            channels: Channels::Published,
            summary: "Sends a message to the subscribers of a shard channel; returns their number.",
            since: "7.0.0",
            complexity: "O(N) for N subscribers of the channel.",
            arity: 3,
            flags: TEMPLATE.flags.union(Flags::FAST).union(Flags::MAY_REPLICATE),
            keys: &[KeySpec::one(1, KeyFlags::NOT_KEY)],
            syntax: "shardchannel message",
            example: Example { given: &[], call: "SPUBLISH news hello", reply: "(integer) 0" },
            ..TEMPLATE
        },
        Some(|session| publish(session, Kind::ShardChannel)),
    ),
];

fn publish(session: &mut Session<'_>, kind: Kind) -> SessionResult {
    if kind == Kind::Channel && channel::is_watching(session.args.at(1)) {
        return Err(
            "ERR the messages of this channel are states of a live query: clients cannot publish to it"
                .into(),
        );
    }
    let receivers = session.server.publish(kind, session.args.at(1), session.args.at(2));
    if session.turn.journal.readers().contain(Reader::Replicas as u8) {
        let database = Some(session.client.database);
        Primary::of(session.server).pass_on(session.server, session.args.iter(), database);
    }
    session.reply.integer(receivers as i64);
    Ok(Outcome::Done)
}
