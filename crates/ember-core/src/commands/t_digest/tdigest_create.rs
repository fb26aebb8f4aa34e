//! TDIGEST.CREATE.

use super::{TOO_LARGE, compression};
use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::commands::arguments::is_word;
use crate::effects::events::Event;
use crate::error::CommandError;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::sketches::TDigest;
use crate::types::sketches::t_digest::COMPRESSION_DEFAULT;

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "tdigest.create",
        summary: "Creates an empty t-digest.",
        since: "8.0.0",
        group: Group::TDigest,
        arity: -2,
        flags: Flags::WRITE.union(Flags::DENYOOM),
        keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::INSERT))],
        syntax: "key [COMPRESSION compression]",
        example: Example { given: &[], call: "TDIGEST.CREATE latencies", reply: "OK" },
        ..Spec::DEFAULT
    },
    Run::Keys(tdigest_create),
)];

fn tdigest_create(call: &mut Call<'_, '_>) -> CommandResult {
    let args = call.args;
    if ![2, 4].contains(&args.len()) {
        return Err(CommandError::WrongArity("tdigest.create".into()));
    }
    if call.keys.key(1).value::<TDigest>()?.is_some() {
        return Err("ERR T-Digest: key already exists".into());
    }
    let compression = match args.len() {
        2 => COMPRESSION_DEFAULT,
        _ if is_word(args, 2, "COMPRESSION") || is_word(args, 3, "COMPRESSION") => compression(args, 3)?,
        _ => return Err("ERR T-Digest: wrong keyword".into()),
    };
    let created = TDigest::new(compression).map_err(|_| TOO_LARGE)?;
    call.keys
        .key(1)
        .edit_or_create(Event::module("tdigest.create"), |digest: &mut TDigest| *digest = created)?;
    call.reply.ok();
    Ok(())
}
