//! A client that is a replica: in place of replies it gets what its primary has for it.

use ember_protocol::Reply;

/// What a replica's connection sends in place of replies.
pub(crate) trait Feed: Send {
    /// Appends what comes next to `output`, which is empty: nothing as long as there is nothing, and not much more at once
    /// than a socket takes.
    ///
    /// # Errors
    /// Why the connection is to be closed.
    fn feed(&mut self, output: &mut Reply) -> Result<(), String>;
}

/// What a client says of itself before it becomes a replica, and what it gets then.
#[derive(Default)]
pub(crate) struct Replica {
    /// The port that it listens to, and its address if it is another one than its connection's.
    pub(crate) port: u16,
    pub(crate) address: Box<str>,
    /// It knows that a history may go on under another name.
    pub(crate) knows_new_names: bool,
    /// What it gets, once it has asked for it.
    pub(crate) feed: Option<Box<dyn Feed>>,
}
