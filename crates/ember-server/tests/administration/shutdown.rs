//! SHUTDOWN ends the process; systemd is notified when the server is ready and when it stops.

use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::net::UnixDatagram;
use std::process::Command;

use ember_testkit::{Value, wait_until};

use crate::{MODES, PATIENCE, assert_error, builder, everywhere, program};

#[test]
fn shutdown_sends_no_reply_and_ends_the_process() {
    for mode in MODES {
        for line in ["SHUTDOWN", "SHUTDOWN NOSAVE", "SHUTDOWN NOW FORCE nosave"] {
            let mut server = builder(mode).start();
            let mut other = server.client();
            assert_eq!(other.run("PING").text(), "PONG");
            let mut client = server.client();
            client.send(format!("SET a 1\r\n{line}\r\nGET a\r\n").as_bytes()).unwrap();
            assert_eq!(client.read_to_close().unwrap(), b"+OK\r\n");
            assert!(server.wait().success(), "{}", server.log());
            assert!(other.is_closed().unwrap());
        }
    }
}

#[test]
fn the_connection_of_shutdown_is_closed_by_the_end_of_the_process() {
    for mode in MODES {
        for is_busy in [false, true] {
            let mut server =
                builder(mode).arguments(&["--busy-reply-threshold", "20", "--appendonly", "yes"]).start();
            let (port, mut client) = (server.port(), server.client());
            assert_eq!(client.run("SET a 1"), Value::ok());
            let mut script = server.client();
            if is_busy {
                script.send_command(&["EVAL", "while true do end", "0"]).unwrap();
                wait_until("the server is busy", || client.run("GET a").text().starts_with("BUSY "));
            }
            client.send(b"SHUTDOWN NOSAVE\r\n").unwrap();
            assert_eq!(client.read_to_close().unwrap(), b"");
            // The server has released its port: another server can use it immediately.
            TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap();
            assert!(server.wait().success(), "{}", server.log());
        }
    }
}

#[test]
fn invalid_shutdown_calls_are_errors() {
    everywhere(&[], |_, client| {
        for (line, text) in [
            ("SHUTDOWN x", "ERR syntax error"),
            ("SHUTDOWN SAVE NOSAVE", "ERR syntax error"),
            ("SHUTDOWN ABORT NOW", "ERR syntax error"),
            ("SHUTDOWN ABORT", "ERR No shutdown in progress."),
        ] {
            assert_error(client, line, text);
        }
        assert_eq!(client.run("PING").text(), "PONG");
    });
}

#[test]
fn systemd_is_notified_of_readiness_and_shutdown() {
    let directory = std::env::temp_dir().join(format!("ember-notify-{}", std::process::id()));
    std::fs::create_dir(&directory).unwrap();
    let path = directory.join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let unix_socket = directory.join("server.sock");
    let mut child = Command::new(program())
        .args(["--port", "0", "--supervised", "systemd", "--logfile", "log", "--unixsocket", "server.sock"])
        .current_dir(&directory)
        .env("NOTIFY_SOCKET", &path)
        .spawn()
        .unwrap();
    let mut message = [0; 64];
    let received = socket.recv(&mut message).unwrap();
    assert_eq!(&message[..received], b"READY=1");
    let mut client = ember_testkit::RawClient::connect_unix(&unix_socket).unwrap();
    assert_eq!(
        client.run("INFO server").text().lines().find(|line| line.contains("supervised")),
        Some("process_supervised:systemd")
    );
    assert_eq!(client.run("ECHO still-here"), Value::from("still-here"));
    client.send(b"SHUTDOWN\r\n").unwrap();
    let received = socket.recv(&mut message).unwrap();
    assert_eq!(&message[..received], b"STOPPING=1");
    assert!(child.wait().unwrap().success());
    std::fs::remove_dir_all(directory).unwrap();
}
