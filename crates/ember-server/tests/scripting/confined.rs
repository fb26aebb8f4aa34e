//! Scripts that use only their declared keys run concurrently with other commands, with the same results.

use std::thread;

use ember_testkit::{RawClient, Value};

use crate::{eval, everywhere, wait_until};

/// Returns the number of scripts that ran with exclusive access, and the number of those that ran concurrently.
fn counts(client: &mut RawClient) -> (u64, u64) {
    (
        client.info_number("ember_scripts_run_exclusively"),
        client.info_number("ember_scripts_run_concurrently"),
    )
}

/// Runs a script with these keys and arguments.
fn eval_with(client: &mut RawClient, script: &str, keys: &[&str], arguments: &[&str]) -> Value {
    let count = keys.len().to_string();
    client.command(&[&["EVAL", script, &count], keys, arguments].concat())
}

const THREE_CALLS: &str = "local v = redis.call('GET', KEYS[1]) redis.call('SET', KEYS[1], ARGV[1]) \
                           redis.call('INCR', KEYS[2]) return v";

#[test]
fn scripts_with_declared_keys_do_not_block_other_clients() {
    everywhere(&[], |_, client| {
        assert_eq!(eval_with(client, THREE_CALLS, &["a", "n"], &["1"]), Value::Null);
        assert_eq!(eval_with(client, THREE_CALLS, &["a", "n"], &["2"]), Value::from("1"));
        assert_eq!(counts(client), (0, 2));
        let sha = client.command(&["SCRIPT", "LOAD", THREE_CALLS]).text();
        assert_eq!(client.command(&["EVALSHA", &sha, "2", "a", "n", "3"]), Value::from("2"));
        assert_eq!(client.run("GET n"), Value::from("3"));
        assert_eq!(counts(client), (0, 3));
        assert_eq!(
            client.command(&["EVAL_RO", "return redis.call('GET', KEYS[1])", "1", "a"]),
            Value::from("3")
        );
        assert_eq!(counts(client), (0, 4));
        // Undeclared keys.
        assert_eq!(eval(client, "return redis.call('GET', 'a')"), Value::from("3"));
        assert_eq!(counts(client), (1, 4));
        let library = "#!lua name=l\nredis.register_function('f', function(keys) return redis.call('GET', keys[1]) end)\n\
                       redis.register_function('g', function(keys) return redis.call('GET', 'a') end)";
        assert_eq!(client.command(&["FUNCTION", "LOAD", library]), Value::from("l"));
        assert_eq!(client.run("FCALL f 1 a"), Value::from("3"));
        assert_eq!(counts(client), (1, 5));
        assert_eq!(client.run("FCALL g 0"), Value::from("3"));
        assert_eq!(counts(client), (2, 5));
    });
}

#[test]
fn a_loop_over_very_many_keys_runs_with_exclusive_access() {
    everywhere(&[], |_, client| {
        let script = "local n = 0 for _, key in ipairs(KEYS) do n = n + redis.call('INCR', key) end return n";
        let keys: Vec<String> = (0..5000).map(|number| format!("key:{number}")).collect();
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        assert_eq!(eval_with(client, script, &keys[..500], &[]), Value::Integer(500));
        assert_eq!(counts(client), (0, 1));
        assert_eq!(eval_with(client, script, &keys, &[]), Value::Integer(5500));
        assert_eq!(counts(client), (1, 1));
    });
}

