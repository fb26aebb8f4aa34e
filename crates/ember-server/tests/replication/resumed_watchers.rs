//! Live queries with replicas: a client that has watched a query on one server resumes on another, and never receives
//! an older state than before.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use ember_testkit::{OnDrop, Random, RawClient, Server, Value, wait_until};

use crate::pairs::{ARGUMENTS, follow};
use crate::primary::ID;
use crate::{MODES, linked, start, wait_for_offset};

/// Starts a server and its replica.
fn pair(mode: &[&str], more: &[&str]) -> [Server; 2] {
    let arguments = [&ARGUMENTS, more].concat();
    let servers = [start(mode, &arguments), start(mode, &arguments)];
    follow(&mut servers[1].client(), &servers[0]);
    servers
}

fn resp3(server: &Server) -> RawClient {
    let mut client = server.client();
    assert!(!client.run("HELLO 3").is_error());
    client
}

/// Begins to watch a query; returns the version and the result, or the error.
fn open(client: &mut RawClient, since: &str, line: &str) -> Result<(String, Value), String> {
    let options = if since.is_empty() { String::new() } else { format!("SINCE {since} ") };
    client.send(format!("WATCH.OPEN {options}COMMAND {line}\r\n").as_bytes()).unwrap();
    loop {
        let reply = client.read_value().unwrap();
        match &reply {
            Value::Map(_) => return Ok((reply.get("version").unwrap().text(), reply.get("result").unwrap())),
            Value::Push(_) => {}
            _ => return Err(reply.text()),
        }
    }
}

/// Receives the next state; returns its version and result.
fn pushed(client: &mut RawClient) -> (String, Value) {
    let value = client.read_value().unwrap();
    let Value::Push(parts) = &value else { panic!("no push: {value:?}") };
    (parts[2].text(), parts[3].clone())
}

fn words(version: &str) -> Vec<&str> {
    version.split('-').collect()
}

#[test]
fn a_version_is_valid_at_the_primary_and_at_its_replica() {
    for mode in MODES {
        let servers = pair(mode, &[]);
        let (mut writer, mut replica) = (servers[0].client(), servers[1].client());
        writer.run("SET a 1");
        let (version, result) = open(&mut resp3(&servers[0]), "", "GET a").unwrap();
        assert_eq!((words(&version).len(), result.text()), (5, "1".to_owned()), "{mode:?}: {version}");
        let mut there = resp3(&servers[1]);
        let unchanged = open(&mut there, &version, "GET a").unwrap();
        assert_eq!(unchanged, (version.clone(), Value::Null), "{mode:?}");
        writer.run("SET a 2");
        let (newer, result) = pushed(&mut there);
        assert_eq!(
            (result.text(), words(&newer)[3]),
            ("2".to_owned(), words(&version)[3]),
            "{mode:?}: {newer}"
        );
        let list = there.run("WATCH.LIST");
        assert_eq!(list.elements().unwrap()[0].get("version").unwrap().text(), newer, "as it was sent");
        assert_eq!(open(&mut resp3(&servers[0]), &newer, "GET a").unwrap(), (newer.clone(), Value::Null));
        let (_, result) = open(&mut resp3(&servers[0]), &version, "GET a").unwrap();
        assert_eq!(result.text(), "2");
        // If the result is the same again, changes in between do not cause a new state.
        writer.run("SET a 3");
        writer.run("SET a 2");
        writer.run("WAIT 1 0");
        assert_eq!(open(&mut resp3(&servers[1]), &newer, "GET a").unwrap(), (newer, Value::Null));
        assert_eq!(replica.run("GET a").text(), "2");
    }
}

