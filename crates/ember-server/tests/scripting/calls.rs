//! The calls of scripts: which are allowed, and how their errors are counted.

use ember_testkit::{RawClient, Value};

use crate::{eval, everywhere, wait_until};

#[test]
fn blocking_calls_in_scripts_are_answered_at_once() {
    everywhere(&[], |_, client| {
        client.run("RPUSH list a b c");
        client.run("ZADD sorted 1 a 2 b");
        let call = |client: &mut RawClient, words: &str| {
            let words: Vec<String> = words.split(' ').map(|word| format!("'{word}'")).collect();
            eval(client, &format!("return redis.call({})", words.join(", ")))
        };
        for words in [
            "BLPOP empty 0",
            "BRPOP empty 0",
            "BZPOPMIN empty 0",
            "BZMPOP 0 1 empty MIN",
            "BLMPOP 0 1 empty LEFT",
        ] {
            assert!(matches!(call(client, words), Value::Null), "{words}");
        }
        for words in ["BLMOVE empty to LEFT LEFT 0", "BRPOPLPUSH empty to 0"] {
            assert!(matches!(call(client, words), Value::Null), "{words}");
        }
        assert_eq!(call(client, "BLPOP list 0"), Value::Array(vec![Value::from("list"), Value::from("a")]));
        assert_eq!(call(client, "BLMOVE list to LEFT LEFT 0"), Value::from("b"));
        assert_eq!(call(client, "BZPOPMAX sorted 0").elements().unwrap()[1], Value::from("b"));
        for (name, words) in [
            ("XREAD", "XREAD BLOCK 0 STREAMS s $"),
            ("xreadgroup", "xreadgroup GROUP g c BLOCK 0 STREAMS s >"),
        ] {
            let reply = call(client, words).text();
            let wanted = format!("ERR {name} command is not allowed with BLOCK option from scripts");
            assert!(reply.starts_with(&wanted), "{reply}");
        }
    });
}

#[test]
fn script_show_returns_the_text_of_a_script() {
    everywhere(&[], |_, client| {
        let text = "#!lua flags=no-writes\nreturn 'a'";
        let sha = client.command(&["SCRIPT", "LOAD", text]).text();
        assert_eq!(client.run(&format!("SCRIPT SHOW {sha}")), Value::from(text));
        assert_eq!(client.run(&format!("SCRIPT SHOW {}", sha.to_uppercase())), Value::from(text));
        for unknown in ["x", "ffffffffffffffffffffffffffffffffffffffff"] {
            let shown = client.run(&format!("SCRIPT SHOW {unknown}"));
            assert_eq!(
                shown,
                Value::Error("NOSCRIPT No matching script. Please use EVAL.".into()),
                "{unknown}"
            );
        }
    });
}

#[test]
fn a_set_is_sorted_for_a_script_by_a_constant_too() {
    everywhere(&[], |_, client| {
        client.run("SADD set b aa c azz a aaa d");
        let sorted = eval(client, "return table.concat(redis.call('SORT', 'set', 'BY', '_'), ' ')");
        assert_eq!(sorted, Value::from("a aa aaa azz b c d"));
    });
}

#[test]
fn unpack_returns_up_to_the_number_of_values_of_redis() {
    everywhere(&[], |_, client| {
        let push = |count: usize| {
            format!(
                "local t = {{}} for i = 1, {count} do t[i] = 1 end return redis.call('RPUSH', 'l', unpack(t))"
            )
        };
        assert_eq!(eval(client, &push(7999)), Value::Integer(7999));
        assert!(eval(client, &push(8000)).text().contains("too many results to unpack"));
    });
}

/// Returns the line of a section of INFO that begins with `name`.
fn stat(client: &mut RawClient, section: &str, name: &str) -> String {
    let text = client.run(&format!("INFO {section}")).text();
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.unwrap_or_default().to_owned()
}

#[test]
fn the_beginning_of_a_long_error_code_is_counted() {
    everywhere(&[], |_, client| {
        eval(client, "return redis.error_reply(string.rep('x', 1000) .. ' text')");
        let stats = client.run("INFO errorstats").text();
        assert!(stats.contains(&format!("errorstat_{}:count=1", "x".repeat(64))), "{}", stats.len());
    });
}

#[test]
fn an_error_is_counted_once_where_it_arises() {
    everywhere(&["--maxmemory", "100mb"], |_, client| {
        let refused = "OOM command not allowed when used memory > 'maxmemory'";
        let mut check =
            |memory: &str, script: &str, text: &str, code: (&str, u32), called: (&str, &str), failed: u32| {
                assert_eq!(client.run(&format!("CONFIG SET maxmemory {memory}")), Value::ok());
                assert_eq!(client.run("CONFIG RESETSTAT"), Value::ok());
                let answer = eval(client, script).text();
                assert!(answer.starts_with(text), "{script}: {answer}");
                let counted = stat(client, "errorstats", &format!("errorstat_{}", code.0));
                assert_eq!(counted, format!("count={}", code.1), "{script}");
                assert_eq!(stat(client, "stats", "total_error_replies"), code.1.to_string(), "{script}");
                let of_call = stat(client, "commandstats", &format!("cmdstat_{}", called.0));
                assert!(of_call.ends_with(called.1), "{script}: {of_call}");
                let of_script = stat(client, "commandstats", "cmdstat_eval");
                assert!(
                    of_script.ends_with(&format!("rejected_calls=0,failed_calls={failed}")),
                    "{script}: {of_script}"
                );
            };
        let rejected = ("set", "rejected_calls=1,failed_calls=0");
        check("1", "return redis.call('SET', 'x', 'y')", refused, ("OOM", 1), rejected, 1);
        check("1", "redis.pcall('SET', 'x', 'y') return 'fine'", "fine", ("OOM", 1), rejected, 0);
        check("1", "return redis.pcall('SET', 'x', 'y')", refused, ("OOM", 1), rejected, 1);
        let wrong = ("select", "rejected_calls=0,failed_calls=1");
        check("0", "return redis.call('SELECT', 99)", "ERR DB index is out of range", ("ERR", 1), wrong, 1);
        check("0", "redis.pcall('SELECT', 99) return 'fine'", "fine", ("ERR", 1), wrong, 0);
        let own = ("eval", "failed_calls=1");
        check("0", "return redis.error_reply('MINE is it')", "MINE is it", ("MINE", 1), own, 1);
        check("0", "return redis.error_reply('')", "ERR", ("ERR", 1), own, 1);
        check("0", "error('mine')", "ERR user_script:1: mine", ("ERR", 1), own, 1);
    });
}

