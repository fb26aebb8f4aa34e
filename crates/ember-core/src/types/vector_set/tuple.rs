//! The values of a filter expression, and lists of them with an index for repeated comparisons.
//!
//! Two values are equal as texts, as null, or else as numbers. So the index of a list contains its texts, its numbers,
//! and the numbers that its texts represent, each in order: a comparison with all elements takes three binary searches.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::sync::{Arc, OnceLock};

/// The maximum number of elements of a list that is scanned: an index would cost more than it saves.
const SCANNED_MAX: usize = 16;

/// Bytes of text whose comparison takes about as long as one element of a list.
const ELEMENT_WORK: usize = 16;

/// The work of a look-up in an index.
const LOOKUP_WORK: usize = 4 * ELEMENT_WORK;

/// A value of an expression.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value<'t> {
    Number(f64),
    String(Cow<'t, [u8]>),
    Tuple(Arc<Tuple<'t>>),
    Null,
}

/// A list of values.
#[derive(Clone, Debug)]
pub(super) struct Tuple<'t> {
    elements: Box<[Value<'t>]>,
    index: OnceLock<Index>,
}

/// The elements of a list in the orders of [`Value::equals`].
#[derive(Clone, Debug)]
struct Index {
    /// Indexes of the elements that are texts, in the order of their bytes.
    texts: Box<[u32]>,
    /// The numbers that the texts of the list represent, ascending.
    text_numbers: Box<[f64]>,
    /// All other elements as numbers, ascending.
    numbers: Box<[f64]>,
    has_null: bool,
}

impl PartialEq for Tuple<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.elements == other.elements
    }
}

impl<'t> From<Vec<Value<'t>>> for Value<'t> {
    fn from(elements: Vec<Value<'t>>) -> Value<'t> {
        Value::Tuple(Arc::new(Tuple { elements: elements.into(), index: OnceLock::new() }))
    }
}

fn ascending(numbers: impl Iterator<Item = f64>) -> Box<[f64]> {
    // NaN equals no value.
    let mut numbers: Vec<f64> = numbers.filter(|number| !number.is_nan()).collect();
    numbers.sort_unstable_by(f64::total_cmp);
    numbers.into()
}

fn has_number(ascending: &[f64], number: f64) -> bool {
    // Both zeros are equal, so the order is not the total one.
    ascending.binary_search_by(|other| other.partial_cmp(&number).unwrap_or(Ordering::Less)).is_ok()
}

impl Tuple<'_> {
    /// Prepares a list that is compared with many values. O(n log n).
    pub(super) fn prepare(&self) {
        if self.elements.len() > SCANNED_MAX {
            self.index();
        }
    }

    fn text_at(&self, at: u32) -> &[u8] {
        match &self.elements[at as usize] {
            Value::String(text) => text,
            _ => unreachable!("the index has the places of texts"),
        }
    }

    fn index(&self) -> &Index {
        self.index.get_or_init(|| {
            let is_text = |value: &Value<'_>| matches!(value, Value::String(_));
            let mut texts: Vec<u32> =
                (0..self.elements.len() as u32).filter(|&at| is_text(&self.elements[at as usize])).collect();
            texts.sort_unstable_by_key(|&at| self.text_at(at));
            let others = self.elements.iter().filter(|value| !is_text(value) && **value != Value::Null);
            Index {
                text_numbers: ascending(texts.iter().map(|&at| self.elements[at as usize].number())),
                numbers: ascending(others.map(Value::number)),
                has_null: self.elements.contains(&Value::Null),
                texts: texts.into(),
            }
        })
    }

    /// Returns whether an element equals a value. O(n), or O(log n) with an index.
    fn has(&self, value: &Value<'_>) -> bool {
        let Some(index) = self.index.get() else {
            return self.elements.iter().any(|element| element.equals(value));
        };
        match value {
            Value::Null => index.has_null,
            Value::String(text) => {
                index.texts.binary_search_by_key(&&**text, |&at| self.text_at(at)).is_ok()
                    || has_number(&index.numbers, value.number())
            }
            Value::Number(_) | Value::Tuple(_) => {
                let number = value.number();
                has_number(&index.numbers, number) || has_number(&index.text_numbers, number)
            }
        }
    }
}

