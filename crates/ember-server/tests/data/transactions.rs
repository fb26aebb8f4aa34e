//! MULTI, EXEC, DISCARD, WATCH: atomic, isolated, with the errors of Redis.

use std::thread;

use ember_testkit::{RawClient, Value};

use crate::{MODES, clients, start, words};

/// Sends lines and returns the replies, formatted as by redis-cli.
fn run_all(client: &mut RawClient, lines: &[&str]) -> Vec<String> {
    lines.iter().map(|line| ember_testkit::render(&client.run(line)).trim_end().to_owned()).collect()
}

#[test]
fn queued_calls_run_at_exec_and_answer_in_order() {
    for mode in MODES {
        let server = start(mode);
        for mut client in clients(&server) {
            let lines = ["MULTI", "SET a 1", "INCR b", "MGET a b", "SELECT 3", "SET c 3", "DBSIZE", "EXEC"];
            let replies = run_all(&mut client, &lines);
            assert_eq!(replies[1..7], ["QUEUED"; 6]);
            let expected = "1) OK\n2) (integer) 1\n3) 1) \"1\"\n   2) \"1\"\n4) OK\n5) OK\n6) (integer) 1";
            assert_eq!(replies[7], expected, "{mode:?}");
            assert_eq!(run_all(&mut client, &["GET c", "FLUSHALL", "EXEC"])[0], "\"3\"");
        }
    }
}

#[test]
fn an_error_while_queueing_aborts_exec_and_one_at_run_time_does_not() {
    let server = start(MODES[0]);
    let mut client = server.client();
    for wrong in ["NOSUCH", "GET", "SET a"] {
        assert!(client.run("MULTI") == Value::ok() && client.run("SET a 1").text() == "QUEUED");
        assert!(client.run(wrong).is_error());
        let refused = "(error) EXECABORT Transaction discarded because of previous errors.";
        assert_eq!(run_all(&mut client, &["EXEC", "EXISTS a"]), [refused, "(integer) 0"], "{wrong}");
    }
    let replies = run_all(&mut client, &["MULTI", "SET a x", "INCR a", "SET b 2", "EXEC"]);
    let expected = "1) OK\n2) (error) ERR value is not an integer or out of range\n3) OK";
    assert_eq!(replies[4], expected);
    let replies = run_all(&mut client, &["MULTI", "EXEC x", "EXEC"]);
    let refused =
        "(error) EXECABORT Transaction discarded because of: wrong number of arguments for 'exec' command";
    assert_eq!(replies[1..], [refused, "(error) ERR EXEC without MULTI"]);
}

#[test]
fn commands_about_the_transaction_itself_are_not_queued() {
    let server = start(MODES[0]);
    let mut client = server.client();
    let lines = ["DISCARD", "MULTI", "MULTI", "WATCH a", "DISCARD", "EXEC", "MULTI", "EXEC"];
    assert_eq!(
        run_all(&mut client, &lines),
        [
            "(error) ERR DISCARD without MULTI",
            "OK",
            "(error) ERR MULTI calls can not be nested",
            "(error) ERR WATCH inside MULTI is not allowed",
            "OK",
            "(error) ERR EXEC without MULTI",
            "OK",
            "(empty array)",
        ]
    );
    assert_eq!(
        run_all(&mut client, &["MULTI", "SET a 1", "RESET", "EXISTS a"])[2..],
        ["RESET", "(integer) 0"]
    );
}

#[test]
fn a_change_of_a_watched_key_makes_exec_return_null() {
    // Calls by another client between WATCH and EXEC, and whether they change the key `a`, which expires much later.
    let cases = [
        ("SET a 2", true),
        ("SET b 2", false),
        ("GET a", false),
        ("DEL a", true),
        ("DEL b", false),
        ("EXPIRE a 1000", true),
        ("PERSIST a", true),
        ("APPEND a x", true),
        ("RENAME a b", true),
        ("COPY b a REPLACE", true),
        ("FLUSHALL", true),
        ("FLUSHDB", true),
        ("SWAPDB 0 1", true),
        ("SWAPDB 1 2", false),
        ("MOVE a 1", true),
        ("SETRANGE a 0 x", true),
        ("SETBIT a 6 1", true),
        ("SETBIT a 7 1", false),
        ("PEXPIRE a -1", true),
    ];
    for mode in MODES {
        let server = start(mode);
        let mut other = server.client();
        for mut client in clients(&server) {
            for (line, breaks) in cases {
                assert_eq!(client.run("FLUSHALL"), Value::ok());
                assert_eq!(client.run("MSET a 1 b 1"), Value::ok());
                client.run("EXPIRE a 100000");
                run_all(&mut client, &["WATCH a c", "MULTI", "PING"]);
                assert!(!other.run(line).is_error(), "{line}");
                let reply = client.run("EXEC");
                assert_eq!(reply.elements().is_none(), breaks, "{mode:?}: {line}: {reply:?}");
                // The watches are cleared.
                run_all(&mut client, &["MULTI", "PING"]);
                other.run("SET a 9");
                assert!(client.run("EXEC").elements().is_some());
            }
        }
    }
}

