//! XADD.

use super::ids::{NewId, new_id, reply_id};
use super::trimming::{TrimOptions, Trimming, block_limits, journal_trimmed};
use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::commands::arguments::is_word;
use crate::effects::events::Event;
use crate::error::CommandError;
use crate::keys::Edited;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::stream::{AppendError, BlockLimits, Log, Stream, StreamId, Traces, Trimmed};

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "xadd",
        summary: "Adds an entry to a stream, creating it if it is missing, and optionally trims it.",
        since: "5.0.0",
        group: Group::Stream,
        complexity: "O(1) for each field, and O(N) for N entries that are trimmed",
        arity: -5,
        flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::FAST),
        keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::UPDATE))
            .with_notes("UPDATE instead of INSERT because of the optional trimming feature")],
        tips: &["nondeterministic_output"],
        syntax: "key [NOMKSTREAM]@6.2.0 condition:[KEEPREF | DELREF | ACKED]@8.2.0 trim:[strategy:<MAXLEN | MINID @6.2.0> operator:[= | ~] threshold [LIMIT count]@6.2.0] id_or_auto:<* | id> field value [field value ...]",
        history: &[
            ("6.2.0", "`NOMKSTREAM`, `MINID` and `LIMIT` came."),
            ("7.0.0", "The sequence number of an ID may be left to the server, as `time-*`."),
            ("8.2.0", "`KEEPREF`, `DELREF` and `ACKED` came."),
        ],
        example: Example {
            given: &[],
            call: "XADD readings 1526919030474-55 temperature 21",
            reply: "\"1526919030474-55\"",
        },
        ..Spec::DEFAULT
    },
    Run::Keys(xadd),
)];

struct Options {
    must_exist: bool,
    trimming: Option<Trimming>,
    /// The ID of the new entry; `None` if the server generates it.
    id: Option<NewId>,
    /// The argument index of the first field.
    fields: usize,
}

fn read_options(call: &Call<'_, '_>) -> Result<Options, CommandError> {
    let args = call.args;
    let mut trim = TrimOptions::default();
    let (mut must_exist, mut id) = (false, None);
    let mut arg = 2;
    while arg < args.len() && args.at(arg) != b"*" {
        if let Some(next) = trim.read(args, arg)? {
            arg = next;
        } else if is_word(args, arg, "NOMKSTREAM") {
            must_exist = true;
            arg += 1;
        } else {
            id = Some(new_id(args.at(arg))?);
            break;
        }
    }
    let trimming = trim.finish(false, call.keys.turn)?;
    let words = args.len().saturating_sub(arg + 1);
    if words < 2 || !words.is_multiple_of(2) {
        return Err(CommandError::WrongArity("xadd".into()));
    }
    if id == Some(NewId::Given(StreamId::MIN)) {
        return Err("ERR The ID specified in XADD must be greater than 0-0".into());
    }
    Ok(Options { must_exist, trimming, id, fields: arg + 1 })
}

fn xadd(call: &mut Call<'_, '_>) -> CommandResult {
    let options = read_options(call)?;
    let args = call.args;
    let limits = block_limits(call.keys.turn.settings.encoding);
    let now_ms = u64::try_from(call.keys.turn.now_ms).unwrap_or(0);
    let mut key = call.keys.key(1);
    if options.must_exist && !key.exists() {
        call.reply.null();
        return Ok(());
    }
    let mut traces = Traces::new(key.is_journaled());
    let fields = (options.fields..args.len()).step_by(2).map(|arg| (args.at(arg), args.at(arg + 1)));
    let (id, trimmed) = key
        .edit_or_create(Event::stream("xadd"), |stream: &mut Stream| {
            let id = append(stream.log_mut(), options.id, now_ms, fields, limits)?;
            let trimmed = options.trimming.map(|trimming| trimming.apply(stream, &mut traces));
            Ok::<_, CommandError>(Edited::changed((id, trimmed)))
        })??
        .result;
    key.journal("XADD", |words| {
        words.word(id.text(&mut [0; StreamId::TEXT_BYTES_MAX]));
        (options.fields..args.len()).for_each(|arg| _ = words.word(args.at(arg)));
    });
    let trimmed = trimmed.unwrap_or_default();
    if trimmed != Trimmed::default() {
        journal_trimmed(&mut key, trimmed, &traces)?;
    }
    if trimmed.entries > 0 {
        key.notify(Event::stream("xtrim"));
    }
    reply_id(call.reply, id);
    Ok(())
}

fn append<'f>(
    log: &mut Log,
    id: Option<NewId>,
    now_ms: u64,
    fields: impl ExactSizeIterator<Item = (&'f [u8], &'f [u8])> + Clone,
    limits: BlockLimits,
) -> Result<StreamId, CommandError> {
    if log.last_id() == StreamId::MAX {
        return Err("ERR The stream has exhausted the last possible ID, unable to add more items".into());
    }
    let too_small =
        || "ERR The ID specified in XADD is equal or smaller than the target stream top item".into();
    let id = match id {
        None => log.next_id(now_ms),
        Some(NewId::Given(id)) => Some(id),
        Some(NewId::At(ms)) => log.next_id_at(ms),
    };
    let id = id.ok_or_else(too_small)?;
    match log.append(id, fields, limits) {
        Ok(()) => Ok(id),
        Err(AppendError::IdTooSmall) => Err(too_small()),
        Err(AppendError::TooLarge) => Err("ERR Elements are too large to be stored".into()),
    }
}
