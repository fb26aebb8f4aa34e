//! The subscriber of the journal that records the number up to which all changes are published.

use std::sync::atomic::Ordering;

use super::{Active, BACKLOG_BYTES_MAX, SLEEP_MAX};
use crate::journal::Reader;
use crate::journal::stream::{Pause, ReaderDatabase, Records, Subscriber};
use crate::server::Server;

/// The history's subscriber.
pub(crate) struct HistorySubscriber {
    server: &'static Server,
    history: &'static Active,
}

impl HistorySubscriber {
    /// Returns the subscriber of a server whose journal has no reader yet.
    pub(crate) fn new(server: &'static Server, history: &'static Active) -> HistorySubscriber {
        HistorySubscriber { server, history }
    }
}

impl Subscriber for HistorySubscriber {
    fn reader(&self) -> Reader {
        Reader::History
    }

    fn begin_round(&mut self) {}

    fn advance(&mut self, _: u64) {}

    fn limit(&self, _: u64) -> u64 {
        u64::MAX
    }

    fn database(&self, _: u64) -> ReaderDatabase {
        ReaderDatabase::Any
    }

    fn refresh(&mut self) {}

    fn append(&mut self, records: Records<'_>) {
        self.history.passed.store(records.last, Ordering::SeqCst);
        if self.server.journal.has_captured() {
            self.history.wake();
        }
    }

    fn end_round(&mut self) {}

    fn report(&mut self, _: usize) {}

    fn is_left_to_thread(&self) -> bool {
        false
    }

    fn has_work(&self) -> bool {
        false
    }

    fn durable(&self) -> u64 {
        u64::MAX
    }

    fn released(&self) -> u64 {
        match self.server.journal.captured_bytes() > BACKLOG_BYTES_MAX {
            true => self.history.taken_in(),
            false => u64::MAX,
        }
    }

    fn pause(&self) -> Pause {
        Pause::UntilPublished(SLEEP_MAX)
    }

    fn is_over(&self) -> bool {
        // Only the AOF subscriber determines when the journal has ended.
        true
    }
}
