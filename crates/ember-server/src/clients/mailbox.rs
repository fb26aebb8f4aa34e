//! Mailboxes: requests of other threads to a worker, and commands forwarded between workers.

use std::sync::Arc;

use ember_config::ShutdownOptions;
use ember_protocol::Reply;

use super::assembly::Forwarded;
use super::listener::{Incoming, Listener};
use super::primary::PrimaryOrder;
use super::push::{Push, Receiver};
use super::round::Round;
use super::watchers::{Marked, State};
use crate::system::driver::Bell;

/// The call or query that waits for cold values to be fetched.
#[derive(Clone, Debug)]
pub(crate) enum Awaiting {
    /// The connection with this token and client id, parked at the command that needs the values.
    Connection(usize, u64),
    /// The commands of another worker that were parked under this number.
    Forwarded(u64),
    /// The clients blocked on this key, in the database with this number.
    Waiters(usize, Box<[u8]>),
}

/// A message to a worker.
pub(crate) enum Message {
    /// Serve this new connection.
    Accept(Incoming),
    /// Run these commands on your shards and return them with replies.
    Run(Box<Forwarded>),
    /// Handle the replies to commands that you forwarded.
    Answer(Box<Forwarded>),
    /// Apply the remaining commands of this round of the primary's commands.
    Apply(Arc<Round>),
    /// Check the connection with this token and client id: it was killed, or the event that it waits for may have
    /// occurred.
    Check(usize, u64),
    /// Send the reply to the blocked call of the connection with this token and client id. The reply acknowledges the
    /// changes of journal records up to the last number.
    Served(usize, u64, Box<Reply>, u64),
    /// Answer the blocked call of the connection with this token and client id, whose wait `CLIENT UNBLOCK` has ended:
    /// with an error if the flag is set, otherwise as on timeout.
    Unblock(usize, u64, bool),
    /// Continue the calls that wait for these cold values: all are fetched, or one cannot be read, for this reason.
    Arrived(Awaiting, Option<Box<str>>),
    /// Answer the calls of this worker whose jobs are complete.
    JobsDone,
    /// Send this push to these connections.
    Push(Arc<Push>, Vec<Receiver>),
    /// Evaluate this live query, which you own: one of its keys has changed.
    Evaluate(Marked),
    /// Send this state to your connections that watch its query.
    State(Arc<State>),
    /// Send the replication stream to the replicas among your connections: there are new bytes.
    Feed,
    /// End the blocked calls, subscriptions and watches of your connections in slots that this node no longer serves.
    SlotsLost,
    /// Retry the calls that wait for a condition to end.
    TryAgain,
    /// Handle this request of the link to the primary.
    Primary(PrimaryOrder),
    /// Accept connections on these listeners, and on no other TCP listeners from now on.
    Listen(Vec<Arc<Listener>>),
    /// Begin a shutdown with these options, as a signal has requested.
    Shutdown(ShutdownOptions),
    /// Stop serving: send pending output and exit.
    Stop,
}

/// A worker's mailbox, and the bell that wakes it.
pub(crate) struct Mailbox {
    messages: emberkv_core::mailbox::Mailbox<Message>,
    bell: Bell,
}

impl Mailbox {
    /// Creates an empty mailbox for the worker that `bell` wakes.
    pub(crate) fn new(bell: Bell) -> Mailbox {
        Mailbox { messages: emberkv_core::mailbox::Mailbox::new(), bell }
    }

    /// Posts a message and wakes the worker if it sleeps.
    pub(crate) fn send(&self, message: Message) {
        if self.messages.post(message) {
            self.bell.ring();
        }
    }

    /// Wakes the worker if it sleeps, for an event that is not a message.
    pub(crate) fn ring(&self) {
        if self.messages.rouse() {
            self.bell.ring();
        }
    }

    /// Marks the worker as about to sleep; returns false if a message has arrived, so that the worker must not sleep.
    pub(crate) fn fall_asleep(&self) -> bool {
        self.messages.fall_asleep()
    }

    /// Marks the worker as awake.
    pub(crate) fn wake_up(&self) {
        self.messages.wake_up();
    }

    /// Takes all messages, by swapping them with the empty list `into`.
    pub(crate) fn take(&self, into: &mut Vec<Message>) {
        self.messages.take(into);
    }
}
