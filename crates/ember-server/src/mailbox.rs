//! Mailboxes: what other threads want from a worker, and commands on their way between workers.

use std::sync::Arc;

use ember_protocol::{Mark, OwnedBatch, Protocol, Reply};
use emberkv_core::keyspace::hash::KeyHash;

use crate::driver::Bell;
use crate::listener::Incoming;
use crate::pubsub::{Push, Receiver};

/// Bytes of commands, and of replies, whose memory an emptied message keeps for the next ones.
const KEPT_MAX_BYTES: usize = 64 * 1024;

/// Something for a worker to do.
pub(crate) enum Letter {
    /// Serve this new connection.
    Adopt(Incoming),
    /// Run these commands on your shards and send them back.
    Run(Box<Forwarded>),
    /// Here are the replies to what you sent.
    Answer(Box<Forwarded>),
    /// Look at this connection: it was killed, or what it waited for may have come. The second number is the
    /// client's id.
    Look(usize, u64),
    /// The reply to a call that waited, for the connection with this number and client's id. It acknowledges what records of
    /// the journal up to the last number have changed.
    Served(usize, u64, Box<Reply>, u64),
    /// The waiting of this connection was ended by `CLIENT UNBLOCK`; with an error or as if its time were over.
    Unblock(usize, u64, bool),
    /// Send this to these connections.
    Push(Arc<Push>, Vec<Receiver>),
    /// Calls that had to wait for a snapshot may be tried again.
    TryAgain,
    /// A signal asks for the end: save, then ask for it.
    SaveAndEnd,
    /// Stop serving: send what is ready and end.
    Stop,
}

/// Commands of one batch for the shards of another worker, and later their replies. The buffers travel back with the
/// replies and are used again.
pub(crate) struct Forwarded {
    /// The worker whose connection this is.
    pub(crate) origin: usize,
    /// The worker that runs it.
    pub(crate) owner: usize,
    /// The connection's number at its worker, and its client's id, which tells whether it is still the same.
    pub(crate) token: usize,
    pub(crate) client_id: u64,
    pub(crate) database: usize,
    pub(crate) no_touch: bool,
    pub(crate) commands: OwnedBatch,
    /// For each command its index in the registry and the hash of its key.
    pub(crate) prepared: Vec<(u16, KeyHash)>,
    pub(crate) reply: Reply,
    /// Where each command's reply begins, and at last where the last one ends.
    pub(crate) marks: Vec<Mark>,
    /// The number of the last record of what the commands have changed; 0 if they have changed nothing.
    pub(crate) last_record: u64,
}

impl Forwarded {
    /// An empty one, to be filled.
    pub(crate) fn new() -> Forwarded {
        Forwarded {
            origin: 0,
            owner: 0,
            token: 0,
            client_id: 0,
            database: 0,
            no_touch: false,
            commands: OwnedBatch::new(),
            prepared: Vec::new(),
            reply: Reply::new(Protocol::Resp2),
            marks: Vec::new(),
            last_record: 0,
        }
    }

    /// Empties it and keeps its buffers, unless they are unusually large.
    pub(crate) fn clear(&mut self) {
        if self.commands.len_bytes() > KEPT_MAX_BYTES {
            self.commands = OwnedBatch::new();
        }
        if self.reply.memory_bytes() > KEPT_MAX_BYTES {
            self.reply = Reply::new(Protocol::Resp2);
        }
        self.commands.clear();
        self.prepared.clear();
        self.reply.clear();
        self.marks.clear();
        self.last_record = 0;
    }
}

/// A worker's mailbox and the bell that ends its waiting.
pub(crate) struct Mailbox {
    letters: emberkv_core::mailbox::Mailbox<Letter>,
    bell: Bell,
}

impl Mailbox {
    /// An empty mailbox of the worker that `bell` wakes.
    pub(crate) fn new(bell: Bell) -> Mailbox {
        Mailbox { letters: emberkv_core::mailbox::Mailbox::new(), bell }
    }

    /// Puts a letter in and wakes the worker if it sleeps.
    pub(crate) fn send(&self, letter: Letter) {
        if self.letters.post(letter) {
            self.bell.ring();
        }
    }

    /// Wakes the worker if it sleeps, for something that is not in a letter.
    pub(crate) fn ring(&self) {
        if self.letters.rouse() {
            self.bell.ring();
        }
    }

    /// The worker is about to wait; false if there is a letter, and it must not.
    pub(crate) fn fall_asleep(&self) -> bool {
        self.letters.fall_asleep()
    }

    /// The worker has waited.
    pub(crate) fn wake_up(&self) {
        self.letters.wake_up();
    }

    /// Exchanges the letters for an empty list.
    pub(crate) fn take(&self, into: &mut Vec<Letter>) {
        self.letters.take(into);
    }
}
