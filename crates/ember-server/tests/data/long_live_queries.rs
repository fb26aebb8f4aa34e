//! Live queries whose first evaluation is slow: the reply to their call is sent later, and no other client is delayed.

use ember_testkit::{RawClient, Value, wait_until};

use crate::blocking::{read, shown, wait_for_blocked};
use crate::long_calls::{set_long_strings, start_with_long_calls};
use crate::watched_results::{message, next_result, receives_nothing, resp3};
use crate::{MODES, clients, start};

/// Sends a watching call and returns its reply without the version.
fn answer(client: &mut RawClient, line: &str) -> String {
    let reply = client.run(line);
    let parts: Vec<Value> = match &reply {
        Value::Map(pairs) => pairs
            .iter()
            .filter(|(name, _)| name.text() != "version")
            .map(|(_, value)| value.clone())
            .collect(),
        other => other.elements().unwrap_or_else(|| panic!("{line}: {reply:?}")).to_vec(),
    };
    shown(&Value::Array(parts))
}

#[test]
fn a_slow_first_evaluation_is_answered_like_a_fast_one() {
    for mode in MODES {
        let (long, short) = (start_with_long_calls(mode, &[]), start(mode));
        for (mut client, mut other) in clients(&long).into_iter().zip(clients(&short)) {
            let mut writers = [long.client(), short.client()];
            for line in ["DEL z", "ZADD z 1 a 2 b 3 c 4 d", "SET one 1", "RPUSH l a b c d e"] {
                writers.iter_mut().for_each(|writer| _ = writer.run(line));
            }
            let lines = ["ZRANGE.WATCH z 0 -1 WITHSCORES", "ZRANGE.WATCH z 0 -1", "SMEMBERS.WATCH one"];
            for line in
                lines.into_iter().chain(["ZRANGE.WATCH z 0 -1", "GET.WATCH one", "LRANGE.WATCH none 0 -1"])
            {
                assert_eq!(answer(&mut client, line), answer(&mut other, line), "{mode:?} {line}");
            }
            writers[0].run("ZADD z 5 e");
            writers[1].run("ZADD z 5 e");
            let mut states = [&mut client, &mut other].map(|client| {
                let mut states: Vec<String> = (0..2)
                    .map(|_| {
                        let value = client.read_value().unwrap();
                        let (Value::Array(parts) | Value::Push(parts)) = value else { panic!("{value:?}") };
                        let result = parts.last().unwrap();
                        format!("{} {}", parts[1].text(), shown(result))
                    })
                    .collect();
                states.sort();
                states
            });
            assert_eq!(std::mem::take(&mut states[0]), states[1], "{mode:?}");
        }
        // On the first server the owner of the query runs the first evaluation, on the second server it does not.
        let runs = [start_with_long_calls(mode, &[]), start(mode)].map(|server| {
            server.client().run("RPUSH l a b c d e");
            let mut client = server.client();
            client.run("LRANGE.WATCH l 0 -1");
            server.client().info_number("ember_live_evaluations")
        });
        assert_eq!(runs, [1, 0], "{mode:?}");
        for server in [&long, &short] {
            assert_eq!(server.client().info_number("blocked_clients"), 0);
            let stats = server.client().run("INFO commandstats").text();
            assert!(stats.contains("cmdstat_zrange.watch:calls=6,"), "{stats}");
        }
    }
}

#[test]
fn calls_after_a_slow_first_evaluation_wait_for_it() {
    for mode in MODES {
        let server = start_with_long_calls(mode, &[]);
        let mut client = resp3(&server);
        client.run("RPUSH l a b c d");
        let lines = "LRANGE.WATCH l 0 -1\r\nRPUSH l e\r\nWATCH.OPEN COMMAND LRANGE l 1 3\r\nPING\r\n";
        client.send(lines.as_bytes()).unwrap();
        let first = client.read_value().unwrap();
        assert_eq!(first.get("result").unwrap().elements().unwrap().len(), 4, "{mode:?}");
        let (mut replies, mut states) = (Vec::new(), 0);
        while replies.len() < 3 || states < 1 {
            match client.read_value().unwrap() {
                Value::Push(_) => states += 1,
                reply => replies.push(reply),
            }
        }
        assert_eq!(replies[0], Value::Integer(5));
        assert_eq!(replies[1].get("result").unwrap().elements().unwrap().len(), 3);
        assert_eq!(replies[2].text(), "PONG");
    }
}

#[test]
fn a_slow_first_evaluation_resumes_and_obeys_its_options() {
    for mode in MODES {
        let server = start_with_long_calls(mode, &[]);
        let mut writer = server.client();
        writer.run("RPUSH l a b c d");
        let open = |options: &str| {
            let mut client = resp3(&server);
            let reply = client.run(&format!("WATCH.OPEN {options} COMMAND LRANGE l 0 -1"));
            (reply.get("version").unwrap().text(), reply.get("result").unwrap(), client)
        };
        let (version, _, _first) = open("EVERY");
        let (again, result, mut client) = open(&format!("SINCE {version} INTERVAL 60000"));
        assert_eq!((again, result), (version.clone(), Value::Null), "{mode:?}: unchanged");
        writer.run("RPUSH l e");
        assert!(receives_nothing(&mut client, &mut writer), "the interval has begun");
        let (newer, result, mut client) = open(&format!("SINCE {version}"));
        assert_ne!(newer, version);
        assert_eq!(result.elements().unwrap().len(), 5);
        writer.run("LPOP l");
        assert_eq!(next_result(&mut client).elements().unwrap().len(), 4);
    }
}

