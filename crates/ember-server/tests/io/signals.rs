//! Shutdown by signals and by SHUTDOWN.

use std::time::{Duration, Instant};

use crate::{MODES, PATIENCE, assert_same, bulk, encode, start, together, wait_until};

#[test]
fn sigterm_and_sigint_answer_received_commands_and_exit_with_0() {
    let _machine = together();
    for mode in MODES {
        for signal in ["TERM", "INT"] {
            let mut server = start(mode);
            let value = vec![b'v'; 500_000];
            let mut clients: Vec<_> = (0..6).map(|_| server.client()).collect();
            clients[0].command(&[&b"SET"[..], b"k", &value]);
            let idle = server.client();
            // The replies exceed the socket buffers; writes to shards of both workers follow.
            let sets: Vec<u8> = (0..500).flat_map(|n| encode(&["SET", &format!("key{n}"), "v"])).collect();
            let request = [encode(&["GET", "k"]).repeat(20), sets].concat();
            clients.iter_mut().for_each(|client| client.send(&request).unwrap());
            let began = Instant::now();
            server.signal(signal);
            let expected = [bulk(&value).repeat(20), b"+OK\r\n".repeat(500)].concat();
            for client in &mut clients {
                assert_same(&client.read_to_close().unwrap(), &expected, &format!("{mode:?} {signal}"));
            }
            assert_eq!(server.wait().code(), Some(0), "{}", server.log());
            assert!(
                began.elapsed() < Duration::from_secs(8),
                "{:?}: idle connections delay nothing",
                began.elapsed()
            );
            drop(idle);
        }
    }
}

#[test]
fn paused_clients_and_slow_readers_do_not_block_the_shutdown() {
    let _machine = together();
    for mode in MODES {
        let mut server = start(&[mode, &["--shutdown-timeout", "1"][..]].concat());
        let mut client = server.client();
        client.command(&[&b"SET"[..], b"k", &vec![b'v'; 1_000_000]]);
        client.run("CLIENT PAUSE 100000 WRITE");
        let mut paused = server.client();
        paused.send(&[encode(&["GET", "none"]), encode(&["SET", "a", "b"])].concat()).unwrap();
        wait_until("the call waits", || client.run("CLIENT LIST").text().contains("flags=b"));
        let mut slow = server.client();
        slow.send(&encode(&["GET", "k"]).repeat(100)).unwrap();
        server.signal("TERM");
        assert_eq!(paused.read_to_close().unwrap(), b"$-1\r\n", "the reply before the pause, then the close");
        let began = Instant::now();
        assert_eq!(server.wait().code(), Some(0), "{}", server.log());
        assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    }
}

#[test]
fn a_second_signal_ends_the_process_at_once() {
    let _machine = together();
    // The shutdown waits for a peer that does not read.
    let mut server = start(&["--shards", "2"]);
    let mut slow = server.client();
    slow.command(&[&b"SET"[..], b"k", &vec![b'v'; 1_000_000]]);
    slow.send(&encode(&["GET", "k"]).repeat(100)).unwrap();
    server.signal("TERM");
    wait_until("the first signal is taken", || server.log().contains("stopping"));
    let began = Instant::now();
    server.signal("TERM");
    assert_eq!(server.wait().code(), Some(1));
    assert!(began.elapsed() < Duration::from_secs(2));

    // The shutdown waits for a command.
    let mut server = start(&["--shards", "2", "--enable-debug-command", "yes"]);
    let mut sleeper = server.client();
    sleeper.run("PING");
    sleeper.send(&encode(&["DEBUG", "SLEEP", "30"])).unwrap();
    server.signal("INT");
    wait_until("the first signal is taken", || server.log().contains("stopping"));
    let began = Instant::now();
    server.signal("INT");
    assert_eq!(server.wait().code(), Some(1));
    assert!(began.elapsed() < Duration::from_secs(2));
}

#[test]
fn shutdown_exits_with_0() {
    let _machine = together();
    for mode in MODES {
        for command in [&["SHUTDOWN"][..], &["SHUTDOWN", "NOSAVE"], &["SHUTDOWN", "NOW"]] {
            let mut server = start(mode);
            let mut client = server.client();
            client.set_timeout(PATIENCE).unwrap();
            client.send(&[encode(&["PING"]), encode(command)].concat()).unwrap();
            assert_eq!(client.read_to_close().unwrap(), b"+PONG\r\n", "no reply before the close");
            assert_eq!(server.wait().code(), Some(0), "{}", server.log());
        }
    }
}

#[test]
fn a_flood_of_requests_delays_the_shutdown_at_most_by_the_timeout() {
    use std::io::{Read, Write};
    let _machine = together();
    let mut server = start(&["--shards", "1", "--shutdown-timeout", "1"]);
    let mut stream = std::net::TcpStream::connect(server.address()).unwrap();
    let mut reader = stream.try_clone().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let pipeline = encode(&["SET", "k", "v"]).repeat(10_000);
            while stream.write_all(&pipeline).is_ok() {}
        });
        scope.spawn(move || while reader.read(&mut vec![0; 1 << 16]).is_ok_and(|count| count > 0) {});
        wait_until("the flood runs", || server.client().info_number("total_commands_processed") > 10_000);
        let began = Instant::now();
        server.signal("TERM");
        assert_eq!(server.wait().code(), Some(0), "{}", server.log());
        assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
    });
}
