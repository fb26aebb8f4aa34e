//! The commands that rebuild keys: running them on an empty keyspace creates the same keys.

use ember_protocol::Protocol;
use emberkv_core::keyspace::SHARDS;
use emberkv_core::local::Local;
use emberkv_core::rebuild::write_commands;
use emberkv_core::turn::Random;

use crate::support::commands::{contents, run, run_random};

/// Runs the commands that rebuild each key on an empty keyspace.
fn rebuilt(local: &Local) -> Local {
    let mut copy = Local::new(Protocol::Resp2);
    copy.turn.replay_at(local.turn.now_ms);
    for shard in 0..SHARDS {
        let data = local.keyspace.lock(shard);
        for database in 0..local.keyspace.databases() {
            for entry in data.database(database).table().iter() {
                let mut commands = Vec::new();
                write_commands(&mut commands, entry.key(), entry.into(), entry.expire_at_ms()).unwrap();
                copy.database = database;
                run_all(&mut copy, &commands);
            }
        }
    }
    copy.database = 0;
    copy.turn.now_ms = local.turn.now_ms;
    copy
}

fn run_all(copy: &mut Local, mut commands: &[u8]) {
    while !commands.is_empty() {
        let words = head(&mut commands, b'*');
        let words: Vec<&[u8]> = (0..words).map(|_| word(&mut commands)).collect();
        let line = String::from_utf8_lossy(&words.join(&b" "[..])).into_owned();
        let reply = copy.run(&words);
        assert!(!reply.starts_with(b"-"), "{line}: {}", String::from_utf8_lossy(&reply));
    }
}

/// Removes a line from the bytes that consists of `mark` and a number; returns the number.
fn head(bytes: &mut &[u8], mark: u8) -> usize {
    let end = bytes.windows(2).position(|window| window == b"\r\n").unwrap();
    let (line, rest) = bytes.split_at(end);
    *bytes = &rest[2..];
    assert_eq!(line[0], mark);
    std::str::from_utf8(&line[1..]).unwrap().parse().unwrap()
}

fn word<'b>(bytes: &mut &'b [u8]) -> &'b [u8] {
    let len = head(bytes, b'$');
    let (word, rest) = bytes.split_at(len);
    *bytes = rest.strip_prefix(b"\r\n").unwrap();
    word
}

#[test]
fn random_keys_are_rebuilt() {
    for seed in 0..40 {
        let mut random = Random::seeded(0x9E37_79B9 * (seed + 1));
        let mut local = Local::new(Protocol::Resp2);
        let mut ids = vec!["0-1".to_owned()];
        for step in 0..400 {
            run_random(&mut local, &mut random, &mut ids);
            if step % 100 == 99 {
                let (made, expected) = (contents(&mut rebuilt(&local)), contents(&mut local));
                let only = |these: &[String], others: &[String]| -> Vec<String> {
                    these.iter().filter(|one| !others.contains(one)).cloned().collect()
                };
                assert!(
                    made == expected,
                    "seed {seed}: {:#?} instead of {:#?}",
                    only(&made, &expected),
                    only(&expected, &made)
                );
            }
        }
    }
}

#[test]
fn large_values_are_rebuilt_by_commands_of_64_elements() {
    let mut local = Local::new(Protocol::Resp2);
    let list = |command: &str, stride: usize| {
        (0..200).fold(command.to_owned(), |line, at| match stride {
            1 => format!("{line} e{at}"),
            _ => format!("{line} {at} e{at}"),
        })
    };
    for line in [list("RPUSH l", 1), list("SADD s", 1), list("ZADD z", 2), list("HSET h", 2)] {
        run(&mut local, &line);
        run(&mut local, &format!("PEXPIRE {} 100000", line.split(' ').nth(1).unwrap()));
    }
    run(&mut local, &format!("SETRANGE large 300000 {}", "x".repeat(100)));
    let mut copy = rebuilt(&local);
    assert_eq!(contents(&mut copy), contents(&mut local));
    let mut commands = Vec::new();
    let hash = local.keyspace.hash(b"h");
    let data = local.keyspace.lock(hash.shard());
    let entry = data.entry(0, data.find(0, hash, b"h").unwrap());
    write_commands(&mut commands, b"h", entry.into(), entry.expire_at_ms()).unwrap();
    let heads = |head: &[u8]| commands.windows(head.len()).filter(|window| *window == head).count();
    assert_eq!((heads(b"*130\r\n"), heads(b"*18\r\n"), heads(b"*3\r\n")), (3, 1, 1));
}

#[test]
fn streams_keep_pending_and_deleted_entries() {
    let prepare: &[&[&str]] = &[
        &["XGROUP CREATE s g 0 MKSTREAM"],
        &["XADD s 5-1 a 1", "XDEL s 5-1"],
        &["XADD s 5-1 a 1", "XTRIM s MAXLEN 0", "XGROUP CREATE s g 0"],
        &[
            "XADD s 1-1 a 1",
            "XADD s 2-1 a 1",
            "XADD s 3-1 b 2",
            "XADD s 4-1 b 2",
            "XADD s 5-1 b 2",
            "XGROUP CREATE s g 0",
            "XREADGROUP GROUP g c COUNT 4 STREAMS s >",
            "XREADGROUP GROUP g d STREAMS s >",
            "XGROUP CREATECONSUMER s g idle",
            "XDEL s 3-1",
            "XTRIM s MINID 2-1",
            "XDEL s 5-1",
            "XSETID s 9-9 ENTRIESADDED 77",
        ],
        &[
            "XADD s 1-1 a 1",
            "XADD s 2-1 a 1",
            "XGROUP CREATE s g 0",
            "XREADGROUP GROUP g c STREAMS s >",
            "XTRIM s MAXLEN 0",
        ],
    ];
    for lines in prepare {
        let mut local = Local::new(Protocol::Resp2);
        for line in *lines {
            let reply = run(&mut local, line);
            assert!(!reply.starts_with('-'), "{line}: {reply}");
        }
        let mut copy = rebuilt(&local);
        assert_eq!(contents(&mut copy), contents(&mut local), "{lines:?}");
        let pending = |local: &mut Local| run(local, "XPENDING s g - + 100");
        assert_eq!(pending(&mut copy), pending(&mut local), "{lines:?}");
    }
}
