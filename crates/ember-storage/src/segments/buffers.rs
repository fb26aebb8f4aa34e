//! What has been appended and is not written yet.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::RwLock;

use super::BUFFERS_MAX;
use super::segment::Segment;

/// Bytes of a segment from an offset on. Only the one that is filled changes; a reader that has found it reads whole
/// records, since it knows their places from whoever has appended them.
#[derive(Debug)]
pub(super) struct Buffer {
    pub(super) offset: u64,
    pub(super) bytes: RwLock<Vec<u8>>,
}

/// The buffers of a log in the order in which they are to be written. Each is known to its segment, too, until it is.
#[derive(Debug, Default)]
pub(super) struct Buffers {
    /// The one that is filled.
    open: Option<(Arc<Segment>, Arc<Buffer>)>,
    full: VecDeque<(Arc<Segment>, Arc<Buffer>)>,
}

impl Buffers {
    /// The one that is filled.
    pub(super) fn open(&self) -> Option<&Arc<Buffer>> {
        self.open.as_ref().map(|(_, buffer)| buffer)
    }

    /// The next one is filled from now on; false if there are too many.
    pub(super) fn begin(&mut self, segment: &Arc<Segment>, offset: u64, capacity: usize) -> bool {
        self.close();
        if self.full.len() >= BUFFERS_MAX {
            return false;
        }
        let bytes = RwLock::new(Vec::with_capacity(capacity));
        let buffer = Arc::new(Buffer { offset, bytes });
        segment.add_buffer(&buffer);
        self.open = Some((Arc::clone(segment), buffer));
        true
    }

    /// What is filled now is to be written as it is.
    pub(super) fn close(&mut self) {
        self.full.extend(self.open.take());
    }

    /// Whether one is to be written.
    pub(super) fn has_full(&self) -> bool {
        !self.full.is_empty()
    }

    /// The one that is to be written first.
    pub(super) fn first(&self) -> Option<(Arc<Segment>, Arc<Buffer>)> {
        self.full.front().cloned()
    }

    /// The first one has been written.
    pub(super) fn pop(&mut self) {
        if let Some((segment, buffer)) = self.full.pop_front() {
            segment.drop_buffer(&buffer);
        }
    }

    /// Those of a segment, or all, are not to be written any more.
    pub(super) fn discard(&mut self, segment: Option<&Arc<Segment>>) {
        let is_kept = |(of, _): &(Arc<Segment>, _)| segment.is_some_and(|segment| !Arc::ptr_eq(of, segment));
        self.open.take_if(|open| !is_kept(open));
        self.full.retain(is_kept);
    }

    /// All, in order, the one that is filled last.
    pub(super) fn all(&self) -> Vec<(Arc<Segment>, Arc<Buffer>)> {
        self.full.iter().chain(&self.open).cloned().collect()
    }

    /// Memory that they take.
    pub(super) fn capacity(&self) -> usize {
        self.full.iter().chain(&self.open).map(|(_, buffer)| buffer.bytes.read().capacity()).sum()
    }
}
