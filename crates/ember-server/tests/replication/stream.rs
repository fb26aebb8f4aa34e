//! The stream of a primary, received over plain connections that act as replicas.

use std::time::{Duration, Instant};

use ember_testkit::{RawClient, Server, Value, find_ember_server, wait_until};

use crate::MODES;

fn start(mode: &[&str], more: &[&str]) -> Server {
    let arguments = ["--enable-debug-command", "yes", "--repl-diskless-sync-delay", "0"];
    Server::builder(find_ember_server()).arguments(mode).arguments(&arguments).arguments(more).start()
}

/// A connection that acts as a replica.
struct Follower {
    client: RawClient,
    id: String,
    /// The position after the bytes that the connection has read from the stream.
    position: u64,
}

fn line(client: &mut RawClient) -> String {
    let mut line = Vec::new();
    while !line.ends_with(b"\n") {
        line.extend(client.read_bytes(1).unwrap());
    }
    // Empty lines are keepalives.
    if line == b"\n" { self::line(client) } else { String::from_utf8_lossy(&line).trim_end().to_owned() }
}

/// Reads a full sync, with a known or an unknown length.
fn copy(client: &mut RawClient) -> Vec<u8> {
    let head = line(client);
    let Some(mark) = head.strip_prefix("$EOF:") else {
        let length = head.strip_prefix('$').unwrap().parse().unwrap();
        return client.read_bytes(length).unwrap();
    };
    let mut bytes = client.read_bytes(mark.len()).unwrap();
    while !bytes.ends_with(mark.as_bytes()) {
        bytes.extend(client.read_bytes(1).unwrap());
    }
    bytes.truncate(bytes.len() - mark.len());
    bytes
}

impl Follower {
    /// Connects a replica and reads its full sync, which is also returned.
    fn with_copy(server: &Server) -> (Follower, Vec<u8>) {
        let (follower, copy) = Follower::introduced(server, &[]);
        assert!(copy.starts_with(b"REDIS"));
        (follower, copy)
    }

    /// Connects a replica that supports field expiries and reads its full sync.
    fn of_valkey(server: &Server) -> Follower {
        let (follower, copy) = Follower::introduced(server, &["REPLCONF version 9.0.0"]);
        assert!(copy.starts_with(b"VALKEY080"));
        follower
    }

    fn introduced(server: &Server, facts: &[&str]) -> (Follower, Vec<u8>) {
        let mut client = server.client();
        assert_eq!(client.run("REPLCONF listening-port 7 capa eof capa psync2"), Value::ok());
        for fact in facts {
            assert_eq!(client.run(fact), Value::ok());
        }
        client.send_command(&["PSYNC", "?", "-1"]).unwrap();
        let answer = line(&mut client);
        let mut words = answer.strip_prefix("+FULLRESYNC ").unwrap().split(' ');
        let (id, position) = (words.next().unwrap().to_owned(), words.next().unwrap().parse().unwrap());
        let copy = copy(&mut client);
        let mut follower = Follower { client, id, position };
        // No command arrives before the replica has acknowledged that the full sync is loaded.
        follower.acknowledge();
        (follower, copy)
    }

    /// Reads the next command of the stream that changes data.
    fn next(&mut self) -> Vec<String> {
        loop {
            let bytes = self.client.read_raw().unwrap();
            self.position += bytes.len() as u64;
            let words: Vec<_> = String::from_utf8_lossy(&bytes)
                .split("\r\n")
                .filter(|part| !part.starts_with(['*', '$']))
                .map(str::to_owned)
                .collect();
            let words = words[..words.len() - 1].to_vec();
            if words != ["PING"] && words != ["REPLCONF", "GETACK"] {
                return words;
            }
        }
    }

    fn expect(&mut self, commands: &[&str]) {
        for command in commands {
            assert_eq!(self.next().join(" "), *command);
        }
    }

    fn acknowledge(&mut self) {
        let position = self.position.to_string();
        self.client.send_command(&["REPLCONF", "ACK", &position, "FACK", &position]).unwrap();
    }
}

#[test]
fn the_stream_continues_where_the_full_sync_ends() {
    for mode in MODES {
        let server = start(mode, &[]);
        let mut client = server.client();
        client.run("SET before 1");
        let (mut follower, copy) = Follower::with_copy(&server);
        assert!(copy.windows(6).any(|part| part == b"before"));
        client.run("SELECT 3");
        client.run("SET k v EX 100");
        client.run("SELECT 0");
        for call in ["MULTI", "INCR n", "RPUSH l a b", "EXEC", "SPOP nothing", "LPOP l", "DEL n"] {
            client.run(call);
        }
        client.run("PUBLISH channel hello");
        client.run("EVAL redis.call('set',KEYS[1],1)redis.call('incr',KEYS[1]) 1 s");
        follower.expect(&["SELECT 3"]);
        let set = follower.next().join(" ");
        assert!(set.starts_with("SET k v PXAT "), "{set}");
        follower.expect(&["MULTI", "SELECT 0"]);
        // An increment is replicated as a SET of its result, in every execution path.
        assert_eq!(follower.next()[1], "n");
        follower.expect(&["RPUSH l a b", "EXEC", "LPOP l", "DEL n", "PUBLISH channel hello", "MULTI"]);
        assert_eq!(follower.next()[1], "s");
        assert_eq!(follower.next()[1], "s");
        follower.expect(&["EXEC"]);
        assert_eq!(client.info_number("master_repl_offset"), follower.position, "all bytes count");
    }
}

