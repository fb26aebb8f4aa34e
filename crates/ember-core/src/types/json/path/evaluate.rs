//! The evaluation of paths: positions of the selected values, in the order of the document for each segment.

use super::Segment;
use crate::types::json::packed;

/// The steps of an evaluation of any document. A step examines one value.
const STEPS_MIN: usize = 1 << 20;

/// The additional steps for each byte of the document: enough to examine every value of it several times.
const STEPS_PER_BYTE: usize = 8;

/// The bytes of a selected value that count as one step, because the command will read them.
const SELECTED_BYTES_PER_STEP: usize = 64;

/// The evaluation of a path needs more steps than it may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManySteps;

/// An evaluation of paths on a document. Its steps are limited, because their number may grow exponentially with the
/// number of segments.
#[derive(Debug)]
pub struct Evaluation<'d> {
    doc: &'d [u8],
    steps_left: usize,
}

impl<'d> Evaluation<'d> {
    /// Begins an evaluation.
    pub fn new(doc: &'d [u8]) -> Evaluation<'d> {
        Evaluation { doc, steps_left: doc.len().saturating_mul(STEPS_PER_BYTE).saturating_add(STEPS_MIN) }
    }

    /// Returns the document.
    pub(super) fn doc(&self) -> &'d [u8] {
        self.doc
    }

    /// Counts steps.
    pub(super) fn count_steps(&mut self, steps: usize) -> Result<(), TooManySteps> {
        self.steps_left = self.steps_left.checked_sub(steps).ok_or(TooManySteps)?;
        Ok(())
    }

    /// Returns the positions of all values that the segments select; a value may occur several times.
    ///
    /// # Errors
    /// Returns an error after too many steps.
    pub fn run(&mut self, segments: &[Segment]) -> Result<Vec<usize>, TooManySteps> {
        self.values_in(segments, 0)
    }

    /// Like [`Evaluation::run`], from the value at `at`.
    pub(super) fn values_in(&mut self, segments: &[Segment], at: usize) -> Result<Vec<usize>, TooManySteps> {
        let mut found = Vec::new();
        self.select(segments, at, &mut found)?;
        Ok(found)
    }

    fn select(
        &mut self,
        segments: &[Segment],
        at: usize,
        found: &mut Vec<usize>,
    ) -> Result<(), TooManySteps> {
        self.count_steps(1)?;
        let Some((segment, rest)) = segments.split_first() else {
            self.count_steps((packed::end(self.doc, at) - at) / SELECTED_BYTES_PER_STEP)?;
            found.push(at);
            return Ok(());
        };
        if matches!(segment, Segment::Descend) {
            self.select(rest, at, found)?;
            for child in packed::children(self.doc, at).into_iter().flatten() {
                self.select(segments, child.at, found)?;
            }
            return Ok(());
        }
        let Some(children) = packed::children(self.doc, at) else { return Ok(()) };
        match segment {
            Segment::Name(name) => self.select_named(name, at, rest, found),
            Segment::Names(names) => {
                names.iter().try_for_each(|name| self.select_named(name, at, rest, found))
            }
            Segment::Indexes(_) | Segment::Range { .. } if children.is_object() => Ok(()),
            Segment::Indexes(indexes) => {
                let len = children.len();
                for &index in indexes {
                    let index = absolute(index, len);
                    self.count_steps(index.min(len))?;
                    let mut children = children;
                    if let Some(child) = children.nth(index) {
                        self.select(rest, child.at, found)?;
                    }
                }
                Ok(())
            }
            Segment::Range { start, end, step } => {
                let len = children.len();
                let (start, end) = (absolute(*start, len), end.map_or(len, |end| absolute(end, len)));
                self.count_steps(end)?;
                for child in children.take(end).skip(start).step_by(*step) {
                    self.select(rest, child.at, found)?;
                }
                Ok(())
            }
            Segment::All => {
                for child in children {
                    self.select(rest, child.at, found)?;
                }
                Ok(())
            }
            Segment::Filter(filter) => {
                for child in children {
                    self.count_steps(1)?;
                    if filter.holds(self, child.at)? {
                        self.select(rest, child.at, found)?;
                    }
                }
                Ok(())
            }
            Segment::Descend => Ok(()),
        }
    }

    fn select_named(
        &mut self,
        name: &[u8],
        at: usize,
        rest: &[Segment],
        found: &mut Vec<usize>,
    ) -> Result<(), TooManySteps> {
        let Some(children) = packed::children(self.doc, at).filter(packed::Children::is_object) else {
            return Ok(());
        };
        for (examined, child) in children.enumerate() {
            if child.name == Some(name) {
                self.count_steps(examined)?;
                return self.select(rest, child.at, found);
            }
        }
        self.count_steps(children.len())
    }
}

/// Returns an index from the beginning: a negative one counts from the end, and one before the beginning becomes 0.
fn absolute(index: i64, len: usize) -> usize {
    match usize::try_from(index) {
        Ok(index) => index.min(len),
        Err(_) => len.saturating_sub(usize::try_from(index.unsigned_abs()).unwrap_or(usize::MAX)),
    }
}
