//! Three nodes of a topology written by hand: calls on slots of other nodes are redirected.

use ember_testkit::{RawClient, Value};

use crate::{MODES, THREE, assert_error, assert_ok, start_nodes, start_with_all_slots, stop, text};

const CROSS_SLOT: &str = "CROSSSLOT Keys in request don't hash to the same slot";

#[test]
fn each_key_is_served_by_one_node_and_the_others_name_it() {
    for mode in MODES {
        let nodes = start_nodes(mode, &[], &THREE);
        let mut clients: Vec<RawClient> = nodes.iter().map(|node| node.client()).collect();
        for number in 0..200 {
            let key = format!("key:{number}");
            let Value::Integer(slot) = clients[0].run(&format!("CLUSTER KEYSLOT {key}")) else { panic!() };
            let slot = u16::try_from(slot).unwrap();
            let owner = usize::from(slot > 5460) + usize::from(slot > 10922);
            for (at, client) in clients.iter_mut().enumerate() {
                if at == owner {
                    assert_ok(client, &format!("SET {key} {number}"));
                    assert_eq!(text(client, &format!("GET {key}")), number.to_string());
                } else {
                    assert_error(client, &format!("SET {key} x"), &nodes[owner].moved(slot));
                    assert_error(client, &format!("GET {key}"), &nodes[owner].moved(slot));
                    assert_error(client, &format!("OBJECT ENCODING {key}"), &nodes[owner].moved(slot));
                }
            }
        }
        let keys: i64 = clients.iter_mut().map(|client| integer(client, "DBSIZE")).sum();
        assert_eq!(keys, 200);
        stop(nodes);
    }
}

fn integer(client: &mut RawClient, line: &str) -> i64 {
    match client.run(line) {
        Value::Integer(number) => number,
        other => panic!("{line}: {other:?}"),
    }
}

#[test]
fn a_pipeline_gets_a_redirection_for_each_foreign_key_in_order() {
    for mode in MODES {
        let nodes = start_nodes(mode, &[], &THREE);
        let mut client = nodes[0].client();
        let commands: Vec<Vec<String>> =
            (0..100).map(|number| vec!["SET".to_owned(), format!("k{number}"), number.to_string()]).collect();
        let replies = client.pipeline(&commands).unwrap();
        for (command, reply) in commands.iter().zip(replies) {
            let slot =
                u16::try_from(integer(&mut client, &format!("CLUSTER KEYSLOT {}", command[1]))).unwrap();
            let expected = match slot {
                0..=5460 => Value::ok(),
                5461..=10922 => Value::Error(nodes[1].moved(slot).into_bytes()),
                _ => Value::Error(nodes[2].moved(slot).into_bytes()),
            };
            assert_eq!(reply, expected, "{command:?}");
        }
        stop(nodes);
    }
}

#[test]
fn several_keys_must_be_in_one_slot() {
    for mode in MODES {
        let nodes = start_nodes(mode, &[], &THREE);
        // The slots: a 15495, b 3300, {b}… 3300.
        let mut client = nodes[0].client();
        assert_ok(&mut client, "MSET {b}1 1 {b}2 2");
        assert_eq!(client.run("EXISTS b {b}1 {b}2"), Value::Integer(2));
        assert_error(&mut client, "MGET b a", CROSS_SLOT);
        assert_error(&mut client, "MGET a b", CROSS_SLOT);
        assert_error(&mut client, "MGET a {a}2", &nodes[2].moved(15495));
        assert_error(&mut client, "RENAME b c", CROSS_SLOT);
        assert_error(&mut client, "WATCH a", &nodes[2].moved(15495));
        assert_error(&mut client, "SORT b BY w_*", "ERR BY option of SORT denied in Cluster mode.");
        assert_error(&mut client, "SORT b GET #", "ERR GET option of SORT denied in Cluster mode.");
        stop(nodes);
    }
}

#[test]
fn transactions_are_checked_when_calls_are_queued_and_when_they_run() {
    for mode in MODES {
        let nodes = start_nodes(mode, &[], &THREE);
        let client = &mut nodes[0].client();
        assert_ok(client, "MULTI");
        assert_error(client, "SET a 1", &nodes[2].moved(15495));
        assert_error(client, "EXEC", "EXECABORT Transaction discarded because of previous errors.");
        assert_ok(client, "MULTI");
        client.run("SET b 1");
        client.run("INCR {b}n");
        assert_eq!(client.run("EXEC"), Value::Array(vec![Value::ok(), Value::Integer(1)]));
        // Two slots of this node: `b` is in 3300, `f` in 3168.
        assert_ok(client, "MULTI");
        client.run("SET b 1");
        client.run("SET f 1");
        assert_error(client, "EXEC", CROSS_SLOT);
        assert_error(client, "EXEC", "ERR EXEC without MULTI");
        assert_eq!(client.run("EXISTS f"), Value::Integer(0));
        stop(nodes);
    }
}

#[test]
fn the_endpoint_in_redirections_has_the_preferred_type() {
    let nodes = start_nodes(MODES[0], &[], &THREE);
    let client = &mut nodes[0].client();
    let port = nodes[2].port;
    assert_ok(client, "CONFIG SET cluster-preferred-endpoint-type hostname");
    assert_error(client, "GET a", &format!("MOVED 15495 ?:{port}"));
    assert_ok(client, "CONFIG SET cluster-preferred-endpoint-type unknown-endpoint");
    assert_error(client, "GET a", &format!("MOVED 15495 :{port}"));
    stop(nodes);
}

