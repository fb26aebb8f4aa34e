//! Slots that a node gives up: blocked calls, subscriptions and watches in them end.

use ember_testkit::{RawClient, Server, Value, wait_until};

use crate::{MODES, assert_error, assert_ok, builder};

/// Starts a lone node that owns all slots and serves them one by one.
fn start(mode: &[&str], arguments: &[&str]) -> Server {
    let arguments = [&["--cluster-require-full-coverage", "no"], arguments].concat();
    let server = builder(mode).arguments(&arguments).start();
    assert_ok(&mut server.client(), "CLUSTER ADDSLOTSRANGE 0 16383");
    server
}

fn read(client: &mut RawClient) -> Value {
    client.read_value().unwrap()
}

const NOT_SERVED: &str = "CLUSTERDOWN Hash slot not served";

#[test]
fn blocked_calls_end_with_an_error() {
    for mode in MODES {
        let server = start(mode, &[]);
        let (client, other, admin) = (&mut server.client(), &mut server.client(), &mut server.client());
        client.send_command(&["BLPOP", "a", "0"]).unwrap();
        other.send_command(&["BLPOP", "b", "0"]).unwrap();
        wait_until("both are blocked", || admin.info_number("blocked_clients") == 2);
        assert_ok(admin, "CLUSTER DELSLOTS 15495");
        assert_eq!(read(client), Value::Error(NOT_SERVED.as_bytes().to_vec()));
        assert_eq!(admin.run("RPUSH b 1"), Value::Integer(1));
        assert_eq!(read(other).elements().unwrap().len(), 2);
        // If the whole cluster is down, the error states that reason.
        client.send_command(&["BLPOP", "b", "0"]).unwrap();
        wait_until("it is blocked", || admin.info_number("blocked_clients") == 1);
        assert_ok(admin, "CONFIG SET cluster-require-full-coverage yes");
        assert_eq!(read(client), Value::Error(b"CLUSTERDOWN The cluster is down".to_vec()));
    }
}

#[test]
fn subscriptions_of_shard_channels_end_with_a_message() {
    for mode in MODES {
        let server = start(mode, &[]);
        let (client, admin) = (&mut server.client(), &mut server.client());
        client.run("SSUBSCRIBE a");
        client.run("SSUBSCRIBE b");
        assert_ok(admin, "CLUSTER DELSLOTS 15495");
        let ended = [Value::from("sunsubscribe"), Value::from("a"), Value::Integer(1)];
        assert_eq!(read(client), Value::Array(ended.to_vec()));
        assert_eq!(admin.run("SPUBLISH b message"), Value::Integer(1));
        let message = [Value::from("smessage"), Value::from("b"), Value::from("message")];
        assert_eq!(read(client), Value::Array(message.to_vec()));
    }
}

#[test]
fn watches_of_live_queries_end_with_an_error() {
    for mode in MODES {
        let server = start(mode, &[]);
        let (client, admin) = (&mut server.client(), &mut server.client());
        client.run("HELLO 3");
        client.run("GET.WATCH a");
        client.run("GET.WATCH b");
        assert_ok(admin, "CLUSTER DELSLOTS 15495");
        let Value::Push(end) = read(client) else { panic!("the end is a push") };
        assert_eq!(end.last(), Some(&Value::Error(NOT_SERVED.as_bytes().to_vec())));
        assert_ok(admin, "SET b 1");
        let Value::Push(state) = read(client) else { panic!("a state is a push") };
        assert_eq!(state.last(), Some(&Value::from("1")));
    }
}

#[test]
fn transactions_on_a_lost_slot_do_not_run() {
    for mode in MODES {
        let server = start(mode, &[]);
        let (client, admin) = (&mut server.client(), &mut server.client());
        assert_ok(client, "WATCH a");
        assert_ok(client, "MULTI");
        client.run("SET b 1");
        assert_ok(admin, "CLUSTER DELSLOTS 15495");
        assert!(matches!(client.run("EXEC"), Value::Null), "the watched key is not known");
        assert_ok(client, "MULTI");
        client.run("SET b 1");
        assert_ok(admin, "CLUSTER DELSLOTS 3300");
        assert_error(client, "EXEC", NOT_SERVED);
        assert_error(client, "EXEC", "ERR EXEC without MULTI");
    }
}

#[test]
fn a_long_call_does_not_store_into_a_lost_slot() {
    for mode in MODES {
        let server = start(mode, &["--long-call-elements", "100", "--enable-debug-command", "yes"]);
        let (client, admin) = (&mut server.client(), &mut server.client());
        let members: Vec<String> = (0..200_000).map(|number| number.to_string()).collect();
        for part in members.chunks(10_000) {
            let words: Vec<&str> =
                ["SADD", "{a}1"].into_iter().chain(part.iter().map(String::as_str)).collect();
            client.command(&words);
        }
        client.send_command(&["SUNIONSTORE", "{a}2", "{a}1"]).unwrap();
        assert_ok(admin, "CLUSTER DELSLOTS 15495");
        // The call has either ended before the slot was lost, or it is refused.
        let reply = read(client);
        let refused = Value::Error(NOT_SERVED.as_bytes().to_vec());
        let keys = if reply == refused { 1 } else { 2 };
        assert!(reply == refused || reply == Value::Integer(200_000), "{reply:?}");
        assert_eq!(admin.run("DBSIZE"), Value::Integer(keys));
    }
}
