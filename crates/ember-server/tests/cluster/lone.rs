//! A node that knows no other node.

use ember_testkit::Value;

use crate::{
    MODES, SLOTS, assert_error, assert_ok, builder, cluster_info, remove, start_with_all_slots, text,
};

#[test]
fn a_new_node_serves_nothing_until_it_has_slots() {
    for mode in MODES {
        let server = builder(mode).start();
        let client = &mut server.client();
        assert_eq!(cluster_info(client, "cluster_state"), "fail");
        assert_error(client, "SET a 1", "CLUSTERDOWN Hash slot not served");
        assert_eq!(client.run("PING"), Value::Simple(b"PONG".to_vec()));
        assert_eq!(client.run("DBSIZE"), Value::Integer(0));
        // The slot of `a` is 15495. With full coverage required, one slot is not enough.
        assert_ok(client, "CLUSTER ADDSLOTS 15495");
        assert_error(client, "SET a 1", "CLUSTERDOWN The cluster is down");
        assert_ok(client, "CONFIG SET cluster-require-full-coverage no");
        assert_ok(client, "SET a 1");
        assert_error(client, "SET b 1", "CLUSTERDOWN Hash slot not served");
        assert_ok(client, "CONFIG SET cluster-require-full-coverage yes");
        assert_error(client, "GET a", "CLUSTERDOWN The cluster is down");
        assert_ok(client, "CLUSTER ADDSLOTSRANGE 0 15494 15496 16383");
        assert_eq!(cluster_info(client, "cluster_state"), "ok");
        assert_eq!(text(client, "GET a"), "1");
    }
}

#[test]
fn slots_survive_a_restart_and_a_crash() {
    for mode in MODES {
        let server = builder(mode).start();
        let client = &mut server.client();
        let name = text(client, "CLUSTER MYID");
        assert_ok(client, "CLUSTER ADDSLOTSRANGE 0 100 200 16383");
        assert_ok(client, "CLUSTER DELSLOTS 100");
        let directory = server.crash();
        let server = builder(mode).directory(&directory).start();
        let client = &mut server.client();
        assert_eq!(text(client, "CLUSTER MYID"), name);
        assert_eq!(cluster_info(client, "cluster_slots_assigned"), "16284");
        assert_ok(client, "CLUSTER ADDSLOTSRANGE 100 199");
        assert_ok(client, "SET key value");
        drop(server);
        remove(&directory);
    }
}

#[test]
fn the_changes_of_slots_are_refused_in_the_words_of_redis() {
    let server = builder(MODES[0]).start();
    let client = &mut server.client();
    for (line, error) in [
        ("CLUSTER ADDSLOTS x", "ERR Invalid or out of range slot"),
        ("CLUSTER ADDSLOTS 16384", "ERR Invalid or out of range slot"),
        ("CLUSTER ADDSLOTS 5 5", "ERR Slot 5 specified multiple times"),
        ("CLUSTER ADDSLOTSRANGE 5 4", "ERR start slot number 5 is greater than end slot number 4"),
        ("CLUSTER ADDSLOTSRANGE 1 3 3 4", "ERR Slot 3 specified multiple times"),
        ("CLUSTER ADDSLOTSRANGE 1 2 3", "ERR wrong number of arguments for 'cluster|addslotsrange' command"),
        ("CLUSTER DELSLOTS 5", "ERR Slot 5 is already unassigned"),
        ("CLUSTER DELSLOTSRANGE 5 6", "ERR Slot 5 is already unassigned"),
    ] {
        assert_error(client, line, error);
    }
    assert_ok(client, "CLUSTER ADDSLOTS 1 2 3");
    assert_error(client, "CLUSTER ADDSLOTS 4 3", "ERR Slot 3 is already busy");
    assert_ok(client, "CLUSTER DELSLOTSRANGE 1 1 3 3");
    assert_eq!(cluster_info(client, "cluster_slots_assigned"), "1");
    assert_ok(client, "CLUSTER FLUSHSLOTS");
    assert_eq!(cluster_info(client, "cluster_slots_assigned"), "0");
}