#[test]
fn expiry_or_eviction_of_a_watched_key_makes_exec_return_null() {
    for mode in MODES {
        let server = start(mode);
        let (mut client, mut other) = (server.client(), server.client());
        // The first two commands run at the same time of the server's clock, so the key has not expired when it is watched.
        client.pipeline(&["SET a 1 PX 20", "WATCH a"].map(words)).unwrap();
        run_all(&mut client, &["MULTI", "PING"]);
        while other.run("EXISTS a").integer() == Some(1) {}
        assert_eq!(client.run("EXEC").elements(), None, "{mode:?}");
        // A key that was already expired when it was watched does not abort the transaction.
        run_all(&mut client, &["WATCH a", "MULTI", "PING"]);
        assert!(client.run("EXEC").elements().is_some());

        run_all(&mut client, &["SET a 1", "WATCH a", "MULTI", "PING"]);
        run_all(&mut other, &["CONFIG SET maxmemory-policy allkeys-random maxmemory 1"]);
        while other.run("DBSIZE").integer() != Some(0) {
            other.run("SET b 1");
        }
        assert_eq!(client.run("EXEC").elements(), None, "{mode:?}");
    }
}

#[test]
fn unwatch_discard_and_reset_clear_watches() {
    for forget in [&["UNWATCH"][..], &["MULTI", "DISCARD"], &["RESET"], &["WATCH a", "UNWATCH"]] {
        let server = start(MODES[0]);
        let (mut client, mut other) = (server.client(), server.client());
        client.run("WATCH a");
        run_all(&mut client, forget);
        assert_eq!(other.run("SET a 1"), Value::ok());
        run_all(&mut client, &["MULTI", "PING"]);
        assert!(client.run("EXEC").elements().is_some(), "{forget:?}");
    }
}

#[test]
fn no_client_sees_part_of_a_transaction() {
    const ROUNDS: usize = 300;
    for mode in MODES {
        let server = start(mode);
        let address = server.address();
        // Confined transactions and transactions with exclusive access run concurrently with readers; the sum of the
        // keys is constant.
        let writers: Vec<_> = ["MGET a b c d", "DBSIZE"]
            .into_iter()
            .map(|extra| {
                thread::spawn(move || {
                    let mut client = RawClient::connect(address).unwrap();
                    for _ in 0..ROUNDS {
                        let lines =
                            ["MULTI", "INCRBY a 3", "DECRBY b 1", extra, "DECRBY c 1", "DECRBY d 1", "EXEC"];
                        lines.iter().for_each(|line| client.send(format!("{line}\r\n").as_bytes()).unwrap());
                        let replies = lines.map(|_| client.read_value().unwrap());
                        assert_eq!(replies[6].elements().unwrap().len(), 5);
                    }
                })
            })
            .collect();
        let mut reader = server.client();
        while writers.iter().any(|writer| !writer.is_finished()) {
            let replies = run_all(&mut reader, &["MULTI", "GET a", "GET b", "GET c", "GET d", "EXEC"]);
            let single = reader.run("MGET a b c d");
            let sum = |value: &Value| -> i64 {
                value
                    .elements()
                    .unwrap()
                    .iter()
                    .map(|element| element.text().parse::<i64>().unwrap_or(0))
                    .sum()
            };
            assert_eq!(sum(&single), 0, "{mode:?}: {single:?} {replies:?}");
        }
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        assert_eq!(reader.run("GET a").text(), (ROUNDS * 2 * 3).to_string());
        server.client().run("FLUSHALL");
    }
}

#[test]
fn optimistic_increments_with_watch_are_never_lost() {
    const EACH: i64 = 100;
    for mode in MODES {
        let server = start(mode);
        let address = server.address();
        let workers: Vec<_> = (0..4)
            .map(|_| {
                thread::spawn(move || {
                    let mut client = RawClient::connect(address).unwrap();
                    let mut done = 0;
                    while done < EACH {
                        client.run("WATCH n");
                        let value = client.run("GET n").text().parse::<i64>().unwrap_or(0);
                        client.run("MULTI");
                        client.run(&format!("SET n {}", value + 1));
                        done += i64::from(client.run("EXEC").elements().is_some());
                    }
                })
            })
            .collect();
        workers.into_iter().for_each(|worker| worker.join().unwrap());
        assert_eq!(server.client().run("GET n").text(), (4 * EACH).to_string(), "{mode:?}");
    }
}

#[test]
fn a_pipelined_transaction_among_other_commands_keeps_the_order() {
    for mode in MODES {
        let server = start(mode);
        let mut client = server.client();
        let (mut request, mut expected) = (Vec::new(), Vec::new());
        for n in 0..200 {
            request.extend_from_slice(
                format!("SET k{n} {n}\r\nGET k{n}\r\nMULTI\r\nINCR k{n}\r\nEXEC\r\n").as_bytes(),
            );
            let text = n.to_string();
            let answer = format!("+OK\r\n${}\r\n{n}\r\n+OK\r\n+QUEUED\r\n*1\r\n:{}\r\n", text.len(), n + 1);
            expected.extend_from_slice(answer.as_bytes());
        }
        client.send(&request).unwrap();
        assert_eq!(client.read_bytes(expected.len()).unwrap(), expected, "{mode:?}");
    }
}

#[test]
fn a_queued_call_holds_no_lock_while_keys_are_evicted() {
    for mode in MODES {
        let server = start(mode);
        let mut client = server.client();
        // These keys must not be evicted, so the search for keys to evict is repeated without result.
        (0..200).for_each(|number| _ = client.run(&format!("SET k{number} v")));
        assert_eq!(client.run("CONFIG SET maxmemory-policy volatile-random maxmemory 1"), Value::ok());
        // Calls on elements of one key are prepared together, under the key's lock, before the first call is queued.
        let calls: Vec<String> = (0..16).map(|number| format!("HSET h f{number} v")).collect();
        let batch = ["MULTI", &calls.join("\r\n"), "DISCARD", ""].join("\r\n");
        for _ in 0..50 {
            client.send(batch.as_bytes()).unwrap();
            (0..calls.len() + 2).for_each(|_| _ = client.read_value().unwrap());
        }
    }
}
