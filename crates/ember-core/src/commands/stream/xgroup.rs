//! XGROUP CREATE, CREATECONSUMER, DELCONSUMER, DESTROY, HELP, SETID.

use super::ids::{exact_id, id, no_group, unknown_options};
use super::xreadgroup::see_consumer;
use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::commands::arguments::{integer, is_word};
use crate::effects::events::Event;
use crate::error::CommandError;
use crate::keys::{Edited, Key};
use crate::spec::{Command, Example, Flags, Group as CommandGroup, KeyFlags, KeySpec, Spec};
use crate::types::stream::{Group, Stream, StreamId};

pub(crate) const COMMANDS: &[DataCommand] = &[Command::container(
    Spec {
        name: "xgroup",
        summary: "Contains subcommands for consumer groups.",
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
    flags: Flags::WRITE,
    keys: &[KeySpec::one(2, KeyFlags::RW.union(KeyFlags::DELETE))],
    ..Spec::DEFAULT
};

const SUBCOMMANDS: &[DataCommand] = &[
    Command::new(
        Spec {
            name: "create",
            summary: "Creates a consumer group that reads a stream after an ID.",
            arity: -5,
            flags: Flags::WRITE.union(Flags::DENYOOM),
            keys: &[KeySpec::one(2, KeyFlags::RW.union(KeyFlags::INSERT))],
            syntax: "key groupname id:<id | $> [MKSTREAM] [ENTRIESREAD entries_read]",
            history: &[("7.0.0", "`ENTRIESREAD` came.")],
            example: Example { given: &[], call: "XGROUP CREATE readings workers $ MKSTREAM", reply: "OK" },
            ..TEMPLATE
        },
        Run::Keys(create),
    ),
    Command::new(
        Spec {
            name: "createconsumer",
            summary: "Creates a consumer in a group; returns 0 if it exists.",
            since: "6.2.0",
            arity: 5,
            flags: Flags::WRITE.union(Flags::DENYOOM),
            keys: &[KeySpec::one(2, KeyFlags::RW.union(KeyFlags::INSERT))],
            syntax: "key groupname consumername",
            example: Example {
                given: &["XGROUP CREATE readings workers $ MKSTREAM"],
                call: "XGROUP CREATECONSUMER readings workers w1",
                reply: "(integer) 1",
            },
            ..TEMPLATE
        },
        Run::Keys(create_consumer),
    ),
    Command::new(
        Spec {
            name: "delconsumer",
            summary: "Removes a consumer with its pending entries; returns their number.",
            complexity: "O(N log P) for N entries it has yet to acknowledge of P that are pending",
            arity: 5,
            syntax: "key groupname consumername",
            example: Example {
                given: &[
                    "XADD readings 1-1 a 1",
                    "XGROUP CREATE readings workers 0",
                    "XREADGROUP GROUP workers w1 STREAMS readings >",
                ],
                call: "XGROUP DELCONSUMER readings workers w1",
                reply: "(integer) 1",
            },
            ..TEMPLATE
        },
        Run::Keys(delete_consumer),
    ),
    Command::new(
        Spec {
            name: "destroy",
            summary: "Removes a consumer group; returns 0 if it is missing.",
            complexity: "O(N) for N pending entries",
            arity: 4,
            syntax: "key groupname",
            example: Example {
                given: &["XGROUP CREATE readings workers $ MKSTREAM"],
                call: "XGROUP DESTROY readings workers",
                reply: "(integer) 1",
            },
            ..TEMPLATE
        },
        Run::Keys(destroy),
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
                call: "XGROUP HELP",
                reply: " 1) XGROUP <subcommand> [<arg> [value] [opt] ...]. Subcommands are:\n 2) CREATE <key> <group> <id|$> [MKSTREAM] [ENTRIESREAD <count>]\n...",
            },
            ..TEMPLATE
        },
        Run::Keys(help),
    ),
    Command::new(
        Spec {
            name: "setid",
            summary: "Sets the ID after which a consumer group reads a stream.",
            arity: -5,
            keys: &[KeySpec::one(2, KeyFlags::RW.union(KeyFlags::UPDATE))],
            syntax: "key groupname id:<id | $> [ENTRIESREAD entries_read]",
            history: &[("7.0.0", "`ENTRIESREAD` came.")],
            example: Example {
                given: &["XGROUP CREATE readings workers $ MKSTREAM"],
                call: "XGROUP SETID readings workers 0",
                reply: "OK",
            },
            ..TEMPLATE
        },
        Run::Keys(set_id),
    ),
];

const HELP: [&str; 18] = [
    "XGROUP <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "CREATE <key> <group> <id|$> [MKSTREAM] [ENTRIESREAD <count>]",
    "    Create a consumer group that reads the entries after <id>, or only new entries",
    "    ($). MKSTREAM creates the stream if it is missing. ENTRIESREAD is the number of",
    "    entries up to <id>.",
    "CREATECONSUMER <key> <group> <consumer>",
    "    Create a consumer in a group.",
    "DELCONSUMER <key> <group> <consumer>",
    "    Remove a consumer with its pending entries.",
    "DESTROY <key> <group>",
    "    Remove a consumer group.",
    "SETID <key> <group> <id|$> [ENTRIESREAD <count>]",
    "    Let a consumer group read the entries after <id>.",
    "HELP",
    "    Print this help.",
    "Entries that were delivered to a consumer stay pending until they are acknowledged",
    "(XACK) or claimed by another one (XCLAIM, XAUTOCLAIM). XINFO and XPENDING describe",
    "groups, consumers and pending entries.",
];

