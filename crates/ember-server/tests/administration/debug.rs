//! DEBUG: disabled by default, and its subcommands when enabled.

use std::time::Instant;

use ember_testkit::{RawClient, Value};

use crate::{assert_error, assert_ok, builder, everywhere, wait_until};

const REFUSED: &str = "ERR DEBUG command not allowed. If the enable-debug-command option is set to \"local\", you can \
                       run it from a local connection, otherwise you need to set this option in the configuration \
                       file, and then restart the server.";

#[test]
fn debug_is_closed_unless_the_configuration_opens_it() {
    everywhere(&[], |_, client| {
        assert_error(client, "DEBUG SLEEP 0", REFUSED);
        assert_error(client, "DEBUG HELP", REFUSED);
        assert!(client.run("CONFIG SET enable-debug-command yes").is_error());
    });
    let server = builder(&["--enable-debug-command", "local"]).unix_socket().start();
    assert_ok(&mut server.client(), "DEBUG SLEEP 0");
    assert_ok(&mut server.unix_client(), "DEBUG SLEEP 0");
}

#[test]
fn sleep_stops_the_whole_data_set() {
    everywhere(&["--enable-debug-command", "yes"], |server, client| {
        let mut others: Vec<_> = (0..4).map(|_| server.client()).collect();
        others.iter_mut().for_each(|other| drop(other.run("PING")));
        let begun = Instant::now();
        client.send_command(&["DEBUG", "SLEEP", "0.05"]).unwrap();
        assert_eq!(client.read_value().unwrap(), Value::ok());
        assert!(begun.elapsed().as_millis() >= 50);
        others.iter_mut().for_each(|other| drop(other.run("GET a")));
        for seconds in ["x", "-1", "nan", "-inf", "0"] {
            assert_ok(client, &format!("DEBUG SLEEP {seconds}"));
        }
    });
}

#[test]
fn time_is_frozen_in_scripts_and_transactions() {
    everywhere(&["--enable-debug-command", "yes"], |_, client| {
        assert_ok(client, "DEBUG SET-DISABLE-DENY-SCRIPTS 1");
        let script = "local function time() return table.concat(redis.call('TIME'), '.') end \
                      redis.call('SET', KEYS[1], 'x', 'PX', 1) local before = time() \
                      redis.call('DEBUG', 'SLEEP', '0.01') \
                      return {redis.call('EXISTS', KEYS[1]), before == time() and 1 or 0}";
        let both = Value::Array(vec![Value::Integer(1), Value::Integer(1)]);
        assert_eq!(client.command(&["EVAL", script, "1", "key"]), both);
        assert_eq!(client.run("EXISTS key"), Value::Integer(0), "the key has expired after the script");
        for line in ["MULTI", "SET key x PX 1", "TIME", "DEBUG SLEEP 0.01", "EXISTS key", "TIME"] {
            assert!(!client.run(line).is_error());
        }
        let replies = client.run("EXEC");
        let replies = replies.elements().unwrap();
        assert_eq!((&replies[3], &replies[4]), (&Value::Integer(1), &replies[1]));
        assert_eq!(client.run("EXISTS key"), Value::Integer(0));
    });
}

#[test]
fn without_active_expiry_expired_keys_stay() {
    everywhere(&["--enable-debug-command", "yes", "--hz", "100"], |_, client| {
        assert_ok(client, "FLUSHALL");
        assert_ok(client, "DEBUG SET-ACTIVE-EXPIRE 0");
        client.run("PSETEX gone 1 value");
        // Waits for several ticks, in which the key would have been removed.
        let begun = microseconds(client);
        wait_until("the time has come", || microseconds(client) > begun + 100_000);
        assert_eq!(client.run("DBSIZE"), Value::Integer(1));
        assert_ok(client, "DEBUG SET-ACTIVE-EXPIRE 1");
        wait_until("the key is removed", || client.run("DBSIZE") == Value::Integer(0));
    });
}

