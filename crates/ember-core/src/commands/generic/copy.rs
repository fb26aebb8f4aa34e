//! COPY.

use ember_protocol::{Args, number};

use super::dump;
use crate::call::{Attempt, AttemptResult, Call, DataCommand, Run};
use crate::commands::arguments::{database, is_word};
use crate::effects::events::Event;
use crate::error::CommandError;
use crate::keys::Lookup;
use crate::keyspace::expiry::DATABASES_MAX;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "copy",
        summary: "Copies a key's value and expiry to another key, also in another database.",
        since: "6.2.0",
        group: Group::Generic,
        complexity: "O(N) for aggregates of N elements. O(1) for strings.",
        arity: -3,
        flags: Flags::WRITE.union(Flags::DENYOOM),
        keys: &[
            KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS)),
            KeySpec::one(2, KeyFlags::OW.union(KeyFlags::UPDATE)),
        ],
        databases_of: Some(databases_of),
        overwrites_in: Some(target_database),
        syntax: "source destination [DB destination-db] [REPLACE]",
        example: Example { given: &["SET dolly sheep"], call: "COPY dolly clone", reply: "(integer) 1" },
        ..Spec::DEFAULT
    },
    Run::Long(copy),
)];

fn databases_of(args: Args<'_>) -> Vec<usize> {
    let has_value = |&arg: &usize| arg + 1 < args.len();
    (3..args.len()).filter(|&arg| is_word(args, arg, "DB")).filter(has_value).map(|arg| arg + 1).collect()
}

/// Returns the number of the destination database, if the call names it.
fn target_database(args: Args<'_>) -> Option<usize> {
    let word = (3..args.len()).rev().find(|&arg| is_word(args, arg, "DB"))?;
    number::parse_i64(args.get(word + 1)?).and_then(|database| usize::try_from(database).ok())
}

struct Options {
    database: usize,
    replace: bool,
}

fn options(args: Args<'_>, selected: usize, databases: usize) -> Result<Options, CommandError> {
    let mut options = Options { database: selected, replace: false };
    let mut arg = 3;
    while arg < args.len() {
        if is_word(args, arg, "REPLACE") {
            options.replace = true;
        } else if is_word(args, arg, "DB") && arg + 1 < args.len() {
            arg += 1;
            options.database = database(args, arg, databases)?;
        } else {
            return Err(CommandError::Syntax);
        }
        arg += 1;
    }
    Ok(options)
}

fn copy(call: &mut Call<'_, '_>) -> AttemptResult {
    let steps_max = call.steps_max();
    let selected = call.keys.database();
    let databases = call.keys.databases();
    // On a cluster node with one database, the error for another database is Redis's.
    let is_alone = call.keys.has_slots() && databases == 1;
    let options = options(call.args, selected, if is_alone { DATABASES_MAX } else { databases })?;
    if options.database >= databases {
        return Err("ERR Copying to another database is not allowed in cluster mode".into());
    }
    if options.database == selected && call.args.at(1) == call.args.at(2) {
        return Err("ERR source and destination objects are the same".into());
    }
    let mut bytes = Vec::new();
    let Some(source) = call.keys.read_as(1, Lookup::Use) else {
        call.reply.integer(0);
        return Ok(Attempt::Done);
    };
    let is_long = source.aggregate().is_some_and(|value| dump::steps(value) > steps_max);
    if is_long && (options.replace || !call.keys.key_in(options.database, 2).exists()) {
        return Ok(Attempt::Offload);
    }
    let Some(source) = call.keys.entry(1) else { unreachable!("it was read under the same lock") };
    let expire_at_ms = source.expire_at_ms();
    let value = source.to_value(&mut bytes);
    let clock = call.keys.turn.new_clock();
    let mut target = call.keys.key_in(options.database, 2);
    let copied = options.replace || !target.exists();
    if copied {
        target.put(value, expire_at_ms, clock);
        target.notify(Event::generic("copy_to"));
    }
    call.reply.integer(copied.into());
    Ok(Attempt::Done)
}
