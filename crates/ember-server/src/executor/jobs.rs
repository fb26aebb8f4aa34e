//! Jobs: work of calls that other threads do while the connections are parked.
//!
//! ```text
//! worker   parks the connection ─ begins the job
//! thread   does the work
//! worker   settles the job inside the gate ─ replies
//! ```

use std::io;
use std::time::Instant;

use ember_protocol::{Args, Reply};
use emberkv_core::error::CommandError;
use emberkv_core::keys::Guards;
use parking_lot::Mutex;

use super::Executor;
use super::pool::{self, Pool};
use super::session::Outcome;
use crate::catalogue::registry::Command;
use crate::clients::client::ClientView;
use crate::clients::mailbox::Message;
use crate::server::Server;

/// The maximum number of threads that wait for other servers. Further jobs wait until one of them is finished.
const NETWORK_THREADS_MAX: usize = 16;

/// Work of a call.
pub(crate) trait Job: Send {
    /// Returns the worker that settles the job.
    fn worker(&self) -> usize;

    /// Does the work, on a thread that is no worker.
    fn run(&mut self, server: &'static Server);

    /// Ends the call, and returns its reply if a connection waits for one. The worker is inside the gate and holds no
    /// lock.
    fn settle(self: Box<Self>, executor: &mut Executor) -> Option<Settled>;
}

/// A call with its reply.
pub(crate) struct Settled {
    /// The connection's number at its worker.
    pub(crate) token: usize,
    pub(crate) client_id: u64,
    pub(crate) reply: Box<Reply>,
    /// The last journal record of the call's changes.
    pub(crate) record: u64,
}

/// A call whose job is finished.
pub(crate) struct Finished<'c> {
    pub(crate) client: &'c ClientView,
    pub(crate) command: &'static Command,
    pub(crate) args: Args<'c>,
    /// An upper bound of the bytes of the requests that contained the call.
    pub(crate) wire_bytes_max: usize,
    pub(crate) begun: Instant,
    /// The held keys.
    pub(crate) keys: &'c [Box<[u8]>],
}

impl Executor {
    /// Releases the keys of a call whose job is finished, delivers the notifications of its changes, and counts and
    /// times it.
    pub(crate) fn finish_job(
        &mut self,
        call: &Finished<'_>,
        result: Result<(), CommandError>,
        mut reply: Box<Reply>,
    ) -> Settled {
        let &Finished { client, command, args, .. } = call;
        let record = self.turn.journal.last_number().unwrap_or(0);
        self.server.release_keys(call.keys);
        self.deliver(&mut Guards::None, Some(client.id));
        self.clock = call.begun;
        // The call is timed individually, even if most calls of the command are quick.
        let times_each = std::mem::replace(&mut self.times_each, true);
        self.finish(command, result.map(|()| Outcome::Done), args, Some(client), &mut reply);
        self.times_each = times_each;
        self.sizes.include(call.wire_bytes_max);
        self.log_sizes(command, args, client.id, reply.len_bytes());
        Settled { token: client.token, client_id: client.id, reply, record }
    }
}

/// The limit of the threads of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effort {
    /// Waiting for another server.
    Network,
    /// Computing.
    Processor,
}

/// The jobs of a server.
pub(crate) struct Jobs {
    network: Pool<Box<dyn Job>>,
    processor: Pool<Box<dyn Job>>,
    /// Jobs whose work is done.
    done: Mutex<Vec<Box<dyn Job>>>,
}

impl Jobs {
    /// Creates the pools without threads. At most `processors` threads compute at a time.
    pub(crate) fn new(processors: usize) -> Jobs {
        Jobs {
            network: Pool::new("job-network", NETWORK_THREADS_MAX, |server| {
                Jobs::of(server).run(server, &Jobs::of(server).network);
            }),
            processor: Pool::new("job", processors, |server| {
                pool::lower_priority();
                Jobs::of(server).run(server, &Jobs::of(server).processor);
            }),
            done: Mutex::default(),
        }
    }

    /// Returns the jobs of a server.
    pub(crate) fn of(server: &Server) -> &Jobs {
        server.services.get()
    }

    /// Starts a job; its worker receives [`Message::JobsDone`] when the work is done.
    ///
    /// # Errors
    /// The system cannot start a thread; the job is returned.
    pub(crate) fn begin<J: Job + 'static>(
        server: &'static Server,
        effort: Effort,
        job: Box<J>,
    ) -> Result<(), (Box<J>, io::Error)> {
        let jobs = Jobs::of(server);
        let pool = match effort {
            Effort::Network => &jobs.network,
            Effort::Processor => &jobs.processor,
        };
        pool.push(server, job, |job| job)
    }

    /// Runs jobs on a thread of a pool.
    fn run(&self, server: &'static Server, pool: &Pool<Box<dyn Job>>) {
        while let Some(mut job) = pool.next() {
            job.run(server);
            self.notify(server, job);
            pool::give_way();
        }
    }

    /// Notifies the worker of a job that the work is done.
    pub(crate) fn notify(&self, server: &Server, job: Box<dyn Job>) {
        let worker = job.worker();
        self.done.lock().push(job);
        server.workers[worker].mailbox.send(Message::JobsDone);
    }

    /// Returns whether any jobs of a worker are done.
    pub(crate) fn are_done(&self, worker: usize) -> bool {
        self.done.lock().iter().any(|job| job.worker() == worker)
    }

    /// Takes the finished jobs of a worker.
    pub(crate) fn take_done(&self, worker: usize) -> Vec<Box<dyn Job>> {
        self.done.lock().extract_if(.., |job| job.worker() == worker).collect()
    }
}
