//! Commands on keys of several shards: they change all keys atomically, or none.

use std::thread;

use ember_testkit::Value;

use crate::{MODES, clients, start};

#[test]
fn msetex_sets_keys_of_several_shards_or_none() {
    for mode in MODES {
        let server = start(mode);
        for mut client in clients(&server) {
            assert_eq!(client.run("FLUSHALL"), Value::ok());
            assert_eq!(client.run("MSETEX 3 a 1 b 2 c 3 NX EX 100"), Value::Integer(1), "{mode:?}");
            assert_eq!(client.run("MSETEX 2 d 4 c 5 NX"), Value::Integer(0), "{mode:?}");
            assert_eq!(client.run("MSETEX 2 a 4 d 5 XX"), Value::Integer(0), "{mode:?}");
            let all = ember_testkit::render(&client.run("MGET a b c"));
            assert_eq!(all.trim_end(), "1) \"1\"\n2) \"2\"\n3) \"3\"", "{mode:?}");
            for key in ["a", "b", "c"] {
                assert_eq!(client.run(&format!("TTL {key}")), Value::Integer(100), "{mode:?}");
            }
            assert_eq!(client.run("EXISTS d"), Value::Integer(0), "{mode:?}");
        }
    }
}

#[test]
fn the_result_of_a_polygon_search_is_stored_under_another_key() {
    for mode in MODES {
        let server = start(mode);
        for mut client in clients(&server) {
            client.run("GEOADD places 13.36 38.12 Palermo 15.09 37.50 Catania");
            let polygon = "BYPOLYGON 4 13 38 13 39 15 38 15 37.9";
            let found = client.run(&format!("GEOSEARCH places {polygon}"));
            assert_eq!(found, Value::Array(vec![Value::from("Palermo")]), "{mode:?}");
            let stored = client.run(&format!("GEOSEARCHSTORE near places {polygon} STOREDIST"));
            assert_eq!(stored, Value::Integer(1), "{mode:?}");
            assert_eq!(client.run("EXISTS near"), Value::Integer(1), "{mode:?}");
        }
    }
}

#[test]
fn no_client_sees_part_of_an_msetex() {
    const ROUNDS: usize = 500;
    for mode in MODES {
        let server = start(mode);
        assert_eq!(server.client().run("MSETEX 4 a 0 b 0 c 0 d 0"), Value::Integer(1));
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut writer = server.client();
                for round in 0..ROUNDS {
                    let line = format!("MSETEX 4 a {round} b {round} c {round} d {round} XX EX 100");
                    assert_eq!(writer.run(&line), Value::Integer(1), "{mode:?}");
                }
            });
            let mut reader = server.client();
            for _ in 0..ROUNDS {
                let seen = reader.run("MGET d a c b");
                let seen = seen.elements().unwrap();
                assert!(seen.iter().all(|value| *value == seen[0]), "{mode:?} {seen:?}");
            }
        });
    }
}
