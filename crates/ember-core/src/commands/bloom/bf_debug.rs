//! BF.DEBUG.

use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::commands::sketch::NOT_FOUND;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::sketches::Bloom;
use crate::types::sketches::bloom::FORCE_64;

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "bf.debug",
        summary: "Returns the number of items of a Bloom filter, and the properties of each of its links.",
        since: "8.0.0",
        group: Group::Bloom,
        complexity: "O(L) for L links.",
        arity: 2,
        flags: Flags::READONLY.union(Flags::FAST),
        keys: &[KeySpec::one(1, KeyFlags::RO)],
        syntax: "key",
        example: Example {
            given: &["BF.RESERVE seen 0.01 100", "BF.ADD seen ann"],
            call: "BF.DEBUG seen",
            reply: "1) \"size:1\"\n2) \"bytes:144 bits:1152 hashes:8 hashwidth:64 capacity:100 size:1 ratio:0.005\"",
        },
        ..Spec::DEFAULT
    },
    Run::Keys(bf_debug),
)];

fn bf_debug(call: &mut Call<'_, '_>) -> CommandResult {
    let filter = call.keys.read_value::<Bloom>(1)?.ok_or(NOT_FOUND)?;
    let width = if filter.options() & FORCE_64 == 0 { 32 } else { 64 };
    call.reply.array(1 + filter.links_count());
    call.reply.bulk(format!("size:{}", filter.size()).as_bytes());
    for (facts, bits) in filter.links() {
        let text = format!(
            "bytes:{} bits:{} hashes:{} hashwidth:{width} capacity:{} size:{} ratio:{}",
            bits.len(),
            if facts.bits == 0 { 1u64.checked_shl(facts.power.into()).unwrap_or(0) } else { facts.bits },
            facts.hashes,
            facts.entries,
            facts.size,
            six_digits(facts.error),
        );
        call.reply.bulk(text.as_bytes());
    }
    Ok(())
}

/// Formats a number with six significant digits, as C's `%g`.
fn six_digits(number: f64) -> String {
    let text = format!("{number:.5e}");
    let (digits, exponent) = text.split_once('e').expect("the format has an exponent");
    let exponent: i32 = exponent.parse().expect("the exponent is an integer");
    let without_zeros = |text: &str| text.trim_end_matches('0').trim_end_matches('.').to_owned();
    if (-4..6).contains(&exponent) {
        let places = usize::try_from(5 - exponent).expect("at most 9");
        return without_zeros(&format!("{number:.places$}"));
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", without_zeros(digits), exponent.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_six_significant_digits() {
        for (number, expected) in [
            (0.005, "0.005"),
            (0.01, "0.01"),
            (0.333_333_333, "0.333333"),
            (0.000_123_456_78, "0.000123457"),
            (0.000_012_5, "1.25e-05"),
            (1e-100, "1e-100"),
            (0.5, "0.5"),
            (0.999_999_9, "1"),
        ] {
            assert_eq!(six_digits(number), expected);
        }
    }
}
