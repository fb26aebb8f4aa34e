//! TDIGEST.RESET.

use super::NO_KEY;
use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::effects::events::Event;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::sketches::TDigest;

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "tdigest.reset",
        summary: "Removes all numbers from a t-digest.",
        since: "8.0.0",
        group: Group::TDigest,
        arity: 2,
        flags: Flags::WRITE.union(Flags::DENYOOM),
        keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::DELETE))],
        syntax: "key",
        example: Example {
            given: &["TDIGEST.CREATE latencies"],
            call: "TDIGEST.RESET latencies",
            reply: "OK",
        },
        ..Spec::DEFAULT
    },
    Run::Keys(tdigest_reset),
)];

fn tdigest_reset(call: &mut Call<'_, '_>) -> CommandResult {
    call.keys.key(1).edit_value(Event::module("tdigest.reset"), TDigest::reset)?.ok_or(NO_KEY)?;
    call.reply.ok();
    Ok(())
}