#[test]
fn a_replica_waits_until_it_reaches_the_version() {
    for mode in MODES {
        let (server, _primary, mut link) = linked(mode, &[], &[("a", "0")]);
        let (mut client, mut other) = (resp3(&server), server.client());
        let (version, result) = open(&mut client, "", "GET a").unwrap();
        assert_eq!((words(&version)[3..].to_vec(), result.text()), (vec![&ID[..8], "0"], "0".to_owned()));
        // A client has received from the primary a state with the effect of a command of 27 bytes.
        let hash = "0123456789abcdef0123456789abcdef";
        let ahead = format!("01234567-5-{hash}-{}-27", &ID[..8]);
        client.send(format!("WATCH.OPEN SINCE {ahead} COMMAND GET a\r\n").as_bytes()).unwrap();
        other.run("PING");
        link.write("SET a 1");
        wait_for_offset(&mut other, 27);
        let (newer, result) = loop {
            let value = client.read_value().unwrap();
            if let Value::Map(_) = value {
                break (value.get("version").unwrap().text(), value.get("result").unwrap());
            }
        };
        assert_eq!((result.text(), words(&newer)[4]), ("1".to_owned(), "27"), "{mode:?}");
        // A version that is never reached is awaited for a limited time.
        let begun = Instant::now();
        let later = format!("01234567-5-{hash}-{}-28", &ID[..8]);
        let mut two = server.client();
        two.send(format!("WATCH.OPEN SINCE {later} COMMAND GET a\r\n").as_bytes()).unwrap();
        let refused = open(&mut client, &later, "STRLEN a").unwrap_err();
        assert!(refused.starts_with("BEHIND"), "{mode:?}: {refused}");
        assert!(begun.elapsed() >= Duration::from_secs(4), "{mode:?}");
        assert!(two.read_value().unwrap().text().starts_with("BEHIND"));
        assert_eq!(two.run("GET a").text(), "1", "{mode:?}: the client does not watch");
        // A primary cannot wait for later data than its own, and does not know other streams.
        assert_eq!(other.run("REPLICAOF NO ONE"), Value::ok());
        assert_eq!(open(&mut client, &later, "STRLEN a").unwrap().1, Value::Integer(1));
        let elsewhere = format!("01234567-5-{hash}-fedcba98-99");
        assert_eq!(open(&mut client, &elsewhere, "EXISTS a").unwrap().1, Value::Integer(1));
        assert_eq!(other.info_number("ember_live_watchers"), 3);
    }
}

#[test]
fn a_full_sync_notifies_watchers_of_changes() {
    for mode in MODES {
        let servers = [start(mode, &ARGUMENTS), start(mode, &ARGUMENTS)];
        let mut clients = [servers[0].client(), servers[1].client()];
        clients.iter_mut().for_each(|client| _ = client.run("SET same 1"));
        clients[0].run("SET other 2");
        clients[1].run("SET other 1");
        let mut watching = resp3(&servers[1]);
        let (version, _) = open(&mut watching, "", "GET same").unwrap();
        assert_eq!(words(&version).len(), 3, "no replication yet: {version}");
        open(&mut watching, "", "GET other").unwrap();
        follow(&mut clients[1], &servers[0]);
        // While the data is being loaded, a state may show an empty data set.
        let (newer, result) = loop {
            let state = pushed(&mut watching);
            if state.1.text() == "2" {
                break state;
            }
        };
        assert_eq!((words(&newer).len(), result.text()), (5, "2".to_owned()), "{mode:?}");
        assert_eq!(open(&mut watching, &version, "GET same").unwrap(), (version, Value::Null));
    }
}

