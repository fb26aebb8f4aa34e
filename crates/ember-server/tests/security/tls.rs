//! Connections with TLS: the same replies as without, with well-behaved and misbehaving clients.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpStream};
use std::process::{Child, Command};
use std::sync::Arc;
use std::time::Duration;

use ember_testkit::{Server, Value, encode, free_port, read_frame, wait_until};
use rustls::pki_types::ServerName;
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, ClientConnection, HandshakeKind, StreamOwned};

use crate::certificates::Authority;
use crate::{MODES, assert_error, assert_ok, builder, program};

/// The maximum time that a test waits for any condition.
const PATIENCE: Duration = Duration::from_secs(180);

/// A client that uses TLS.
struct TlsClient {
    stream: BufReader<StreamOwned<ClientConnection, TcpStream>>,
}

impl TlsClient {
    fn connect(port: u16, config: &Arc<ClientConfig>) -> io::Result<TlsClient> {
        let socket = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        socket.set_read_timeout(Some(PATIENCE))?;
        socket.set_write_timeout(Some(PATIENCE))?;
        let name = ServerName::try_from("localhost").unwrap();
        let connection = ClientConnection::new(Arc::clone(config), name).map_err(io::Error::other)?;
        let mut client = TlsClient { stream: BufReader::new(StreamOwned::new(connection, socket)) };
        let StreamOwned { conn, sock } = client.stream.get_mut();
        while conn.is_handshaking() {
            conn.complete_io(sock)?;
        }
        Ok(client)
    }

    fn try_command<A: AsRef<[u8]>>(&mut self, arguments: &[A]) -> io::Result<Value> {
        self.stream.get_mut().write_all(&encode(arguments))?;
        read_frame(&mut self.stream, &mut Vec::new())
    }

    fn run(&mut self, line: &str) -> Value {
        self.try_command(&line.split(' ').collect::<Vec<_>>()).unwrap()
    }

    fn handshake(&self) -> Option<HandshakeKind> {
        self.stream.get_ref().conn.handshake_kind()
    }

    /// Returns the certificate that the server has presented.
    fn certificate(&self) -> Vec<u8> {
        self.stream.get_ref().conn.peer_certificates().unwrap()[0].to_vec()
    }
}

/// Starts a server with a TLS port; also returns that port.
fn start(authority: &Authority, auth_clients: &str, arguments: &[&str]) -> (Server, u16) {
    let port = free_port();
    let server = builder(arguments).arguments(&authority.server_arguments(port, auth_clients)).start();
    (server, port)
}

fn pong() -> Value {
    Value::Simple(b"PONG".to_vec())
}

#[test]
fn requests_and_replies_of_any_size_work_with_both_versions() {
    let authority = Authority::new();
    for mode in MODES {
        let (server, port) = start(&authority, "no", mode);
        for version in [&TLS12, &TLS13] {
            let mut client = TlsClient::connect(port, &authority.client(&[version], None)).unwrap();
            assert_eq!(client.run("PING"), pong());
            for len in [0, 1, 100, 16_383, 16_384, 16_385, 40_000, 5_000_000] {
                let value: Vec<u8> = (0..len).map(|at: u32| (at % 251) as u8).collect();
                assert_eq!(client.try_command(&[&b"SET"[..], b"key", &value]).unwrap(), Value::ok());
                assert_eq!(client.run("GET key"), Value::Bulk(value), "{len}");
            }
        }
        assert_eq!(server.client().run("STRLEN key"), Value::Integer(5_000_000), "one server with two ports");
    }
}

