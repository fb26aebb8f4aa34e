//! Peers that do not read their replies: their replies take a limited amount of memory, do not affect other clients,
//! and all arrive once the peers read.

use std::time::{Duration, Instant};

use ember_testkit::{RawClient, Server};

use crate::{MODES, PATIENCE, alone, assert_same, builder, bulk, encode, rss, start, together, wait_until};

const MIB: u64 = 1024 * 1024;

/// Waits until the server cannot read or write more while no client reads, and then returns its resident memory.
fn settled_rss(server: &Server) -> u64 {
    let mut last = (Instant::now(), server.usage().unwrap());
    wait_until("the server stops working", || {
        let now = server.usage().unwrap();
        if now.system_time + now.user_time > last.1.system_time + last.1.user_time + Duration::from_millis(20)
        {
            last = (Instant::now(), now);
        }
        last.0.elapsed() > Duration::from_millis(150)
    });
    rss(server)
}

fn slowest_ping(client: &mut RawClient, count: usize) -> Duration {
    let one = |_| {
        let began = Instant::now();
        client.run("PING");
        began.elapsed()
    };
    (0..count).map(one).max().unwrap()
}

#[test]
fn a_peer_that_does_not_read_costs_bounded_memory_and_delays_no_client() {
    let _machine = alone();
    for length in [16 * 1024, 200_000] {
        let server = start(&["--shards", "1"]);
        let mut other = server.client();
        let value: Vec<u8> = (0..=255).cycle().take(length).collect();
        other.command(&[&b"SET"[..], b"k", &value]);
        let before = rss(&server);

        let mut slow = server.client();
        let count = 1_200_000_000 / length / 10;
        slow.send(&encode(&["GET", "k"]).repeat(count)).unwrap();
        assert!(slowest_ping(&mut other, 200) < Duration::from_millis(500));
        let grown = settled_rss(&server).saturating_sub(before);
        assert!(grown < 24 * MIB, "{count} replies of {length} bytes wait in {grown} bytes");
        assert!(slowest_ping(&mut other, 200) < Duration::from_millis(500));

        let expected = bulk(&value);
        for number in 0..count {
            assert_same(&slow.read_bytes(expected.len()).unwrap(), &expected, &format!("reply {number}"));
        }
        slow.run("PING");
        wait_until("the memory is returned", || rss(&server) < before + 8 * MIB);
    }
}

#[test]
fn a_peer_that_always_lags_a_little_costs_bounded_memory() {
    let _machine = alone();
    // The buffer of a unix socket is small: it never accepts all replies at once.
    let server = builder(&["--shards", "1"]).unix_socket().start();
    let mut client = server.unix_client();
    let value = vec![b'v'; 20_000];
    client.command(&[&b"SET"[..], b"k", &value]);
    let expected = bulk(&value);
    let (window, rounds) = (100, 100);
    let gets = encode(&["GET", "k"]);
    client.send(&gets.repeat(window)).unwrap();
    let before = rss(&server);
    for _ in 0..rounds {
        client.send(&gets.repeat(window)).unwrap();
        for _ in 0..window {
            assert_same(&client.read_bytes(expected.len()).unwrap(), &expected, "reply");
        }
        let grown = rss(&server).saturating_sub(before);
        assert!(grown < 24 * MIB, "{grown} bytes");
    }
}

/// Runs `act` while clients that subscribe to pushes do not read, and asserts that they are disconnected before the
/// memory has grown much.
fn assert_pushes_are_bounded(listen: &[&str], act: impl Fn(&mut RawClient)) {
    for mode in MODES {
        let server = start(mode);
        let mut other = server.client();
        // The two clients are on different workers.
        let mut slow = [server.client(), server.client()];
        for slow in &mut slow {
            listen.iter().for_each(|line| assert!(!slow.run(line).is_error(), "{line}"));
        }
        let before = rss(&server);
        act(&mut other);
        wait_until("the clients are disconnected", || {
            other.info_number("client_output_buffer_limit_disconnections") == 2
        });
        let peak = server.usage().unwrap().peak_rss_bytes.saturating_sub(before);
        assert!(peak < 250 * MIB, "{listen:?} {mode:?}: {peak} bytes");
        assert!(other.info_number("mem_clients_normal") < MIB);
    }
}

