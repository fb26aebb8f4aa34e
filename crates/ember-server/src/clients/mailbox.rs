//! Mailboxes: requests of other threads to a worker, and commands on their way between workers.

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

/// The waiter for cold values.
#[derive(Clone, Debug)]
pub(crate) enum Awaiting {
    /// The connection with this number and client id, parked at the command that needs them.
    Connection(usize, u64),
    /// The commands of another worker that were parked under this number.
    Forwarded(u64),
    /// The clients blocked on this key of a database.
    Waiters(usize, Box<[u8]>),
}

/// A message to a worker.
pub(crate) enum Message {
    /// Serve this new connection.
    Accept(Incoming),
    /// Run these commands on your shards and return them with replies.
    Run(Box<Forwarded>),
    /// The replies to commands that you forwarded.
    Answer(Box<Forwarded>),
    /// Apply the remaining commands of this round from the primary.
    Apply(Arc<Round>),
    /// Check this connection: it was killed, or what it waited for may have happened. The second number is the client
    /// id.
    Check(usize, u64),
    /// The reply to a blocked call, for the connection with this number and client id. It acknowledges the changes of
    /// journal records up to the last number.
    Served(usize, u64, Box<Reply>, u64),
    /// `CLIENT UNBLOCK` has ended this connection's wait, with an error or as a timeout.
    Unblock(usize, u64, bool),
    /// The cold values that this waits for are fetched, or one cannot be read, for this reason.
    Arrived(Awaiting, Option<Box<str>>),
    /// Jobs of other threads are complete: their calls can be answered.
    JobsDone,
    /// Send this push to these connections.
    Push(Arc<Push>, Vec<Receiver>),
    /// A key of this live query, which you own, has changed.
    Evaluate(Marked),
    /// Send this state to your connections that watch its query.
    State(Arc<State>),
    /// The replicas among your connections have something to receive.
    Feed,
    /// Retry the calls that had to wait for a snapshot.
    TryAgain,
    /// Do this for the link to the primary.
    Primary(PrimaryOrder),
    /// Accept connections on these listeners, and from now on on no others over TCP.
    Listen(Vec<Arc<Listener>>),
    /// A signal requests shutdown with these options.
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

    /// Wakes the worker if it sleeps, for something that is not a message.
    pub(crate) fn ring(&self) {
        if self.messages.rouse() {
            self.bell.ring();
        }
    }

    /// Marks the worker as about to sleep; returns false if there is a message, so that it must not sleep.
    pub(crate) fn fall_asleep(&self) -> bool {
        self.messages.fall_asleep()
    }

    /// Marks the worker as awake.
    pub(crate) fn wake_up(&self) {
        self.messages.wake_up();
    }

    /// Swaps the messages with an empty list.
    pub(crate) fn take(&self, into: &mut Vec<Message>) {
        self.messages.take(into);
    }
}
