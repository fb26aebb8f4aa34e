//! Starting and stopping the journal with the AOF as its last subscriber.

use std::sync::mpsc::channel;
use std::thread::{self, JoinHandle};

use ember_persistence::aof::SyncTask;

use super::opening::OpenedFiles;
use super::orders::Order;
use super::service::order;
use super::subscriber::AofSubscriber;
use crate::journal::stream::Subscriber;
use crate::server::Server;
use crate::system::affinity;

/// Starts the journal of a server before any reader is attached. If there is an AOF, its last increment is new and
/// empty, or is still to be created; in the second case, writes are refused from startup. With `everysec` and `no`, a
/// separate thread runs the fsyncs, so that appending continues.
///
/// # Errors
/// Returns an error if no thread can be started.
pub(crate) fn start(
    server: &'static Server,
    files: Option<OpenedFiles>,
    others: Vec<Box<dyn Subscriber>>,
) -> Result<JoinHandle<()>, String> {
    let failed = |error: std::io::Error| format!("cannot start a thread for the journal: {error}");
    let (to_sync, tasks) = channel::<SyncTask>();
    let (outcomes, from_sync) = channel();
    let sync = move || {
        affinity::keep_to(&server.config.snapshot().bio_cpulist, "bio_cpulist");
        for task in tasks {
            if outcomes.send(task.run()).is_err() {
                return;
            }
            server.journal.call_thread();
        }
    };
    thread::Builder::new().name("aof-sync".to_owned()).spawn(sync).map_err(failed)?;
    let subscriber = AofSubscriber::new(server, files, to_sync, from_sync);
    let wake = |worker: usize| server.workers[worker].mailbox.ring();
    let mut subscribers = others;
    subscribers.push(Box::new(subscriber));
    server.journal.start(subscribers, wake).map_err(failed)
}

/// Stops the journal after all records are written. No worker runs any more.
pub(crate) fn stop(server: &Server) {
    order(server, Order::Stop { after: server.journal.last_number() });
}
