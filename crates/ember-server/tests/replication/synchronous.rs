//! Writes that are acknowledged once replicas have them (synchronous replication).

use std::time::{Duration, Instant};

use ember_testkit::{RawClient, Server, Value, wait_until};

use crate::pairs::{ARGUMENTS, follow};
use crate::{MODES, start};

const TOO_FEW: &str = "NOREPLICAS Not enough good replicas to write.";

fn pair(mode: &[&str], of_replica: &[&str]) -> [Server; 2] {
    let replica = [&ARGUMENTS[..], of_replica].concat();
    let servers = [start(mode, &ARGUMENTS), start(mode, &replica)];
    follow(&mut servers[1].client(), &servers[0]);
    servers
}

/// Waits until a connection accepts writes, which needs healthy replicas.
fn wait_for_writes(client: &mut RawClient) {
    wait_until("writes are accepted", || client.run("SET probe 1") == Value::ok());
}

#[test]
fn the_replica_has_every_acknowledged_write() {
    for mode in MODES {
        let [primary, replica] = pair(mode, &[]);
        let (mut client, mut other) = (primary.client(), replica.client());
        assert_eq!(client.run("CONFIG SET sync-replicas 1"), Value::ok());
        wait_for_writes(&mut client);
        for number in 1..200 {
            assert_eq!(client.run("INCR n"), Value::Integer(number));
            assert_eq!(other.run("GET n").text(), number.to_string());
        }
        let calls: Vec<Vec<String>> =
            (0..100).map(|number| vec!["SET".to_owned(), format!("k{number}"), "v".to_owned()]).collect();
        client.pipeline(&calls).unwrap();
        assert_eq!(other.run("DBSIZE"), client.run("DBSIZE"));
        client.run("MULTI");
        client.run("RPUSH l a b");
        client.run("LPOP l");
        client.run("EXEC");
        assert_eq!(other.run("LLEN l"), Value::Integer(1));
        client.command(&[
            "EVAL",
            "redis.call('SET', KEYS[1], '1') return redis.call('INCR', KEYS[1])",
            "1",
            "s",
        ]);
        assert_eq!(other.run("GET s").text(), "2");
        // A blocked client that is served by another client's write receives its reply once the replica has that write.
        let mut waiting = primary.client();
        waiting.send_command(&["BLPOP", "queue", "0"]).unwrap();
        wait_until("the call waits", || client.info_number("blocked_clients") == 1);
        assert_eq!(client.run("RPUSH queue 1 2"), Value::Integer(2));
        waiting.read_value().unwrap();
        assert_eq!(other.run("LLEN queue"), Value::Integer(1));
    }
}

#[test]
fn without_replicas_no_write_is_accepted() {
    for mode in MODES {
        let server = start(mode, &ARGUMENTS);
        let mut client = server.client();
        client.run("SET k 1");
        assert_eq!(client.run("CONFIG SET sync-replicas 1"), Value::ok());
        wait_until("writes are refused", || client.run("SET k 2").text() == TOO_FEW);
        for line in ["SET k 2", "DEL k", "FLUSHALL", "RPUSH l 1", "BLPOP l 1"] {
            assert_eq!(client.run(line).text(), TOO_FEW, "{line}");
        }
        let pipeline: Vec<Vec<&str>> = (0..50).map(|_| vec!["SET", "k", "2"]).collect();
        assert!(client.pipeline(&pipeline).unwrap().iter().all(|reply| reply.text() == TOO_FEW));
        let error = client.command(&["EVAL", "return redis.call('SET', KEYS[1], '2')", "1", "k"]).text();
        assert!(error.starts_with(TOO_FEW), "{error}");
        let script = "#!lua\nreturn redis.call('SET', KEYS[1], '2')";
        assert_eq!(client.command(&["EVAL", script, "1", "k"]).text(), TOO_FEW);
        assert_eq!(client.run("GET k").text(), "1");
        // One connection may require no replicas, and another more than the default.
        assert_eq!(client.run("CLIENT SYNC-REPLICAS 0"), Value::ok());
        assert_eq!(client.run("SET k 3"), Value::ok());
        assert_eq!(client.run("CLIENT SYNC-REPLICAS DEFAULT"), Value::ok());
        assert_eq!(client.run("SET k 4").text(), TOO_FEW);
        assert_eq!(client.run("CONFIG SET sync-replicas 0"), Value::ok());
        wait_for_writes(&mut client);
        assert_eq!(client.run("CLIENT SYNC-REPLICAS 2"), Value::ok());
        assert_eq!(client.run("SET k 5").text(), TOO_FEW);
        assert_eq!(server.client().run("SET k 6"), Value::ok());
        assert_eq!(client.run("RESET").text(), "RESET");
        assert_eq!(client.run("SET k 7"), Value::ok());
        for wrong in ["5", "-1", "x"] {
            assert!(client.run(&format!("CLIENT SYNC-REPLICAS {wrong}")).is_error());
        }
    }
}

