//! The percentiles of command latency in INFO.

/// The maximum number of percentiles, each of which adds a field to the INFO line of every command.
const PERCENTILES_MAX: usize = 32;

/// Reads percentiles from 0 to 100, separated by white space.
pub(crate) fn parse(text: &str) -> Result<Vec<f64>, String> {
    let mut percentiles = Vec::new();
    for word in text.split_whitespace() {
        let percentile: f64 =
            word.parse().map_err(|_| "Invalid latency-tracking-info-percentiles parameters".to_owned())?;
        if !(0.0..=100.0).contains(&percentile) {
            return Err(
                "latency-tracking-info-percentiles parameters should sit between [0.0,100.0]".to_owned()
            );
        }
        if percentiles.len() == PERCENTILES_MAX {
            return Err(format!("at most {PERCENTILES_MAX} percentiles"));
        }
        // Rounds to the six decimals that are shown; adding 0.0 turns a negative zero into zero.
        percentiles.push((percentile * 1e6).round() / 1e6 + 0.0);
    }
    Ok(percentiles)
}

/// Returns the text that [`parse`] reads, with up to six decimals.
pub(crate) fn format(percentiles: &[f64]) -> String {
    let words: Vec<_> = percentiles.iter().map(|percentile| format_one(*percentile)).collect();
    words.join(" ")
}

/// Formats one percentile as INFO shows it: `50`, `99.9`.
pub(crate) fn format_one(percentile: f64) -> String {
    let text = format!("{percentile:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_printed_without_needless_zeros() {
        for (text, expected) in [
            ("50 99 99.9", "50 99 99.9"),
            ("50.123456789 99 100.0", "50.123457 99 100"),
            ("0 -0", "0 0"),
            ("10", "10"),
            ("", ""),
        ] {
            let parsed = parse(text).unwrap();
            assert_eq!(format(&parsed), expected);
            assert_eq!(parse(expected).unwrap(), parsed);
        }
    }

    #[test]
    fn percentiles_outside_0_to_100_are_refused() {
        let outside = "latency-tracking-info-percentiles parameters should sit between [0.0,100.0]";
        for text in ["101", "-1", "nan", "inf"] {
            assert_eq!(parse(text), Err(outside.to_owned()));
        }
        assert_eq!(parse("a"), Err("Invalid latency-tracking-info-percentiles parameters".to_owned()));
        assert!(parse(&"50 ".repeat(33)).is_err());
    }
}
