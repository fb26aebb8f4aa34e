//! The client side of ember's programs: command-line options, connections to a server, and standard output.

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
