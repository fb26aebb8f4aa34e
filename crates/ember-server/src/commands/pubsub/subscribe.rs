//! SUBSCRIBE, UNSUBSCRIBE and their forms for patterns and shard channels.

use std::sync::atomic::Ordering;

use ember_protocol::Reply;
use emberkv_core::spec::{Channels, Command, Example, Flags, Spec};

use super::{SHARD_CHANNELS, TEMPLATE};
use crate::clients::subscriptions::{Address, Kind, Name, Subscriptions};
use crate::executor::session::{Outcome, ServerCommand, Session, SessionResult};

const FLAGS: Flags = TEMPLATE.flags.union(Flags::NOSCRIPT);

pub(super) const COMMANDS: &[ServerCommand] = &[
    Command::new(
        Spec {
            name: "subscribe",
            channels: Channels::Subscribed,
            summary: "Listens to channels.",
            complexity: "O(N) for N channels.",
            arity: -2,
            flags: FLAGS,
            syntax: "channel [channel ...]",
            example: Example {
                given: &[],
                call: "SUBSCRIBE news",
                reply: "1) \"subscribe\"\n2) \"news\"\n3) (integer) 1",
            },
            ..TEMPLATE
        },
        Some(|session| subscribe(session, Kind::Channel)),
    ),
    Command::new(
        Spec {
            name: "psubscribe",
            channels: Channels::SubscribedPatterns,
            summary: "Listens to all channels whose names match patterns.",
            complexity: "O(N) for N patterns.",
            arity: -2,
            flags: FLAGS,
            syntax: "pattern [pattern ...]",
            example: Example {
                given: &[],
                call: "PSUBSCRIBE n*",
                reply: "1) \"psubscribe\"\n2) \"n*\"\n3) (integer) 1",
            },
            ..TEMPLATE
        },
        Some(|session| subscribe(session, Kind::Pattern)),
    ),
    Command::new(
        Spec {
            name: "ssubscribe",
            channels: Channels::Subscribed,
            summary: "Listens to shard channels.",
            since: "7.0.0",
            complexity: "O(N) for N channels.",
            arity: -2,
            flags: FLAGS,
            keys: SHARD_CHANNELS,
            syntax: "shardchannel [shardchannel ...]",
            example: Example {
                given: &[],
                call: "SSUBSCRIBE news",
                reply: "1) \"ssubscribe\"\n2) \"news\"\n3) (integer) 1",
            },
            ..TEMPLATE
        },
        Some(|session| subscribe(session, Kind::ShardChannel)),
    ),
    Command::new(
        Spec {
            name: "unsubscribe",
            summary: "Stops listening to channels, or to all of them.",
            complexity: "O(N) for N channels.",
            arity: -1,
            flags: FLAGS,
            syntax: "[channel [channel ...]]",
            example: Example {
                given: &[],
                call: "UNSUBSCRIBE",
                reply: "1) \"unsubscribe\"\n2) (nil)\n3) (integer) 0",
            },
            ..TEMPLATE
        },
        Some(|session| unsubscribe(session, Kind::Channel)),
    ),
    Command::new(
        Spec {
            name: "punsubscribe",
            summary: "Stops listening to patterns, or to all of them.",
            complexity: "O(N) for N patterns.",
            arity: -1,
            flags: FLAGS,
            syntax: "[pattern [pattern ...]]",
            example: Example {
                given: &[],
                call: "PUNSUBSCRIBE n*",
                reply: "1) \"punsubscribe\"\n2) \"n*\"\n3) (integer) 0",
            },
            ..TEMPLATE
        },
        Some(|session| unsubscribe(session, Kind::Pattern)),
    ),
    Command::new(
        Spec {
            name: "sunsubscribe",
            summary: "Stops listening to shard channels, or to all of them.",
            since: "7.0.0",
            complexity: "O(N) for N channels.",
            arity: -1,
            flags: FLAGS,
            keys: SHARD_CHANNELS,
            syntax: "[shardchannel [shardchannel ...]]",
            example: Example {
                given: &[],
                call: "SUNSUBSCRIBE",
                reply: "1) \"sunsubscribe\"\n2) (nil)\n3) (integer) 0",
            },
            ..TEMPLATE
        },
        Some(|session| unsubscribe(session, Kind::ShardChannel)),
    ),
];

fn reply_change(reply: &mut Reply, word: &[u8], name: Option<&[u8]>, count: usize) {
    reply.push(3);
    reply.bulk(word);
    match name {
        Some(name) => reply.bulk(name),
        None => reply.null(),
    }
    reply.integer(count as i64);
}

fn subscribe(session: &mut Session<'_>, kind: Kind) -> SessionResult {
    let address = Address::of(&session.client.view);
    let subscriptions = session.client.subscriptions.get_or_insert_default();
    for name in session.args.skip(1).iter() {
        session.server.pubsub.subscribe(kind, name, address, subscriptions);
        reply_change(session.reply, kind.words().0, Some(name), subscriptions.count(kind));
    }
    note_counts(session);
    Ok(Outcome::Done)
}

fn unsubscribe(session: &mut Session<'_>, kind: Kind) -> SessionResult {
    let address = Address::of(&session.client.view);
    let mut subscriptions = session.client.subscriptions.take().unwrap_or_default();
    let mut end = |subscriptions: &mut Subscriptions, name: &[u8]| {
        session.server.pubsub.unsubscribe(kind, name, address, subscriptions);
        reply_change(session.reply, kind.words().1, Some(name), subscriptions.count(kind));
    };
    if session.args.len() > 1 {
        session.args.skip(1).iter().for_each(|name| end(&mut subscriptions, name));
    } else {
        let all: Vec<Name> = subscriptions.of(kind).iter().cloned().collect();
        all.iter().for_each(|name| end(&mut subscriptions, name));
        if all.is_empty() {
            reply_change(session.reply, kind.words().1, None, subscriptions.count(kind));
        }
    }
    session.client.subscriptions = Some(subscriptions).filter(|subscriptions| !subscriptions.is_empty());
    note_counts(session);
    Ok(Outcome::Done)
}

/// Lets others see how much the client subscribes to.
fn note_counts(session: &Session<'_>) {
    let view = &session.client.view;
    let count = |kind: Kind| {
        let subscriptions = session.client.subscriptions.as_deref();
        subscriptions.map_or(0, |subscriptions| subscriptions.of(kind).len() as u64)
    };
    view.channels.store(count(Kind::Channel), Ordering::Relaxed);
    view.patterns.store(count(Kind::Pattern), Ordering::Relaxed);
    view.shard_channels.store(count(Kind::ShardChannel), Ordering::Relaxed);
}
