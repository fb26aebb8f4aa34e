//! XTRIM.

use super::trimming::{TrimOptions, Trimming, journal_trimmed};
use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::effects::events::Event;
use crate::error::CommandError;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::stream::{Stream, Traces, Trimmed};

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "xtrim",
        summary: "Removes entries from the beginning of a stream; returns their number.",
        since: "5.0.0",
        group: Group::Stream,
        complexity: "O(N) for N entries that are removed; whole blocks of them are removed at once",
        arity: -4,
        flags: Flags::WRITE,
        keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::DELETE))],
        tips: &["nondeterministic_output"],
        syntax: "key trim:<strategy:<MAXLEN | MINID @6.2.0> operator:[= | ~] threshold [LIMIT count]@6.2.0> condition:[KEEPREF | DELREF | ACKED]@8.2.0",
        history: &[
            ("6.2.0", "`MINID` and `LIMIT` came."),
            ("8.2.0", "`KEEPREF`, `DELREF` and `ACKED` came."),
        ],
        example: Example {
            given: &["XADD readings 1-1 a 1", "XADD readings 2-1 a 2", "XADD readings 3-1 a 3"],
            call: "XTRIM readings MAXLEN 2",
            reply: "(integer) 1",
        },
        ..Spec::DEFAULT
    },
    Run::Keys(xtrim),
)];

fn read_trimming(call: &Call<'_, '_>) -> Result<Trimming, CommandError> {
    let mut options = TrimOptions::default();
    let mut arg = 2;
    while arg < call.args.len() {
        arg = options.read(call.args, arg)?.ok_or(CommandError::Syntax)?;
    }
    Ok(options.finish(true, call.keys.turn)?.expect("the options include a trimming strategy"))
}

fn xtrim(call: &mut Call<'_, '_>) -> CommandResult {
    let trimming = read_trimming(call)?;
    let mut key = call.keys.key(1);
    let mut traces = Traces::new(key.is_journaled());
    let mut trimmed = Trimmed::default();
    key.edit_value(Event::stream("xtrim"), |stream: &mut Stream| {
        trimmed = trimming.apply(stream, &mut traces);
        (trimmed.entries + trimmed.references) as usize
    })?;
    if trimmed != Trimmed::default() {
        journal_trimmed(&mut key, trimmed, &traces)?;
    }
    key.count_changes(trimmed.entries.saturating_sub(1));
    call.reply.integer(trimmed.entries as i64);
    Ok(())
}