#[test]
fn a_deep_pipeline_is_answered_in_order() {
    let authority = Authority::new();
    for mode in MODES {
        let (_server, port) = start(&authority, "no", mode);
        let mut client = TlsClient::connect(port, &authority.client(&[&TLS13], None)).unwrap();
        let requests: Vec<u8> = (0..20_000)
            .flat_map(|number| encode(&["SET".to_owned(), format!("k{number}"), "v".repeat(50)]))
            .collect();
        client.stream.get_mut().write_all(&requests).unwrap();
        let requests: Vec<u8> =
            (0..20_000).flat_map(|number| encode(&["ECHO".to_owned(), number.to_string()])).collect();
        for _ in 0..20_000 {
            assert_eq!(read_frame(&mut client.stream, &mut Vec::new()).unwrap(), Value::ok());
        }
        client.stream.get_mut().write_all(&requests).unwrap();
        for number in 0..20_000 {
            let reply = read_frame(&mut client.stream, &mut Vec::new()).unwrap();
            assert_eq!(reply, Value::from(number.to_string().as_str()));
        }
    }
}

#[test]
fn records_may_arrive_byte_by_byte() {
    let authority = Authority::new();
    let (_server, port) = start(&authority, "no", &["--shards", "1"]);
    let mut socket = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
    socket.set_nodelay(true).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let config = authority.client(&[&TLS13], None);
    let mut connection = ClientConnection::new(config, ServerName::try_from("localhost").unwrap()).unwrap();
    connection.writer().write_all(&encode(&["PING"]).repeat(3)).unwrap();
    let mut answers = Vec::new();
    while answers.len() < 21 {
        let mut wire = Vec::new();
        while connection.wants_write() {
            connection.write_tls(&mut wire).unwrap();
        }
        for byte in wire {
            socket.write_all(&[byte]).unwrap();
        }
        connection.read_tls(&mut socket).unwrap();
        connection.process_new_packets().unwrap();
        match connection.reader().read_to_end(&mut answers) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            other => panic!("the server ended the connection: {other:?}"),
        }
    }
    assert_eq!(answers, b"+PONG\r\n".repeat(3));
}

#[test]
fn a_reader_that_is_slow_gets_everything() {
    let authority = Authority::new();
    let (server, port) = start(&authority, "no", &["--shards", "1"]);
    let value = vec![b'v'; 100_000];
    server.client().command(&[&b"SET"[..], b"key", &value]);
    let mut client = TlsClient::connect(port, &authority.client(&[&TLS13], None)).unwrap();
    // 20 MB of replies: more than the sockets accept while the client does not read.
    client.stream.get_mut().write_all(&encode(&["GET", "key"]).repeat(200)).unwrap();
    let mut admin = server.client();
    assert_eq!(admin.run("PING"), pong());
    for _ in 0..200 {
        assert_eq!(read_frame(&mut client.stream, &mut Vec::new()).unwrap(), Value::Bulk(value.clone()));
    }
    assert_eq!(client.run("PING"), pong());
}

#[test]
fn a_connection_ends_with_close_notify() {
    let authority = Authority::new();
    let (server, port) = start(&authority, "no", &["--shards", "1"]);
    for version in [&TLS12, &TLS13] {
        let config = authority.client(&[version], None);
        let mut client = TlsClient::connect(port, &config).unwrap();
        assert_eq!(client.run("QUIT"), Value::ok());
        assert!(client.stream.fill_buf().unwrap().is_empty(), "the end of TLS, not only of TCP");
        let mut client = TlsClient::connect(port, &config).unwrap();
        client.stream.get_mut().write_all(&encode(&["PING"])).unwrap();
        client.stream.get_mut().conn.send_close_notify();
        client.stream.get_mut().flush().unwrap();
        client.stream.get_ref().sock.shutdown(Shutdown::Write).unwrap();
        assert_eq!(
            read_frame(&mut client.stream, &mut Vec::new()).unwrap(),
            pong(),
            "the last reply arrives"
        );
        assert!(client.stream.fill_buf().unwrap().is_empty());
        let mut client = TlsClient::connect(port, &config).unwrap();
        let id = client.run("CLIENT ID").integer().unwrap();
        assert_eq!(server.client().run(&format!("CLIENT KILL ID {id}")), Value::Integer(1));
        assert!(client.stream.fill_buf().unwrap().is_empty());
    }
}

