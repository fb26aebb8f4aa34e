//! MIGRATE: a key exists either on the target or on the source, and no write is lost in between.

use std::io::{BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use ember_testkit::{OnDrop, Random, RawClient, Server, Value, free_port, read_frame, wait_until};

use crate::blocking::{read, shown, wait_for_blocked};
use crate::{MODES, clients, start};

const CONNECTING: &str = "(error) IOERR error or timeout connecting to the client";
const READING: &str = "(error) IOERR error or timeout reading to target instance";
const WRITING: &str = "(error) IOERR error or timeout writing to target instance";

/// A long timeout for a step of a transfer.
const TIMEOUT_MS: u32 = 60_000;

/// A simulated target of MIGRATE, which sends the replies that the test determines, when the test requests them.
struct Target {
    port: u16,
    /// The received requests, unchanged.
    requests: Receiver<Vec<u8>>,
    /// Replies to be sent; `None` closes the connection.
    answers: Sender<Option<Vec<u8>>>,
    thread: JoinHandle<()>,
}

impl Target {
    /// Starts a target that serves one connection.
    fn new() -> Target {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (seen, requests) = channel();
        let (answers, to_send) = channel();
        let thread = thread::spawn(move || {
            let Ok((stream, _)) = listener.accept() else { return };
            drop(listener);
            serve(stream, &seen, &to_send);
        });
        Target { port, requests, answers, thread }
    }

    fn answer(&self, bytes: &[u8]) {
        self.answers.send(Some(bytes.to_vec())).unwrap();
    }

    /// Returns the command name and the key of the next request.
    fn next(&self) -> (String, String) {
        let request = self.requests.recv().unwrap();
        let text = String::from_utf8_lossy(&request).into_owned();
        let mut lines = text.split("\r\n");
        (lines.nth(2).unwrap().to_owned(), lines.nth(1).unwrap().to_owned())
    }

    /// Reads the requests of a new connection up to the request with a key; returns the key.
    fn take_key(&self) -> String {
        assert_eq!(self.next().0, "SELECT");
        self.answer(b"+OK\r\n");
        let (name, key) = self.next();
        assert_eq!(name, "RESTORE");
        key
    }

    fn end(self) {
        drop(self.answers);
        self.thread.join().unwrap();
    }
}

fn serve(stream: TcpStream, seen: &Sender<Vec<u8>>, to_send: &Receiver<Option<Vec<u8>>>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let seen = seen.clone();
    let reading = thread::spawn(move || {
        let mut request = Vec::new();
        while read_frame(&mut reader, &mut request).is_ok() {
            // The test may have ended already.
            let _ = seen.send(std::mem::take(&mut request));
        }
    });
    while let Ok(Some(bytes)) = to_send.recv() {
        // The client may have disconnected.
        let _ = (&stream).write_all(&bytes);
    }
    let _ = stream.shutdown(std::net::Shutdown::Both);
    reading.join().unwrap();
}

/// Returns a value whose payload has about `length` bytes: its bytes repeat only at distances beyond the window of the
/// compression.
fn incompressible(length: usize) -> Vec<u8> {
    let mut bytes = Random::new(1).bytes(64 * 1024).repeat(length.div_ceil(64 * 1024));
    bytes.truncate(length);
    bytes
}

fn migrate(port: u16, key: &str, rest: &str) -> String {
    format!("MIGRATE 127.0.0.1 {port} {key} 0 {TIMEOUT_MS}{rest}")
}

/// Runs a MIGRATE with an empty key argument and returns its reply.
fn migrate_keys(client: &mut RawClient, port: u16, rest: &str) -> String {
    let mut words = vec!["MIGRATE".to_owned(), "127.0.0.1".to_owned(), port.to_string(), String::new()];
    words.extend(["0".to_owned(), TIMEOUT_MS.to_string()]);
    words.extend(rest.split(' ').map(str::to_owned));
    shown(&client.command(&words))
}

fn ask(client: &mut RawClient, line: &str) -> String {
    shown(&client.run(line))
}

#[test]
fn keys_move_with_their_values_and_expiries() {
    for mode in MODES {
        let (here, there) = (start(mode), start(mode));
        let port = there.port();
        for mut client in clients(&here) {
            let mut target = there.client();
            for line in [
                "FLUSHALL",
                "SET s text EX 1000",
                "RPUSH l a b c",
                "ZADD z 1.5 m",
                "HSET h f v",
                "SADD t 1 2 3",
            ] {
                client.run(line);
            }
            client.command(&[&b"SET"[..], b"big", &incompressible(20_000_000)]);
            target.run("FLUSHALL");
            for key in ["s", "l", "z", "h", "t", "big"] {
                let value = client.run(&format!("DUMP {key}"));
                assert_eq!(ask(&mut client, &migrate(port, key, "")), "OK", "{mode:?} {key}");
                assert_eq!(ask(&mut client, &format!("EXISTS {key}")), "(integer) 0");
                assert_eq!(target.run(&format!("DUMP {key}")), value, "{key}");
            }
            let ttl = target.run("TTL s").integer().unwrap();
            assert!((900..=1000).contains(&ttl), "{ttl}");
            assert_eq!(ask(&mut target, "TTL l"), "(integer) -1");
            assert_eq!(ask(&mut client, &migrate(port, "s", "")), "NOKEY");
            // Migrates a key to another database.
            client.run("SELECT 3");
            client.run("SET k 3");
            assert_eq!(ask(&mut client, &format!("MIGRATE localhost {port} k 7 5000")), "OK");
            target.run("SELECT 7");
            assert_eq!(ask(&mut target, "GET k"), "\"3\"");
            assert_eq!(ask(&mut client, "DBSIZE"), "(integer) 0");
        }
        // Connections are cached for some seconds, one to each host. On a busy machine, those of the calls above may have
        // been closed by now.
        let (mut client, mut target) = (here.client(), there.client());
        target.run("FLUSHALL");
        for (host, database) in [("127.0.0.1", 0), ("localhost", 1)] {
            client.run("SET k 1");
            let line = format!("MIGRATE {host} {port} k {database} {TIMEOUT_MS}");
            assert_eq!(ask(&mut client, &line), "OK", "{mode:?}");
        }
        assert_eq!(client.info_number("migrate_cached_sockets"), 2, "{mode:?}");
    }
}

#[test]
fn several_keys_move_with_one_call() {
    for mode in MODES {
        let (here, there) = (start(mode), start(mode));
        let (mut client, mut target) = (here.client(), there.client());
        let port = there.port();
        client.run("MSET a 1 b 2 c 3 KEYS 4");
        assert_eq!(migrate_keys(&mut client, port, "KEYS none none2"), "NOKEY");
        assert_eq!(migrate_keys(&mut client, port, "KEYS a none b KEYS"), "OK");
        assert_eq!(ask(&mut client, "KEYS *"), "1) \"c\"");
        assert_eq!(ask(&mut target, "MGET a b KEYS"), "1) \"1\"\n2) \"2\"\n3) \"4\"");
        // Exactly the keys that the target refuses remain on the source.
        client.run("MSET a 5 d 6");
        let busy = "(error) ERR Target instance replied with error: BUSYKEY Target key name already exists.";
        assert_eq!(migrate_keys(&mut client, port, "KEYS c a d"), busy);
        assert_eq!(ask(&mut client, "KEYS *"), "1) \"a\"");
        assert_eq!(ask(&mut target, "MGET a c d"), "1) \"1\"\n2) \"3\"\n3) \"6\"");
        assert_eq!(ask(&mut client, &migrate(port, "a", " COPY REPLACE")), "OK");
        assert_eq!(ask(&mut client, "GET a"), "\"5\"");
        assert_eq!(ask(&mut target, "GET a"), "\"5\"");
        assert_eq!(migrate_keys(&mut client, port, "replace keys a a"), "OK", "twice is once");
        assert_eq!(ask(&mut client, "DBSIZE"), "(integer) 0");
    }
}

#[test]
fn errors_equal_those_of_redis() {
    let server = start(MODES[0]);
    let mut client = server.client();
    client.run("SET k v");
    let port = free_port();
    let syntax = "(error) ERR syntax error";
    let integer = "(error) ERR value is not an integer or out of range";
    let both = "(error) ERR When using MIGRATE KEYS option, the key argument must be set to the empty string";
    for (line, answer) in [
        ("MIGRATE h 1 k 0", "(error) ERR wrong number of arguments for 'migrate' command"),
        ("MIGRATE h 1 k 0 1 what", syntax),
        ("MIGRATE h 1 k 0 1 AUTH", syntax),
        ("MIGRATE h 1 k 0 1 AUTH2 u", syntax),
        ("MIGRATE h 1 k x 1", integer),
        ("MIGRATE h 1 k 0 x", integer),
        ("MIGRATE h 1 k 0 1 KEYS a", both),
        ("MIGRATE 127.0.0.1 port none 0 1", "NOKEY"),
        ("MIGRATE 127.0.0.1 port k 0 1000", WRITING),
        (&format!("MIGRATE 127.0.0.1 {port} k 0 1000"), WRITING),
        ("MIGRATE no..host 1 k 0 1000", CONNECTING),
    ] {
        assert_eq!(ask(&mut client, line), answer, "{line}");
    }
    assert_eq!(ask(&mut client, "COMMAND GETKEYS MIGRATE h 1 k 0 1 COPY AUTH keys"), "1) \"k\"");
    let keys = client.command(&["COMMAND", "GETKEYS", "MIGRATE", "h", "1", "", "0", "1", "KEYS", "a", "b"]);
    assert_eq!(shown(&keys), "1) \"a\"\n2) \"b\"");
    assert_eq!(ask(&mut client, "GET k"), "\"v\"");
}

#[test]
fn the_target_checks_the_rights_of_the_sender() {
    for mode in MODES {
        let there =
            Server::start(env!("CARGO_BIN_EXE_ember-server"), &[mode, &["--requirepass", "secret"]].concat());
        let mut target = there.client();
        assert_eq!(ask(&mut target, "AUTH secret"), "OK");
        assert_eq!(ask(&mut target, "ACL SETUSER mover on >hush ~* +@all"), "OK");
        let here = start(mode);
        let mut client = here.client();
        let port = there.port();
        client.run("MSET a 1 b 2");
        let prefix = "(error) ERR Target instance replied with error: ";
        let wrong = format!("{prefix}WRONGPASS invalid username-password pair or user is disabled.");
        assert_eq!(
            ask(&mut client, &migrate(port, "a", "")),
            format!("{prefix}NOAUTH Authentication required.")
        );
        assert_eq!(ask(&mut client, &migrate(port, "a", " AUTH wrong")), wrong);
        assert_eq!(ask(&mut client, &migrate(port, "a", " AUTH2 mover secret")), wrong);
        assert_eq!(ask(&mut client, &migrate(port, "a", " AUTH secret")), "OK");
        // A cached connection is used only for calls with the correct password.
        let unknown = ask(&mut client, &migrate(port, "b", ""));
        assert_eq!(unknown, format!("{prefix}NOAUTH Authentication required."));
        assert_eq!(ask(&mut client, &migrate(port, "b", " AUTH2 mover hush")), "OK");
        assert_eq!(ask(&mut target, "MGET a b"), "1) \"1\"\n2) \"2\"");
        // A cached connection is not used after the password has changed.
        client.run("SET b 4");
        assert_eq!(ask(&mut target, "ACL SETUSER mover resetpass >louder"), "OK");
        assert_eq!(ask(&mut client, &migrate(port, "b", " REPLACE AUTH2 mover hush")), wrong);
        assert_eq!(ask(&mut client, &migrate(port, "b", " REPLACE AUTH2 mover louder")), "OK");
        let outside = format!("{prefix}ERR DB index is out of range");
        client.run("SET c 3");
        assert_eq!(ask(&mut client, &format!("MIGRATE 127.0.0.1 {port} c 99 5000 AUTH secret")), outside);
        assert_eq!(ask(&mut client, "GET c"), "\"3\"");
        assert_eq!(ask(&mut target, "EXISTS c"), "(integer) 0");
    }
}

#[test]
fn transactions_and_scripts_migrate_keys_too() {
    for mode in MODES {
        let (here, there) = (start(mode), start(mode));
        let (mut client, mut target) = (here.client(), there.client());
        let port = there.port();
        client.run("MULTI");
        for line in ["SET a 1", &migrate(port, "a", ""), "EXISTS a", &migrate(port, "a", "")] {
            assert_eq!(ask(&mut client, line), "QUEUED");
        }
        assert_eq!(ask(&mut client, "EXEC"), "1) OK\n2) OK\n3) (integer) 0\n4) NOKEY");
        let script = "redis.call('SET', KEYS[1], 'x'); \
                      local r = redis.call('MIGRATE', '127.0.0.1', ARGV[1], KEYS[1], 0, 60000, 'REPLACE'); \
                      return {r, redis.call('EXISTS', KEYS[1])}";
        let reply = client.command(&["EVAL", script, "1", "a", &port.to_string()]);
        assert_eq!(shown(&reply), "1) OK\n2) (integer) 0", "{mode:?}");
        assert_eq!(ask(&mut target, "GET a"), "\"x\"");
        // If the target returns an error, the key remains on the source.
        client.run("SET a 2");
        let script = "return redis.pcall('MIGRATE', '127.0.0.1', ARGV[1], KEYS[1], 0, 60000)";
        let reply = client.command(&["EVAL", script, "1", "a", &port.to_string()]);
        assert!(shown(&reply).contains("BUSYKEY"), "{reply:?}");
        assert_eq!(ask(&mut client, "GET a"), "\"2\"");
    }
}

#[test]
fn writers_wait_until_the_target_has_the_key_and_readers_do_not() {
    for mode in MODES {
        let server = start(mode);
        let target = Target::new();
        let (mut client, mut other) = (server.client(), server.client());
        client.run("RPUSH list a b");
        client.send(format!("{}\r\nPING\r\n", migrate(target.port, "list", "")).as_bytes()).unwrap();
        assert_eq!(target.take_key(), "list");
        // The worker serves other clients during the transfer; with one shard it is the same worker.
        assert_eq!(ask(&mut other, "LRANGE list 0 -1"), "1) \"a\"\n2) \"b\"");
        assert_eq!(ask(&mut other, "SET other x"), "OK");
        let mut writers: Vec<RawClient> = (0..4).map(|_| server.client()).collect();
        writers[1].run("MULTI");
        writers[1].run("RPUSH list x");
        let script = "EVAL \"return redis.call('RPUSH', KEYS[1], 'x')\" 1 list\r\n";
        let requests = ["RPUSH list x\r\n", "EXEC\r\n", script, "RPOPLPUSH other-list list\r\n"];
        for (writer, request) in writers.iter_mut().zip(requests) {
            writer.send(request.as_bytes()).unwrap();
        }
        wait_for_blocked(&server, 5);
        assert_eq!(ask(&mut other, "LLEN list"), "(integer) 2");
        target.answer(b"+OK\r\n");
        assert_eq!(read(&mut client), "OK", "{mode:?}");
        assert_eq!(read(&mut client), "PONG", "the pipeline continues");
        let answers: Vec<Value> = writers.iter_mut().map(|writer| writer.read_value().unwrap()).collect();
        assert!(answers.iter().all(|answer| !answer.is_error()), "{answers:?}");
        assert_eq!(ask(&mut other, "LLEN list"), "(integer) 3", "the write was run afterwards");
        wait_for_blocked(&server, 0);
        target.end();
    }
}

#[test]
fn a_key_changed_without_being_named_during_the_transfer_stays() {
    for mode in MODES {
        for change in ["EVAL \"return redis.call('APPEND', 'k', 'x')\" 0", "SWAPDB 0 1", "FLUSHALL"] {
            let server = start(mode);
            let target = Target::new();
            let (mut client, mut other) = (server.client(), server.client());
            client.run("SET k v");
            client.send(format!("{}\r\n", migrate(target.port, "k", "")).as_bytes()).unwrap();
            assert_eq!(target.take_key(), "k");
            other.send(format!("{change}\r\n").as_bytes()).unwrap();
            assert!(!other.read_value().unwrap().is_error());
            target.answer(b"+OK\r\n");
            assert!(read(&mut client).contains("was changed while"), "{mode:?} {change}");
            other.run("SELECT 1");
            let kept = (ask(&mut client, "GET k"), ask(&mut other, "GET k"));
            match change {
                "FLUSHALL" => assert_eq!(kept, ("(nil)".to_owned(), "(nil)".to_owned())),
                "SWAPDB 0 1" => assert_eq!(kept.1, "\"v\""),
                _ => assert_eq!(kept.0, "\"vx\""),
            }
            target.end();
        }
    }
}

#[test]
fn a_key_that_expires_during_the_transfer_causes_no_error() {
    for mode in MODES {
        let server = start(mode);
        let target = Target::new();
        let (mut client, mut other) = (server.client(), server.client());
        // Both commands run at the same time of the server's clock, so the key has not expired when it is read.
        let calls = format!("SET k v PX 300\r\n{}\r\n", migrate(target.port, "k", ""));
        client.send(calls.as_bytes()).unwrap();
        assert_eq!(read(&mut client), "OK");
        assert_eq!(target.take_key(), "k");
        wait_until("the key expires", || ask(&mut other, "EXISTS k") == "(integer) 0");
        target.answer(b"+OK\r\n");
        assert_eq!(read(&mut client), "OK", "{mode:?}");
        target.end();
    }
}

#[test]
fn a_failing_target_leaves_the_key_on_the_source() {
    for mode in MODES {
        let server = start(mode);
        let mut client = server.client();
        client.run("SET k v");
        let garbage =
            [&b"HTTP/1.1 400 Bad Request\r\n"[..], b":1\r\n", &[b'+'; 100_000], b"\0\xff\r\n", b"\r\n"];
        for answer in garbage {
            let target = Target::new();
            client.send(format!("{}\r\n", migrate(target.port, "k", "")).as_bytes()).unwrap();
            target.take_key();
            target.answer(answer);
            assert_eq!(read(&mut client), READING, "{mode:?} {answer:?}");
            target.end();
        }
        let target = Target::new();
        client.send(format!("{}\r\n", migrate(target.port, "k", "")).as_bytes()).unwrap();
        target.take_key();
        target.answers.send(None).unwrap();
        assert_eq!(read(&mut client), READING, "{mode:?}: the target closed the connection");
        target.end();
        let target = Target::new();
        client.send(format!("{}\r\n", migrate(target.port, "k", "")).as_bytes()).unwrap();
        target.take_key();
        target.answer(b"-ERR what is \xff this\r\n");
        let refused = client.read_raw().unwrap();
        assert_eq!(refused, b"-ERR Target instance replied with error: ERR what is \xff this\r\n");
        target.end();
        assert_eq!(ask(&mut client, "GET k"), "\"v\"");
    }
}

#[test]
fn waiting_for_a_hanging_target_ends_at_the_timeout() {
    for mode in MODES {
        let server = start(mode);
        let (mut client, mut other) = (server.client(), server.client());
        client.run("SET k v");
        let target = Target::new();
        let begun = Instant::now();
        client.send(format!("MIGRATE 127.0.0.1 {} k 0 300\r\n", target.port).as_bytes()).unwrap();
        target.take_key();
        assert_eq!(ask(&mut other, "PING"), "PONG", "no other client waits");
        assert_eq!(read(&mut client), READING, "{mode:?}");
        assert!(begun.elapsed() >= Duration::from_millis(300));
        assert_eq!(ask(&mut client, "APPEND k x"), "(integer) 2", "the key is released");
        target.end();
        // If the target does not read, the transfer times out once the buffers are full.
        client.command(&[&b"SET"[..], b"k", &incompressible(50_000_000)]);
        let deaf = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = deaf.local_addr().unwrap().port();
        let reading = thread::spawn(move || {
            let (stream, _) = deaf.accept().unwrap();
            read_frame(&mut BufReader::with_capacity(64, &stream), &mut Vec::new()).unwrap();
            (&stream).write_all(b"+OK\r\n").unwrap();
            stream
        });
        let answer = ask(&mut client, &format!("MIGRATE 127.0.0.1 {port} k 0 300"));
        assert_eq!(answer, WRITING, "{mode:?}");
        drop(reading.join().unwrap());
        assert_eq!(ask(&mut client, "STRLEN k"), "(integer) 50000000");
        // A transfer from a server to itself does not block other clients.
        let oneself = format!("MIGRATE 127.0.0.1 {} k 1 200", server.port());
        assert!(ask(&mut client, &oneself).contains("IOERR"), "{mode:?}");
        client.run("MULTI");
        client.run(&oneself);
        assert!(ask(&mut client, "EXEC").contains("IOERR"), "{mode:?}");
        assert_eq!(ask(&mut other, "STRLEN k"), "(integer) 50000000");
    }
}

#[test]
fn a_disconnected_client_does_not_stop_the_transfer() {
    for mode in MODES {
        let server = start(mode);
        let target = Target::new();
        let mut control = server.client();
        control.run("MSET k v l v");
        // A client that has half-closed its connection receives the reply.
        let mut client = server.client();
        client.send(format!("{}\r\n", migrate(target.port, "k", "")).as_bytes()).unwrap();
        client.finish_sending().unwrap();
        assert_eq!(target.take_key(), "k");
        target.answer(b"+OK\r\n");
        assert_eq!(client.read_to_close().unwrap(), b"+OK\r\n", "{mode:?}");
        // A disconnected client receives no reply, but the transfer is completed.
        let mut client = server.client();
        let id = client.run("CLIENT ID").integer().unwrap();
        client.send(format!("{}\r\n", migrate(target.port, "l", "")).as_bytes()).unwrap();
        assert_eq!(target.next().0, "RESTORE", "over the same connection");
        assert_eq!(ask(&mut control, &format!("CLIENT UNBLOCK {id}")), "(integer) 0");
        assert_eq!(ask(&mut control, &format!("CLIENT KILL ID {id}")), "(integer) 1");
        assert!(client.is_closed().unwrap());
        target.answer(b"+OK\r\n");
        wait_until("the key is removed", || ask(&mut control, "EXISTS l") == "(integer) 0");
        assert_eq!(ask(&mut control, "SET l free"), "OK");
        wait_for_blocked(&server, 0);
        target.end();
    }
}

#[test]
fn a_cached_connection_that_was_closed_is_reopened() {
    let (here, there) = (start(MODES[0]), start(MODES[0]));
    let mut client = here.client();
    client.run("MSET a 1 b 2");
    let port = there.port();
    assert_eq!(ask(&mut client, &migrate(port, "a", "")), "OK");
    assert_eq!(there.client().run("CLIENT KILL TYPE normal SKIPME yes"), Value::Integer(1));
    assert_eq!(ask(&mut client, &migrate(port, "b", "")), "OK");
    assert_eq!(ask(&mut there.client(), "MGET a b"), "1) \"1\"\n2) \"2\"");
}

#[test]
fn passwords_appear_in_no_log_and_no_monitor() {
    for mode in MODES {
        let server = start(mode);
        let (mut client, mut monitor) = (server.client(), server.client());
        client.run("CONFIG SET slowlog-log-slower-than 0");
        assert_eq!(ask(&mut monitor, "MONITOR"), "OK");
        client.run("SET k v");
        let port = free_port();
        let calls = [
            format!("MIGRATE 127.0.0.1 {port} none 0 9 AUTH hush-1"),
            format!("MIGRATE 127.0.0.1 {port} k 0 9 AUTH2 hush-2 hush-3 KEYS"),
            format!("MIGRATE 127.0.0.1 {port} k 0 9 AUTH2 hush-4 hush-5"),
            format!("MIGRATE 127.0.0.1 {port} k 0 9 wrong AUTH hush-6"),
        ];
        for call in &calls {
            client.run(call);
        }
        client.run("MULTI");
        client.run(&calls[2]);
        client.run("EXEC");
        client.run("ECHO end");
        let mut seen = String::new();
        while !seen.contains("\"end\"") {
            seen += &read(&mut monitor);
        }
        let log = shown(&client.run("SLOWLOG GET -1"));
        let clients = shown(&client.run("CLIENT LIST"));
        for text in [&seen, &log] {
            assert_eq!(text.matches("(redacted)").count(), 8, "{mode:?}: {text}");
        }
        for text in [&seen, &log, &clients, &server.log()] {
            assert!(!text.contains("hush"), "{mode:?}: {text}");
        }
        client.run("CONFIG SET slowlog-log-slower-than -1");
    }
}

#[test]
fn other_clients_are_notified_of_the_removed_key() {
    for mode in MODES {
        let (here, there) = (start(mode), start(mode));
        let (mut client, mut listener, mut cache) = (here.client(), here.client(), here.client());
        cache.run("HELLO 3");
        client.run("CONFIG SET notify-keyspace-events Kg");
        client.run("SET k v");
        listener.run("SUBSCRIBE __keyspace@0__:k");
        cache.run("CLIENT TRACKING ON");
        cache.run("GET k");
        let mut watching = here.client();
        watching.run("WATCH k");
        assert_eq!(ask(&mut client, &migrate(there.port(), "k", "")), "OK");
        assert!(read(&mut listener).contains("\"del\""), "{mode:?}");
        assert!(shown(&cache.read_value().unwrap()).contains("invalidate"), "{mode:?}");
        watching.run("MULTI");
        watching.run("PING");
        assert_eq!(ask(&mut watching, "EXEC"), "(nil)");
        let stats = client.run("INFO commandstats").text();
        assert!(stats.contains("cmdstat_migrate:calls=1,") && !stats.contains("cmdstat_del:"), "{stats}");
    }
}

#[test]
fn calls_beyond_the_number_of_threads_are_queued() {
    const CALLS: usize = 40;
    for mode in MODES {
        let (here, there) = (start(mode), start(mode));
        let mut callers: Vec<RawClient> = (0..CALLS).map(|_| here.client()).collect();
        for (number, caller) in callers.iter_mut().enumerate() {
            caller.run(&format!("SET k{number} {number}"));
        }
        for (number, caller) in callers.iter_mut().enumerate() {
            let call = migrate(there.port(), &format!("k{number}"), "");
            caller.send(format!("{call}\r\n").as_bytes()).unwrap();
        }
        for caller in &mut callers {
            assert_eq!(read(caller), "OK", "{mode:?}");
        }
        assert_eq!(ask(&mut there.client(), "DBSIZE"), format!("(integer) {CALLS}"));
        assert_eq!(ask(&mut here.client(), "DBSIZE"), "(integer) 0");
    }
}

#[test]
fn no_write_is_lost_while_a_key_moves_repeatedly() {
    const DATABASES: usize = 16;
    for mode in MODES {
        let (here, there) = (start(mode), start(mode));
        let is_over = AtomicBool::new(false);
        let written: i64 = thread::scope(|scope| {
            let is_over = &is_over;
            // The other threads are also stopped when this thread panics.
            let ending = OnDrop(|| is_over.store(true, Ordering::Relaxed));
            let writers: Vec<_> = (0..5)
                .map(|kind| {
                    let mut client = here.client();
                    scope.spawn(move || {
                        let mut written = 0;
                        while !is_over.load(Ordering::Relaxed) {
                            let answer = match kind {
                                0 => client.run("INCR k"),
                                1 => {
                                    client.run("MULTI");
                                    client.run("INCR k");
                                    client.run("EXEC")
                                }
                                // A transaction with exclusive access, during which no other call starts.
                                2 => {
                                    client.run("MULTI");
                                    client.run("DBSIZE");
                                    client.run("INCR k");
                                    client.run("EXEC")
                                }
                                3 => client.command(&[
                                    "EVAL",
                                    "return redis.call(ARGV[1], KEYS[1])",
                                    "1",
                                    "k",
                                    "INCR",
                                ]),
                                _ => {
                                    client.command(&["EVAL", "return redis.call('INCR', KEYS[1])", "1", "k"])
                                }
                            };
                            assert!(!answer.is_error(), "{answer:?}");
                            written += 1;
                        }
                        written
                    })
                })
                .collect();
            let mut mover = here.client();
            for database in 0..DATABASES {
                wait_until("the key exists again", || ask(&mut mover, "EXISTS k") == "(integer) 1");
                let call = format!("MIGRATE 127.0.0.1 {} k {database} {TIMEOUT_MS}", there.port());
                assert_eq!(ask(&mut mover, &call), "OK", "{mode:?}");
            }
            drop(ending);
            writers.into_iter().map(|writer| writer.join().unwrap()).sum()
        });
        let number = |value: Value| value.text().parse::<i64>().unwrap_or(0);
        let mut target = there.client();
        let given: i64 = (0..DATABASES)
            .map(|database| {
                target.run(&format!("SELECT {database}"));
                number(target.run("GET k"))
            })
            .sum();
        assert_eq!(given + number(here.client().run("GET k")), written, "{mode:?}");
    }
}

#[test]
fn restore_asking_equals_restore() {
    let server = start(MODES[1]);
    let mut client = server.client();
    client.run("SET k v");
    let Value::Bulk(payload) = client.run("DUMP k") else { panic!("DUMP answers bytes") };
    let words: [&[u8]; 4] = [b"RESTORE-ASKING", b"other", b"0", &payload];
    assert_eq!(shown(&client.command(&words)), "OK");
    assert_eq!(shown(&client.command(&words)), "(error) BUSYKEY Target key name already exists.");
    assert_eq!(ask(&mut client, "GET other"), "\"v\"");
}
