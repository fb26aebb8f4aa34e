//! TLS: encrypted connections, with rustls used without its own I/O.
//!
//! [`Tls`] holds the settings for new connections: certificate, key and rules. They are built from the configuration at
//! startup. They are rebuilt, reading the files again, by each CONFIG SET that names one of their parameters, by
//! SIGHUP, and when the files have changed (`tls-auto-reload-interval`). Existing connections keep their settings.
//! [`TlsStream`] is the part of a connection that decrypts requests and encrypts replies; a handshake is a few such
//! steps, which the worker's loop runs between those of other connections.

mod certificate;
mod client;
mod der;
mod encrypted_key;
mod failures;
mod files;
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

use ember_config::{Config, TlsAuthClientsUser};

/// The settings for new TLS connections.
struct Settings {
    config: Arc<ServerConfig>,
    /// The field of a client's certificate that names its user.
    user: TlsAuthClientsUser,
    facts: CertificateFacts,
}

/// Facts about the server's certificates, for INFO and metrics.
#[derive(Clone, Debug, Default)]
pub(crate) struct CertificateFacts {
    /// The server's certificate.
    pub(crate) server: CertificateFact,
    /// The first of the authorities.
    pub(crate) authority: CertificateFact,
}

/// Facts about a certificate; empty if there is none.
#[derive(Clone, Debug, Default)]
pub(crate) struct CertificateFact {
    /// Its serial number, in hexadecimal digits.
    pub(crate) serial: Option<String>,
    /// The end of its validity, Unix time in s.
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

/// The settings for new TLS connections; `None` without a TLS port.
pub(crate) struct Tls {
    settings: Mutex<Option<Settings>>,
    /// The file states at the last attempt to read them.
    tried: Mutex<FileStates>,
    /// The rate limit for logging failed handshakes.
    failures: Failures,
}

impl Tls {
    /// Creates the state for a configuration.
    ///
    /// # Errors
    /// One line that names the parameter and the error of its value or file.
    pub(crate) fn new(config: &Config) -> Result<Tls, String> {
        let tls = Tls { settings: Mutex::default(), tried: Mutex::default(), failures: Failures::new() };
        tls.reload(config)?;
        Ok(tls)
    }

    /// Reads the files again and uses the values of `config` for new connections.
    ///
    /// # Errors
    /// As [`Tls::new`]; nothing is changed then.
    pub(crate) fn reload(&self, config: &Config) -> Result<(), String> {
        if config.tls_port != 0 {
            // Recorded before they are read: a change during the read then counts as new.
            *self.tried.lock() = FileStates::read(config);
            *self.settings.lock() = Some(settings::load(config)?);
        }
        Ok(())
    }

    /// Whether the files have changed since they were last read.
    pub(crate) fn has_new_files(&self, config: &Config) -> bool {
        config.tls_port != 0 && FileStates::read(config) != *self.tried.lock()
    }

    /// Creates the stream of a new connection.
    ///
    /// # Errors
    /// Those of rustls.
    pub(crate) fn accept(&self) -> Result<TlsStream, rustls::Error> {
        let begun_with =
            self.settings.lock().as_ref().map(|settings| (Arc::clone(&settings.config), settings.user));
        let (config, user) =
            begun_with.ok_or_else(|| rustls::Error::General("there is no TLS port".to_owned()))?;
        Ok(TlsStream::new(ServerConnection::new(config)?, user))
    }

    /// Logs that a handshake with `peer` has failed, at most once a second.
    pub(crate) fn log_failure(&self, peer: &str, why: &str, now_ms: i64) {
        match self.failures.admit(now_ms) {
            Some(0) => tracing::info!("the TLS handshake with {peer} failed: {why}"),
            Some(others) => {
                tracing::info!("the TLS handshake with {peer} failed: {why}; {others} others failed before");
            }
            None => {}
        }
    }

    /// Returns the facts about the certificates.
    pub(crate) fn certificate_facts(&self) -> CertificateFacts {
        self.settings.lock().as_ref().map(|settings| settings.facts.clone()).unwrap_or_default()
    }
}
