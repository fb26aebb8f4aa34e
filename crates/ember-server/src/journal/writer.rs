//! The AOF writer: the thread that does what workers must not wait for.
//!
//! It works on the [`Stream`] whenever it is woken, and when an fsync is due. Fsyncs of `everysec` and `no` run on a second
//! thread, so that appending goes on.

use std::sync::mpsc::channel;
use std::thread::{self, JoinHandle};

use ember_persistence::aof::{AofDirectory, AofWriter, SyncTask};
use parking_lot::Mutex;

use super::stream::Stream;
use crate::server::Server;

/// Starts the writer of a server whose journal is not read yet. With an AOF its last increment has just begun, and holds
/// nothing.
///
/// # Errors
/// If there is no thread.
pub(crate) fn start(
    server: &'static Server,
    aof: Option<(AofDirectory, AofWriter)>,
) -> Result<JoinHandle<()>, String> {
    let failed = |error: std::io::Error| format!("cannot start a thread for the AOF: {error}");
    let (to_sync, tasks) = channel::<SyncTask>();
    let (outcomes, from_sync) = channel();
    let sync = move || {
        for task in tasks {
            if outcomes.send(task.run()).is_err() {
                return;
            }
            server.journal.wake_writer();
        }
    };
    thread::Builder::new().name("aof-sync".to_owned()).spawn(sync).map_err(failed)?;
    let stream =
        server.journal.stream.get_or_init(|| Mutex::new(Stream::new(server, aof, to_sync, from_sync)));
    let spawned = thread::Builder::new().name("aof".to_owned()).spawn(move || run(server, stream));
    let handle = spawned.map_err(failed)?;
    // Nobody wakes it before this; it looks by itself soon enough.
    let _ = server.journal.writer.set(handle.thread().clone());
    Ok(handle)
}

fn run(server: &Server, stream: &Mutex<Stream>) {
    loop {
        let pause = {
            let mut stream = stream.lock();
            stream.work();
            if stream.is_over() {
                return;
            }
            stream.pause()
        };
        server.journal.rest(pause);
    }
}
