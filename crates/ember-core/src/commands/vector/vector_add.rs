//! VECTOR.ADD.

use ember_protocol::Args;

use super::{NO_INDEX, given, tuning};
use crate::call::{DataCommand, Locked, Run};
use crate::commands::arguments::is_word;
use crate::commands::vector_set::vector::to_blob;
use crate::effects::events::Event;
use crate::error::CommandError;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::vector_set::VectorSet;

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "vector.add",
        summary: "Sets the vector of an element of an index, and its payload if one is given; returns 1 if the element is \
                  new.",
        since: "0.1.0",
        group: Group::VectorSet,
        complexity: "O(D + log N) for D dimensions and N elements; then O(EF · log N) distances on another thread.",
        arity: -4,
        flags: Flags::WRITE.union(Flags::DENYOOM),
        keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::INSERT))],
        syntax: "index id vector:<array | blob | fp32:FP32 blob | values:VALUES number [number ...]> [PAYLOAD json | json]",
        example: Example {
            given: &["VECTOR.CREATE films DIM 2"],
            call: "VECTOR.ADD films alien [0.9,0.1] PAYLOAD '{\"year\":1979}'",
            reply: "(integer) 1",
        },
        ..Spec::DEFAULT
    },
    Run::Prepared(add),
)];

fn payload(args: Args<'_>, next: usize) -> Result<Option<&[u8]>, CommandError> {
    match args.len() - next {
        0 => Ok(None),
        1 => Ok(Some(args.at(next))),
        2 if is_word(args, next, "PAYLOAD") => Ok(Some(args.at(next + 1))),
        _ => Err(CommandError::Syntax),
    }
}

fn add(args: Args<'_>) -> Result<Locked<'_>, CommandError> {
    let given = given::read(args, 3);
    Ok(Box::new(move |call| {
        let mut key = call.keys.key(1);
        let set = key.value::<VectorSet>()?.ok_or(NO_INDEX)?;
        let dim = set.projection().map_or(set.dim(), |projection| projection.input);
        let width = tuning(set).build_width;
        let (vector, next) = given?.of(dim)?;
        let payload = payload(args, next)?;
        let blob = key.is_journaled().then(|| to_blob(&vector));
        let prepared = set.prepared(&set.reduced(vector));
        let (name, is_linked_later) = (args.at(2), key.links_later());
        let mut must_notify = false;
        let is_new = key.edit_value(Event::module("vector.add"), |set: &mut VectorSet| {
            let is_new = set.set(name, &prepared, payload, width, is_linked_later);
            must_notify = set.needs_linkers();
            set.keep_up();
            is_new
        })?;
        let is_new = is_new.flatten().ok_or("ERR the index has reached its maximum number of elements")?;
        if must_notify {
            key.request_linking();
        }
        if let Some(blob) = blob {
            key.journal("VECTOR.ADD", |words| {
                words.word(name).word(b"FP32").word(&blob);
                if let Some(payload) = payload {
                    words.word(b"PAYLOAD").word(payload);
                }
            });
        }
        call.reply.integer(i64::from(is_new));
        Ok(())
    }))
}
