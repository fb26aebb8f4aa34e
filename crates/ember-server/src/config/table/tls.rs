//! Encrypted connections.

use super::bounds::INT_MAX;
use crate::config::parameter::{Field, Kind, Parameter};
use crate::config::value::{TlsAuthClients, TlsAuthClientsUser};
use crate::tls::{ciphers, protocols};

pub(super) static PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "tls-port",
        aliases: &[],
        kind: integer!(tls_port, 0..=65535),
        default: "0",
        mutable: true,
        about: "The TCP port for connections with TLS, on the addresses of `bind`; 0 for none. With `port` 0 there are \
                no others.",
    },
    Parameter {
        name: "tls-cert-file",
        aliases: &[],
        kind: Kind::Path(field!(tls_cert_file)),
        default: "",
        mutable: true,
        about: "The server's certificate and those it depends on, in the PEM format. Each CONFIG SET of a parameter of \
                TLS, to the same value too, reads all files again, for connections to come.",
    },
    Parameter {
        name: "tls-key-file",
        aliases: &[],
        kind: Kind::Path(field!(tls_key_file)),
        default: "",
        mutable: true,
        about: "The private key of that certificate, in the PEM format.",
    },
    Parameter {
        name: "tls-key-file-pass",
        aliases: &[],
        kind: Kind::Secret { field: field!(tls_key_file_pass), file: None },
        default: "",
        mutable: true,
        about: "The password of that key, if it is encrypted: with PBES2 and AES-CBC, as OpenSSL does.",
    },
    Parameter {
        name: "tls-ca-cert-file",
        aliases: &[],
        kind: Kind::Path(field!(tls_ca_cert_file)),
        default: "",
        mutable: true,
        about: "The certificates of the authorities whose clients are trusted, in the PEM format.",
    },
    Parameter {
        name: "tls-ca-cert-dir",
        aliases: &[],
        kind: Kind::Path(field!(tls_ca_cert_dir)),
        default: "",
        mutable: true,
        about: "A directory of files with more such certificates.",
    },
    Parameter {
        name: "tls-auth-clients",
        aliases: &[],
        kind: choice!(tls_auth_clients: TlsAuthClients),
        default: "yes",
        mutable: true,
        about: "Whether clients must show a certificate (`yes`), may show one (`optional`) or are not asked for one.",
    },
    Parameter {
        name: "tls-auth-clients-user",
        aliases: &[],
        kind: choice!(tls_auth_clients_user: TlsAuthClientsUser),
        default: "off",
        mutable: true,
        about: "Which user a client is whose certificate was accepted: the one named by its common name (`CN`), or by the \
                first URI among its alternative names that is the name of a user (`URI`). A client without such a user, or \
                one that is off, logs in as others do; `off` for all of them.",
    },
    Parameter {
        name: "tls-protocols",
        aliases: &[],
        kind: Kind::Words {
            shape: "`TLSv1.2`, `TLSv1.3` or both",
            get: |config| config.tls_protocols.clone(),
            set: |config, text| {
                protocols::check_protocols(text).map(|()| config.tls_protocols = text.to_owned())
            },
        },
        default: "",
        mutable: true,
        about: "The versions of TLS that are spoken; empty for both.",
    },
    Parameter {
        name: "tls-ciphers",
        aliases: &[],
        kind: Kind::Words {
            shape: "names separated by colons",
            get: |config| config.tls_ciphers.clone(),
            set: |config, text| ciphers::check_ciphers(text).map(|()| config.tls_ciphers = text.to_owned()),
        },
        default: "",
        mutable: true,
        about: "The cipher suites of TLS 1.2, the preferred ones first; empty for all.",
    },
    Parameter {
        name: "tls-ciphersuites",
        aliases: &[],
        kind: Kind::Words {
            shape: "names separated by colons",
            get: |config| config.tls_ciphersuites.clone(),
            set: |config, text| {
                ciphers::check_ciphersuites(text).map(|()| config.tls_ciphersuites = text.to_owned())
            },
        },
        default: "",
        mutable: true,
        about: "The cipher suites of TLS 1.3, the preferred ones first; empty for all.",
    },
    Parameter {
        name: "tls-prefer-server-ciphers",
        aliases: &[],
        kind: Kind::YesNo(field!(tls_prefer_server_ciphers)),
        default: "no",
        mutable: true,
        about: "Whether the server's order of cipher suites counts, not the client's.",
    },
    Parameter {
        name: "tls-session-caching",
        aliases: &[],
        kind: Kind::YesNo(field!(tls_session_caching)),
        default: "yes",
        mutable: true,
        about: "Whether clients may resume a session with a shorter handshake.",
    },
    Parameter {
        name: "tls-session-cache-size",
        aliases: &[],
        kind: integer!(tls_session_cache_size, 1..=INT_MAX),
        default: "20480",
        mutable: true,
        about: "The number of sessions in that cache.",
    },
    Parameter {
        name: "tls-session-cache-timeout",
        aliases: &[],
        kind: integer!(tls_session_cache_timeout, 1..=INT_MAX),
        default: "300",
        mutable: true,
        about: "The seconds for which a session is cached.",
    },
    Parameter {
        name: "tls-auto-reload-interval",
        aliases: &[],
        kind: integer!(tls_auto_reload_interval, 0..=INT_MAX),
        default: "0",
        mutable: true,
        about: "The interval in seconds at which the files of TLS are checked, and read again if they have changed; 0 \
                for never.",
    },
];
