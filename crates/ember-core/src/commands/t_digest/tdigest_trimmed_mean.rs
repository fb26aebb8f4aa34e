//! TDIGEST.TRIMMED_MEAN.

use ember_protocol::number;

use super::{read, run_or_offload};
use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "tdigest.trimmed_mean",
        summary: "Returns an estimate of the mean of the numbers of a t-digest between two quantiles.",
        since: "8.0.0",
        group: Group::TDigest,
        complexity: "O(N) for N nodes.",
        arity: 4,
        flags: Flags::READONLY,
        keys: &[KeySpec::one(1, KeyFlags::RO)],
        syntax: "key low_cut_quantile high_cut_quantile",
        example: Example {
            given: &["TDIGEST.CREATE latencies", "TDIGEST.ADD latencies 1 2 3 70"],
            call: "TDIGEST.TRIMMED_MEAN latencies 0 0.75",
            reply: "\"2\"",
        },
        ..Spec::DEFAULT
    },
    Run::Long(|call| run_or_offload(call, tdigest_trimmed_mean)),
)];

fn tdigest_trimmed_mean(call: &mut Call<'_, '_>) -> CommandResult {
    let args = call.args;
    let digest = read(call)?;
    let low = number::parse_f64(args.at(2)).ok_or("ERR T-Digest: error parsing low_cut_percentile")?;
    let high = number::parse_f64(args.at(3)).ok_or("ERR T-Digest: error parsing high_cut_percentile")?;
    if !(0.0..=1.0).contains(&low) || !(0.0..=1.0).contains(&high) {
        return Err("ERR T-Digest: low_cut_percentile and high_cut_percentile should be in [0,1]".into());
    }
    if low >= high {
        return Err("ERR T-Digest: low_cut_percentile should be lower than high_cut_percentile".into());
    }
    let mean = digest.view().trimmed_mean(low, high);
    call.reply.double(mean);
    Ok(())
}
