//! TLS: encrypted connections, made by rustls without any I/O of its own.
//!
//! [`Tls`] holds what new connections begin with: certificate, key and rules, made from the configuration at the start and
//! again by each CONFIG SET that names one of its parameters, which reads the files again, by SIGHUP, and when the files
//! have changed (`tls-auto-reload-interval`). Connections that are there keep what they began with. [`TlsStream`] is the
//! part of a connection that turns the socket's bytes into requests and replies into the socket's bytes; a handshake is a
//! few such steps, taken in the worker's loop between those of others.

mod certificate;
pub(crate) mod ciphers;
mod client;
mod der;
mod encrypted_key;
mod failures;
mod files;
pub(crate) mod protocols;
mod session_cache;
mod settings;
mod stream;

use std::sync::Arc;

use parking_lot::Mutex;
use rustls::{ServerConfig, ServerConnection};

use certificate::Certificate;
pub(crate) use client::client_config;
use failures::Failures;
pub(crate) use failures::explain_primary;
use files::FileStates;
pub(crate) use stream::{Received, TlsStream};

use crate::config::{Config, TlsAuthClientsUser};

/// What new TLS connections begin with.
struct Settings {
    config: Arc<ServerConfig>,
    /// Who a client's certificate makes it.
    user: TlsAuthClientsUser,
    facts: CertificateFacts,
}

/// What is told of the server's certificates.
#[derive(Clone, Debug, Default)]
pub(crate) struct CertificateFacts {
    /// That of the server.
    pub(crate) server: CertificateFact,
    /// The first of the authorities.
    pub(crate) authority: CertificateFact,
}

/// What is told of a certificate; nothing if there is none.
#[derive(Clone, Debug, Default)]
pub(crate) struct CertificateFact {
    /// Its number, in hexadecimal digits.
    pub(crate) serial: Option<String>,
    /// Until when it counts: Unix time in s.
    pub(crate) not_after_s: Option<i64>,
}

impl CertificateFact {
    fn of(der: &[u8]) -> CertificateFact {
        let parsed = Certificate::parse(der);
        CertificateFact {
            serial: parsed.as_ref().map(Certificate::serial),
            not_after_s: parsed.and_then(|certificate| certificate.not_after_s()),
        }
    }
}

/// What new TLS connections begin with; nothing when there is no TLS port.
pub(crate) struct Tls {
    settings: Mutex<Option<Settings>>,
    /// The files as they were when they were last read, or could not be.
    tried: Mutex<FileStates>,
    /// Handshakes that failed.
    failures: Failures,
}

impl Tls {
    /// The state for a configuration.
    ///
    /// # Errors
    /// One line that names the parameter and what is wrong with its value or file.
    pub(crate) fn new(config: &Config) -> Result<Tls, String> {
        let tls = Tls { settings: Mutex::default(), tried: Mutex::default(), failures: Failures::new() };
        tls.reload(config)?;
        Ok(tls)
    }

    /// Reads the files again and takes the values of `config` for connections to come.
    ///
    /// # Errors
    /// As [`Tls::new`]; nothing is changed then.
    pub(crate) fn reload(&self, config: &Config) -> Result<(), String> {
        if config.tls_port != 0 {
            // Before they are read: what changes meanwhile will have changed since.
            *self.tried.lock() = FileStates::look(config);
            *self.settings.lock() = Some(settings::load(config)?);
        }
        Ok(())
    }

    /// Whether the files have changed since they were last read.
    pub(crate) fn has_new_files(&self, config: &Config) -> bool {
        config.tls_port != 0 && FileStates::look(config) != *self.tried.lock()
    }

    /// The stream of a new connection.
    ///
    /// # Errors
    /// What rustls says.
    pub(crate) fn accept(&self) -> Result<TlsStream, rustls::Error> {
        let begun_with =
            self.settings.lock().as_ref().map(|settings| (Arc::clone(&settings.config), settings.user));
        let (config, user) =
            begun_with.ok_or_else(|| rustls::Error::General("there is no TLS port".to_owned()))?;
        Ok(TlsStream::new(ServerConnection::new(config)?, user))
    }

    /// Tells the log that a handshake with `peer` has failed, once a second at most.
    pub(crate) fn log_failure(&self, peer: &str, why: &str, now_ms: i64) {
        match self.failures.admit(now_ms) {
            Some(0) => tracing::info!("the TLS handshake with {peer} failed: {why}"),
            Some(others) => {
                tracing::info!("the TLS handshake with {peer} failed: {why}; {others} others failed before");
            }
            None => {}
        }
    }

    /// What is told of the certificates.
    pub(crate) fn certificate_facts(&self) -> CertificateFacts {
        self.settings.lock().as_ref().map(|settings| settings.facts.clone()).unwrap_or_default()
    }
}
