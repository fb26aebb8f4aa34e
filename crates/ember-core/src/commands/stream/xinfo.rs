//! XINFO CONSUMERS, GROUPS, HELP, STREAM.

use ember_protocol::Reply;

use super::ids::{no_group, reply_entries, reply_entry, reply_id, unknown_options};
use crate::call::{Attempt, AttemptResult, Call, CommandResult, DataCommand, Run};
use crate::commands::arguments::{integer, is_word};
use crate::error::CommandError;
use crate::spec::{Command, Example, Flags, Group as CommandGroup, KeyFlags, KeySpec, Spec};
use crate::types::Collection;
use crate::types::stream::{Consumer, Entry, Group, Log, Stream, StreamId};

pub(crate) const COMMANDS: &[DataCommand] = &[Command::container(
    Spec {
        name: "xinfo",
        summary: "Contains subcommands that describe streams, consumer groups and consumers.",
        since: "5.0.0",
        group: CommandGroup::Stream,
        complexity: "Depends on the subcommand.",
        arity: -2,
        ..Spec::DEFAULT
    },
    Run::Container,
    SUBCOMMANDS,
)];

const TEMPLATE: Spec = Spec {
    since: "5.0.0",
    group: CommandGroup::Stream,
    flags: Flags::READONLY,
    keys: &[KeySpec::one(2, KeyFlags::RO.union(KeyFlags::ACCESS))],
    ..Spec::DEFAULT
};

const SUBCOMMANDS: &[DataCommand] = &[
    Command::new(
        Spec {
            name: "consumers",
            summary: "Returns information about the consumers of a group.",
            complexity: "O(N) for N consumers",
            arity: 4,
            tips: &["nondeterministic_output"],
            syntax: "key groupname",
            history: &[("7.2.0", "`inactive` came.")],
            example: Example {
                given: &["XGROUP CREATE readings workers $ MKSTREAM"],
                call: "XINFO CONSUMERS readings workers",
                reply: "(empty array)",
            },
            ..TEMPLATE
        },
        Run::Long(consumers),
    ),
    Command::new(
        Spec {
            name: "groups",
            summary: "Returns information about the consumer groups of a stream.",
            complexity: "O(N) for N groups",
            arity: 3,
            syntax: "key",
            history: &[("7.0.0", "`entries-read` and `lag` came.")],
            example: Example {
                given: &["XADD readings 1-1 a 1", "XGROUP CREATE readings workers 0"],
                call: "XINFO GROUPS readings",
                reply: "1)  1) \"name\"\n    2) \"workers\"\n    3) \"consumers\"\n    4) (integer) 0\n    \
                        5) \"pending\"\n    6) (integer) 0\n    7) \"last-delivered-id\"\n    8) \"0-0\"\n    \
                        9) \"entries-read\"\n   10) (nil)\n   11) \"lag\"\n   12) (integer) 1",
            },
            ..TEMPLATE
        },
        Run::Long(groups),
    ),
    Command::new(
        Spec {
            name: "help",
            summary: "Describes the subcommands.",
            arity: 2,
            flags: Flags::LOADING.union(Flags::STALE),
            keys: &[],
            example: Example {
                given: &[],
                call: "XINFO HELP",
                reply: " 1) XINFO <subcommand> [<arg> [value] [opt] ...]. Subcommands are:\n 2) CONSUMERS <key> <group>\n...",
            },
            ..TEMPLATE
        },
        Run::Keys(help),
    ),
    Command::new(
        Spec {
            name: "stream",
            summary: "Returns information about a stream, with FULL also about its entries, groups and consumers.",
            complexity: "O(1), in full O(N) for N entries, groups, consumers and pending entries in the reply",
            arity: -3,
            syntax: "key full-block:[FULL [COUNT count]]",
            history: &[
                ("6.0.0", "`FULL` came."),
                (
                    "7.0.0",
                    "`max-deleted-entry-id`, `entries-added`, `recorded-first-entry-id`, `entries-read` and `lag` came.",
                ),
                ("7.2.0", "Added `active-time`; `seen-time` is the time of the last attempt."),
            ],
            example: Example {
                given: &["XADD readings 1-1 a 1"],
                call: "XINFO STREAM readings",
                reply: " 1) \"length\"\n 2) (integer) 1\n 3) \"radix-tree-keys\"\n 4) (integer) 1\n 5) \
                        \"radix-tree-nodes\"\n 6) (integer) 2\n 7) \"last-generated-id\"\n 8) \"1-1\"\n 9) \
                        \"max-deleted-entry-id\"\n10) \"0-0\"\n11) \"entries-added\"\n12) (integer) 1\n13) \
                        \"recorded-first-entry-id\"\n14) \"1-1\"\n15) \"groups\"\n16) (integer) 0\n17) \
                        \"first-entry\"\n18) 1) \"1-1\"\n    2) 1) \"a\"\n       2) \"1\"\n19) \"last-entry\"\n20) 1) \
                        \"1-1\"\n    2) 1) \"a\"\n       2) \"1\"",
            },
            ..TEMPLATE
        },
        Run::Long(stream),
    ),
];

