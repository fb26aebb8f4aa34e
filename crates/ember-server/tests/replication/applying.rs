//! The commands of the primary are applied in its order and by its clock.

use std::time::{SystemTime, UNIX_EPOCH};

use ember_testkit::{Value, wait_until};

use crate::{MODES, linked, primary, wait_for_offset};

fn now_ms() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()
}

#[test]
fn commands_of_all_databases_and_units_are_applied_and_acknowledged() {
    for mode in MODES {
        let (server, _primary, mut link) = linked(mode, &[], &[("old", "1"), ("n", "5")]);
        for line in [
            "SELECT 0",
            "INCR n",
            "MULTI",
            "RPUSH l a b",
            "SELECT 3",
            "SET other 1",
            "EXEC",
            "PING",
            "INCRBY other 9",
        ] {
            link.write(line);
        }
        link.write("REPLCONF GETACK *");
        let asked = link.offset;
        assert_eq!(link.acknowledged(asked), asked);
        let mut client = server.client();
        assert_eq!(client.run("MGET old n").elements().unwrap().len(), 2);
        assert_eq!(client.run("GET n").text(), "6");
        assert_eq!(client.run("LLEN l"), Value::Integer(2));
        client.run("SELECT 3");
        assert_eq!(client.run("GET other").text(), "10");
        assert_eq!(client.info_number("master_repl_offset"), asked);
        // The replica also acknowledges once a second without being requested.
        link.write("SET late 1");
        let late = link.offset;
        assert_eq!(link.acknowledged(late), late);
    }
}

#[test]
fn an_incomplete_unit_is_not_applied() {
    for mode in MODES {
        let (server, primary, mut link) = linked(mode, &[], &[]);
        link.write("SELECT 2");
        let before = link.offset;
        link.write("MULTI");
        link.write("SET a 1");
        link.write("SET b 2");
        let mut client = server.client();
        wait_until("the stream is read", || client.info_number("slave_read_repl_offset") == link.offset);
        assert_eq!(client.info_number("slave_repl_offset"), before);
        drop(link);
        // The primary sends the unit again, for the database that was selected before the unit.
        let mut again = primary.accept();
        assert_eq!(again.read_handshake(), ["PSYNC", primary::ID, &(before + 1).to_string()]);
        again.send(b"+CONTINUE\r\n");
        again.offset = before;
        for line in ["MULTI", "SET a 1", "SET b 2", "EXEC"] {
            again.write(line);
        }
        wait_for_offset(&mut client, again.offset);
        client.run("SELECT 2");
        assert_eq!(client.run("EXISTS a b"), Value::Integer(2));
    }
}

#[test]
fn expired_keys_are_hidden_until_the_primary_removes_them() {
    for mode in MODES {
        let (server, _primary, mut link) = linked(mode, &["--notify-keyspace-events", "KEA"], &[]);
        link.write("SELECT 0");
        let soon = now_ms() + 1000;
        link.write(&format!("SET k v PXAT {soon}"));
        link.write("HSET h a 1 b 2");
        link.write(&format!("HPEXPIREAT h {soon} FIELDS 1 a"));
        let mut client = server.client();
        wait_for_offset(&mut client, link.offset);
        let mut watcher = server.client();
        watcher.run("WATCH k");
        watcher.run("MULTI");
        watcher.run("GET k");
        wait_until("the keys have expired", || now_ms() > soon);
        assert_eq!(client.run("EXISTS k"), Value::Integer(0));
        assert_eq!(client.run("DBSIZE"), Value::Integer(2));
        for line in ["GET k", "TYPE k", "KEYS k*", "OBJECT ENCODING k", "DUMP k", "PTTL k", "SORT_RO k"] {
            let shown = client.run(line);
            let is_nothing = match &shown {
                Value::Array(values) => values.is_empty(),
                Value::Integer(number) => *number == -2,
                other => other.text().is_empty() || other.text() == "none" || other.is_error(),
            };
            assert!(is_nothing, "{line}: {shown:?}");
        }
        assert_eq!(client.run("SCAN 0 COUNT 1000").elements().unwrap()[1].elements().unwrap().len(), 1);
        assert_eq!(client.run("HGETALL h").elements().unwrap().len(), 2);
        assert_eq!(client.run("HEXISTS h a"), Value::Integer(0));
        assert_eq!(client.run("HRANDFIELD h 5").elements().unwrap().len(), 1);
        assert_eq!(client.run("HRANDFIELD h -3").elements().unwrap().len(), 3);
        assert_eq!(client.run("HTTL h FIELDS 2 a b").elements().unwrap()[0], Value::Integer(-2));
        // The removal counts as a change of the watched key.
        assert_eq!(watcher.run("EXEC"), Value::Null);
        // The replica still has the key, although it has expired.
        link.write("PERSIST k");
        link.write("HPERSIST h FIELDS 1 a");
        wait_for_offset(&mut client, link.offset);
        assert_eq!(client.run("GET k").text(), "v");
        assert_eq!(client.run("HGET h a").text(), "1");
        assert_eq!(client.info_number("expired_keys"), 0);
        link.write("DEL k");
        wait_for_offset(&mut client, link.offset);
        assert_eq!(client.run("DBSIZE"), Value::Integer(1));
    }
}