#[test]
fn a_script_selects_the_targets_of_its_changes() {
    for mode in MODES {
        let server = start(mode, &["--appendonly", "yes"]);
        let mut client = server.client();
        let (mut follower, _) = Follower::with_copy(&server);
        client.run("SET first 1");
        let script = "redis.call('SET', 'all', 1)
            redis.set_repl(redis.REPL_NONE)
            redis.call('SET', 'none', 1)
            redis.call('PUBLISH', 'channel', 'hello')
            redis.set_repl(redis.REPL_AOF)
            redis.call('SET', 'aof', 1)
            redis.set_repl(redis.REPL_REPLICA)
            redis.call('SELECT', 1)
            redis.call('SET', 'replica', 1)
            redis.call('PUBLISH', 'channel', 'hello')
            return redis.call('INCR', 'replica')";
        assert_eq!(client.command(&["EVAL", script, "0"]), Value::Integer(2));
        let alone = "redis.set_repl(redis.REPL_NONE) redis.call('SET', 'nobody', 1)";
        assert_eq!(client.command(&["EVAL", alone, "0"]), Value::Null);
        client.run("SET last 1");
        let mut commands: Vec<String> = (0..12).map(|_| follower.next().join(" ")).collect();
        // A message precedes the record of the script that sends it.
        assert_eq!(commands.drain(2..4).collect::<Vec<_>>(), ["SELECT 1", "PUBLISH channel hello"]);
        assert_eq!(commands[..3], ["SELECT 0", "SET first 1", "MULTI"]);
        assert_eq!(commands[3..6], ["SELECT 0", "SET all 1", "SELECT 1"]);
        assert_eq!(commands[6..8], ["SET replica 1", "INCR replica"]);
        assert_eq!(commands[8..], ["EXEC", "SELECT 0"]);
        follower.expect(&["SET last 1"]);
        assert_eq!(client.info_number("master_repl_offset"), follower.position, "all bytes count");
        let arguments = [mode, &["--appendonly", "yes"]].concat();
        let server =
            Server::builder(find_ember_server()).arguments(&arguments).directory(server.crash()).start();
        let mut client = server.client();
        for (key, is_there) in [("first", 1), ("all", 1), ("none", 0), ("aof", 1), ("nobody", 0), ("last", 1)]
        {
            assert_eq!(client.run(&format!("EXISTS {key}")), Value::Integer(is_there), "{key}");
        }
        client.run("SELECT 1");
        assert_eq!(client.run("EXISTS replica"), Value::Integer(0));
    }
}

#[test]
fn expired_keys_are_deleted_one_by_one() {
    for mode in MODES {
        let server = start(mode, &[]);
        let mut client = server.client();
        client.run("DEBUG SET-ACTIVE-EXPIRE 0");
        for key in ["a", "b", "c", "d"] {
            client.run(&format!("SET {key} v PX 1"));
        }
        wait_until("the keys have expired", || client.run("PTTL a") == Value::Integer(-2));
        let (mut follower, _) = Follower::with_copy(&server);
        client.run("GET b");
        follower.expect(&["SELECT 0", "DEL b"]);
        client.run("SCAN 0 COUNT 100");
        let deleted = [follower.next(), follower.next()];
        assert!(deleted.iter().all(|words| words[0] == "DEL"), "in no transaction: {deleted:?}");
        client.run("SET e v PX 1");
        follower.next();
        wait_until("the member is drawn", || {
            client.run("RANDOMKEY") == Value::Null && client.run("DBSIZE") == Value::Integer(0)
        });
        follower.expect(&["DEL e"]);
        client.run("SET e 1");
        client.run("GETDEL e");
        follower.expect(&["SET e 1", "DEL e"]);
    }
}

#[test]
fn a_reconnecting_replica_resumes_at_its_offset() {
    for mode in MODES {
        let server = start(mode, &[]);
        let mut client = server.client();
        let (mut follower, _) = Follower::with_copy(&server);
        client.run("SET a 1");
        follower.expect(&["SELECT 0", "SET a 1"]);
        let Follower { client: closing, id, position } = follower;
        drop(closing);
        wait_until("the replica is disconnected", || client.info_number("connected_slaves") == 0);
        client.run("SET b 2");
        let mut again = server.client();
        again.run("REPLCONF capa psync2");
        again.send_command(&["PSYNC", &id, &(position + 1).to_string()]).unwrap();
        assert_eq!(line(&mut again), format!("+CONTINUE {id}"));
        let mut follower = Follower { client: again, id: id.clone(), position };
        follower.expect(&["SET b 2"]);
        // Positions that the backlog does not contain and other histories require a full sync.
        for (id, offset) in [(id.as_str(), follower.position + 100), (&"f".repeat(40), position + 1)] {
            let mut other = server.client();
            other.send_command(&["PSYNC", id, &offset.to_string()]).unwrap();
            assert!(line(&mut other).starts_with("+FULLRESYNC "));
            copy(&mut other);
        }
        let mut counts =
            || ["sync_full", "sync_partial_ok", "sync_partial_err"].map(|name| client.info_number(name));
        assert_eq!(counts(), [3, 1, 2]);
        server.client().run("CONFIG RESETSTAT");
        assert_eq!(counts(), [0, 0, 0]);
    }
}

