//! Servers that are restarted: every server that has all data resumes at its offset, without a full sync.

use std::time::{Duration, Instant};

use ember_testkit::{Directory, RawClient, Server, Value, wait_until};

use crate::pairs::{ARGUMENTS, assert_same, follow};
use crate::{MODES, program, replicaof, start};

/// The arguments for each way to persist data.
const KEEPING: [&[&str]; 2] =
    [&["--save", "3600 1", "--appendonly", "no"], &["--save", "", "--appendonly", "yes"]];

pub(crate) fn start_in(directory: &Directory, port: Option<u16>, arguments: &[&[&str]]) -> Server {
    let mut builder = Server::builder(program()).directory(&directory.0);
    for arguments in arguments {
        builder = builder.arguments(arguments);
    }
    match port {
        Some(port) => builder.port(port).start(),
        None => builder.start(),
    }
}

pub(crate) fn end(server: &mut Server, how: &str) {
    server.client().send(format!("{how}\r\n").as_bytes()).unwrap();
    assert!(server.wait().success(), "{}", server.log());
}

fn fill(client: &mut RawClient) {
    let keys: Vec<Vec<String>> =
        (0..1000).map(|number| vec!["SET".to_owned(), format!("key:{number}"), "x".repeat(100)]).collect();
    client.pipeline(&keys).unwrap();
    client.run("SELECT 3");
    for number in 0..100 {
        client.run(&format!("RPUSH l {number}"));
    }
    // This key has expired when it is loaded again; replicas that have the key must receive its removal.
    client.run("SET short 1 PX 200");
    client.run("SELECT 0");
}

#[test]
fn a_restarted_replica_resumes() {
    for (mode, keeping) in MODES.iter().flat_map(|mode| KEEPING.map(|keeping| (mode, keeping))) {
        let directory = Directory::new("resuming-replica");
        let primary = start(mode, &ARGUMENTS);
        let mut one = primary.client();
        fill(&mut one);
        let of = format!("127.0.0.1 {}", primary.port());
        let arguments = [*mode, &ARGUMENTS, keeping, &["--replicaof", &of]];
        let mut replica = start_in(&directory, None, &arguments);
        let mut other = replica.client();
        wait_until("the link is up", || other.info("master_link_status") == "up");
        one.run("SELECT 5");
        one.run("INCR n");
        assert_same(&mut one, &mut other);
        if keeping.contains(&"yes") {
            wait_until("the file has all writes", || {
                other.info("aof_enabled") == "1" && other.info("aof_rewrite_in_progress") == "0"
            });
        }
        end(&mut replica, "SHUTDOWN");
        one.run("INCR n");
        let replica = start_in(&directory, None, &arguments);
        let mut other = replica.client();
        wait_until("the link is up", || other.info("master_link_status") == "up");
        assert_same(&mut one, &mut other);
        assert_eq!(
            (one.info("sync_full"), one.info("sync_partial_ok")),
            ("1".into(), "1".into()),
            "{keeping:?}"
        );
    }
}

#[test]
fn replicas_of_a_restarted_primary_resume() {
    for (mode, keeping) in MODES.iter().flat_map(|mode| KEEPING.map(|keeping| (mode, keeping))) {
        let directory = Directory::new("resuming-primary");
        let arguments = [*mode, &ARGUMENTS, keeping];
        let mut primary = start_in(&directory, None, &arguments);
        let port = primary.port();
        let replica = start(mode, &ARGUMENTS);
        let mut other = replica.client();
        follow(&mut other, &primary);
        fill(&mut primary.client());
        end(&mut primary, "SHUTDOWN");
        let primary = start_in(&directory, Some(port), &arguments);
        let mut one = primary.client();
        wait_until("the link is up", || other.info("master_link_status") == "up");
        one.run("INCR n");
        wait_until("the expired key is removed on both", || {
            one.run("SELECT 3");
            other.run("SELECT 3");
            one.run("DBSIZE") == Value::Integer(1) && other.run("DBSIZE") == Value::Integer(1)
        });
        assert_same(&mut one, &mut other);
        assert_eq!(
            (one.info("sync_full"), one.info("sync_partial_ok")),
            ("0".into(), "1".into()),
            "{keeping:?}"
        );
        assert!(one.info_number("second_repl_offset") > 1);
    }
}