#[test]
fn client_certificates_are_required_and_verified_as_configured() {
    let authority = Authority::new();
    authority.issue("client");
    let strangers = Authority::new();
    strangers.issue("client");
    let versions = [&TLS12, &TLS13];
    let (none, right) = (authority.client(&versions, None), authority.client(&versions, Some("client")));
    let stranger = {
        // The client trusts the server, but presents a certificate that the server does not trust.
        for file in ["client.crt", "client.key"] {
            std::fs::copy(strangers.path(file), authority.path(&format!("stranger{}", &file[6..]))).unwrap();
        }
        authority.client(&versions, Some("stranger"))
    };
    for (auth_clients, none_is_served, stranger_is_served) in
        [("yes", false, false), ("optional", true, false), ("no", true, true)]
    {
        let (server, port) = start(&authority, auth_clients, &["--shards", "1"]);
        let ping = |config: &Arc<ClientConfig>| {
            TlsClient::connect(port, config).and_then(|mut client| client.try_command(&["PING"]))
        };
        assert_eq!(ping(&right).unwrap(), pong(), "{auth_clients}");
        assert_eq!(ping(&none).is_ok(), none_is_served, "{auth_clients}: {:?}", ping(&none));
        assert_eq!(ping(&stranger).is_ok(), stranger_is_served, "{auth_clients}: {:?}", ping(&stranger));
        assert_eq!(server.client().run("PING"), pong());
    }
}

#[test]
fn a_certificate_determines_the_user_of_a_client() {
    let authority = Authority::new();
    authority.issue_to("alice", "alice", &["ember:nobody", "ember:off", "ember:bob"]);
    authority.issue_to("stranger", "stranger", &[]);
    for (mode, versions) in MODES.into_iter().zip([&[&TLS12], &[&TLS13]]) {
        let arguments = [mode, &["--tls-auth-clients-user", "CN", "--requirepass", "secret"][..]].concat();
        let (server, port) = start(&authority, "optional", &arguments);
        let mut admin = server.client();
        for line in [
            "AUTH secret",
            "ACL SETUSER alice on +@all ~* >x",
            "ACL SETUSER ember:bob on nopass +@all ~*",
            "ACL SETUSER ember:off off nopass +@all ~*",
        ] {
            assert_ok(&mut admin, line);
        }
        let user_of = |name: Option<&str>| {
            TlsClient::connect(port, &authority.client(versions, name)).unwrap().run("ACL WHOAMI").text()
        };
        assert_eq!(user_of(Some("alice")), "alice");
        assert!(user_of(Some("stranger")).starts_with("NOAUTH") && user_of(None).starts_with("NOAUTH"));
        assert_ok(&mut admin, "CONFIG SET tls-auth-clients-user URI");
        assert_eq!(user_of(Some("alice")), "ember:bob");
        assert_ok(&mut admin, "CONFIG SET tls-auth-clients-user off");
        assert!(user_of(Some("alice")).starts_with("NOAUTH"));
        assert_ok(&mut admin, "CONFIG SET tls-auth-clients-user CN");
        assert_ok(&mut admin, "ACL SETUSER alice off");
        assert!(user_of(Some("alice")).starts_with("NOAUTH"));
    }
}

#[test]
fn info_reports_the_expiry_of_certificates() {
    let authority = Authority::new();
    let (server, _port) = start(&authority, "yes", &[]);
    let mut client = server.client();
    for name in ["server", "ca"] {
        let left: i64 = client.info(&format!("tls_{name}_cert_expires_in_seconds")).parse().unwrap();
        assert!(left > 1_000_000_000, "rcgen says the year 4096: {left}");
        assert_ne!(client.info(&format!("tls_{name}_cert_serial")), "none");
    }
    assert_eq!(client.info("tls_client_cert_serial"), "none");
    let plain = builder(MODES[0]).start();
    assert_eq!(plain.client().info("tls_server_cert_expires_in_seconds"), "0");
}

