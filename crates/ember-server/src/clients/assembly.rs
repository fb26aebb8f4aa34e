//! Commands on their way between workers, and their replies on the way back.

use ember_protocol::{Mark, OwnedBatch, Protocol, Reply};
use emberkv_core::keyspace::hash::KeyHash;

/// Bytes of commands, and of replies, whose memory an emptied message keeps for the next ones.
const KEPT_MAX_BYTES: usize = 64 * 1024;

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
    /// Whether nothing has expired to the client.
    pub(crate) sees_expired: bool,
    pub(crate) commands: OwnedBatch,
    /// For each command its index in the registry and the hash of its key.
    pub(crate) prepared: Vec<(u16, KeyHash)>,
    pub(crate) reply: Reply,
    /// Where each command's reply begins, and at last where the last one ends.
    pub(crate) marks: Vec<Mark>,
    /// The number under which it is parked while values are fetched that its next command needs.
    pub(crate) parked: u64,
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
            sees_expired: false,
            commands: OwnedBatch::new(),
            prepared: Vec::new(),
            reply: Reply::new(Protocol::Resp2),
            marks: Vec::new(),
            parked: 0,
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

/// Replies on their way from several workers.
pub(crate) struct Assembly {
    /// The worker of each command, in order.
    pub(crate) owners: Vec<usize>,
    /// What this worker ran itself; it comes as an answer if it has to wait for values that are away.
    pub(crate) local: Option<Box<Forwarded>>,
    #[expect(clippy::vec_box, reason = "messages are large and go from hand to hand")]
    pub(crate) answers: Vec<Box<Forwarded>>,
    pub(crate) outstanding: usize,
}

impl Assembly {
    /// Takes an answer; true when it was the last one.
    pub(crate) fn accept(&mut self, answer: Box<Forwarded>) -> bool {
        self.answers.push(answer);
        self.outstanding -= 1;
        self.outstanding == 0
    }
}
