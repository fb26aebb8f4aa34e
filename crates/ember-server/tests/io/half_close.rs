//! A peer that half-closes the connection after its last request receives all replies; the state of a peer that
//! disconnects is released.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};

use crate::{MODES, PATIENCE, assert_same, bulk, encode, exchange, start, together, wait_until};

#[test]
fn requests_before_a_half_close_are_all_answered() {
    let _machine = together();
    for mode in MODES {
        let server = start(mode);
        for count in [1, 2, 100, 5000] {
            let request: Vec<u8> = (0..count)
                .flat_map(|number| {
                    let key = format!("k{number}");
                    [encode(&["SET", &key, "v"]), encode(&["MGET", &key, "k0"]), encode(&["GET", &key])]
                        .concat()
                })
                .collect();
            let expected = b"+OK\r\n*2\r\n$1\r\nv\r\n$1\r\nv\r\n$1\r\nv\r\n".repeat(count);
            // The requests are sent directly before the half-close, so that the server reads both together.
            assert_same(
                &exchange(server.address(), &request, usize::MAX),
                &expected,
                &format!("{mode:?} {count}"),
            );
            // An incomplete command at the end is discarded silently.
            let cut = [&request[..], b"*2\r\n$3\r\nGET\r\n$1"].concat();
            assert_same(
                &exchange(server.address(), &cut, usize::MAX),
                &expected,
                &format!("{mode:?} {count}"),
            );
        }
    }
}

#[test]
fn replies_the_socket_does_not_accept_at_once_are_sent_after_a_half_close() {
    let _machine = together();
    for mode in MODES {
        let server = start(mode);
        let value = vec![b'v'; 1_000_000];
        server.client().command(&[&b"SET"[..], b"k", &value]);
        let mut stream = TcpStream::connect(server.address()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(&encode(&["GET", "k"]).repeat(50)).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        // Waits until the server has read the half-close and filled its output buffers, before the client reads
        // anything.
        let mut other = server.client();
        wait_until("the server is ready for the next", || other.run("PING").text() == "PONG");
        let mut got = Vec::new();
        stream.read_to_end(&mut got).unwrap();
        assert_same(&got, &bulk(&value).repeat(50), &format!("{mode:?}"));
    }
}

#[test]
fn peers_that_disconnect_at_any_time_are_released() {
    let _machine = together();
    for mode in MODES {
        let server = start(mode);
        let mut other = server.client();
        other.command(&[&b"SET"[..], b"k", &vec![b'v'; 300_000]]);
        let keys: Vec<u8> =
            (0..300).flat_map(|number| encode(&["SET", &format!("key{number}"), "value"])).collect();
        let requests = [
            keys.repeat(20),
            encode(&["GET", "k"]).repeat(200),
            [keys.clone(), encode(&["MGET", "k", "k", "k"]).repeat(20)].concat(),
            b"*2\r\n$3\r\nGET\r\n".to_vec(),
            b"*3\r\n$3\r\nSET\r\n$1\r\nx\r\n$1000000\r\nabc".to_vec(),
        ];
        for round in 0..40 {
            for request in &requests {
                let mut stream = TcpStream::connect(server.address()).unwrap();
                let end = request.len() * (round + 1) / 40;
                // If there are many replies, the reset can arrive while this thread sends.
                let _ = stream.write_all(&request[..end]);
            }
        }
        wait_until("all connections are released", || other.info_number("connected_clients") == 1);
        assert_eq!(other.run("GET key7").text(), "value");
    }
}

#[test]
fn a_peer_that_disconnects_with_unsent_replies_or_while_paused_is_released() {
    let _machine = together();
    for mode in MODES {
        let server = start(mode);
        let mut other = server.client();
        other.command(&[&b"SET"[..], b"k", &vec![b'v'; 1_000_000]]);
        let mut slow = server.client();
        slow.send(&encode(&["GET", "k"]).repeat(100)).unwrap();
        wait_until("replies wait", || {
            other.run("CLIENT LIST").text().lines().any(|line| {
                line.split(' ').any(|word| word.strip_prefix("obl=").is_some_and(|bytes| bytes != "0"))
            })
        });
        drop(slow);
        wait_until("the connection is released", || other.info_number("connected_clients") == 1);

        other.run("CLIENT PAUSE 100000 WRITE");
        let mut paused = server.client();
        paused.send(&encode(&["SET", "a", "1"]).repeat(3)).unwrap();
        wait_until("the call waits", || other.run("CLIENT LIST").text().contains("flags=b"));
        drop(paused);
        wait_until("the paused one is released", || other.info_number("connected_clients") == 1);
        other.run("CLIENT UNPAUSE");
        assert_eq!(other.run("SET a 2").text(), "OK");
    }
}
