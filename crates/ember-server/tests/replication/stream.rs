//! What a primary tells its replicas, which are bare connections here.

use std::time::{Duration, Instant};

use ember_testkit::{RawClient, Server, Value, find_ember_server, wait_until};

use crate::MODES;

fn start(mode: &[&str], more: &[&str]) -> Server {
    let arguments = ["--enable-debug-command", "yes", "--repl-diskless-sync-delay", "0"];
    Server::builder(find_ember_server()).arguments(mode).arguments(&arguments).arguments(more).start()
}

/// A connection that is a replica.
struct Follower {
    client: RawClient,
    id: String,
    /// The position behind what it has read of the stream.
    position: u64,
}

fn line(client: &mut RawClient) -> String {
    let mut line = Vec::new();
    while !line.ends_with(b"\n") {
        line.extend(client.read_bytes(1).unwrap());
    }
    // Signs of life.
    if line == b"\n" { self::line(client) } else { String::from_utf8_lossy(&line).trim_end().to_owned() }
}

/// A copy in either form.
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
    /// One that gets a copy, which is returned too.
    fn with_copy(server: &Server) -> (Follower, Vec<u8>) {
        let (follower, copy) = Follower::introduced(server, &[]);
        assert!(copy.starts_with(b"REDIS"));
        (follower, copy)
    }

    /// The same of one that knows the expiry of fields.
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
        // Nothing comes before it says that it has loaded the copy.
        follower.acknowledge();
        (follower, copy)
    }

    /// The next command of the stream that changes something.
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
fn the_stream_goes_on_where_the_copy_ends() {
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
        // What is counted is set, whoever runs it.
        assert_eq!(follower.next()[1], "n");
        follower.expect(&["RPUSH l a b", "EXEC", "LPOP l", "DEL n", "PUBLISH channel hello", "MULTI"]);
        assert_eq!(follower.next()[1], "s");
        assert_eq!(follower.next()[1], "s");
        follower.expect(&["EXEC"]);
        assert_eq!(client.info_number("master_repl_offset"), follower.position, "all bytes count");
    }
}

