//! FAILOVER between servers of this program, and its errors.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use ember_testkit::{OnDrop, RawClient, Server, Value, wait_until};

use crate::pairs::{ARGUMENTS, assert_same, follow};
use crate::primary::{ID, Primary};
use crate::{MODES, PATIENCE, link, replicaof, start};

fn pair(mode: &[&str]) -> [Server; 2] {
    let servers = [start(mode, &ARGUMENTS), start(mode, &ARGUMENTS)];
    servers[0].client().run("DEBUG POPULATE 1000 key 10");
    follow(&mut servers[1].client(), &servers[0]);
    servers
}

fn state(client: &mut RawClient) -> String {
    client.info("master_failover_state")
}

#[test]
fn roles_are_exchanged_without_a_full_sync() {
    for mode in MODES {
        let servers = pair(mode);
        let [mut one, mut other] = [servers[0].client(), servers[1].client()];
        for (number, target) in [(1, ""), (2, " TO 127.0.0.1 "), (3, ""), (4, " TO 127.0.0.1 ")] {
            let (from, to) = if number % 2 == 1 { (&mut one, &mut other) } else { (&mut other, &mut one) };
            from.run("SELECT 3");
            assert_eq!(from.run("INCR rounds"), Value::Integer(number));
            let port = servers[usize::from(number % 2 == 1)].port();
            let line =
                if target.is_empty() { "FAILOVER".to_owned() } else { format!("FAILOVER{target}{port}") };
            assert_eq!(from.run(&line), Value::ok());
            wait_until("the other one is the primary", || to.info("role") == "master");
            wait_until("the failover is over", || {
                state(from) == "no-failover" && from.info("master_link_status") == "up"
            });
            assert!(from.run("SET k v").text().starts_with("READONLY"));
            assert_same(to, from);
        }
        for client in [&mut one, &mut other] {
            assert_eq!(client.run("GET rounds").text(), "4");
        }
        // The only full sync was the one at the beginning.
        let copies = one.info_number("sync_full") + other.info_number("sync_full");
        assert_eq!(copies, 1, "{}{}", servers[0].log(), servers[1].log());
    }
}

#[test]
fn writes_wait_and_none_is_lost() {
    const WRITERS: usize = 4;
    for mode in MODES {
        let servers = pair(mode);
        let is_over = AtomicBool::new(false);
        let written: u64 = thread::scope(|scope| {
            let _ended = OnDrop(|| is_over.store(true, Ordering::SeqCst));
            let writers: Vec<_> = (0..WRITERS)
                .map(|number| {
                    let (servers, is_over) = (&servers, &is_over);
                    scope.spawn(move || {
                        let mut clients = [servers[0].client(), servers[1].client()];
                        let (mut at, mut written) = (0, 0);
                        while !is_over.load(Ordering::SeqCst) {
                            let key = format!("list{number}");
                            let value = written.to_string();
                            let lines: [&[&str]; 4] =
                                [&["MULTI"], &["INCR", "n"], &["RPUSH", &key, &value], &["EXEC"]];
                            let lines: Vec<Vec<&str>> = lines.iter().map(|line| line.to_vec()).collect();
                            let replies = clients[at].pipeline(&lines).unwrap();
                            let answer = replies.last().unwrap();
                            if let Value::Array(_) = answer {
                                written += 1;
                            } else {
                                let text = answer.text();
                                assert!(text.contains("READONLY") || text.starts_with("EXECABORT"), "{text}");
                                at = 1 - at;
                            }
                        }
                        written
                    })
                })
                .collect();
            for round in 0..6 {
                let (from, to) = (&servers[round % 2], &servers[1 - round % 2]);
                let (mut from, mut to) = (from.client(), to.client());
                let before = to.info_number("slave_repl_offset");
                wait_until("writes continue", || to.info_number("slave_repl_offset") > before + 10_000);
                assert_eq!(from.run("FAILOVER"), Value::ok());
                wait_until("the other one is the primary", || to.info("role") == "master");
                wait_until("the failover is over", || from.info("master_link_status") == "up");
            }
            is_over.store(true, Ordering::SeqCst);
            writers.into_iter().map(|writer| writer.join().unwrap()).sum()
        });
        let [mut one, mut other] = [servers[0].client(), servers[1].client()];
        assert_same(&mut one, &mut other);
        assert_eq!(one.run("GET n").text(), written.to_string());
        for number in 0..WRITERS {
            let list = one.run(&format!("LRANGE list{number} 0 -1"));
            let list: Vec<String> = list.elements().unwrap().iter().map(Value::text).collect();
            assert!(
                list.iter().enumerate().all(|(at, value)| *value == at.to_string()),
                "each once, in order"
            );
        }
        let copies = one.info_number("sync_full") + other.info_number("sync_full");
        assert_eq!(copies, 1, "{}{}", servers[0].log(), servers[1].log());
    }
}

