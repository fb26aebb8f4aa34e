//! Once the server has decided to disconnect a client, the client receives nothing: elements for which it waits remain,
//! and it is not counted as a receiver of messages.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use ember_testkit::{Directory, RawClient, Server, Value, wait_until};

use crate::blocking::{read, shown, wait_for_blocked};
use crate::{MODES, start};

/// The number of attempts to provoke a fault, each with new connections, on all workers.
const ROUNDS: usize = 15;

fn id(client: &mut RawClient) -> i64 {
    client.run("CLIENT ID").integer().unwrap()
}

/// Sends lines in one write and reads their replies.
#[track_caller]
fn together(client: &mut RawClient, lines: &[&str]) -> Vec<Value> {
    let words: Vec<Vec<&str>> = lines.iter().map(|line| line.split(' ').collect()).collect();
    let replies = client.pipeline(&words).unwrap();
    assert!(replies.iter().all(|reply| !reply.is_error()), "{lines:?}: {replies:?}");
    replies
}

/// A blocking call, a push, and a command with its reply if no element was removed.
const CASES: [(&str, &str, (&str, &str)); 6] = [
    ("BLPOP k 0", "RPUSH k v", ("LRANGE k 0 -1", "1) \"v\"")),
    ("BLMPOP 0 2 other k LEFT", "RPUSH k v", ("LRANGE k 0 -1", "1) \"v\"")),
    ("BLMOVE k d LEFT RIGHT 0", "RPUSH k v", ("LLEN d", "(integer) 0")),
    ("BZPOPMIN k 0", "ZADD k 1 v", ("ZRANGE k 0 -1", "1) \"v\"")),
    ("BZMPOP 0 1 k MAX", "ZADD k 1 v", ("ZRANGE k 0 -1", "1) \"v\"")),
    (
        "XREADGROUP GROUP g c BLOCK 0 STREAMS k >",
        "XADD k 1-1 f v",
        ("XPENDING k g", "1) (integer) 0\n2) (nil)\n3) (nil)\n4) (nil)"),
    ),
];

/// Ways to disconnect the client with this id and address, before or together with `{push}`.
fn kills(id: i64, address: &str) -> [Vec<String>; 5] {
    [
        vec![format!("CLIENT KILL ID {id}"), "{push}".to_owned()],
        vec![format!("CLIENT KILL {address}"), "{push}".to_owned()],
        vec!["CLIENT KILL USER waiting".to_owned(), "{push}".to_owned()],
        vec!["MULTI".to_owned(), format!("CLIENT KILL ID {id}"), "{push}".to_owned(), "EXEC".to_owned()],
        vec!["MULTI".to_owned(), "{push}".to_owned(), format!("CLIENT KILL ID {id}"), "EXEC".to_owned()],
    ]
}

fn address_of(control: &mut RawClient, id: i64) -> String {
    let line = control.run(&format!("CLIENT LIST ID {id}")).text();
    line.split(' ').find_map(|field| field.strip_prefix("addr=")).unwrap().to_owned()
}

#[test]
fn a_killed_waiting_client_takes_no_element() {
    for mode in MODES {
        let server = start(mode);
        let mut control = server.client();
        assert_eq!(control.run("ACL SETUSER waiting on nopass ~* +@all"), Value::ok());
        for (call, push, (look, untouched)) in CASES {
            for way in 0..kills(0, "").len() {
                for _ in 0..3 {
                    let mut admin = server.client();
                    admin.run("FLUSHALL");
                    if call.starts_with('X') {
                        admin.run("XGROUP CREATE k g $ MKSTREAM");
                    }
                    let mut waiting = server.client();
                    assert_eq!(waiting.run("AUTH waiting x"), Value::ok());
                    let waiting_id = id(&mut waiting);
                    let address = address_of(&mut admin, waiting_id);
                    waiting.send(format!("{call}\r\n").as_bytes()).unwrap();
                    wait_for_blocked(&server, 1);
                    let lines = kills(waiting_id, &address)[way].clone();
                    let lines: Vec<String> = lines.iter().map(|line| line.replace("{push}", push)).collect();
                    together(&mut admin, &lines.iter().map(String::as_str).collect::<Vec<_>>());
                    assert_eq!(shown(&admin.run(look)), untouched, "{mode:?}: {call}: {lines:?}");
                    assert_eq!(waiting.read_to_close().unwrap_or_default(), b"", "{lines:?}");
                    wait_for_blocked(&server, 0);
                }
            }
        }
    }
}