#[test]
fn a_replica_that_sends_sync_gets_a_full_sync_and_the_stream() {
    let server = start(MODES[0], &[]);
    let mut client = server.client();
    client.run("SET a 1");
    let mut old = server.client();
    old.send(b"SYNC\r\n").unwrap();
    assert!(copy(&mut old).starts_with(b"REDIS0010"));
    client.run("SET b 2");
    let mut follower = Follower { client: old, id: String::new(), position: 0 };
    follower.expect(&["SELECT 0", "SET b 2"]);
}

#[test]
fn wait_blocks_until_replicas_have_the_writes_of_the_client() {
    for mode in MODES {
        let server = start(mode, &["--appendonly", "yes"]);
        let mut client = server.client();
        assert_eq!(client.run("WAIT 1 20"), Value::Integer(0), "there is no replica");
        let (mut follower, _) = Follower::with_copy(&server);
        client.run("SET a 1");
        assert_eq!(client.run("WAIT 1 20"), Value::Integer(0), "the replica has confirmed nothing");
        client.send(b"SET b 1\r\nWAIT 1 0\r\nWAITAOF 1 1 0\r\n").unwrap();
        follower.expect(&["SELECT 0", "SET a 1", "SET b 1"]);
        assert_eq!(client.read_value().unwrap(), Value::ok());
        follower.acknowledge();
        assert_eq!(client.read_value().unwrap(), Value::Integer(1));
        assert_eq!(client.read_value().unwrap(), Value::Array(vec![Value::Integer(1), Value::Integer(1)]));
        assert_eq!(client.run("WAIT 1 0"), Value::Integer(1), "no write since");
        // A false acknowledgement does not count for later writes.
        follower.client.send_command(&["REPLCONF", "ACK", "99999999999"]).unwrap();
        wait_until("the acknowledgement is recorded", || {
            let end = client.info("master_repl_offset");
            client.info("slave0").contains(&format!("offset={end},"))
        });
        client.run("SET c 1");
        assert_eq!(client.run("WAIT 1 20"), Value::Integer(0));
        for line in ["WAIT 1 9223372036854775807", "WAITAOF 0 1 9223372036854775807"] {
            assert_eq!(client.run(line).text(), "ERR timeout is out of range", "{line}");
        }
    }
}

#[test]
fn waitaof_fails_when_the_aof_is_switched_off() {
    for mode in MODES {
        let server = start(mode, &["--appendonly", "yes"]);
        let (mut client, mut other) = (server.client(), server.client());
        client.run("SET a 1");
        client.send_command(&["WAITAOF", "1", "1", "0"]).unwrap();
        wait_until("the call waits", || other.info("blocked_clients") == "1");
        assert_eq!(other.run("CONFIG SET appendonly no"), Value::ok());
        let reply = client.read_value().unwrap().text();
        assert!(reply.starts_with("ERR WAITAOF cannot be used when numlocal is set"), "{reply}");
    }
}

#[test]
fn writes_are_refused_without_enough_healthy_replicas() {
    let server = start(MODES[0], &["--min-replicas-to-write", "1", "--min-replicas-max-lag", "10"]);
    let mut client = server.client();
    wait_until("writes are refused", || client.run("SET a 1").is_error());
    let refused = "NOREPLICAS Not enough good replicas to write.";
    assert_eq!(client.run("SET a 1"), Value::Error(refused.into()));
    assert!(!client.run("GET a").is_error());
    let script = ["EVAL", "#!lua\nreturn redis.call('GET', KEYS[1])", "1", "a"];
    assert_eq!(client.command(&script), Value::Error(refused.into()), "the script's flags allow writes");
    let (mut follower, _) = Follower::with_copy(&server);
    follower.acknowledge();
    wait_until("there is one replica", || client.run("SET a 1") == Value::ok());
    assert_eq!(client.run("CONFIG SET min-replicas-to-write 2"), Value::ok());
    wait_until("one replica is too few", || client.run("SET a 1").is_error());
}

#[test]
fn a_replica_that_does_not_read_is_dropped_and_uses_no_memory() {
    let limits = [
        "--client-output-buffer-limit",
        "replica 4mb 0 0",
        "--repl-backlog-size",
        "1mb",
        "--repl-backlog-spill",
        "0",
    ];
    let server = start(MODES[0], &limits);
    let mut client = server.client();
    let (follower, _) = Follower::with_copy(&server);
    let value = "x".repeat(100_000);
    let begun = Instant::now();
    while client.info_number("connected_slaves") == 1 {
        assert!(begun.elapsed() < Duration::from_secs(60));
        client.command(&["SET", "k", &value]);
    }
    assert!(client.info_number("mem_replication_backlog") < 6 << 20);
    drop(follower);
}

