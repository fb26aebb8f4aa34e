//! Client-side caching: a client is notified only of changes to keys it has read, of changes under its prefixes, and of
//! flushes.

use std::time::Duration;

use ember_testkit::{RawClient, Server, Value, wait_until};

use crate::{MODES, start, start_with_values, words};

fn resp3(server: &Server) -> RawClient {
    let mut client = server.client();
    assert!(!client.run("HELLO 3").is_error());
    client
}

/// Receives the next invalidation and returns its keys; `None` for all keys.
fn invalidated(client: &mut RawClient) -> Option<Vec<String>> {
    let value = client.read_value().unwrap();
    let Value::Push(parts) = &value else { panic!("no push: {value:?}") };
    assert_eq!(parts[0].text(), "invalidate");
    parts[1].elements().map(|keys| keys.iter().map(Value::text).collect())
}

/// Whether the client has received no invalidation: the next message is the reply to PING.
fn receives_nothing(client: &mut RawClient) -> bool {
    // Sent twice, so that messages between workers have arrived.
    (0..2).all(|_| client.run("PING").text() == "PONG")
}

#[test]
fn a_broadcast_begins_with_the_next_command_of_the_same_pipeline() {
    for mode in MODES {
        let server = start(mode);
        let mut client = resp3(&server);
        client.send(b"CLIENT TRACKING ON BCAST\r\nSET a 1\r\n").unwrap();
        assert_eq!(client.read_value().unwrap(), Value::ok());
        let next = [client.read_value().unwrap(), client.read_value().unwrap()];
        assert!(next.iter().any(|value| matches!(value, Value::Push(_))), "{mode:?}: {next:?}");
    }
}

#[test]
fn a_client_is_notified_once_of_a_key_it_has_read() {
    // Changes of the string `a` by another client.
    let changes = [
        "SET a 2",
        "DEL a",
        "EXPIRE a 100",
        "APPEND a x",
        "RENAME a b",
        "MOVE a 1",
        "INCRBY a 1",
        "PEXPIRE a 1",
    ];
    for mode in MODES {
        let server = start(mode);
        let mut other = server.client();
        for change in changes {
            let mut client = resp3(&server);
            other.run("FLUSHALL");
            other.run("SET a 1");
            assert_eq!(client.run("CLIENT TRACKING ON"), Value::ok());
            assert_eq!(client.run("MGET a c").elements().unwrap().len(), 2);
            assert!(!other.run(change).is_error());
            assert_eq!(invalidated(&mut client), Some(vec!["a".to_owned()]), "{mode:?}: {change}");
            other.run("SET a 3");
            if change == "PEXPIRE a 1" {
                continue;
            }
            assert!(receives_nothing(&mut client), "the client has not read the key again");
            other.run("SET c 3");
            assert_eq!(invalidated(&mut client), Some(vec!["c".to_owned()]), "missing keys count too");
        }
    }
}

#[test]
fn expiry_eviction_and_flushes_send_invalidations() {
    for mode in MODES {
        let server = start(mode);
        let (mut client, mut other) = (resp3(&server), server.client());
        client.run("CLIENT TRACKING ON");
        // Both commands run at the same time of the server's clock, so the key has not expired when it is read.
        let replies = client.pipeline(&["SET a 1 PX 30", "GET a"].map(words)).unwrap();
        assert_eq!(replies[1].text(), "1");
        assert_eq!(invalidated(&mut client), Some(vec!["a".to_owned()]), "{mode:?}");
        client.run("GET a");
        other.run("FLUSHDB");
        assert_eq!(invalidated(&mut client), None);
        other.run("SET a 1");
        client.run("GET a");
        other.run("CONFIG SET maxmemory-policy allkeys-random maxmemory 1");
        while other.run("EXISTS a").integer() == Some(1) {
            other.run("SET b 1");
        }
        assert_eq!(invalidated(&mut client), Some(vec!["a".to_owned()]));
    }
}