#[test]
fn one_replica_does_not_satisfy_two() {
    for mode in MODES {
        let [primary, _replica] = pair(mode, &[]);
        let mut client = primary.client();
        assert_eq!(client.run("CLIENT SYNC-REPLICAS 2"), Value::ok());
        assert_eq!(client.run("SET k 1").text(), TOO_FEW);
        assert_eq!(client.run("EXISTS k"), Value::Integer(0));
        let second = start(mode, &ARGUMENTS);
        follow(&mut second.client(), &primary);
        wait_for_writes(&mut client);
        assert_eq!(client.run("SET k 1"), Value::ok());
        assert_eq!(second.client().run("GET k").text(), "1");
    }
}

#[test]
fn clients_are_disconnected_when_a_replica_does_not_confirm() {
    for mode in MODES {
        let [primary, replica] = pair(mode, &[]);
        let mut client = primary.client();
        assert_eq!(client.run("CONFIG SET sync-timeout 500"), Value::ok());
        assert_eq!(client.run("CLIENT SYNC-REPLICAS 1"), Value::ok());
        wait_for_writes(&mut client);
        replica.signal("STOP");
        let begun = Instant::now();
        client.send_command(&["SET", "k", "1"]).unwrap();
        // Clients that do not require replicas receive a reply.
        assert_eq!(primary.client().run("SET other 1"), Value::ok());
        assert_eq!(client.read_to_close().unwrap(), b"");
        assert!(begun.elapsed() >= Duration::from_millis(500));
        // No client received the outcome of the write.
        assert_eq!(primary.client().run("GET k").text(), "1");
        assert!(primary.log().contains("too few replicas have confirmed its writes"));
        replica.signal("CONT");
    }
}

#[test]
fn held_replies_are_sent_when_fewer_replicas_are_required() {
    for mode in MODES {
        let [primary, replica] = pair(mode, &[]);
        let (mut client, mut other) = (primary.client(), primary.client());
        assert_eq!(client.run("CONFIG SET sync-replicas 1 sync-timeout 60000"), Value::ok());
        wait_for_writes(&mut client);
        replica.signal("STOP");
        client.send_command(&["INCR", "k"]).unwrap();
        wait_until("the replica has the write", || other.run("GET k").text() == "1");
        assert_eq!(other.run("CONFIG SET sync-replicas 0"), Value::ok());
        assert_eq!(client.read_value().unwrap(), Value::Integer(1));
        replica.signal("CONT");
    }
}

#[test]
fn disks_of_replicas_count_with_sync_level_disk() {
    for mode in MODES {
        for policy in ["always", "everysec"] {
            let [primary, replica] = pair(mode, &["--appendfsync", policy]);
            let (mut client, mut other) = (primary.client(), replica.client());
            assert_eq!(
                client.run("CONFIG SET sync-replicas 1 sync-level disk sync-timeout 700"),
                Value::ok()
            );
            wait_until("the parameters take effect", || {
                client = primary.client();
                // Until the parameters take effect, the replies are sent before the connection is closed.
                client.send_command(&["INCR", "n"]).unwrap();
                client.send_command(&["QUIT"]).unwrap();
                client.read_to_close().is_ok_and(|bytes| bytes.is_empty())
            });
            assert_eq!(other.run("CONFIG SET appendonly yes"), Value::ok());
            wait_until("the file is complete", || other.info("aof_rewrite_in_progress") == "0");
            let mut client = primary.client();
            assert_eq!(client.run("CONFIG SET sync-timeout 60000"), Value::ok());
            for number in 0..5 {
                assert_eq!(client.run(&format!("SET k {number}")), Value::ok());
            }
            assert_eq!(client.run("WAITAOF 0 1 0"), Value::Array(vec![Value::Integer(0), Value::Integer(1)]));
            drop(other);
            let directory = replica.crash();
            let again = Server::builder(crate::program())
                .arguments(mode)
                .arguments(&["--appendonly", "yes"])
                .directory(&directory)
                .start();
            assert_eq!(again.client().run("GET k").text(), "4");
            drop(again);
            std::fs::remove_dir_all(directory).unwrap();
        }
    }
}
