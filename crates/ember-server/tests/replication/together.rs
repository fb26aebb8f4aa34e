//! A replica applies its primary's commands on all cores: the commands of each key in order, each unit atomically, and
//! with exact offsets.

use std::ops::Range;

use ember_testkit::{Directory, Random, RawClient, Value, encode, wait_until};

use crate::pairs::{self, assert_same, follow};
use crate::primary::{Link, Primary};
use crate::resuming::{end, start_in};
use crate::{linked, replicaof, start, wait_for_offset};

/// Both execution modes, each with four workers.
const MODES: [&[&str]; 2] =
    [&["--concurrent", "yes", "--shards", "4"], &["--concurrent", "no", "--shards", "4"]];

const PARALLEL: [&str; 4] = ["--enable-debug-command", "yes", "--replica-apply", "parallel"];

const SERIAL: [&str; 4] = ["--enable-debug-command", "yes", "--replica-apply", "serial"];

/// Returns commands as a primary sends them: many on keys that depend on each other, some in units, and some that only
/// one worker can apply.
fn stream(random: &mut Random, numbers: Range<usize>) -> Vec<String> {
    let mut lines = vec!["SELECT 0".to_owned()];
    let mut is_open = false;
    for number in numbers {
        let key = |random: &mut Random| random.below(60).to_string();
        let (one, other) = (key(random), key(random));
        lines.push(match random.below(100) {
            0..30 => format!("INCR n{one}"),
            30..45 => format!("RPUSH l{one} {number}"),
            45..50 => format!("LMOVE l{one} l{other} LEFT RIGHT"),
            50..60 => format!("APPEND s{one} {number},"),
            60..65 => format!("MSET s{one} {number} s{other} {number} t{other} {number}"),
            65..70 => format!("SADD set{one} {number}"),
            70..73 => format!("SUNIONSTORE set{one} set{one} set{other}"),
            73..76 => format!("HSET h{one} f {number} g {one}"),
            76..80 => format!("COPY s{one} t{other} REPLACE"),
            80..84 => format!("DEL s{one} t{other} set{other}"),
            84..88 => format!("XADD x{one} {}-1 f {number}", number + 1),
            88..90 => format!("SELECT {}", random.below(3)),
            90..92 => "PING".to_owned(),
            92..99 if is_open => {
                is_open = false;
                "EXEC".to_owned()
            }
            92..98 => {
                is_open = true;
                "MULTI".to_owned()
            }
            _ if is_open || number % 7 != 0 => format!("PERSIST n{one}"),
            _ => "SWAPDB 1 2".to_owned(),
        });
    }
    if is_open {
        lines.push("EXEC".to_owned());
    }
    lines
}

fn encoded(line: &str) -> Vec<u8> {
    encode(&line.split(' ').collect::<Vec<_>>())
}

fn send_all(link: &mut Link, lines: &[String]) {
    let bytes: Vec<u8> = lines.iter().flat_map(|line| encoded(line)).collect();
    link.offset += bytes.len() as u64;
    link.send(&bytes);
}

fn assert_equal(one: &mut RawClient, other: &mut RawClient) {
    for database in 0..3 {
        let select = format!("SELECT {database}");
        one.run(&select);
        other.run(&select);
        for line in ["DBSIZE", "DEBUG DIGEST"] {
            assert_eq!(one.run(line), other.run(line), "database {database}: {line}");
        }
    }
}

#[test]
fn many_workers_apply_the_same_data_as_one() {
    for mode in MODES {
        let (parallel, _primary, mut link) = linked(mode, &PARALLEL, &[]);
        let (serial, _other_primary, mut other_link) = linked(mode, &SERIAL, &[]);
        let [mut one, mut other] = [parallel.client(), serial.client()];
        let mut random = Random::new(16);
        for part in 0..6 {
            let lines = stream(&mut random, part * 5000..(part + 1) * 5000);
            send_all(&mut link, &lines);
            send_all(&mut other_link, &lines);
            wait_for_offset(&mut one, link.offset);
            wait_for_offset(&mut other, other_link.offset);
            assert_equal(&mut one, &mut other);
        }
        assert!(one.info_number("ember_applied_in_parallel") > 10_000);
        assert_eq!(other.info_number("ember_applied_in_parallel"), 0);
        for client in [&mut one, &mut other] {
            assert_eq!(client.info("master_link_status"), "up");
        }
    }
}

