//! Server parameters whose values must not appear in logs, histories or lists.

/// The names of secret parameters in `CONFIG SET`, in lower case. A test of the server compares them with its table of
/// parameters.
pub const SECRET_PARAMETERS: [&str; 8] = [
    "cluster-auth-pass",
    "masterauth",
    "masteruser",
    "primaryauth",
    "primaryuser",
    "requirepass",
    "tls-client-key-file-pass",
    "tls-key-file-pass",
];
