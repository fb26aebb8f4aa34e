//! Why a mode ends before it is done.

use std::io;

/// Why a mode ends before it is done.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The connection is gone.
    Lost(io::Error),
    /// Something is wrong; in words.
    Said(String),
    /// What is wrong has been said.
    Known,
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        Failure::Lost(error)
    }
}
