//! TLS on the client side: trust, client certificates, and errors with advice.

use std::fmt::{self, Display};
use std::fs;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{
    AlertDescription, CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct, Error,
    RootCertStore, SignatureScheme, StreamOwned,
};

use crate::connection::ConnectError;

/// The TLS settings of a connection.
#[derive(Clone, Debug, Default)]
pub struct TlsSettings {
    /// The name that the certificate must contain; `None` for the host's name.
    pub name: Option<String>,
    /// File with trusted CA certificates; `None` for the certificates of the system.
    pub authorities: Option<PathBuf>,
    /// A directory of files with trusted CA certificates.
    pub directory: Option<PathBuf>,
    /// Whether any certificate is accepted.
    pub is_unchecked: bool,
    /// Files of the client's certificate and its key.
    pub identity: Option<(PathBuf, PathBuf)>,
}

/// An error in certificates, keys or names.
#[derive(Debug)]
pub struct TlsError(String);

impl Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn wrong(what: impl Display) -> ConnectError {
    ConnectError::Tls(TlsError(what.to_string()))
}

/// Turns a TCP connection into a TLS connection. The handshake is complete when this returns.
///
/// # Errors
/// Returns an error for invalid settings, or the reason why either side rejects the other.
pub(crate) fn handshake(
    settings: &TlsSettings,
    host: &str,
    stream: TcpStream,
) -> Result<StreamOwned<ClientConnection, TcpStream>, ConnectError> {
    let config = config(settings)?;
    let name = settings.name.as_deref().unwrap_or(host).to_owned();
    let name = ServerName::try_from(name.clone())
        .map_err(|_| wrong(format!("{name} is not a valid name for TLS")))?;
    let connection = ClientConnection::new(Arc::new(config), name).map_err(wrong)?;
    let mut stream = StreamOwned::new(connection, stream);
    while stream.conn.is_handshaking() {
        stream.conn.complete_io(&mut stream.sock).map_err(ConnectError::Io)?;
    }
    Ok(stream)
}

fn config(settings: &TlsSettings) -> Result<ClientConfig, ConnectError> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider));
    let builder = builder.with_safe_default_protocol_versions().map_err(wrong)?;
    let builder = if settings.is_unchecked {
        builder.dangerous().with_custom_certificate_verifier(Arc::new(Unchecked(provider)))
    } else {
        builder.dangerous().with_custom_certificate_verifier(Arc::new(Trusting::of(settings, provider)?))
    };
    match &settings.identity {
        None => Ok(builder.with_no_client_auth()),
        Some((certificate, key)) => {
            let chain = certificates(certificate)?;
            let key = PrivateKeyDer::from_pem_file(key)
                .map_err(|error| wrong(format!("no private key in {}: {error}", key.display())))?;
            builder.with_client_auth_cert(chain, key).map_err(|error| match &error {
                Error::InvalidCertificate(why) if is_of_old_version(why) => {
                    wrong(format!("the client's certificate (--cert) {OLD_VERSION}"))
                }
                _ => wrong(error),
            })
        }
    }
}

/// Loads the certificates that the settings name; `None` if they name none, so that the system's certificates apply.
fn named_authorities(settings: &TlsSettings) -> Result<Option<Vec<CertificateDer<'static>>>, ConnectError> {
    if let Some(file) = &settings.authorities {
        return certificates(file).map(Some);
    }
    let Some(directory) = &settings.directory else { return Ok(None) };
    let unread = |error| wrong(format!("cannot read {}: {error}", directory.display()));
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).map_err(unread)? {
        let path = entry.map_err(unread)?.path();
        let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        let is_hashed = extension.len() == 1 && extension.as_bytes()[0].is_ascii_digit();
        if is_hashed || matches!(extension, "pem" | "crt") {
            found.extend(certificates(&path)?);
        }
    }
    match found.is_empty() {
        true => Err(wrong(format!("no certificate in {}", directory.display()))),
        false => Ok(Some(found)),
    }
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, ConnectError> {
    let read = CertificateDer::pem_file_iter(file).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    match read {
        Ok(certificates) if !certificates.is_empty() => Ok(certificates),
        Ok(_) => Err(wrong(format!("no certificate in {}", file.display()))),
        Err(error) => Err(wrong(format!("no certificates in {}: {error}", file.display()))),
    }
}

/// Trusts servers with a certificate from an authority, and servers whose own certificate is among the configured ones:
/// such a certificate need not be a CA's and need not contain the server's name, because it identifies the server by
/// itself.
#[derive(Debug)]
struct Trusting {
    authorities: Arc<WebPkiServerVerifier>,
    named: Vec<CertificateDer<'static>>,
}

