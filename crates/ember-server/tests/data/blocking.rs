//! Blocking calls are served in order of arrival, woken once, and time out on time; no element is lost when a call ends
//! early.

use std::thread;
use std::time::{Duration, Instant};

use ember_testkit::{RawClient, Server, Value, render, wait_until};

use crate::{MODES, clients, start};

pub(crate) fn shown(value: &Value) -> String {
    render(value).trim_end().to_owned()
}

pub(crate) fn read(client: &mut RawClient) -> String {
    shown(&client.read_value().unwrap())
}

/// Waits until `count` clients are in a blocking command.
pub(crate) fn wait_for_blocked(server: &Server, count: usize) {
    let mut control = server.client();
    wait_until(&format!("{count} clients wait"), || control.info_number("blocked_clients") == count as u64);
}

fn client_id(client: &mut RawClient) -> i64 {
    client.run("CLIENT ID").integer().unwrap()
}

#[test]
fn a_blocking_call_is_answered_by_the_first_push() {
    let cases = [
        ("BLPOP a b 0", "RPUSH b x", "1) \"b\"\n2) \"x\""),
        ("BRPOP b a 0", "RPUSH a x y", "1) \"a\"\n2) \"y\""),
        ("BLMOVE a d LEFT RIGHT 0", "LPUSH a x", "\"x\""),
        ("BRPOPLPUSH a d 0", "LPUSH a x", "\"x\""),
        ("BLMPOP 0 2 a b LEFT COUNT 2", "RPUSH b x y z", "1) \"b\"\n2) 1) \"x\"\n   2) \"y\""),
        ("BLPOP a 0", "EVAL_AS_MULTI", "1) \"a\"\n2) \"m\""),
        ("BZPOPMIN a b 0", "ZADD b 1 x 2 y", "1) \"b\"\n2) \"x\"\n3) \"1\""),
        ("BZPOPMAX a b 0", "ZADD b 1 x 2 y", "1) \"b\"\n2) \"y\"\n3) \"2\""),
        ("BZMPOP 0 1 a MAX", "ZADD a 3 x", "1) \"a\"\n2) 1) 1) \"x\"\n      2) \"3\""),
        (
            "XREAD BLOCK 0 STREAMS a $",
            "XADD a 5-1 f v",
            "1) 1) \"a\"\n   2) 1) 1) \"5-1\"\n         2) 1) \"f\"\n            2) \"v\"",
        ),
        ("BLPOP a 0", "RENAME other a", "1) \"a\"\n2) \"r\""),
        ("BLPOP a 0", "COPY other a", "1) \"a\"\n2) \"r\""),
        ("BLPOP a 0", "LMOVE other a LEFT LEFT", "1) \"a\"\n2) \"r\""),
    ];
    for mode in MODES {
        let server = start(mode);
        for (call, push, reply) in cases {
            let (mut waiting, mut pushing) = (server.client(), server.client());
            pushing.run("FLUSHALL");
            pushing.run("RPUSH other r");
            waiting.send(format!("{call}\r\nPING\r\n").as_bytes()).unwrap();
            wait_for_blocked(&server, 1);
            if push == "EVAL_AS_MULTI" {
                for line in ["MULTI", "LPUSH a x", "LPOP a", "LPUSH a m", "EXEC"] {
                    assert!(!pushing.run(line).is_error());
                }
            } else {
                assert!(!pushing.run(push).is_error(), "{push}");
            }
            assert_eq!(read(&mut waiting), reply, "{mode:?}: {call}");
            assert_eq!(read(&mut waiting), "PONG", "the pipeline continues");
            wait_for_blocked(&server, 0);
        }
    }
}

#[test]
fn waiters_are_served_in_order_of_arrival() {
    const WAITERS: usize = 20;
    for mode in MODES {
        let server = start(mode);
        let mut pushing = server.client();
        let mut waiters = Vec::new();
        for number in 0..WAITERS {
            let mut waiter = server.client();
            let call = if number % 2 == 0 { "BLPOP list 0\r\n" } else { "BRPOP none list 0\r\n" };
            waiter.send(call.as_bytes()).unwrap();
            wait_for_blocked(&server, number + 1);
            waiters.push(waiter);
        }
        for number in 0..WAITERS {
            assert_eq!(pushing.run(&format!("RPUSH list {number}")).integer(), Some(1));
            assert_eq!(
                pushing.run("LLEN list").integer(),
                Some(0),
                "the element is taken before the next command"
            );
        }
        for (number, waiter) in waiters.iter_mut().enumerate() {
            assert_eq!(read(waiter), format!("1) \"list\"\n2) \"{number}\""), "{mode:?}");
        }
        // One push of several elements serves several clients, one element each.
        for waiter in &mut waiters[..3] {
            waiter.send(b"BLPOP list 0\r\n").unwrap();
        }
        wait_for_blocked(&server, 3);
        assert_eq!(pushing.run("RPUSH list a b c d").integer(), Some(4));
        let mut got: Vec<String> = waiters[..3].iter_mut().map(read).collect();
        got.sort();
        assert_eq!(got, ["a", "b", "c"].map(|element| format!("1) \"list\"\n2) \"{element}\"")));
        assert_eq!(shown(&pushing.run("LRANGE list 0 -1")), "1) \"d\"");
    }
}

