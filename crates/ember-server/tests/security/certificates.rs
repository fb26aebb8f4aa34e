//! Certificates created for a test, in a separate directory.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, SanType};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, RootCertStore, SupportedProtocolVersion};

/// A CA with its files: `ca.crt`, and `<name>.crt` and `<name>.key` of the certificates that it signs.
pub(crate) struct Authority {
    directory: PathBuf,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    pub(crate) fn new() -> Authority {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("ember-tls-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let directory = std::env::temp_dir().join(name);
        fs::create_dir_all(&directory).unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        fs::write(directory.join("ca.crt"), certificate.pem()).unwrap();
        Authority { directory, issuer: Issuer::new(params, key) }
    }

    /// Creates the certificate and the key of `name`, replacing earlier ones.
    pub(crate) fn issue(&self, name: &str) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec!["localhost".to_owned(), "127.0.0.1".to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        fs::write(self.directory.join(format!("{name}.crt")), certificate.pem()).unwrap();
        fs::write(self.directory.join(format!("{name}.key")), key.serialize_pem()).unwrap();
    }

    /// Creates a certificate whose subject has this common name, and these URIs among its alternative names.
    pub(crate) fn issue_to(&self, name: &str, common_name: &str, uris: &[&str]) {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        params.distinguished_name.push(DnType::OrganizationName, "Ember");
        params.distinguished_name.push(DnType::CommonName, common_name);
        let uris = uris.iter().map(|&uri| SanType::URI(uri.try_into().unwrap()));
        params.subject_alt_names.extend(uris);
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        fs::write(self.directory.join(format!("{name}.crt")), certificate.pem()).unwrap();
        fs::write(self.directory.join(format!("{name}.key")), key.serialize_pem()).unwrap();
    }

    /// Creates a certificate of X.509 version 1, like `openssl x509 -req` without `-extfile`: no version and no
    /// extensions. The signature does not match the changed bytes; no code verifies it.
    pub(crate) fn issue_version_1(&self, name: &str) {
        self.issue(name);
        let path = self.path(&format!("{name}.crt"));
        let der = CertificateDer::from_pem_file(&path).unwrap();
        let (whole, _) = take_value(&der);
        let (body, signature) = take_value(whole);
        let mut fields = Vec::new();
        let mut rest = body;
        while let Some(&kind) = rest.first() {
            let (_, remaining) = take_value(rest);
            if ![VERSION, EXTENSIONS].contains(&kind) {
                fields.extend_from_slice(&rest[..rest.len() - remaining.len()]);
            }
            rest = remaining;
        }
        let der = sequence(&[sequence(&fields), signature.to_vec()].concat());
        let pem = STANDARD.encode(der);
        let text = format!("-----BEGIN CERTIFICATE-----\n{pem}\n-----END CERTIFICATE-----\n");
        fs::write(path, text).unwrap();
    }

    /// Returns the path of a file in the directory.
    pub(crate) fn path(&self, file: &str) -> String {
        self.directory.join(file).to_str().unwrap().to_owned()
    }

    /// Returns the arguments of a server with a certificate, which trusts client certificates of this CA.
    pub(crate) fn server_arguments(&self, port: u16, auth_clients: &str) -> Vec<String> {
        self.issue("server");
        [
            ["--tls-port", &port.to_string()],
            ["--tls-cert-file", &self.path("server.crt")],
            ["--tls-key-file", &self.path("server.key")],
            ["--tls-ca-cert-file", &self.path("ca.crt")],
            ["--tls-auth-clients", auth_clients],
        ]
        .concat()
        .into_iter()
        .map(str::to_owned)
        .collect()
    }

    /// Returns the configuration of a client that presents the certificate of `name`, valid or not.
    pub(crate) fn client_without_checks(&self, name: &str) -> Arc<ClientConfig> {
        let provider = rustls::crypto::aws_lc_rs::default_provider();
        let certificate = CertificateDer::from_pem_file(self.path(&format!("{name}.crt"))).unwrap();
        let key = PrivateKeyDer::from_pem_file(self.path(&format!("{name}.key"))).unwrap();
        let key = provider.key_provider.load_private_key(key).unwrap();
        let shown = SingleCertAndKey::from(CertifiedKey::new(vec![certificate], key));
        let mut config = ClientConfig::clone(&self.client(&[&TLS12, &TLS13], None));
        config.client_auth_cert_resolver = Arc::new(shown);
        Arc::new(config)
    }

    /// Returns the configuration of a client that trusts the CA and presents the certificate of `name`, if given.
    pub(crate) fn client(
        &self,
        versions: &[&'static SupportedProtocolVersion],
        name: Option<&str>,
    ) -> Arc<ClientConfig> {
        let mut trusted = RootCertStore::empty();
        trusted.add(CertificateDer::from_pem_file(self.path("ca.crt")).unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(versions)
            .unwrap()
            .with_root_certificates(trusted);
        Arc::new(match name {
            None => builder.with_no_client_auth(),
            Some(name) => {
                let certificate = CertificateDer::from_pem_file(self.path(&format!("{name}.crt"))).unwrap();
                let key = PrivateKeyDer::from_pem_file(self.path(&format!("{name}.key"))).unwrap();
                builder.with_client_auth_cert(vec![certificate], key).unwrap()
            }
        })
    }
}

// The tags of DER values that only certificates of version 3 contain.
const VERSION: u8 = 0xa0;
const EXTENSIONS: u8 = 0xa3;

/// Returns the content of the first DER value, of less than 64 KiB, and the bytes after the value.
fn take_value(der: &[u8]) -> (&[u8], &[u8]) {
    let (length, at) = match der[1] {
        0x81 => (usize::from(der[2]), 3),
        0x82 => (usize::from(der[2]) * 256 + usize::from(der[3]), 4),
        short => (usize::from(short), 2),
    };
    der[at..].split_at(length)
}

/// Encodes a DER sequence of less than 64 KiB.
fn sequence(content: &[u8]) -> Vec<u8> {
    let [high, low] = u16::try_from(content.len()).unwrap().to_be_bytes();
    let head = match (high, low) {
        (0, ..=0x7f) => vec![0x30, low],
        (0, _) => vec![0x30, 0x81, low],
        _ => vec![0x30, 0x82, high, low],
    };
    [&head, content].concat()
}

impl Drop for Authority {
    fn drop(&mut self) {
        // A file that remains is harmless.
        let _ = fs::remove_dir_all(&self.directory);
    }
}
