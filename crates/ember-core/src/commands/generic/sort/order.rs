//! The sort order of SORT.

use std::cmp::Ordering;

use ember_protocol::number;

use super::pattern::bytes_of;
use crate::error::CommandError;
use crate::types::value::StringValue;

/// The order of the elements.
#[derive(Clone, Copy, Debug)]
pub(super) struct Order {
    /// Whether the greatest element is first.
    pub(super) is_descending: bool,
    /// Whether weights are compared as bytes instead of numbers.
    pub(super) is_text: bool,
}

impl Order {
    /// Sorts elements by their weights. `weigh` passes the weight of an element to the function that `weigh` receives.
    /// A missing weight counts as the number 0, or as less than any text. Elements whose weights are equal numbers are
    /// ordered by their bytes. O(n log n).
    ///
    /// # Errors
    /// Returns an error if a weight must be a number and is not.
    pub(super) fn sort(
        self,
        elements: &mut Vec<Vec<u8>>,
        mut weigh: impl FnMut(&[u8], &mut dyn FnMut(Option<StringValue<'_>>)),
    ) -> Result<(), CommandError> {
        if self.is_text {
            let weights = elements.drain(..).map(|element| {
                let mut text = None;
                weigh(&element, &mut |weight| text = weight.map(bytes_of));
                (text, element)
            });
            let mut weighed: Vec<(Option<Vec<u8>>, Vec<u8>)> = weights.collect();
            weighed.sort_by(|one, other| self.direct(one.0.cmp(&other.0)));
            elements.extend(weighed.into_iter().map(|(_, element)| element));
            return Ok(());
        }
        let weights = elements.drain(..).map(|element| {
            let mut number = None;
            weigh(&element, &mut |weight| number = weight.map_or(Some(0.0), number_of));
            number.map(|number| (number, element))
        });
        let weighed: Option<Vec<(f64, Vec<u8>)>> = weights.collect();
        let mut weighed = weighed.ok_or("ERR One or more scores can't be converted into double")?;
        weighed.sort_by(|one, other| {
            let by_number = one.0.partial_cmp(&other.0).unwrap_or(Ordering::Equal);
            self.direct(by_number.then_with(|| one.1.cmp(&other.1)))
        });
        elements.extend(weighed.into_iter().map(|(_, element)| element));
        Ok(())
    }

    fn direct(self, order: Ordering) -> Ordering {
        if self.is_descending { order.reverse() } else { order }
    }
}

/// Returns a weight as a number; `None` if the weight is not a number.
fn number_of(weight: StringValue<'_>) -> Option<f64> {
    match weight {
        StringValue::Int(number) => Some(number as f64),
        StringValue::Inline(text) => number_of_text(text),
        StringValue::Large(large) => number_of_text(large.bytes()),
    }
}

/// Parses a number like C's `strtod`: skips leading white space and ends at a NUL; an empty text is 0.
///
/// A decimal number below the smallest normal number is out of `strtod`'s range, because it has lost digits.
fn number_of_text(text: &[u8]) -> Option<f64> {
    let text = text.split(|&byte| byte == 0).next().unwrap_or_default();
    if text.is_empty() {
        return Some(0.0);
    }
    let is_space = |byte: &u8| matches!(byte, b' ' | b'\t'..=b'\r');
    let start = text.iter().position(|byte| !is_space(byte))?;
    let text = &text[start..];
    let is_hexadecimal = text.iter().any(|byte| matches!(byte, b'x' | b'X'));
    number::parse_f64(text).filter(|number| is_hexadecimal || !number.is_subnormal())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_numbers_as_strtod_reads_them() {
        for (text, number) in [
            (&b""[..], Some(0.0)),
            (b" \t12", Some(12.0)),
            (b"12\0x", Some(12.0)),
            (b"-inf", Some(f64::NEG_INFINITY)),
            (b"0x10", Some(16.0)),
            (b"12 ", None),
            (b"  ", None),
            (b"nan", None),
            (b"1e999", None),
            (b"5e-324", None),
            (b"-1e-310", None),
            (b"0x1p-1074", Some(f64::from_bits(1))),
            (b"2.2250738585072014e-308", Some(f64::MIN_POSITIVE)),
            (b"abc", None),
        ] {
            assert_eq!(number_of_text(text), number, "{}", text.escape_ascii());
        }
    }
}
