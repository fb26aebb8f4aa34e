//! t-digest commands.

mod tdigest_add;
mod tdigest_byrank;
mod tdigest_cdf;
mod tdigest_create;
mod tdigest_info;
mod tdigest_merge;
mod tdigest_min;
mod tdigest_quantile;
mod tdigest_rank;
mod tdigest_reset;
mod tdigest_trimmed_mean;

use ember_protocol::{Args, Reply, number};

use crate::call::{Attempt, AttemptResult, Call, CommandResult, DataCommand};
use crate::error::CommandError;
use crate::types::Collection;
use crate::types::sketches::TDigest;

/// The commands of this family, one list per file.
pub(super) const COMMANDS: &[&[DataCommand]] = &[
    tdigest_add::COMMANDS,
    tdigest_byrank::COMMANDS,
    tdigest_cdf::COMMANDS,
    tdigest_create::COMMANDS,
    tdigest_info::COMMANDS,
    tdigest_merge::COMMANDS,
    tdigest_min::COMMANDS,
    tdigest_quantile::COMMANDS,
    tdigest_rank::COMMANDS,
    tdigest_reset::COMMANDS,
    tdigest_trimmed_mean::COMMANDS,
];

/// The error of RedisBloom for a missing key.
const NO_KEY: &str = "ERR T-Digest: key does not exist";

/// The error for a compression that is too high.
const TOO_LARGE: &str = "ERR T-Digest: allocation failed";

/// Returns the digest in argument 1 for reading.
fn read<'k>(call: &'k mut Call<'_, '_>) -> Result<&'k TDigest, CommandError> {
    Ok(call.keys.read_value::<TDigest>(1)?.ok_or(NO_KEY)?)
}

/// Runs a call that reads all nodes of the digest in argument 1, or offloads it if the digest has more nodes than a call
/// may read on its worker.
fn run_or_offload(call: &mut Call<'_, '_>, run: fn(&mut Call<'_, '_>) -> CommandResult) -> AttemptResult {
    let nodes = call.keys.value::<TDigest>(1)?.map_or(0, Collection::len);
    if nodes > call.steps_max() {
        return Ok(Attempt::Offload);
    }
    run(call).map(|()| Attempt::Done)
}

/// Parses the numbers in the arguments from 2 on, or returns an error with this text.
fn numbers(args: Args<'_>, text: &'static str) -> Result<Vec<f64>, CommandError> {
    (2..args.len()).map(|arg| number::parse_f64(args.at(arg)).ok_or(text.into())).collect()
}

/// Parses the compression in an argument.
fn compression(args: Args<'_>, arg: usize) -> Result<u64, CommandError> {
    let number =
        number::parse_i64(args.at(arg)).ok_or("ERR T-Digest: error parsing compression parameter")?;
    let number = u64::try_from(number).ok().filter(|&number| number > 0);
    Ok(number.ok_or("ERR T-Digest: compression parameter needs to be a positive integer")?)
}

/// Replies with an array of doubles.
fn reply_doubles(reply: &mut Reply, numbers: &[f64]) {
    reply.array(numbers.len());
    numbers.iter().for_each(|&number| reply.double(number));
}
