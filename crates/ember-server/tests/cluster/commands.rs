//! The commands that describe the cluster, in both protocols.

use ember_testkit::Value;

use crate::{
    MODES, THREE, assert_error, assert_ok, cluster_info, start_nodes, start_with_all_slots, stop, text,
};

#[test]
fn cluster_slots_and_shards_list_all_nodes() {
    let nodes = start_nodes(MODES[0], &[], &THREE);
    let client = &mut nodes[1].client();
    let slots = client.run("CLUSTER SLOTS");
    let slots = slots.elements().unwrap();
    assert_eq!(slots.len(), 3);
    for (range, (node, bounds)) in
        slots.iter().zip(nodes.iter().zip([(0, 5460), (5461, 10922), (10923, 16383)]))
    {
        let address = [
            Value::from("127.0.0.1"),
            Value::Integer(node.port.into()),
            Value::from(&*node.name),
            Value::Array(Vec::new()),
        ];
        let expected = [Value::Integer(bounds.0), Value::Integer(bounds.1), Value::Array(address.to_vec())];
        assert_eq!(*range, Value::Array(expected.to_vec()));
    }
    let shards = client.run("CLUSTER SHARDS");
    let shards = shards.elements().unwrap();
    let fields = shards[0].elements().unwrap();
    assert_eq!([fields[0].text(), fields[2].text()], ["slots", "nodes"]);
    assert_eq!(fields[1], Value::Array(vec![Value::Integer(0), Value::Integer(5460)]));
    let node: Vec<String> =
        fields[3].elements().unwrap()[0].elements().unwrap().iter().map(Value::text).collect();
    assert_eq!(
        node.iter().step_by(2).collect::<Vec<_>>(),
        ["id", "port", "ip", "endpoint", "role", "replication-offset", "health"]
    );
    for (name, value) in [
        ("cluster_state", "ok"),
        ("cluster_slots_assigned", "16384"),
        ("cluster_slots_ok", "16384"),
        ("cluster_known_nodes", "3"),
        ("cluster_size", "3"),
        ("cluster_current_epoch", "2"),
        ("cluster_my_epoch", "1"),
        ("cluster_stats_messages_sent", "0"),
    ] {
        assert_eq!(cluster_info(client, name), value, "{name}");
    }
    assert_eq!(text(client, "CLUSTER NODES").lines().count(), 3);
    assert_eq!(client.run("CLUSTER LINKS"), Value::Array(Vec::new()));
    assert_eq!(client.run(&format!("CLUSTER COUNT-FAILURE-REPORTS {}", nodes[0].name)), Value::Integer(0));
    assert_error(client, "CLUSTER COUNT-FAILURE-REPORTS x", "ERR Unknown node x");
    let error = client.run("CLUSTER DELSLOTS 5461");
    assert!(error.text().contains("agreement of the 3 nodes"), "{error:?}");
    assert_ok(client, "CLUSTER SAVECONFIG");
    stop(nodes);
}

#[test]
fn endpoints_have_the_preferred_type() {
    let server = start_with_all_slots(MODES[0]);
    let client = &mut server.client();
    assert_ok(client, "CONFIG SET cluster-announce-hostname a.example cluster-announce-ip 10.0.0.1");
    let address = |client: &mut ember_testkit::RawClient| {
        client.run("CLUSTER SLOTS").elements().unwrap()[0].elements().unwrap()[2].elements().unwrap().to_vec()
    };
    let pair = |name: &str, value: &str| Value::Array(vec![Value::from(name), Value::from(value)]);
    let found = address(client);
    assert_eq!((&found[0], &found[3]), (&Value::from("10.0.0.1"), &pair("hostname", "a.example")));
    assert_ok(client, "CONFIG SET cluster-preferred-endpoint-type hostname");
    let found = address(client);
    assert_eq!((&found[0], &found[3]), (&Value::from("a.example"), &pair("ip", "10.0.0.1")));
    assert_ok(client, "CONFIG SET cluster-preferred-endpoint-type unknown-endpoint");
    assert_eq!(address(client)[0], Value::Null);
}

