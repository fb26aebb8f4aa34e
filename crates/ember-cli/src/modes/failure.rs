//! Why a mode ends early.

use std::io;

/// Why a mode ends early.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The connection was lost.
    Lost(io::Error),
    /// Another error, as a message.
    Said(String),
    /// The error has been printed.
    Known,
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        Failure::Lost(error)
    }
}
