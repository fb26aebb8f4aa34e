//! The reason why a benchmark ends early.

use std::io;

use ember_client::{Address, cause};

/// The reason why a benchmark ends early, as a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failure(pub(super) String);

impl Failure {
    /// Describes a lost connection.
    pub(super) fn lost(address: &Address, error: &io::Error) -> Failure {
        let place = address.shown_in_errors();
        Failure(if error.kind() == io::ErrorKind::UnexpectedEof {
            format!("The server at {place} closed a connection")
        } else {
            format!("The connection to {place} failed: {}", cause(error))
        })
    }
}