#[test]
fn after_a_crash_no_replica_resumes_with_lost_writes() {
    for (mode, keeping) in MODES.iter().flat_map(|mode| KEEPING.map(|keeping| (mode, keeping))) {
        let directory = Directory::new("resuming-crash");
        let arguments = [*mode, &ARGUMENTS, keeping];
        let mut primary = start_in(&directory, None, &arguments);
        let port = primary.port();
        let replica = start(mode, &ARGUMENTS);
        let mut other = replica.client();
        follow(&mut other, &primary);
        fill(&mut primary.client());
        end(&mut primary, "SHUTDOWN");
        let primary = start_in(&directory, Some(port), &arguments);
        wait_until("the link is up", || other.info("master_link_status") == "up");
        let mut one = primary.client();
        one.run("SET lost 1");
        assert_same(&mut one, &mut other);
        // The primary is killed.
        drop(primary);
        let primary = start_in(&directory, Some(port), &arguments);
        let mut one = primary.client();
        wait_until("the link is up", || other.info("master_link_status") == "up");
        assert_same(&mut one, &mut other);
        assert_eq!(one.info("sync_full"), "1", "{keeping:?}");
    }
}

#[test]
fn a_shutdown_that_does_not_wait_adds_nothing_to_the_stream() {
    for mode in MODES {
        let directory = Directory::new("resuming-silent");
        let arguments = [mode, &ARGUMENTS, KEEPING[0], &["--repl-ping-replica-period", "3600"]];
        let mut primary = start_in(&directory, None, &arguments);
        let port = primary.port();
        let replica = start(mode, &ARGUMENTS);
        let mut other = replica.client();
        follow(&mut other, &primary);
        primary.client().run("SET k 1");
        for how in ["SHUTDOWN NOW", "SHUTDOWN"] {
            let mut one = primary.client();
            wait_until("the replica has confirmed all writes", || {
                let offset = one.info("master_repl_offset");
                one.info("slave0").contains(&format!(",offset={offset},"))
            });
            let offset = one.info_number("master_repl_offset");
            end(&mut primary, how);
            primary = start_in(&directory, Some(port), &arguments);
            let mut one = primary.client();
            let offsets = ["master_repl_offset", "second_repl_offset"].map(|name| one.info_number(name));
            assert_eq!(offsets, [offset, offset + 1], "{how}");
            wait_until("the link is up", || other.info("master_link_status") == "up");
            let counts = ["sync_full", "sync_partial_ok"].map(|name| one.info_number(name));
            assert_eq!(counts, [0, 1], "{how}\n{}{}", primary.log(), replica.log());
        }
    }
}

#[test]
fn a_shutdown_waits_for_replicas() {
    for mode in MODES {
        let servers = [&["--save", ""][..], &[]].map(|more| start(mode, &[&ARGUMENTS, more].concat()));
        let [mut one, mut other] = [servers[0].client(), servers[1].client()];
        follow(&mut other, &servers[0]);
        let [mut primary, replica] = servers;
        // The replica reads nothing.
        replica.signal("STOP");
        one.run("SET k 1");
        let mut asks = primary.client();
        asks.send(b"SHUTDOWN NOSAVE\r\n").unwrap();
        wait_until("the shutdown waits", || one.info("paused_reason") == "shutdown_in_progress");
        assert!(one.info_number("shutdown_in_milliseconds") <= 10_000);
        // No write runs while the server waits for the replica, and the shutdown can be aborted.
        let mut writes = primary.client();
        writes.send(b"SET k 2\r\n").unwrap();
        assert_eq!(one.run("GET k").text(), "1");
        assert_eq!(one.run("SHUTDOWN ABORT"), Value::ok());
        assert_eq!(asks.read_value().unwrap().text(), "ERR Errors trying to SHUTDOWN. Check logs.");
        assert_eq!(writes.read_value().unwrap(), Value::ok());
        assert_eq!(one.run("SHUTDOWN ABORT").text(), "ERR No shutdown in progress.");
        asks.send(b"SHUTDOWN\r\n").unwrap();
        wait_until("the shutdown waits", || one.info("paused_reason") == "shutdown_in_progress");
        replica.signal("CONT");
        assert!(primary.wait().success(), "{}", primary.log());
        assert_eq!(other.run("GET k").text(), "2");
        let log = primary.log();
        assert!(log.contains("Shutdown manually aborted"), "{log}");
        assert!(log.contains("1 of 1 replicas are in sync when shutting down"), "{log}");
        assert!(!log.contains("Lagging replica"), "{log}");
    }
}

