//! The rustls server configuration, built from the `tls-…` parameters.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ember_config::{Config, TlsAuthClients, tls_ciphers, tls_protocols};
use ember_persistence::full_path::full_path;
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::{RootCertStore, ServerConfig};

use super::failures::explain_own;
use super::files::authority_paths;
use super::session_cache::SessionCache;
use super::{CertificateFact, CertificateFacts, Settings, encrypted_key};

/// Builds the settings from the certificate, the key and the certificate authorities.
///
/// # Errors
/// Returns one line that names the parameter and the error of its value or file.
pub(super) fn load(config: &Config) -> Result<Settings, String> {
    let cipher_suites = tls_ciphers::suites(&config.tls_ciphers, &config.tls_ciphersuites)?;
    let provider = Arc::new(CryptoProvider { cipher_suites, ..aws_lc_rs::default_provider() });
    let wrong =
        |error| format!("tls-cert-file '{}': {}", full_path(&config.tls_cert_file), explain_own(&error));
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&tls_protocols::protocols(&config.tls_protocols)?)
        .map_err(|error| format!("tls-protocols and tls-ciphers are incompatible: {error}"))?;
    let builder = match client_verifier(config, provider)? {
        None => builder.with_no_client_auth(),
        Some(verifier) => builder.with_client_cert_verifier(verifier),
    };
    let chain = chain_of("tls-cert-file", &config.tls_cert_file)?;
    let facts = CertificateFacts {
        server: CertificateFact::of(&chain[0]),
        authority: first_authority(config).map(|der| CertificateFact::of(&der)).unwrap_or_default(),
    };
    let mut settings = builder.with_single_cert(chain, server_key(config)?).map_err(wrong)?;
    settings.ignore_client_order = config.tls_prefer_server_ciphers;
    if config.tls_session_caching {
        let timeout = Duration::from_secs(u64::from(config.tls_session_cache_timeout));
        settings.session_storage = Arc::new(SessionCache::new(config.tls_session_cache_size, timeout));
    } else {
        settings.session_storage = Arc::new(NoServerSessionStorage {});
        settings.send_tls13_tickets = 0;
    }
    Ok(Settings { config: Arc::new(settings), user: config.tls_auth_clients_user, facts })
}

/// Returns the certificates of a PEM file; an error if there is none.
pub(super) fn chain_of(parameter: &str, path: &str) -> Result<Vec<CertificateDer<'static>>, String> {
    let chain = certificates(parameter, path)?;
    if chain.is_empty() {
        return Err(format!("{parameter} '{}': the file contains no certificate", full_path(path)));
    }
    Ok(chain)
}

fn server_key(config: &Config) -> Result<PrivateKeyDer<'static>, String> {
    if config.tls_key_file.is_empty() {
        return Err("tls-port needs tls-key-file".to_owned());
    }
    key_of("tls-key-file", &config.tls_key_file, config.tls_key_file_pass.reveal())
}

/// Returns the private key of a PEM file, decrypted with `password` if necessary.
pub(super) fn key_of(parameter: &str, path: &str, password: &str) -> Result<PrivateKeyDer<'static>, String> {
    let wrong = |error: &dyn std::fmt::Display| format!("{parameter} '{}': {error}", full_path(path));
    let text = fs::read(path).map_err(|error| wrong(&error))?;
    if let Some(key) = encrypted_key::read(&String::from_utf8_lossy(&text), password) {
        return key.map_err(|error| wrong(&error));
    }
    PrivateKeyDer::from_pem_slice(&text).map_err(|error| match error {
        pem::Error::NoItemsFound => wrong(&"the file contains no private key"),
        error => wrong(&error),
    })
}

/// Returns all certificates of a PEM file.
fn certificates(parameter: &str, path: &str) -> Result<Vec<CertificateDer<'static>>, String> {
    if path.is_empty() {
        return Err(format!("tls-port needs {parameter}"));
    }
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect);
    read.map_err(|error| format!("{parameter} '{}': {error}", full_path(path)))
}

/// Returns the verifier of client certificates; `None` if the server requests none.
fn client_verifier(
    config: &Config,
    provider: Arc<CryptoProvider>,
) -> Result<Option<Arc<dyn ClientCertVerifier>>, String> {
    if config.tls_auth_clients == TlsAuthClients::No {
        return Ok(None);
    }
    let authorities = Arc::new(authorities(config, "tls-auth-clients")?);
    let mut builder = WebPkiClientVerifier::builder_with_provider(authorities, provider);
    if config.tls_auth_clients == TlsAuthClients::Optional {
        builder = builder.allow_unauthenticated();
    }
    builder.build().map(Some).map_err(|error| format!("tls-ca-cert-file: {error}"))
}

/// Returns the first certificate in the file of authorities, if there is one.
fn first_authority(config: &Config) -> Option<CertificateDer<'static>> {
    let path = Some(&config.tls_ca_cert_file).filter(|path| !path.is_empty())?;
    CertificateDer::pem_file_iter(path).ok()?.next()?.ok()
}

/// Returns the trusted certificate authorities; `wanted_by` is the parameter that requires them, for error messages.
pub(super) fn authorities(config: &Config, wanted_by: &str) -> Result<RootCertStore, String> {
    let (file, directory) = (&config.tls_ca_cert_file, &config.tls_ca_cert_dir);
    let mut store = RootCertStore::empty();
    if file.is_empty() && directory.is_empty() {
        return Err(format!("{wanted_by} needs tls-ca-cert-file or tls-ca-cert-dir (or set it to no)"));
    }
    if !file.is_empty() {
        for certificate in certificates("tls-ca-cert-file", file)? {
            store.add(certificate).map_err(|error| format!("tls-ca-cert-file '{file}': {error}"))?;
        }
    }
    if !directory.is_empty() {
        let unreadable = |error: std::io::Error| format!("tls-ca-cert-dir '{directory}': {error}");
        let paths = authority_paths(Path::new(directory)).map_err(unreadable)?;
        // Files without a certificate are skipped, because such a directory may also contain revocation lists and
        // readmes.
        let found = paths.iter().filter_map(|path| CertificateDer::pem_file_iter(path).ok());
        store.add_parsable_certificates(found.flatten().flatten());
    }
    if store.is_empty() {
        return Err("tls-ca-cert-file and tls-ca-cert-dir contain no certificate".to_owned());
    }
    Ok(store)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_settings_are_named() {
        let mut config = Config { tls_port: 1, tls_auth_clients: TlsAuthClients::No, ..Config::default() };
        let error = |config: &Config| load(config).err().unwrap();
        assert_eq!(error(&config), "tls-port needs tls-cert-file");
        config.tls_auth_clients = TlsAuthClients::Yes;
        assert!(error(&config).starts_with("tls-auth-clients needs tls-ca-cert-file"));
        config.tls_ca_cert_dir = "/nowhere".to_owned();
        assert!(error(&config).starts_with("tls-ca-cert-dir '/nowhere': "));
        config.tls_ca_cert_file = "/nowhere.crt".to_owned();
        assert!(error(&config).starts_with("tls-ca-cert-file '/nowhere.crt': "));
    }
}
