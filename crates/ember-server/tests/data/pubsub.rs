//! Publish and subscribe: receivers, order, and subscribers that do not read.

use std::thread;

use ember_testkit::{RawClient, Value, render};

use crate::{MODES, clients, start};

fn read(client: &mut RawClient) -> String {
    render(&client.read_value().unwrap()).trim_end().to_owned()
}

fn strings(value: &Value) -> Vec<String> {
    let (Value::Push(parts) | Value::Array(parts)) = value else { panic!("no message: {value:?}") };
    parts.iter().map(|part| part.integer().map_or_else(|| part.text(), |number| number.to_string())).collect()
}

#[test]
fn earlier_messages_arrive_before_the_end_of_a_subscription() {
    for mode in MODES {
        let server = start(mode);
        // The publishers are on different workers in at least one of the rounds.
        let mut publishers = [server.client(), server.client()];
        let mut subscriber = server.client();
        for round in 0..1000 {
            subscriber.run("SUBSCRIBE channel");
            for message in ["one", "two"] {
                let publisher = &mut publishers[round % 2];
                assert_eq!(publisher.command(&["PUBLISH", "channel", message]), Value::Integer(1));
            }
            subscriber.send(b"UNSUBSCRIBE channel\r\n").unwrap();
            let kinds = [(); 3].map(|()| strings(&subscriber.read_value().unwrap())[0].clone());
            assert_eq!(kinds, ["message", "message", "unsubscribe"], "{mode:?}: round {round}");
        }
    }
}

#[test]
fn messages_reach_channels_patterns_and_shard_channels_in_both_protocols() {
    for mode in MODES {
        let server = start(mode);
        let mut publisher = server.client();
        for mut client in clients(&server) {
            let replies: Vec<_> = [
                (&b"SUBSCRIBE a b\r\n"[..], 2),
                (b"PSUBSCRIBE a* ?\r\n", 2),
                (b"SSUBSCRIBE a\r\n", 1),
                (b"UNSUBSCRIBE b\r\n", 1),
            ]
            .into_iter()
            .flat_map(|(line, count)| {
                client.send(line).unwrap();
                (0..count).map(|_| strings(&client.read_value().unwrap())).collect::<Vec<_>>()
            })
            .collect();
            let expected = [
                ["subscribe", "a", "1"],
                ["subscribe", "b", "2"],
                ["psubscribe", "a*", "3"],
                ["psubscribe", "?", "4"],
                ["ssubscribe", "a", "1"],
                ["unsubscribe", "b", "3"],
            ];
            assert_eq!(replies, expected, "{mode:?}");
            assert_eq!(publisher.run("PUBLISH a one").integer(), Some(3));
            assert_eq!(publisher.run("SPUBLISH a two").integer(), Some(1));
            assert_eq!(publisher.run("PUBLISH none three").integer(), Some(0));
            let mut messages: Vec<_> = (0..4).map(|_| strings(&client.read_value().unwrap())).collect();
            assert_eq!(messages.pop().unwrap(), ["smessage", "a", "two"]);
            messages.sort();
            assert_eq!(
                messages,
                [
                    vec!["message", "a", "one"],
                    vec!["pmessage", "?", "a", "one"],
                    vec!["pmessage", "a*", "a", "one"]
                ]
            );
            assert_eq!(
                render(&publisher.run("PUBSUB NUMSUB a b")).trim_end(),
                "1) \"a\"\n2) (integer) 1\n3) \"b\"\n4) (integer) 0"
            );
            assert_eq!(publisher.run("PUBSUB NUMPAT").integer(), Some(2));
            assert_eq!(publisher.run("PUBSUB CHANNELS a*").elements().unwrap().len(), 1);
            assert_eq!(publisher.run("PUBSUB SHARDNUMSUB a").elements().unwrap()[1].integer(), Some(1));
            let list = publisher.run("CLIENT LIST").text();
            assert!(list.contains("flags=P ") && list.contains(" sub=1 psub=2 ssub=1 "), "{list}");
            drop(client);
            // A disconnected client is no longer subscribed.
            while publisher.run("PUBLISH a x").integer() != Some(0) {}
            assert_eq!(publisher.run("PUBSUB CHANNELS").elements(), Some(&[][..]));
        }
    }
}

