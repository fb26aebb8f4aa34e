//! CF.RESERVE.

use ember_protocol::number;

use super::create;
use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::commands::sketch::{EXISTS, find_word};
use crate::effects::events::Event;
use crate::error::CommandError;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::sketches::Cuckoo;
use crate::types::sketches::cuckoo::{
    BUCKET_SIZE_DEFAULT, BUCKET_SIZE_MAX, EXPANSION_DEFAULT, ITERATIONS_DEFAULT,
};

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "cf.reserve",
        summary: "Creates an empty cuckoo filter for a number of items.",
        since: "8.0.0",
        group: Group::Cuckoo,
        arity: -3,
        flags: Flags::WRITE.union(Flags::DENYOOM),
        keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::INSERT))],
        syntax: "key capacity [BUCKETSIZE bucketsize] [MAXITERATIONS maxiterations] [EXPANSION expansion]",
        example: Example { given: &[], call: "CF.RESERVE seen 1000", reply: "OK" },
        ..Spec::DEFAULT
    },
    Run::Keys(cf_reserve),
)];

/// The maximum factor by which a filter grows.
const EXPANSION_MAX: u16 = 32_768;

/// An option with a number and the texts of its errors.
struct Option {
    word: &'static str,
    range: std::ops::RangeInclusive<u16>,
    default: u16,
    not_a_number: &'static str,
    out_of_range: &'static str,
}

const MAX_ITERATIONS: Option = Option {
    word: "MAXITERATIONS",
    range: 1..=u16::MAX,
    default: ITERATIONS_DEFAULT,
    not_a_number: "Couldn't parse MAXITERATIONS",
    out_of_range: "MAXITERATIONS: value must be an integer between 1 and 65535, inclusive.",
};

const BUCKET_SIZE: Option = Option {
    word: "BUCKETSIZE",
    range: 1..=BUCKET_SIZE_MAX,
    default: BUCKET_SIZE_DEFAULT,
    not_a_number: "Couldn't parse BUCKETSIZE",
    out_of_range: "BUCKETSIZE: value must be an integer between 1 and 255, inclusive.",
};

const EXPANSION: Option = Option {
    word: "EXPANSION",
    range: 0..=EXPANSION_MAX,
    default: EXPANSION_DEFAULT,
    not_a_number: "Couldn't parse EXPANSION",
    out_of_range: "EXPANSION: value must be an integer between 0 and 32768, inclusive.",
};

impl Option {
    fn parse(&self, call: &Call<'_, '_>) -> Result<u16, CommandError> {
        let Some(at) = find_word(call.args, 3, self.word) else { return Ok(self.default) };
        let number = call.args.get(at + 1).and_then(number::parse_i64).ok_or(self.not_a_number)?;
        let number = u16::try_from(number).ok().filter(|number| self.range.contains(number));
        Ok(number.ok_or(self.out_of_range)?)
    }
}

fn cf_reserve(call: &mut Call<'_, '_>) -> CommandResult {
    let args = call.args;
    if args.len().is_multiple_of(2) {
        return Err(CommandError::WrongArity("cf.reserve".into()));
    }
    let capacity = number::parse_i64(args.at(2)).ok_or("Bad capacity")?;
    let iterations = MAX_ITERATIONS.parse(call)?;
    let bucket_size = BUCKET_SIZE.parse(call)?;
    let expansion = EXPANSION.parse(call)?;
    let capacity = u64::try_from(capacity).ok().filter(|&capacity| capacity >= 2 * u64::from(bucket_size));
    let capacity = capacity.ok_or("Capacity must be at least (BucketSize * 2)")?;
    if call.keys.key(1).value::<Cuckoo>()?.is_some() {
        return Err(EXISTS.into());
    }
    let created = create(call.keys.turn, capacity, bucket_size, iterations, expansion)?;
    call.keys.key(1).edit_or_create(Event::module("cf.reserve"), |filter: &mut Cuckoo| *filter = created)?;
    call.reply.ok();
    Ok(())
}