fn microseconds(client: &mut RawClient) -> i64 {
    let time = client.run("TIME");
    let parts: Vec<i64> = time.elements().unwrap().iter().map(|part| part.text().parse().unwrap()).collect();
    parts[0] * 1_000_000 + parts[1]
}

#[test]
fn digests_depend_only_on_the_data() {
    everywhere(&["--enable-debug-command", "yes"], |_, client| {
        assert_ok(client, "FLUSHALL");
        assert_eq!(client.run("DEBUG DIGEST").text(), "0".repeat(40));
        assert_ok(client, "DEBUG POPULATE 100");
        assert_eq!(client.run("GET key:99"), Value::from("value:99"));
        assert_eq!(client.run("DBSIZE"), Value::Integer(100));
        let digest = client.run("DEBUG DIGEST").text();
        assert_eq!(digest.len(), 40);
        assert_ok(client, "SET key:7 other");
        assert_ne!(client.run("DEBUG DIGEST").text(), digest);
        assert_ok(client, "DEBUG POPULATE 100");
        assert_ne!(client.run("DEBUG DIGEST").text(), digest, "existing keys stay unchanged");
        assert_ok(client, "SET key:7 value:7");
        assert_eq!(client.run("DEBUG DIGEST").text(), digest);
        let values = client.run("DEBUG DIGEST-VALUE key:1 key:1 key:2 nothing");
        let values = values.elements().unwrap();
        assert!(values[0] == values[1] && values[1] != values[2]);
        assert_eq!(values[3].text(), "0".repeat(40));
        assert_ok(client, "DEBUG POPULATE 1 padded 10");
        assert_eq!(client.run("GET padded:0"), Value::Bulk(b"value:0\0\0\0".to_vec()));
        assert!(client.run("DEBUG POPULATE x").is_error());
        assert!(client.run("DEBUG POPULATE -1").is_error());
        assert!(client.run("DEBUG POPULATE 1 p 999999999999").is_error());
    });
}

#[test]
fn keys_and_tables_are_described() {
    everywhere(&["--enable-debug-command", "yes"], |_, client| {
        assert_ok(client, "SET described 12345");
        let line = client.run("DEBUG OBJECT described").text();
        assert!(
            line.starts_with("Value at:0x") && line.contains(" encoding:int serializedlength:3 lru:"),
            "{line}"
        );
        assert_error(client, "DEBUG OBJECT nothing", "ERR no such key");
        assert!(client.run("DEBUG HTSTATS 0").text().contains(" number of elements: "));
        assert_error(client, "DEBUG HTSTATS 99", "ERR Out of range database");
        assert_error(client, "DEBUG HTSTATS-KEY nothing", "ERR no such key");
        assert!(client.run("DEBUG HTSTATS-KEY described").is_error());
        assert_eq!(client.run("DEBUG STRINGMATCH-LEN a*c abc"), Value::Integer(1));
        assert_error(client, "DEBUG ERROR ERR-CODE", "ERR-CODE");
        let unknown = "ERR unknown subcommand or wrong number of arguments for 'x'. Try DEBUG HELP.";
        assert_error(client, "DEBUG x", unknown);
        assert_error(client, "DEBUG SLEEP", &unknown.replace("'x'", "'SLEEP'"));
    });
}

