//! XSETID.

use super::ids::exact_id;
use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::commands::arguments::{integer, is_word};
use crate::effects::events::Event;
use crate::error::CommandError;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::stream::{Log, Stream, StreamId};

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "xsetid",
        summary: "Sets the last ID of a stream, and its counters. For replication and tools.",
        since: "5.0.0",
        group: Group::Stream,
        arity: -3,
        flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::FAST),
        keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::UPDATE))],
        syntax: "key last-id [ENTRIESADDED entries_added]@7.0.0 [MAXDELETEDID max_deleted_entry_id]@7.0.0",
        history: &[("7.0.0", "`ENTRIESADDED` and `MAXDELETEDID` came.")],
        example: Example { given: &["XADD readings 1-1 a 1"], call: "XSETID readings 9-0", reply: "OK" },
        ..Spec::DEFAULT
    },
    Run::Keys(xsetid),
)];

struct Counters {
    last_id: StreamId,
    entries_added: Option<u64>,
    max_deleted_id: Option<StreamId>,
}

fn read_counters(call: &Call<'_, '_>) -> Result<Counters, CommandError> {
    let args = call.args;
    let last_id = exact_id(args.at(2), 0)?;
    let (mut entries_added, mut max_deleted_id) = (None, None);
    let mut arg = 3;
    while arg < args.len() {
        if is_word(args, arg, "ENTRIESADDED") && arg + 1 < args.len() {
            let added = u64::try_from(integer(args, arg + 1)?);
            entries_added = Some(added.map_err(|_| "ERR entries_added must be positive")?);
        } else if is_word(args, arg, "MAXDELETEDID") && arg + 1 < args.len() {
            let deleted = exact_id(args.at(arg + 1), 0)?;
            if last_id < deleted {
                return Err(
                    "ERR The ID specified in XSETID is smaller than the provided max_deleted_entry_id".into(),
                );
            }
            max_deleted_id = Some(deleted);
        } else {
            return Err(CommandError::Syntax);
        }
        arg += 2;
    }
    Ok(Counters { last_id, entries_added, max_deleted_id })
}

fn check(log: &Log, counters: &Counters) -> Result<(), CommandError> {
    if counters.last_id < log.max_deleted_id() {
        return Err("ERR The ID specified in XSETID is smaller than current max_deleted_entry_id".into());
    }
    if log.last_entry_id().is_some_and(|last| counters.last_id < last) {
        return Err("ERR The ID specified in XSETID is smaller than the target stream top item".into());
    }
    if !log.is_empty() && counters.entries_added.is_some_and(|added| added < log.len()) {
        return Err(
            "ERR The entries_added specified in XSETID is smaller than the target stream length".into()
        );
    }
    Ok(())
}

fn xsetid(call: &mut Call<'_, '_>) -> CommandResult {
    let counters = read_counters(call)?;
    let mut key = call.keys.key(1);
    let stream = key.value::<Stream>()?.ok_or(CommandError::NoSuchKey)?;
    check(stream.log(), &counters)?;
    key.edit_unobserved(|stream: &mut Stream| {
        let log = stream.log_mut();
        let max_deleted_id = counters.max_deleted_id.filter(|&id| id != StreamId::MIN);
        log.set_counters(
            counters.last_id,
            max_deleted_id.unwrap_or(log.max_deleted_id()),
            counters.entries_added.unwrap_or(log.entries_added()),
        );
    })?;
    key.count_changes(1);
    key.notify(Event::stream("xsetid"));
    call.reply.ok();
    Ok(())
}