#[test]
fn authorities_may_be_in_a_directory() {
    let authority = Authority::new();
    authority.issue("client");
    let directory = authority.path("authorities");
    std::fs::create_dir(&directory).unwrap();
    std::fs::copy(authority.path("ca.crt"), format!("{directory}/one.pem")).unwrap();
    std::fs::write(format!("{directory}/README"), "no certificate").unwrap();
    let (_server, port) = start(&authority, "yes", &["--tls-ca-cert-dir", &directory, "--shards", "1"]);
    let mut client = TlsClient::connect(port, &authority.client(&[&TLS13], Some("client"))).unwrap();
    assert_eq!(client.run("PING"), pong());
}

#[test]
fn a_client_without_tls_is_disconnected_without_affecting_others() {
    let authority = Authority::new();
    let (server, port) = start(&authority, "no", &["--shards", "1"]);
    let mut regular = TlsClient::connect(port, &authority.client(&[&TLS13], None)).unwrap();
    // The inputs: a plain request, the beginning of a record that is too long, garbage after a valid beginning, and
    // nothing.
    let hello = b"\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00";
    for bytes in [
        &b"PING\r\n"[..],
        b"\x16\x03\x01\x02\x00\x01",
        b"\x16\x03\x01\xff\xff",
        &hello[..],
        &[0xff; 100_000],
        b"",
    ] {
        let mut socket = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        // The server may have closed the connection before all is written.
        let _ = socket.write_all(bytes);
        let _ = socket.shutdown(Shutdown::Write);
        let mut answer = Vec::new();
        let ended = socket.read_to_end(&mut answer);
        assert!(ended.is_ok() || ended.unwrap_err().kind() == io::ErrorKind::ConnectionReset);
        assert!(!answer.starts_with(b"+PONG"), "no request is run without TLS");
        assert_eq!(regular.run("PING"), pong());
    }
    let mut admin = server.client();
    assert_eq!(admin.info("connected_clients"), "2");
    let config = authority.client(&[&TLS13], None);
    assert!(TlsClient::connect(server.port(), &config).is_err(), "the plain port has no TLS");
}

#[test]
fn the_log_names_the_client_and_reason_of_a_failed_handshake() {
    let authority = Authority::new();
    let (server, port) = start(&authority, "yes", MODES[0]);
    let mut socket = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
    let peer = socket.local_addr().unwrap();
    socket.write_all(b"PING\r\n").unwrap();
    let expected = format!("the TLS handshake with {peer} failed: the client does not use TLS");
    wait_until("the log has it", || server.log().contains(&expected));
    // The beginning of a TLS handshake, which contains no line end, is sent to the plain port.
    let mut socket = TcpStream::connect((Ipv4Addr::LOCALHOST, server.port())).unwrap();
    socket.write_all(b"\x16").unwrap();
    socket.write_all(b"\x03\x01\x00\xee").unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    assert_eq!(answer, "-ERR Protocol error: this port does not speak TLS\r\n");
    wait_until("the log has that too", || {
        let client = TlsClient::connect(server.port(), &authority.client(&[&TLS13], None));
        assert!(client.is_err());
        server.log().contains("failed: the client uses TLS, but this port does not")
    });
    // At most one such line is logged per second, so several attempts may be needed.
    wait_until("the log has the other", || {
        let client = TlsClient::connect(port, &authority.client(&[&TLS13], None));
        drop(client.and_then(|mut client| client.try_command(&["PING"])));
        server.log().contains("failed: the client presents no certificate")
    });
}

