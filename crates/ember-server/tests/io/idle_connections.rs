//! Ten thousand idle connections use little memory, are distributed among the workers, and all receive replies
//! afterwards.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;

use ember_testkit::{Server, becomes_true};

use crate::{PATIENCE, alone, builder, encode, rss, start, together, wait_until};

/// Returns the numbers of descriptors in the process's event queues, in ascending order.
fn watched(server: &Server) -> Vec<usize> {
    let folder = format!("/proc/{}/fd", server.pid());
    let mut counts: Vec<usize> = fs::read_dir(folder)
        .unwrap()
        .flatten()
        .filter(|entry| {
            fs::read_link(entry.path()).is_ok_and(|target| target.to_string_lossy().contains("eventpoll"))
        })
        .map(|entry| {
            let number = entry.file_name().into_string().unwrap();
            let text = fs::read_to_string(format!("/proc/{}/fdinfo/{number}", server.pid())).unwrap();
            text.lines().filter(|line| line.starts_with("tfd:")).count()
        })
        .collect();
    counts.sort_unstable();
    counts
}

#[test]
fn connections_are_spread_evenly_over_the_workers() {
    let _machine = together();
    for mode in crate::MODES {
        let server = start(mode);
        wait_until("the first client is released", || watched(&server).iter().sum::<usize>() == 3);
        let mut clients: Vec<_> = (0..100).map(|_| server.client()).collect();
        for client in &mut clients {
            assert_eq!(client.run("PING").text(), "PONG");
        }
        // Each worker also watches an event descriptor, and one worker watches the listener.
        assert_eq!(watched(&server), [51, 52], "{mode:?}");
    }
}

#[test]
fn ten_thousand_idle_connections_take_less_than_a_kibibyte_each() {
    const COUNT: usize = 10_000;
    let _machine = alone();
    // Half of the connections use unix sockets, so that fewer free ports are needed.
    let server = builder(&["--shards", "2", "--maxclients", "12000"]).unix_socket().start();
    let ping = encode(&["PING"]);
    let mut reply = [0; 7];
    let mut warm: Vec<_> = (0..200).map(|_| server.client()).collect();
    warm.iter_mut().for_each(|client| assert_eq!(client.run("PING").text(), "PONG"));
    drop(warm);
    wait_until("the first clients are released", || watched(&server).iter().sum::<usize>() == 4);

    let mut other = server.client();
    let before = (rss(&server), other.info_number("used_memory"));
    let mut tcp: Vec<_> = (0..COUNT / 2).map(|_| TcpStream::connect(server.address()).unwrap()).collect();
    let path = server.unix_socket().unwrap();
    let mut unix: Vec<_> = (0..COUNT / 2).map(|_| UnixStream::connect(path).unwrap()).collect();
    // Each connection has run a command and sent half of another; no buffer for it may remain.
    for stream in &mut tcp {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(&ping).unwrap();
        stream.read_exact(&mut reply).unwrap();
        stream.write_all(&ping[..5]).unwrap();
    }
    for stream in &mut unix {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(&ping).unwrap();
        stream.read_exact(&mut reply).unwrap();
    }
    assert_eq!(other.info_number("connected_clients"), COUNT as u64 + 1);
    let allocated = other.info_number("used_memory").saturating_sub(before.1) / COUNT as u64;
    // The allocator returns unused pages some time after they are freed.
    let resident = || rss(&server).saturating_sub(before.0) / COUNT as u64;
    becomes_true(|| resident() < 1024);
    let resident = resident();
    println!("for each connection {allocated} bytes allocated, {resident} resident");
    assert!(allocated < 1024, "{allocated} bytes are allocated for each connection");
    assert!(resident < 1024, "{resident} bytes are resident for each connection");

    for stream in &mut tcp {
        stream.write_all(&ping[5..]).unwrap();
        stream.read_exact(&mut reply).unwrap();
        assert_eq!(&reply, b"+PONG\r\n");
    }
    for stream in &mut unix {
        stream.write_all(&ping).unwrap();
        stream.read_exact(&mut reply).unwrap();
        assert_eq!(&reply, b"+PONG\r\n");
    }
}