#[test]
fn every_type_of_the_protocol_is_answered() {
    everywhere(&["--enable-debug-command", "yes"], |_, client| {
        let is_resp3 = client.run("HELLO").get("proto") == Some(Value::Integer(3));
        for (name, resp2, resp3) in [
            ("string", "$11\r\nHello World\r\n", "$11\r\nHello World\r\n"),
            ("integer", ":12345\r\n", ":12345\r\n"),
            ("double", "$5\r\n3.141\r\n", ",3.141\r\n"),
            ("null", "$-1\r\n", "_\r\n"),
            ("array", "*3\r\n:0\r\n:1\r\n:2\r\n", "*3\r\n:0\r\n:1\r\n:2\r\n"),
            ("set", "*3\r\n:0\r\n:1\r\n:2\r\n", "~3\r\n:0\r\n:1\r\n:2\r\n"),
            (
                "map",
                "*6\r\n:0\r\n:0\r\n:1\r\n:1\r\n:2\r\n:0\r\n",
                "%3\r\n:0\r\n#f\r\n:1\r\n#t\r\n:2\r\n#f\r\n",
            ),
            ("true", ":1\r\n", "#t\r\n"),
            ("false", ":0\r\n", "#f\r\n"),
            (
                "verbatim",
                "$25\r\nThis is a verbatim\nstring\r\n",
                "=29\r\ntxt:This is a verbatim\nstring\r\n",
            ),
            (
                "bignum",
                "$37\r\n1234567999999999999999999999999999999\r\n",
                "(1234567999999999999999999999999999999\r\n",
            ),
        ] {
            client.send_command(&["DEBUG", "PROTOCOL", name]).unwrap();
            let raw = client.read_raw().unwrap();
            assert_eq!(String::from_utf8_lossy(&raw), if is_resp3 { resp3 } else { resp2 }, "{name}");
        }
        assert_eq!(matches!(client.run("DEBUG PROTOCOL attrib"), Value::Attribute(..)), is_resp3);
        if is_resp3 {
            let reply = Value::from("Some real reply following the push reply");
            let push = Value::Push(vec![Value::from("server-cpu-usage"), Value::Integer(42)]);
            assert_eq!(client.run("DEBUG PROTOCOL push"), reply);
            assert_eq!(client.read_value().unwrap(), push);
            assert_ok(client, "MULTI");
            client.run("DEBUG PROTOCOL push");
            client.run("PING");
            assert_eq!(client.run("EXEC"), Value::Array(vec![reply, Value::Simple(b"PONG".to_vec())]));
            assert_eq!(client.read_value().unwrap(), push);
        } else {
            assert_error(client, "DEBUG PROTOCOL push", "ERR RESP2 is not supported by this command");
        }
        assert!(client.run("DEBUG PROTOCOL x").is_error());
    });
}

#[test]
fn debug_reload_loads_the_file_it_has_written() {
    everywhere(&["--enable-debug-command", "yes"], |_, client| {
        assert_ok(client, "FLUSHALL");
        for line in [
            "SET text hello",
            "SET short lived PX 100000000",
            "RPUSH list a b c",
            "HSET hash f v",
            "ZADD zset 1 a",
            "XADD stream 1-1 f v",
        ] {
            let reply = client.run(line);
            assert!(!reply.is_error(), "{line}: {reply:?}");
        }
        let library = "#!lua name=lib\nredis.register_function('f', function() return 1 end)";
        client.command(&["FUNCTION", "LOAD", "REPLACE", library]);
        let before = client.run("DEBUG DIGEST");
        assert_ok(client, "DEBUG RELOAD");
        assert_eq!(client.run("DEBUG DIGEST"), before);
        assert_eq!(client.run("FCALL f 0"), Value::Integer(1));
        let ttl = client.run("PTTL short");
        assert!(matches!(ttl, Value::Integer(1..=100_000_000)), "{ttl:?}");
    });
}

#[test]
fn debug_reload_merges_keeps_or_replaces_as_requested() {
    everywhere(&["--enable-debug-command", "yes"], |_, client| {
        assert_ok(client, "FLUSHALL");
        client.run("MSET one file two file");
        assert_ok(client, "SAVE");
        client.run("MSET two memory three memory");
        assert_ok(client, "DEBUG RELOAD nosave noflush merge");
        assert_eq!(strings(client, "MGET one two three"), ["file", "file", "memory"]);
        assert_ok(client, "DEBUG RELOAD NOSAVE");
        assert_eq!(strings(client, "MGET one two"), ["file", "file"]);
        assert_eq!(client.run("EXISTS three"), Value::Integer(0));
        let refused = client.run("DEBUG RELOAD NOSAVE NOFLUSH").text();
        assert!(refused.starts_with("ERR Error trying to load the RDB dump: "), "{refused}");
        let unknown = "ERR DEBUG RELOAD only supports the MERGE, NOFLUSH and NOSAVE options.";
        assert_error(client, "DEBUG RELOAD FAST", unknown);
    });
}