#[test]
fn a_timeout_returns_null_within_ten_milliseconds() {
    let calls = [
        "BLPOP a 0.05",
        "BLMOVE a b LEFT LEFT 0.05",
        "BLMPOP 0.05 1 a LEFT",
        "BZPOPMIN a 0.05",
        "XREAD BLOCK 50 STREAMS a 0",
    ];
    for mode in MODES {
        let server = start(mode);
        for mut client in clients(&server) {
            for call in calls {
                // A reply may be late on a busy machine, but never early; at least one of the attempts must be on time.
                let in_time = (0..200).any(|_| {
                    let begun = Instant::now();
                    assert_eq!(shown(&client.run(call)), "(nil)", "{call}");
                    let late = begun.elapsed().checked_sub(Duration::from_millis(50)).expect("not early");
                    late < Duration::from_millis(10)
                });
                assert!(in_time, "{mode:?}: {call}");
            }
            assert_eq!(client.run("PING").text(), "PONG");
        }
        // No client waits any more, so an element remains in the list.
        let mut client = server.client();
        assert_eq!(client.run("RPUSH a x").integer(), Some(1));
        assert_eq!(client.run("LLEN a").integer(), Some(1));
    }
}

#[test]
fn client_unblock_and_a_closed_connection_end_the_waiting() {
    for mode in MODES {
        let server = start(mode);
        let mut control = server.client();
        let mut waiting = server.client();
        let id = client_id(&mut waiting);
        assert_eq!(control.run(&format!("CLIENT UNBLOCK {id}")).integer(), Some(0));
        for (how, reply) in [
            ("", "(nil)"),
            (" TIMEOUT", "(nil)"),
            (" ERROR", "(error) UNBLOCKED client unblocked via CLIENT UNBLOCK"),
        ] {
            waiting.send(b"BLPOP a b c 0\r\n").unwrap();
            wait_for_blocked(&server, 1);
            assert!(control.run("CLIENT LIST").text().contains("flags=b"));
            assert_eq!(control.run(&format!("CLIENT UNBLOCK {id}{how}")).integer(), Some(1));
            assert_eq!(read(&mut waiting), reply, "{mode:?}");
        }
        for end in ["close", "CLIENT KILL"] {
            let mut leaving = server.client();
            let id = client_id(&mut leaving);
            leaving.send(b"BLPOP a b c 0\r\n").unwrap();
            wait_for_blocked(&server, 1);
            if end == "close" {
                drop(leaving);
            } else {
                assert_eq!(control.run(&format!("CLIENT KILL ID {id}")).integer(), Some(1));
            }
            wait_for_blocked(&server, 0);
            assert_eq!(control.run("RPUSH a x").integer(), Some(1));
            assert_eq!(control.run("LPOP a").text(), "x", "{mode:?}: no client took it");
        }
    }
}

#[test]
fn blocking_commands_do_not_wait_in_a_transaction() {
    let server = start(MODES[0]);
    for mut client in clients(&server) {
        for line in
            ["MULTI", "BLPOP a 0", "BLMOVE a b LEFT LEFT 0", "BZPOPMAX a 0", "XREAD BLOCK 0 STREAMS a $"]
        {
            assert!(!client.run(line).is_error());
        }
        assert_eq!(shown(&client.run("EXEC")), "1) (nil)\n2) (nil)\n3) (nil)\n4) (nil)");
    }
}

#[test]
fn a_key_of_another_type_wakes_no_waiter_and_as_destination_is_an_error() {
    let server = start(MODES[0]);
    let (mut waiting, mut other) = (server.client(), server.client());
    waiting.send(b"BLPOP a 0\r\n").unwrap();
    wait_for_blocked(&server, 1);
    for line in ["SET a x", "DEL a", "ZADD a 1 x", "DEL a", "XADD a * f v", "DEL a", "RPUSH a y"] {
        assert!(!other.run(line).is_error());
    }
    assert_eq!(read(&mut waiting), "1) \"a\"\n2) \"y\"");
    other.run("SET d string");
    waiting.send(b"BLMOVE a d LEFT LEFT 0\r\n").unwrap();
    wait_for_blocked(&server, 1);
    other.run("RPUSH a z");
    assert_eq!(
        read(&mut waiting),
        "(error) WRONGTYPE Operation against a key holding the wrong kind of value"
    );
    assert_eq!(other.run("LLEN a").integer(), Some(1));
}

