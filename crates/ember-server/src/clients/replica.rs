//! A client that is a replica: it receives a feed from its primary instead of replies.

use ember_protocol::Reply;

/// The source of what a replica's connection sends instead of replies.
pub(crate) trait Feed: Send {
    /// Appends the next part to `output`, which is empty: nothing while there is none, and not much more at a time than
    /// a socket accepts.
    ///
    /// # Errors
    /// Why the connection is to be closed.
    fn feed(&mut self, output: &mut Reply) -> Result<(), Over>;

    /// Records why the connection is closed, unless a reason is known.
    fn record_end(&mut self, why: String);
}

/// Why a replica's feed ends.
pub(crate) enum Over {
    /// The replica has everything it requested.
    Served,
    /// The replica cannot receive the data it needs, for this reason.
    Lost(String),
}

impl From<String> for Over {
    fn from(reason: String) -> Over {
        Over::Lost(reason)
    }
}

/// The contents of a full sync.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Contents {
    /// Everything.
    #[default]
    All,
    /// Functions without keys.
    Functions,
    /// Neither keys nor functions.
    Nothing,
}

/// The capability that ember announces as a replica: it supports everything that ember does as a primary.
pub(crate) const EMBER_CAPABILITY: &[u8] = b"ember";

/// The program that a replica runs, as far as it says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Program {
    /// Not stated: Redis, of any version.
    #[default]
    Unknown,
    /// Redis 8 or later.
    Redis8,
    /// Valkey 9 or later.
    Valkey9,
    Ember,
}

impl Program {
    /// Combines earlier statements of a server with a further one; an identified ember stays ember.
    pub(crate) fn or(self, other: Program) -> Program {
        // To a Valkey primary, ember names a version of Valkey, too.
        if self == Program::Ember || other == Program::Unknown { self } else { other }
    }
}

/// Statements of a client before it becomes a replica, and its feed then.
#[derive(Default)]
pub(crate) struct Replica {
    /// The port that it listens on, and its address if that differs from its connection's.
    pub(crate) port: u16,
    pub(crate) address: Box<str>,
    pub(crate) program: Program,
    /// Whether it supports a history that continues under another name.
    pub(crate) knows_new_names: bool,
    /// Whether it accepts a full sync of unknown length, which ends with a mark.
    pub(crate) knows_marks: bool,
    /// Whether it wants a full sync without the stream after it.
    pub(crate) is_copy_only: bool,
    /// The contents of its full sync.
    pub(crate) contents: Contents,
    /// Whether output is to be combined into fewer packets; the socket does not do that yet.
    pub(crate) gathers: bool,
    /// The feed, once requested.
    pub(crate) feed: Option<Box<dyn Feed>>,
}