#[test]
fn keys_removed_before_a_command_are_invalidated_before_its_reply() {
    for mode in MODES {
        let server = start_with_values(mode);
        let (mut client, mut other) = (resp3(&server), server.client());
        client.run("CLIENT TRACKING ON");
        for _ in 0..20 {
            other.run("DEL large");
            client.run("SETEX volatile 1000 x");
            assert_eq!(client.run("GET volatile").text(), "x");
            let used = other.info_number("used_memory_dataset");
            let limit = format!("CONFIG SET maxmemory-policy volatile-random maxmemory {}", used + 100_000);
            assert_eq!(client.run(&limit), Value::ok());
            assert_eq!(client.run("SETBIT large 1600000 0").integer(), Some(0));
            client.send(b"EXISTS another\r\n").unwrap();
            assert_eq!(invalidated(&mut client), Some(vec!["volatile".to_owned()]), "{mode:?}");
            assert_eq!(client.read_value().unwrap().integer(), Some(0));
            assert_eq!(other.run("EXISTS volatile").integer(), Some(0));
        }
    }
}

#[test]
fn options_select_the_tracked_keys() {
    let server = start(MODES[0]);
    let mut other = server.client();
    other.run("MSET a 1 b 1");

    let mut client = resp3(&server);
    client.run("CLIENT TRACKING ON OPTIN");
    client.run("GET a");
    assert_eq!(client.run("CLIENT CACHING YES"), Value::ok());
    client.run("GET b");
    client.run("GET a");
    other.run("MSET a 2 b 2");
    assert_eq!(invalidated(&mut client), Some(vec!["b".to_owned()]));
    assert!(receives_nothing(&mut client));

    let mut client = resp3(&server);
    client.run("CLIENT TRACKING ON OPTOUT NOLOOP");
    client.run("CLIENT CACHING NO");
    client.run("GET a");
    client.run("GET b");
    assert_eq!(client.run("SET b 3"), Value::ok());
    assert!(receives_nothing(&mut client), "own changes are not reported");
    client.run("GET b");
    other.run("MSET a 3 b 4");
    assert_eq!(invalidated(&mut client), Some(vec!["b".to_owned()]));

    let mut client = resp3(&server);
    client.run("CLIENT TRACKING ON");
    client.run("GET a");
    assert_eq!(client.run("SET a 5"), Value::ok(), "the reply precedes the invalidation");
    assert_eq!(invalidated(&mut client), Some(vec!["a".to_owned()]));
    client.run("GET a");
    client.run("CLIENT TRACKING OFF");
    other.run("SET a 6");
    assert!(receives_nothing(&mut client));
}

#[test]
fn a_transaction_is_tracked_and_invalidated_as_a_whole() {
    let server = start(MODES[0]);
    let (mut client, mut other) = (resp3(&server), server.client());
    client.run("CLIENT TRACKING ON OPTIN");
    for line in ["CLIENT CACHING YES", "MULTI", "GET a", "GET b"] {
        client.run(line);
    }
    assert_eq!(client.run("EXEC").elements().unwrap().len(), 2);
    for line in ["MULTI", "SET a 1", "SET b 1", "EXEC"] {
        other.run(line);
    }
    assert_eq!(invalidated(&mut client), Some(vec!["a".to_owned()]));
    assert_eq!(invalidated(&mut client), Some(vec!["b".to_owned()]));
}

