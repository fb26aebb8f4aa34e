//! Changes of a packed document. One change moves the bytes after it once; several changes rewrite the document once.

use std::borrow::Cow;
use std::collections::HashMap;
use std::iter::Peekable;
use std::ops::Range;
use std::vec::IntoIter;

use super::packed::{self, DEPTH_MAX, HEAD_BYTES_MAX, NULL_VALUE, View};
use crate::memory::capacity_class;

/// The maximum size of a packed document in bytes, that of strings. The lengths in a document have 32 bits.
pub const DOCUMENT_BYTES_MAX: usize = 512 << 20;

/// The reason why a document cannot be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EditError {
    /// The document would exceed [`DOCUMENT_BYTES_MAX`].
    TooLarge,
    /// The document would have more than [`DEPTH_MAX`] nested containers.
    TooDeep,
}

/// A change of one value of a document.
#[derive(Clone, Debug)]
pub enum Change<'c> {
    /// Replace the value by this packed value.
    Replace(Cow<'c, [u8]>),
    /// Remove the value, with its name if it is a member. The value is not the whole document.
    Remove,
    /// Replace elements of this container by others. The end of the range may exceed the number of elements.
    Splice {
        /// The elements to be removed.
        removed: Range<usize>,
        /// The new elements, packed; members begin with their names.
        added: &'c [u8],
        /// The number of new elements.
        count: usize,
    },
    /// Remove all elements of this container outside of a range.
    Keep(Range<usize>),
    /// Merge this packed value into the value, after the changes inside of it (RFC 7396).
    Merge(&'c [u8]),
}

/// Applies changes of values, one for each position. Changes inside of a replaced or removed value are ignored.
/// `depth` is the number of nested containers of the deepest added value. O(bytes after the change) for one change,
/// otherwise O(bytes of the document and of the changes).
///
/// # Errors
/// Returns an error if the document would exceed a limit; it is then unchanged.
pub(super) fn apply(
    doc: &mut Vec<u8>,
    mut changes: Vec<(usize, Change<'_>)>,
    depth: usize,
) -> Result<(), EditError> {
    let added = changes.iter().fold(0usize, |sum, (_, change)| sum.saturating_add(change.added_bytes()));
    let len = doc.len().saturating_add(added);
    if len > DOCUMENT_BYTES_MAX {
        return Err(EditError::TooLarge);
    }
    if changes.len() == 1
        && let Some((at, change)) = changes.pop()
    {
        return apply_one(doc, at, change, depth);
    }
    changes.sort_by_key(|&(at, _)| at);
    changes.dedup_by_key(|&mut (at, _)| at);
    let mut rewriting =
        Rewriting { out: Vec::with_capacity(len), changes: changes.into_iter().peekable(), depth };
    rewriting.value(doc, 0, 0)?;
    rewriting.out.shrink_to_fit();
    *doc = rewriting.out;
    Ok(())
}

impl Change<'_> {
    /// Returns the bytes that the change adds.
    pub fn added_bytes(&self) -> usize {
        match self {
            Change::Replace(bytes) => bytes.len(),
            Change::Splice { added, .. } | Change::Merge(added) => added.len(),
            Change::Remove | Change::Keep(_) => 0,
        }
    }
}

fn check_depth(depth: usize) -> Result<(), EditError> {
    if depth <= DEPTH_MAX { Ok(()) } else { Err(EditError::TooDeep) }
}

fn apply_one(doc: &mut Vec<u8>, at: usize, change: Change<'_>, depth: usize) -> Result<(), EditError> {
    let (mut chain, start) = ancestors(doc, at);
    match change {
        Change::Merge(patch) => {
            let mut merged = Vec::new();
            merge((doc, at), (patch, 0), &mut merged);
            return apply_one(doc, at, Change::Replace(merged.into()), depth);
        }
        Change::Replace(bytes) => {
            check_depth(chain.len() + depth)?;
            let end = packed::end(doc, at);
            replace(doc, &chain, at..end, &bytes, 0);
        }
        Change::Remove => {
            let end = packed::end(doc, at);
            replace(doc, &chain, start..end, &[], -1);
        }
        Change::Splice { removed, added, count } => {
            chain.push(at);
            check_depth(chain.len() + depth)?;
            let (range, gone) = element_range(doc, at, &removed);
            replace(doc, &chain, range, added, count as isize - gone as isize);
        }
        Change::Keep(kept) => {
            chain.push(at);
            let (range, gone) = element_range(doc, at, &(kept.end.max(kept.start)..usize::MAX));
            replace(doc, &chain, range, &[], -(gone as isize));
            let (range, gone) = element_range(doc, at, &(0..kept.start));
            replace(doc, &chain, range, &[], -(gone as isize));
        }
    }
    Ok(())
}

/// Returns the positions of the containers around the value at `at`, outermost first, and the start of the value,
/// including its name. O(elements before it in each of them).
fn ancestors(doc: &[u8], at: usize) -> (Vec<usize>, usize) {
    let (mut chain, mut container, mut start) = (Vec::new(), 0, 0);
    while container != at {
        chain.push(container);
        let mut children = packed::children(doc, container).expect("a value is in a container");
        let child = children.find(|child| at < child.end).expect("a value is in a container");
        (container, start) = (child.at, child.start);
    }
    (chain, start)
}

/// Returns the bytes of elements of a container, and their number.
fn element_range(doc: &[u8], at: usize, elements: &Range<usize>) -> (Range<usize>, usize) {
    let mut children = packed::children(doc, at).expect("only containers have elements");
    let end = packed::end(doc, at);
    if elements.start >= children.len() {
        return (end..end, 0);
    }
    let from = children.nth(elements.start).map_or(end, |child| child.start);
    if elements.is_empty() {
        return (from..from, 0);
    }
    if elements.end == usize::MAX {
        let all = packed::children(doc, at).map_or(0, |children| children.len());
        return (from..end, all - elements.start);
    }
    let mut gone = 1;
    let mut to = children.next().map(|child| child.start);
    while gone < elements.len() && to.is_some() {
        to = children.next().map(|child| child.start);
        gone += 1;
    }
    (from..to.unwrap_or(end), gone)
}

/// Replaces bytes of the innermost container of `chain`; `more` is the change of its number of elements.
fn replace(doc: &mut Vec<u8>, chain: &[usize], range: Range<usize>, bytes: &[u8], more: isize) {
    let mut growth = bytes.len() as isize - range.len() as isize;
    if growth == 0 && more == 0 {
        doc[range].copy_from_slice(bytes);
        return;
    }
    let len = doc.len() - range.len() + bytes.len() + chain.len() * HEAD_BYTES_MAX;
    if len > doc.capacity() {
        doc.reserve_exact(capacity_class(len) - doc.len());
    }
    doc.splice(range, bytes.iter().copied());
    let mut more = more;
    for &container in chain.iter().rev() {
        growth = packed::resize(doc, container, growth, more);
        more = 0;
    }
    // A document that has lost half of its bytes does not keep their memory.
    if doc.len() < doc.capacity() / 2 {
        doc.shrink_to_fit();
    }
}

/// A changed document that is being written.
struct Rewriting<'c> {
    out: Vec<u8>,
    /// The changes that were not reached yet, in the order of their positions.
    changes: Peekable<IntoIter<(usize, Change<'c>)>>,
    /// The depth of the deepest added value.
    depth: usize,
}

impl Rewriting<'_> {
    /// Appends the value at `at`, which is nested in `level` containers, with the changes in it.
    fn value(&mut self, doc: &[u8], at: usize, level: usize) -> Result<(), EditError> {
        let end = packed::end(doc, at);
        if self.changes.peek().is_none_or(|&(next, _)| next >= end) {
            self.out.extend_from_slice(&doc[at..end]);
            return Ok(());
        }
        let own = self.changes.next_if(|&(next, _)| next == at).map(|(_, change)| change);
        if let Some(Change::Replace(bytes)) = &own {
            check_depth(level + self.depth)?;
            self.out.extend_from_slice(bytes);
            self.skip_to(end);
            return Ok(());
        }
        if let Some(Change::Merge(patch)) = own {
            check_depth(level + self.depth)?;
            let begin = self.out.len();
            self.contents(doc, at, level, None)?;
            let value = self.out.split_off(begin);
            merge((&value, 0), (patch, 0), &mut self.out);
            return Ok(());
        }
        self.contents(doc, at, level, own)
    }

    /// Appends the value at `at` with the changes in it; `own` is the change of its own elements, if any.
    fn contents(
        &mut self,
        doc: &[u8],
        at: usize,
        level: usize,
        own: Option<Change<'_>>,
    ) -> Result<(), EditError> {
        let Some(children) = packed::children(doc, at) else {
            self.out.extend_from_slice(&doc[at..packed::end(doc, at)]);
            return Ok(());
        };
        let (mut removed, mut added, mut count) = (usize::MAX..usize::MAX, &b""[..], 0);
        let mut kept = 0..usize::MAX;
        match own {
            Some(Change::Splice { removed: range, added: elements, count: more }) => {
                check_depth(level + 1 + self.depth)?;
                (removed, added, count) = (range, elements, more);
            }
            Some(Change::Keep(range)) => kept = range,
            _ => {}
        }
        let container = packed::open(&mut self.out, children.is_object());
        let mut is_added = false;
        for (index, child) in children.enumerate() {
            if index == removed.start {
                self.out.extend_from_slice(added);
                is_added = true;
            }
            let is_own = |&(next, ref change): &(usize, Change<'_>)| {
                next == child.at && matches!(change, Change::Remove)
            };
            let is_removed = self.changes.next_if(is_own).is_some();
            if is_removed || removed.contains(&index) || !kept.contains(&index) {
                self.skip_to(child.end);
                continue;
            }
            self.out.extend_from_slice(&doc[child.start..child.at]);
            self.value(doc, child.at, level + 1)?;
            count += 1;
        }
        if !is_added {
            self.out.extend_from_slice(added);
        }
        packed::close(&mut self.out, container, count);
        Ok(())
    }

    /// Skips the changes before a position.
    fn skip_to(&mut self, end: usize) {
        while self.changes.next_if(|&(next, _)| next < end).is_some() {}
    }
}

