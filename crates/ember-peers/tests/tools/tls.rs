//! redis-cli connects to ember with TLS, and both verify each other's certificates.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use ember_peers::require_program;
use ember_testkit::{Server, find_ember_server, free_port};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};

/// Certificates and keys in a directory that is removed on drop.
struct Files(PathBuf);

impl Files {
    /// Creates a CA, `ca.crt`, and certificates and keys of `server` and `client` that it has signed.
    fn new() -> Files {
        let directory = std::env::temp_dir().join(format!("ember-peers-tls-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        // The CA needs a different name: a certificate whose issuer equals its own name is treated as self-signed.
        params.distinguished_name.push(DnType::CommonName, "authority");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        fs::write(directory.join("ca.crt"), params.self_signed(&key).unwrap().pem()).unwrap();
        let issuer = Issuer::new(params, key);
        for name in ["server", "client"] {
            let key = KeyPair::generate().unwrap();
            let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
            let certificate = CertificateParams::new(names).unwrap().signed_by(&key, &issuer).unwrap();
            fs::write(directory.join(format!("{name}.crt")), certificate.pem()).unwrap();
            fs::write(directory.join(format!("{name}.key")), key.serialize_pem()).unwrap();
        }
        Files(directory)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        // A file that remains is harmless.
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn redis_cli(program: &Path, port: &str, arguments: &[&str], command: &[&str]) -> Output {
    let base = ["-h", "127.0.0.1", "-p", port, "--tls"];
    Command::new(program).args(base).args(arguments).args(command).output().unwrap()
}

#[test]
fn redis_cli_speaks_tls_with_a_certificate_and_not_without() {
    let files = Files::new();
    let port = free_port().to_string();
    let [ca, certificate, key] = ["ca.crt", "server.crt", "server.key"].map(|name| files.path(name));
    let arguments = [
        ["--tls-port", &port],
        ["--tls-cert-file", &certificate],
        ["--tls-key-file", &key],
        ["--tls-ca-cert-file", &ca],
    ];
    let server = Server::builder(find_ember_server()).arguments(&arguments.concat()).start();
    let program = require_program("redis-cli");
    let [own, own_key] = ["client.crt", "client.key"].map(|name| files.path(name));
    let right = ["--cacert", &ca, "--cert", &own, "--key", &own_key];
    let run = |arguments: &[&str], command: &[&str]| redis_cli(&program, &port, arguments, command);

    let output = run(&right, &["SET", "hello", "world"]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "OK\n", "{output:?}");
    assert_eq!(server.client().run("GET hello").text(), "world");
    let large = "x".repeat(100_000);
    assert!(run(&right, &["SET", "large", &large]).status.success());
    assert_eq!(String::from_utf8_lossy(&run(&right, &["GET", "large"]).stdout).trim_end(), large);

    let output = run(&["--cacert", &ca], &["PING"]);
    assert!(!String::from_utf8_lossy(&output.stdout).contains("PONG"), "{output:?}");
    let output = run(&["--cert", &own, "--key", &own_key], &["PING"]);
    assert!(!output.status.success(), "redis-cli rejects an unknown CA: {output:?}");
    assert_eq!(server.client().run("CONFIG SET tls-auth-clients no").text(), "OK");
    assert_eq!(String::from_utf8_lossy(&run(&["--cacert", &ca], &["PING"]).stdout), "PONG\n");
}
