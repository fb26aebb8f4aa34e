//! Parameters of a server whose values no log, history or list may show.

/// The names that `CONFIG SET` knows of parameters whose values are secrets, in lower case. A test of the server compares
/// them with its table of parameters.
pub const SECRET_PARAMETERS: [&str; 7] = [
    "masterauth",
    "masteruser",
    "primaryauth",
    "primaryuser",
    "requirepass",
    "tls-client-key-file-pass",
    "tls-key-file-pass",
];
