//! PUBSUB: lists channels and patterns, and counts subscribers.

use emberkv_core::spec::{Command, Example, Group, Spec};

use super::TEMPLATE;
use crate::catalogue::registry::wrong_subcommand;
use crate::clients::subscriptions::Kind;
use crate::commands::help::{help_subcommand, reply_help};
use crate::executor::session::{Outcome, ServerCommand, Session, SessionResult};

pub(super) const COMMANDS: &[ServerCommand] = &[Command::container(
    Spec {
        name: "pubsub",
        summary: "Contains subcommands for subscriptions.",
        since: "2.8.0",
        group: Group::PubSub,
        complexity: "Depends on the subcommand.",
        arity: -2,
        ..Spec::DEFAULT
    },
    None,
    &[CHANNELS, HELP, NUMPAT, NUMSUB, SHARDCHANNELS, SHARDNUMSUB],
)];

const CHANNELS: ServerCommand = Command::new(
    Spec {
        name: "channels",
        summary: "Returns the channels with subscribers.",
        since: "2.8.0",
        complexity: "O(N) for N channels.",
        arity: -2,
        syntax: "[pattern]",
        example: Example { given: &[], call: "PUBSUB CHANNELS", reply: "(empty array)" },
        ..TEMPLATE
    },
    Some(|session| channels(session, Kind::Channel)),
);

const SHARDCHANNELS: ServerCommand = Command::new(
    Spec {
        name: "shardchannels",
        summary: "Returns the shard channels with subscribers.",
        since: "7.0.0",
        complexity: "O(N) for N shard channels.",
        arity: -2,
        syntax: "[pattern]",
        example: Example { given: &[], call: "PUBSUB SHARDCHANNELS", reply: "(empty array)" },
        ..TEMPLATE
    },
    Some(|session| channels(session, Kind::ShardChannel)),
);

const NUMSUB: ServerCommand = Command::new(
    Spec {
        name: "numsub",
        summary: "Returns the number of subscribers of channels, not counting pattern subscriptions.",
        since: "2.8.0",
        complexity: "O(N) for N given channels.",
        arity: -2,
        syntax: "[channel [channel ...]]",
        example: Example { given: &[], call: "PUBSUB NUMSUB news", reply: "1) \"news\"\n2) (integer) 0" },
        ..TEMPLATE
    },
    Some(|session| listeners(session, Kind::Channel)),
);

const SHARDNUMSUB: ServerCommand = Command::new(
    Spec {
        name: "shardnumsub",
        summary: "Returns the number of subscribers of shard channels.",
        since: "7.0.0",
        complexity: "O(N) for N given shard channels.",
        arity: -2,
        syntax: "[shardchannel [shardchannel ...]]",
        example: Example {
            given: &[],
            call: "PUBSUB SHARDNUMSUB news",
            reply: "1) \"news\"\n2) (integer) 0",
        },
        ..TEMPLATE
    },
    Some(|session| listeners(session, Kind::ShardChannel)),
);

const NUMPAT: ServerCommand = Command::new(
    Spec {
        name: "numpat",
        summary: "Returns the number of distinct patterns with subscribers.",
        since: "2.8.0",
        complexity: "O(1)",
        arity: 2,
        example: Example { given: &[], call: "PUBSUB NUMPAT", reply: "(integer) 0" },
        ..TEMPLATE
    },
    Some(|session| {
        session.reply.integer(session.server.pubsub.len(Kind::Pattern) as i64);
        Ok(Outcome::Done)
    }),
);

const HELP: ServerCommand = help_subcommand(
    Group::PubSub,
    "6.2.0",
    Example {
        given: &[],
        call: "PUBSUB HELP",
        reply: " 1) PUBSUB <subcommand> [<arg> [value] [opt] ...]. Subcommands are:\n 2) CHANNELS [<pattern>]\n...",
    },
    |session| reply_help(session, HELP_LINES),
);

const HELP_LINES: &[&str] = &[
    "CHANNELS [<pattern>]",
    "    List the channels with subscribers, or those of them that match a pattern.",
    "NUMPAT",
    "    Return the number of distinct patterns with subscribers.",
    "NUMSUB [<channel> ...]",
    "    Return the number of subscribers of each channel, without those of patterns.",
    "SHARDCHANNELS [<pattern>]",
    "    List the shard channels with subscribers, or those of them that match a pattern.",
    "SHARDNUMSUB [<shardchannel> ...]",
    "    Return the number of subscribers of each shard channel.",
];

fn channels(session: &mut Session<'_>, kind: Kind) -> SessionResult {
    if session.args.len() > 3 {
        return Err(wrong_subcommand("PUBSUB", session.args.at(1)));
    }
    let names = session.server.pubsub.names(kind, session.args.get(2));
    session.reply.array(names.len());
    names.iter().for_each(|name| session.reply.bulk(name));
    Ok(Outcome::Done)
}

fn listeners(session: &mut Session<'_>, kind: Kind) -> SessionResult {
    let names = session.args.skip(2);
    session.reply.array(2 * names.len());
    for name in names.iter() {
        session.reply.bulk(name);
        session.reply.integer(session.server.pubsub.listeners(kind, name) as i64);
    }
    Ok(Outcome::Done)
}
