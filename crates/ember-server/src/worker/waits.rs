//! Ends blocked calls: answers them, and continues their connections.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use ember_protocol::Reply;

use super::Worker;
use super::connections::{connection_of, list};
use super::serving::lend_buffer;
use crate::clients::blocked::Blocked;
use crate::clients::client::ReplyMode;
use crate::clients::connection::Connection;
use crate::clients::mailbox::Awaiting;
use crate::executor::jobs::{Jobs, Settled};
use crate::server::Server;

/// The error of a call ended by CLIENT UNBLOCK … ERROR.
const UNBLOCKED: &str = "UNBLOCKED client unblocked via CLIENT UNBLOCK";
/// The error of a call that is blocked when the server becomes a replica.
const DEMOTED: &str =
    "UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)";
/// The time after which a call that timed out while it was being served is checked again.
const SERVING_MAX: Duration = Duration::from_millis(1);

impl Worker {
    /// Answers a blocked call and continues its connection.
    pub(super) fn end_waiting(&mut self, token: usize, client_id: u64, mut ending: Ending) {
        let Some(connection) = connection_of(&mut self.connections.all, token, client_id) else { return };
        let Some(blocked) = connection.blocked.take() else { return };
        forget_waiting(&mut self.deadlines, self.server, connection, &blocked, token);
        lend_buffer(&mut self.buffers, connection);
        let mode = connection.client.reply_mode;
        match (mode, &mut ending) {
            (ReplyMode::Off | ReplyMode::Skip | ReplyMode::SkipNext, _) => {}
            (ReplyMode::On, Ending::Served(reply, _)) => {
                connection.output.append_all(std::mem::take(&mut **reply))
            }
            (ReplyMode::On, Ending::TimedOut) => (blocked.on_timeout)(&mut connection.output),
            (ReplyMode::On, Ending::Durable) => {
                if let Some((_, answer)) = &blocked.durable {
                    answer(&mut connection.output);
                }
            }
            (ReplyMode::On, Ending::WithError) => connection.output.error(UNBLOCKED),
            (ReplyMode::On, Ending::Demoted) => connection.output.error(DEMOTED),
            (ReplyMode::On, Ending::Redirected(error)) => connection.output.error(error),
        }
        connection.client.reply_mode = mode.next();
        let error = match &ending {
            Ending::WithError => Some(UNBLOCKED.to_owned()),
            Ending::Demoted => Some(DEMOTED.to_owned()),
            Ending::Redirected(error) => Some(error.clone()),
            _ => None,
        };
        let is_served = matches!(ending, Ending::Served(..));
        if let Ending::Served(_, record) = ending {
            connection.advance_record(record);
        }
        // A call that was run again for a key, or by a job, is already counted; WAIT is not.
        let spec = self.server.registry.get(blocked.waiter.command).spec;
        if !is_served || (spec.keys.is_empty() && !blocked.is_under_way) {
            let view = Arc::clone(&connection.client.view);
            self.executor.count_unserved(&blocked, &view, error.as_deref());
        }
        if !is_served {
            self.withdraw(&blocked);
        }
        let Some(connection) = connection_of(&mut self.connections.all, token, client_id) else { return };
        connection.has_unparsed |= !connection.input.is_empty();
        if connection.parked.is_some() {
            self.resume(token);
        } else {
            list(&mut self.connections.ready, connection, token);
        }
    }

    /// Continues the connection or the commands that have waited for cold values.
    pub(super) fn resume_fetched(&mut self, awaiting: Awaiting, failure: Option<Box<str>>) {
        match awaiting {
            Awaiting::Connection(token, client_id) => {
                if connection_of(&mut self.connections.all, token, client_id).is_some() {
                    self.executor.unread = failure;
                    self.resume(token);
                    self.executor.unread = None;
                }
            }
            Awaiting::Forwarded(parked) => self.executor.run_parked(parked, failure),
            // If the value cannot be read, the clients keep waiting until the key is changed or deleted.
            Awaiting::Waiters(database, key) if failure.is_none() => self.executor.serve_again(database, key),
            Awaiting::Waiters(..) => {}
        }
    }

    /// Settles finished jobs, and answers their calls.
    pub(super) fn settle_jobs(&mut self) {
        let (server, worker) = (self.server, self.executor.index);
        let jobs = Jobs::of(server);
        if !jobs.are_done(worker) || !self.executor.enter_gate() {
            return; // after the script that runs; the next tick tries again
        }
        let done = jobs.take_done(worker).into_iter();
        let settled: Vec<Settled> = done.filter_map(|job| job.settle(&mut self.executor)).collect();
        server.gate.leave(worker);
        self.executor.publish();
        for Settled { token, client_id, reply, record } in settled {
            self.end_waiting(token, client_id, Ending::Served(reply, record));
        }
        self.end_evaluations();
    }

    /// Removes a waiter whose wait has ended from the queues of its keys. This need not run inside the gate, which a
    /// script may keep closed for long: no data change, and shard locks are also taken during exclusive access.
    pub(super) fn withdraw(&mut self, blocked: &Blocked) {
        self.executor.withdraw(blocked);
    }

    /// Ends the blocked calls that have timed out.
    pub(super) fn expire_waiting(&mut self) {
        let now = Instant::now();
        while let Some(&(deadline, token)) = self.deadlines.first()
            && deadline <= now
        {
            self.deadlines.pop_first();
            let Some(connection) = self.connections.all[token].as_deref_mut() else { continue };
            let Some(blocked) = &mut connection.blocked else { continue };
            if blocked.waiter.cancel() {
                let client_id = connection.client.view.id;
                self.end_waiting(token, client_id, Ending::TimedOut);
            } else {
                // The call is being served right now. Either its reply will arrive, or it keeps waiting and is checked
                // again.
                let again = now + SERVING_MAX;
                blocked.deadline = Some(again);
                self.deadlines.insert((again, token));
            }
        }
    }
}

/// The reason for which a blocked call ends.
pub(super) enum Ending {
    /// The call was served with this reply, which acknowledges the changes of journal records up to this number.
    Served(Box<Reply>, u64),
    TimedOut,
    /// The awaited record is durable.
    Durable,
    WithError,
    /// The server has become a replica.
    Demoted,
    /// This cluster node no longer serves the slot of the call's keys; the client receives this error.
    Redirected(String),
}

/// Removes a connection's wait from the deadlines and from the counts of blocked clients.
pub(super) fn forget_waiting(
    deadlines: &mut BTreeSet<(Instant, usize)>,
    server: &Server,
    connection: &Connection,
    blocked: &Blocked,
    token: usize,
) {
    if let Some(deadline) = blocked.deadline {
        deadlines.remove(&(deadline, token));
        server.waiting_in_time.fetch_sub(1, Ordering::Relaxed);
    }
    connection.client.view.waiter.leave();
    server.blocked_clients.fetch_sub(1, Ordering::Relaxed);
}