#[test]
fn a_stalled_handshake_is_aborted() {
    let authority = Authority::new();
    let (server, port) = start(&authority, "no", &["--shards", "1"]);
    let mut silent = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
    silent.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut regular = TlsClient::connect(port, &authority.client(&[&TLS13], None)).unwrap();
    assert_eq!(server.client().info("connected_clients"), "3");
    let ended = silent.read(&mut [0; 100]);
    assert!(ended.is_ok(), "{ended:?}");
    assert_eq!(regular.run("PING"), pong(), "connected clients stay");
}

#[test]
fn many_concurrent_handshakes_complete_and_delay_no_client() {
    let authority = Authority::new();
    let (server, port) = start(&authority, "no", &["--shards", "1"]);
    let config = authority.client(&[&TLS13], None);
    std::thread::scope(|scope| {
        let handshakes: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    for _ in 0..20 {
                        assert_eq!(TlsClient::connect(port, &config).unwrap().run("PING"), pong());
                    }
                })
            })
            .collect();
        let mut plain = server.client();
        while handshakes.iter().any(|handshake| !handshake.is_finished()) {
            assert_eq!(plain.run("PING"), pong());
        }
    });
}

#[test]
fn config_set_reloads_the_certificate() {
    let authority = Authority::new();
    let (server, port) = start(&authority, "no", &["--shards", "1"]);
    let config = authority.client(&[&TLS13], None);
    let mut before = TlsClient::connect(port, &config).unwrap();
    let first = before.certificate();
    authority.issue("server");
    assert_eq!(TlsClient::connect(port, &config).unwrap().certificate(), first, "not before CONFIG SET");
    let mut admin = server.client();
    assert_ok(&mut admin, &format!("CONFIG SET tls-cert-file {}", authority.path("server.crt")));
    assert_ne!(TlsClient::connect(port, &config).unwrap().certificate(), first);
    assert_eq!(before.run("PING"), pong(), "existing connections continue");
    authority.issue("other");
    let failed = "ERR CONFIG SET failed (possibly related to argument 'tls-key-file') - Unable to update TLS \
                  configuration. Check server logs.";
    assert_error(&mut admin, &format!("CONFIG SET tls-key-file {}", authority.path("other.key")), failed);
    assert_error(&mut admin, "CONFIG SET tls-key-file /nowhere", failed);
    assert!(server.log().contains("tls-key-file '/nowhere'"), "{}", server.log());
    let both = format!(
        "CONFIG SET tls-key-file {} tls-cert-file {}",
        authority.path("other.key"),
        authority.path("other.crt")
    );
    assert_ok(&mut admin, &both);
    assert_eq!(TlsClient::connect(port, &config).unwrap().run("PING"), pong());
    assert_ok(&mut admin, "CONFIG SET tls-protocols TLSv1.3");
    assert!(TlsClient::connect(port, &authority.client(&[&TLS12], None)).is_err());
    assert_error(
        &mut admin,
        "CONFIG SET tls-protocols SSLv3",
        "ERR CONFIG SET failed (possibly related to argument 'tls-protocols') - argument must be 'TLSv1.2', 'TLSv1.3' \
         or both",
    );
}

#[test]
fn sighup_reloads_the_certificate_and_closes_no_connection() {
    let authority = Authority::new();
    let (server, port) = start(&authority, "no", &["--shards", "1"]);
    let config = authority.client(&[&TLS13], None);
    let mut before = TlsClient::connect(port, &config).unwrap();
    authority.issue("server");
    server.signal("HUP");
    while TlsClient::connect(port, &config).unwrap().certificate() == before.certificate() {
        std::thread::yield_now();
    }
    assert_eq!(before.run("PING"), pong());
}