#[test]
fn full_syncs_are_delayed_for_a_replica_that_never_loads_one() {
    for mode in MODES {
        let server = start(mode, &[]);
        let get_copy = |port: &str| {
            let mut client = server.client();
            client.run(&format!("REPLCONF listening-port {port} capa eof capa psync2"));
            client.send_command(&["PSYNC", "?", "-1"]).unwrap();
            let answer = line(&mut client);
            if answer.starts_with("+FULLRESYNC ") {
                copy(&mut client);
            }
            drop(client);
            wait_until("the replica is dropped", || server.client().info_number("connected_slaves") == 0);
            answer
        };
        for _ in 0..3 {
            assert!(get_copy("7").starts_with("+FULLRESYNC "));
        }
        let refused = "-NOMASTERLINK This replica does not load the data of its full syncs: its next full sync \
                       starts in 10 seconds";
        let answer = get_copy("7");
        assert!(answer == refused || answer == refused.replace("10", "9"), "{answer}");
        assert!(get_copy("8").starts_with("+FULLRESYNC "), "a new full sync");
        assert!(server.log().contains("does not load the snapshots of its full syncs"), "{}", server.log());
    }
}

#[test]
fn the_ping_period_changes_at_once() {
    let server = start(MODES[0], &["--repl-ping-replica-period", "3600"]);
    let mut client = server.client();
    let (mut follower, _) = Follower::with_copy(&server);
    client.run("SET k 1");
    follower.expect(&["SELECT 0", "SET k 1"]);
    let before = client.info_number("master_repl_offset");
    assert_eq!(client.run("CONFIG SET repl-ping-replica-period 1"), Value::ok());
    wait_until("there is a ping", || client.info_number("master_repl_offset") > before);
}

#[test]
fn the_backlog_is_freed_without_replicas() {
    let server = start(MODES[0], &["--repl-backlog-ttl", "1"]);
    let mut client = server.client();
    let (follower, _) = Follower::with_copy(&server);
    let id = client.info("master_replid");
    assert_eq!(id, follower.id);
    drop(follower);
    wait_until("the backlog is freed", || client.info_number("repl_backlog_active") == 0);
    assert_ne!(client.info("master_replid"), id, "later writes are in no stream");
    client.run("SET unseen 1");
    let (mut follower, copy) = Follower::with_copy(&server);
    assert!(copy.windows(6).any(|part| part == b"unseen"));
    client.run("SET seen 1");
    follower.expect(&["SELECT 0", "SET seen 1"]);
}

/// Whether an rdb-only full sync contains the keys and the functions, for a replica that requests parts of the data.
fn copy_alone(server: &Server, parts: Option<&str>, call: &str) -> (bool, bool) {
    let mut client = server.client();
    assert_eq!(client.run("REPLCONF rdb-only 1"), Value::ok());
    if let Some(parts) = parts {
        assert_eq!(client.command(&["REPLCONF", "rdb-filter-only", parts]), Value::ok());
    }
    client.send_command(&call.split(' ').collect::<Vec<_>>()).unwrap();
    if call != "SYNC" {
        assert!(line(&mut client).starts_with("+FULLRESYNC "));
    }
    let file = copy(&mut client);
    assert!(file.starts_with(b"REDIS"));
    assert!(client.is_closed().unwrap(), "no stream follows it");
    let has = |part: &[u8]| file.windows(part.len()).any(|bytes| bytes == part);
    (has(b"\x01a\x05value"), has(b"name=library"))
}

#[test]
fn rdb_only_full_syncs_are_sent_and_the_connection_closed() {
    for mode in MODES {
        let server = start(mode, &[]);
        let mut client = server.client();
        client.run("SET a value");
        let code = "#!lua name=library\nredis.register_function('f', function() return 1 end)";
        assert_eq!(client.command(&["FUNCTION", "LOAD", code]).text(), "library");
        for call in ["SYNC", "PSYNC ? -1"] {
            assert_eq!(copy_alone(&server, None, call), (true, true), "{call}");
            assert_eq!(copy_alone(&server, Some("functions"), call), (false, true), "{call}");
            assert_eq!(copy_alone(&server, Some(""), call), (false, false), "{call}");
        }
        wait_until("the replicas are disconnected", || client.info_number("connected_slaves") == 0);
        assert!(!server.log().contains("WARN"), "{}", server.log());
    }
}

#[test]
fn a_full_sync_without_remaining_replicas_is_aborted() {
    for mode in MODES {
        let options = ["--enable-debug-command", "yes", "--rdbcompression", "no", "--save", ""];
        let server = start(mode, &[&options[..], &["--repl-diskless-sync-delay", "0"]].concat());
        let mut client = server.client();
        client.run("DEBUG POPULATE 2000 key 10000");
        // The full sync would take 20 seconds.
        client.run("CONFIG SET rdb-key-save-delay 10000");
        let mut replica = server.client();
        replica.run("REPLCONF listening-port 7 capa eof capa psync2");
        replica.send_command(&["PSYNC", "?", "-1"]).unwrap();
        assert!(line(&mut replica).starts_with("+FULLRESYNC "));
        wait_until("the full sync is written", || client.info("rdb_bgsave_in_progress") == "1");
        drop(replica);
        wait_until("no full sync is written", || client.info("rdb_bgsave_in_progress") == "0");
        assert!(server.log().contains("the full sync is abandoned after"), "{}", server.log());
        // The next replica receives a full sync.
        client.run("CONFIG SET rdb-key-save-delay 0");
        Follower::with_copy(&server);
    }
}

