//! TLS from the client's side: whom to trust, and who we are.

use std::fmt::{self, Display};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{
    ClientConfig, ClientConnection, DigitallySignedStruct, RootCertStore, SignatureScheme, StreamOwned,
};

use crate::connection::ConnectError;

/// What the options say about TLS.
#[derive(Clone, Debug, Default)]
pub struct TlsSettings {
    /// The name that the certificate must have, if not that of the host.
    pub name: Option<String>,
    /// Certificates to trust; or else the system's.
    pub authorities: Option<PathBuf>,
    /// Whether any certificate will do.
    pub is_unchecked: bool,
    /// Our certificate and its key.
    pub identity: Option<(PathBuf, PathBuf)>,
}

/// What is wrong with certificates, keys and names.
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

/// Makes a connection a TLS one. The handshake is done when this returns.
///
/// # Errors
/// What is wrong with the settings, or what either side has against the other.
pub(crate) fn handshake(
    settings: &TlsSettings,
    host: &str,
    stream: TcpStream,
) -> Result<StreamOwned<ClientConnection, TcpStream>, ConnectError> {
    let config = config(settings)?;
    let name = settings.name.as_deref().unwrap_or(host).to_owned();
    let name = ServerName::try_from(name.clone()).map_err(|_| wrong(format!("{name} is no name for TLS")))?;
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
        builder.with_root_certificates(authorities(settings.authorities.as_deref())?)
    };
    match &settings.identity {
        None => Ok(builder.with_no_client_auth()),
        Some((certificate, key)) => {
            let chain = certificates(certificate)?;
            let key = PrivateKeyDer::from_pem_file(key)
                .map_err(|error| wrong(format!("no key in {}: {error}", key.display())))?;
            builder.with_client_auth_cert(chain, key).map_err(wrong)
        }
    }
}

fn authorities(file: Option<&Path>) -> Result<RootCertStore, ConnectError> {
    let mut store = RootCertStore::empty();
    match file {
        Some(file) => {
            for certificate in certificates(file)? {
                store.add(certificate).map_err(|error| wrong(format!("{}: {error}", file.display())))?;
            }
        }
        None => {
            store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    Ok(store)
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, ConnectError> {
    let read = CertificateDer::pem_file_iter(file).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    match read {
        Ok(certificates) if !certificates.is_empty() => Ok(certificates),
        Ok(_) => Err(wrong(format!("there is no certificate in {}", file.display()))),
        Err(error) => Err(wrong(format!("no certificates in {}: {error}", file.display()))),
    }
}

/// Takes every certificate, for `--insecure`. That the server has its key is still checked.
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