const HELP: [&str; 10] = [
    "XINFO <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "CONSUMERS <key> <group>",
    "    Describe the consumers of a group.",
    "GROUPS <key>",
    "    Describe the consumer groups of a stream.",
    "STREAM <key> [FULL [COUNT <count>]]",
    "    Describe a stream; FULL includes its first entries, its groups and what is",
    "    pending.",
    "HELP",
    "    Print this help.",
];

/// The default COUNT of FULL, for entries and for pending entries.
const COUNT: usize = 10;

fn help(call: &mut Call<'_, '_>) -> CommandResult {
    call.reply.array(HELP.len());
    HELP.iter().for_each(|line| call.reply.simple(line));
    Ok(())
}

fn reply_field(reply: &mut Reply, name: &str, number: i64) {
    reply.bulk(name.as_bytes());
    reply.integer(number);
}

fn reply_id_field(reply: &mut Reply, name: &str, id: StreamId) {
    reply.bulk(name.as_bytes());
    reply_id(reply, id);
}

fn reply_known(reply: &mut Reply, name: &str, number: Option<i64>) {
    reply.bulk(name.as_bytes());
    match number {
        Some(number) => reply.integer(number),
        None => reply.null(),
    }
}

fn reply_name(reply: &mut Reply, name: &[u8]) {
    reply.bulk(b"name");
    reply.bulk(name);
}

fn consumers(call: &mut Call<'_, '_>) -> AttemptResult {
    let (args, now_ms, steps_max) = (call.args, call.keys.turn.now_ms, call.steps_max());
    let Call { keys, reply, .. } = call;
    let stream = keys.read_value::<Stream>(2)?.ok_or(CommandError::NoSuchKey)?;
    let group = stream.groups().get(args.at(3)).ok_or_else(|| no_group(args.at(2), args.at(3)))?;
    if group.consumers().len() > steps_max {
        return Ok(Attempt::Offload);
    }
    reply.array(group.consumers().len());
    for consumer in group.consumers() {
        reply.map(4);
        reply_name(reply, consumer.name());
        reply_field(reply, "pending", consumer.pending_count() as i64);
        reply_field(reply, "idle", now_ms.wrapping_sub(consumer.seen_ms).max(0));
        let inactive_ms = consumer.active_ms.map_or(-1, |active_ms| now_ms.wrapping_sub(active_ms));
        reply_field(reply, "inactive", inactive_ms);
    }
    Ok(Attempt::Done)
}

fn groups(call: &mut Call<'_, '_>) -> AttemptResult {
    let steps_max = call.steps_max();
    let Call { keys, reply, .. } = call;
    let stream = keys.read_value::<Stream>(2)?.ok_or(CommandError::NoSuchKey)?;
    if stream.groups().len() > steps_max {
        return Ok(Attempt::Offload);
    }
    reply.array(stream.groups().len());
    for (name, group) in stream.groups().iter() {
        reply.map(6);
        reply_name(reply, name);
        reply_field(reply, "consumers", group.consumers().len() as i64);
        reply_field(reply, "pending", group.pending_count() as i64);
        reply_id_field(reply, "last-delivered-id", group.last_id);
        reply_known(reply, "entries-read", group.entries_read);
        reply_known(reply, "lag", group.lag(stream.log()));
    }
    Ok(Attempt::Done)
}

/// Returns the COUNT of FULL, where 0 means no limit; `None` if the call does not contain FULL.
fn read_count(call: &Call<'_, '_>) -> Result<Option<usize>, CommandError> {
    let args = call.args;
    match args.len() {
        3 => Ok(None),
        4 if is_word(args, 3, "FULL") => Ok(Some(COUNT)),
        6 if is_word(args, 3, "FULL") && is_word(args, 4, "COUNT") => {
            Ok(Some(usize::try_from(integer(args, 5)?).unwrap_or(COUNT)))
        }
        _ => Err(unknown_options(args)),
    }
}