#[test]
fn a_monitor_that_does_not_read_costs_bounded_memory() {
    let _machine = alone();
    // Each byte takes four bytes of the monitor line.
    let value = vec![1; 1_000_000];
    assert_pushes_are_bounded(&["MONITOR"], |client| {
        for _ in 0..150 {
            client.command(&[&b"SET"[..], b"key", &value]);
        }
    });
    // A single line exceeds the limit.
    assert_pushes_are_bounded(&["MONITOR"], |client| {
        client.command(&[&b"SET"[..], b"key", &value, &value.repeat(60)]);
    });
}

#[test]
fn a_tracking_client_that_does_not_read_costs_bounded_memory() {
    let _machine = alone();
    assert_pushes_are_bounded(&["HELLO 3", "CLIENT TRACKING ON BCAST"], |client| {
        for number in 0..200 {
            let key = [number.to_string().as_bytes(), &[b'k'; 2_000_000]].concat();
            client.command(&[&b"SET"[..], &key, b"1"]);
            client.command(&[&b"DEL"[..], &key]);
        }
    });
}

#[test]
fn pushes_of_one_script_wait_in_bounded_memory() {
    let _machine = alone();
    assert_pushes_are_bounded(&["SUBSCRIBE channel"], |client| {
        let script = "local text = string.rep('x', 1000000) \
                      for i = 1, 400 do redis.call('publish', 'channel', i .. text) end";
        assert!(!client.command(&["EVAL", script, "0"]).is_error());
    });
}

#[test]
fn a_tracking_client_may_read_replies_slowly() {
    let _machine = together();
    for mode in MODES {
        let server = start(mode);
        let mut other = server.client();
        let value = vec![b'v'; 1_000_000];
        other.command(&[&b"SET"[..], b"key", &value]);
        let mut client = server.client();
        client.run("HELLO 3");
        client.run("CLIENT TRACKING ON BCAST");
        // One reply exceeds the limit of `pubsub`.
        let keys = vec![&b"key"[..]; 80];
        client.send_command(&[&[&b"MGET"[..]], &keys[..]].concat()).unwrap();
        wait_until("the reply is written", || {
            other.info_number("client_recent_max_output_buffer") > 40 * MIB
        });
        other.command(&["SET", "key", "new"]);
        assert_eq!(client.read_value().unwrap().elements().map(<[_]>::len), Some(80));
        assert_eq!(other.info_number("client_output_buffer_limit_disconnections"), 0);
    }
}

#[test]
fn the_hard_output_limit_closes_a_slow_reader() {
    let _machine = together();
    let server = start(&["--shards", "1", "--client-output-buffer-limit", "normal 1mb 0 0"]);
    let mut other = server.client();
    other.command(&[&b"SET"[..], b"k", &vec![b'v'; 100_000]]);
    let mut slow = server.client();
    slow.send(&encode(&["GET", "k"]).repeat(1000)).unwrap();
    wait_until("one client is left", || other.info_number("connected_clients") == 1);
    assert!(other.info_number("client_output_buffer_limit_disconnections") >= 1);
    assert!(slow.read_to_close().unwrap().len() < 100_000_000);
}

#[test]
fn the_hard_output_limit_bounds_the_replies_of_a_transaction() {
    let _machine = alone();
    for mode in MODES {
        let server = builder(mode).arguments(&["--client-output-buffer-limit", "normal 1mb 0 0"]).start();
        let mut other = server.client();
        other.command(&[&b"SET"[..], b"k", &vec![b'v'; 30_000]]);
        let mut client = server.client();
        let before = rss(&server);
        let calls = [
            encode(&["MULTI"]),
            encode(&["GET", "k"]).repeat(20_000),
            encode(&["INCR", "n"]),
            encode(&["EXEC"]),
        ];
        client.send(&calls.concat()).unwrap();
        wait_until("the client is disconnected", || {
            other.info_number("client_output_buffer_limit_disconnections") == 1
        });
        assert_eq!(other.run("GET n").text(), "1", "the transaction has run");
        let peak = server.usage().unwrap().peak_rss_bytes.saturating_sub(before);
        assert!(peak < 100 * MIB, "{mode:?}: {peak} bytes");
    }
}

