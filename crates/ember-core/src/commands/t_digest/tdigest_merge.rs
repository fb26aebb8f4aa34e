//! TDIGEST.MERGE.

use ember_protocol::number;

use super::{NO_KEY, TOO_LARGE, compression};
use crate::call::{Attempt, AttemptResult, Call, DataCommand, Run};
use crate::commands::sketch::find_word;
use crate::effects::events::Event;
use crate::error::CommandError;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::Collection;
use crate::types::sketches::TDigest;

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "tdigest.merge",
        summary: "Adds the numbers of t-digests to another one, which is created if it is missing, or overwritten.",
        since: "8.0.0",
        group: Group::TDigest,
        complexity: "O(N · log N) for N nodes of all digests.",
        arity: -4,
        flags: Flags::WRITE.union(Flags::DENYOOM),
        keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::INSERT)), KeySpec::counted(2, KeyFlags::RO)],
        syntax: "destination numkeys source [source ...] [COMPRESSION compression] [OVERRIDE]",
        example: Example {
            given: &["TDIGEST.CREATE day", "TDIGEST.ADD day 1.5 2 7"],
            call: "TDIGEST.MERGE week 1 day",
            reply: "OK",
        },
        ..Spec::DEFAULT
    },
    Run::Long(tdigest_merge),
)];

/// The first argument that is a source.
const FIRST_SOURCE: usize = 3;

fn tdigest_merge(call: &mut Call<'_, '_>) -> AttemptResult {
    let args = call.args;
    let arity = || CommandError::WrongArity("tdigest.merge".into());
    let destination = call.keys.value::<TDigest>(1)?;
    let count = number::parse_i64(args.at(2)).ok_or("ERR T-Digest: error parsing numkeys")?;
    let count = usize::try_from(count).ok().filter(|&count| count > 0);
    let count = count.ok_or("ERR T-Digest: numkeys needs to be a positive integer")?;
    if count > args.len() - FIRST_SOURCE {
        return Err(arity());
    }
    let options = FIRST_SOURCE + count;
    let given = match find_word(args, options, "COMPRESSION") {
        Some(at) if at + 1 == args.len() => return Err(arity()),
        Some(at) => Some(compression(args, at + 1)?),
        None => None,
    };
    let overrides = find_word(args, options, "OVERRIDE").is_some();
    if options < args.len() && given.is_none() && !overrides {
        return Err("ERR T-Digest: wrong keyword".into());
    }
    let mut sources = Vec::with_capacity(count);
    for arg in FIRST_SOURCE..options {
        sources.push(call.keys.value::<TDigest>(arg)?.ok_or(NO_KEY)?);
    }
    let kept = destination.filter(|_| !overrides);
    let highest = || sources.iter().map(|source| source.compression()).max().unwrap_or_default();
    let compression = given.or(kept.map(TDigest::compression)).unwrap_or_else(highest);
    let nodes = kept.iter().chain(&sources).map(|digest| digest.len()).sum::<usize>();
    if nodes > call.steps_max() {
        return Ok(Attempt::Offload);
    }
    let mut merged = TDigest::new(compression).map_err(|_| TOO_LARGE)?;
    for source in kept.iter().chain(&sources) {
        merged.merge(source).map_err(|_| "ERR T-Digest: overflow detected")?;
    }
    // Unlike a value that replaces another one, the result keeps the expiry of the key.
    call.keys
        .key(1)
        .edit_or_create(Event::module("tdigest.merge"), |digest: &mut TDigest| *digest = merged)?;
    call.reply.ok();
    Ok(Attempt::Done)
}
