//! Pipelines of any depth, split at arbitrary bytes, are replied to in order, in both modes.

use std::io::{BufReader, Write};
use std::net::TcpStream;

use ember_testkit::{Random, Server, read_frame};

use crate::model::{Model, random_command};
use crate::{MODES, PATIENCE, assert_same, bulk, encode, exchange, start, together};

/// Returns commands with keys in all shards, and their expected replies.
fn mixed(count: usize) -> (Vec<u8>, Vec<u8>) {
    let mut model = Model::default();
    let (mut request, mut expected) = (Vec::new(), Vec::new());
    for number in 0..count {
        let key = |number: usize| format!("key{}", number % 97).into_bytes();
        let value = || format!("value{number}").into_bytes();
        let command: Vec<Vec<u8>> = match number % 11 {
            0 => vec![b"PING".to_vec()],
            1 => vec![b"MSET".to_vec(), key(number), value(), key(number + 1), value()],
            2 => vec![b"MGET".to_vec(), key(number), key(number * 3), b"nothing".to_vec()],
            3 => vec![b"SELECT".to_vec(), (number % 4).to_string().into_bytes()],
            4..=6 => vec![b"SET".to_vec(), key(number), value()],
            _ => vec![b"GET".to_vec(), key(number * 7)],
        };
        expected.extend(model.answer(&command).unwrap());
        request.extend(encode(&command));
    }
    (request, expected)
}

#[test]
fn a_pipeline_of_any_depth_is_answered_completely_and_in_order() {
    let _machine = together();
    for mode in MODES {
        for depth in [1, 2, 3, 127, 128, 129, 1000, 100_000] {
            let server = start(mode);
            let (request, expected) = mixed(depth);
            let got = exchange(server.address(), &request, usize::MAX);
            assert_same(&got, &expected, &format!("{mode:?} depth {depth}"));
        }
    }
}

#[test]
fn a_pipeline_may_be_split_at_every_byte() {
    let _machine = together();
    // With one worker, a PING on another connection returns after the server has read all bytes sent before it.
    let server = start(&["--shards", "1"]);
    let mut barrier = server.client();
    let (request, expected) = mixed(13);
    for cut in 0..=request.len() {
        barrier.run("FLUSHALL");
        let mut client = server.client();
        client.send(&request[..cut]).unwrap();
        barrier.run("PING");
        client.send(&request[cut..]).unwrap();
        let got = client.read_bytes(expected.len()).unwrap();
        assert_same(&got, &expected, &format!("cut at {cut}"));
    }
}

#[test]
fn a_pipeline_may_arrive_byte_by_byte_or_in_odd_pieces() {
    let _machine = together();
    let (request, expected) = mixed(300);
    for mode in MODES {
        for chunk in [1, 3, 7, 61, 4093] {
            let server = start(mode);
            let got = exchange(server.address(), &request, chunk);
            assert_same(&got, &expected, &format!("{mode:?} in pieces of {chunk}"));
        }
    }
}

#[test]
fn random_pipelines_of_several_connections_agree_with_a_model() {
    let _machine = together();
    let modes: [&[&str]; 3] = [MODES[0], MODES[1], &["--concurrent", "no", "--shards", "3"]];
    for (number, mode) in modes.into_iter().enumerate() {
        let server = start(mode);
        std::thread::scope(|scope| {
            for connection in 0..4 {
                let server = &server;
                scope.spawn(move || run_random(server, 1000 * number as u64 + connection, mode));
            }
        });
    }
}

fn run_random(server: &Server, seed: u64, mode: &[&str]) {
    let mut random = Random::new(seed);
    let mut model = Model::default();
    let prefix = format!("{seed}:");
    let commands: Vec<_> = (0..4000).map(|_| random_command(&mut random, &prefix)).collect();
    let request: Vec<u8> = commands.iter().flat_map(|command| encode(command)).collect();
    let mut stream = TcpStream::connect(server.address()).unwrap();
    stream.set_nodelay(true).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut rest = &request[..];
            while !rest.is_empty() {
                let most = if random.chance(20) { 200_000 } else { 3000 };
                let (piece, after) = rest.split_at(rest.len().min(1 + random.below(most)));
                stream.write_all(piece).unwrap();
                rest = after;
            }
        });
        for (number, command) in commands.iter().enumerate() {
            let mut got = Vec::new();
            read_frame(&mut reader, &mut got).unwrap();
            if let Some(expected) = model.answer(command) {
                let name = String::from_utf8_lossy(&command[0]);
                assert_same(&got, &expected, &format!("{mode:?} seed {seed} command {number} {name}"));
            }
        }
    });
}

#[test]
fn large_arguments_are_stored_and_returned_intact_among_small_ones() {
    let _machine = together();
    for mode in MODES {
        let server = start(mode);
        let mut random = Random::new(5);
        let (mut request, mut expected) = (Vec::new(), Vec::new());
        for (number, length) in
            [1, 32 * 1024 - 1, 32 * 1024, 32 * 1024 + 1, 1024 * 1024, 100_000_000, 5].into_iter().enumerate()
        {
            // Generating hundreds of millions of random bytes would take too long, so the value is periodic; the period
            // is not a power of two.
            let value: Vec<u8> = random.bytes(10_007).into_iter().cycle().take(length).collect();
            for name in ["big", "other", "third"] {
                let key = format!("{name}{number}");
                request.extend(encode(&["PING"]));
                expected.extend(b"+PONG\r\n");
                if length > 1024 * 1024 && name != "big" {
                    continue;
                }
                request.extend(encode(&[b"SET", key.as_bytes(), &value]));
                request.extend(encode(&["STRLEN", &key]));
                request.extend(encode(&["GET", &key]));
                expected.extend(b"+OK\r\n");
                expected.extend(format!(":{length}\r\n").into_bytes());
                expected.extend(bulk(&value));
            }
        }
        for chunk in [usize::MAX, 99_991] {
            assert_same(
                &exchange(server.address(), &request, chunk),
                &expected,
                &format!("{mode:?} {chunk}"),
            );
        }
    }
}

#[test]
fn a_peer_that_sends_eight_megabytes_before_it_reads_gets_all_replies() {
    let _machine = together();
    for mode in MODES {
        let server = start(mode);
        let mut client = server.client();
        let value = vec![b'v'; 1000];
        client.command(&[&b"SET"[..], b"k", &value]);
        // Replies of 16 MB exceed the socket buffers; the server would not buffer replies of 256 MB.
        let get = encode(&["GET", "k"]);
        let filler = encode(&[&b"ECHO"[..], &vec![b'e'; 470]]);
        let pair = [get, filler].concat();
        let count = 8 * 1024 * 1024 / pair.len();
        client.send(&pair.repeat(count)).unwrap();
        let expected = [bulk(&value), bulk(&vec![b'e'; 470])].concat().repeat(count);
        assert_same(&client.read_bytes(expected.len()).unwrap(), &expected, &format!("{mode:?}"));

        // Short replies are still written while the server has stopped reading requests.
        let sets = encode(&["SET", "key", "value"]).repeat(1_500_000);
        client.send(&sets).unwrap();
        let expected = b"+OK\r\n".repeat(1_500_000);
        assert_same(&client.read_bytes(expected.len()).unwrap(), &expected, &format!("{mode:?} SET"));
    }
}