#[test]
fn the_soft_output_limit_closes_a_slow_reader_after_its_time() {
    let _machine = together();
    let server = start(&["--shards", "1", "--client-output-buffer-limit", "normal 0 200kb 1"]);
    let mut other = server.client();
    other.command(&[&b"SET"[..], b"k", &vec![b'v'; 100_000]]);
    let mut slow = server.client();
    let began = Instant::now();
    slow.send(&encode(&["GET", "k"]).repeat(1000)).unwrap();
    // A client that reads in time remains connected.
    let mut quick = server.client();
    quick.send(&encode(&["GET", "k"]).repeat(50)).unwrap();
    for _ in 0..50 {
        quick.read_raw().unwrap();
    }
    wait_until("the slow one is disconnected", || other.info_number("connected_clients") == 2);
    assert!(began.elapsed() >= Duration::from_millis(900), "{:?}", began.elapsed());
    assert_eq!(quick.run("PING").text(), "PONG");
}

#[test]
fn the_query_limit_closes_peers_with_an_endless_command_but_not_with_a_long_pipeline() {
    let _machine = together();
    for arguments in [&[&b"MSET"[..]; 0][..], &[b"SET", b"key"]] {
        let server = start(&["--shards", "1", "--client-query-buffer-limit", "1mb"]);
        let mut client = server.client();
        client.set_timeout(PATIENCE).unwrap();
        if arguments.is_empty() {
            // The query buffer limit applies to many small arguments.
            let _ = client.send(&[&b"*1000000\r\n"[..], &b"$10\r\n0123456789\r\n".repeat(200_000)].concat());
        } else {
            // The query buffer limit applies to one large argument.
            let head = b"*3\r\n$3\r\nSET\r\n$3\r\nkey\r\n$100000000\r\n";
            let _ = client.send(&[&head[..], &vec![b'x'; 3_000_000]].concat());
        }
        assert_eq!(client.read_to_close().unwrap(), b"");

        let mut client = server.client();
        let value = vec![b'v'; 10_000];
        let count = 2000;
        let expected = bulk(&value).repeat(count);
        client.set_timeout(PATIENCE).unwrap();
        let got =
            crate::exchange(server.address(), &encode(&[&b"ECHO"[..], &value]).repeat(count), usize::MAX);
        assert_same(&got, &expected, "20 MB of requests under a query limit of 1 MB");
        assert_eq!(client.run("PING").text(), "PONG");
    }
}

#[test]
fn a_peer_that_is_being_closed_and_does_not_read_costs_no_time() {
    let _machine = alone();
    let server = start(&["--shards", "1"]);
    let mut other = server.client();
    other.command(&[&b"SET"[..], b"k", &vec![b'v'; 1_000_000]]);
    let mut slow = server.client();
    // The requests cause 40 MB of replies before QUIT, and the server never reads the bytes after QUIT.
    slow.send(&[encode(&["GET", "k"]).repeat(40), encode(&["QUIT"]), vec![b'x'; 100_000]].concat()).unwrap();
    settled_rss(&server);
    let before = server.usage().unwrap();
    let began = Instant::now();
    wait_until("half a second has passed", || began.elapsed() > Duration::from_millis(500));
    let after = server.usage().unwrap();
    let spent = (after.user_time + after.system_time) - (before.user_time + before.system_time);
    assert!(spent < Duration::from_millis(200), "{spent:?} of CPU while there was nothing to do");
    let got = slow.read_to_close().unwrap();
    assert!(got.ends_with(b"+OK\r\n") && got.len() > 40_000_000, "{} bytes", got.len());
}

#[test]
fn the_hard_output_limit_applies_to_the_replies_of_one_batch_at_any_speed() {
    let _machine = together();
    for mode in MODES {
        let limits = "normal 100000 0 0";
        let server = builder(mode).arguments(&["--client-output-buffer-limit", limits]).start();
        let mut other = server.client();
        other.command(&[&b"SET"[..], b"k", &vec![b'v'; 30_000]]);
        let mut client = server.client();
        // Each batch is below the limit.
        for _ in 0..10 {
            client.send(&encode(&["GET", "k"]).repeat(2)).unwrap();
            (0..2).for_each(|_| drop(client.read_raw().unwrap()));
        }
        assert_eq!(other.info_number("client_output_buffer_limit_disconnections"), 0);
        // The replies have 2.1 MB, which the socket would accept.
        client.send(&encode(&["GET", "k"]).repeat(70)).unwrap();
        wait_until("the client is disconnected", || {
            other.info_number("client_output_buffer_limit_disconnections") == 1
        });
        wait_until("one client is left", || other.info_number("connected_clients") == 1);
    }
}