#[test]
fn confined_scripts_are_atomic_under_load() {
    const ROUNDS: usize = 300;
    let confined = "local a, b = redis.call('GET', KEYS[1]), redis.call('GET', KEYS[2])\n\
        if a + b ~= 2000 then return redis.error_reply('torn: ' .. a .. ' ' .. b) end\n\
        redis.call('SET', KEYS[1], a - ARGV[1]) redis.call('SET', KEYS[2], b + ARGV[1]) return 'OK'";
    let alone = confined.replace("KEYS[1]", "'a'").replace("KEYS[2]", "'b'");
    everywhere(&[], |server, client| {
        client.run("MSET a 1000 b 1000");
        thread::scope(|scope| {
            let (confined, alone) = (confined, alone.as_str());
            for (amount, first, second) in [("1", "a", "b"), ("-2", "b", "a")] {
                let mut client = server.client();
                scope.spawn(move || {
                    for _ in 0..ROUNDS {
                        let answer = client.command(&["EVAL", confined, "2", first, second, amount]);
                        assert_eq!(answer, Value::from("OK"));
                    }
                });
            }
            let mut client = server.client();
            scope.spawn(move || {
                for _ in 0..ROUNDS {
                    assert_eq!(client.command(&["EVAL", alone, "0", "3"]), Value::from("OK"));
                }
            });
            let mut client = server.client();
            scope.spawn(move || {
                for _ in 0..ROUNDS {
                    client.run("MULTI");
                    client.run("INCRBY a 5");
                    client.run("DECRBY b 5");
                    assert_eq!(client.run("EXEC").elements().map(<[Value]>::len), Some(2));
                    let both = client.run("MGET a b");
                    let sum: i64 = both
                        .elements()
                        .unwrap()
                        .iter()
                        .map(|value| value.text().parse::<i64>().unwrap())
                        .sum();
                    assert_eq!(sum, 2000);
                }
            });
        });
        let (alone, concurrent) = counts(client);
        assert_eq!(alone + concurrent, 3 * ROUNDS as u64);
        // The count includes the scripts with undeclared keys, and any script whose thread the system does not run for
        // a long time.
        assert!((ROUNDS as u64..ROUNDS as u64 + 4).contains(&alone), "{alone} ran with exclusive access");
        let (a, b) = (client.run("GET a").text(), client.run("GET b").text());
        // One script subtracts 1 from `a`, one adds -2 (and subtracts -2 from `b`), one subtracts 3, and one adds 5.
        assert_eq!(a.parse::<i64>().unwrap(), 1000 + (-1 - 2 - 3 + 5) * ROUNDS as i64);
        assert_eq!(a.parse::<i64>().unwrap() + b.parse::<i64>().unwrap(), 2000);
    });
}

#[test]
fn confined_scripts_on_many_shards_lose_nothing() {
    const KEYS: usize = 40;
    const ROUNDS: usize = 400;
    let transfer = "redis.call('DECRBY', KEYS[1], 1) redis.call('INCRBY', KEYS[2], 1) return redis.call('INCR', KEYS[3])";
    everywhere(&[], |server, client| {
        thread::scope(|scope| {
            for worker in 0..4 {
                let mut client = server.client();
                scope.spawn(move || {
                    for round in 0..ROUNDS {
                        let key = |factor: usize| format!("account:{}", (round * factor + worker) % KEYS);
                        let (from, to) = (key(7), key(11));
                        client.command(&["EVAL", transfer, "3", &from, &to, "moved"]);
                    }
                });
            }
        });
        let (alone, concurrent) = counts(client);
        assert_eq!(alone + concurrent, 4 * ROUNDS as u64);
        // A script whose thread the system does not run for a long time, before the script's first effect, runs with
        // exclusive access.
        assert!(alone <= 4, "{alone} ran with exclusive access");
        assert_eq!(client.run("GET moved"), Value::from(&*(4 * ROUNDS).to_string()));
        let sum: i64 = (0..KEYS)
            .map(|number| client.run(&format!("GET account:{number}")))
            .filter(|value| *value != Value::Null)
            .map(|value| value.text().parse::<i64>().unwrap())
            .sum();
        assert_eq!(sum, 0);
    });
}

#[test]
fn waiters_and_watchers_are_notified_after_the_script_ends() {
    everywhere(&["--notify-keyspace-events", "KEA"], |server, client| {
        let mut waiting = server.client();
        waiting.send(b"BLPOP waited 0\r\n").unwrap();
        wait_until("a client waits", || client.run("INFO clients").text().contains("blocked_clients:1"));
        let mut watching = server.client();
        watching.run("WATCH other");
        let mut listening = server.client();
        listening.run("SUBSCRIBE __keyevent@0__:set");
        let script = "redis.call('RPUSH', KEYS[1], 'first') redis.call('SET', KEYS[2], 'x') \
                      redis.call('LPUSH', KEYS[1], 'second') return redis.call('LLEN', KEYS[1])";
        assert_eq!(eval_with(client, script, &["waited", "other"], &[]), Value::Integer(2));
        assert_eq!(counts(client), (0, 1));
        assert_eq!(waiting.read_value().unwrap().elements().unwrap()[1], Value::from("second"));
        watching.run("MULTI");
        watching.run("PING");
        assert_eq!(watching.run("EXEC"), Value::Null);
        let event = listening.read_value().unwrap();
        assert_eq!(event.elements().unwrap()[2], Value::from("other"));
    });
}

