//! Mailboxes: what other threads want from a worker, and commands on their way between workers.

use std::sync::Arc;

use ember_protocol::Reply;

use super::assembly::Forwarded;
use super::listener::{Incoming, Listener};
use super::live_queries::{Marked, State};
use super::primary::PrimaryOrder;
use super::push::{Push, Receiver};
use super::round::Round;
use crate::config::ShutdownOptions;
use crate::system::driver::Bell;

/// Who waits for values that are away.
#[derive(Clone, Debug)]
pub(crate) enum Awaiting {
    /// The connection with this number and client's id, parked at the command that needs them.
    Connection(usize, u64),
    /// The commands of another worker that were parked under this number.
    Forwarded(u64),
    /// Those who are blocked on this key of a database.
    Waiters(usize, Box<[u8]>),
}

/// Something for a worker to do.
pub(crate) enum Message {
    /// Serve this new connection.
    Accept(Incoming),
    /// Run these commands on your shards and send them back.
    Run(Box<Forwarded>),
    /// Here are the replies to what you sent.
    Answer(Box<Forwarded>),
    /// Apply what is left of these commands of the primary.
    Apply(Arc<Round>),
    /// Look at this connection: it was killed, or what it waited for may have come. The second number is the
    /// client's id.
    Look(usize, u64),
    /// The reply to a call that waited, for the connection with this number and client's id. It acknowledges what records of
    /// the journal up to the last number have changed.
    Served(usize, u64, Box<Reply>, u64),
    /// The waiting of this connection was ended by `CLIENT UNBLOCK`; with an error or as if its time were over.
    Unblock(usize, u64, bool),
    /// Values are here that were away, all that these have waited for; or one cannot be read, for this reason.
    Arrived(Awaiting, Option<Box<str>>),
    /// Transfers of keys to other servers are over: their calls can be answered.
    JobsDone,
    /// Send this to these connections.
    Push(Arc<Push>, Vec<Receiver>),
    /// A key has changed that this live query reads, whose home you are.
    Evaluate(Marked),
    /// Send this to those of your connections that watch its query.
    State(Arc<State>),
    /// There is something for the replicas among your connections.
    Feed,
    /// Calls that had to wait for a snapshot may be tried again.
    TryAgain,
    /// Do this for the link to the primary.
    Primary(PrimaryOrder),
    /// Accept connections here, and from now on nowhere else over TCP.
    Listen(Vec<Arc<Listener>>),
    /// A signal asks for the end with these options.
    Shutdown(ShutdownOptions),
    /// Stop serving: send what is ready and end.
    Stop,
}

/// A worker's mailbox and the bell that ends its waiting.
pub(crate) struct Mailbox {
    messages: emberkv_core::mailbox::Mailbox<Message>,
    bell: Bell,
}

impl Mailbox {
    /// An empty mailbox of the worker that `bell` wakes.
    pub(crate) fn new(bell: Bell) -> Mailbox {
        Mailbox { messages: emberkv_core::mailbox::Mailbox::new(), bell }
    }

    /// Puts a message in and wakes the worker if it sleeps.
    pub(crate) fn send(&self, message: Message) {
        if self.messages.post(message) {
            self.bell.ring();
        }
    }

    /// Wakes the worker if it sleeps, for something that is not in a message.
    pub(crate) fn ring(&self) {
        if self.messages.rouse() {
            self.bell.ring();
        }
    }

    /// The worker is about to wait; false if there is a message, and it must not.
    pub(crate) fn fall_asleep(&self) -> bool {
        self.messages.fall_asleep()
    }

    /// The worker has waited.
    pub(crate) fn wake_up(&self) {
        self.messages.wake_up();
    }

    /// Exchanges the messages for an empty list.
    pub(crate) fn take(&self, into: &mut Vec<Message>) {
        self.messages.take(into);
    }
}
