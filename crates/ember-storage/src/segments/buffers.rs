//! Records that have been appended and not yet written.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::RwLock;

use super::BUFFERS_MAX;
use super::segment::Segment;

/// Bytes of a segment from an offset on. Only the open buffer changes; its readers read complete records only, because
/// a location is returned once the record has been appended.
#[derive(Debug)]
pub(super) struct Buffer {
    pub(super) offset: u64,
    pub(super) bytes: RwLock<Vec<u8>>,
}

/// The buffers of a log in the order in which they will be written. The segment of a buffer also refers to it until
/// then.
#[derive(Debug, Default)]
pub(super) struct Buffers {
    /// The buffer that is being filled.
    open: Option<(Arc<Segment>, Arc<Buffer>)>,
    full: VecDeque<(Arc<Segment>, Arc<Buffer>)>,
}

impl Buffers {
    /// Returns the buffer that is being filled.
    pub(super) fn open(&self) -> Option<&Arc<Buffer>> {
        self.open.as_ref().map(|(_, buffer)| buffer)
    }

    /// Opens a new buffer; returns false if there are already [`BUFFERS_MAX`](super::BUFFERS_MAX) buffers.
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

    /// Closes the open buffer, so that it is written although it is not full.
    pub(super) fn close(&mut self) {
        self.full.extend(self.open.take());
    }

    /// Whether a buffer is ready to be written.
    pub(super) fn has_full(&self) -> bool {
        !self.full.is_empty()
    }

    /// Returns the next buffer to write.
    pub(super) fn first(&self) -> Option<(Arc<Segment>, Arc<Buffer>)> {
        self.full.front().cloned()
    }

    /// Removes the first buffer, which has been written.
    pub(super) fn pop(&mut self) {
        if let Some((segment, buffer)) = self.full.pop_front() {
            segment.drop_buffer(&buffer);
        }
    }

    /// Drops the buffers of a segment, or all, without writing them.
    pub(super) fn discard(&mut self, segment: Option<&Arc<Segment>>) {
        let is_kept = |(of, _): &(Arc<Segment>, _)| segment.is_some_and(|segment| !Arc::ptr_eq(of, segment));
        self.open.take_if(|open| !is_kept(open));
        self.full.retain(is_kept);
    }

    /// Returns all buffers in order, the open one last.
    pub(super) fn all(&self) -> Vec<(Arc<Segment>, Arc<Buffer>)> {
        self.full.iter().chain(&self.open).cloned().collect()
    }

    /// Returns the memory of the buffers, in bytes.
    pub(super) fn capacity(&self) -> usize {
        self.full.iter().chain(&self.open).map(|(_, buffer)| buffer.bytes.read().capacity()).sum()
    }
}