#[test]
fn many_prefixes_do_not_delay_other_clients() {
    let server = start(MODES[0]);
    let mut client = resp3(&server);
    let prefixes = (0..60_000).flat_map(|number| ["PREFIX".to_owned(), format!("{number:06}:")]);
    let call: Vec<String> =
        ["CLIENT", "TRACKING", "ON", "BCAST"].map(str::to_owned).into_iter().chain(prefixes).collect();
    let cpu_time = || server.usage().map(|usage| usage.user_time + usage.system_time).unwrap();
    let before = cpu_time();
    assert_eq!(client.command(&call), Value::ok());
    let mut other = server.client();
    let sets: Vec<[String; 3]> =
        (0..20_000).map(|number| ["SET".to_owned(), format!("{number}"), "1".to_owned()]).collect();
    other.pipeline(&sets).unwrap();
    // Comparing each prefix with each other one would take at least ten seconds.
    let used = cpu_time() - before;
    assert!(used < Duration::from_secs(5), "{used:?} of CPU time");
    other.run("SET 059999:key 1");
    assert_eq!(invalidated(&mut client), Some(vec!["059999:key".to_owned()]));
    other.run("SET 05999:key 1");
    assert!(receives_nothing(&mut client), "one digit less");
}

#[test]
fn broadcasts_cover_prefixes_without_reads() {
    for mode in MODES {
        let server = start(mode);
        let (mut client, mut other) = (resp3(&server), server.client());
        assert_eq!(client.run("CLIENT TRACKING ON BCAST PREFIX user: PREFIX item:"), Value::ok());
        let error = client.run("CLIENT TRACKING ON BCAST PREFIX user:1");
        assert!(
            error.text().starts_with("ERR Prefix 'user:1' overlaps with an existing prefix 'user:'."),
            "{error:?}"
        );
        other.run("SET user:1 x");
        other.run("SET other x");
        other.run("SET item:1 x");
        assert_eq!(invalidated(&mut client), Some(vec!["user:1".to_owned()]), "{mode:?}");
        assert_eq!(invalidated(&mut client), Some(vec!["item:1".to_owned()]));
        assert!(receives_nothing(&mut client));
    }
}

#[test]
fn a_resp2_client_redirects_invalidations() {
    let server = start(MODES[0]);
    let (mut client, mut listener, mut other) = (server.client(), server.client(), server.client());
    let id = listener.run("CLIENT ID").integer().unwrap();
    listener.run("SUBSCRIBE __redis__:invalidate");
    assert_eq!(client.run(&format!("CLIENT TRACKING ON REDIRECT {id}")), Value::ok());
    assert_eq!(client.run("CLIENT GETREDIR").integer(), Some(id));
    client.run("GET a");
    other.run("SET a 1");
    let message = listener.read_value().unwrap();
    let parts = message.elements().unwrap();
    assert_eq!((parts[0].text().as_str(), parts[1].text().as_str()), ("message", "__redis__:invalidate"));
    assert_eq!(parts[2].elements().unwrap()[0].text(), "a");
    let error = client.run("CLIENT TRACKING ON REDIRECT 999999");
    assert_eq!(error.text(), "ERR The client ID you want redirect to does not exist");
}

#[test]
fn the_table_is_bounded() {
    let server = start(MODES[0]);
    let (mut client, mut other) = (resp3(&server), server.client());
    other.run("CONFIG SET tracking-table-max-keys 1024");
    client.run("CLIENT TRACKING ON");
    for number in 0..5000 {
        client.send(format!("GET k{number}\r\n").as_bytes()).unwrap();
    }
    let (mut replies, mut dropped) = (0, 0);
    while replies < 5000 {
        match client.read_value().unwrap() {
            Value::Push(_) => dropped += 1,
            _ => replies += 1,
        }
    }
    let total = other.info_number("tracking_total_keys");
    assert!((1..=1024).contains(&total) && dropped > 0, "{total} keys, {dropped} invalidated");
    // A limit below the number of shards takes effect gradually.
    other.run("CONFIG SET tracking-table-max-keys 3");
    wait_until("the table is smaller", || other.info_number("tracking_total_keys") <= 3);
    (4..=total).for_each(|_| assert!(invalidated(&mut client).is_some()));
    assert_eq!(other.info_number("tracking_total_keys"), 3);
}