#[test]
fn files_and_replicas_of_a_replica_have_its_data() {
    for mode in MODES {
        let (directory, primary) = (Directory::new("together"), Primary::new());
        let of = format!("127.0.0.1 {}", primary.port());
        let keeping =
            ["--appendonly", "yes", "--save", "", "--replicaof", &of, "--repl-diskless-sync-delay", "0"];
        let arguments = [mode, &PARALLEL[..], &keeping];
        let mut server = start_in(&directory, None, &arguments);
        let mut link = primary.accept();
        link.copy(0, &[]);
        let mut client = server.client();
        wait_until("the link is up", || client.info("master_link_status") == "up");
        wait_until("its file is complete", || {
            client.info("aof_enabled") == "1" && client.info("aof_rewrite_in_progress") == "0"
        });
        let mut random = Random::new(17);
        send_all(&mut link, &stream(&mut random, 0..5000));
        let chained = start(mode, &pairs::ARGUMENTS);
        let mut last = chained.client();
        replicaof(&mut last, server.port());
        for part in 1..5 {
            send_all(&mut link, &stream(&mut random, part * 5000..(part + 1) * 5000));
        }
        wait_for_offset(&mut client, link.offset);
        assert!(client.info_number("ember_applied_in_parallel") > 5000);
        wait_until("the last has the stream", || last.info("slave_repl_offset") == link.offset.to_string());
        assert_eq!(last.info("master_replid"), client.info("master_replid"));
        assert_equal(&mut client, &mut last);
        // The writes that the replica acknowledges as durable are on its disk.
        link.write("REPLCONF GETACK *");
        let asked = link.offset;
        assert_eq!(link.acknowledged(asked), asked);
        client.run("SELECT 0");
        let digest = client.run("DEBUG DIGEST");
        end(&mut server, "SHUTDOWN");
        let server = start_in(&directory, None, &arguments);
        let mut again = primary.accept();
        assert_eq!(again.read_handshake()[2], (asked + 1).to_string());
        assert_eq!(server.client().run("DEBUG DIGEST"), digest);
    }
}

/// Returns unit `number`. All units have the same length; each changes two keys of different workers and one key that
/// all units change.
fn unit(number: usize) -> Vec<String> {
    let key = number % 50;
    vec![
        "MULTI".to_owned(),
        format!("INCR a{key:02}"),
        format!("INCR b{key:02}"),
        "INCR all".to_owned(),
        "EXEC".to_owned(),
    ]
}

fn unit_bytes() -> u64 {
    unit(0).iter().map(|line| encoded(line).len() as u64).sum()
}

/// Asserts that a server has applied exactly the units before an offset.
fn assert_prefix(client: &mut RawClient, offset: u64, begun: u64) {
    assert_eq!((offset - begun) % unit_bytes(), 0, "the offset is between two units");
    let units = (offset - begun) / unit_bytes();
    let number =
        |client: &mut RawClient, key: &str| client.run(&format!("GET {key}")).text().parse().unwrap_or(0);
    assert_eq!(number(client, "all"), units);
    for key in 0..50 {
        let wanted = units / 50 + u64::from(units % 50 > key);
        assert_eq!(number(client, &format!("a{key:02}")), wanted);
        assert_eq!(number(client, &format!("b{key:02}")), wanted);
    }
}

#[test]
fn a_role_change_meets_a_prefix_of_the_history() {
    for mode in MODES {
        for round in 0..6 {
            let (server, _primary, mut link) = linked(mode, &PARALLEL, &[]);
            link.write("SELECT 0");
            let begun = link.offset;
            let mut client = server.client();
            let mut numbers = 0..;
            let mut send = |link: &mut Link, units: usize| {
                let lines: Vec<String> = numbers.by_ref().take(units).flat_map(unit).collect();
                send_all(link, &lines);
            };
            send(&mut link, 2000);
            if round % 2 == 0 {
                send(&mut link, 3000 * round);
            }
            wait_until("some units are applied", || client.info_number("slave_repl_offset") > begun);
            assert_eq!(client.run("REPLICAOF NO ONE"), Value::ok());
            let offset = client.info_number("master_repl_offset");
            assert!(offset <= link.offset);
            assert_prefix(&mut client, offset, begun);
        }
    }
}

