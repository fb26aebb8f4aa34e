//! Shared by programs that talk to a server: command-line options, connections, and standard output.

mod address;
mod connection;
mod options;
mod print;
mod tls;

pub use address::{Address, Credentials, Place};
pub use connection::{ConnectError, Connection, cause, seconds};
pub use options::{ServerOptions, TlsOptions};
pub use print::{put, put_line};
pub use tls::{TlsError, TlsSettings};