#[test]
fn debug_reload_breaks_watches_and_is_refused_in_transactions() {
    everywhere(&["--enable-debug-command", "yes"], |server, client| {
        client.run("SET watched value");
        assert_ok(client, "WATCH watched");
        assert_ok(&mut server.client(), "DEBUG RELOAD");
        assert_ok(client, "MULTI");
        client.run("PING");
        assert_eq!(client.run("EXEC"), Value::Null);
        assert_ok(client, "MULTI");
        client.run("DEBUG RELOAD");
        client.run("DEBUG LOADAOF");
        let replies = client.run("EXEC");
        let refused = "ERR the data set cannot be reloaded inside of a transaction or a script";
        for reply in replies.elements().unwrap() {
            assert_eq!(reply.text(), refused);
        }
    });
}

#[test]
fn debug_loadaof_reads_all_acknowledged_writes() {
    for policy in ["always", "everysec"] {
        let arguments = ["--enable-debug-command", "yes", "--appendonly", "yes", "--appendfsync", policy];
        everywhere(&arguments, |_, client| {
            for round in 0..3 {
                client.run(&format!("RPUSH list {round}"));
                client.run(&format!("SET key:{round} value PX 100000000"));
                let before = client.run("DEBUG DIGEST");
                assert_ok(client, "DEBUG LOADAOF");
                assert_eq!(client.run("DEBUG DIGEST"), before);
            }
        });
    }
    everywhere(&["--enable-debug-command", "yes"], |_, client| {
        client.run("SET kept value");
        let refused = client.run("DEBUG LOADAOF").text();
        assert!(refused.starts_with("ERR Error trying to load the AOF files: there is no AOF"), "{refused}");
        assert_eq!(client.run("GET kept"), Value::Bulk(b"value".to_vec()));
    });
}

#[test]
fn checksums_are_compared_unless_debug_says_otherwise() {
    everywhere(&["--enable-debug-command", "yes"], |_, client| {
        let payload = b"\x00\xc0\n\x06\x00\xf8r?\xc5\xfb\xfb_)";
        let restore: &[&[u8]] = &[b"RESTORE", b"number", b"0", payload, b"REPLACE"];
        let wrong = "ERR DUMP payload version or checksum are wrong";
        assert_eq!(client.command(restore).text(), wrong);
        assert_ok(client, "DEBUG SET-SKIP-CHECKSUM-VALIDATION 1");
        assert_eq!(client.command(restore), Value::ok());
        assert_eq!(client.run("GET number"), Value::Bulk(b"10".to_vec()));
        assert_ok(client, "DEBUG SET-SKIP-CHECKSUM-VALIDATION 0");
        assert_eq!(client.command(restore).text(), wrong);
    });
}

#[test]
fn scripts_may_call_noscript_commands_while_debug_allows_it() {
    everywhere(&["--enable-debug-command", "yes"], |_, client| {
        let mut run = |words: &str| {
            let script = format!("return redis.call({words})");
            client.command(&["EVAL", &script, "0"])
        };
        assert!(run("'client', 'id'").is_error());
        assert_eq!(run("'ping'").text(), "PONG");
        assert_ok(client, "DEBUG SET-DISABLE-DENY-SCRIPTS 1");
        let mut run = |words: &str| {
            let script = format!("return redis.call({words})");
            client.command(&["EVAL", &script, "0"])
        };
        assert!(matches!(run("'client', 'id'"), Value::Integer(1..)));
        for other in ["'multi'", "'eval','return 1',0", "'subscribe','a'", "'monitor'", "'debug','reload'"] {
            let refused = run(other);
            assert!(refused.is_error(), "{other}: {refused:?}");
        }
        assert_ok(client, "DEBUG SET-DISABLE-DENY-SCRIPTS 0");
    });
}