#[test]
fn a_snapshot_during_parallel_apply_records_its_position() {
    for mode in MODES {
        let (directory, primary) = (Directory::new("together-snapshot"), Primary::new());
        let of = format!("127.0.0.1 {}", primary.port());
        let arguments = [mode, &PARALLEL[..], &["--save", "", "--replicaof", &of]];
        let server = start_in(&directory, None, &arguments);
        let mut link = primary.accept();
        link.copy(0, &[]);
        link.write("SELECT 0");
        let begun = link.offset;
        let mut client = server.client();
        wait_for_offset(&mut client, begun);
        let lines: Vec<String> = (0..20_000).flat_map(unit).collect();
        send_all(&mut link, &lines);
        wait_until("some units are applied", || client.info_number("slave_repl_offset") > begun);
        client.run("BGSAVE");
        wait_until("the snapshot is saved", || client.info_number("rdb_bgsave_in_progress") == 0);
        server.crash();
        let server = start_in(&directory, None, &arguments);
        let mut again = primary.accept();
        let offset = again.read_handshake()[2].parse::<u64>().unwrap() - 1;
        assert!(offset > begun);
        assert_prefix(&mut server.client(), offset, begun);
    }
}

#[test]
fn commands_that_cannot_be_applied_stop_the_link_and_are_logged() {
    for mode in MODES {
        let (server, _primary, mut link) = linked(mode, &PARALLEL, &[]);
        link.write("SELECT 0");
        link.write("SET text hello");
        let begun = link.offset;
        let mut lines: Vec<String> = (0..2000).map(|number| format!("INCR n{number}")).collect();
        lines.insert(1500, "INCR text".to_owned());
        let before: usize = lines[..1500].iter().map(|line| encoded(line).len()).sum();
        send_all(&mut link, &lines);
        link.wait_for_close();
        let mut client = server.client();
        let at = begun + before as u64;
        wait_until("INFO reports it", || {
            let expected = format!("command 'INCR' at offset {at} is not applied");
            client.run("INFO replication").text().contains(&expected)
        });
        assert_eq!(client.info("master_link_status"), "down");
    }
}

#[test]
fn readers_see_whole_units_while_they_are_applied() {
    for mode in MODES {
        let (server, _primary, mut link) = linked(mode, &PARALLEL, &[]);
        link.write("SELECT 0");
        let mut client = server.client();
        let lines: Vec<String> = (0..20_000).flat_map(unit).collect();
        send_all(&mut link, &lines);
        let mut looked = 0;
        loop {
            for key in 0..50 {
                let both = client.run(&format!("MGET a{key:02} b{key:02}"));
                let both = both.elements().unwrap();
                assert_eq!(both[0], both[1]);
                looked += 1;
            }
            if client.info_number("slave_repl_offset") == link.offset {
                break;
            }
        }
        assert!(looked > 0 && client.info_number("ember_applied_in_parallel") > 10_000);
    }
}

#[test]
fn replica_apply_can_be_changed_while_the_link_runs() {
    for mode in MODES {
        let servers = [start(mode, &pairs::ARGUMENTS), start(mode, &pairs::ARGUMENTS)];
        let [mut one, mut other] = [servers[0].client(), servers[1].client()];
        follow(&mut other, &servers[0]);
        for way in ["serial", "parallel", "serial"] {
            assert_eq!(other.run(&format!("CONFIG SET replica-apply {way}")), Value::ok());
            let calls: Vec<Vec<String>> = (0..5000)
                .map(|number| {
                    vec!["APPEND".to_owned(), format!("key{}", number % 999), format!("{way}{number}")]
                })
                .collect();
            one.pipeline(&calls).unwrap();
            assert_same(&mut one, &mut other);
        }
    }
}