/// Watches a number that only grows, on one server after the other.
fn hop(servers: &[Server], key: usize, is_over: &AtomicBool, hops: &AtomicU64, random: &mut Random) -> i64 {
    let line = format!("GET n{key}");
    let (mut version, mut last) = (String::new(), 0);
    while !is_over.load(Ordering::SeqCst) {
        let Ok(mut client) = RawClient::connect(servers[random.below(servers.len())].address()) else {
            continue;
        };
        // A server that is down, or is loading its data, cannot be watched.
        let is_good = client.send(b"HELLO 3\r\n").is_ok() && client.read_value().is_ok();
        if !is_good {
            continue;
        }
        let since = if version.is_empty() { String::new() } else { format!("SINCE {version} ") };
        if client.send(format!("WATCH.OPEN {since}COMMAND {line}\r\n").as_bytes()).is_err() {
            continue;
        }
        let states = random.below(30);
        for number in 0..=states {
            let Ok(value) = client.read_value() else { break };
            let (newer, result) = match &value {
                Value::Map(_) => (value.get("version").unwrap().text(), value.get("result").unwrap()),
                Value::Push(parts) => (parts[2].text(), parts[3].clone()),
                // The replica waits for data from a primary that is down, so the client tries another server, which has
                // later data.
                other => {
                    let text = other.text();
                    assert!(text.starts_with("BEHIND") || text.starts_with("LOADING"), "{text}");
                    break;
                }
            };
            if result == Value::Null && number == 0 && !version.is_empty() {
                assert_eq!(newer, version, "unchanged");
                continue;
            }
            let value = result.text().parse().unwrap_or(0);
            assert!(value >= last, "{last} of {version} goes back to {value} of {newer}");
            (version, last) = (newer, value);
        }
        hops.fetch_add(1, Ordering::SeqCst);
    }
    last
}

const HOPPERS: usize = 6;
const KEYS: usize = 3;

/// Increments a number on a server; returns false if it refuses because another server is the primary.
fn increment(client: &mut RawClient, key: usize) -> bool {
    client.send(format!("INCR n{key}\r\n").as_bytes()).is_ok()
        && matches!(client.read_value(), Ok(Value::Integer(_)))
}

/// Moves watchers from server to server under writes; `change` promotes the other server.
fn hop_while(mode: &[&str], more: &[&str], change: impl Fn(&[Server; 2])) {
    let servers = pair(mode, more);
    let [is_over, is_written] = [const { AtomicBool::new(false) }; 2];
    let hops = AtomicU64::new(0);
    let mut random = Random::new(1);
    thread::scope(|scope| {
        let _ending = OnDrop(|| is_written.store(true, Ordering::SeqCst));
        let end = OnDrop(|| is_over.store(true, Ordering::SeqCst));
        let (servers, is_over, is_written, hops) = (&servers, &is_over, &is_written, &hops);
        let watching: Vec<_> = (0..HOPPERS)
            .map(|number| {
                let mut random = Random::new(random.next_u64());
                scope.spawn(move || hop(servers, number % KEYS, is_over, hops, &mut random))
            })
            .collect();
        scope.spawn(move || {
            let mut at = 0;
            let mut client = servers[at].client();
            let mut key = 0;
            while !is_written.load(Ordering::SeqCst) {
                key = (key + 1) % KEYS;
                if !increment(&mut client, key)
                    && let Ok(other) = RawClient::connect(servers[1 - at].address())
                {
                    (at, client) = (1 - at, other);
                }
            }
        });
        let wait_for_hops = |count: u64| {
            let wanted = hops.load(Ordering::SeqCst) + count;
            wait_until("watchers change servers", || hops.load(Ordering::SeqCst) >= wanted);
        };
        wait_for_hops(100);
        change(servers);
        wait_for_hops(60);
        drop(end);
        // Watchers wait for states, so writes continue until they have ended.
        watching.into_iter().for_each(|one| assert!(one.join().unwrap() > 0));
    });
}

#[test]
fn versions_never_decrease_between_a_primary_and_its_replica() {
    for mode in MODES {
        hop_while(mode, &[], |_| ());
    }
}

#[test]
fn versions_never_decrease_across_a_failover() {
    for mode in MODES {
        hop_while(mode, &[], |servers| {
            let mut clients = [servers[0].client(), servers[1].client()];
            assert_eq!(clients[0].run("FAILOVER"), Value::ok());
            wait_until("the other one is the primary", || clients[1].info("role") == "master");
        });
    }
}

#[test]
fn versions_never_decrease_when_the_primary_of_a_synchronous_replica_is_killed() {
    for mode in MODES {
        hop_while(mode, &["--sync-replicas", "1"], |servers| {
            servers[0].signal("KILL");
            let mut client = servers[1].client();
            client.run("CONFIG SET sync-replicas 0");
            assert_eq!(client.run("REPLICAOF NO ONE"), Value::ok());
        });
    }
}