fn stream(call: &mut Call<'_, '_>) -> AttemptResult {
    call.keys.read_value::<Stream>(2)?.ok_or(CommandError::NoSuchKey)?;
    let count = read_count(call)?;
    let steps_max = call.steps_max();
    let Call { keys, reply, .. } = call;
    let stream = keys.value::<Stream>(2)?.expect("it was read under the same lock");
    if count.is_some_and(|count| full_steps(stream, count) > steps_max) {
        return Ok(Attempt::Offload);
    }
    let log = stream.log();
    reply.map(if count.is_some() { 9 } else { 10 });
    reply_field(reply, "length", log.len() as i64);
    // ember has no radix tree; the reply contains the numbers that Redis reports for the same blocks with one node per
    // block.
    reply_field(reply, "radix-tree-keys", log.block_count() as i64);
    reply_field(reply, "radix-tree-nodes", log.block_count() as i64 + 1);
    reply_id_field(reply, "last-generated-id", log.last_id());
    reply_id_field(reply, "max-deleted-entry-id", log.max_deleted_id());
    reply_field(reply, "entries-added", log.entries_added() as i64);
    reply_id_field(reply, "recorded-first-entry-id", log.first_id());
    if let Some(count) = count {
        reply.bulk(b"entries");
        reply_entries(reply, log.range(StreamId::MIN..=StreamId::MAX), count);
        reply.bulk(b"groups");
        reply.array(stream.groups().len());
        stream.groups().iter().for_each(|(name, group)| reply_group(reply, log, name, group, count));
    } else {
        reply_field(reply, "groups", stream.groups().len() as i64);
        reply_entry_field(reply, "first-entry", log.range(StreamId::MIN..=StreamId::MAX).next());
        reply_entry_field(reply, "last-entry", log.range_back(StreamId::MIN..=StreamId::MAX).next());
    }
    Ok(Attempt::Done)
}

/// Returns the total number of entries, pending entries, groups and consumers that FULL returns.
fn full_steps(stream: &Stream, count: usize) -> usize {
    let of_group = |group: &Group| {
        // Twice, because each pending entry is also listed for its consumer.
        2 * shown_count(group.pending_count(), count) + group.consumers().len()
    };
    shown_count(stream.len(), count) + stream.groups().iter().map(|(_, group)| of_group(group)).sum::<usize>()
}

fn reply_entry_field(reply: &mut Reply, name: &str, entry: Option<Entry<'_>>) {
    reply.bulk(name.as_bytes());
    match entry {
        Some(entry) => reply_entry(reply, &entry),
        None => reply.null(),
    }
}

fn reply_group(reply: &mut Reply, log: &Log, name: &[u8], group: &Group, count: usize) {
    reply.map(7);
    reply_name(reply, name);
    reply_id_field(reply, "last-delivered-id", group.last_id);
    reply_known(reply, "entries-read", group.entries_read);
    reply_known(reply, "lag", group.lag(log));
    reply_field(reply, "pel-count", group.pending_count() as i64);
    reply.bulk(b"pending");
    reply.array(shown_count(group.pending_count(), count));
    for (id, pending) in group.pending(StreamId::MIN..=StreamId::MAX).take(shown_count(usize::MAX, count)) {
        reply.array(4);
        reply_id(reply, id);
        reply.bulk(group.consumer(pending.consumer).name());
        reply.integer(pending.delivered_ms);
        reply.integer(pending.deliveries as i64);
    }
    reply.bulk(b"consumers");
    reply.array(group.consumers().len());
    group.consumers().for_each(|consumer| reply_consumer(reply, group, consumer, count));
}

/// Returns the number of entries that the reply shows out of `len`.
fn shown_count(len: usize, count: usize) -> usize {
    if count == 0 { len } else { len.min(count) }
}

fn reply_consumer(reply: &mut Reply, group: &Group, consumer: &Consumer, count: usize) {
    reply.map(5);
    reply_name(reply, consumer.name());
    reply_field(reply, "seen-time", consumer.seen_ms);
    reply_field(reply, "active-time", consumer.active_ms.unwrap_or(-1));
    reply_field(reply, "pel-count", consumer.pending_count() as i64);
    reply.bulk(b"pending");
    reply.array(shown_count(consumer.pending_count(), count));
    for id in consumer.pending(StreamId::MIN..=StreamId::MAX).take(shown_count(usize::MAX, count)) {
        let pending = group.pending_entry(id).expect("a consumer's pending entries are the group's");
        reply.array(3);
        reply_id(reply, id);
        reply.integer(pending.delivered_ms);
        reply.integer(pending.deliveries as i64);
    }
}