#[test]
fn a_broadcast_has_a_message_for_each_prefix_with_all_of_its_keys() {
    for mode in MODES {
        let server = start(mode);
        let (mut client, mut other) = (resp3(&server), server.client());
        // Earlier reads are no longer tracked.
        assert_eq!(client.run("CLIENT TRACKING ON"), Value::ok());
        client.run("GET a:1");
        assert_eq!(client.run("CLIENT TRACKING OFF"), Value::ok());
        assert_eq!(client.run("CLIENT TRACKING ON BCAST PREFIX b: PREFIX a:"), Value::ok());
        for call in ["MULTI", "INCR b:2", "INCR a:2", "INCR c:1", "INCR b:1", "INCR a:1", "INCR a:2", "EXEC"]
        {
            other.run(call);
        }
        assert_eq!(invalidated(&mut client), Some(vec!["a:1".to_owned(), "a:2".to_owned()]), "{mode:?}");
        assert_eq!(invalidated(&mut client), Some(vec!["b:1".to_owned(), "b:2".to_owned()]), "{mode:?}");
        assert!(receives_nothing(&mut client));
        let error = client.run("CLIENT TRACKING ON BCAST PREFIX x:1 PREFIX x:").text();
        assert!(error.starts_with("ERR Prefix 'x:1' overlaps with another provided prefix 'x:'."), "{error}");
    }
}

#[test]
fn clients_with_noloop_are_notified_of_expiry() {
    for mode in MODES {
        for options in ["BCAST NOLOOP", "NOLOOP"] {
            let server = start(mode);
            let mut client = resp3(&server);
            assert_eq!(client.run(&format!("CLIENT TRACKING ON {options}")), Value::ok());
            let replies = client.pipeline(&["SET short x PX 300", "GET short"].map(words)).unwrap();
            assert_eq!(replies[1].text(), "x");
            assert_eq!(client.run("SET other x"), Value::ok());
            // The key is removed by the client's access or by active expiry.
            assert_eq!(invalidated(&mut client), Some(vec!["short".to_owned()]), "{mode:?} {options}");
            assert!(receives_nothing(&mut client));
        }
    }
}

#[test]
fn a_lower_limit_on_tracked_keys_applies_at_once_even_in_a_transaction() {
    for mode in MODES {
        let server = start(mode);
        let (mut client, mut admin) = (resp3(&server), server.client());
        assert_eq!(client.run("CLIENT TRACKING ON NOLOOP"), Value::ok());
        client.run("MGET 1{tag} 2{tag}");
        assert_eq!(client.run("MULTI"), Value::ok());
        assert_eq!(admin.run("CONFIG SET tracking-table-max-keys 1"), Value::ok());
        client.send(b"PING\r\nEXEC\r\n").unwrap();
        let keys = invalidated(&mut client).unwrap();
        assert!(keys.len() == 1 && keys[0].ends_with("{tag}"), "{mode:?}: {keys:?}");
        assert_eq!(client.read_value().unwrap().text(), "QUEUED");
        assert_eq!(client.read_value().unwrap().elements().unwrap()[0].text(), "PONG");

        // The client that sets the limit is also notified, in spite of NOLOOP, after its transaction.
        admin.run("CONFIG SET tracking-table-max-keys 2");
        client.run("MGET 1{tag} 2{tag}");
        client.send(b"MULTI\r\nCONFIG SET tracking-table-max-keys 1\r\nPING\r\nEXEC\r\n").unwrap();
        for _ in 0..3 {
            assert!(!matches!(client.read_value().unwrap(), Value::Push(_)));
        }
        let values = [client.read_value().unwrap(), client.read_value().unwrap()];
        assert!(values.iter().any(|value| matches!(value, Value::Push(_))), "{mode:?}: {values:?}");
        assert!(
            values.iter().any(|value| value.elements().map(<[_]>::len) == Some(2)),
            "{mode:?}: {values:?}"
        );
    }
}
