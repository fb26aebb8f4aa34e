//! Encrypted links between servers that verify each other's certificates.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};

use ember_peers::{Mode, Writer, require_program, start_ember};
use ember_testkit::{Directory, Server, Value, find_ember_server, free_port, wait_until};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};

use crate::matrix::assert_same_contents;
use crate::replica::{MODES, assert_same, replicaof, start_other, wait_for_link};

/// The number of commands that are written in each test and mode.
const COMMANDS: usize = 20_000;

/// Two CAs, and a certificate from each of them for a server on this machine.
struct Files(Directory);

impl Files {
    fn new(name: &str) -> Files {
        let directory = Directory::new(&format!("peers-encrypted-{name}"));
        let write = |name: &str, text: String| fs::write(directory.0.join(name), text).unwrap();
        for (authority, server) in [("ca", "server"), ("other", "stranger")] {
            let mut params = CertificateParams::new(Vec::new()).unwrap();
            params.distinguished_name.push(DnType::CommonName, authority);
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            let key = KeyPair::generate().unwrap();
            let own = params.self_signed(&key).unwrap();
            write(&format!("{authority}.crt"), own.pem());
            let issuer = Issuer::new(params, key);
            let key = KeyPair::generate().unwrap();
            let params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
            write(&format!("{server}.crt"), params.signed_by(&key, &issuer).unwrap().pem());
            write(&format!("{server}.key"), key.serialize_pem());
        }
        Files(directory)
    }

    fn path(&self, name: &str) -> String {
        self.0.0.join(name).to_str().unwrap().to_owned()
    }

    /// Returns the arguments of a server that presents a certificate and trusts the first CA.
    fn arguments(&self, certificate: &str) -> Vec<String> {
        let path = |name: &str| self.path(name);
        let facts = [
            ("--tls-cert-file", path(&format!("{certificate}.crt"))),
            ("--tls-key-file", path(&format!("{certificate}.key"))),
            ("--tls-ca-cert-file", path("ca.crt")),
            ("--tls-replication", "yes".to_owned()),
        ];
        facts.into_iter().flat_map(|(name, value)| [name.to_owned(), value]).collect()
    }
}

#[test]
fn an_encrypted_link_needs_matching_certificates() {
    let files = Files::new("of-redis");
    for mode in MODES {
        let port = free_port();
        let [ca, other, certificate, key] =
            ["ca.crt", "other.crt", "server.crt", "server.key"].map(|name| files.path(name));
        let redis = start_other(
            require_program("redis-server"),
            &[
                "--tls-port",
                &port.to_string(),
                "--tls-cert-file",
                &certificate,
                "--tls-key-file",
                &key,
                "--tls-ca-cert-file",
                &ca,
            ],
        );
        let mut writer = Writer::new(&redis, 11);
        writer.write(COMMANDS / 4);
        let ember = start_ember(mode);
        let mut client = ember.client();
        for (name, value) in [
            ("tls-replication", "yes"),
            ("tls-ca-cert-file", &other),
            ("tls-client-cert-file", &certificate),
            ("tls-client-key-file", &key),
        ] {
            assert_eq!(client.command(&["CONFIG", "SET", name, value]), Value::ok());
        }
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        replicaof(&ember, address);
        wait_until("the log has the reason", || ember.log().contains("UnknownIssuer"));
        assert_eq!(client.command(&["CONFIG", "SET", "tls-ca-cert-file", &ca]), Value::ok());
        wait_for_link(&ember);
        writer.write(COMMANDS);
        assert_same(&redis, &ember);
        assert_eq!(client.run("REPLICAOF NO ONE"), Value::ok());
        // The certificate is valid for an address, not for this name.
        assert_eq!(client.run(&format!("REPLICAOF localhost {port}")), Value::ok());
        wait_until("the log has the reason", || ember.log().contains("not valid for name"));
    }
}

/// Starts an ember that accepts encrypted links from peers with a certificate; returns it with the address of its TLS
/// port.
fn start_primary(mode: Mode, files: &Files) -> (Server, SocketAddr) {
    let port = free_port();
    let concurrent = if mode == Mode::Concurrent { "yes" } else { "no" };
    let server = Server::builder(find_ember_server())
        .arguments(&["--concurrent", concurrent, "--shards", "2", "--enable-debug-command", "yes"])
        .arguments(&["--tls-port", &port.to_string(), "--tls-auth-clients", "yes"])
        .arguments(&files.arguments("server"))
        .start();
    (server, SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
}

/// Connects a replica without a certificate from the trusted CA, and then a replica with one.
fn follow_with_certificate(name: &str, start: impl Fn(Mode, &[String]) -> Server, stranger: &[&str]) {
    let files = Files::new(name);
    for mode in MODES {
        let (primary, address) = start_primary(mode, &files);
        let mut writer = Writer::new(&primary, 13);
        writer.write(COMMANDS / 4);
        let stranger: Vec<String> = match stranger {
            [certificate] => files.arguments(certificate),
            // The same arguments without a certificate.
            _ => files.arguments("server")[4..].to_vec(),
        };
        let refused = start(mode, &stranger);
        replicaof(&refused, address);
        wait_until("the replica is refused", || primary.log().matches("the TLS handshake with").count() >= 2);
        assert_eq!(primary.client().info("sync_full"), "0", "{}", primary.log());
        assert_eq!(refused.client().info("master_link_status"), "down");
        drop(refused);
        let replica = start(mode, &files.arguments("server"));
        replicaof(&replica, address);
        wait_for_link(&replica);
        writer.write(COMMANDS);
        assert_same_contents(&primary, &replica);
        // A replica resumes after its link was broken.
        primary.client().run("CLIENT KILL TYPE replica");
        writer.write(COMMANDS / 10);
        assert_same_contents(&primary, &replica);
        let counts = ["sync_full", "sync_partial_ok"].map(|name| primary.client().info(name));
        assert_eq!(counts, ["1", "1"], "{}", replica.log());
    }
}

#[test]
fn redis_follows_ember_with_a_certificate() {
    let start = |_, arguments: &[String]| {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        start_other(require_program("redis-server"), &arguments)
    };
    follow_with_certificate("redis", start, &["stranger"]);
}

#[test]
fn ember_follows_ember_with_a_certificate() {
    let start = |mode, arguments: &[String]| {
        let concurrent = if mode == Mode::Concurrent { "no" } else { "yes" };
        let builder = Server::builder(find_ember_server()).arguments(arguments);
        builder.arguments(&["--concurrent", concurrent, "--shards", "2"]).start()
    };
    follow_with_certificate("ember", start, &["stranger"]);
    follow_with_certificate("ember-without", start, &[]);
}
