//! Parameters of encrypted connections (TLS).

use super::bounds::INT_MAX;
use crate::parameter::{Field, Kind, Parameter};
use crate::value::{TlsAuthClients, TlsAuthClientsUser};
use crate::{tls_ciphers, tls_protocols};

pub(super) static PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "tls-port",
        aliases: &[],
        kind: integer!(tls_port, 0..=65535),
        default: "0",
        mutable: true,
        about: "The TCP port for connections with TLS, on the addresses of `bind`; 0 for none. With `port` 0 only TLS \
                is accepted.",
    },
    Parameter {
        name: "tls-cert-file",
        aliases: &[],
        kind: Kind::Path(field!(tls_cert_file)),
        default: "",
        mutable: true,
        about: "The server's certificate and its chain, in PEM format. Each CONFIG SET of a TLS parameter, even to the \
                same value, reads all files again, for new connections.",
    },
    Parameter {
        name: "tls-key-file",
        aliases: &[],
        kind: Kind::Path(field!(tls_key_file)),
        default: "",
        mutable: true,
        about: "The private key of that certificate, in PEM format.",
    },
    Parameter {
        name: "tls-key-file-pass",
        aliases: &[],
        kind: Kind::Secret { field: field!(tls_key_file_pass), file: None },
        default: "",
        mutable: true,
        about: "The password of that key, if the key is encrypted. The supported encryption is PBES2 with AES-CBC, \
            which OpenSSL uses.",
    },
    Parameter {
        name: "tls-ca-cert-file",
        aliases: &[],
        kind: Kind::Path(field!(tls_ca_cert_file)),
        default: "",
        mutable: true,
        about: "The certificates of the authorities that may issue client certificates, in PEM format.",
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
        about: "Whether clients must present a certificate (`yes`), may present one (`optional`), or are not asked for \
                one (`no`).",
    },
    Parameter {
        name: "tls-auth-clients-user",
        aliases: &[],
        kind: choice!(tls_auth_clients_user: TlsAuthClientsUser),
        default: "off",
        mutable: true,
        about: "The user of a client with an accepted certificate: the user named by its common name (`CN`), or by the \
                first of its alternative names that is a URI and the name of a user (`URI`). If there is no such user, \
                or it is off, the client logs in like others; with `off` all clients do.",
    },
    Parameter {
        name: "tls-protocols",
        aliases: &[],
        kind: Kind::Words {
            shape: "`TLSv1.2`, `TLSv1.3` or both",
            get: |config| config.tls_protocols.clone(),
            set: |config, text| {
                tls_protocols::check_protocols(text).map(|()| config.tls_protocols = text.to_owned())
            },
        },
        default: "",
        mutable: true,
        about: "The supported versions of TLS; empty for both.",
    },
    Parameter {
        name: "tls-ciphers",
        aliases: &[],
        kind: Kind::Words {
            shape: "names separated by colons",
            get: |config| config.tls_ciphers.clone(),
            set: |config, text| {
                tls_ciphers::check_ciphers(text).map(|()| config.tls_ciphers = text.to_owned())
            },
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
                tls_ciphers::check_ciphersuites(text).map(|()| config.tls_ciphersuites = text.to_owned())
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
        about: "Whether the server's order of cipher suites takes precedence over the client's.",
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
        about: "The interval in seconds at which the TLS files are checked, and read again if they have changed; 0 for \
                never.",
    },
];