#[test]
fn a_channel_begins_with_the_state_of_a_slow_first_evaluation() {
    for mode in MODES {
        let server = start_with_long_calls(mode, &[]);
        let (mut client, mut writer) = (server.client(), server.client());
        writer.run("RPUSH l a b c d");
        writer.run("SET one 1");
        let (long, short) = ("__watch@0__:LRANGE l 0 -1", "__watch@0__:GET one");
        client.send_command(&["SUBSCRIBE", long, short]).unwrap();
        let (mut confirmed, mut notified) = (0, Vec::new());
        while confirmed < 2 || notified.len() < 2 {
            let value = client.read_value().unwrap();
            let parts = value.elements().unwrap();
            match parts[0].text().as_str() {
                "subscribe" => confirmed += 1,
                _ => notified.push(parts[1].text()),
            }
        }
        notified.sort();
        assert_eq!(notified, [short, long], "{mode:?}");
        writer.run("RPUSH l e");
        let (channel, text) = message(&mut client);
        assert!(channel == long && text.contains("[\"a\",\"b\",\"c\",\"d\",\"e\"]"), "{text}");
    }
}

#[test]
fn a_slow_first_evaluation_blocks_only_writers_to_its_keys() {
    let server = start(&["--shards", "1"]);
    let (mut client, mut other, mut writer) = (resp3(&server), server.client(), server.client());
    set_long_strings(&mut client, 100_000);
    client.send(b"LCS.WATCH a b LEN\r\n").unwrap();
    assert_eq!(other.info_number("blocked_clients"), 1, "the worker serves other clients");
    writer.send(b"APPEND a x\r\n").unwrap();
    wait_for_blocked(&server, 2);
    assert_eq!(shown(&other.run("STRLEN a")), "(integer) 100000", "readers do not wait");
    assert!(matches!(client.read_value().unwrap().get("result"), Some(Value::Integer(_))));
    assert_eq!(read(&mut writer), "(integer) 100001");
    assert_eq!(other.info_number("ember_live_watchers"), 1);
    // The call of a disconnected client gets no reply, and leaves no state.
    let mut leaving = resp3(&server);
    leaving.send(b"LCS.WATCH b a LEN\r\n").unwrap();
    wait_for_blocked(&server, 1);
    drop((leaving, client));
    writer.run("SET a free");
    wait_until("no watch is left", || other.info_number("mem_watches") == 0);
    wait_for_blocked(&server, 0);
}

#[test]
fn rights_lost_during_a_slow_first_evaluation_count() {
    let server = start(&["--shards", "1"]);
    let (mut client, mut admin) = (resp3(&server), server.client());
    set_long_strings(&mut admin, 100_000);
    admin.run("ACL SETUSER ann on nopass ~* +@all");
    client.run("AUTH ann x");
    client.send(b"LCS.WATCH a b LEN\r\n").unwrap();
    wait_for_blocked(&server, 1);
    admin.run("ACL SETUSER ann -lcs");
    let answer = client.read_value().unwrap();
    assert!(answer.text().starts_with("NOPERM"), "{answer:?}");
    assert_eq!(admin.info_number("ember_live_watchers"), 0);
}

#[test]
fn a_write_waits_for_one_of_the_queries_of_its_key_at_most() {
    /// Queries of one key, each of them slow.
    const QUERIES: usize = 40;
    for mode in MODES {
        let server = start_with_long_calls(mode, &[]);
        let (mut watcher, mut other, mut writer) = (resp3(&server), server.client(), server.client());
        set_long_strings(&mut writer, 1000);
        let query = |number: usize| format!("LCS a b IDX MINMATCHLEN {}", 900 + number);
        for number in 0..QUERIES {
            let channel = format!("__watch@0__:{}", query(number));
            watcher.send_command(&["SUBSCRIBE", &channel]).unwrap();
        }
        wait_until("all queries have run", || other.info_number("ember_live_evaluations") >= QUERIES as u64);
        let mut runs: Vec<u64> = (0..11)
            .map(|_| {
                let before = other.info_number("ember_live_evaluations");
                assert!(matches!(writer.run("APPEND a x"), Value::Integer(_)));
                other.info_number("ember_live_evaluations") - before
            })
            .collect();
        runs.sort_unstable();
        // A write waits for the running query; between the replies, further queries run: more on a busy machine.
        assert!(runs[5] <= 4, "{mode:?}: writes have waited for {runs:?} queries");
        assert!(runs[10] < QUERIES as u64 / 2, "{mode:?}: writes have waited for {runs:?} queries");
        // States are delayed, but the last state of each query arrives.
        let version = |text: &str| text.rsplit_once("\"len\":").map(|(_, rest)| rest.to_owned());
        writer.command(&[&b"SET"[..], b"a", &[b'x'; 900]]);
        writer.command(&[&b"SET"[..], b"b", &[b'x'; 900]]);
        let mut notified = std::collections::HashSet::new();
        while notified.len() < QUERIES {
            let value = watcher.read_value().unwrap();
            let parts = value.elements().unwrap();
            if parts[0].text() == "message"
                && version(&parts[2].text()).is_some_and(|len| len.starts_with("900"))
            {
                notified.insert(parts[1].text());
            }
        }
    }
}