fn help(call: &mut Call<'_, '_>) -> CommandResult {
    call.reply.array(HELP.len());
    HELP.iter().for_each(|line| call.reply.simple(line));
    Ok(())
}

/// The options that follow the ID in CREATE and SETID.
#[derive(Default)]
struct Options {
    creates_stream: bool,
    entries_read: Option<i64>,
}

fn read_options(call: &Call<'_, '_>, takes_mkstream: bool) -> Result<Options, CommandError> {
    let args = call.args;
    let mut options = Options::default();
    let mut arg = 5;
    while arg < args.len() {
        if takes_mkstream && is_word(args, arg, "MKSTREAM") {
            options.creates_stream = true;
            arg += 1;
        } else if is_word(args, arg, "ENTRIESREAD") && arg + 1 < args.len() {
            options.entries_read = match integer(args, arg + 1)? {
                -1 => None,
                read if read < 0 => return Err("ERR value for ENTRIESREAD must be positive or -1".into()),
                read => Some(read),
            };
            arg += 2;
        } else {
            return Err(unknown_options(args));
        }
    }
    Ok(options)
}

/// Returns the stream of the key, or an error if the key does not exist.
fn stream<'k>(key: &'k Key<'_>) -> Result<&'k Stream, CommandError> {
    key.value::<Stream>()?.ok_or_else(|| {
        "ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to use the MKSTREAM \
         option to create an empty stream automatically."
            .into()
    })
}

/// Returns the stream of the key, or an error if the key does not exist or the stream does not have the group in
/// argument 3.
fn stream_with_group<'k>(
    key: &'k Key<'_>,
    args: ember_protocol::Args<'_>,
) -> Result<&'k Stream, CommandError> {
    let stream = stream(key)?;
    match stream.groups().get(args.at(3)) {
        Some(_) => Ok(stream),
        None => Err(no_group(args.at(2), args.at(3))),
    }
}

fn create(call: &mut Call<'_, '_>) -> CommandResult {
    let args = call.args;
    let options = read_options(call, true)?;
    let mut key = call.keys.key(2);
    let present = if options.creates_stream { key.value::<Stream>()? } else { Some(stream(&key)?) };
    if args.len() > 8 {
        return Err(unknown_options(args));
    }
    let last_id = match args.at(4) {
        b"$" => present.map_or(StreamId::MIN, |stream| stream.log().last_id()),
        text => exact_id(text, 0)?,
    };
    let is_new_key = present.is_none();
    let group = Group::new(last_id, options.entries_read);
    let add = |stream: &mut Stream| stream.groups_mut().create(args.at(3), group);
    if is_new_key {
        key.edit_or_create(Event::stream("xgroup-create"), |stream| Edited::changed(add(stream)))?;
    } else if key.edit_unobserved(add)? == Some(true) {
        key.count_changes(1);
        key.notify(Event::stream("xgroup-create"));
    } else {
        return Err("BUSYGROUP Consumer Group name already exists".into());
    }
    call.reply.ok();
    Ok(())
}

fn set_id(call: &mut Call<'_, '_>) -> CommandResult {
    let args = call.args;
    let options = read_options(call, false)?;
    let mut key = call.keys.key(2);
    let stream = stream_with_group(&key, args)?;
    if args.len() > 7 {
        return Err(unknown_options(args));
    }
    let last_id = match args.at(4) {
        b"$" => stream.log().last_id(),
        text => id(text, 0)?,
    };
    key.edit_unobserved(|stream: &mut Stream| {
        stream.groups_mut().edit(args.at(3), |group| {
            group.last_id = last_id;
            group.entries_read = options.entries_read;
        })
    })?;
    key.count_changes(1);
    key.notify(Event::stream("xgroup-setid"));
    call.reply.ok();
    Ok(())
}

fn destroy(call: &mut Call<'_, '_>) -> CommandResult {
    let args = call.args;
    let mut key = call.keys.key(2);
    stream(&key)?;
    let is_removed =
        key.edit_unobserved(|stream: &mut Stream| stream.groups_mut().destroy(args.at(3)))? == Some(true);
    if is_removed {
        key.count_changes(1);
        key.notify(Event::stream("xgroup-destroy"));
        // Wakes blocked consumers, which receive the error for a missing group.
        key.wake();
    }
    call.reply.integer(i64::from(is_removed));
    Ok(())
}

fn create_consumer(call: &mut Call<'_, '_>) -> CommandResult {
    let (args, now_ms) = (call.args, call.keys.turn.clock_ms());
    let mut key = call.keys.key(2);
    let stream = stream_with_group(&key, args)?;
    let group = stream.groups().get(args.at(3));
    let is_new = group.is_some_and(|group| group.number_of(args.at(4)).is_none());
    if is_new {
        key.edit_unobserved(|stream: &mut Stream| {
            stream.groups_mut().edit(args.at(3), |group| see_consumer(group, args.at(4), now_ms))
        })?;
        key.count_changes(1);
        key.notify(Event::stream("xgroup-createconsumer"));
    }
    call.reply.integer(i64::from(is_new));
    Ok(())
}

fn delete_consumer(call: &mut Call<'_, '_>) -> CommandResult {
    let args = call.args;
    let mut key = call.keys.key(2);
    stream_with_group(&key, args)?;
    let pending = key.edit_unobserved(|stream: &mut Stream| {
        stream.groups_mut().edit(args.at(3), |group| group.remove_consumer(args.at(4)))
    })?;
    let pending = pending.flatten().flatten();
    if pending.is_some() {
        key.count_changes(1);
        key.notify(Event::stream("xgroup-delconsumer"));
    }
    call.reply.integer(pending.unwrap_or(0) as i64);
    Ok(())
}
