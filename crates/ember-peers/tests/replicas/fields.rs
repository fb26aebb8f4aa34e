//! Hash fields that expire: Valkey 9 and ember replicate them to each other, and an older Redis does not lose them
//! silently.

use std::collections::BTreeMap;

use ember_peers::{field_expiries, require_program, require_valkey, start_ember};
use ember_testkit::{Server, Value, becomes_true, wait_until};

use crate::matrix::{assert_same_contents, in_both_modes};
use crate::replica::{link, replicaof, start_other, wait_for_link};

/// A number of fields that exceeds the limits of a listpack.
const MANY: usize = 1000;

fn run(server: &Server, lines: &[&str]) {
    let mut client = server.client();
    for line in lines {
        let reply = client.run(line);
        assert!(!matches!(reply, Value::Error(_)), "{line}: {reply:?}");
    }
}

/// Writes hashes of both encodings; some of their fields expire late and some soon.
fn write_hashes(server: &Server, name: &str) {
    let mut client = server.client();
    let soon = format!("HPEXPIRE small{name} 300 FIELDS 1 c");
    for line in
        [&format!("HSET small{name} a 1 b 2 c 3"), &format!("HPEXPIRE small{name} 900000 FIELDS 1 a"), &soon]
    {
        client.run(line);
    }
    for number in 0..MANY {
        client.run(&format!("HSET large{name} field{number} {number}"));
        if number % 3 == 0 {
            let expires_ms = if number % 2 == 0 { 900_000 + number } else { 1 + number };
            client.run(&format!("HPEXPIRE large{name} {expires_ms} FIELDS 1 field{number}"));
        }
    }
}

fn assert_same_fields(primary: &Server, replica: &Server) {
    assert_same_contents(primary, replica);
    let mut found = [BTreeMap::new(), BTreeMap::new()];
    // Only one of the servers may have removed fields that have just expired, so the comparison is repeated.
    let is_same = becomes_true(|| {
        found = [field_expiries(primary), field_expiries(replica)];
        found[0] == found[1]
    });
    assert!(is_same && found[0].len() > MANY / 6, "{found:#?}");
}

fn follow(primary: &Server, replica: &Server) {
    write_hashes(primary, "before");
    run(primary, &["DEBUG POPULATE 2000 key 10000"]);
    replicaof(replica, primary.address());
    // These hashes are written during the full sync and after it.
    write_hashes(primary, "meanwhile");
    wait_for_link(replica);
    write_hashes(primary, "behind");
    run(
        primary,
        &[
            "HPERSIST smallbefore FIELDS 1 a",
            "HPEXPIRE smallbefore 700000 FIELDS 1 b",
            "HSET smallbehind a 2",
            "HDEL smallmeanwhile a",
            "HPEXPIRE largebefore 1 FIELDS 1 field999",
            "HSETEX largebehind PX 800000 FIELDS 2 field1 1 new 2",
            "HGETEX largebehind PX 900000 FIELDS 1 field2",
            "COPY largebehind copied",
            "RENAME largemeanwhile renamed",
        ],
    );
    assert_same_fields(primary, replica);
    assert_eq!(primary.client().info("sync_full"), "1", "{}{}", primary.log(), replica.log());
}

#[test]
fn valkey_replicates_field_expiries_of_ember() {
    in_both_modes(Some(require_valkey), &[], true, |_, primary, replica| follow(primary, replica));
}

#[test]
fn ember_replicates_field_expiries_of_valkey() {
    in_both_modes(Some(require_valkey), &[], false, |_, primary, replica| follow(primary, replica));
}

/// Restores the values of `keys` of one server on another, under other names.
fn restore(from: &Server, on: &Server, keys: &[&str]) {
    let (mut from, mut on) = (from.client(), on.client());
    for key in keys {
        let payload = from.command(&["DUMP", key]);
        let name = format!("restored-{key}");
        let call = [b"RESTORE".as_slice(), name.as_bytes(), b"0", payload.bytes().unwrap(), b"REPLACE"];
        assert_eq!(on.command(&call), Value::ok(), "{key}");
    }
}

