//! Slow, silent or hostile clients of the metrics port: they receive no data, and do not affect other clients.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use ember_testkit::{Server, http_exchange, http_get};
use socket2::{Domain, Socket, Type};

use crate::{MODES, PATIENCE, alone, builder, rss, together};

fn start(mode: &[&str]) -> Server {
    builder(mode).metrics().start()
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Reads until the server closes or resets the connection.
fn read_to_close(stream: &mut TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    match stream.read_to_end(&mut bytes) {
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::ConnectionReset => {}
        Err(error) => panic!("the connection is not closed: {error}"),
    }
    bytes
}

#[test]
fn silent_clients_are_disconnected_and_a_scrape_succeeds() {
    let _together = together();
    let server = start(MODES[0]);
    let address = server.metrics_address();
    let mut silent: Vec<TcpStream> = (0..40).map(|_| connect(address)).collect();
    for (index, stream) in silent.iter_mut().enumerate() {
        let head = b"GET /metrics HTTP/1.1\r\nHost: x\r\n";
        stream.write_all(&head[..index % (head.len() + 1)]).unwrap();
    }
    assert_eq!(http_get(address, "/metrics").unwrap().status, 200);
    for stream in &mut silent {
        let bytes = read_to_close(stream);
        assert!(!String::from_utf8_lossy(&bytes).contains("ember_"));
    }
}

#[test]
fn a_scrape_does_not_wait_for_any_number_of_silent_clients() {
    let _together = together();
    let server = start(MODES[0]);
    let address = server.metrics_address();
    let mut silent: Vec<TcpStream> = Vec::new();
    for number in 0..240 {
        let mut stream = connect(address);
        // Sending fails if the client was disconnected in favor of another.
        let _ = stream.write_all(&b"GET /metrics HTTP/1.1\r\nHost: x\r\n"[..number % 33]);
        silent.push(stream);
        if number % 80 == 79 {
            let begun = Instant::now();
            assert_eq!(http_get(address, "/health").unwrap().status, 200);
            assert_eq!(http_get(address, "/metrics").unwrap().status, 200);
            assert!(begun.elapsed() < Duration::from_secs(2), "the scrape took {:?}", begun.elapsed());
        }
    }
}

#[test]
fn a_scrape_does_not_wait_long_for_clients_that_do_not_read() {
    let _together = together();
    let server = start(MODES[0]);
    let address = server.metrics_address();
    let mut deaf = Vec::new();
    for _ in 0..80 {
        let stream = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        stream.set_recv_buffer_size(1024).unwrap();
        stream.connect(&address.into()).unwrap();
        let _ = (&stream).write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
        deaf.push(stream);
    }
    let begun = Instant::now();
    assert_eq!(http_get(address, "/health").unwrap().status, 200);
    assert!(begun.elapsed() < Duration::from_secs(5), "the scrape took {:?}", begun.elapsed());
}

#[test]
fn sending_byte_by_byte_does_not_extend_the_timeout() {
    let _together = together();
    let server = start(MODES[0]);
    let mut stream = connect(server.metrics_address());
    let begun = Instant::now();
    stream.write_all(b"GET / HTTP/1.1\r\nx: ").unwrap();
    stream.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let mut byte = [0];
    // Each byte arrives well before an idle timeout.
    loop {
        assert!(begun.elapsed() < PATIENCE, "the connection is never closed");
        if stream.write_all(b"x").is_err() {
            break;
        }
        match stream.read(&mut byte) {
            Ok(0) => break,
            Ok(_) => {}
            Err(error) if [ErrorKind::WouldBlock, ErrorKind::TimedOut].contains(&error.kind()) => {}
            Err(_) => break,
        }
    }
}

#[test]
fn malformed_requests_are_refused() {
    let _together = together();
    let server = start(MODES[0]);
    let address = server.metrics_address();
    let long = [b"GET /metrics HTTP/1.1\r\nx: ".to_vec(), vec![b'a'; 1 << 20]].concat();
    let many = format!("GET /metrics HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(100));
    let path = format!("GET /{} HTTP/1.1\r\n\r\n", "a".repeat(100_000));
    let bad: [&[u8]; 8] = [
        b"PING\r\n\r\n",
        b"*1\r\n$4\r\nPING\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET /metrics HTTP/9.9\r\n\r\n",
        b"GET \x00 HTTP/1.1\r\n\r\n",
        &long,
        many.as_bytes(),
        path.as_bytes(),
    ];
    for request in bad {
        let mut stream = connect(address);
        // The server may close the connection before it has read the whole request.
        let _ = stream.write_all(request);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let answer = String::from_utf8_lossy(&read_to_close(&mut stream)).into_owned();
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 4"), "{answer}");
    }
    assert_eq!(http_get(address, "/health").unwrap().status, 200);
}

#[test]
fn a_connection_is_answered_once() {
    let _together = together();
    let server = start(MODES[0]);
    let request = b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: keep-alive\r\n\r\n".repeat(3);
    let mut stream = connect(server.metrics_address());
    let _ = stream.write_all(&request);
    let answer = String::from_utf8_lossy(&read_to_close(&mut stream)).into_owned();
    assert!(answer.matches("HTTP/1.1 ").count() <= 1, "{answer}");
    // An announced request body is neither read nor stored.
    let announced = b"GET /health HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999\r\n\r\n";
    assert_eq!(http_exchange(server.metrics_address(), announced).unwrap().status, 200);
}

#[test]
fn hostile_scrapers_delay_no_command_and_use_no_memory() {
    let _alone = alone();
    for mode in MODES {
        let server = start(mode);
        let mut client = server.client();
        let address = server.metrics_address();
        let before = rss(&server);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(move || {
                    for _ in 0..20 {
                        let mut stream = connect(address);
                        let _ = stream.write_all(&b"GET /metrics HTTP/1.1\r\n\r\n".repeat(100));
                        // The clients disconnect without having read anything.
                    }
                });
            }
            for number in 0..2000 {
                let begun = Instant::now();
                let reply = client.run(&format!("INCR counter:{}", number % 10));
                assert!(matches!(reply, ember_testkit::Value::Integer(_)), "{reply:?}");
                assert!(
                    begun.elapsed() < Duration::from_secs(1),
                    "a command waited for {:?}",
                    begun.elapsed()
                );
            }
        });
        assert_eq!(http_get(address, "/ready").unwrap().status, 200);
        assert!(rss(&server) < before + (32 << 20), "{before} bytes have become {}", rss(&server));
    }
}

