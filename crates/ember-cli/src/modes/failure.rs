//! The reasons why a mode ends early.

use std::io;

/// The reason why a mode ends early.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The connection was lost.
    Lost(io::Error),
    /// Another error, with its message.
    Said(String),
    /// The error has already been printed.
    Known,
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        Failure::Lost(error)
    }
}
