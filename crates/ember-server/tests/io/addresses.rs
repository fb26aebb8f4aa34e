//! The addresses on which the server listens, and the clients it accepts.

use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use ember_testkit::{RawClient, free_port};

use crate::{PATIENCE, alone, builder, program, start, together, wait_until};

#[test]
fn tcp_is_served_on_several_addresses_of_both_families() {
    let _machine = together();
    // These addresses are added to 127.0.0.1, on which the servers of all tests listen.
    let server = start(&["--bind", "127.0.0.2 ::1"]);
    for host in ["127.0.0.1", "127.0.0.2", "[::1]"] {
        let address: SocketAddr = format!("{host}:{}", server.port()).parse().unwrap();
        let mut client = RawClient::connect(address).unwrap();
        assert_eq!(client.run("PING").text(), "PONG");
        let line = client.run("CLIENT INFO").text();
        assert!(line.contains(&format!(" laddr={address} ")), "{line}");
    }
    let elsewhere: SocketAddr = format!("127.0.0.3:{}", server.port()).parse().unwrap();
    assert!(RawClient::connect(elsewhere).is_err());
}

#[test]
fn an_unavailable_optional_address_is_skipped() {
    let _machine = together();
    let server = start(&["--bind", "-192.0.2.1"]);
    assert_eq!(server.client().run("PING").text(), "PONG");

    let output = run(&["--port", "0", "--bind", "127.0.0.1"]);
    assert_fails_with(&output, "nothing to listen on");
    let port = free_port().to_string();
    let output = run(&["--port", &port, "--bind", "192.0.2.1"]);
    assert_fails_with(&output, &format!("Failed listening on port {port} of 192.0.2.1: "));
}

#[test]
fn a_port_in_use_prints_one_clear_line_and_exits_with_1() {
    let _machine = together();
    let server = start(&[]);
    let port = server.port().to_string();
    let output = run(&["--port", &port, "--bind", "127.0.0.1"]);
    assert_fails_with(&output, &format!("Failed listening on port {port} of 127.0.0.1: "));
}

#[test]
fn a_unix_socket_has_its_permissions_replaces_a_stale_one_and_is_removed() {
    let _machine = together();
    let folder = std::env::temp_dir().join(format!("ember-unix-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("server.sock");
    // Creates a socket file as a crash would leave it: the file is not removed when the listener is dropped.
    drop(UnixListener::bind(&path).unwrap());
    let mut server = builder(&["--unixsocketperm", "700"]).directory(&folder).unix_socket().start();
    assert_eq!(server.unix_client().run("PING").text(), "PONG");
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
    let line = server.unix_client().run("CLIENT INFO").text();
    assert!(line.contains("server.sock:0") && line.contains("flags=U"), "{line}");
    server.signal("TERM");
    assert_eq!(server.wait().code(), Some(0));
    assert!(!path.exists());

    std::fs::write(&path, "precious").unwrap();
    let output = run(&["--port", "0", "--unixsocket", path.to_str().unwrap()]);
    assert_fails_with(&output, "exists and is not a socket");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "precious");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn clients_beyond_maxclients_get_an_error_until_another_disconnects() {
    let _machine = together();
    for mode in crate::MODES {
        let server = builder(&["--maxclients", "3"]).arguments(mode).start();
        let mut clients: Vec<RawClient> = Vec::new();
        wait_until("the first client is disconnected", || {
            clients = (0..3).map(|_| server.client()).collect();
            clients.iter_mut().all(|client| {
                client.send(b"PING\r\n").is_ok() && client.read_raw().is_ok_and(|reply| reply == b"+PONG\r\n")
            })
        });
        for _ in 0..5 {
            let message = server.client().read_to_close().unwrap();
            assert_eq!(message, b"-ERR max number of clients reached\r\n");
        }
        clients.pop();
        wait_until("a connection is accepted again", || {
            let mut client = server.client();
            client.send(b"PING\r\n").is_ok() && client.read_raw().is_ok_and(|reply| reply == b"+PONG\r\n")
        });
        assert_eq!(clients[0].run("PING").text(), "PONG");
    }
}

#[test]
fn idle_clients_are_closed_after_the_timeout_and_busy_ones_are_not() {
    let _machine = alone();
    let server = start(&["--timeout", "1"]);
    let (mut idle, mut busy) = (server.client(), server.client());
    idle.run("PING");
    let began = Instant::now();
    let closed = std::thread::scope(|scope| {
        let watcher = scope.spawn(|| idle.is_closed().unwrap().then(|| began.elapsed()));
        while !watcher.is_finished() {
            assert_eq!(busy.run("PING").text(), "PONG");
        }
        watcher.join().unwrap().expect("nothing is sent to an idle client")
    });
    assert!(closed >= Duration::from_millis(990) && closed < Duration::from_secs(5), "{closed:?}");
    assert_eq!(busy.run("PING").text(), "PONG");
}

fn run(arguments: &[&str]) -> Output {
    let mut command = Command::new(program());
    command.args(arguments).current_dir(std::env::temp_dir()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let deadline = Instant::now() + PATIENCE;
    while child.try_wait().unwrap().is_none() && Instant::now() < deadline {
        std::thread::yield_now();
    }
    // If this fails, the child has exited, and the test fails because of its exit code.
    let _ = child.kill();
    child.wait_with_output().unwrap()
}

#[track_caller]
fn assert_fails_with(output: &Output, text: &str) {
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(error.contains(text), "{error}");
    assert_eq!(error.trim_end().lines().count(), 1, "{error}");
}