#[test]
fn an_endless_script_does_not_block_metrics() {
    let _together = together();
    for mode in MODES {
        let server = builder(mode).arguments(&["--busy-reply-threshold", "50"]).metrics().start();
        let mut running = server.client();
        running.send_command(&["EVAL", "while true do end", "0"]).unwrap();
        let mut client = server.client();
        crate::wait_until("other clients receive BUSY", || client.run("GET a").text().starts_with("BUSY"));
        let address = server.metrics_address();
        assert_eq!(http_get(address, "/health").unwrap().status, 200);
        let text = http_get(address, "/metrics").unwrap().body;
        assert!(text.contains("\nember_errors_total{code=\"BUSY\"} "), "{text}");
        client.run("SCRIPT KILL");
        assert!(running.read_value().unwrap().is_error());
    }
}

#[test]
fn dashboard_visitors_that_send_no_request_are_disconnected() {
    let _together = together();
    let server = builder(MODES[0])
        .arguments(&["--requirepass", "open-sesame", "--metrics-dashboard", "yes"])
        .metrics()
        .start();
    let address = server.metrics_address();
    let mut client = server.client();
    client.run("AUTH open-sesame");
    let before = rss(&server);
    // Credentials `default:open-sesame`, and a client without credentials.
    let known = "Authorization: Basic ZGVmYXVsdDpvcGVuLXNlc2FtZQ==\r\n";
    let mut visitors: Vec<TcpStream> = [known, ""]
        .into_iter()
        .cycle()
        .take(12)
        .map(|authorization| {
            let mut stream = connect(address);
            let head = format!(
                "POST /dashboard/api/commands HTTP/1.1\r\nHost: {address}\r\n{authorization}\
                 Content-Type: application/json\r\nContent-Length: 1000000000\r\n\r\n{{"
            );
            stream.write_all(head.as_bytes()).unwrap();
            stream
        })
        .collect();
    let count = |client: &mut ember_testkit::RawClient| {
        client.run("CLIENT LIST").text().matches(" name=dashboard ").count()
    };
    crate::wait_until("authenticated visitors are clients", || count(&mut client) == 6);
    assert_eq!(http_get(address, "/health").unwrap().status, 200, "a connection is left");
    for (index, stream) in visitors.iter_mut().enumerate() {
        let answer = String::from_utf8_lossy(&read_to_close(stream)).into_owned();
        let expected = if index % 2 == 0 { "" } else { "HTTP/1.1 401 " };
        assert!(answer.starts_with(expected) && (!expected.is_empty() || answer.is_empty()), "{answer}");
    }
    crate::wait_until("the visitors are disconnected", || count(&mut client) == 0);
    assert!(rss(&server) < before + (32 << 20), "{before} bytes have become {}", rss(&server));
}

#[test]
fn an_endless_script_can_be_killed_from_the_dashboard() {
    let _together = together();
    for mode in MODES {
        let server = builder(mode)
            .arguments(&["--busy-reply-threshold", "50", "--metrics-dashboard", "yes"])
            .metrics()
            .start();
        let mut running = server.client();
        running.send_command(&["EVAL", "while true do end", "0"]).unwrap();
        let mut client = server.client();
        crate::wait_until("other clients receive BUSY", || client.run("GET a").text().starts_with("BUSY"));
        let address = server.metrics_address();
        let body = r#"{"commands": [["GET", "a"], ["SCRIPT", "KILL"]]}"#;
        let request = format!(
            "POST /dashboard/api/commands HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let answer = http_exchange(address, request.as_bytes()).unwrap();
        assert!(answer.status == 200 && answer.body.contains("BUSY"), "{answer:?}");
        assert!(answer.body.ends_with(r#",{"simple":"OK"}]}"#), "{answer:?}");
        assert!(running.read_value().unwrap().is_error());
    }
}