#[test]
fn the_stream_continues_after_a_filtered_full_sync_too() {
    for mode in MODES {
        let server = start(mode, &[]);
        let mut client = server.client();
        client.run("SET a value");
        // Connects like `redis-cli --replica`.
        let mut replica = server.client();
        assert_eq!(replica.run("REPLCONF capa eof"), Value::ok());
        assert_eq!(replica.command(&["REPLCONF", "rdb-filter-only", ""]), Value::ok());
        replica.send_command(&["SYNC"]).unwrap();
        let file = copy(&mut replica);
        assert!(file.starts_with(b"REDIS") && !file.windows(5).any(|part| part == b"value"));
        client.run("SET b 1");
        let mut follower = Follower { client: replica, id: String::new(), position: 0 };
        follower.expect(&["SELECT 0", "SET b 1"]);
        // A replica that requests no parts receives all data.
        let (_, whole) = Follower::with_copy(&server);
        assert!(whole.windows(5).any(|part| part == b"value"));
    }
}

/// Returns the first line of a full sync for a replica with these capabilities and this port, which never loads it.
fn head(server: &Server, port: u16, capabilities: &str) -> (RawClient, String) {
    let mut client = server.client();
    assert_eq!(client.run(&format!("REPLCONF listening-port {port} {capabilities}")), Value::ok());
    client.send_command(&["PSYNC", "?", "-1"]).unwrap();
    assert!(line(&mut client).starts_with("+FULLRESYNC "));
    let head = line(&mut client);
    (client, head)
}

#[test]
fn a_full_sync_is_sent_while_it_is_written() {
    for mode in MODES {
        // Writing each key takes a millisecond.
        let server = start(mode, &["--rdb-key-save-delay", "1000", "--rdbcompression", "no"]);
        let mut client = server.client();
        client.run("DEBUG POPULATE 2000 key 1000");
        let (mut replica, head) = head(&server, 1, "capa eof capa psync2");
        let mark = head.strip_prefix("$EOF:").unwrap();
        let mut bytes = replica.read_bytes(200_000).unwrap();
        assert!(bytes.starts_with(b"REDIS0010"));
        assert!(!server.log().contains("the data of the full sync is complete"), "{}", server.log());
        assert_eq!(client.info_number("rdb_bgsave_in_progress"), 1, "as in Redis");
        client.run("CONFIG SET rdb-key-save-delay 0");
        client.run("SET behind 1");
        while !bytes.ends_with(mark.as_bytes()) {
            bytes.extend(replica.read_bytes(1).unwrap());
        }
        assert!(server.log().contains("the data of the full sync is complete"));
        assert!(bytes.len() > 2_000_000);
        // Nothing else arrives before the replica has loaded the full sync.
        client.run("SET behind 2");
        assert!(client.run("INFO replication").text().contains("state=send_bulk"));
        wait_until("the full sync is written", || client.info_number("rdb_bgsave_in_progress") == 0);
        replica.send_command(&["REPLCONF", "ACK", "0"]).unwrap();
        let mut follower = Follower { client: replica, id: String::new(), position: 0 };
        follower.expect(&["SELECT 0", "SET behind 1", "SET behind 2"]);
        assert!(client.run("INFO replication").text().contains("state=online"));
    }
}

#[test]
fn a_full_sync_of_known_length_is_sent_when_complete() {
    for mode in MODES {
        let server = start(mode, &[]);
        let mut client = server.client();
        client.run("HSET h a 1");
        assert!(head(&server, 2, "capa eof").1.starts_with("$EOF:"));
        assert!(head(&server, 3, "capa psync2").1.starts_with("$1"), "the replica supports no end marks");
        client.run("CONFIG SET repl-diskless-sync no");
        assert!(head(&server, 4, "capa eof").1.starts_with("$1"));
        client.run("CONFIG SET repl-diskless-sync yes");
    }
}

#[test]
fn a_full_sync_has_a_format_that_the_replica_supports() {
    for mode in MODES {
        let server = start(mode, &["--repl-diskless-sync-delay", "1"]);
        let programs = [
            ("capa eof", ["REDIS0010", "REDIS0012"]),
            ("version 8.1.0 capa eof", ["REDIS0010", "REDIS0012"]),
            ("version 9.1.2 capa eof", ["VALKEY080", "VALKEY080"]),
            ("capa eof capa rdb-channel-repl", ["REDIS0012", "REDIS0012"]),
            ("version 9.0.0 capa eof capa ember", ["REDIS0012", "REDIS0012"]),
            ("capa eof capa ember version 9.0.0", ["REDIS0012", "REDIS0012"]),
        ];
        let mut client = server.client();
        for (number, line) in ["HSET h a 1", "HPEXPIRE h 2000000 FIELDS 1 a"].into_iter().enumerate() {
            client.run(line);
            // All replicas request a full sync at the same time: only replicas that support the same format share one.
            let mut replicas: Vec<RawClient> = programs.iter().map(|_| server.client()).collect();
            for (port, (replica, (says, _))) in replicas.iter_mut().zip(programs).enumerate() {
                assert_eq!(replica.run(&format!("REPLCONF listening-port {} {says}", port + 1)), Value::ok());
                replica.send_command(&["PSYNC", "?", "-1"]).unwrap();
            }
            for (replica, (says, begins)) in replicas.iter_mut().zip(programs) {
                assert!(self::line(replica).starts_with("+FULLRESYNC "));
                let copy = copy(replica);
                assert!(copy.starts_with(begins[number].as_bytes()), "{says}: {}", copy[..9].escape_ascii());
            }
        }
    }
}

