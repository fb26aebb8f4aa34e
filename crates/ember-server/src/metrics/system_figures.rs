//! Figures of the process from the allocator and the system, and sums that are slow to compute. Reading them takes some
//! tens of microseconds, more than all the rest of INFO, so they are cached for as long as in Redis (100 ms).

use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::server::Server;
use crate::system::heap::{Allocator, allocator, resident_bytes};
use crate::system::processor_time::ProcessorTime;

/// The time for which the figures are cached.
const KEPT: Duration = Duration::from_millis(100);

/// The figures read at one moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SystemFigures {
    requested_at: Instant,
    pub(crate) allocator: Allocator,
    /// The resident size of the process in bytes, if the system reports it.
    pub(crate) resident: Option<u64>,
    /// The processor time of the process.
    pub(crate) processor: ProcessorTime,
    /// The processor time of the process's first thread.
    pub(crate) processor_of_main_thread: ProcessorTime,
    /// The number of bytes that the server itself counted at the same moment ([`counted_bytes`]).
    pub(crate) counted_bytes: u64,
    /// The time spent in all commands, in ns. It is cached because summing hundreds of counters of each worker takes as
    /// long as reading the system's figures.
    pub(crate) command_nanoseconds: u64,
}

/// The cached figures.
#[derive(Default)]
pub(crate) struct LastFigures(Mutex<Option<SystemFigures>>);

impl SystemFigures {
    /// Returns figures that are at most 100 ms old.
    pub(crate) fn recent(server: &Server) -> SystemFigures {
        let mut last = server.services.get::<LastFigures>().0.lock();
        match *last {
            Some(figures) if figures.requested_at.elapsed() < KEPT => figures,
            _ => *last.insert(SystemFigures::ask(server)),
        }
    }

    /// Reads the figures now, and caches them for 100 ms.
    pub(crate) fn renewed(server: &Server) -> SystemFigures {
        *server.services.get::<LastFigures>().0.lock().insert(SystemFigures::ask(server))
    }

    fn ask(server: &Server) -> SystemFigures {
        SystemFigures {
            requested_at: Instant::now(),
            allocator: allocator(),
            resident: resident_bytes(),
            processor: ProcessorTime::of_process().unwrap_or_default(),
            processor_of_main_thread: ProcessorTime::of_main_thread().unwrap_or_default(),
            counted_bytes: counted_bytes(server),
            command_nanoseconds: command_nanoseconds(server),
        }
    }

    /// Returns the bytes allocated now: the allocator's cached figure, plus the growth of the server's own count since.
    /// So a value that was just written is included immediately.
    pub(crate) fn allocated_now(&self, server: &Server) -> u64 {
        (self.allocator.allocated + counted_bytes(server)).saturating_sub(self.counted_bytes)
    }
}

fn command_nanoseconds(server: &Server) -> u64 {
    let commands = server.registry.all().iter();
    commands
        .map(|command| server.sum(|stats| &stats.by_command[usize::from(command.index)].nanoseconds))
        .sum()
}

/// Returns the number of bytes that the server itself counts: the data set, the memory of clients, and entries that a
/// running snapshot keeps.
fn counted_bytes(server: &Server) -> u64 {
    let keyspace = &server.keyspace;
    keyspace.used_bytes() as u64
        + server.client_memory()
        + server.push_memory()
        + keyspace.held_back().bytes() as u64
}
