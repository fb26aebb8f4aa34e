//! The Rust client library `redis` with ember, over RESP2, RESP3 and a unix socket.

use std::collections::{HashMap, HashSet};
use std::sync::mpsc;
use std::time::Duration;

use ember_peers::{Mode, start_ember};
use redis::{Client, Commands, Connection, ErrorKind, PubSub, PushKind, RedisResult, Value};

fn smoke(mut connection: Connection) {
    assert_eq!(redis::cmd("PING").query::<String>(&mut connection).unwrap(), "PONG");
    redis::cmd("FLUSHDB").exec(&mut connection).unwrap();

    let binary = vec![0u8, 13, 10, 255];
    let _: () = connection.set(&binary, &binary).unwrap();
    assert_eq!(connection.get::<_, Vec<u8>>(&binary).unwrap(), binary);
    assert_eq!(connection.get::<_, Option<String>>("missing").unwrap(), None);

    let mut pipeline = redis::pipe();
    for number in 0..1000 {
        pipeline.set(format!("key:{number}"), number);
    }
    let replies: Vec<Value> = pipeline.query(&mut connection).unwrap();
    assert_eq!(replies, vec![Value::Okay; 1000]);
    let values: (i64, i64, Option<i64>) = connection.mget(&["key:1", "key:999", "none"]).unwrap();
    assert_eq!(values, (1, 999, None));

    assert_eq!(connection.incr::<_, _, i64>("counter", 42).unwrap(), 42);
    assert!(connection.expire::<_, bool>("counter", 100).unwrap());
    assert!((98..=100).contains(&connection.ttl::<_, i64>("counter").unwrap()));
    assert!(connection.persist::<_, bool>("counter").unwrap());

    let found: HashSet<String> =
        connection.scan_match::<_, String>("key:*").unwrap().collect::<RedisResult<_>>().unwrap();
    assert_eq!(found.len(), 1000);

    assert!(!connection.setbit::<_, bool>("bits", 7, true).unwrap());
    assert!(connection.getbit::<_, bool>("bits", 7).unwrap());
    assert_eq!(connection.bitcount::<_, i64>("bits").unwrap(), 1);

    redis::cmd("CLIENT").arg("SETNAME").arg("smoke").exec(&mut connection).unwrap();
    let name: String = redis::cmd("CLIENT").arg("GETNAME").query(&mut connection).unwrap();
    assert_eq!(name, "smoke");
    redis::cmd("SELECT").arg(7).exec(&mut connection).unwrap();
    assert_eq!(connection.get::<_, Option<i64>>("key:1").unwrap(), None);
    redis::cmd("SELECT").arg(0).exec(&mut connection).unwrap();

    let error = redis::cmd("NOSUCHCOMMAND").arg("x").exec(&mut connection).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Server(_)), "{error:?}");
    assert!(error.to_string().contains("unknown command 'NOSUCHCOMMAND'"), "{error}");

    let large: Vec<u8> = (0..=255).cycle().take(5 * 1024 * 1024).collect();
    let _: () = connection.set("large", &large).unwrap();
    assert!(connection.get::<_, Vec<u8>>("large").unwrap() == large);
}

/// The longest wait for a state.
const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn redis_rs_receives_states_of_live_queries() {
    for mode in [Mode::Concurrent, Mode::Sharded] {
        let server = start_ember(mode);
        let open = |protocol: &str| {
            let place = format!("redis://127.0.0.1:{}/?protocol={protocol}", server.port());
            Client::open(place).unwrap().get_connection().unwrap()
        };
        let (mut writer, mut pushed, mut subscriber) = (open("resp2"), open("resp3"), open("resp2"));
        writer.set::<_, _, ()>("price", 10).unwrap();

        let (sender, pushes) = mpsc::channel();
        pushed.set_push_sender(sender);
        pushed.set_read_timeout(Some(PATIENCE)).unwrap();
        let first: Value = redis::cmd("GET.WATCH").arg("price").query(&mut pushed).unwrap();
        let first: HashMap<String, String> = redis::from_redis_value(first).unwrap();
        assert_eq!((first["fingerprint"].as_str(), first["result"].as_str()), ("3058063992", "10"));
        let mut states = subscriber.as_pubsub();
        states.set_read_timeout(Some(PATIENCE)).unwrap();
        states.subscribe("__watch@0__:GET price").unwrap();
        let message = |states: &mut PubSub<'_>| -> String {
            let message: String = states.get_message().unwrap().get_payload().unwrap();
            let state: serde_json::Value = serde_json::from_str(&message).unwrap();
            state["result"].as_str().unwrap().to_owned()
        };
        assert_eq!(message(&mut states), "10");
        for price in 11..14 {
            assert_eq!(writer.incr::<_, _, i64>("price", 1).unwrap(), price);
            assert_eq!(message(&mut states), price.to_string());
            // Pushes are read with the next reply.
            let push = loop {
                redis::cmd("PING").exec(&mut pushed).unwrap();
                if let Ok(push) = pushes.try_recv() {
                    break push;
                }
            };
            assert_eq!(push.kind, PushKind::Other("watch".to_owned()));
            let [fingerprint, _, result]: [String; 3] =
                redis::from_redis_value(Value::Array(push.data)).unwrap();
            assert_eq!((fingerprint.as_str(), result), ("3058063992", price.to_string()));
        }
    }
}

#[test]
fn redis_rs_works() {
    for mode in [Mode::Concurrent, Mode::Sharded] {
        let server = start_ember(mode);
        let socket = server.unix_socket().unwrap().display().to_string();
        for protocol in ["resp2", "resp3"] {
            let places = [
                format!("redis://127.0.0.1:{}/?protocol={protocol}", server.port()),
                format!("redis+unix://{socket}?protocol={protocol}"),
            ];
            for place in places {
                smoke(Client::open(place).unwrap().get_connection().unwrap());
            }
        }
    }
}