#[test]
fn a_waiting_client_of_a_removed_user_takes_no_element() {
    for mode in MODES {
        let server = start(mode);
        for _ in 0..ROUNDS {
            let mut admin = server.client();
            admin.run("DEL k");
            assert_eq!(admin.run("ACL SETUSER waiting on nopass ~* +@all"), Value::ok());
            let mut waiting = server.client();
            assert_eq!(waiting.run("AUTH waiting x"), Value::ok());
            waiting.send(b"BLPOP k 0\r\n").unwrap();
            wait_for_blocked(&server, 1);
            together(&mut admin, &["ACL DELUSER waiting", "RPUSH k v"]);
            assert_eq!(admin.run("LLEN k").integer(), Some(1), "{mode:?}");
            assert!(waiting.is_closed().unwrap());
        }
    }
}

#[test]
fn a_client_served_before_it_is_killed_receives_its_reply() {
    for mode in MODES {
        let server = start(mode);
        for round in 0..ROUNDS {
            let mut admin = server.client();
            let mut waiting = server.client();
            let waiting_id = id(&mut waiting);
            waiting.send(b"BLPOP k 0\r\n").unwrap();
            wait_for_blocked(&server, 1);
            let push = format!("RPUSH k {round}");
            together(&mut admin, &[&push, &format!("CLIENT KILL ID {waiting_id}")]);
            assert_eq!(read(&mut waiting), format!("1) \"k\"\n2) \"{round}\""), "{mode:?}");
            assert!(waiting.is_closed().unwrap());
            wait_for_blocked(&server, 0);
        }
    }
}

#[test]
fn no_element_is_lost_while_waiting_clients_are_killed_under_load() {
    const CLIENTS: usize = 150;
    for mode in MODES {
        let server = start(mode);
        let stop = AtomicBool::new(false);
        let mut delivered: Vec<String> = Vec::new();
        let mut pushed = 0;
        thread::scope(|scope| {
            let pushing = scope.spawn(|| {
                let mut client = server.client();
                let mut count = 0;
                while !stop.load(Ordering::Relaxed) {
                    client.run(&format!("RPUSH k {count}"));
                    count += 1;
                }
                count
            });
            let mut admin = server.client();
            for _ in 0..CLIENTS {
                let mut waiting = server.client();
                let waiting_id = id(&mut waiting);
                // If the client is not killed in time, it receives its element at the end of the pipeline.
                waiting.send(&b"BLMOVE k taken LEFT RIGHT 0\r\n".repeat(20)).unwrap();
                admin.run(&format!("CLIENT KILL ID {waiting_id}"));
                let replies = String::from_utf8(waiting.read_to_close().unwrap_or_default()).unwrap();
                delivered.extend(replies.lines().filter(|line| !line.starts_with('$')).map(str::to_owned));
            }
            stop.store(true, Ordering::Relaxed);
            pushed = pushing.join().unwrap();
        });
        let mut client = server.client();
        let count = |client: &mut RawClient, key: &str| {
            client.run(&format!("LLEN {key}")).integer().unwrap() as usize
        };
        let (left, taken) = (count(&mut client, "k"), count(&mut client, "taken"));
        assert_eq!(left + taken, pushed, "{mode:?}");
        delivered.sort_unstable();
        delivered.dedup();
        assert!(delivered.len() <= taken, "{mode:?}: only taken elements are delivered");
    }
}

