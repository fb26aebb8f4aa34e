//! VADD_BATCH.

use ember_protocol::{Args, number};

use super::vadd::{Options, check};
use super::vector::{INVALID, from_blob, has_a_length};
use crate::call::{DataCommand, Locked, Run};
use crate::commands::arguments::is_word;
use crate::effects::events::Event;
use crate::error::CommandError;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::vector_set::{DIM_MAX, Metric, Prepared, Scalar, VectorSet};

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "vadd_batch",
        summary: "Sets the vectors of several elements of a vector set, creating the key if it is missing; \
                  returns the number of new elements.",
        since: "0.1.0",
        group: Group::VectorSet,
        complexity: "O(D + log N) for each element, of D dimensions and N elements; then O(EF · log N) distances on another \
                     thread.",
        arity: -6,
        flags: Flags::WRITE.union(Flags::DENYOOM),
        keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::INSERT))],
        syntax: "key DIM dimensions [BINARY] element vector [element vector ...] [METRIC <COSINE | L2 | IP>] \
                 [QUANT <F32 | F16 | BF16 | Q8 | BIN>] [M numlinks] [EF build-exploration-factor]",
        example: Example {
            given: &[],
            call: "VADD_BATCH points DIM 2 pt:A 1.0 1.0 pt:B 0.5 1.0",
            reply: "(integer) 2",
        },
        ..Spec::DEFAULT
    },
    Run::Prepared(vadd_batch),
)];

/// The words that begin an option; a word that is followed by a vector is the name of an element instead.
const WORDS: [&str; 4] = ["METRIC", "QUANT", "M", "EF"];

/// Parses the element at argument `at`; returns its vector and the index of the argument after it.
fn element(args: Args<'_>, at: usize, dim: usize, is_binary: bool) -> Option<(Vec<f32>, usize)> {
    if is_binary {
        let vector = from_blob(args.get(at + 1)?).ok().filter(|vector| vector.len() == dim)?;
        return Some((vector, at + 2));
    }
    let next = at + 1 + dim;
    let numbers = (at + 1..next).map(|arg| number::parse_f64(args.get(arg)?).map(|number| number as f32));
    Some((numbers.collect::<Option<Vec<f32>>>()?, next))
}

fn vadd_batch(args: Args<'_>) -> Result<Locked<'_>, CommandError> {
    if !is_word(args, 2, "DIM") {
        return Err(CommandError::Syntax);
    }
    let dim = number::parse_i64(args.at(3)).and_then(|dim| usize::try_from(dim).ok());
    let dim = dim.filter(|dim| (1..=DIM_MAX).contains(dim)).ok_or("ERR invalid DIM")?;
    let is_binary = is_word(args, 4, "BINARY") && element(args, 4, dim, false).is_none();
    let mut at = if is_binary { 5 } else { 4 };
    let mut elements: Vec<(&[u8], Vec<f32>)> = Vec::new();
    while at < args.len() {
        let Some((vector, next)) = element(args, at, dim, is_binary) else { break };
        if !vector.iter().all(|number| number.is_finite()) || !has_a_length(&vector) {
            return Err(INVALID);
        }
        elements.push((args.at(at), vector));
        at = next;
    }
    let is_option = |at: usize| WORDS.iter().any(|word| is_word(args, at, word));
    if elements.is_empty() || at < args.len() && !is_option(at) {
        return Err(INVALID);
    }
    let options = Options::parse(args, at, Scalar::F32)?;
    let metric = options.metric.unwrap_or(Metric::Cosine);
    let elements: Vec<(&[u8], Vec<f32>, Prepared)> = elements
        .into_iter()
        .map(|(name, vector)| {
            let prepared = Prepared::new(&vector, metric, options.scalar);
            (name, vector, prepared)
        })
        .collect();
    Ok(Box::new(move |call| {
        let mut key = call.keys.key(1);
        if let Some(set) = key.value::<VectorSet>()? {
            check(set, dim, None, &options)?;
        }
        let is_linked_later = key.links_later();
        let mut must_notify = false;
        let added = key.edit_or_create(Event::module("vadd"), |set: &mut VectorSet| {
            if !set.has_shape() {
                set.shape(options.shape(dim, None));
            }
            let mut added = 0;
            for (name, vector, prepared) in &elements {
                // Prepares the vector again for a set with another metric, which stores vectors differently.
                let others = (set.metric() != metric).then(|| set.prepared(vector));
                let prepared = others.as_ref().unwrap_or(prepared);
                added += set.set(name, prepared, None, options.width, is_linked_later).map(usize::from)?;
            }
            must_notify = set.left_to_linkers() > 0;
            set.keep_up();
            Some(added)
        })?;
        let added = added.ok_or("ERR the vector set has reached its maximum number of elements")?;
        if must_notify {
            key.request_linking();
        }
        call.reply.integer(added as i64);
        Ok(())
    }))
}
