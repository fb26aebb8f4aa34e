//! TDIGEST.ADD.

use super::{NO_KEY, numbers};
use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::effects::events::Event;
use crate::keys::Edited;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::sketches::TDigest;

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "tdigest.add",
        summary: "Adds numbers to a t-digest.",
        since: "8.0.0",
        group: Group::TDigest,
        complexity: "O(N) for N numbers.",
        arity: -3,
        flags: Flags::WRITE.union(Flags::DENYOOM),
        keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::INSERT))],
        syntax: "key number [number ...]",
        example: Example {
            given: &["TDIGEST.CREATE latencies"],
            call: "TDIGEST.ADD latencies 1.5 2 7",
            reply: "OK",
        },
        ..Spec::DEFAULT
    },
    Run::Keys(tdigest_add),
)];

fn tdigest_add(call: &mut Call<'_, '_>) -> CommandResult {
    let args = call.args;
    let mut key = call.keys.key(1);
    key.value::<TDigest>()?.ok_or(NO_KEY)?;
    let numbers = numbers(args, "ERR T-Digest: error parsing val parameter")?;
    if numbers.iter().any(|number| !number.is_finite()) {
        return Err("ERR T-Digest: val parameter needs to be a finite number".into());
    }
    let added = key.edit_value(Event::module("tdigest.add"), |digest: &mut TDigest| {
        let added = numbers.iter().take_while(|&&number| digest.add(number).is_ok()).count();
        Edited { is_change: added > 0, result: added }
    })?;
    if added.is_some_and(|added| added.result < numbers.len()) {
        return Err("ERR T-Digest: overflow detected".into());
    }
    call.reply.ok();
    Ok(())
}