/// Two clients wait, the second with a large incomplete request. Then the limit of client memory is lowered below the
/// size of that request.
#[test]
fn an_evicted_waiting_client_takes_no_element() {
    for mode in MODES {
        let server = start(mode);
        for (call, push, (look, untouched)) in CASES {
            for _ in 0..4 {
                let mut admin = server.client();
                assert_eq!(admin.run("CLIENT NO-EVICT on"), Value::ok());
                admin.run("CONFIG SET maxmemory-clients 0");
                admin.run("FLUSHALL");
                if call.starts_with('X') {
                    admin.run("XGROUP CREATE k g $ MKSTREAM");
                    admin.run("XGROUP CREATE first g $ MKSTREAM");
                }
                let mut first = server.client();
                first.send(format!("{}\r\n", call.replace(" k ", " first ")).as_bytes()).unwrap();
                let mut large = server.client();
                let name = format!("large:{call}").replace(' ', "-");
                assert_eq!(large.run(&format!("CLIENT SETNAME {name}")), Value::ok());
                let beginning = format!("{call}\r\n*2\r\n$4\r\nECHO\r\n$2000000\r\n");
                large.send(beginning.as_bytes()).unwrap();
                large.send(&vec![b'x'; 1_500_000]).unwrap();
                wait_for_blocked(&server, 2);
                wait_until("the request is received", || {
                    let list = admin.run("CLIENT LIST").text();
                    let line = list.lines().find(|line| line.contains(&name)).unwrap();
                    let bytes = line.split(' ').find_map(|field| field.strip_prefix("tot-mem=")).unwrap();
                    bytes.parse::<usize>().unwrap() > 1_400_000
                });
                // Once its eviction is decided, the client is no longer listed, and elements pushed afterwards remain
                // in the list.
                admin.run("CONFIG SET maxmemory-clients 1mb");
                wait_until("the client is evicted", || !admin.run("CLIENT LIST").text().contains(&name));
                assert!(!admin.run(push).is_error());
                assert_eq!(shown(&admin.run(look)), untouched, "{mode:?}: {call}");
                assert_eq!(large.read_to_close().unwrap_or_default(), b"", "{call}");
                drop(first);
                wait_for_blocked(&server, 0);
            }
        }
    }
}

/// Elements are pushed continuously while the client is evicted; each is delivered or remains in the list.
#[test]
fn no_element_is_lost_while_a_waiting_client_is_evicted() {
    for mode in MODES {
        let server = start(mode);
        for _ in 0..ROUNDS {
            let mut admin = server.client();
            assert_eq!(admin.run("CLIENT NO-EVICT on"), Value::ok());
            together(&mut admin, &["CONFIG SET maxmemory-clients 0", "DEL k"]);
            let mut large = server.client();
            large.send(b"BLPOP k 0\r\n*2\r\n$4\r\nECHO\r\n$2000000\r\n").unwrap();
            large.send(&vec![b'x'; 1_500_000]).unwrap();
            wait_for_blocked(&server, 1);
            wait_until("the request is received", || admin.info_number("mem_clients_normal") > 1_400_000);
            let mut pushing = server.client();
            let evicting = thread::spawn(move || {
                admin.run("CONFIG SET maxmemory-clients 1mb");
                admin
            });
            let pushed = pushing.run("RPUSH k v").integer();
            let mut admin = evicting.join().unwrap();
            let reply = large.read_to_close().unwrap_or_default();
            let left = admin.run("LLEN k").integer().unwrap();
            assert_eq!((pushed, left), (Some(1), i64::from(reply.is_empty())), "{mode:?}: {reply:?}");
        }
    }
}

#[test]
fn a_message_does_not_count_killed_subscribers() {
    for mode in MODES {
        let server = start(mode);
        for round in 0..ROUNDS {
            // Each round uses new connections, so that the two are on different workers in some rounds.
            let (mut admin, mut subscriber) = (server.client(), server.client());
            for line in ["SUBSCRIBE news", "PSUBSCRIBE n*", "SSUBSCRIBE news"] {
                subscriber.send(format!("{line}\r\n").as_bytes()).unwrap();
                subscriber.read_value().unwrap();
            }
            let counts = ["PUBLISH news x", "SPUBLISH news x"];
            let lists = ["PUBSUB NUMPAT", "PUBSUB CHANNELS", "PUBSUB NUMSUB news", "PUBSUB SHARDCHANNELS"];
            let kill = "CLIENT KILL TYPE pubsub";
            let lines: Vec<&str> = match round % 2 {
                0 => [kill].into_iter().chain(counts).chain(lists).collect(),
                _ => ["MULTI", kill].into_iter().chain(counts).chain(lists).chain(["EXEC"]).collect(),
            };
            let replies = together(&mut admin, &lines);
            let replies = match replies.last() {
                Some(Value::Array(replies)) if round % 2 == 1 => replies.clone(),
                _ => replies,
            };
            let shown: Vec<String> = replies.iter().map(shown).collect();
            let expected = [
                "(integer) 1",
                "(integer) 0",
                "(integer) 0",
                "(integer) 0",
                "(empty array)",
                "1) \"news\"\n2) (integer) 0",
                "(empty array)",
            ];
            assert_eq!(shown, expected, "{mode:?}");
            assert!(subscriber.is_closed().unwrap());
        }
    }
}