/// Appends the value `value` of a document, into which `patch` is merged: members of a patch that are null remove
/// members, others are merged into them; a patch that is no object replaces the value. O(bytes of both).
fn merge(value: (&[u8], usize), patch: (&[u8], usize), out: &mut Vec<u8>) {
    let View::Object(patches) = packed::view(patch.0, patch.1) else {
        out.extend_from_slice(&patch.0[patch.1..packed::end(patch.0, patch.1)]);
        return;
    };
    let mut left: HashMap<&[u8], usize> = HashMap::new();
    left.extend(patches.map(|member| (member.name.unwrap_or_default(), member.at)));
    let is_null = |at| matches!(packed::view(patch.0, at), View::Null);
    let container = packed::open(out, true);
    let mut count = 0;
    if let View::Object(members) = packed::view(value.0, value.1) {
        for member in members {
            match member.name.and_then(|name| left.remove(name)) {
                Some(at) if is_null(at) => continue,
                Some(at) => {
                    out.extend_from_slice(&value.0[member.start..member.at]);
                    merge((value.0, member.at), (patch.0, at), out);
                }
                None => out.extend_from_slice(&value.0[member.start..member.end]),
            }
            count += 1;
        }
    }
    for member in patches {
        let is_new = member.name.is_some_and(|name| left.contains_key(name));
        if is_new && !is_null(member.at) {
            out.extend_from_slice(&patch.0[member.start..member.at]);
            // A new value begins as null, so that nulls in it disappear, too.
            merge((NULL_VALUE, 0), (patch.0, member.at), out);
            count += 1;
        }
    }
    packed::close(out, container, count);
}
