//! Peers that send garbage, announce large arguments or connect in waves: the server continues to serve other clients
//! and releases the memory of these peers.

use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

use ember_testkit::{Random, Server};

use crate::{MODES, alone, encode, exchange, rss, start, together, wait_until};

const MIB: u64 = 1024 * 1024;

fn assert_answers(server: &Server) {
    assert_eq!(server.client().run("PING").text(), "PONG", "{}", server.log());
}

#[test]
fn random_bytes_and_damaged_commands_do_no_harm() {
    let _machine = together();
    for (number, mode) in MODES.into_iter().enumerate() {
        let server = start(mode);
        let mut random = Random::new(number as u64);
        for _ in 0..400 {
            let request = if random.chance(30) {
                let length = random.below(3000);
                random.bytes(length)
            } else {
                let mut bytes: Vec<u8> = (0..1 + random.below(40))
                    .flat_map(|_| crate::model::random_command(&mut random, "h"))
                    .collect::<Vec<_>>()
                    .chunks(3)
                    .flat_map(encode)
                    .collect();
                for _ in 0..random.below(4) {
                    let at = random.below(bytes.len());
                    bytes[at] = (random.next_u64() >> 32) as u8;
                }
                let end = random.below(bytes.len() + 1);
                bytes.truncate(end);
                bytes
            };
            // An error may close the connection while this thread sends.
            let mut client = server.client();
            let _ = client.send(&request);
            let _ = client.finish_sending();
            client.read_to_close().unwrap();
        }
        assert_answers(&server);
    }
}

#[test]
fn announced_lengths_allocate_nothing_until_the_bytes_arrive() {
    let _machine = alone();
    for mode in MODES {
        let server = start(mode);
        let before = rss(&server);
        let heads: [&[u8]; 4] = [
            b"*2147483647\r\n$3\r\nGET\r\n",
            b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$536870912\r\n",
            b"*3\r\n$3\r\nSET\r\n$536870912\r\nabc",
            b"*2\r\n$3\r\nGET\r\n$30000\r\n",
        ];
        let mut clients: Vec<_> = (0..200).map(|_| server.client()).collect();
        for (number, client) in clients.iter_mut().enumerate() {
            client.send(heads[number % heads.len()]).unwrap();
        }
        assert_answers(&server);
        // The buffer of a large argument initially has 64 KiB.
        let grown = rss(&server).saturating_sub(before);
        assert!(grown < 16 * MIB, "{grown} bytes for 200 announced arguments");
        drop(clients);
        assert_answers(&server);
    }
}

#[test]
fn absurd_lengths_are_errors() {
    let _machine = together();
    let server = start(&["--shards", "1"]);
    for request in [
        "*-2147483648000\r\n",
        "*3000000000\r\n",
        "*18446744073709551617\r\n",
        "*x\r\n",
        "*2\r\n$18446744073709551615\r\n",
        "*2\r\n$-1\r\n",
        "*2\r\n$536870913\r\n",
        "*2\r\n$\r\n",
    ] {
        let got = String::from_utf8(exchange(server.address(), request.as_bytes(), usize::MAX)).unwrap();
        assert!(got.is_empty() || got.starts_with("-ERR Protocol error: "), "{request:?}: {got:?}");
    }
    // A line without end.
    let mut client = server.client();
    let _ = client.send(&vec![b'a'; 200_000]);
    assert!(client.read_to_close().unwrap().starts_with(b"-ERR Protocol error: too big inline request"));
    assert_answers(&server);
}

/// Opens a connection from one of many addresses of this machine. A reset closes it, so that no port remains in
/// TIME_WAIT.
fn visit(server: SocketAddr, number: usize) -> TcpStream {
    let source = Ipv4Addr::new(127, 0, 1, (number % 200) as u8 + 1);
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket.set_linger(Some(Duration::ZERO)).unwrap();
    socket.bind(&SocketAddr::from((source, 0)).into()).unwrap();
    socket.connect(&server.into()).unwrap();
    socket.into()
}

#[test]
fn a_hundred_thousand_closed_connections_leave_no_state() {
    use std::io::Write;
    let _machine = alone();
    let server = start(&["--shards", "2"]);
    let mut other = server.client();
    let requests =
        [b"".to_vec(), b"*1\r\n$4\r\nPI".to_vec(), encode(&["SET", "a", "b"]), b"*1\r\n!".to_vec()];
    let wave = |count: usize| {
        for start in (0..count).step_by(1000) {
            let visitors: Vec<_> = (start..start + 1000)
                .map(|number| {
                    let mut stream = visit(server.address(), number);
                    let _ = stream.write_all(&requests[number % requests.len()]);
                    stream
                })
                .collect();
            drop(visitors);
        }
    };
    wave(10_000);
    wait_until("the first wave is released", || other.info_number("connected_clients") == 1);
    let before = rss(&server);
    wave(90_000);
    // Connections that wait to be accepted are not counted as connected, either.
    wait_until("all connections are accepted", || other.info_number("total_connections_received") > 100_000);
    wait_until("all connections are released", || other.info_number("connected_clients") == 1);
    wait_until("its memory is returned", || rss(&server) < before + 4 * MIB);
    assert_eq!(other.run("GET a").text(), "b");
}

#[test]
fn memory_is_returned_after_heavy_traffic() {
    let _machine = alone();
    for mode in MODES {
        let server = start(mode);
        let before = rss(&server);
        let mut clients: Vec<_> = (0..32).map(|_| server.client()).collect();
        let value = vec![b'v'; 30_000];
        clients[0].command(&[&b"SET"[..], b"k", &value]);
        let request = [
            encode(&[&b"ECHO"[..], &vec![b'e'; 31_000]]),
            encode(&["MGET", "k", "k"]),
            encode(&["GET", "k"]),
        ]
        .concat()
        .repeat(20);
        for _ in 0..3 {
            clients.iter_mut().for_each(|client| client.send(&request).unwrap());
            for client in &mut clients {
                (0..60).for_each(|_| drop(client.read_raw().unwrap()));
            }
        }
        // The workers keep a read buffer, a reply buffer and messages, all of bounded size.
        wait_until("memory is returned", || rss(&server) < before + 10 * MIB);
        assert_eq!(clients[31].run("PING").text(), "PONG");
    }
}

#[test]
fn peers_beyond_the_descriptor_limit_are_served_when_others_disconnect() {
    use rustix::process::{Pid, Resource, Rlimit, prlimit};
    let _machine = together();
    let server = start(&["--shards", "1"]);
    let mut other = server.client();
    wait_until("the first client is released", || other.info_number("connected_clients") == 1);
    let open = std::fs::read_dir(format!("/proc/{}/fd", server.pid())).unwrap().count() as u64;
    let limit = Rlimit { current: Some(open + 10), maximum: Some(open + 10) };
    prlimit(Pid::from_raw(server.pid() as i32), Resource::Nofile, limit).unwrap();

    let mut clients: Vec<_> = (0..35).map(|_| server.client()).collect();
    clients.iter_mut().for_each(|client| client.send(b"PING\r\n").unwrap());
    // Waiting connections are accepted in order of arrival: when a client disconnects, the next one is accepted,
    // although no new client connects.
    for mut client in clients {
        assert_eq!(client.read_raw().unwrap(), b"+PONG\r\n");
    }
    assert!(server.log().contains("cannot accept a connection"));
    assert_eq!(other.run("PING").text(), "PONG");
}
