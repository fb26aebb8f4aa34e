//! What the allocator and the system tell of the process, and what takes long to add up. That takes some tens of
//! microseconds, more than all else that INFO tells; so it is kept for as long as Redis keeps it.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::server::Server;
use crate::system::heap::{Allocator, allocator, resident_bytes};
use crate::system::processor_time::ProcessorTime;

/// For so long they are not asked again.
const KEPT: Duration = Duration::from_millis(100);

/// What they said at one moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SystemFigures {
    asked_at: Instant,
    pub(crate) allocator: Allocator,
    /// Of the whole process in the machine's memory, in bytes, where the system tells.
    pub(crate) resident: Option<u64>,
    /// Of the whole process.
    pub(crate) processor: ProcessorTime,
    /// Of the process's first thread.
    pub(crate) processor_of_main_thread: ProcessorTime,
    /// Bytes that the server itself counted at that moment ([`counted_bytes`]).
    pub(crate) counted_bytes: u64,
    /// Time in all commands, in ns: to add up hundreds of counters of each worker takes as long as to ask the system.
    pub(crate) command_nanoseconds: u64,
}

/// What they said last.
#[derive(Default)]
pub(crate) struct LastFigures(Mutex<Option<SystemFigures>>);

impl SystemFigures {
    /// What they say, no older than 100 ms.
    pub(crate) fn recent(server: &Server) -> SystemFigures {
        let mut last = server.services.get::<LastFigures>().0.lock();
        match *last {
            Some(figures) if figures.asked_at.elapsed() < KEPT => figures,
            _ => *last.insert(SystemFigures::ask(server)),
        }
    }

    /// What they say now, which is what others see for the next 100 ms.
    pub(crate) fn renewed(server: &Server) -> SystemFigures {
        *server.services.get::<LastFigures>().0.lock().insert(SystemFigures::ask(server))
    }

    fn ask(server: &Server) -> SystemFigures {
        SystemFigures {
            asked_at: Instant::now(),
            allocator: allocator(),
            resident: resident_bytes(),
            processor: ProcessorTime::of_process().unwrap_or_default(),
            processor_of_main_thread: ProcessorTime::of_main_thread().unwrap_or_default(),
            counted_bytes: counted_bytes(server),
            command_nanoseconds: command_nanoseconds(server),
        }
    }

    /// Bytes allocated now: what the allocator said, and by how much has grown since what the server counts itself. A value
    /// that was just written is in it at once.
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

/// What the server counts itself: the data, what clients make it keep, and what a snapshot under way holds back.
fn counted_bytes(server: &Server) -> u64 {
    let keyspace = &server.keyspace;
    keyspace.used_bytes() as u64
        + server.client_memory()
        + server.push_memory()
        + keyspace.held_back().bytes() as u64
}
