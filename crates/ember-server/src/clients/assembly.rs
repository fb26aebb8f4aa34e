//! Commands forwarded between workers, and their replies on the way back.

use ember_protocol::{Mark, OwnedBatch, Protocol, Reply};
use emberkv_core::keyspace::hash::KeyHash;

/// Bytes of commands and of replies that an emptied message keeps allocated for reuse.
const KEPT_MAX_BYTES: usize = 64 * 1024;

/// Commands of one batch for the shards of another worker, and later their replies. The buffers return with the replies
/// and are reused.
pub(crate) struct Forwarded {
    /// The worker that has the connection.
    pub(crate) origin: usize,
    /// The worker that runs the commands.
    pub(crate) owner: usize,
    /// The connection's number at its worker, and its client's id, which shows whether it is still the same connection.
    pub(crate) token: usize,
    pub(crate) client_id: u64,
    pub(crate) database: usize,
    pub(crate) no_touch: bool,
    /// Whether the client sees expired keys, too.
    pub(crate) sees_expired: bool,
    pub(crate) commands: OwnedBatch,
    /// The registry index and the key hash of each command.
    pub(crate) prepared: Vec<(u16, KeyHash)>,
    pub(crate) reply: Reply,
    /// Where each command's reply begins, and finally where the last one ends.
    pub(crate) marks: Vec<Mark>,
    /// The number under which the commands are parked while the values for the next one are fetched.
    pub(crate) parked: u64,
    /// The number of the last journal record of these commands; 0 if they have changed nothing.
    pub(crate) last_record: u64,
}

impl Forwarded {
    /// Returns an empty message.
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

    /// Clears the message; keeps its buffers unless they are unusually large.
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

/// The replies to one batch, collected from several workers.
pub(crate) struct Assembly {
    /// The worker of each command, in order.
    pub(crate) owners: Vec<usize>,
    /// The commands that this worker runs itself; they come as an answer if they have to wait for cold values.
    pub(crate) local: Option<Box<Forwarded>>,
    #[expect(clippy::vec_box, reason = "messages are large and are moved often")]
    pub(crate) answers: Vec<Box<Forwarded>>,
    pub(crate) outstanding: usize,
}

impl Assembly {
    /// Accepts an answer; returns true when it was the last one.
    pub(crate) fn accept(&mut self, answer: Box<Forwarded>) -> bool {
        self.answers.push(answer);
        self.outstanding -= 1;
        self.outstanding == 0
    }
}
