//! Jobs: work of calls that runs on other threads while the calls' connections are parked.
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

/// The maximum number of threads that wait for other servers. Further jobs are queued until one of the running jobs is
/// finished.
const NETWORK_THREADS_MAX: usize = 16;

/// The work of a call that runs on another thread.
pub(crate) trait Job: Send {
    /// Returns the worker that settles the job.
    fn worker(&self) -> usize;

    /// Does the work, on a thread that is not a worker.
    fn run(&mut self, server: &'static Server);

    /// Completes the call on its worker, and returns the reply if a connection waits for it. The worker is inside the
    /// gate and holds no lock.
    fn settle(self: Box<Self>, executor: &mut Executor) -> Option<Settled>;
}

/// A completed call and its reply.
pub(crate) struct Settled {
    /// The token of the connection at its worker.
    pub(crate) token: usize,
    pub(crate) client_id: u64,
    pub(crate) reply: Box<Reply>,
    /// The number of the last journal record of the call's changes.
    pub(crate) record: u64,
}

/// A call whose job has done its work.
pub(crate) struct Finished<'c> {
    pub(crate) client: &'c ClientView,
    pub(crate) command: &'static Command,
    pub(crate) args: Args<'c>,
    /// An upper bound of the size, in bytes, of the requests that contained the call.
    pub(crate) wire_bytes_max: usize,
    pub(crate) begun: Instant,
    /// The keys that are held for the call.
    pub(crate) keys: &'c [Box<[u8]>],
}

impl Executor {
    /// Releases the keys that are held for a call, delivers the notifications of its changes, and counts and times the
    /// call.
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
        // The call is timed individually, even if the command counts as quick.
        let times_each = std::mem::replace(&mut self.times_each, true);
        self.finish(command, &result.map(|()| Outcome::Done), args, Some(client), &mut reply);
        self.times_each = times_each;
        self.sizes.include(call.wire_bytes_max);
        self.log_sizes(command, args, client.id, reply.len_bytes());
        Settled { token: client.token, client_id: client.id, reply, record }
    }
}

/// The resource that limits the number of threads for a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effort {
    /// The job waits for another server.
    Network,
    /// The job computes.
    Processor,
}

/// The jobs of a server.
pub(crate) struct Jobs {
    network: Pool<Box<dyn Job>>,
    processor: Pool<Box<dyn Job>>,
    /// Jobs that have done their work and are not settled yet.
    done: Mutex<Vec<Box<dyn Job>>>,
}

impl Jobs {
    /// Creates the pools without threads. At most `processors` threads compute concurrently.
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
    /// Returns the job with the error if the system cannot start a thread.
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

    /// Notifies a job's worker that the work is done.
    pub(crate) fn notify(&self, server: &Server, job: Box<dyn Job>) {
        let worker = job.worker();
        self.done.lock().push(job);
        server.workers[worker].mailbox.send(Message::JobsDone);
    }

    /// Returns whether a worker has jobs to settle.
    pub(crate) fn are_done(&self, worker: usize) -> bool {
        self.done.lock().iter().any(|job| job.worker() == worker)
    }

    /// Takes the jobs that a worker has to settle.
    pub(crate) fn take_done(&self, worker: usize) -> Vec<Box<dyn Job>> {
        self.done.lock().extract_if(.., |job| job.worker() == worker).collect()
    }
}