const RESTORED: [&str; 5] = ["smallbefore", "largebefore", "text", "set", "stream"];

fn write_restored(server: &Server) {
    write_hashes(server, "before");
    run(server, &["SET text hello", "SADD set a b 1", "XADD stream 1-1 f v", "XGROUP CREATE stream g 0"]);
    run(server, &["XREADGROUP GROUP g c STREAMS stream >"]);
}

#[test]
fn a_replica_keeps_up_when_valkey_restores_payloads_and_imports_keys() {
    in_both_modes(Some(require_valkey), &[], false, |_, valkey, ember| {
        write_restored(valkey);
        link(ember, valkey.address());
        restore(valkey, valkey, &RESTORED);
        let giver = start_other(require_valkey(), &[]);
        write_hashes(&giver, "given");
        run(&giver, &["SET plain 1"]);
        let (ip, port) = (valkey.address().ip().to_string(), valkey.address().port().to_string());
        let to = ["MIGRATE", &ip, &port, "", "0", "5000", "KEYS", "smallgiven", "largegiven", "plain"];
        assert_eq!(giver.client().command(&to), Value::ok());
        assert_same_fields(valkey, ember);
        assert_eq!(valkey.client().info("sync_full"), "1", "{}{}", valkey.log(), ember.log());
    });
}

#[test]
fn valkey_replicates_payloads_of_either_server_restored_by_ember() {
    in_both_modes(Some(require_valkey), &[], true, |_, ember, valkey| {
        write_restored(ember);
        link(valkey, ember.address());
        restore(ember, ember, &RESTORED);
        assert_same_fields(ember, valkey);
        restore(valkey, ember, &RESTORED);
        assert_same_fields(ember, valkey);
        assert_eq!(ember.client().info("sync_full"), "1", "{}{}", ember.log(), valkey.log());
    });
}

#[test]
fn a_redis_without_field_expiries_is_disconnected_and_refuses_the_full_sync() {
    in_both_modes(Some(|| require_program("redis-server")), &[], true, |_, ember, redis| {
        run(ember, &["HSET h a 1 b 2"]);
        link(redis, ember.address());
        let valkey = start_other(require_valkey(), &[]);
        link(&valkey, ember.address());
        run(ember, &["SET before 1", "HPEXPIRE h 900000 FIELDS 1 a", "HSET h c 3"]);
        wait_until("redis is disconnected", || ember.log().contains("cannot be sent HPEXPIREAT"));
        wait_until("redis refuses the full sync", || {
            redis.log().contains("Can't handle RDB format version 12")
        });
        assert!(!redis.log().contains("unknown command"), "{}", redis.log());
        assert_ne!(redis.client().info("master_link_status"), "up");
        assert_same_contents(ember, &valkey);
        assert_eq!(field_expiries(ember), field_expiries(&valkey));
    });
}

#[test]
fn a_redis_without_vector_sets_or_json_is_disconnected_before_such_a_value_is_restored() {
    in_both_modes(Some(|| require_program("redis-server")), &[], true, |mode, ember, redis| {
        let giver = start_ember(mode);
        run(&giver, &["VADD v VALUES 2 1 0 a", "VECTOR.CREATE i DIM 2", "JSON.SET j $ 1"]);
        for key in ["v", "i", "j"] {
            run(ember, &["SET before 1"]);
            link(redis, ember.address());
            restore(&giver, ember, &[key]);
            let message = match key {
                "v" => "cannot be sent RESTORE of a vector set",
                "j" => "cannot be sent RESTORE of a JSON document",
                _ => "cannot be sent RESTORE of a value of a kind that only ember stores",
            };
            wait_until("redis is disconnected", || ember.log().contains(message));
            assert!(!redis.log().contains("Bad data format"), "{}", redis.log());
            run(ember, &["FLUSHALL"]);
            run(redis, &["REPLICAOF NO ONE"]);
        }
    });
}