#[test]
fn undeclared_keys_and_missing_rights_are_errors() {
    everywhere(&[], |server, client| {
        let answer = eval_with(client, THREE_CALLS, &["a"], &["1"]);
        assert!(answer.text().starts_with("ERR Lua redis lib command arguments must be strings or integers"));
        // Earlier effects of the script remain.
        assert_eq!(client.run("GET a"), Value::from("1"));
        let refused = client.command(&["EVAL_RO", THREE_CALLS, "2", "a", "n", "2"]).text();
        assert!(
            refused.starts_with("ERR Write commands are not allowed from read-only scripts."),
            "{refused}"
        );
        client.run("ACL SETUSER worker on >secret ~queue:* +@all -set");
        let mut worker = server.client();
        worker.run("AUTH worker secret");
        let call = |key: &'static str| ["EVAL", "return redis.call('INCR', KEYS[1])", "1", key];
        assert_eq!(worker.command(&call("queue:n")), Value::Integer(1));
        assert!(worker.command(&call("other")).text().starts_with("NOPERM "));
        let set = "return redis.call('SET', KEYS[1], 1)";
        let refused = worker.command(&["EVAL", set, "1", "queue:n"]).text();
        assert!(refused.starts_with("ERR ACL failure in script: "), "{refused}");
    });
}

#[test]
fn a_confined_script_selects_a_database_only_for_itself() {
    everywhere(&[], |_, client| {
        let script =
            "redis.call('SELECT', 3) redis.call('SET', KEYS[1], ARGV[1]) return redis.call('GET', KEYS[1])";
        assert_eq!(eval_with(client, script, &["k"], &["v"]), Value::from("v"));
        assert_eq!(counts(client), (0, 1));
        assert_eq!(client.run("GET k"), Value::Null);
        client.run("SELECT 3");
        assert_eq!(client.run("GET k"), Value::from("v"));
    });
}

#[test]
fn keys_may_be_named_like_options() {
    everywhere(&[], |_, client| {
        let script = "redis.call('XADD', KEYS[1], '1-1', 'f', 'v') \
                      return redis.call('XREAD', 'COUNT', '5', 'STREAMS', KEYS[1], '0')";
        for key in ["STREAMS", "COUNT", "5"] {
            let read = eval_with(client, script, &[key], &[]);
            assert_eq!(read.elements().unwrap()[0].elements().unwrap()[0], Value::from(key));
        }
        let script = "redis.call('ZADD', KEYS[2], 1, 'm') return redis.call('ZUNIONSTORE', KEYS[1], 2, KEYS[2], KEYS[3])";
        assert_eq!(eval_with(client, script, &["WEIGHTS", "2", "AGGREGATE"], &[]), Value::Integer(1));
        assert_eq!(counts(client), (0, 4));
    });
}

#[test]
fn a_script_in_a_transaction_is_a_part_of_it() {
    everywhere(&[], |_, client| {
        client.run("MULTI");
        client.run("SET a 1");
        assert_eq!(eval_with(client, THREE_CALLS, &["a", "n"], &["2"]).text(), "QUEUED");
        client.run("GET a");
        let answers = client.run("EXEC");
        assert_eq!(answers.elements().unwrap()[1..], [Value::from("1"), Value::from("2")]);
    });
}

#[test]
fn a_script_that_is_slow_on_its_values_runs_with_exclusive_access() {
    everywhere(&["--busy-reply-threshold", "50"], |server, client| {
        client.run("SET a 1");
        let text = "local t = {redis.call('GET', KEYS[1])} for i = 1, 40 do t = {t, t} end ";
        for (number, end) in ["return t", "return cjson.encode(t)"].into_iter().enumerate() {
            let mut running = server.client();
            running.send_command(&["EVAL", &format!("{text} {end}"), "1", "a"]).unwrap();
            wait_until("other clients receive BUSY", || {
                server.client().run("GET a").text().starts_with("BUSY ")
            });
            assert_eq!(server.client().run("SCRIPT KILL"), Value::ok());
            assert!(running.read_value().unwrap().text().contains("killed by user"), "{end}");
            assert_eq!(counts(client), (number as u64 + 1, 0));
        }
    });
}