#[test]
fn flushslots_and_reset_require_an_empty_node() {
    let server = start_with_all_slots(MODES[1]);
    let client = &mut server.client();
    let name = text(client, "CLUSTER MYID");
    assert_ok(client, "SET a 1");
    assert_error(client, "CLUSTER FLUSHSLOTS", "ERR DB must be empty to perform CLUSTER FLUSHSLOTS.");
    let error = "ERR CLUSTER RESET can't be called with master nodes containing keys";
    assert_error(client, "CLUSTER RESET", error);
    assert_eq!(client.run("DEL a"), Value::Integer(1));
    assert_ok(client, "CLUSTER RESET SOFT");
    assert_eq!(text(client, "CLUSTER MYID"), name);
    assert_eq!(cluster_info(client, "cluster_slots_assigned"), "0");
    assert_ok(client, "CLUSTER SET-CONFIG-EPOCH 7");
    assert_error(client, "CLUSTER SET-CONFIG-EPOCH 8", "ERR Node config epoch is already non-zero");
    assert_eq!(client.run("CLUSTER BUMPEPOCH"), Value::Simple(b"STILL 7".to_vec()));
    assert_ok(client, "CLUSTER RESET HARD");
    assert_ne!(text(client, "CLUSTER MYID"), name);
    assert_eq!(cluster_info(client, "cluster_current_epoch"), "0");
    assert_error(client, "CLUSTER RESET MEDIUM", "ERR syntax error");
}

#[test]
fn slots_can_be_assigned_in_a_transaction() {
    for mode in MODES {
        let server = builder(mode).start();
        let client = &mut server.client();
        assert_ok(client, "MULTI");
        client.run("CLUSTER ADDSLOTSRANGE 0 16383");
        client.run("CLUSTER COUNTKEYSINSLOT 5");
        assert_eq!(client.run("EXEC"), Value::Array(vec![Value::ok(), Value::Integer(0)]));
        assert_ok(client, "SET key value");
    }
}

#[test]
fn a_server_with_data_becomes_a_node_that_owns_the_slots_of_its_keys() {
    for mode in MODES {
        let server = ember_testkit::Server::builder(crate::program())
            .arguments(mode)
            .arguments(&["--appendonly", "yes"])
            .start();
        let client = &mut server.client();
        for number in 0..100 {
            assert_ok(client, &format!("SET key:{number} {number}"));
        }
        assert_ok(client, "SET {key:1}:more 1");
        let directory = server.crash();
        let arguments = ["--appendonly", "yes", "--cluster-require-full-coverage", "no"];
        let server = builder(mode).arguments(&arguments).directory(&directory).start();
        let client = &mut server.client();
        assert_eq!(client.run("DBSIZE"), Value::Integer(101));
        assert_eq!(text(client, "GET key:77"), "77");
        let assigned: u16 = cluster_info(client, "cluster_slots_assigned").parse().unwrap();
        assert!((90..=100).contains(&assigned) && assigned < SLOTS, "{assigned} slots");
        drop(server);
        remove(&directory);
    }
}

#[test]
fn commands_that_need_other_nodes_are_refused() {
    let server = builder(MODES[0]).start();
    let client = &mut server.client();
    let name = text(client, "CLUSTER MYID");
    assert_error(client, &format!("CLUSTER FORGET {name}"), "ERR I tried hard but I can't forget myself...");
    assert_error(client, &format!("CLUSTER REPLICATE {name}"), "ERR Can't replicate myself");
    assert_error(client, "CLUSTER MEET here 7000", "ERR Invalid node address specified: here:7000");
    assert_error(client, "CLUSTER FAILOVER", "ERR You should send CLUSTER FAILOVER to a replica");
    assert_ok(client, "CLUSTER SETSLOT 1 STABLE");
    assert_ok(client, &format!("CLUSTER SETSLOT 1 NODE {name}"));
    assert_eq!(cluster_info(client, "cluster_slots_assigned"), "1");
    assert_error(client, "REPLICAOF 127.0.0.1 7000", "ERR REPLICAOF not allowed in cluster mode.");
    assert_error(client, "FAILOVER", "ERR FAILOVER not allowed in cluster mode.");
}