#[test]
fn elements_above_the_threshold_get_separate_nodes() {
    everywhere(&["--enable-debug-command", "yes"], |_, client| {
        client.run("DEL list");
        client.run("CONFIG SET list-max-listpack-size 2");
        assert_ok(client, "DEBUG QUICKLIST-PACKED-THRESHOLD 10b");
        client.run("RPUSH list a b c elements-that-are-longer d");
        let facts = client.run("DEBUG OBJECT list").text();
        assert!(facts.contains(" ql_nodes:4 "), "{facts}");
        assert_eq!(strings(client, "LRANGE list 0 -1"), ["a", "b", "c", "elements-that-are-longer", "d"]);
        let wrong = "ERR argument must be a memory value bigger than 1 and smaller than 4gb";
        for size in ["4gb", "1x", "-1", "99999999999999999999"] {
            assert_error(client, &format!("DEBUG QUICKLIST-PACKED-THRESHOLD {size}"), wrong);
        }
        assert_ok(client, "DEBUG QUICKLIST-PACKED-THRESHOLD 0");
    });
}

#[test]
fn no_periodic_work_runs_while_it_is_paused() {
    everywhere(&["--enable-debug-command", "yes", "--hz", "100"], |_, client| {
        assert_ok(client, "FLUSHALL");
        assert_ok(client, "DEBUG PAUSE-CRON 1");
        client.run("PSETEX gone 1 value");
        let begun = microseconds(client);
        wait_until("the time has come", || microseconds(client) > begun + 100_000);
        assert_eq!(client.run("DBSIZE"), Value::Integer(1));
        assert_ok(client, "DEBUG PAUSE-CRON 0");
        wait_until("the key is removed", || client.run("DBSIZE") == Value::Integer(0));
    });
}

#[test]
fn writes_to_the_aof_take_the_configured_delay() {
    everywhere(&["--enable-debug-command", "yes", "--appendonly", "yes"], |_, client| {
        let error = "ERR value is not an integer or out of range";
        assert_error(client, "DEBUG AOF-FLUSH-SLEEP -1", error);
        assert_ok(client, "DEBUG AOF-FLUSH-SLEEP 100000");
        let begun = microseconds(client);
        assert_ok(client, "SET key value");
        assert!(microseconds(client) >= begun + 100_000, "the reply waits for the file");
        assert_ok(client, "DEBUG AOF-FLUSH-SLEEP 0");
    });
}

#[test]
fn debug_change_repl_id_changes_the_replication_id() {
    everywhere(&["--enable-debug-command", "yes"], |_, client| {
        let (before, run) = (client.info("master_replid"), client.info("run_id"));
        assert_ok(client, "DEBUG CHANGE-REPL-ID");
        let after = client.info("master_replid");
        assert!(after != before && after.len() == 40, "{before} {after}");
        assert_eq!(client.info("run_id"), run);
    });
}

#[test]
fn debug_sdslen_returns_the_lengths_of_a_key_and_its_string() {
    everywhere(&["--enable-debug-command", "yes"], |_, client| {
        client.run("SET key value");
        let facts = client.run("DEBUG SDSLEN key").text();
        assert!(facts.starts_with("key_sds_len:3, key_sds_avail:0, "), "{facts}");
        assert!(facts.contains(" val_sds_len:5, val_sds_avail:0, "), "{facts}");
        client.run("SET number 12");
        assert_error(client, "DEBUG SDSLEN number", "ERR Not an sds encoded string.");
        assert_error(client, "DEBUG SDSLEN nothing", "ERR no such key");
    });
}

fn strings(client: &mut RawClient, line: &str) -> Vec<String> {
    client.run(line).elements().unwrap().iter().map(Value::text).collect()
}
