//! A client that is a replica: in place of replies it gets what its primary has for it.

use ember_protocol::Reply;

/// What a replica's connection sends in place of replies.
pub(crate) trait Feed: Send {
    /// Appends what comes next to `output`, which is empty: nothing as long as there is nothing, and not much more at once
    /// than a socket takes.
    ///
    /// # Errors
    /// Why the connection is to be closed.
    fn feed(&mut self, output: &mut Reply) -> Result<(), Over>;

    /// Notes why the connection is closed, unless that is known.
    fn note_end(&mut self, why: String);
}

/// Why a replica gets nothing more.
pub(crate) enum Over {
    /// It has all that it wanted.
    Served,
    /// It cannot be given what it needs: the reason.
    Lost(String),
}

impl From<String> for Over {
    fn from(reason: String) -> Over {
        Over::Lost(reason)
    }
}

/// What is in a copy of the data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Contents {
    /// Everything.
    #[default]
    All,
    /// Functions, and no keys.
    Functions,
    /// Neither.
    Nothing,
}

/// What ember says that it can do, as a replica: all that ember does as a primary.
pub(crate) const EMBER_CAPABILITY: &[u8] = b"ember";

/// What kind of server a replica is, as far as it says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Program {
    /// It says nothing: Redis, of whatever version.
    #[default]
    Unknown,
    /// Redis 8 or later.
    Redis8,
    /// Valkey 9 or later.
    Valkey9,
    Ember,
}

impl Program {
    /// That of a server which has said what this is, and so at least that it is this one.
    pub(crate) fn or(self, other: Program) -> Program {
        // ember names a version of Valkey, too, for a primary that is Valkey.
        if self == Program::Ember || other == Program::Unknown { self } else { other }
    }
}

/// What a client says of itself before it becomes a replica, and what it gets then.
#[derive(Default)]
pub(crate) struct Replica {
    /// The port that it listens to, and its address if it is another one than its connection's.
    pub(crate) port: u16,
    pub(crate) address: Box<str>,
    pub(crate) program: Program,
    /// It knows that a history may go on under another name.
    pub(crate) knows_new_names: bool,
    /// It takes a copy of the data whose length is not known beforehand: a mark is behind it.
    pub(crate) knows_marks: bool,
    /// It wants a copy of the data and no stream behind it.
    pub(crate) wants_copy_only: bool,
    /// What its copy contains.
    pub(crate) contents: Contents,
    /// What it gets is to be gathered for fewer packets: its socket does not do that yet.
    pub(crate) gathers: bool,
    /// What it gets, once it has asked for it.
    pub(crate) feed: Option<Box<dyn Feed>>,
}
