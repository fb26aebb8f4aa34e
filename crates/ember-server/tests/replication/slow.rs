//! Replicas that are slower than the writes, temporarily or permanently: they use no additional memory of the primary,
//! and resume as long as the missing part of the stream fits in the limit on disk.

use std::fs;

use ember_testkit::{RawClient, Server, Value, wait_until};

use crate::pairs::{ARGUMENTS, assert_same, follow};
use crate::{MODES, program, start};

/// Starts a primary that stores 1 MiB of the stream in memory and `spill` on the disk, and its replica.
fn pair(mode: &[&str], spill: &str) -> [Server; 2] {
    let kept = ["--repl-backlog-size", "1mb", "--repl-backlog-spill", spill, "--save", ""];
    let servers = [start(mode, &[&ARGUMENTS[..], &kept].concat()), start(mode, &ARGUMENTS)];
    follow(&mut servers[1].client(), &servers[0]);
    servers
}

/// Overwrites a few keys with this number of MiB.
fn write(client: &mut RawClient, megabytes: usize) {
    let value = "x".repeat(64 * 1024);
    for number in 0..megabytes * 16 {
        assert_eq!(client.command(&["SET", &format!("key:{}", number % 8), &value]), Value::ok());
    }
}

fn files_of(server: &Server) -> u64 {
    let files = std::fs::read_dir(format!("/proc/{}/fd", server.pid())).unwrap();
    let targets = files.filter_map(|file| std::fs::read_link(file.unwrap().path()).ok());
    targets.filter(|target| target.to_string_lossy().contains("temp-repl-")).count() as u64
}

#[test]
fn a_replica_that_stops_reading_resumes_from_the_disk() {
    for mode in MODES {
        let [primary, replica] = pair(mode, "1gb");
        let [mut one, mut other] = [primary.client(), replica.client()];
        replica.signal("STOP");
        write(&mut one, 80);
        assert!(one.info_number("mem_replication_backlog") < 3 << 20);
        assert!(one.info_number("repl_backlog_spilled_bytes") > 60 << 20);
        assert!(files_of(&primary) >= 1);
        replica.signal("CONT");
        assert_same(&mut one, &mut other);
        assert_eq!((one.info("sync_full"), one.info("sync_partial_ok")), ("1".into(), "0".into()));
        // No replica needs the stream on the disk any more.
        wait_until("the disk space is freed", || {
            write(&mut one, 1);
            one.info_number("repl_backlog_spilled_bytes") == 0 && files_of(&primary) == 0
        });
    }
}

#[test]
fn with_encryption_at_rest_the_spilled_stream_is_encrypted() {
    const KEY: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
    for mode in MODES {
        let kept = ["--repl-backlog-size", "1mb", "--repl-backlog-spill", "1gb", "--save", ""];
        let builder = Server::builder(program()).arguments(mode).arguments(&ARGUMENTS).arguments(&kept);
        let primary = builder.environment("EMBER_ENCRYPTION_KEY", KEY).start();
        let replica = start(mode, &ARGUMENTS);
        let [mut one, mut other] = [primary.client(), replica.client()];
        follow(&mut other, &primary);
        replica.signal("STOP");
        write(&mut one, 80);
        assert!(one.info_number("mem_replication_backlog") < 3 << 20);
        assert!(one.info_number("repl_backlog_spilled_bytes") > 60 << 20);
        let files: Vec<_> = fs::read_dir(format!("/proc/{}/fd", primary.pid()))
            .unwrap()
            .map(|file| file.unwrap().path())
            .filter(|path| fs::read_link(path).is_ok_and(|to| to.to_string_lossy().contains("temp-repl-")))
            .collect();
        assert!(!files.is_empty());
        for file in files {
            let bytes = fs::read(file).unwrap();
            assert!(bytes.len() > 1 << 20 && !bytes.windows(8).any(|part| part == b"xxxxxxxx"));
        }
        replica.signal("CONT");
        assert_same(&mut one, &mut other);
        assert_eq!((one.info("sync_full"), one.info("sync_partial_ok")), ("1".into(), "0".into()));
    }
}

#[test]
fn a_disconnected_replica_resumes_from_the_disk() {
    for mode in MODES {
        let [primary, replica] = pair(mode, "1gb");
        let [mut one, mut other] = [primary.client(), replica.client()];
        write(&mut one, 1);
        assert_same(&mut one, &mut other);
        replica.signal("STOP");
        assert_eq!(one.run("CLIENT KILL TYPE replica"), Value::Integer(1));
        wait_until("the replica is disconnected", || one.info_number("connected_slaves") == 0);
        write(&mut one, 70);
        assert!(one.info_number("repl_backlog_spilled_bytes") > 60 << 20);
        replica.signal("CONT");
        assert_same(&mut one, &mut other);
        assert_eq!((one.info("sync_full"), one.info("sync_partial_ok")), ("1".into(), "1".into()));
    }
}

#[test]
fn a_replica_that_is_too_slow_is_dropped_and_its_next_full_sync_delayed() {
    for mode in MODES {
        let [primary, replica] = pair(mode, "8mb");
        let mut one = primary.client();
        replica.signal("STOP");
        write(&mut one, 150);
        wait_until("the replica is dropped", || one.info_number("connected_slaves") == 0);
        assert!(one.info_number("repl_backlog_spilled_bytes") <= 80 << 20);
        replica.signal("CONT");
        wait_until("its log has it", || {
            replica.log().contains("This replica was too slow: its next full sync starts in")
        });
        assert_eq!(one.info("sync_full"), "1");
        assert!(primary.log().contains("lags by more than repl-backlog-size and repl-backlog-spill"));
        let mut other = replica.client();
        wait_until("the replica receives its full sync", || other.info("master_link_status") == "up");
        assert_same(&mut one, &mut other);
        assert_eq!(one.info("sync_full"), "2");
    }
}
