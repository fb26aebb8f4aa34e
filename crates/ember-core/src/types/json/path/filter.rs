//! Filters: conditions on the elements of a container.
//!
//! A term with several values fulfils a comparison if one of them does; a term without values fulfils none, except that
//! it differs from everything. Without a comparison, a term is true if it has values.

use std::cmp::Ordering;

use super::evaluate::{Evaluation, TooManySteps};
use super::{Segment, parse};
use crate::types::json::numbers::Number;
use crate::types::json::packed::{self, View};

/// The steps that compiling a pattern counts for.
const COMPILE_STEPS: usize = 2000;

/// The bytes of a text that a pattern examines in one step.
const MATCHED_BYTES_PER_STEP: usize = 4;

/// A condition.
#[derive(Clone, Debug)]
pub enum Filter {
    /// At least one of the conditions is true.
    Any(Vec<Filter>),
    /// All of the conditions are true.
    All(Vec<Filter>),
    /// The opposite of the condition.
    Not(Box<Filter>),
    /// The term has values.
    Exists(Term),
    /// The comparison of two terms.
    Compare {
        /// The left term.
        left: Term,
        /// The comparison.
        comparison: Comparison,
        /// The right term.
        right: Term,
        /// The compiled right term of [`Comparison::Matches`].
        pattern: Pattern,
    },
}

/// A comparison of two terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
    /// `=~`: the left string contains a match of the right one, a regular expression.
    Matches,
}

/// A pattern whose text is in the path.
#[derive(Clone, Debug)]
pub enum Pattern {
    /// The pattern is not in the path, or there is none.
    None,
    /// The compiled pattern; `None` if it is invalid.
    Fixed(Option<regex::Regex>),
}

/// A side of a comparison.
#[derive(Clone, Debug)]
pub enum Term {
    /// Values in the element under test.
    Current(Vec<Segment>),
    /// Values in the whole document.
    Root(Vec<Segment>),
    /// An integer.
    Int(i64),
    /// A double.
    Double(f64),
    /// A string.
    String(Vec<u8>),
    /// `true` or `false`.
    Bool(bool),
    /// `null`
    Null,
}

/// A value of a term.
#[derive(Clone, Copy)]
enum Operand<'d> {
    Value(usize),
    Literal(View<'d>),
}

impl Filter {
    /// Returns whether the element at `at` fulfils the condition.
    pub(super) fn holds(&self, evaluation: &mut Evaluation<'_>, at: usize) -> Result<bool, TooManySteps> {
        evaluation.count_steps(1)?;
        match self {
            Filter::Any(filters) => {
                for filter in filters {
                    if filter.holds(evaluation, at)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Filter::All(filters) => {
                for filter in filters {
                    if !filter.holds(evaluation, at)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Filter::Not(filter) => Ok(!filter.holds(evaluation, at)?),
            Filter::Exists(term) => Ok(!term.values(evaluation, at)?.is_empty()),
            Filter::Compare { left, comparison, right, pattern } => {
                let left = left.values(evaluation, at)?;
                if let (Comparison::Matches, Pattern::Fixed(pattern)) = (comparison, pattern) {
                    let Some(pattern) = pattern else { return Ok(false) };
                    return matches_any(evaluation, &left, pattern);
                }
                let right = right.values(evaluation, at)?;
                if *comparison == Comparison::NotEqual {
                    return Ok(!compares(evaluation, &left, Comparison::Equal, &right)?);
                }
                compares(evaluation, &left, *comparison, &right)
            }
        }
    }
}

impl Term {
    fn values<'d>(
        &'d self,
        evaluation: &mut Evaluation<'_>,
        at: usize,
    ) -> Result<Vec<Operand<'d>>, TooManySteps> {
        let literal = match self {
            Term::Current(segments) => return values_at(evaluation, segments, at),
            Term::Root(segments) => return values_at(evaluation, segments, 0),
            Term::Int(number) => View::Number(Number::Int(*number)),
            Term::Double(number) => View::Number(Number::Double(*number)),
            Term::String(text) => View::String(text),
            Term::Bool(value) => View::Bool(*value),
            Term::Null => View::Null,
        };
        Ok(vec![Operand::Literal(literal)])
    }
}

fn values_at<'d>(
    evaluation: &mut Evaluation<'_>,
    segments: &[Segment],
    at: usize,
) -> Result<Vec<Operand<'d>>, TooManySteps> {
    let found = evaluation.values_in(segments, at)?;
    Ok(found.into_iter().map(Operand::Value).collect())
}

fn compares(
    evaluation: &mut Evaluation<'_>,
    left: &[Operand<'_>],
    comparison: Comparison,
    right: &[Operand<'_>],
) -> Result<bool, TooManySteps> {
    for &one in left {
        for &other in right {
            evaluation.count_steps(1)?;
            if holds(evaluation, one, comparison, other)? {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

fn holds(
    evaluation: &mut Evaluation<'_>,
    one: Operand<'_>,
    comparison: Comparison,
    other: Operand<'_>,
) -> Result<bool, TooManySteps> {
    let doc = evaluation.doc();
    if let (Comparison::Equal, Operand::Value(one), Operand::Value(other)) = (comparison, one, other) {
        let bytes = (packed::end(doc, one) - one).min(packed::end(doc, other) - other);
        evaluation.count_steps(bytes)?;
        return Ok(packed::is_equal((doc, one), (doc, other), packed::Numbers::ByValue));
    }
    let of = |operand| match operand {
        Operand::Value(at) => packed::view(doc, at),
        Operand::Literal(literal) => literal,
    };
    let (one, other) = (of(one), of(other));
    if comparison == Comparison::Matches {
        let (View::String(text), View::String(pattern)) = (one, other) else { return Ok(false) };
        evaluation.count_steps(COMPILE_STEPS + pattern.len() + text.len() / MATCHED_BYTES_PER_STEP)?;
        let pattern = std::str::from_utf8(pattern).ok().and_then(parse::compile);
        return Ok(
            pattern.is_some_and(|pattern| std::str::from_utf8(text).is_ok_and(|text| pattern.is_match(text)))
        );
    }
    let order = match (one, other) {
        (View::Number(one), View::Number(other)) => one.compare(other),
        (View::String(one), View::String(other)) => one.cmp(other),
        (View::Bool(one), View::Bool(other)) => one.cmp(&other),
        (View::Null, View::Null) => Ordering::Equal,
        _ => return Ok(false),
    };
    Ok(match comparison {
        Comparison::Equal => order.is_eq(),
        Comparison::NotEqual => order.is_ne(),
        Comparison::Less => order.is_lt(),
        Comparison::LessOrEqual => order.is_le(),
        Comparison::Greater => order.is_gt(),
        Comparison::GreaterOrEqual => order.is_ge(),
        Comparison::Matches => false,
    })
}

fn matches_any(
    evaluation: &mut Evaluation<'_>,
    values: &[Operand<'_>],
    pattern: &regex::Regex,
) -> Result<bool, TooManySteps> {
    let doc = evaluation.doc();
    for &value in values {
        let view = match value {
            Operand::Value(at) => packed::view(doc, at),
            Operand::Literal(literal) => literal,
        };
        let View::String(text) = view else { continue };
        evaluation.count_steps(1 + text.len() / MATCHED_BYTES_PER_STEP)?;
        if std::str::from_utf8(text).is_ok_and(|text| pattern.is_match(text)) {
            return Ok(true);
        }
    }
    Ok(false)
}