impl Trusting {
    fn of(settings: &TlsSettings, provider: Arc<CryptoProvider>) -> Result<Trusting, ConnectError> {
        let named = named_authorities(settings)?;
        let mut store = RootCertStore::empty();
        match &named {
            Some(named) => {
                for certificate in named {
                    store.add(certificate.clone()).map_err(|error| wrong(explain(&error)))?;
                }
            }
            None => {
                store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            }
        }
        if store.is_empty() {
            return Err(wrong("this system has no CA certificates: specify one with --cacert FILE"));
        }
        let authorities = WebPkiServerVerifier::builder_with_provider(Arc::new(store), provider).build();
        Ok(Trusting { authorities: authorities.map_err(wrong)?, named: named.unwrap_or_default() })
    }
}

impl ServerCertVerifier for Trusting {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verified = self.authorities.verify_server_cert(certificate, others, name, ocsp, now);
        match verified {
            // Validity dates and format are checked before the issuer; a CA's own certificate yields the `Other` case.
            Err(Error::InvalidCertificate(
                CertificateError::UnknownIssuer
                | CertificateError::Other(_)
                | CertificateError::NotValidForName
                | CertificateError::NotValidForNameContext { .. },
            )) if self.named.contains(certificate) => Ok(ServerCertVerified::assertion()),
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.authorities.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.authorities.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.authorities.supported_verify_schemes()
    }
}

/// Describes why either side rejects the other, with advice.
pub(crate) fn explain(error: &Error) -> String {
    match error {
        Error::InvalidCertificate(error) => explain_certificate(error),
        Error::InvalidMessage(_) => {
            "the server's reply is not TLS: is this its port without TLS (omit --tls)?".to_owned()
        }
        Error::AlertReceived(alert) => match alert {
            AlertDescription::CertificateRequired | AlertDescription::HandshakeFailure => {
                "the server requires a client certificate: use --cert FILE --key FILE".to_owned()
            }
            AlertDescription::UnknownCA | AlertDescription::BadCertificate | AlertDescription::DecryptError => {
                "the server does not trust the client's certificate (--cert): its CA is not one of the server's"
                    .to_owned()
            }
            AlertDescription::CertificateExpired => "the client's certificate (--cert) has expired".to_owned(),
            AlertDescription::ProtocolVersion => {
                "the server supports neither of ember-cli's TLS versions (1.2 and 1.3)".to_owned()
            }
            AlertDescription::UnrecognisedName => {
                "the server has no certificate for this name: use --sni HOST".to_owned()
            }
            other => format!("the server aborted the TLS handshake: {other:?}"),
        },
        Error::PeerIncompatible(why) => format!("the server's TLS is incompatible with ember-cli: {why:?}"),
        other => format!("TLS: {other}"),
    }
}

/// The message for a certificate of X.509 version 1 or 2, as issued by `openssl x509 -req` without `-extfile`.
const OLD_VERSION: &str =
    "has X.509 version 1 or 2, without extensions, but version 3 is required: reissue it with extensions";

/// Whether a certificate was rejected because its version does not support extensions.
fn is_of_old_version(error: &CertificateError) -> bool {
    let CertificateError::Other(other) = error else { return false };
    matches!(other.0.downcast_ref(), Some(webpki::Error::UnsupportedCertVersion))
}

fn explain_certificate(error: &CertificateError) -> String {
    match error {
        CertificateError::UnknownIssuer => "no trusted CA has signed the server's certificate: \
                                            specify its CA, or the certificate itself, with --cacert FILE"
            .to_owned(),
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "the server's certificate has expired".to_owned()
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "the server's certificate is not valid yet: is this machine's clock correct?".to_owned()
        }
        CertificateError::NotValidForName => {
            "the server's certificate is for other names: specify one of them with --sni NAME".to_owned()
        }
        CertificateError::NotValidForNameContext { expected, presented } => {
            let names = match presented.is_empty() {
                true => "it has no names (subjectAltName)".to_owned(),
                false => format!("it is for {}", presented.join(", ")),
            };
            let expected = expected.to_str();
            format!(
                "the server's certificate is not for {expected}: {names}; --sni NAME selects the expected name"
            )
        }
        old if is_of_old_version(old) => format!("the server's certificate {OLD_VERSION}"),
        CertificateError::Other(_) => "the server uses a CA certificate as its own: \
                                       specify this certificate with --cacert FILE to trust it"
            .to_owned(),
        other => format!("the server's certificate is not valid: {other}"),
    }
}

/// Accepts every certificate, for `--insecure`. The server must still prove that it has the certificate's private key.
#[derive(Debug)]
struct Unchecked(Arc<CryptoProvider>);

impl ServerCertVerifier for Unchecked {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use rustls::OtherError;

    use super::*;

    #[test]
    fn a_certificate_without_extensions_is_explained_by_its_version() {
        let old = CertificateError::Other(OtherError(Arc::new(webpki::Error::UnsupportedCertVersion)));
        let said = explain(&Error::InvalidCertificate(old));
        assert!(said.starts_with("the server's certificate has X.509 version 1 or 2"), "{said}");
        let authority = CertificateError::Other(OtherError(Arc::new(webpki::Error::CaUsedAsEndEntity)));
        assert!(explain(&Error::InvalidCertificate(authority)).contains("uses a CA certificate"));
    }
}