#[test]
fn impossible_failovers_are_refused() {
    for mode in MODES {
        let server = start(mode, &ARGUMENTS);
        let mut client = server.client();
        for (line, error) in [
            ("FAILOVER", "ERR FAILOVER requires connected replicas."),
            ("FAILOVER TO a 1 FORCE", "ERR FAILOVER requires connected replicas."),
            ("FAILOVER TO a x", "ERR value is not an integer or out of range"),
            ("FAILOVER TIMEOUT 0", "ERR FAILOVER timeout must be greater than 0"),
            ("FAILOVER TIMEOUT x", "ERR value is not an integer or out of range"),
            ("FAILOVER TIMEOUT", "ERR syntax error"),
            ("FAILOVER TO a", "ERR syntax error"),
            ("FAILOVER ABORT TIMEOUT 10", "ERR syntax error"),
            ("FAILOVER ABORT", "ERR No failover in progress."),
            ("PSYNC x 1 FAILOVER", "ERR PSYNC FAILOVER can't be sent to a master."),
        ] {
            assert_eq!(client.run(line).text(), error, "{line}");
        }
        let replica = start(mode, &ARGUMENTS);
        let mut other = replica.client();
        follow(&mut other, &server);
        for (line, error) in [
            ("FAILOVER TO 127.0.0.1 1", "ERR FAILOVER target HOST and PORT is not a replica."),
            (
                "FAILOVER FORCE",
                "ERR FAILOVER with force option requires both a timeout and target HOST and IP.",
            ),
        ] {
            assert_eq!(client.run(line).text(), error, "{line}");
        }
        let error = "ERR FAILOVER is not valid when server is a replica.";
        assert_eq!(other.run("FAILOVER").text(), error);
        let error = "ERR PSYNC FAILOVER replid must match my replid.";
        assert_eq!(other.run(&format!("PSYNC {ID} 1 FAILOVER")).text(), error);
        assert!(other.run("WAIT 0 0").text().starts_with("ERR WAIT cannot be used with replica instances."));
        assert_eq!([state(&mut client), state(&mut other)], ["no-failover", "no-failover"]);
    }
}

fn is_online(server: &Server) -> bool {
    server.client().run("INFO replication").text().contains("state=online")
}

/// Opens a connection as a replica that sends no acknowledgements unless requested.
fn idle_replica(server: &Server) -> RawClient {
    let mut client = server.client();
    assert_eq!(client.run("REPLCONF listening-port 7 capa psync2"), Value::ok());
    client.send_command(&["PSYNC", "?", "-1"]).unwrap();
    wait_until("the replica is online", || is_online(server));
    client
}

#[test]
fn writes_wait_until_the_failover_is_aborted() {
    for mode in MODES {
        let server = start(mode, &ARGUMENTS);
        let mut client = server.client();
        let _replica = idle_replica(&server);
        client.run("SET a 1");
        for gives_up in [false, true] {
            let line = if gives_up { "FAILOVER TIMEOUT 300" } else { "FAILOVER TO 127.0.0.1 7" };
            let mut writer = server.client();
            assert_eq!(client.run(line), Value::ok());
            writer.send_command(&["INCR", "a"]).unwrap();
            wait_until("the write waits", || client.info("paused_actions") == "write");
            assert_eq!(client.run("GET a").text(), if gives_up { "2" } else { "1" });
            if !gives_up {
                assert_eq!(state(&mut client), "waiting-for-sync");
                assert_eq!(client.info("paused_reason"), "failover_in_progress");
                assert_eq!(client.run("FAILOVER").text(), "ERR FAILOVER already in progress.");
                assert_eq!(
                    client.run("REPLICAOF NO ONE").text(),
                    "ERR REPLICAOF not allowed while failing over."
                );
                assert_eq!(
                    server.client().run("PSYNC ? -1").text(),
                    "NOMASTERLINK Can't SYNC while failing over"
                );
                assert_eq!(client.run("FAILOVER ABORT"), Value::ok());
            }
            let expected = if gives_up { 3 } else { 2 };
            assert_eq!(writer.read_value().unwrap(), Value::Integer(expected));
            assert_eq!(state(&mut client), "no-failover");
            assert_eq!(client.info("role"), "master");
        }
    }
}

/// Watches a key from a version in a stream that the other server may have begun. The server cannot know whether it has
/// that state, so it must not send an older one.
fn watch_other_stream(server: &Server) -> RawClient {
    let version = format!("00000001-1-{:032x}-0123abcd-77", 1);
    let mut watching = server.client();
    watching.send_command(&["WATCH.OPEN", "SINCE", &version, "COMMAND", "GET", "a"]).unwrap();
    watching.set_timeout(Duration::from_millis(200)).unwrap();
    assert!(watching.read_value().is_err(), "no state is sent yet");
    watching
}

