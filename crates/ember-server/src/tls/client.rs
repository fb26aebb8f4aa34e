//! The rustls client configuration for this server's outgoing connections, built from the `tls-…` parameters.

use std::sync::Arc;

use ember_config::{Config, tls_ciphers, tls_protocols};
use rustls::ClientConfig;
use rustls::crypto::{CryptoProvider, aws_lc_rs};

use super::failures::explain_own;
use super::settings::{authorities, chain_of, key_of};

/// Builds the configuration from the certificate authorities, and from the client certificate and key if they are set.
///
/// # Errors
/// Returns one line that names the parameter and the error of its value or file.
pub(crate) fn client_config(config: &Config) -> Result<Arc<ClientConfig>, String> {
    let cipher_suites = tls_ciphers::suites(&config.tls_ciphers, &config.tls_ciphersuites)?;
    let provider = Arc::new(CryptoProvider { cipher_suites, ..aws_lc_rs::default_provider() });
    let builder = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&tls_protocols::protocols(&config.tls_protocols)?)
        .map_err(|error| format!("tls-protocols and tls-ciphers are incompatible: {error}"))?
        .with_root_certificates(authorities(config, "tls-replication")?);
    let own = &config.tls_client_cert_file;
    let (chain, key) = if !own.is_empty() {
        let password = config.tls_client_key_file_pass.reveal();
        (
            chain_of("tls-client-cert-file", own)?,
            key_of("tls-client-key-file", &config.tls_client_key_file, password)?,
        )
    } else if !config.tls_cert_file.is_empty() {
        let password = config.tls_key_file_pass.reveal();
        (
            chain_of("tls-cert-file", &config.tls_cert_file)?,
            key_of("tls-key-file", &config.tls_key_file, password)?,
        )
    } else {
        return Ok(Arc::new(builder.with_no_client_auth()));
    };
    let built = builder.with_client_auth_cert(chain, key);
    built.map(Arc::new).map_err(|error| format!("the certificate for the primary: {}", explain_own(&error)))
}