#[test]
fn a_client_that_moves_an_element_does_not_wait_for_its_destination() {
    for mode in MODES {
        let server = start(mode);
        let (mut moving, mut popping) = (server.client(), server.client());
        moving.send(b"BLMOVE source d LEFT LEFT 0\r\n").unwrap();
        wait_for_blocked(&server, 1);
        popping.send(b"BLPOP d 0\r\n").unwrap();
        wait_for_blocked(&server, 2);
        let mut pushing = server.client();
        pushing.run("RPUSH d x");
        assert_eq!(read(&mut popping), "1) \"d\"\n2) \"x\"", "{mode:?}");
        pushing.run("RPUSH source y");
        assert_eq!(read(&mut moving), "\"y\"", "{mode:?}");
    }
}

#[test]
fn null_is_an_array_after_waiting_and_the_usual_null_where_waiting_is_refused() {
    let server = start(MODES[0]);
    let mut client = server.client();
    for (line, refused) in [
        ("BLPOP a 0.001", "*-1\r\n"),
        ("BRPOP a 0.001", "*-1\r\n"),
        ("BLMPOP 0.001 1 a LEFT", "*-1\r\n"),
        ("BLMOVE a b LEFT LEFT 0.001", "$-1\r\n"),
        ("BRPOPLPUSH a b 0.001", "$-1\r\n"),
    ] {
        client.send(format!("{line}\r\n").as_bytes()).unwrap();
        assert_eq!(client.read_raw().unwrap(), b"*-1\r\n", "{line}");
        for step in ["MULTI", line] {
            assert!(!client.run(step).is_error());
        }
        client.send(b"EXEC\r\n").unwrap();
        assert_eq!(client.read_raw().unwrap(), format!("*1\r\n{refused}").as_bytes(), "{line}");
    }
}

#[test]
fn a_chain_of_moves_is_served_completely() {
    for mode in MODES {
        let server = start(mode);
        let mut clients: Vec<RawClient> = (0..5).map(|_| server.client()).collect();
        for (number, client) in clients.iter_mut().enumerate() {
            client.send(format!("BLMOVE k{number} k{} LEFT LEFT 0\r\n", number + 1).as_bytes()).unwrap();
        }
        wait_for_blocked(&server, 5);
        let mut pushing = server.client();
        pushing.run("LPUSH k0 x");
        assert_eq!(pushing.run("LRANGE k5 0 -1").elements().unwrap().len(), 1, "{mode:?}");
        for client in &mut clients {
            assert_eq!(read(client), "\"x\"");
        }
    }
}

#[test]
fn every_element_pushed_is_popped_once_under_load() {
    const EACH: usize = 1500;
    for mode in MODES {
        let server = start(mode);
        let address = server.address();
        let poppers: Vec<_> = (0..4)
            .map(|number| {
                thread::spawn(move || {
                    let mut client = RawClient::connect(address).unwrap();
                    let mut got = Vec::new();
                    loop {
                        // Timeouts race with pushes continuously.
                        let call = match number {
                            0 => "BLPOP q 0.001",
                            1 => "BRPOP none q 0.002",
                            2 => "BLMPOP 0.001 2 none q LEFT",
                            _ => "BLPOP q 1",
                        };
                        let reply = client.run(call);
                        let Some(parts) = reply.elements() else {
                            if number == 3 {
                                return got;
                            }
                            if client.run("EXISTS done q").integer() == Some(1)
                                && client.run("EXISTS done").integer() == Some(1)
                            {
                                return got;
                            }
                            continue;
                        };
                        let element =
                            parts[1].elements().map_or_else(|| parts[1].text(), |list| list[0].text());
                        got.push(element.parse::<usize>().unwrap());
                    }
                })
            })
            .collect();
        let pushers: Vec<_> = (0..2)
            .map(|pusher| {
                thread::spawn(move || {
                    let mut client = RawClient::connect(address).unwrap();
                    for number in 0..EACH {
                        assert!(
                            client.run(&format!("RPUSH q {}", pusher * EACH + number)).integer().is_some()
                        );
                    }
                })
            })
            .collect();
        pushers.into_iter().for_each(|pusher| pusher.join().unwrap());
        server.client().run("SET done 1");
        let mut all: Vec<usize> = poppers.into_iter().flat_map(|popper| popper.join().unwrap()).collect();
        all.sort_unstable();
        let rest = server.client().run("LRANGE q 0 -1").elements().unwrap().len();
        assert_eq!(rest, 0, "{mode:?}");
        assert_eq!(all, (0..2 * EACH).collect::<Vec<_>>(), "{mode:?}");
    }
}
