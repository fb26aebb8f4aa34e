//! Figures of the process from the allocator and the system, and sums that are slow to compute. Reading them takes some
//! tens of microseconds, more than everything else in INFO, so they are cached as long as in Redis.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::server::Server;
use crate::system::heap::{Allocator, allocator, resident_bytes};
use crate::system::processor_time::ProcessorTime;

/// How long the figures are cached.
const KEPT: Duration = Duration::from_millis(100);

/// The figures at one moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SystemFigures {
    requested_at: Instant,
    pub(crate) allocator: Allocator,
    /// The resident size of the whole process in bytes, if the system reports it.
    pub(crate) resident: Option<u64>,
    /// The processor time of the whole process.
    pub(crate) processor: ProcessorTime,
    /// The processor time of the process's first thread.
    pub(crate) processor_of_main_thread: ProcessorTime,
    /// Bytes that the server itself counted at that moment ([`counted_bytes`]).
    pub(crate) counted_bytes: u64,
    /// The time in all commands, in ns: summing hundreds of counters of each worker takes as long as reading the
    /// system's figures.
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

    /// Reads the figures now; they are cached for the next 100 ms.
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

    /// Returns the bytes allocated at present: the allocator's figure, plus the growth since then of what the server
    /// itself counts. A value that was just written is included immediately.
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

/// Returns the bytes that the server counts: the data, memory of clients, and entries held back by a running snapshot.
fn counted_bytes(server: &Server) -> u64 {
    let keyspace = &server.keyspace;
    keyspace.used_bytes() as u64
        + server.client_memory()
        + server.push_memory()
        + keyspace.held_back().bytes() as u64
}
