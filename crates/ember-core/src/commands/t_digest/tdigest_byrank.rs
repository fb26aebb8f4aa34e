//! TDIGEST.BYRANK and TDIGEST.BYREVRANK.

use ember_protocol::number;

use super::{read, reply_doubles, run_or_offload};
use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};

const TDIGEST_BYRANK: Spec = Spec {
    name: "tdigest.byrank",
    summary: "Returns an estimate of the number at each rank, counted from the lowest; infinity if the rank is not below the \
              number of values.",
    since: "8.0.0",
    group: Group::TDigest,
    complexity: "O(N · M) for N nodes and M ranks.",
    arity: -3,
    flags: Flags::READONLY,
    keys: &[KeySpec::one(1, KeyFlags::RO)],
    syntax: "key rank [rank ...]",
    example: Example {
        given: &["TDIGEST.CREATE latencies", "TDIGEST.ADD latencies 1.5 2 7"],
        call: "TDIGEST.BYRANK latencies 0 1 3",
        reply: "1) \"1.5\"\n2) \"2\"\n3) \"inf\"",
    },
    ..Spec::DEFAULT
};

pub(crate) const COMMANDS: &[DataCommand] = &[
    Command::new(TDIGEST_BYRANK, Run::Long(|call| run_or_offload(call, tdigest_byrank))),
    Command::new(
        Spec {
            name: "tdigest.byrevrank",
            summary: "Returns an estimate of the number at each rank, counted from the highest; minus infinity if the rank is \
                      not below the number of values.",
            example: Example {
                call: "TDIGEST.BYREVRANK latencies 0 1 3",
                reply: "1) \"7\"\n2) \"2\"\n3) \"-inf\"",
                ..TDIGEST_BYRANK.example
            },
            ..TDIGEST_BYRANK
        },
        Run::Long(|call| run_or_offload(call, tdigest_byrevrank)),
    ),
];

fn tdigest_byrank(call: &mut Call<'_, '_>) -> CommandResult {
    reply(call, false)
}

fn tdigest_byrevrank(call: &mut Call<'_, '_>) -> CommandResult {
    reply(call, true)
}

fn reply(call: &mut Call<'_, '_>, is_reversed: bool) -> CommandResult {
    let args = call.args;
    let digest = read(call)?;
    let mut ranks = Vec::with_capacity(args.len() - 2);
    for arg in 2..args.len() {
        let rank = number::parse_i64(args.at(arg)).ok_or("ERR T-Digest: error parsing rank")?;
        if rank < 0 {
            return Err("ERR T-Digest: rank needs to be non negative".into());
        }
        ranks.push(rank as f64);
    }
    let view = digest.view();
    let size = view.size();
    let value = |rank: f64| {
        if size == 0.0 {
            f64::NAN
        } else if rank == 0.0 {
            if is_reversed { view.max() } else { view.min() }
        } else if rank >= size {
            if is_reversed { f64::NEG_INFINITY } else { f64::INFINITY }
        } else {
            view.quantile(if is_reversed { size - rank - 1.0 } else { rank } / size)
        }
    };
    let values: Vec<f64> = ranks.into_iter().map(value).collect();
    reply_doubles(call.reply, &values);
    Ok(())
}
