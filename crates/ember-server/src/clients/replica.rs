//! The state of a client that is a replica: it receives a replication feed from this server instead of replies.

use ember_cluster::node::DataSet;
use ember_protocol::Reply;

/// The source of the data that a replica's connection sends instead of replies.
pub(crate) trait Feed: Send {
    /// Appends the next part of the feed to `output`, which is empty: at most about as much as a socket accepts, and
    /// nothing if there is no data at present.
    ///
    /// # Errors
    /// Returns why the connection is to be closed.
    fn feed(&mut self, output: &mut Reply) -> Result<(), Over>;

    /// Records why the connection is closed, unless a reason is already recorded.
    fn record_end(&mut self, why: String);
}

/// The reason why a replica's feed ends.
pub(crate) enum Over {
    /// The replica has received everything that it requested.
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
    /// Keys and functions.
    #[default]
    All,
    /// Functions without keys.
    Functions,
    /// Neither keys nor functions.
    Nothing,
}

/// The capability that ember announces as a replica: it supports everything that an ember primary sends.
pub(crate) const EMBER_CAPABILITY: &[u8] = b"ember";

/// The option of REPLCONF with which a cluster node states its name and the number of its data.
pub(crate) const NODE_DATA: &str = "CLUSTER-DATA";

/// The program that a replica runs, according to its own statements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Program {
    /// The replica has not stated its program: Redis, of any version.
    #[default]
    Unknown,
    /// Redis 8 or later.
    Redis8,
    /// Valkey 9 or later.
    Valkey9,
    Ember,
}

impl Program {
    /// Combines a server's earlier statements with a later one; a server that has identified itself as ember remains
    /// ember.
    pub(crate) fn or(self, other: Program) -> Program {
        // Connected to a Valkey primary, ember also states a version of Valkey.
        if self == Program::Ember || other == Program::Unknown { self } else { other }
    }
}

/// The statements of a client before it becomes a replica, and its feed from then on.
#[derive(Default)]
pub(crate) struct Replica {
    /// The port on which the replica listens, and its address if that differs from the address of its connection.
    pub(crate) port: u16,
    pub(crate) address: Box<str>,
    pub(crate) program: Program,
    /// Whether the replica supports a replication history that continues under another name.
    pub(crate) knows_new_names: bool,
    /// Whether the replica accepts a full sync of unknown length, which ends with a mark.
    pub(crate) knows_marks: bool,
    /// Whether the replica requests a full sync without the replication stream that follows.
    pub(crate) is_copy_only: bool,
    /// The node of the cluster that the replica is, and the number of its data.
    pub(crate) data: Option<DataSet>,
    /// The contents of the replica's full sync.
    pub(crate) contents: Contents,
    /// Whether output is to be combined into fewer packets, while the socket does not do that yet.
    pub(crate) gathers: bool,
    /// The feed, once requested.
    pub(crate) feed: Option<Box<dyn Feed>>,
}