#[test]
fn a_client_that_is_killed_is_not_notified_of_changes_and_breaks_redirections() {
    for mode in MODES {
        let server = start(mode);
        for _ in 0..ROUNDS {
            let (mut admin, mut tracking, mut notified) = (server.client(), server.client(), server.client());
            tracking.run("HELLO 3");
            let notified_id = id(&mut notified);
            assert_eq!(
                tracking.run(&format!("CLIENT TRACKING ON BCAST REDIRECT {notified_id}")),
                Value::ok()
            );
            let kill = format!("CLIENT KILL ID {notified_id}");
            together(&mut admin, &[&kill, "SET k v"]);
            let push = tracking.read_value().unwrap();
            let Value::Push(parts) = &push else { panic!("no push: {push:?}") };
            assert_eq!(parts[0].text(), "tracking-redir-broken", "{mode:?}");
            let tracking_id = id(&mut tracking);
            let kill = format!("CLIENT KILL ID {tracking_id}");
            let replies = together(&mut admin, &[&kill, "INFO clients"]);
            assert!(replies[1].text().contains("tracking_clients:0"), "{mode:?}");
        }
    }
}

#[test]
fn a_transaction_that_kills_its_own_client_closes_the_connection_after_its_reply() {
    for mode in MODES {
        let server = start(mode);
        let mut client = server.client();
        let own = id(&mut client);
        let kill = format!("CLIENT KILL ID {own} SKIPME no");
        let lines = ["MULTI", &kill, "SET k v", "EXEC", "SET k later"];
        client.send(format!("{}\r\n", lines.join("\r\n")).as_bytes()).unwrap();
        for expected in ["OK", "QUEUED", "QUEUED", "1) (integer) 1\n2) OK"] {
            assert_eq!(read(&mut client), expected, "{mode:?}");
        }
        assert!(client.is_closed().unwrap());
        assert_eq!(server.client().run("GET k").text(), "v");
    }
}

#[test]
fn waiting_clients_take_no_element_when_the_server_stops() {
    let directory = Directory::new("stops-while-clients-wait");
    let start = |mode: &[&str]| {
        let server = Server::builder(env!("CARGO_BIN_EXE_ember-server")).arguments(mode);
        server.arguments(&["--appendonly", "yes"]).directory(&directory.0).start()
    };
    for mode in MODES {
        let mut server = start(mode);
        let mut waiting: Vec<RawClient> = (0..4).map(|_| server.client()).collect();
        let mut client = server.client();
        client.run("FLUSHALL");
        for client in &mut waiting {
            client.send(b"BLPOP k 0\r\n").unwrap();
        }
        wait_for_blocked(&server, waiting.len());
        // The workers are notified of the shutdown one after the other.
        server.signal("TERM");
        let mut pushed = 0;
        let is_pushed = |client: &mut RawClient| {
            client.send(b"RPUSH k v\r\n").is_ok() && client.read_value().is_ok_and(|reply| !reply.is_error())
        };
        while is_pushed(&mut client) {
            pushed += 1;
        }
        assert!(server.wait().success());
        let replies = waiting.iter_mut().filter_map(|client| client.read_to_close().ok());
        let taken = replies.filter(|reply| !reply.is_empty()).count() as i64;
        let left = start(mode).client().run("LLEN k").integer().unwrap();
        // The last push may have run without a reply.
        assert!((pushed..=pushed + 1).contains(&(taken + left)), "{mode:?}: {taken} and {left} of {pushed}");
    }
}
