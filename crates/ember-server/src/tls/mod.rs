//! TLS: encrypted connections. The server does the I/O, and rustls only processes bytes.
//!
//! [`Tls`] holds the settings for new connections: certificate, key and rules. They are built from the configuration at
//! startup. They are rebuilt, and their files read again, by each CONFIG SET of one of their parameters, by SIGHUP, and
//! when the files have changed (`tls-auto-reload-interval`). Existing connections keep their settings. [`TlsStream`] is
//! the part of a connection that decrypts requests and encrypts replies. A handshake consists of a few such steps,
//! which the worker's event loop interleaves with those of other connections.

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
use ember_config::{Config, TlsAuthClientsUser};
use failures::Failures;
pub(crate) use failures::explain_primary;
use files::FileStates;
pub(crate) use stream::{Received, TlsStream};

/// Returns the rustls configuration for connections that this server accepts from other nodes.
///
/// # Errors
/// Returns one line that names the parameter and the error of its value or file.
pub(crate) fn server_config(config: &Config) -> Result<Arc<ServerConfig>, String> {
    settings::load(config).map(|settings| settings.config)
}

/// The settings for new TLS connections.
struct Settings {
    config: Arc<ServerConfig>,
    /// The field of a client's certificate that contains its user name.
    user: TlsAuthClientsUser,
    facts: CertificateFacts,
}

/// Properties of the server's certificates, for INFO and metrics.
#[derive(Clone, Debug, Default)]
pub(crate) struct CertificateFacts {
    /// The server's certificate.
    pub(crate) server: CertificateFact,
    /// The first certificate in the file of authorities.
    pub(crate) authority: CertificateFact,
}

/// Properties of a certificate; all `None` if there is no certificate.
#[derive(Clone, Debug, Default)]
pub(crate) struct CertificateFact {
    /// The serial number, as hexadecimal digits.
    pub(crate) serial: Option<String>,
    /// The end of the certificate's validity, as Unix time in seconds.
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

/// The TLS state of the server: the settings for new connections (`None` without a TLS port), and the data for
/// reloading files and logging failures.
pub(crate) struct Tls {
    settings: Mutex<Option<Settings>>,
    /// The states of the files at the last attempt to load them.
    tried: Mutex<FileStates>,
    /// The rate limiter for log lines about failed handshakes.
    failures: Failures,
}

impl Tls {
    /// Loads the settings of a configuration.
    ///
    /// # Errors
    /// Returns one line that names the parameter and the error of its value or file.
    pub(crate) fn new(config: &Config) -> Result<Tls, String> {
        let tls = Tls { settings: Mutex::default(), tried: Mutex::default(), failures: Failures::new() };
        tls.reload(config)?;
        Ok(tls)
    }

    /// Reads the files again and uses the values of `config` for new connections.
    ///
    /// # Errors
    /// Returns the errors of [`Tls::new`]; the previous settings then remain in effect.
    pub(crate) fn reload(&self, config: &Config) -> Result<(), String> {
        if config.tls_port != 0 {
            // The states are recorded before the files are read, so that a change during the read is detected later.
            *self.tried.lock() = FileStates::read(config);
            *self.settings.lock() = Some(settings::load(config)?);
        }
        Ok(())
    }

    /// Whether the files have changed since the last attempt to load them.
    pub(crate) fn has_new_files(&self, config: &Config) -> bool {
        config.tls_port != 0 && FileStates::read(config) != *self.tried.lock()
    }

    /// Creates the stream of a new connection.
    ///
    /// # Errors
    /// Returns the error of rustls.
    pub(crate) fn accept(&self) -> Result<TlsStream, rustls::Error> {
        let begun_with =
            self.settings.lock().as_ref().map(|settings| (Arc::clone(&settings.config), settings.user));
        let (config, user) =
            begun_with.ok_or_else(|| rustls::Error::General("there is no TLS port".to_owned()))?;
        Ok(TlsStream::new(ServerConnection::new(config)?, user))
    }

    /// Logs that a handshake with `peer` has failed; at most one line per second is logged.
    pub(crate) fn log_failure(&self, peer: &str, why: &str, now_ms: i64) {
        match self.failures.admit(now_ms) {
            Some(0) => tracing::info!("the TLS handshake with {peer} failed: {why}"),
            Some(others) => {
                tracing::info!("the TLS handshake with {peer} failed: {why}; {others} others failed before");
            }
            None => {}
        }
    }

    /// Returns the properties of the certificates in use.
    pub(crate) fn certificate_facts(&self) -> CertificateFacts {
        self.settings.lock().as_ref().map(|settings| settings.facts.clone()).unwrap_or_default()
    }
}