impl Value<'_> {
    pub(super) fn number(&self) -> f64 {
        match self {
            Value::Number(number) => *number,
            Value::String(text) => {
                let text = text.trim_ascii_start();
                ember_protocol::number::parse_f64_rounded(text).unwrap_or(0.0)
            }
            Value::Tuple(_) | Value::Null => 0.0,
        }
    }

    /// Returns whether this value and `other` are identical: 0 and -0 are not.
    pub(super) fn is_same(&self, other: &Value<'_>) -> bool {
        match (self, other) {
            (Value::Number(a), Value::Number(b)) => a.to_bits() == b.to_bits(),
            (Value::Tuple(a), Value::Tuple(b)) => {
                a.elements.len() == b.elements.len()
                    && a.elements.iter().zip(&*b.elements).all(|(a, b)| a.is_same(b))
            }
            (a, b) => a == b,
        }
    }

    fn elements(&self) -> &[Value<'_>] {
        match self {
            Value::Tuple(tuple) => &tuple.elements,
            _ => &[],
        }
    }

    /// Returns whether this value equals `value`, or is a list that contains `value`.
    pub(super) fn has(&self, value: &Value<'_>) -> bool {
        match self {
            Value::Tuple(tuple) => tuple.has(value),
            _ => self.equals(value),
        }
    }

    /// Prepares a comparison of this value with all elements of a list.
    fn prepare_for(&self, others: &Value<'_>) {
        if let Value::Tuple(tuple) = self
            && others.elements().len() > SCANNED_MAX
        {
            tuple.prepare();
        }
    }

    /// Returns whether this value equals or contains one of the elements of a list. O((n + m) log n).
    pub(super) fn has_any(&self, others: &Value<'_>) -> bool {
        self.prepare_for(others);
        others.elements().iter().any(|element| self.has(element))
    }

    /// Returns whether this value equals or contains all elements of a list. O((n + m) log n).
    pub(super) fn has_all(&self, others: &Value<'_>) -> bool {
        self.prepare_for(others);
        others.elements().iter().all(|element| self.has(element))
    }

    /// Returns whether this value is a list that contains the element `part`, or a text that contains the text `part`.
    /// O(its length).
    pub(super) fn contains(&self, part: &Value<'_>) -> bool {
        match (self, part) {
            // The search would read `part` first, however short the text is.
            (Value::String(text), Value::String(part)) => {
                part.len() <= text.len() && memchr::memmem::find(text, part).is_some()
            }
            _ => self.has(part),
        }
    }

    pub(super) fn is_true(&self) -> bool {
        match self {
            Value::Number(number) => *number != 0.0,
            Value::String(text) => !text.is_empty(),
            Value::Tuple(_) => true,
            Value::Null => false,
        }
    }

    pub(super) fn equals(&self, other: &Value<'_>) -> bool {
        match (self, other) {
            (Value::String(a), Value::String(b)) => a == b,
            (Value::Null, other) | (other, Value::Null) => matches!(other, Value::Null),
            _ => self.number() == other.number(),
        }
    }

    /// Returns the work of an operator with this value, in bytes of text that take about as long.
    pub(super) fn work(&self) -> usize {
        match self {
            Value::Number(_) | Value::Null => 0,
            Value::String(text) => text.len(),
            Value::Tuple(tuple) if tuple.index.get().is_some() => LOOKUP_WORK,
            Value::Tuple(tuple) => tuple.elements.len().saturating_mul(ELEMENT_WORK),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithms::random::Random;

    fn text(text: &str) -> Value<'static> {
        Value::String(text.as_bytes().to_vec().into())
    }

    #[test]
    fn an_index_finds_the_same_values_as_a_scan() {
        let mut random = Random::seeded(7);
        let texts = ["", "0", "-0", "1", "1.0", " 1", "0x1", "nan", "inf", "a", "b"];
        let numbers = [0.0, -0.0, 1.0, 2.0, f64::NAN, f64::INFINITY];
        let value = |random: &mut Random| match random.below(5) {
            0 => Value::Null,
            1 => Value::Tuple(Arc::new(Tuple { elements: Box::default(), index: OnceLock::new() })),
            2 | 3 => text(texts[random.below(texts.len())]),
            _ => Value::Number(numbers[random.below(numbers.len())]),
        };
        for _ in 0..2000 {
            let elements: Vec<Value<'_>> = (0..random.below(6)).map(|_| value(&mut random)).collect();
            let wanted = value(&mut random);
            let tuple = Tuple { elements: elements.into(), index: OnceLock::new() };
            let scanned = tuple.has(&wanted);
            tuple.index();
            assert_eq!(tuple.has(&wanted), scanned, "{:?} has {wanted:?}", tuple.elements);
        }
    }

    #[test]
    fn long_and_short_lists_compare_alike() {
        let list = |numbers: std::ops::Range<u32>| {
            Value::from(numbers.map(|number| text(&number.to_string())).collect::<Vec<_>>())
        };
        let all = list(0..100);
        assert!(all.has_all(&list(50..90)) && !all.has_all(&list(50..101)));
        assert!(all.has_any(&list(99..140)) && !all.has_any(&list(100..140)));
        assert!(all.has_all(&list(0..0)) && !all.has_any(&list(0..0)));
    }
}
