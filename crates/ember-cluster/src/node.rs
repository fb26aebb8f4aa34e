//! One node of a cluster: its name, its addresses and its role.

use std::fmt;

/// The number of hexadecimal digits of a name.
const NAME_DIGITS: usize = 40;

/// The name of a node or of a shard: 40 lowercase hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name([u8; NAME_DIGITS]);

impl Name {
    /// Returns the name with these digits; `None` if the text is not a name.
    pub fn parse(text: &str) -> Option<Name> {
        let is_digit = |byte: &u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(byte);
        let digits: [u8; NAME_DIGITS] = text.as_bytes().try_into().ok()?;
        digits.iter().all(is_digit).then_some(Name(digits))
    }

    /// Returns the digits.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).expect("hexadecimal digits are ASCII")
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The addresses under which clients and other nodes reach a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Address {
    /// The IP address; empty if it is not known.
    pub ip: String,
    /// The port for clients without TLS; 0 if there is none.
    pub port: u16,
    /// The port for clients with TLS; 0 if there is none.
    pub tls_port: u16,
    /// The port for other nodes.
    pub bus_port: u16,
    /// The host name; empty if the node announces none.
    pub hostname: String,
    /// The name for logs; empty if the node announces none.
    pub human_name: String,
}

impl Address {
    /// Returns the port for a client with TLS (`uses_tls`) or without.
    pub fn client_port(&self, uses_tls: bool) -> u16 {
        if uses_tls { self.tls_port } else { self.port }
    }
}

/// The role of a node in its shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The node owns the slots of its shard.
    Primary,
    /// The node replicates the node with this name.
    Replica(Name),
}

/// The data of a node. Their number is another one after each start of the node, and after it has replaced its data by a
/// full copy of its primary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataSet {
    /// The node.
    pub node: Name,
    /// The number of its data.
    pub incarnation: u64,
}

impl DataSet {
    /// Reads the text of the data: `<name>:<number>`.
    ///
    /// # Errors
    /// Returns a description of the first fault in the text.
    pub fn parse(text: &str) -> Result<DataSet, String> {
        crate::topology::text::parse_data(text)
    }
}

impl fmt::Display for DataSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.node, self.incarnation)
    }
}

/// The agreement on the data of a shard, which decides on failovers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShardState {
    /// The index of the change that set this state; changes of it name the version that they expect.
    pub version: u64,
    /// The number of the data that the primary serves. With other data it serves nothing. 0 until it is agreed.
    pub incarnation: u64,
    /// The replicas of which each has every acknowledged write: only one of them becomes the primary. `None` if writes are
    /// acknowledged without them.
    pub in_sync: Option<Vec<DataSet>>,
}

/// A node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// The name of the node.
    pub name: Name,
    /// The name of its shard, which a primary and its replicas have in common.
    pub shard: Name,
    /// The node's addresses.
    pub address: Address,
    /// The node's role.
    pub role: Role,
    /// The configuration epoch of a primary; 0 for a replica.
    pub epoch: u64,
    /// The agreement on the data of a primary's shard; the default for a replica.
    pub state: ShardState,
}

impl Node {
    /// Returns the node that this one replicates, if it is a replica.
    pub fn primary(&self) -> Option<Name> {
        match self.role {
            Role::Primary => None,
            Role::Replica(primary) => Some(primary),
        }
    }

    /// Returns whether the node is a replica.
    pub fn is_replica(&self) -> bool {
        self.primary().is_some()
    }
}