#[test]
fn a_shutdown_waits_at_most_for_its_timeout() {
    for mode in MODES {
        for (how, timeout) in [("SHUTDOWN NOW", "60"), ("SHUTDOWN", "1"), ("SHUTDOWN", "0")] {
            let arguments = [&ARGUMENTS[..], &["--save", "", "--shutdown-timeout", timeout]].concat();
            let servers = [start(mode, &arguments), start(mode, &ARGUMENTS)];
            follow(&mut servers[1].client(), &servers[0]);
            let [mut primary, replica] = servers;
            replica.signal("STOP");
            primary.client().run("SET k 1");
            let begun = Instant::now();
            end(&mut primary, how);
            assert!(begun.elapsed() < Duration::from_secs(20), "{how} {timeout}");
            let log = primary.log();
            assert!(log.contains("0 of 1 replicas are in sync when shutting down"), "{log}");
            assert!(log.contains("Lagging replica 127.0.0.1:"), "{log}");
            replica.signal("CONT");
        }
    }
}

#[test]
fn a_shutdown_that_cannot_save_is_aborted() {
    for mode in MODES {
        let directory = Directory::new("resuming-unsaved");
        let mut primary =
            start_in(&directory, None, &[mode, &ARGUMENTS, &["--save", "3600 1", "--appendonly", "no"]]);
        let replica = start(mode, &ARGUMENTS);
        let (mut one, mut other) = (primary.client(), replica.client());
        follow(&mut other, &primary);
        one.run("SET k 1");
        // A directory with the name of the RDB file prevents the save.
        std::fs::create_dir_all(directory.0.join("dump.rdb").join("x")).unwrap();
        assert_eq!(one.run("SHUTDOWN").text(), "ERR Errors trying to SHUTDOWN. Check logs.");
        assert_eq!(one.run("SET k 2"), Value::ok());
        assert_same(&mut one, &mut other);
        end(&mut primary, "SHUTDOWN FORCE");
    }
}

#[test]
fn a_chain_resumes_when_its_middle_was_restarted() {
    for mode in MODES {
        let directory = Directory::new("resuming-chain");
        let (first, last) = (start(mode, &ARGUMENTS), start(mode, &ARGUMENTS));
        let of = format!("127.0.0.1 {}", first.port());
        let arguments = [mode, &ARGUMENTS[..], &["--save", "3600 1", "--replicaof", &of]];
        let mut middle = start_in(&directory, None, &arguments);
        let (port, mut end_of_chain) = (middle.port(), last.client());
        wait_until("the link is up", || middle.client().info("master_link_status") == "up");
        replicaof(&mut end_of_chain, port);
        wait_until("the link is up", || end_of_chain.info("master_link_status") == "up");
        let mut one = first.client();
        fill(&mut one);
        end(&mut middle, "SHUTDOWN");
        one.run("INCR n");
        let middle = start_in(&directory, Some(port), &arguments);
        wait_until("the link is up", || end_of_chain.info("master_link_status") == "up");
        assert_same(&mut one, &mut end_of_chain);
        let mut two = middle.client();
        assert_eq!((two.info("sync_full"), two.info("sync_partial_ok")), ("0".into(), "1".into()));
        assert_eq!((one.info("sync_full"), one.info("sync_partial_ok")), ("1".into(), "1".into()));
    }
}

#[test]
fn a_restarted_primary_follows_its_successor() {
    for (mode, keeping) in MODES.iter().flat_map(|mode| KEEPING.map(|keeping| (mode, keeping))) {
        let directory = Directory::new("resuming-demoted");
        let arguments = [*mode, &ARGUMENTS, keeping];
        let mut old = start_in(&directory, None, &arguments);
        let new = start(mode, &ARGUMENTS);
        let mut other = new.client();
        follow(&mut other, &old);
        fill(&mut old.client());
        // The removal of a key that expires after the restart would be part of the stream.
        let mut client = old.client();
        client.run("SELECT 3");
        client.run("PERSIST short");
        end(&mut old, "SHUTDOWN");
        assert_eq!(other.run("REPLICAOF NO ONE"), Value::ok());
        assert_eq!(other.run("SET new 1"), Value::ok());
        // The old primary starts as a primary and then becomes a replica, as with Sentinel.
        let old = start_in(&directory, None, &arguments);
        let mut one = old.client();
        follow(&mut one, &new);
        assert_same(&mut other, &mut one);
        assert_eq!(
            (other.info("sync_full"), other.info("sync_partial_ok")),
            ("0".into(), "1".into()),
            "{keeping:?}\n{}\n{}",
            new.log(),
            old.log()
        );
    }
}
