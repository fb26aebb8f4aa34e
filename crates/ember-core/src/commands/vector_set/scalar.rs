//! The names of stored number formats and of metrics.

use ember_protocol::Args;

use crate::commands::arguments::is_word;
use crate::types::vector_set::{Metric, Scalar};

/// The number formats, each with its name in VINFO and VEMB, its option of VADD, and its name after QUANT.
const SCALARS: [(Scalar, &str, &str, &str); 5] = [
    (Scalar::F32, "f32", "NOQUANT", "F32"),
    (Scalar::F16, "f16", "F16", "F16"),
    (Scalar::Bf16, "bf16", "BF16", "BF16"),
    (Scalar::Int8, "int8", "Q8", "Q8"),
    (Scalar::Binary, "bin", "BIN", "BIN"),
];

const METRICS: [(Metric, &str); 3] =
    [(Metric::Cosine, "COSINE"), (Metric::L2, "L2"), (Metric::InnerProduct, "IP")];

fn row(scalar: Scalar) -> &'static (Scalar, &'static str, &'static str, &'static str) {
    SCALARS.iter().find(|row| row.0 == scalar).expect("the table is complete")
}

/// Returns the name of a number format in VINFO and VEMB.
pub(crate) fn name(scalar: Scalar) -> &'static str {
    row(scalar).1
}

/// Returns the option of VADD that selects a number format.
pub(crate) fn option_of(scalar: Scalar) -> &'static str {
    row(scalar).2
}

/// Returns the name of a number format after QUANT.
pub(crate) fn quant_name(scalar: Scalar) -> &'static str {
    row(scalar).3
}

/// Parses argument `at` as an option of VADD that selects a number format.
pub(crate) fn option(args: Args<'_>, at: usize) -> Option<Scalar> {
    SCALARS.iter().find(|row| is_word(args, at, row.2)).map(|row| row.0)
}

/// Parses argument `at` as the name of a number format after QUANT.
pub(crate) fn named(args: Args<'_>, at: usize) -> Option<Scalar> {
    SCALARS.iter().find(|row| is_word(args, at, row.3)).map(|row| row.0)
}

/// Parses argument `at` as the name of a metric after METRIC or DISTANCE.
pub(crate) fn metric(args: Args<'_>, at: usize) -> Option<Metric> {
    METRICS.iter().find(|(_, name)| is_word(args, at, name)).map(|&(metric, _)| metric)
}

/// Returns the name of a metric.
pub(crate) fn metric_name(metric: Metric) -> &'static str {
    METRICS.iter().find(|row| row.0 == metric).expect("the table is complete").1
}