#[test]
fn pauses_and_limits_do_not_stop_the_primary() {
    for mode in MODES {
        let arguments = ["--maxmemory", "2mb", "--maxmemory-policy", "allkeys-lru", "--timeout", "1"];
        let (server, _primary, mut link) = linked(mode, &arguments, &[]);
        let mut client = server.client();
        client.run("CLIENT PAUSE 600000 WRITE");
        link.write("SELECT 0");
        let value = "x".repeat(100_000);
        for number in 0..100 {
            link.write(&format!("SET key{number} {value}"));
        }
        link.write("REPLCONF GETACK *");
        let asked = link.offset;
        assert_eq!(link.acknowledged(asked), asked);
        client.run("CLIENT UNPAUSE");
        assert_eq!(client.run("DBSIZE"), Value::Integer(100));
        assert_eq!(client.info_number("evicted_keys"), 0);
    }
}

#[test]
fn long_scripts_of_clients_only_delay_the_link() {
    for mode in MODES {
        let (server, _primary, mut link) = linked(mode, &["--busy-reply-threshold", "5"], &[]);
        let mut busy = server.client();
        let script = "local n = 0 for i = 1, 2e7 do n = n + i end return n";
        busy.send_command(&["EVAL", script, "0"]).unwrap();
        link.write("SELECT 0");
        for line in ["SET a 1", "FLUSHALL", "MULTI", "SET b 1", "FUNCTION FLUSH", "EXEC", "INCR b"] {
            link.write(line);
        }
        link.write("REPLCONF GETACK *");
        let asked = link.offset;
        assert_eq!(link.acknowledged(asked), asked);
        busy.read_value().unwrap();
        assert_eq!(server.client().run("GET b").text(), "2", "{}", server.log());
    }
}

#[test]
fn applied_changes_notify_clients() {
    for mode in MODES {
        let (server, _primary, mut link) = linked(mode, &["--notify-keyspace-events", "KEA"], &[("k", "1")]);
        let mut listener = server.client();
        listener.run("SUBSCRIBE __keyspace@0__:k news");
        listener.read_value().unwrap();
        let mut waiting = server.client();
        waiting.send_command(&["XREAD", "BLOCK", "0", "STREAMS", "s", "$"]).unwrap();
        wait_until("the call waits", || server.client().info_number("blocked_clients") == 1);
        let mut caching = server.client();
        caching.run("HELLO 3");
        caching.run("CLIENT TRACKING ON");
        caching.run("GET k");
        link.write("SELECT 0");
        link.write("SET k 2");
        link.write("PUBLISH news hello");
        link.write("XADD s 1-1 a b");
        assert_eq!(listener.read_value().unwrap().elements().unwrap()[2].text(), "set");
        assert_eq!(listener.read_value().unwrap().elements().unwrap()[2].text(), "hello");
        assert!(waiting.read_value().unwrap().elements().is_some());
        let pushed = caching.read_raw().unwrap();
        assert!(pushed.starts_with(b">2\r\n$10\r\ninvalidate"), "{}", pushed.escape_ascii());
    }
}