#[test]
fn reads_are_served_while_the_cluster_is_down_if_that_is_allowed() {
    use crate::Part::Slots;
    for mode in MODES {
        // Slot 16383 has no owner.
        let nodes = start_nodes(mode, &[], &[Slots("0-5460"), Slots("5461-16382")]);
        let client = &mut nodes[0].client();
        for (line, error) in [
            ("GET b", "CLUSTERDOWN The cluster is down"),
            ("GET a", "CLUSTERDOWN The cluster is down"),
            ("MGET a b", CROSS_SLOT),
        ] {
            assert_error(client, line, error);
        }
        assert_ok(client, "CONFIG SET cluster-allow-reads-when-down yes");
        assert_eq!(client.run("GET b"), Value::Null);
        assert_error(client, "GET a", &nodes[1].moved(15495));
        assert_error(client, "SET b 1", "CLUSTERDOWN The cluster is down and only accepts read commands");
        stop(nodes);
    }
}

#[test]
fn shard_channels_belong_to_slots() {
    for mode in MODES {
        let nodes = start_nodes(mode, &[], &THREE);
        let client = &mut nodes[0].client();
        assert_error(client, "SSUBSCRIBE a", &nodes[2].moved(15495));
        assert_error(client, "SSUBSCRIBE a b", CROSS_SLOT);
        assert_error(client, "SPUBLISH a message", &nodes[2].moved(15495));
        let receiver = &mut nodes[0].client();
        receiver.run("SSUBSCRIBE b");
        assert_eq!(client.run("SPUBLISH b message"), Value::Integer(1));
        assert_eq!(client.run("PUBLISH a message"), Value::Integer(0), "other channels belong to no slot");
        stop(nodes);
    }
}

#[test]
fn live_queries_are_watched_on_the_node_of_their_keys() {
    for mode in MODES {
        let nodes = start_nodes(mode, &[], &THREE);
        let client = &mut nodes[0].client();
        for line in ["GET.WATCH a", "WATCH.OPEN COMMAND GET a", "SUBSCRIBE __watch@0__:GET\u{20}a"] {
            let words: Vec<&str> = match line.strip_prefix("SUBSCRIBE ") {
                Some(channel) => vec!["SUBSCRIBE", channel],
                None => line.split(' ').collect(),
            };
            let reply = client.command(&words);
            assert_eq!(reply, Value::Error(nodes[2].moved(15495).into_bytes()), "{line}");
        }
        assert_eq!(client.run("GET.WATCH b").elements().unwrap().len(), 3);
        stop(nodes);
    }
}

#[test]
fn blocking_commands_and_copies_are_checked_like_others() {
    for mode in MODES {
        let nodes = start_nodes(mode, &[], &THREE);
        let client = &mut nodes[0].client();
        assert_error(client, "BLPOP a 0", &nodes[2].moved(15495));
        assert_error(client, "BLMOVE b a LEFT LEFT 0", CROSS_SLOT);
        assert_error(client, "XREAD BLOCK 0 STREAMS a $", &nodes[2].moved(15495));
        assert_error(client, "MIGRATE 127.0.0.1 1 a 0 100", &nodes[2].moved(15495));
        stop(nodes);
    }
}

#[test]
fn a_node_has_as_many_databases_as_configured() {
    for mode in MODES {
        let server = start_with_all_slots(mode);
        let client = &mut server.client();
        assert_ok(client, "SELECT 0");
        assert_error(client, "SELECT 1", "ERR SELECT is not allowed in cluster mode");
        assert_ok(client, "SET a 1");
        assert_error(client, "MOVE a 1", "ERR MOVE is not allowed in cluster mode");
        let copying = "ERR Copying to another database is not allowed in cluster mode";
        assert_error(client, "COPY a {a}2 DB 1", copying);
        assert_eq!(client.run("COPY a {a}2 DB 0"), Value::Integer(1));
        assert_error(client, "SWAPDB 0 1", "ERR SWAPDB is not allowed in cluster mode");
        let server = crate::builder(mode).arguments(&["--cluster-databases", "4"]).start();
        let client = &mut server.client();
        assert_ok(client, "CLUSTER ADDSLOTSRANGE 0 16383");
        assert_ok(client, "SELECT 3");
        assert_ok(client, "SET a 1");
        assert_eq!(client.run("CLUSTER COUNTKEYSINSLOT 15495"), Value::Integer(1));
        assert_eq!(client.run("MOVE a 2"), Value::Integer(1));
        assert_error(client, "SELECT 4", "ERR DB index is out of range");
        assert_error(client, "SWAPDB 0 1", "ERR SWAPDB is not allowed in cluster mode");
    }
}

#[test]
fn a_node_has_a_history_of_all_its_databases() {
    for mode in MODES {
        let arguments = ["--databases", "1", "--cluster-databases", "4", "--history-keys", "*"];
        let server = crate::builder(mode).arguments(&arguments).start();
        let client = &mut server.client();
        assert_ok(client, "CLUSTER ADDSLOTSRANGE 0 16383");
        assert_ok(client, "SELECT 3");
        assert_ok(client, "SET a 1");
        assert_ok(client, "SET a 2");
        assert_eq!(client.run("HISTORY.COUNT a"), Value::Integer(2));
    }
}