#[test]
fn changed_certificate_files_are_reloaded_automatically() {
    let authority = Authority::new();
    let (server, port) = start(&authority, "no", &["--shards", "2", "--tls-auto-reload-interval", "1"]);
    let config = authority.client(&[&TLS13], None);
    let mut before = TlsClient::connect(port, &config).unwrap();
    let certificate = || TlsClient::connect(port, &config).unwrap().certificate();
    let first = before.certificate();
    authority.issue("server");
    wait_until("the new certificate is shown", || certificate() != first);
    let second = certificate();
    assert_eq!(before.run("PING"), pong(), "existing connections continue");
    // Invalid files do not replace the current certificate, and are logged once.
    std::fs::write(authority.path("server.crt"), "half of it").unwrap();
    wait_until("the error is logged", || server.log().contains("tls-auto-reload-interval: tls-cert-file"));
    assert_eq!(certificate(), second);
    authority.issue("server");
    wait_until("the third certificate is shown", || certificate() != second);
}

#[test]
fn only_the_configured_ciphers_are_accepted() {
    let authority = Authority::new();
    let arguments = ["--tls-ciphersuites", "TLS_CHACHA20_POLY1305_SHA256", "--tls-protocols", "TLSv1.3"];
    let (_server, port) = start(&authority, "no", &arguments);
    let client = TlsClient::connect(port, &authority.client(&[&TLS12, &TLS13], None)).unwrap();
    let suite = client.stream.get_ref().conn.negotiated_cipher_suite().unwrap();
    assert_eq!(suite.suite(), rustls::CipherSuite::TLS13_CHACHA20_POLY1305_SHA256);
}

#[test]
fn sessions_are_resumed_if_configured() {
    let authority = Authority::new();
    for (caching, resumed) in [("yes", HandshakeKind::Resumed), ("no", HandshakeKind::Full)] {
        let (_server, port) = start(&authority, "no", &["--tls-session-caching", caching, "--shards", "1"]);
        for version in [&TLS12, &TLS13] {
            let config = authority.client(&[version], None);
            let mut first = TlsClient::connect(port, &config).unwrap();
            // The session ticket of TLS 1.3 arrives with the first reply.
            assert_eq!(first.run("PING"), pong());
            assert!(matches!(first.handshake(), Some(HandshakeKind::Full)));
            let mut second = TlsClient::connect(port, &config).unwrap();
            assert_eq!(second.run("PING"), pong());
            assert_eq!(second.handshake(), Some(resumed), "{caching} {version:?}");
        }
    }
}

#[test]
fn messages_and_waiting_calls_reach_a_connection_with_tls() {
    let authority = Authority::new();
    for mode in MODES {
        let (server, port) = start(&authority, "no", mode);
        let config = authority.client(&[&TLS13], None);
        let mut admin = server.client();
        let mut listener = TlsClient::connect(port, &config).unwrap();
        assert!(!listener.run("SUBSCRIBE news").is_error());
        assert_eq!(admin.run("PUBLISH news hello"), Value::Integer(1));
        let message = read_frame(&mut listener.stream, &mut Vec::new()).unwrap();
        assert_eq!(message, Value::Array(["message", "news", "hello"].map(Value::from).to_vec()));
        let mut waiting = TlsClient::connect(port, &config).unwrap();
        waiting.stream.get_mut().write_all(&encode(&["BLPOP", "list", "0"])).unwrap();
        while admin.info("blocked_clients") != "1" {
            std::thread::yield_now();
        }
        assert_eq!(admin.run("RPUSH list v"), Value::Integer(1));
        let reply = read_frame(&mut waiting.stream, &mut Vec::new()).unwrap();
        assert_eq!(reply, Value::Array(["list", "v"].map(Value::from).to_vec()));
    }
}

/// A process that is killed at the end of the test.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        // Both calls fail only if the process has already ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_server_may_listen_with_tls_only() {
    let authority = Authority::new();
    let port = free_port();
    let mut command = Command::new(program());
    command.args(["--port", "0", "--bind", "127.0.0.1", "--shards", "1", "--loglevel", "nothing"]);
    let mut process = Process(command.args(authority.server_arguments(port, "no")).spawn().unwrap());
    let config = authority.client(&[&TLS13], None);
    let mut client = loop {
        if let Ok(client) = TlsClient::connect(port, &config) {
            break client;
        }
        assert!(process.0.try_wait().unwrap().is_none(), "the process has ended");
        std::thread::yield_now();
    };
    let about = client.run("INFO server").text();
    assert!(about.contains(&format!("tcp_port:{port}\r\n")), "{about}");
    assert!(about.contains(&format!("listener0:name=tls,bind=127.0.0.1,port={port}\r\n")), "{about}");
}