#[test]
fn a_pause_of_writes_delays_scripts_that_may_write() {
    everywhere(&[], |server, client| {
        let library = "#!lua name=lib\n\
                       redis.register_function('put', function(keys) return redis.call('SET', keys[1], 'f') end)\n\
                       redis.register_function{function_name='see', flags={'no-writes'}, \
                       callback=function() return 'seen' end}";
        assert_eq!(client.command(&["FUNCTION", "LOAD", library]).text(), "lib");
        assert_eq!(client.run("CLIENT PAUSE 100000 WRITE"), Value::ok());
        // Scripts that declare not to write are not delayed.
        assert_eq!(eval(client, "#!lua flags=no-writes\nreturn 'read'").text(), "read");
        assert_eq!(client.run("FCALL see 0").text(), "seen");
        assert_eq!(client.command(&["EVAL_RO", "return 1", "0"]), Value::Integer(1));
        assert_eq!(client.run("EVALSHA 0000000000000000000000000000000000000000 0").text()[..8], *"NOSCRIPT");
        assert_eq!(client.run("MULTI"), Value::ok());
        eval(client, "#!lua flags=no-writes\nreturn 'read'");
        assert_eq!(client.run("EXEC"), Value::Array(vec![Value::from("read")]));
        let mut monitor = server.client();
        assert_eq!(monitor.run("MONITOR"), Value::ok());
        let mut writers = [server.client(), server.client(), server.client()];
        writers[0].send(b"EVAL \"return redis.call('SET', KEYS[1], 'e')\" 1 a\r\n").unwrap();
        writers[1].send(b"FCALL put 1 b\r\n").unwrap();
        assert_eq!(writers[2].run("MULTI"), Value::ok());
        writers[2].send(b"EVAL \"return 1\" 0\r\n").unwrap();
        wait_until("the scripts wait", || client.run("INFO clients").text().contains("blocked_clients:3"));
        assert_eq!(client.run("EXISTS a b"), Value::Integer(0));
        assert_eq!(client.run("CLIENT UNPAUSE"), Value::ok());
        assert_eq!(writers[0].read_value().unwrap(), Value::ok());
        assert_eq!(writers[1].read_value().unwrap(), Value::ok());
        assert_eq!(writers[2].read_value().unwrap().text(), "QUEUED");
        assert_eq!(client.run("MGET a b"), Value::Array(vec![Value::from("e"), Value::from("f")]));
        // Monitors show each call once.
        let (mut seen, mut text) = (0, String::new());
        while !text.contains("\"MGET\"") {
            text = monitor.read_value().unwrap().text();
            seen +=
                usize::from(text.contains("\"FCALL\" \"put\"") || text.contains("\"EVAL\" \"return redis"));
        }
        assert_eq!(seen, 2);
    });
}

#[test]
fn removed_scripts_and_functions_free_their_memory() {
    everywhere(&[], |_, client| {
        // The compiled form of a script of this size is several times as large as its text.
        let padding = (0..4000).map(|number| format!("local a = {number} ")).collect::<String>();
        let padding = format!("do {} end ", padding.replace("local a", "a"));
        let memory = |client: &mut RawClient| client.info_number("used_memory_lua");
        eval(client, "return 1");
        let before = memory(client);
        for (ending, is_function) in
            [("SCRIPT FLUSH", false), ("FUNCTION FLUSH", true), ("FUNCTION DELETE big", true)]
        {
            for number in 0..10 {
                if is_function {
                    let code = format!(
                        "#!lua name=big\nredis.register_function('big', function() local a {padding} return {number} end)"
                    );
                    assert_eq!(client.command(&["FUNCTION", "LOAD", "REPLACE", &code]), Value::from("big"));
                    assert_eq!(client.run("FCALL big 0"), Value::Integer(number));
                } else {
                    let script = format!("local a {padding} return {number}");
                    assert_eq!(eval(client, &script), Value::Integer(number));
                }
            }
            assert!(memory(client) > before + 100_000, "{ending}: {} of {before}", memory(client));
            assert_eq!(client.run(ending), Value::ok());
            wait_until("the interpreters return memory", || memory(client) < before + 100_000);
        }
    });
}

#[test]
fn ping_is_answered_with_a_status_in_a_script_of_a_subscriber() {
    everywhere(&[], |server, _| {
        let mut client = server.client();
        assert!(!client.run("HELLO 3").is_error());
        assert!(!client.run("SUBSCRIBE news").is_error());
        for (text, expected) in [
            ("return redis.call('ping')", "PONG"),
            ("return redis.call('ping', 'x')", "x"),
            ("redis.setresp(3) return redis.call('ping')", "PONG"),
            ("return redis.call('ping').ok", "PONG"),
        ] {
            assert_eq!(eval(&mut client, text).text(), expected, "{text}");
        }
    });
}