#[test]
fn a_subscriber_in_resp2_may_call_nothing_else_and_one_in_resp3_may() {
    let server = start(MODES[0]);
    let [mut two, mut three] = clients(&server);
    two.run("SUBSCRIBE a");
    let error = "(error) ERR Can't execute 'get': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are \
                 allowed in this context";
    assert_eq!(render(&two.run("GET x")).trim_end(), error);
    assert_eq!(render(&two.run("PING")).trim_end(), "1) \"pong\"\n2) \"\"");
    assert_eq!(render(&two.run("PING x")).trim_end(), "1) \"pong\"\n2) \"x\"");
    two.run("UNSUBSCRIBE");
    assert_eq!(two.run("PING").text(), "PONG");
    two.run("SUBSCRIBE a");
    assert_eq!(two.run("RESET").text(), "RESET");
    assert_eq!(two.run("PING").text(), "PONG");
    three.run("SUBSCRIBE a");
    assert_eq!(three.run("SET x 1"), Value::ok());
    assert_eq!(server.client().run("PUBLISH a 1").integer(), Some(1));
}

#[test]
fn messages_of_one_client_arrive_in_order_everywhere() {
    const MESSAGES: usize = 2000;
    for mode in MODES {
        let server = start(mode);
        let mut subscribers: Vec<RawClient> = (0..4).map(|_| server.client()).collect();
        for subscriber in &mut subscribers {
            subscriber.run("SUBSCRIBE news");
        }
        let address = server.address();
        let publishers: Vec<_> = (0..2)
            .map(|name| {
                thread::spawn(move || {
                    let mut client = RawClient::connect(address).unwrap();
                    for number in 0..MESSAGES {
                        client.send(format!("PUBLISH news {name}:{number}\r\n").as_bytes()).unwrap();
                    }
                    for _ in 0..MESSAGES {
                        assert_eq!(client.read_value().unwrap().integer(), Some(4));
                    }
                })
            })
            .collect();
        for subscriber in &mut subscribers {
            let mut next = [0; 2];
            for _ in 0..2 * MESSAGES {
                let message = strings(&subscriber.read_value().unwrap());
                let (name, number) = message[2].split_once(':').unwrap();
                let name: usize = name.parse().unwrap();
                assert_eq!(number.parse::<usize>().unwrap(), next[name], "{mode:?}");
                next[name] += 1;
            }
        }
        publishers.into_iter().for_each(|publisher| publisher.join().unwrap());
    }
}

#[test]
fn a_subscriber_that_does_not_read_is_closed_at_its_limit_without_stalls() {
    for mode in MODES {
        let server = start(mode);
        let mut control = server.client();
        assert_eq!(
            control.command(&["CONFIG", "SET", "client-output-buffer-limit", "pubsub 1mb 0 0"]),
            Value::ok()
        );
        let mut slow = server.client();
        slow.run("SUBSCRIBE news");
        let mut good = server.client();
        good.run("SUBSCRIBE other");
        let payload = "x".repeat(64 * 1024);
        // The kernel's buffers hold a few megabytes first.
        let mut rounds = 0;
        while control.run(&format!("PUBLISH news {payload}")).integer() == Some(1) {
            rounds += 1;
            assert!(rounds < 2000, "{mode:?}: the slow subscriber is never closed");
        }
        assert_eq!(control.run("PUBLISH other still-here").integer(), Some(1));
        assert_eq!(read(&mut good), "1) \"message\"\n2) \"other\"\n3) \"still-here\"");
        assert!(control.run("INFO stats").text().contains("client_output_buffer_limit_disconnections:1"));
    }
}

#[test]
fn keyspace_events_are_published_as_configured() {
    for mode in MODES {
        let server = start(mode);
        let [mut client, mut listener] = clients(&server);
        assert_eq!(client.run("CONFIG GET notify-keyspace-events").elements().unwrap()[1].text(), "");
        assert_eq!(client.run("CONFIG SET notify-keyspace-events KEA"), Value::ok());
        assert_eq!(client.run("CONFIG GET notify-keyspace-events").elements().unwrap()[1].text(), "AKE");
        listener.run("PSUBSCRIBE __key*@*__:*");
        client.run("SELECT 2");
        client.run("SET gone 1 PX 1");
        while client.run("EXISTS gone").integer() == Some(1) {}
        let mut events = Vec::new();
        while events.last().is_none_or(|last: &Vec<String>| last[2] != "__keyevent@2__:expired") {
            events.push(strings(&listener.read_value().unwrap()));
        }
        let of_key: Vec<_> = events.iter().filter(|event| event[2] == "__keyspace@2__:gone").collect();
        assert_eq!(of_key.last().unwrap()[3], "expired", "{mode:?}");
        assert_eq!(events.last().unwrap()[3], "gone");
        assert!(client.run("CONFIG SET notify-keyspace-events KEq").is_error());
    }
}
