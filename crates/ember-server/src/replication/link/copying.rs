//! Loading of the primary's snapshot while it arrives; its data replace the data set.
//!
//! The received bytes are not trusted: the end of the RDB file must agree with the announced length or the end mark.

use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::mpsc::sync_channel;

use ember_persistence::rdb_file::{RdbReader, Source};
use ember_replication::answers::CopyEnd;

use super::channel::Channel;
use super::{CopyProgress, Link, Phase, STOP_CHECK_INTERVAL};
use crate::clients::mailbox::Message;
use crate::clients::primary::PrimaryOrder;
use crate::history::History;
use crate::replication::primary::Primary;
use crate::server::Server;
use crate::server::conditions::Condition;
use crate::snapshot::loading::{self, Present};
use crate::snapshot::state::SnapshotState;
use crate::system::clock::unix_ms;

/// The maximum announced length in bytes for which tables are preallocated: whatever the primary announces, they are
/// sized for at most the number of keys that a file of this length can contain.
const BELIEVED_BYTES_MAX: u64 = 32 * 1024 * 1024;

/// A reader of the arriving snapshot that records the progress.
struct Watched<'c> {
    server: &'c Server,
    channel: &'c mut Channel,
    link: &'c Link,
    change: u64,
    read: u64,
}

impl Read for Watched<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = self.channel.read(out)?;
        self.read += count as u64;
        self.server.copied_bytes.fetch_add(count as u64, Ordering::Relaxed);
        let is_current = self.link.edit(self.change, |state| {
            (state.copy.read, state.copy.read_ms) = (self.read, unix_ms());
        });
        if !is_current {
            return Err(io::Error::other("the role has changed"));
        }
        Ok(count)
    }
}

/// Loads a snapshot. Returns the bytes received after it, with which the stream begins.
///
/// # Errors
/// Returns why the snapshot was not loaded; the data set is then empty or, if nothing of the snapshot arrived,
/// unchanged.
pub(super) fn receive(
    server: &'static Server,
    link: &Link,
    change: u64,
    channel: &mut Channel,
    origin: &str,
) -> Result<Vec<u8>, String> {
    let line = channel.line(None).map_err(|error| match error.kind() {
        io::ErrorKind::TimedOut => format!("Timeout connecting to the MASTER: it sends no data: {error}"),
        _ => format!("the primary sends no data: {error}"),
    })?;
    let end = CopyEnd::parse(&line)
        .ok_or_else(|| format!("the primary sent '{}' instead of data", line.escape_ascii()))?;
    let total = if let CopyEnd::Length(bytes) = end { Some(bytes) } else { None };
    let config = server.config.snapshot();
    link.edit(change, |state| {
        state.phase = Phase::Copying;
        state.copy = CopyProgress { total, read: 0, read_ms: unix_ms() };
    });
    let path = PathBuf::from(origin);
    let source = Source::new(Watched { server, channel, link, change, read: 0 }, 0);
    let reader = RdbReader::from_source(source, &path, config.encoding_limits(), config.version_check());
    let mut reader = reader.map_err(|error| format!("cannot load the data of the primary: {error}"))?;
    let held = Primary::of(server).held();
    if !empty(server, Some(change)) {
        return Err("the role has changed, or the server is stopping".to_owned());
    }
    let given_up = held.map_or_else(String::new, |(id, offset)| {
        format!(", replacing the data of history {id} at offset {offset}")
    });
    tracing::info!("Loading DB in memory: the data of the primary {origin}{given_up}");
    let state = SnapshotState::of(server);
    state.loading.begin(total.unwrap_or(0));
    state.loaded.store(0, Ordering::Relaxed);
    state.expired.store(0, Ordering::Relaxed);
    let believed = total.unwrap_or(BELIEVED_BYTES_MAX).min(BELIEVED_BYTES_MAX);
    let loaded = loading::load_from(server, &config, &mut reader, &path, Present::Refused, believed, None);
    let result = loaded.and_then(|()| check_end(reader.into_source(), &end));
    if result.is_err() {
        // A partial data set is worse than none.
        empty(server, None);
    } else {
        state.count_replacement(!config.save.is_empty());
    }
    server.gate.while_empty(|| {
        if let Some(history) = History::of(server) {
            history.restart(server);
        }
        server.conditions.set(Condition::LOADING, false);
    });
    server.renew_queries();
    let mut stream = result?;
    stream.extend(channel.take_unread());
    Ok(stream)
}

/// Checks that the RDB file ends at the announced length or the end mark; returns the bytes received after the
/// snapshot.
fn check_end(mut source: Source<Watched<'_>>, end: &CopyEnd) -> Result<Vec<u8>, String> {
    match end {
        CopyEnd::Length(bytes) if source.offset() != *bytes => {
            return Err(format!("the data of the primary end at byte {}, not at {bytes}", source.offset()));
        }
        CopyEnd::Length(_) => {}
        CopyEnd::Mark(mark) => {
            let mut found = *mark;
            let read = source.read_exact(&mut found);
            read.map_err(|error| format!("the data of the primary have no end mark: {error}"))?;
            if found != *mark {
                return Err("the data of the primary do not end with the announced mark".to_owned());
            }
        }
    }
    Ok(source.pending().to_vec())
}

/// Makes a worker remove all data; returns false if `change` is no longer the number of the latest role change, or the
/// server is shutting down.
fn empty(server: &Server, change: Option<u64>) -> bool {
    let (done, emptied) = sync_channel(1);
    server.workers[0].mailbox.send(Message::Primary(PrimaryOrder::Empty { change, done }));
    loop {
        match emptied.recv_timeout(STOP_CHECK_INTERVAL) {
            Ok(emptied) => return emptied,
            Err(_) if server.is_stopping() => return false,
            Err(_) => {}
        }
    }
}