#[test]
fn the_server_says_that_it_is_a_node_of_a_cluster() {
    let server = start_with_all_slots(MODES[0]);
    let client = &mut server.client();
    assert_eq!(client.info("cluster_enabled"), "1");
    assert_eq!(client.info("redis_mode"), "cluster");
    let hello = client.run("HELLO 2");
    let hello: Vec<String> = hello.elements().unwrap().iter().map(Value::text).collect();
    let mode = hello.iter().position(|word| word.contains("mode")).unwrap();
    assert!(hello[mode + 1].contains("cluster"), "{hello:?}");
    assert_eq!(text(client, "CLUSTER MYSHARDID").len(), 40);
    for line in ["READONLY", "READWRITE", "ASKING"] {
        assert_ok(client, line);
    }
    let help = client.run("CLUSTER HELP");
    assert!(help.elements().unwrap().len() > 40);
}

#[test]
fn the_keys_of_each_slot_are_counted_and_found() {
    for mode in MODES {
        let server = start_with_all_slots(mode);
        let client = &mut server.client();
        for number in 0..500 {
            assert_ok(client, &format!("SET {{a}}{number} 1"));
            assert_ok(client, &format!("SET other:{number} 1"));
        }
        assert_eq!(client.run("CLUSTER COUNTKEYSINSLOT 15495"), Value::Integer(500));
        let found = client.run("CLUSTER GETKEYSINSLOT 15495 1000");
        let mut found: Vec<String> = found.elements().unwrap().iter().map(Value::text).collect();
        found.sort_unstable();
        found.dedup();
        assert_eq!(found.len(), 500);
        assert!(found.iter().all(|key| key.starts_with("{a}")));
        assert_eq!(client.run("CLUSTER GETKEYSINSLOT 15495 7").elements().unwrap().len(), 7);
        client.run("DEL {a}1 {a}2");
        client.run("PEXPIRE {a}3 1");
        assert_eq!(client.run("RENAME {a}4 {a}5"), Value::ok());
        ember_testkit::wait_until("a key has expired", || {
            client.run("CLUSTER COUNTKEYSINSLOT 15495") == Value::Integer(496)
        });
        let top = client.run("CLUSTER SLOT-STATS ORDERBY KEY-COUNT LIMIT 1");
        let stat = [Value::from("key-count"), Value::Integer(496)];
        let expected = Value::Array(vec![Value::Integer(15495), Value::Array(stat.to_vec())]);
        assert_eq!(top, Value::Array(vec![expected.clone()]));
        assert_eq!(client.run("CLUSTER SLOT-STATS SLOTSRANGE 15495 15495"), Value::Array(vec![expected]));
        client.run("FLUSHALL");
        assert_eq!(client.run("CLUSTER COUNTKEYSINSLOT 15495"), Value::Integer(0));
        for (line, error) in [
            ("CLUSTER COUNTKEYSINSLOT 16384", "ERR Invalid slot"),
            ("CLUSTER COUNTKEYSINSLOT x", "ERR value is not an integer or out of range"),
            ("CLUSTER GETKEYSINSLOT 1 -1", "ERR Invalid slot or number of keys"),
            ("CLUSTER SLOT-STATS ORDERBY color", "ERR Unrecognized sort metric for ORDERBY."),
            ("CLUSTER SLOT-STATS ORDERBY key-count LIMIT 1 LIMIT 2", "ERR syntax error"),
            (
                "CLUSTER SLOT-STATS SLOTSRANGE 2 1",
                "ERR Start slot number 2 is greater than end slot number 1",
            ),
        ] {
            assert_error(client, line, error);
        }
    }
}

#[test]
fn a_node_whose_keys_are_all_in_one_slot_evicts_and_stays_correct() {
    for mode in MODES {
        let server = crate::builder(mode)
            .arguments(&["--maxmemory", "8mb", "--maxmemory-policy", "allkeys-lru"])
            .keeps_values()
            .start();
        let client = &mut server.client();
        assert_ok(client, "CLUSTER ADDSLOTSRANGE 0 16383");
        let value = "x".repeat(1000);
        for number in 0..20_000 {
            assert_eq!(client.command(&["SET", &format!("{{a}}{number}"), &value]), Value::ok());
        }
        assert!(client.info_number("evicted_keys") > 5_000);
        let Value::Integer(keys) = client.run("DBSIZE") else { panic!() };
        assert_eq!(client.run("CLUSTER COUNTKEYSINSLOT 15495"), Value::Integer(keys));
    }
}
