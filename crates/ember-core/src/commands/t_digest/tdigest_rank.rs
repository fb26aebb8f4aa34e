//! TDIGEST.RANK and TDIGEST.REVRANK.

use super::{numbers, read, run_or_offload};
use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::sketches::t_digest::View;

const TDIGEST_RANK: Spec = Spec {
    name: "tdigest.rank",
    summary: "Returns for each number an estimate of how many numbers of a t-digest are lower; -1 below the lowest, -2 if \
              there are no numbers.",
    since: "8.0.0",
    group: Group::TDigest,
    complexity: "O(N · M) for N nodes and M numbers.",
    arity: -3,
    flags: Flags::READONLY,
    keys: &[KeySpec::one(1, KeyFlags::RO)],
    syntax: "key number [number ...]",
    example: Example {
        given: &["TDIGEST.CREATE latencies", "TDIGEST.ADD latencies 1.5 2 7"],
        call: "TDIGEST.RANK latencies 1 2 9",
        reply: "1) (integer) -1\n2) (integer) 1\n3) (integer) 3",
    },
    ..Spec::DEFAULT
};

pub(crate) const COMMANDS: &[DataCommand] = &[
    Command::new(TDIGEST_RANK, Run::Long(|call| run_or_offload(call, tdigest_rank))),
    Command::new(
        Spec {
            name: "tdigest.revrank",
            summary: "Returns for each number an estimate of how many numbers of a t-digest are higher; -1 above the \
                      highest, -2 if there are no numbers.",
            example: Example {
                call: "TDIGEST.REVRANK latencies 1 2 9",
                reply: "1) (integer) 3\n2) (integer) 1\n3) (integer) -1",
                ..TDIGEST_RANK.example
            },
            ..TDIGEST_RANK
        },
        Run::Long(|call| run_or_offload(call, tdigest_revrank)),
    ),
];

fn tdigest_rank(call: &mut Call<'_, '_>) -> CommandResult {
    reply(call, |view, number| {
        if number < view.min() {
            -1.0
        } else if number > view.max() {
            view.size()
        } else {
            half_down(view.cdf(number) * view.size())
        }
    })
}

fn tdigest_revrank(call: &mut Call<'_, '_>) -> CommandResult {
    reply(call, |view, number| {
        if number < view.min() {
            view.size()
        } else if number > view.max() {
            -1.0
        } else {
            (view.size() - (view.cdf(number) * view.size()).round()).round()
        }
    })
}

/// Rounds to the nearest integer, and halves towards zero.
fn half_down(number: f64) -> f64 {
    let whole = number.trunc();
    if (number - whole).abs() <= 0.5 { whole } else { whole + 1.0 }
}

/// Replies for each number with the rank that `rank` returns.
fn reply(call: &mut Call<'_, '_>, rank: impl Fn(&View<'_>, f64) -> f64) -> CommandResult {
    let args = call.args;
    let digest = read(call)?;
    let numbers = numbers(args, "ERR T-Digest: error parsing value")?;
    let view = digest.view();
    let is_empty = view.size() == 0.0;
    let ranks = numbers.into_iter().map(|number| if is_empty { -2.0 } else { rank(&view, number) });
    let ranks: Vec<i64> = ranks.map(|rank| rank as i64).collect();
    call.reply.array(ranks.len());
    ranks.into_iter().for_each(|rank| call.reply.integer(rank));
    Ok(())
}