/// The error for a certificate of X.509 version 1.
const VERSION_1: &str =
    "it is an X.509 certificate of version 1 or 2, without extensions, and version 3 is needed";

#[test]
fn a_certificate_of_version_1_is_refused_with_a_clear_error() {
    let authority = Authority::new();
    authority.issue("server");
    authority.issue_version_1("old");
    let (certificate, key) = (authority.path("old.crt"), authority.path("old.key"));
    // The error for the server's certificate at startup.
    let port = free_port().to_string();
    let arguments = ["--port", "0", "--tls-port", &port, "--tls-auth-clients", "no"];
    let files = ["--tls-cert-file", &certificate, "--tls-key-file", &key];
    let said = ember_testkit::refusal(Command::new(program()).args(arguments).args(files));
    assert!(said.contains("tls-cert-file") && said.contains(VERSION_1), "{said}");
    // The error for the server's certificate in CONFIG SET.
    let (server, port) = start(&authority, "yes", MODES[0]);
    let mut admin = server.client();
    let set = ["CONFIG", "SET", "tls-cert-file", &certificate, "tls-key-file", &key];
    assert!(admin.command(&set).is_error());
    assert!(server.log().contains(VERSION_1), "{}", server.log());
    // The error for a client's certificate in the handshake. At most one such line is logged per second, so several
    // attempts may be needed.
    wait_until("the log has it", || {
        let client = TlsClient::connect(port, &authority.client_without_checks("old"));
        assert!(client.and_then(|mut client| client.try_command(&["PING"])).is_err());
        server.log().contains(&format!("the client's certificate is not accepted: {VERSION_1}"))
    });
    // The error for the certificate that a replica presents to its primary.
    let own =
        ["--tls-replication", "yes", "--tls-client-cert-file", &certificate, "--tls-client-key-file", &key];
    let trusted = ["--tls-ca-cert-file", &authority.path("ca.crt")];
    let replica = builder(&[&own[..], &trusted].concat()).start();
    replica.client().run(&format!("REPLICAOF localhost {port}"));
    let expected = format!("the certificate for the primary: {VERSION_1}");
    wait_until("the replica logs it", || replica.log().contains(&expected));
}

#[test]
fn a_server_does_not_start_without_the_files_tls_needs() {
    let authority = Authority::new();
    authority.issue("server");
    let (certificate, key, port) =
        (authority.path("server.crt"), authority.path("server.key"), free_port().to_string());
    let base = ["--port", "0", "--tls-port", &port];
    let wrong = authority.path("wrong.pem");
    std::fs::write(
        &wrong,
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n",
    )
    .unwrap();
    for (arguments, error) in [
        (&["--tls-auth-clients", "no"][..], "tls-port needs tls-cert-file"),
        (&["--tls-cert-file", &certificate, "--tls-auth-clients", "no"], "tls-port needs tls-key-file"),
        (
            &["--tls-cert-file", &certificate, "--tls-key-file", &key],
            "tls-auth-clients needs tls-ca-cert-file",
        ),
        (
            &["--tls-cert-file", &certificate, "--tls-key-file", &wrong, "--tls-auth-clients", "no"],
            "it is not encrypted with PBES2, PBKDF2 and AES-CBC",
        ),
        (
            &["--tls-cert-file", &key, "--tls-key-file", &key, "--tls-auth-clients", "no"],
            "the file contains no certificate",
        ),
    ] {
        let said = ember_testkit::refusal(Command::new(program()).args(base).args(arguments));
        assert!(said.contains(error), "{arguments:?}: {said}");
    }
}