#[test]
fn a_replica_that_refuses_is_not_promoted() {
    for mode in MODES {
        let server = start(mode, &ARGUMENTS);
        let mut client = server.client();
        client.run("SET a 1");
        let listener = Primary::new();
        let mut replica = server.client();
        replica.run(&format!("REPLCONF listening-port {} capa psync2", listener.port()));
        replica.send_command(&["PSYNC", "?", "-1"]).unwrap();
        wait_until("the replica is online", || is_online(&server));
        let line = format!("FAILOVER TO 127.0.0.1 {} FORCE TIMEOUT 1", listener.port());
        assert_eq!(client.run(&line), Value::ok());
        let mut asked = listener.accept();
        let words = asked.read_handshake();
        assert_eq!(words[1], client.info("master_replid"));
        assert_eq!(words[3], "FAILOVER");
        assert_eq!(state(&mut client), "failover-in-progress");
        let mut watching = watch_other_stream(&server);
        asked.send(b"-ERR no\r\n");
        wait_until("the server is the primary again", || client.info("role") == "master");
        let log = server.log();
        assert!(log.contains("time out exceeded, failing over."), "{log}");
        assert!(log.contains("Failover target rejected psync request: "), "{log}");
        watching.set_timeout(PATIENCE).unwrap();
        assert!(!watching.read_value().unwrap().is_error());
        wait_until("the failover is over", || state(&mut client) == "no-failover");
        assert_eq!(client.run("INCR a"), Value::Integer(2));
    }
}

#[test]
fn a_lost_answer_is_requested_again() {
    for (mode, comes_again) in MODES.into_iter().flat_map(|mode| [(mode, true), (mode, false)]) {
        let server = start(mode, &ARGUMENTS);
        let mut client = server.client();
        let listener = Primary::new();
        let mut replica = server.client();
        replica.run(&format!("REPLCONF listening-port {} capa psync2", listener.port()));
        replica.send_command(&["PSYNC", "?", "-1"]).unwrap();
        wait_until("the replica is online", || is_online(&server));
        client.run(&format!("FAILOVER TO 127.0.0.1 {} FORCE TIMEOUT 1", listener.port()));
        let mut asked = listener.accept();
        assert_eq!(asked.read_handshake()[3], "FAILOVER");
        drop(asked);
        let mut asked = listener.accept();
        assert_eq!(asked.read_handshake()[3], "FAILOVER");
        asked.send(b"-ERR PSYNC FAILOVER can't be sent to a master.\r\n");
        drop(asked);
        // The replica has received the first request, and may have begun a stream whose name is not known here yet.
        let mut asked = listener.accept();
        assert_eq!(asked.read_handshake().len(), 3);
        assert_eq!(state(&mut client), "failover-in-progress");
        let mut watching = watch_other_stream(&server);
        if comes_again {
            asked.send(format!("+CONTINUE {ID}\r\n").as_bytes());
        } else {
            drop(asked);
        }
        wait_until("the failover is over", || state(&mut client) == "no-failover");
        watching.set_timeout(PATIENCE).unwrap();
        assert!(!watching.read_value().unwrap().is_error());
        assert_eq!(client.info("role"), "slave");
    }
}

#[test]
fn replicas_of_a_promoted_replica_resume() {
    for mode in MODES {
        let servers = [start(mode, &ARGUMENTS), start(mode, &ARGUMENTS), start(mode, &ARGUMENTS)];
        let [mut first, mut middle, mut last] = [0, 1, 2].map(|at: usize| servers[at].client());
        first.run("DEBUG POPULATE 500 key 10");
        first.run("SELECT 5");
        first.run("SET five 5");
        follow(&mut middle, &servers[0]);
        follow(&mut last, &servers[1]);
        first.run("INCR n");
        first.run("MULTI");
        first.run("INCR n");
        first.run("SELECT 0");
        first.run("INCR n");
        first.run("EXEC");
        assert_same(&mut first, &mut last);
        for name in ["master_replid", "master_repl_offset"] {
            wait_until("names and offsets are the same", || {
                let of_first = first.info(name);
                of_first == middle.info(name) && of_first == last.info(name)
            });
        }
        assert_eq!(first.run("FAILOVER"), Value::ok());
        wait_until("the middle server is the primary", || {
            middle.info("role") == "master" && first.info("master_link_status") == "up"
        });
        middle.run("INCR n");
        wait_until("the last server is linked", || last.info("master_link_status") == "up");
        assert_same(&mut middle, &mut last);
        assert_same(&mut middle, &mut first);
        // Another replica of the old primary resumes at the new primary, too.
        replicaof(&mut last, servers[0].port());
        wait_until("the last server is linked", || last.info("master_link_status") == "up");
        middle.run("INCR n");
        assert_same(&mut middle, &mut last);
        let copies: u64 = [&mut first, &mut middle, &mut last]
            .map(|client| client.info_number("sync_full"))
            .into_iter()
            .sum();
        assert_eq!(copies, 2);
    }
}

#[test]
fn a_replica_without_a_link_serves_no_replicas() {
    for mode in MODES {
        let server = start(mode, &[]);
        let primary = Primary::new();
        let link = link(&server, &primary, &[("k", "1")]);
        let mut other = server.client();
        drop((link, primary));
        wait_until("the link is down", || server.client().info("master_link_status") == "down");
        let error = "NOMASTERLINK Can't SYNC while not connected with my master";
        assert_eq!(other.run("PSYNC ? -1").text(), error);
    }
}
