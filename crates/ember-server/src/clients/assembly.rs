//! Commands forwarded between workers, and their replies.

use ember_protocol::{Mark, OwnedBatch, Protocol, Reply};
use emberkv_core::keyspace::hash::KeyHash;

use super::client::SlotCaller;

/// The maximum capacity, in bytes, of each buffer that an emptied message retains for reuse.
const KEPT_MAX_BYTES: usize = 64 * 1024;

/// Commands of one batch on the shards of another worker, and later their replies. The buffers return with the replies
/// and are reused.
pub(crate) struct Forwarded {
    /// The worker that serves the connection.
    pub(crate) origin: usize,
    /// The worker that runs the commands.
    pub(crate) owner: usize,
    /// The connection's token at its worker, and its client id, which shows whether the token still belongs to the same
    /// connection.
    pub(crate) token: usize,
    pub(crate) client_id: u64,
    pub(crate) database: usize,
    pub(crate) no_touch: bool,
    /// The properties of the client for the slot check of a cluster node.
    pub(crate) slot_caller: SlotCaller,
    /// Whether the client also sees expired keys.
    pub(crate) sees_expired: bool,
    pub(crate) commands: OwnedBatch,
    /// The registry index and the key hash of each command.
    pub(crate) prepared: Vec<(u16, KeyHash)>,
    pub(crate) reply: Reply,
    /// The start of each command's reply, and finally the end of the last one.
    pub(crate) marks: Vec<Mark>,
    /// The number under which these commands are parked while values for the next command are fetched.
    pub(crate) parked: u64,
    /// The number of the last journal record of these commands; 0 if they have not changed anything.
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
            slot_caller: SlotCaller::default(),
            sees_expired: false,
            commands: OwnedBatch::new(),
            prepared: Vec::new(),
            reply: Reply::new(Protocol::Resp2),
            marks: Vec::new(),
            parked: 0,
            last_record: 0,
        }
    }

    /// Clears the message; retains its buffers unless they are unusually large.
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
    /// The worker that runs each command, in the order of the commands.
    pub(crate) owners: Vec<usize>,
    /// The commands that this worker runs itself. If they wait for cold values, their replies arrive later, as an
    /// answer.
    pub(crate) local: Option<Box<Forwarded>>,
    #[expect(clippy::vec_box, reason = "messages are large and are moved often")]
    pub(crate) answers: Vec<Box<Forwarded>>,
    pub(crate) outstanding: usize,
}

impl Assembly {
    /// Accepts an answer; returns whether it was the last outstanding one.
    pub(crate) fn accept(&mut self, answer: Box<Forwarded>) -> bool {
        self.answers.push(answer);
        self.outstanding -= 1;
        self.outstanding == 0
    }
}
