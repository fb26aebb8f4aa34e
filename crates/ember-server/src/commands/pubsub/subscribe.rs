//! SUBSCRIBE and UNSUBSCRIBE, also for patterns and shard channels.

use std::sync::atomic::Ordering;

use ember_protocol::OwnedBatch;
use emberkv_core::error::CommandError;
use emberkv_core::spec::{Channels, Command, Example, Flags, Spec};

use super::{SHARD_CHANNELS, TEMPLATE};
use crate::clients::client::Client;
use crate::clients::subscriptions::{Address, Kind, Name, Subscriptions, write_change};
use crate::clients::watchers::{Form, Pace};
use crate::executor::session::{Execution, Outcome, ServerCommand, Session, SessionResult};
use crate::executor::{Section, authorization};
use crate::live_queries::channel;
use crate::live_queries::opening::{self, Wish};

const FLAGS: Flags = TEMPLATE.flags.union(Flags::NOSCRIPT);

pub(super) const COMMANDS: &[ServerCommand] = &[
    Command::new(
        Spec {
            name: "subscribe",
            channels: Channels::Subscribed,
            summary: "Subscribes to channels.",
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
            summary: "Subscribes to all channels that match patterns.",
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
            summary: "Subscribes to shard channels.",
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
            summary: "Unsubscribes from some or all channels.",
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
            summary: "Unsubscribes from some or all patterns.",
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
            summary: "Unsubscribes from some or all shard channels.",
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

fn subscribe(session: &mut Session<'_>, kind: Kind) -> SessionResult {
    if kind == Kind::Channel && session.args.iter().skip(1).any(channel::is_watching) {
        return Ok(Outcome::Continue(subscribe_watching));
    }
    let address = Address::of(&session.client.view);
    let subscriptions = session.client.subscriptions.get_or_insert_default();
    for name in session.args.skip(1).iter() {
        session.server.pubsub.subscribe(kind, name, address, subscriptions);
        write_change(session.reply, kind.words().0, Some(name), subscriptions.count(kind));
    }
    publish_counts(session.client);
    Ok(Outcome::Done)
}

/// Handles a SUBSCRIBE that includes channels of live queries.
fn subscribe_watching(execution: &mut Execution<'_>) -> SessionResult {
    if execution.executor.section != Section::Shared {
        return Err("ERR live queries cannot be watched inside of a transaction".into());
    }
    let (server, args) = (execution.executor.server, execution.args);
    for (number, name) in args.iter().enumerate().skip(1) {
        if channel::is_watching(name) {
            if let Err(error) = watch(execution, name) {
                if number == 1 {
                    return Err(error);
                }
                // The replies for the preceding channels are written already, so the error cannot be returned.
                execution.executor.count_error(&error.text());
                execution.reply.error_bytes(&error.text());
            }
        } else {
            let address = Address::of(&execution.client.view);
            let subscriptions = execution.client.subscriptions.get_or_insert_default();
            server.pubsub.subscribe(Kind::Channel, name, address, subscriptions);
            let count = subscriptions.count(Kind::Channel);
            write_change(execution.reply, Kind::Channel.words().0, Some(name), count);
        }
    }
    publish_counts(execution.client);
    Ok(Outcome::Done)
}

/// Watches the query that the name of a channel contains.
fn watch(execution: &mut Execution<'_>, name: &[u8]) -> Result<(), CommandError> {
    let wrong = "ERR the name of the channel is not __watch@<database>__:<command line>";
    let (database, words) = channel::parse(name).ok_or(wrong)?;
    if database >= execution.executor.server.keyspace.databases() {
        return Err("ERR DB index is out of range".into());
    }
    authorization::authorize_database(execution.executor.server, execution.client, database)?;
    let mut call = OwnedBatch::new();
    call.push(&words.iter().map(Vec::as_slice).collect::<Vec<_>>());
    let form = Form::Channel(Name::from(name));
    let wish = Wish { call: call.command(0), database, form, pace: Pace::default(), since: None };
    opening::open(execution, &wish).map(|_| ())
}

fn unsubscribe(session: &mut Session<'_>, kind: Kind) -> SessionResult {
    let channels: Vec<Name> = match session.args.len() {
        1 => session.client.subscriptions.iter().flat_map(|all| all.of(Kind::Channel)).cloned().collect(),
        _ => session.args.iter().skip(1).map(Name::from).collect(),
    };
    if kind == Kind::Channel && channels.iter().any(|name| channel::is_watching(name)) {
        return Ok(Outcome::Continue(unsubscribe_watching));
    }
    unsubscribe_all(session, kind)
}

/// Handles an UNSUBSCRIBE that includes channels of live queries.
fn unsubscribe_watching(execution: &mut Execution<'_>) -> SessionResult {
    if execution.executor.section != Section::Shared {
        return Err("ERR live queries cannot be unwatched inside of a transaction".into());
    }
    let server = execution.executor.server;
    let turn = &mut execution.executor.turn;
    let channels: Vec<Name> = match execution.args.len() {
        1 => execution.client.subscriptions.iter().flat_map(|all| all.of(Kind::Channel)).cloned().collect(),
        _ => execution.args.iter().skip(1).map(Name::from).collect(),
    };
    for name in channels.iter().filter(|name| channel::is_watching(name)) {
        opening::leave_channel(server, turn, execution.client, name);
    }
    let Execution { client, command, args, reply, .. } = execution;
    unsubscribe_all(&mut Session { args: *args, command, server, client, turn, reply }, Kind::Channel)
}

fn unsubscribe_all(session: &mut Session<'_>, kind: Kind) -> SessionResult {
    let address = Address::of(&session.client.view);
    let mut subscriptions = session.client.subscriptions.take().unwrap_or_default();
    let mut end = |subscriptions: &mut Subscriptions, name: &[u8]| {
        session.server.pubsub.unsubscribe(kind, name, address, subscriptions);
        write_change(session.reply, kind.words().1, Some(name), subscriptions.count(kind));
    };
    if session.args.len() > 1 {
        session.args.skip(1).iter().for_each(|name| end(&mut subscriptions, name));
    } else {
        let all: Vec<Name> = subscriptions.of(kind).iter().cloned().collect();
        all.iter().for_each(|name| end(&mut subscriptions, name));
        if all.is_empty() {
            write_change(session.reply, kind.words().1, None, subscriptions.count(kind));
        }
    }
    session.client.subscriptions = Some(subscriptions).filter(|subscriptions| !subscriptions.is_empty());
    publish_counts(session.client);
    Ok(Outcome::Done)
}

/// Stores the client's numbers of subscriptions in its view, which other workers can read.
fn publish_counts(client: &Client) {
    let view = &client.view;
    let count = |kind: Kind| {
        let subscriptions = client.subscriptions.as_deref();
        subscriptions.map_or(0, |subscriptions| subscriptions.of(kind).len() as u32)
    };
    view.channels.store(count(Kind::Channel), Ordering::Relaxed);
    view.patterns.store(count(Kind::Pattern), Ordering::Relaxed);
    view.shard_channels.store(count(Kind::ShardChannel), Ordering::Relaxed);
}