/// Connects a replica that sends the REPLCONF options `says` and requests the stream after a position of a history;
/// also returns the reply.
fn ask(server: &Server, says: &str, id: &str, position: u64) -> (RawClient, String) {
    let mut client = server.client();
    assert_eq!(client.run(&format!("REPLCONF {says} capa eof capa psync2")), Value::ok());
    client.send_command(&["PSYNC", id, &(position + 1).to_string()]).unwrap();
    let answer = line(&mut client);
    (client, answer)
}

#[test]
fn a_replica_that_does_not_support_a_command_gets_a_full_sync_instead() {
    for mode in MODES {
        let server = start(mode, &[]);
        let mut client = server.client();
        let (mut old, copy_of_old) = Follower::with_copy(&server);
        assert!(copy_of_old.starts_with(b"REDIS0010"));
        let (own, answer) = ask(&server, "listening-port 8 capa ember", &old.id, old.position);
        assert!(answer.starts_with("+CONTINUE"), "{answer}");
        let mut own = Follower { client: own, id: old.id.clone(), position: old.position };
        client.run("HSET h f HPEXPIREAT");
        let calls = ["SELECT 0", "HSET h f HPEXPIREAT"];
        old.expect(&calls);
        own.expect(&calls);
        old.acknowledge();
        let known_to_all = old.position;
        client.run("SET behind 1");
        client.run("HPEXPIREAT h 4000000000000 FIELDS 1 f");
        old.client.read_bytes(1 << 20).unwrap_err();
        own.expect(&["SET behind 1", "HPEXPIREAT h 4000000000000 FIELDS 1 f"]);
        let expected = "127.0.0.1:7 is disconnected: it cannot be sent HPEXPIREAT, which is only supported by Redis \
                        7.4, Valkey 9 and ember";
        wait_until("the log says why", || server.log().contains(expected));
        // The backlog still contains the missing part, but the replica cannot apply its HPEXPIREAT, so it needs a full
        // sync.
        let (mut again, answer) = ask(&server, "listening-port 7", &old.id, known_to_all);
        assert!(answer.starts_with("+FULLRESYNC "), "{answer}");
        let position: u64 = answer.rsplit(' ').next().unwrap().parse().unwrap();
        // The replica must prove that it supports expiring fields.
        assert!(copy(&mut again).starts_with(b"REDIS0012"));
        let mut again = Follower { client: again, id: old.id.clone(), position };
        again.acknowledge();
        client.run("HPERSIST h FIELDS 1 f");
        again.expect(&["SELECT 0", "HPERSIST h FIELDS 1 f"]);
        again.acknowledge();
        // The replica has proved that it supports expiring fields, so it resumes.
        let (client_again, answer) = ask(&server, "listening-port 7", &old.id, again.position);
        assert!(answer.starts_with("+CONTINUE"), "{answer}");
        let mut again = Follower { client: client_again, ..again };
        client.run("HPEXPIREAT h 4000000000001 FIELDS 1 f");
        again.expect(&["HPEXPIREAT h 4000000000001 FIELDS 1 f"]);
        // Valkey sends its version, and does not support vector sets.
        let (mut valkey, answer) = ask(&server, "listening-port 9 version 9.1.2", &old.id, again.position);
        assert!(answer.starts_with("+CONTINUE"), "{answer}");
        client.run("VADD v VALUES 1 1 a");
        valkey.read_bytes(1 << 20).unwrap_err();
        wait_until("the log says why", || {
            server.log().contains("127.0.0.1:9 is disconnected: it cannot be sent VADD")
        });
    }
}

#[test]
fn messages_of_a_replica_are_validated() {
    let server = start(MODES[0], &[]);
    let mut client = server.client();
    for (call, error) in [
        ("REPLCONF listening-port", "ERR syntax error"),
        ("REPLCONF listening-port 70000", "ERR value is not an integer or out of range"),
        ("REPLCONF nonsense 1", "ERR Unrecognized REPLCONF option: nonsense"),
        ("REPLCONF rdb-only 2", "ERR value is out of range, value must between 0 and 1"),
        ("REPLCONF rdb-only x", "ERR value is not an integer or out of range"),
        ("REPLCONF rdb-filter-only keys", "ERR Unsupported rdb-filter-only option: keys"),
        ("PSYNC ? x", "ERR value is not an integer or out of range"),
    ] {
        assert_eq!(client.run(call), Value::Error(error.into()), "{call}");
    }
    client.run("MULTI");
    assert!(client.run("PSYNC ? -1").is_error());
    let (follower, _) = Follower::with_copy(&server);
    let listed = server.client().run("CLIENT LIST TYPE replica").text();
    assert!(listed.contains("flags=S "), "{listed}");
    assert_eq!(server.client().run("CLIENT KILL TYPE replica"), Value::Integer(1));
    drop(follower);
}

