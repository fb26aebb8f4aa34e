//! Replicas of a fixed topology.

use ember_testkit::{Value, wait_until};

use crate::{MODES, Part, assert_error, assert_ok, cluster_info, start_nodes, stop, text};

#[test]
fn a_replica_follows_its_primary_and_serves_reads_to_clients_that_ask_for_them() {
    for mode in MODES {
        let parts = [Part::Slots("0-16383"), Part::ReplicaOf(0)];
        let nodes = start_nodes(mode, &["--repl-diskless-sync-delay", "0"], &parts);
        let (primary, replica) = (&mut nodes[0].client(), &mut nodes[1].client());
        assert_ok(primary, "SET a 1");
        wait_until("the replica has the key", || replica.run("DBSIZE") == Value::Integer(1));
        assert_error(replica, "GET a", &nodes[0].moved(15495));
        assert_ok(replica, "READONLY");
        assert!(text(replica, "CLIENT INFO").contains(" flags=r "));
        assert_eq!(text(replica, "GET a"), "1");
        assert_eq!(replica.run("MGET a {a}2").elements().unwrap().len(), 2);
        assert_error(replica, "SET a 2", &nodes[0].moved(15495));
        assert_ok(replica, "MULTI");
        replica.run("GET a");
        assert_eq!(replica.run("EXEC"), Value::Array(vec![Value::from("1")]));
        assert_ok(replica, "READWRITE");
        assert_error(replica, "GET a", &nodes[0].moved(15495));
        assert_eq!(cluster_info(replica, "cluster_size"), "1");
        let lines = primary.run(&format!("CLUSTER REPLICAS {}", nodes[0].name));
        let lines = lines.elements().unwrap();
        assert!(lines.len() == 1 && lines[0].text().starts_with(&nodes[1].name), "{lines:?}");
        assert_error(
            primary,
            &format!("CLUSTER REPLICAS {}", nodes[1].name),
            "ERR The specified node is not a master",
        );
        // The primary of a node is not a setting, so a rewritten configuration does not name it.
        assert_eq!(primary.info("connected_slaves"), "1");
        stop(nodes);
    }
}

#[test]
fn shard_channels_are_served_by_replicas_too() {
    for mode in MODES {
        let parts = [Part::Slots("0-16383"), Part::ReplicaOf(0)];
        let nodes = start_nodes(mode, &["--repl-diskless-sync-delay", "0"], &parts);
        let (primary, replica) = (&mut nodes[0].client(), &mut nodes[1].client());
        wait_until("the link is up", || primary.info("connected_slaves") == "1");
        replica.run("SSUBSCRIBE a");
        wait_until("the message arrives", || {
            primary.run("SPUBLISH a message");
            replica.run("PING").elements().is_some_and(|words| words[0].text() == "smessage")
        });
        stop(nodes);
    }
}
