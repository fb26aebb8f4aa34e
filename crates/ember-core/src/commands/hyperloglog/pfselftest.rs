//! PFSELFTEST.

use crate::call::{CommandResult, DataCommand, KeyspaceCall, Run};
use crate::error::CommandError;
use crate::spec::{Category, Command, Example, Flags, Group, Spec};
use crate::types::hyperloglog::{self, Encoding, Observation};

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "pfselftest",
        summary: "Checks that sparse and dense HyperLogLogs agree and that their estimates are near the truth.",
        since: "2.8.9",
        group: Group::HyperLogLog,
        complexity: "O(1): a hundred thousand elements",
        arity: 1,
        flags: Flags::ADMIN,
        categories: Category::HYPERLOGLOG,
        is_system: true,
        example: Example { given: &[], call: "PFSELFTEST", reply: "OK" },
        ..Spec::DEFAULT
    },
    Run::Keyspace(pfselftest),
)];

/// The number of elements that the test adds.
const ELEMENTS: u64 = 100_000;
/// The maximum number of elements for which a sparse HyperLogLog is compared with a dense one.
const SPARSE_ELEMENTS: u64 = 1_000;
/// The standard error of an estimate from 16384 registers: 1.04 / √16384.
const STANDARD_ERROR: f64 = 1.04 / 128.0;
/// The maximum difference between an estimate and the true number, in standard errors.
const ERRORS_MAX: f64 = 6.0;

fn pfselftest(call: &mut KeyspaceCall<'_>) -> CommandResult {
    let mut sparse = hyperloglog::empty();
    let mut dense = hyperloglog::empty();
    hyperloglog::convert_to_dense(&mut dense)?;
    for number in 1..=ELEMENTS {
        let observation = Observation::of(&number.to_le_bytes());
        let is_change = hyperloglog::observe_dense(&mut dense, observation);
        if number <= SPARSE_ELEMENTS {
            let changes_sparse = hyperloglog::observe(&mut sparse, observation, usize::MAX)?;
            if hyperloglog::encoding(&sparse) != Some(Encoding::Sparse) {
                return Err("ERR TESTFAILED sparse encoding not used".into());
            }
            if is_change != changes_sparse || hyperloglog::estimate(&sparse) != hyperloglog::estimate(&dense)
            {
                return Err("ERR TESTFAILED dense/sparse disagree".into());
            }
        }
        if number.is_power_of_two() || number == ELEMENTS {
            check_error(hyperloglog::estimate(&dense)?, number)?;
        }
    }
    call.reply.ok();
    Ok(())
}

fn check_error(estimate: u64, truth: u64) -> Result<(), CommandError> {
    let error = estimate.abs_diff(truth);
    // For few elements, a difference of one element is not significant.
    if error as f64 <= 1.0 + truth as f64 * STANDARD_ERROR * ERRORS_MAX {
        return Ok(());
    }
    Err(format!("ERR TESTFAILED Too big error. card:{truth} abserr:{error}").into())
}