/// Returns a payload that declares this version, without a checksum.
fn payload(version: u16, value: &[u8]) -> Vec<u8> {
    [value, &version.to_le_bytes(), &[0; 8]].concat()
}

/// Redis refuses payloads of Valkey, Valkey 9 refuses payloads of Redis 7.4, and neither reports that to its primary.
#[test]
fn restored_keys_are_replicated_by_portable_commands_with_the_flags_of_the_caller() {
    for mode in MODES {
        let server = start(mode, &[]);
        let mut client = server.client();
        assert_eq!(client.run("DEBUG SET-SKIP-CHECKSUM-VALIDATION 1"), Value::ok());
        client.run("SET there 1");
        let mut follower = Follower::of_valkey(&server);
        let mut restore = |key: &str, ttl: &str, payload: &[u8], more: &[&str]| {
            let mut call = vec![b"RESTORE".as_slice(), key.as_bytes(), ttl.as_bytes(), payload];
            call.extend(more.iter().map(|word| word.as_bytes()));
            assert_eq!(client.command(&call), Value::ok(), "{key}");
        };
        let old = payload(10, b"\x00\x01v");
        restore("plain", "0", &old, &[]);
        restore("there", "4000000000000", &old, &["absttl", "replace", "idletime", "7"]);
        restore("soon", "100000", &old, &["REPLACE"]);
        restore("newer", "0", &payload(80, b"\x00\x01v"), &[]);
        let at_ms = 4_000_000_000_000_i64;
        let hash =
            [&b"\x16\x03\x01a\x01v"[..], &at_ms.to_le_bytes(), b"\x01b\x01w", &[0xFF; 8], b"\x01c\x01x"];
        let hash = [&hash.concat()[..], &at_ms.to_le_bytes()].concat();
        restore("hash", "0", &payload(80, &hash), &[]);
        let flags = |words: &[String]| [&words[..3], &words[4..]].concat().join(" ");
        follower.expect(&["SELECT 0"]);
        assert_eq!(flags(&follower.next()), "RESTORE plain 0");
        assert_eq!(flags(&follower.next()), "RESTORE there 4000000000000 absttl replace idletime 7");
        let soon = flags(&follower.next());
        assert!(soon.starts_with("RESTORE soon ") && soon.ends_with(" REPLACE ABSTTL"), "{soon}");
        let newer = follower.next();
        assert_eq!(flags(&newer), "RESTORE newer 0");
        assert!(newer[3].as_bytes()[3] <= 10, "{newer:?}");
        follower.expect(&["MULTI"]);
        let hash = follower.next();
        assert_eq!(flags(&hash), "RESTORE hash 0");
        assert!(hash[3].as_bytes()[0] == 16, "a listpack: {hash:?}");
        follower.expect(&["HPEXPIREAT hash 4000000000000 FIELDS 2 a c", "EXEC"]);
    }
}

#[test]
fn libraries_are_replicated_by_commands_of_redis() {
    for mode in MODES {
        let server = start(mode, &[]);
        let mut client = server.client();
        let (mut follower, _) = Follower::with_copy(&server);
        let text = "#!lua name=lib\nserver.register_function('f', function() return server.call('PING') end)";
        assert_eq!(client.command(&["FUNCTION", "LOAD", text]).text(), "lib");
        let listed = client.run("FUNCTION LIST WITHCODE");
        assert_eq!(listed.elements().unwrap()[0].get("library_code").unwrap().text(), text);
        follower.expect(&["SELECT 0"]);
        let loaded = follower.next().join(" ");
        assert!(loaded.starts_with("FUNCTION LOAD #!lua name=lib\nlocal server = "), "{loaded}");
        assert!(loaded.ends_with(text.split_once('\n').unwrap().1), "{loaded}");
        assert_eq!(client.run("FCALL f 0").text(), "PONG");
    }
}

#[test]
fn messages_and_debug_replicate_use_the_database_of_the_client() {
    for mode in MODES {
        let server = start(mode, &[]);
        let (mut client, mut other) = (server.client(), server.client());
        let (mut follower, _) = Follower::with_copy(&server);
        client.run("SELECT 9");
        client.run("PUBLISH channel one");
        client.run("SET k 1");
        client.run("PUBLISH channel two");
        other.run("SPUBLISH shard three");
        other.run("PUBLISH channel four");
        client.run("SET k 2");
        follower.expect(&["SELECT 9", "PUBLISH channel one", "SET k 1", "PUBLISH channel two"]);
        follower.expect(&["SELECT 0", "SPUBLISH shard three", "PUBLISH channel four", "SELECT 9", "SET k 2"]);
        assert_eq!(client.run("DEBUG REPLICATE SELECT 3"), Value::ok());
        assert_eq!(client.run("DEBUG REPLICATE SET there 1"), Value::ok());
        client.run("SET k 3");
        follower.expect(&["SELECT 3", "SET there 1", "SELECT 9", "SET k 3"]);
        assert_eq!(client.run("EXISTS there"), Value::Integer(0));
        assert_eq!(client.info_number("master_repl_offset"), follower.position, "all bytes count");
    }
}

