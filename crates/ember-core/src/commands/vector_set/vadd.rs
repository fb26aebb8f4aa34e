//! VADD.

use ember_protocol::{Args, number};

use super::vector::{Given, INVALID, has_a_length, to_blob};
use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::commands::arguments::is_word;
use crate::effects::events::Event;
use crate::effects::journal::Words;
use crate::error::CommandError;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::Collection;
use crate::types::vector_set::{
    LINKS_DEFAULT, LINKS_MAX, LINKS_MIN, Projection, Quantization, Shape, VectorSet,
};

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "vadd",
        summary: "Sets the vector of an element of a vector set, creating the key if it is missing; returns whether the \
                  element is new.",
        since: "8.0.0",
        group: Group::VectorSet,
        complexity: "O(EF · log N) distances for N elements.",
        arity: -5,
        flags: Flags::WRITE.union(Flags::DENYOOM),
        keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::INSERT))],
        syntax: "key reduce:[REDUCE dim] vector:<fp32:FP32 vector | values:VALUES num number [number ...]> element \
                 [CAS] quantization:[NOQUANT | Q8 | BIN] [EF build-exploration-factor] [SETATTR attributes] [M numlinks]",
        example: Example { given: &[], call: "VADD points VALUES 2 1.0 1.0 pt:A", reply: "(integer) 1" },
        ..Spec::DEFAULT
    },
    Run::Keys(vadd),
)];

/// How many near vectors neighbours are chosen from, unless told otherwise, and at most.
const WIDTH_DEFAULT: usize = 200;
const WIDTH_MAX: i64 = 1_000_000;

struct Options<'a> {
    width: usize,
    links: usize,
    quantization: Quantization,
    attributes: Option<&'a [u8]>,
}

impl<'a> Options<'a> {
    fn parse(args: Args<'a>, first: usize) -> Result<Options<'a>, CommandError> {
        let mut options = Options {
            width: WIDTH_DEFAULT,
            links: LINKS_DEFAULT,
            quantization: Quantization::Q8,
            attributes: None,
        };
        let mut at = first;
        while at < args.len() {
            let has_value = at + 1 < args.len();
            let within = |range: std::ops::RangeInclusive<i64>| {
                number::parse_i64(args.at(at + 1)).filter(|number| range.contains(number)).map(|n| n as usize)
            };
            at += if is_word(args, at, "CAS") {
                // The element is set before anybody else sees it, with or without it.
                1
            } else if is_word(args, at, "EF") && has_value {
                options.width = within(1..=WIDTH_MAX).ok_or("ERR invalid EF")?;
                2
            } else if is_word(args, at, "M") && has_value {
                options.links = within(LINKS_MIN as i64..=LINKS_MAX as i64).ok_or("ERR invalid M")?;
                2
            } else if is_word(args, at, "SETATTR") && has_value {
                options.attributes = Some(args.at(at + 1));
                2
            } else if let Some(quantization) = quantization(args, at) {
                options.quantization = quantization;
                1
            } else {
                return Err("ERR invalid option after element".into());
            };
        }
        Ok(options)
    }
}

fn quantization(args: Args<'_>, at: usize) -> Option<Quantization> {
    let all = [Quantization::None, Quantization::Q8, Quantization::Binary];
    all.into_iter().find(|quantization| is_word(args, at, quantization.option()))
}

fn mismatch(given: usize, set: usize) -> CommandError {
    format!("ERR Vector dimension mismatch - got {given} but set has {set}").into()
}

/// Whether a vector with these options can go into a set.
fn check(set: &VectorSet, given: &Given, options: &Options<'_>) -> CommandResult {
    if set.quantization() != options.quantization {
        return Err("ERR asked quantization mismatch with existing vector set".into());
    }
    if set.links() != options.links {
        return Err("ERR asked M value mismatch with existing vector set".into());
    }
    let dim = given.vector.len();
    match set.projection() {
        None if set.dim() != dim => Err(mismatch(dim, set.dim())),
        None if given.reduced.is_some() => {
            Err("ERR cannot add projection to existing set without projection".into())
        }
        None => Ok(()),
        Some(_) if given.reduced != Some(set.dim()) => Err(mismatch(dim, set.dim())),
        Some(projection) if projection.input != dim => Err(input_mismatch(dim, projection.input)),
        Some(_) => Ok(()),
    }
}

/// A vector has other dimensions than those that are reduced.
pub(super) fn input_mismatch(given: usize, input: usize) -> CommandError {
    format!("ERR Input dimension mismatch for projection - got {given} but projection expects {input}").into()
}

fn vadd(call: &mut Call<'_, '_>) -> CommandResult {
    let args = call.args;
    let given = Given::parse(args, 2, true)?;
    if args.len() <= given.next {
        return Err(CommandError::WrongArity("vadd".into()));
    }
    let name = args.at(given.next);
    let options = Options::parse(args, given.next + 1)?;
    let mut key = call.keys.key(1);
    let found = key.value::<VectorSet>()?;
    found.map_or(Ok(()), |set| check(set, &given, &options))?;
    let Given { vector, reduced, .. } = given;
    let projection = reduced.map(|_| Projection::new(vector.len()));
    let blob = key.is_journaled().then(|| to_blob(&vector));
    let vector = match (key.value::<VectorSet>()?, reduced) {
        (Some(set), _) => set.reduced(vector),
        (None, Some(dim)) => Projection::new(vector.len()).apply(&vector, dim),
        (None, None) => vector,
    };
    if !has_a_length(&vector) {
        return Err(INVALID);
    }
    let is_new = key.edit_or_create(Event::module("vadd"), |set: &mut VectorSet| {
        if set.is_empty() {
            let Options { quantization, links, .. } = options;
            set.shape(Shape { dim: vector.len(), quantization, links, projection });
        }
        set.set(name, &vector, options.attributes, options.width)
    })?;
    let is_new = is_new.ok_or("ERR the vector set has as many elements as it can have")?;
    if let Some(blob) = blob {
        key.journal("VADD", |words| write_effect(words, reduced, &blob, name, &options));
    }
    call.reply.boolean(is_new);
    Ok(())
}

/// The call with all that it has decided: options that were left out, and numbers that were rounded.
fn write_effect(
    words: &mut Words<'_>,
    reduced: Option<usize>,
    blob: &[u8],
    name: &[u8],
    options: &Options<'_>,
) {
    if let Some(dim) = reduced {
        words.word(b"REDUCE").integer(dim);
    }
    words.word(b"FP32").word(blob).word(name).word(options.quantization.option().as_bytes());
    words.word(b"M").integer(options.links).word(b"EF").integer(options.width);
    if let Some(attributes) = options.attributes {
        words.word(b"SETATTR").word(attributes);
    }
}
