//! XDELEX and XACKDEL, which delete entries to which consumer groups may refer.

use ember_protocol::Args;

use super::group_effects::journal_traces;
use super::ids::{exact_id, references_at};
use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::commands::arguments::is_word;
use crate::effects::events::Event;
use crate::error::CommandError;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::stream::{References, Stream, StreamId, Traces};

const XDELEX: Spec = Spec {
    name: "xdelex",
    summary: "Deletes entries of a stream, with control over their references in consumer groups.",
    since: "8.2.0",
    group: Group::Stream,
    complexity: "O(G log P) for each entry, with G consumer groups where P entries are pending",
    arity: -5,
    flags: Flags::WRITE.union(Flags::FAST),
    keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::DELETE))],
    syntax: "key [KEEPREF | DELREF | ACKED] IDS ids:<numids id [id ...]>",
    example: Example {
        given: &["XADD readings 1-1 a 1", "XADD readings 2-1 a 2", "XGROUP CREATE readings workers 1-1"],
        call: "XDELEX readings ACKED IDS 3 1-1 2-1 3-1",
        reply: "1) (integer) 1\n2) (integer) 2\n3) (integer) -1",
    },
    ..Spec::DEFAULT
};

pub(crate) const COMMANDS: &[DataCommand] = &[
    Command::new(XDELEX, Run::Keys(xdelex)),
    Command::new(
        Spec {
            name: "xackdel",
            summary: "Acknowledges entries of a consumer group and deletes them.",
            arity: -6,
            keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::UPDATE).union(KeyFlags::DELETE))],
            syntax: "key group [KEEPREF | DELREF | ACKED] IDS ids:<numids id [id ...]>",
            example: Example {
                given: &[
                    "XADD readings 1-1 a 1",
                    "XGROUP CREATE readings workers 0",
                    "XREADGROUP GROUP workers w1 STREAMS readings >",
                ],
                call: "XACKDEL readings workers IDS 2 1-1 2-1",
                reply: "1) (integer) 1\n2) (integer) -1",
            },
            ..XDELEX
        },
        Run::Keys(xackdel),
    ),
];

/// The reply for an entry that does not exist or is not pending.
const MISSING: i64 = -1;
/// The reply for an entry that was deleted.
const DELETED: i64 = 1;
/// The reply for an entry that is not deleted because a consumer group still needs it.
const NEEDED: i64 = 2;

struct Options<'a> {
    references: References,
    ids: Vec<&'a [u8]>,
}

impl Options<'_> {
    fn parsed_ids(&self) -> Result<Vec<StreamId>, CommandError> {
        self.ids.iter().map(|text| exact_id(text, 0)).collect()
    }
}

fn read_options(args: Args<'_>, from: usize) -> Result<Options<'_>, CommandError> {
    let (mut references, mut ids) = (None, None);
    let mut arg = from;
    while arg < args.len() {
        if let (Some(wanted), None) = (references_at(args, arg), references) {
            references = Some(wanted);
            arg += 1;
        } else if is_word(args, arg, "IDS") && arg + 1 < args.len() {
            let count = ember_protocol::number::parse_i64(args.at(arg + 1))
                .and_then(|count| usize::try_from(count).ok());
            let count =
                count.filter(|&count| count > 0).ok_or("ERR Number of IDs must be a positive integer")?;
            if count > args.len() - arg - 2 {
                return Err("ERR The `numids` parameter must match the number of arguments".into());
            }
            ids = Some(args.skip(arg + 2).iter().take(count).collect());
            arg += 2 + count;
        } else {
            return Err(CommandError::Syntax);
        }
    }
    let ids = ids.ok_or("ERR IDS option is required")?;
    Ok(Options { references: references.unwrap_or_default(), ids })
}

/// Deletes an entry, and returns its reply.
fn delete(stream: &mut Stream, id: StreamId, references: References, traces: &mut Traces) -> i64 {
    if references == References::Respect && stream.log().contains(id) && stream.groups().need(id) {
        return NEEDED;
    }
    if references == References::Delete {
        stream.groups_mut().acknowledge_everywhere(id, |group| traces.record_acknowledged(group, id));
    }
    if !stream.log_mut().delete(id) {
        return MISSING;
    }
    traces.record_deleted(&[id]);
    DELETED
}

fn reply_missing(call: &mut Call<'_, '_>, count: usize) {
    call.reply.array(count);
    (0..count).for_each(|_| call.reply.integer(MISSING));
}

fn xdelex(call: &mut Call<'_, '_>) -> CommandResult {
    let options = read_options(call.args, 2)?;
    let mut key = call.keys.key(1);
    if key.value::<Stream>()?.is_none() {
        reply_missing(call, options.ids.len());
        return Ok(());
    }
    let ids = options.parsed_ids()?;
    let (mut results, mut traces) = (Vec::new(), Traces::new(key.is_journaled()));
    let deleted = key.edit_value(Event::stream("xdel"), |stream: &mut Stream| {
        results.extend(ids.iter().map(|&id| delete(stream, id, options.references, &mut traces)));
        results.iter().filter(|&&result| result == DELETED).count()
    })?;
    key.count_changes(deleted.unwrap_or(0).saturating_sub(1) as u64);
    journal_traces(&mut key, &traces);
    call.reply.array(results.len());
    results.iter().for_each(|&result| call.reply.integer(result));
    Ok(())
}

fn xackdel(call: &mut Call<'_, '_>) -> CommandResult {
    let args = call.args;
    let options = read_options(args, 3)?;
    let mut key = call.keys.key(1);
    if key.value::<Stream>()?.and_then(|stream| stream.groups().get(args.at(2))).is_none() {
        reply_missing(call, options.ids.len());
        return Ok(());
    }
    let ids = options.parsed_ids()?;
    let (mut results, mut acknowledged) = (Vec::new(), 0);
    let mut traces = Traces::new(key.is_journaled());
    key.edit_value(Event::stream("xdel"), |stream: &mut Stream| {
        for &id in &ids {
            let was_pending = stream.groups_mut().edit(args.at(2), |group| group.acknowledge(id));
            results.push(if was_pending == Some(true) {
                acknowledged += 1;
                traces.record_acknowledged(args.at(2), id);
                // An entry that was deleted earlier has the same reply as one deleted by this call.
                delete(stream, id, options.references, &mut traces).max(DELETED)
            } else {
                MISSING
            });
        }
        results.iter().filter(|&&result| result == DELETED).count()
    })?;
    key.count_changes(acknowledged);
    journal_traces(&mut key, &traces);
    call.reply.array(results.len());
    results.iter().for_each(|&result| call.reply.integer(result));
    Ok(())
}