#[test]
fn a_script_chooses_who_gets_what_it_changes() {
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
        // A message goes in front of the record of the script that sends it.
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
fn what_has_expired_is_deleted_key_by_key() {
    for mode in MODES {
        let server = start(mode, &[]);
        let mut client = server.client();
        client.run("DEBUG SET-ACTIVE-EXPIRE 0");
        for key in ["a", "b", "c", "d"] {
            client.run(&format!("SET {key} v PX 1"));
        }
        wait_until("they have expired", || client.run("PTTL a") == Value::Integer(-2));
        let (mut follower, _) = Follower::with_copy(&server);
        client.run("GET b");
        follower.expect(&["SELECT 0", "DEL b"]);
        client.run("SCAN 0 COUNT 100");
        let deleted = [follower.next(), follower.next()];
        assert!(deleted.iter().all(|words| words[0] == "DEL"), "in no transaction: {deleted:?}");
        client.run("SET e v PX 1");
        follower.next();
        wait_until("it is drawn", || {
            client.run("RANDOMKEY") == Value::Null && client.run("DBSIZE") == Value::Integer(0)
        });
        follower.expect(&["DEL e"]);
        client.run("SET e 1");
        client.run("GETDEL e");
        follower.expect(&["SET e 1", "DEL e"]);
    }
}

#[test]
fn a_replica_that_comes_back_goes_on_where_it_was() {
    for mode in MODES {
        let server = start(mode, &[]);
        let mut client = server.client();
        let (mut follower, _) = Follower::with_copy(&server);
        client.run("SET a 1");
        follower.expect(&["SELECT 0", "SET a 1"]);
        let Follower { client: gone, id, position } = follower;
        drop(gone);
        wait_until("it is gone", || client.info_number("connected_slaves") == 0);
        client.run("SET b 2");
        let mut again = server.client();
        again.run("REPLCONF capa psync2");
        again.send_command(&["PSYNC", &id, &(position + 1).to_string()]).unwrap();
        assert_eq!(line(&mut again), format!("+CONTINUE {id}"));
        let mut follower = Follower { client: again, id: id.clone(), position };
        follower.expect(&["SET b 2"]);
        // Neither what is not kept nor another history.
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
fn a_replica_of_the_oldest_kind_gets_a_copy_and_the_stream() {
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
fn clients_wait_until_replicas_have_what_they_have_written() {
    for mode in MODES {
        let server = start(mode, &["--appendonly", "yes"]);
        let mut client = server.client();
        assert_eq!(client.run("WAIT 1 20"), Value::Integer(0), "there is none");
        let (mut follower, _) = Follower::with_copy(&server);
        client.run("SET a 1");
        assert_eq!(client.run("WAIT 1 20"), Value::Integer(0), "it has confirmed nothing");
        client.send(b"SET b 1\r\nWAIT 1 0\r\nWAITAOF 1 1 0\r\n").unwrap();
        follower.expect(&["SELECT 0", "SET a 1", "SET b 1"]);
        assert_eq!(client.read_value().unwrap(), Value::ok());
        follower.acknowledge();
        assert_eq!(client.read_value().unwrap(), Value::Integer(1));
        assert_eq!(client.read_value().unwrap(), Value::Array(vec![Value::Integer(1), Value::Integer(1)]));
        assert_eq!(client.run("WAIT 1 0"), Value::Integer(1), "nothing was written since");
        // Who lies is not believed for what comes later.
        follower.client.send_command(&["REPLCONF", "ACK", "99999999999"]).unwrap();
        wait_until("that is noted", || {
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
fn who_waits_for_a_file_that_is_switched_off_is_told() {
    for mode in MODES {
        let server = start(mode, &["--appendonly", "yes"]);
        let (mut client, mut other) = (server.client(), server.client());
        client.run("SET a 1");
        client.send_command(&["WAITAOF", "1", "1", "0"]).unwrap();
        wait_until("it waits", || other.info("blocked_clients") == "1");
        assert_eq!(other.run("CONFIG SET appendonly no"), Value::ok());
        let told = client.read_value().unwrap().text();
        assert!(told.starts_with("ERR WAITAOF cannot be used when numlocal is set"), "{told}");
    }
}

#[test]
fn writes_are_refused_without_enough_good_replicas() {
    let server = start(MODES[0], &["--min-replicas-to-write", "1", "--min-replicas-max-lag", "10"]);
    let mut client = server.client();
    wait_until("that is noticed", || client.run("SET a 1").is_error());
    let refused = "NOREPLICAS Not enough good replicas to write.";
    assert_eq!(client.run("SET a 1"), Value::Error(refused.into()));
    assert!(!client.run("GET a").is_error());
    let script = ["EVAL", "#!lua\nreturn redis.call('GET', KEYS[1])", "1", "a"];
    assert_eq!(client.command(&script), Value::Error(refused.into()), "it may write, as far as it says");
    let (mut follower, _) = Follower::with_copy(&server);
    follower.acknowledge();
    wait_until("there is one", || client.run("SET a 1") == Value::ok());
    assert_eq!(client.run("CONFIG SET min-replicas-to-write 2"), Value::ok());
    wait_until("one is too few", || client.run("SET a 1").is_error());
}

#[test]
fn a_replica_that_does_not_read_is_dropped_and_takes_no_memory() {
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
fn a_replica_that_loads_none_of_its_copies_gets_the_next_one_later() {
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
            wait_until("it is gone", || server.client().info_number("connected_slaves") == 0);
            answer
        };
        for _ in 0..3 {
            assert!(get_copy("7").starts_with("+FULLRESYNC "));
        }
        let refused = "-NOMASTERLINK This replica does not load its copies: it gets a copy in 10 seconds";
        let answer = get_copy("7");
        assert!(answer == refused || answer == refused.replace("10", "9"), "{answer}");
        assert!(get_copy("8").starts_with("+FULLRESYNC "), "another one");
        assert!(server.log().contains("does not load its copies of the data"), "{}", server.log());
    }
}

#[test]
fn the_time_between_signs_of_life_changes_at_once() {
    let server = start(MODES[0], &["--repl-ping-replica-period", "3600"]);
    let mut client = server.client();
    let (mut follower, _) = Follower::with_copy(&server);
    client.run("SET k 1");
    follower.expect(&["SELECT 0", "SET k 1"]);
    let before = client.info_number("master_repl_offset");
    assert_eq!(client.run("CONFIG SET repl-ping-replica-period 1"), Value::ok());
    wait_until("there is one", || client.info_number("master_repl_offset") > before);
}

#[test]
fn the_backlog_is_freed_when_nobody_comes() {
    let server = start(MODES[0], &["--repl-backlog-ttl", "1"]);
    let mut client = server.client();
    let (follower, _) = Follower::with_copy(&server);
    let id = client.info("master_replid");
    assert_eq!(id, follower.id);
    drop(follower);
    wait_until("it is freed", || client.info_number("repl_backlog_active") == 0);
    assert_ne!(client.info("master_replid"), id, "what comes now is in no stream");
    client.run("SET unseen 1");
    let (mut follower, copy) = Follower::with_copy(&server);
    assert!(copy.windows(6).any(|part| part == b"unseen"));
    client.run("SET seen 1");
    follower.expect(&["SELECT 0", "SET seen 1"]);
}

/// What a copy alone has in it, keys and functions, for one that asks for parts of the data.
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
    assert!(client.is_closed().unwrap(), "there is no stream behind it");
    let has = |part: &[u8]| file.windows(part.len()).any(|bytes| bytes == part);
    (has(b"\x01a\x05value"), has(b"name=library"))
}

#[test]
fn a_copy_alone_is_sent_and_the_connection_closed() {
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
        wait_until("they are gone", || client.info_number("connected_slaves") == 0);
        assert!(!server.log().contains("WARN"), "{}", server.log());
    }
}

#[test]
fn a_copy_that_nobody_waits_for_any_more_is_given_up() {
    for mode in MODES {
        let options = ["--enable-debug-command", "yes", "--rdbcompression", "no", "--save", ""];
        let server = start(mode, &[&options[..], &["--repl-diskless-sync-delay", "0"]].concat());
        let mut client = server.client();
        client.run("DEBUG POPULATE 2000 key 10000");
        // It would take 20 seconds.
        client.run("CONFIG SET rdb-key-save-delay 10000");
        let mut replica = server.client();
        replica.run("REPLCONF listening-port 7 capa eof capa psync2");
        replica.send_command(&["PSYNC", "?", "-1"]).unwrap();
        assert!(line(&mut replica).starts_with("+FULLRESYNC "));
        wait_until("it is made", || client.info("rdb_bgsave_in_progress") == "1");
        drop(replica);
        wait_until("nothing is made any more", || client.info("rdb_bgsave_in_progress") == "0");
        assert!(
            server.log().contains("the copy of the data for replicas is given up after"),
            "{}",
            server.log()
        );
        // Whoever comes next gets one.
        client.run("CONFIG SET rdb-key-save-delay 0");
        Follower::with_copy(&server);
    }
}

#[test]
fn a_stream_goes_on_behind_a_part_of_the_data_too() {
    for mode in MODES {
        let server = start(mode, &[]);
        let mut client = server.client();
        client.run("SET a value");
        // As `redis-cli --replica` does it.
        let mut replica = server.client();
        assert_eq!(replica.run("REPLCONF capa eof"), Value::ok());
        assert_eq!(replica.command(&["REPLCONF", "rdb-filter-only", ""]), Value::ok());
        replica.send_command(&["SYNC"]).unwrap();
        let file = copy(&mut replica);
        assert!(file.starts_with(b"REDIS") && !file.windows(5).any(|part| part == b"value"));
        client.run("SET b 1");
        let mut follower = Follower { client: replica, id: String::new(), position: 0 };
        follower.expect(&["SELECT 0", "SET b 1"]);
        // Another replica gets all of it.
        let (_, whole) = Follower::with_copy(&server);
        assert!(whole.windows(5).any(|part| part == b"value"));
    }
}

/// The first line of a copy for a replica with these abilities, and this port: one that loads no copies waits for the next.
fn head(server: &Server, port: u16, capabilities: &str) -> (RawClient, String) {
    let mut client = server.client();
    assert_eq!(client.run(&format!("REPLCONF listening-port {port} {capabilities}")), Value::ok());
    client.send_command(&["PSYNC", "?", "-1"]).unwrap();
    assert!(line(&mut client).starts_with("+FULLRESYNC "));
    let head = line(&mut client);
    (client, head)
}

#[test]
fn a_copy_is_sent_while_it_is_made() {
    for mode in MODES {
        // A millisecond for each key.
        let server = start(mode, &["--rdb-key-save-delay", "1000", "--rdbcompression", "no"]);
        let mut client = server.client();
        client.run("DEBUG POPULATE 2000 key 1000");
        let (mut replica, head) = head(&server, 1, "capa eof capa psync2");
        let mark = head.strip_prefix("$EOF:").unwrap();
        let mut bytes = replica.read_bytes(200_000).unwrap();
        assert!(bytes.starts_with(b"REDIS0010"));
        assert!(!server.log().contains("a copy of the data for replicas is there"), "{}", server.log());
        assert_eq!(client.info_number("rdb_bgsave_in_progress"), 1, "as in Redis");
        client.run("CONFIG SET rdb-key-save-delay 0");
        client.run("SET behind 1");
        while !bytes.ends_with(mark.as_bytes()) {
            bytes.extend(replica.read_bytes(1).unwrap());
        }
        assert!(server.log().contains("a copy of the data for replicas is there"));
        assert!(bytes.len() > 2_000_000);
        // Until it has loaded that, nothing else comes.
        client.run("SET behind 2");
        assert!(client.run("INFO replication").text().contains("state=send_bulk"));
        wait_until("the copy is made", || client.info_number("rdb_bgsave_in_progress") == 0);
        replica.send_command(&["REPLCONF", "ACK", "0"]).unwrap();
        let mut follower = Follower { client: replica, id: String::new(), position: 0 };
        follower.expect(&["SELECT 0", "SET behind 1", "SET behind 2"]);
        assert!(client.run("INFO replication").text().contains("state=online"));
    }
}

#[test]
fn a_copy_of_known_length_comes_when_it_is_whole() {
    for mode in MODES {
        let server = start(mode, &[]);
        let mut client = server.client();
        client.run("HSET h a 1");
        assert!(head(&server, 2, "capa eof").1.starts_with("$EOF:"));
        assert!(head(&server, 3, "capa psync2").1.starts_with("$1"), "it knows no marks");
        client.run("CONFIG SET repl-diskless-sync no");
        assert!(head(&server, 4, "capa eof").1.starts_with("$1"));
        client.run("CONFIG SET repl-diskless-sync yes");
    }
}

#[test]
fn a_copy_is_in_a_form_that_the_replica_reads() {
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
            // All ask at the same time: only those share a copy who read the same.
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

/// A replica that says this of itself and asks for what is behind a position of a history, and what it is answered.
fn ask(server: &Server, says: &str, id: &str, position: u64) -> (RawClient, String) {
    let mut client = server.client();
    assert_eq!(client.run(&format!("REPLCONF {says} capa eof capa psync2")), Value::ok());
    client.send_command(&["PSYNC", id, &(position + 1).to_string()]).unwrap();
    let answer = line(&mut client);
    (client, answer)
}

#[test]
fn who_does_not_know_a_command_is_not_told_it_and_needs_a_copy() {
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
        let told = "127.0.0.1:7 is gone: it is not told HPEXPIREAT, which Redis 7.4, Valkey 9 and ember know";
        wait_until("the log says why", || server.log().contains(told));
        // What it lacks is there, and would not do.
        let (mut again, answer) = ask(&server, "listening-port 7", &old.id, known_to_all);
        assert!(answer.starts_with("+FULLRESYNC "), "{answer}");
        let position: u64 = answer.rsplit(' ').next().unwrap().parse().unwrap();
        // It is to show that it knows such fields.
        assert!(copy(&mut again).starts_with(b"REDIS0012"));
        let mut again = Follower { client: again, id: old.id.clone(), position };
        again.acknowledge();
        client.run("HPERSIST h FIELDS 1 f");
        again.expect(&["SELECT 0", "HPERSIST h FIELDS 1 f"]);
        again.acknowledge();
        // It has shown it.
        let (client_again, answer) = ask(&server, "listening-port 7", &old.id, again.position);
        assert!(answer.starts_with("+CONTINUE"), "{answer}");
        let mut again = Follower { client: client_again, ..again };
        client.run("HPEXPIREAT h 4000000000001 FIELDS 1 f");
        again.expect(&["HPEXPIREAT h 4000000000001 FIELDS 1 f"]);
        // Valkey says which version it has, and has no vector sets.
        let (mut valkey, answer) = ask(&server, "listening-port 9 version 9.1.2", &old.id, again.position);
        assert!(answer.starts_with("+CONTINUE"), "{answer}");
        client.run("VADD v VALUES 1 1 a");
        valkey.read_bytes(1 << 20).unwrap_err();
        wait_until("the log says why", || server.log().contains("127.0.0.1:9 is gone: it is not told VADD"));
    }
}

#[test]
fn what_a_replica_says_is_checked() {
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

/// A payload of a value that says it is of this version, without a checksum.
fn payload(version: u16, value: &[u8]) -> Vec<u8> {
    [value, &version.to_le_bytes(), &[0; 8]].concat()
}

/// Redis refuses payloads of Valkey, Valkey 9 those of Redis 7.4, and neither says so to its primary.
#[test]
fn what_is_restored_comes_in_words_that_all_replicas_know_with_the_flags_of_the_caller() {
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
fn libraries_come_in_words_of_redis() {
    for mode in MODES {
        let server = start(mode, &[]);
        let mut client = server.client();
        let (mut follower, _) = Follower::with_copy(&server);
        let text = "#!lua name=lib\nserver.register_function('f', function() return server.call('PING') end)";
        assert_eq!(client.command(&["FUNCTION", "LOAD", text]).text(), "lib");
        let listed = client.run("FUNCTION LIST WITHCODE");
        assert_eq!(listed.elements().unwrap()[0].get("library_code").unwrap().text(), text);
        follower.expect(&["SELECT 0"]);
        let told = follower.next().join(" ");
        assert!(told.starts_with("FUNCTION LOAD #!lua name=lib\nlocal server = "), "{told}");
        assert!(told.ends_with(text.split_once('\n').unwrap().1), "{told}");
        assert_eq!(client.run("FCALL f 0").text(), "PONG");
    }
}

#[test]
fn messages_and_what_debug_replicates_come_for_the_database_of_the_client() {
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
fn changes_come_in_the_words_that_redis_has_for_them() {
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
            for (made, gone) in [("SADD s 1 2", "s"), ("SET k 1", "k"), ("SET k 1", "k")] {
                follower.expect(&[made, &format!("{word} {gone}")]);
            }
        }
        // An entry that is pending makes its consumer. Without one it would be unknown to replicas.
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
fn a_copy_for_a_replica_alone_is_of_the_data_of_now() {
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
        // The copy of this replica is kept for a while, and the stream after it.
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
fn replicas_whose_links_break_early_share_one_copy() {
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
                // Some have a part of the copy when their link breaks, and others nothing.
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
            let copies = server.log().matches("a copy of the data for replicas begins").count();
            assert_eq!(copies, 1, "{}", server.log());
            assert_eq!(client.info("sync_full"), (CUTS + 1).to_string());
        }
    }
}