#[test]
fn changes_are_replicated_by_the_commands_that_redis_uses() {
    for mode in MODES {
        let server = start(mode, &[]);
        let mut client = server.client();
        let (mut follower, _) = Follower::with_copy(&server);
        for line in ["RPUSH a 1 2 3", "LMOVE a b left right", "BLMOVE b a Right LEFT 0", "BRPOPLPUSH a b 0"] {
            client.run(line);
        }
        follower.expect(&["SELECT 0", "RPUSH a 1 2 3", "LMOVE a b left right", "LMOVE b a Right LEFT"]);
        follower.expect(&["RPOPLPUSH a b"]);
        for (lazy, word) in [("no", "DEL"), ("yes", "UNLINK")] {
            for parameter in ["server-del", "expire"] {
                assert_eq!(client.run(&format!("CONFIG SET lazyfree-lazy-{parameter} {lazy}")), Value::ok());
            }
            for line in ["SADD s 1 2", "SPOP s 2", "SET k 1", "EXPIRE k -1", "SET k 1", "GETEX k PXAT 1"] {
                client.run(line);
            }
            for (made, removed) in [("SADD s 1 2", "s"), ("SET k 1", "k"), ("SET k 1", "k")] {
                follower.expect(&[made, &format!("{word} {removed}")]);
            }
        }
        // A pending entry creates its consumer, which replicas would otherwise not have.
        for line in [
            "XADD x 1-1 f v",
            "XGROUP CREATE x g 0",
            "XREADGROUP GROUP g reader STREAMS x >",
            "XCLAIM x g claimer 0 1-1",
            "XAUTOCLAIM x g other 0 -",
            "XREADGROUP GROUP g late STREAMS x >",
        ] {
            client.run(line);
        }
        follower.expect(&["XADD x 1-1 f v", "XGROUP CREATE x g 0", "MULTI"]);
        let claimed = |follower: &mut Follower, consumer: &str| {
            let words = follower.next().join(" ");
            assert!(words.starts_with(&format!("XCLAIM x g {consumer} 0 1-1 TIME ")), "{words}");
        };
        claimed(&mut follower, "reader");
        follower.expect(&["XGROUP SETID x g 1-1 ENTRIESREAD 1", "EXEC"]);
        claimed(&mut follower, "claimer");
        claimed(&mut follower, "other");
        follower.expect(&["XGROUP CREATECONSUMER x g late"]);
    }
}

#[test]
fn each_new_full_sync_has_the_current_data() {
    for mode in MODES {
        let server = start(mode, &[]);
        let mut client = server.client();
        client.run("SET before 1");
        Follower::with_copy(&server);
        client.run("SET behind 1");
        let mut backup = server.client();
        assert_eq!(backup.run("REPLCONF rdb-only 1"), Value::ok());
        backup.send_command(&["SYNC"]).unwrap();
        let copy = copy(&mut backup);
        assert!(copy.windows(6).any(|part| part == b"behind"), "{}", copy.escape_ascii());
    }
}

#[test]
fn a_client_that_sends_sync_receives_only_later_commands() {
    for mode in MODES {
        let server = start(mode, &[]);
        let mut client = server.client();
        client.run("SET before 1");
        // The state of this replica's full sync is stored for a while, with the stream after it.
        Follower::with_copy(&server);
        client.run("SET meanwhile 1");
        let mut tool = server.client();
        tool.send_command(&["SYNC"]).unwrap();
        let copy = copy(&mut tool);
        assert!(copy.windows(9).any(|part| part == b"meanwhile"), "{}", copy.escape_ascii());
        client.run("SET after 1");
        let mut follower = Follower { client: tool, id: String::new(), position: 0 };
        follower.expect(&["SELECT 0", "SET after 1"]);
    }
}

#[test]
fn replicas_whose_links_break_early_share_one_full_sync() {
    const CUTS: usize = 6;
    for mode in MODES {
        for streams in ["yes", "no"] {
            let server = start(mode, &["--repl-diskless-sync", streams, "--rdbcompression", "no"]);
            let mut client = server.client();
            client.run("DEBUG POPULATE 2000 key 1000");
            for number in 0..CUTS {
                let mut cut = server.client();
                cut.run(&format!("REPLCONF listening-port {} capa eof capa psync2", 8 + number));
                cut.send_command(&["PSYNC", "?", "-1"]).unwrap();
                assert!(line(&mut cut).starts_with("+FULLRESYNC "));
                // Some replicas have received a part of the full sync when their link breaks, others nothing.
                if number % 2 == 0 {
                    cut.read_bytes(100_000).unwrap();
                }
                drop(cut);
                client.run(&format!("SET behind {number}"));
            }
            let (mut follower, copy) = Follower::with_copy(&server);
            assert!(copy.windows(8).any(|part| part == b"key:1999"));
            follower.expect(&["SELECT 0", "SET behind 0"]);
            for number in 1..CUTS {
                follower.expect(&[&format!("SET behind {number}")]);
            }
            let copies = server.log().matches("a full sync starts").count();
            assert_eq!(copies, 1, "{}", server.log());
            assert_eq!(client.info("sync_full"), (CUTS + 1).to_string());
        }
    }
}
