//! Endless scripts: the replies to other clients, and stopping the scripts.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use ember_testkit::{RawClient, Server, Value};

use crate::{MODES, PATIENCE, eval, everywhere, program, wait_until};

/// Begins a call on a separate connection.
pub(crate) fn begin(server: &Server, words: &[&str]) -> RawClient {
    let mut client = server.client();
    client.set_timeout(PATIENCE).unwrap();
    client.send_command(words).unwrap();
    client
}

pub(crate) fn is_busy(client: &mut RawClient) -> bool {
    client.run("GET key").text().starts_with("BUSY ")
}

/// Kills the running script from a new connection with `command`; returns the reply.
fn kill(server: &Server, command: &str) -> Value {
    let mut killer = server.client();
    killer.set_timeout(PATIENCE).unwrap();
    killer.run(command)
}

#[test]
fn a_slow_script_is_logged_once_with_its_name() {
    everywhere(&["--busy-reply-threshold", "50"], |server, client| {
        let mut running = begin(server, &["EVAL", "while true do end", "0"]);
        wait_until("other clients receive BUSY", || is_busy(client));
        // The SHA-1 digest of the script.
        let name = "694a5fe1ddb97a4c6a1bf299d9537c7d3d0f84e7";
        wait_until("the log has it", || {
            server.log().contains("Slow script detected: still in execution after")
        });
        assert_eq!(kill(server, "SCRIPT KILL"), Value::ok());
        running.read_value().unwrap();
        let log = server.log();
        assert_eq!(log.matches("Slow script detected").count(), 1, "{log}");
        assert!(log.contains(&format!("SCRIPT KILL ends it. Script name is: {name}")), "{log}");
    });
}

#[test]
fn an_endless_script_is_ended_by_script_kill() {
    everywhere(&["--busy-reply-threshold", "50"], |server, client| {
        for script in [
            "while true do end",
            "while true do pcall(function() while true do end end) end",
            "while true do xpcall(function() while true do end end, function() while true do end end) end",
            "while true do local c = coroutine.wrap(function() while true do end end) pcall(c) end",
            "local function f() pcall(f) return f() end while true do pcall(f) end",
            "while true do redis.call('GET', 'key') end",
            "while true do pcall(redis.call, 'nothing') end",
            "local t = setmetatable({}, {__index = function(t, k) while true do end end}) return t.x",
        ] {
            let mut running = begin(server, &["EVAL", script, "0"]);
            wait_until("other clients receive BUSY", || is_busy(client));
            let answer = client.run("GET key").text();
            assert_eq!(
                answer,
                "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE."
            );
            assert_eq!(client.run("PING").text(), answer);
            assert!(kill(server, "FUNCTION KILL").text().starts_with("BUSY "));
            assert_eq!(kill(server, "SCRIPT KILL"), Value::ok(), "{script}");
            let reply = running.read_value().unwrap().text();
            assert!(reply.starts_with("ERR Script killed by user with SCRIPT KILL..."), "{script}: {reply}");
            assert_eq!(running.run("PING").text(), "PONG");
            wait_until("the server is free again", || !is_busy(client));
            assert_eq!(eval(client, "return 'alive'"), Value::from("alive"));
        }
        assert!(client.run("SCRIPT KILL").text().starts_with("NOTBUSY "));
    });
}

#[test]
fn a_script_that_has_written_cannot_be_killed() {
    everywhere(&["--busy-reply-threshold", "50"], |server, client| {
        let script = "redis.call('SET', 'written', 1) local begun = os.clock() while os.clock() - begun < 1 do end return 1";
        let mut running = begin(server, &["EVAL", script, "0"]);
        wait_until("other clients receive BUSY", || is_busy(client));
        assert!(kill(server, "SCRIPT KILL").text().starts_with("UNKILLABLE "));
        assert_eq!(running.read_value().unwrap(), Value::Integer(1));
        assert_eq!(client.run("GET written"), Value::from("1"));
    });
}

#[test]
fn an_endless_function_is_ended_by_function_kill() {
    everywhere(&["--busy-reply-threshold", "50"], |server, client| {
        let library =
            "#!lua name=endless\nredis.register_function('endless', function() while true do end end)";
        assert_eq!(client.command(&["FUNCTION", "LOAD", library]), Value::from("endless"));
        let mut running = begin(server, &["FCALL", "endless", "1", "key"]);
        wait_until("other clients receive BUSY", || is_busy(client));
        assert!(client.run("GET key").text().contains("FUNCTION KILL"));
        // A script publishes its call at its first check whether to continue.
        let mut script = Value::Null;
        wait_until("the call is published", || {
            script = kill(server, "FUNCTION STATS").get("running_script").unwrap();
            script != Value::Null
        });
        assert_eq!(script.get("name"), Some(Value::from("endless")));
        assert_eq!(script.get("command").unwrap().elements().unwrap().len(), 4);
        assert!(kill(server, "SCRIPT KILL").text().starts_with("BUSY "));
        assert_eq!(kill(server, "FUNCTION KILL"), Value::ok());
        assert!(running.read_value().unwrap().text().contains("Script killed by user"));
    });
}

#[test]
fn a_server_stops_while_a_script_runs() {
    everywhere(&["--busy-reply-threshold", "50"], |server, client| {
        let _running = begin(server, &["EVAL", "redis.call('SET', 'a', 1) while true do end", "0"]);
        wait_until("other clients receive BUSY", || is_busy(client));
        server.signal("TERM");
        assert!(client.is_closed().unwrap());
    });
}

#[test]
fn an_endless_library_is_not_loaded() {
    everywhere(&[], |_, client| {
        let answer = client.command(&["FUNCTION", "LOAD", "#!lua name=slow\nwhile true do end"]);
        assert_eq!(answer.text(), "ERR Error registering functions: ERR FUNCTION LOAD timeout");
    });
}

/// The maximum CPU time of the server until a killed script ends; it takes a few milliseconds, or a hundred where a hook
/// is called rarely. Unlike the time of a clock, it does not depend on the other load of the machine.
const CPU_TIME_MAX: Duration = Duration::from_secs(1);

/// Returns the CPU time that the server has used so far.
pub(crate) fn cpu_time(server: &Server) -> Duration {
    let usage = server.usage().unwrap();
    usage.user_time + usage.system_time
}

/// Asserts that the server has used at most [`CPU_TIME_MAX`] since [`cpu_time`] returned `before`.
pub(crate) fn assert_little_time(server: &Server, before: Duration, script: &str) {
    let used = cpu_time(server) - before;
    assert!(used < CPU_TIME_MAX, "{script} continued for {used:?} of CPU time");
}

/// Scripts inside calls of functions written in Rust: one long call, or many.
const INSIDE_CALLS: [&str; 14] = [
    "local t = {} for i = 1, 40 do t = {t, t} end return t",
    "local t = {} for i = 1, 40 do t = {t, t} end return {map = {t}}",
    "local t = {} for i = 1, 40 do t = {t, t} end while true do pcall(cjson.encode, t) end",
    "local t = {} for i = 1, 14 do t = {t, t, t, t, t, t, t, t} end while true do pcall(cmsgpack.pack, t) end",
    "local s = string.rep('\\1', 5000000) while true do cjson.encode(s) end",
    "local s = '[' .. ('1,'):rep(200000) .. '1]' while true do cjson.decode(s) end",
    "local s = (' '):rep(5000000) .. '1' while true do cjson.decode(s) end",
    "local s = '\"' .. ('x'):rep(5000000) .. '\"' while true do cjson.decode(s) end",
    "local t = {} for i = 1, 200000 do t[i] = i end t = cmsgpack.pack(t) while true do cmsgpack.unpack(t) end",
    "local s = ('x'):rep(5000000) while true do struct.pack(s) end",
    "local s = ('x'):rep(20000000) while true do redis.sha1hex(s) end",
    "while true do redis.call('LRANGE', 'list', 0, -1) end",
    "while true do string.rep('x', 100000000) end",
    "local s = ('x'):rep(20000000) while true do local t = s .. s .. 'y' end",
];

#[test]
fn a_script_inside_long_calls_is_ended_by_script_kill() {
    everywhere(&["--busy-reply-threshold", "50"], |server, client| {
        let elements: Vec<String> = (0..20_000).map(|number| number.to_string()).collect();
        let push: Vec<&str> =
            ["RPUSH", "list"].into_iter().chain(elements.iter().map(String::as_str)).collect();
        client.command(&push);
        for script in INSIDE_CALLS {
            let mut running = begin(server, &["EVAL", script, "0"]);
            wait_until("other clients receive BUSY", || is_busy(client));
            let before = cpu_time(server);
            assert_eq!(kill(server, "SCRIPT KILL"), Value::ok(), "{script}");
            let reply = running.read_value().unwrap().text();
            assert!(reply.starts_with("ERR Script killed by user with SCRIPT KILL..."), "{script}: {reply}");
            assert_little_time(server, before, script);
            assert_eq!(eval(client, "return 'alive'"), Value::from("alive"));
        }
    });
}

#[test]
fn waiting_clients_get_busy_without_help_from_the_script() {
    let server =
        Server::builder(program()).arguments(&["--shards", "2", "--busy-reply-threshold", "30"]).start();
    let mut client = server.client();
    let elements: Vec<String> =
        (0..500_000_u64).map(|number| (number * 7919 % 500_000).to_string()).collect();
    let push: Vec<&str> = ["RPUSH", "list"].into_iter().chain(elements.iter().map(String::as_str)).collect();
    assert_eq!(client.command(&push).integer(), Some(500_000));
    // The script is not interrupted during the call.
    let sort = "return #redis.call('SORT', 'list', 'ALPHA', 'LIMIT', '0', '1')";
    let mut running = begin(&server, &["EVAL", sort, "0"]);
    let (is_over, got_busy) = (AtomicBool::new(false), AtomicBool::new(false));
    let (is_over, got_busy) = (&is_over, &got_busy);
    thread::scope(|scope| {
        for _ in 0..8 {
            let mut other = server.client();
            other.set_timeout(PATIENCE).unwrap();
            scope.spawn(move || {
                while !is_over.load(Ordering::Relaxed) && !got_busy.load(Ordering::Relaxed) {
                    let is_refused = is_busy(&mut other) && !is_over.load(Ordering::Relaxed);
                    got_busy.fetch_or(is_refused, Ordering::Relaxed);
                }
            });
        }
        assert!(!running.read_value().unwrap().is_error());
        is_over.store(true, Ordering::Relaxed);
    });
    assert!(got_busy.load(Ordering::Relaxed), "no client received BUSY");
}

#[test]
fn of_two_scripts_with_exclusive_access_one_gets_busy() {
    for concurrent in ["yes", "no"] {
        let server = Server::builder(program())
            .arguments(&["--shards", "3", "--concurrent", concurrent, "--busy-reply-threshold", "300"])
            .start();
        for _ in 0..4 {
            // While this script runs, the others are queued.
            let mut first = begin(&server, &["EVAL", "for i = 1, 3e6 do end return 1", "0"]);
            let rest: Vec<RawClient> =
                (0..6).map(|_| begin(&server, &["EVAL", "while true do end", "0"])).collect();
            // The script runs first unless one of the others was faster.
            let first = first.read_value().unwrap();
            assert!(first == Value::Integer(1) || first.text().starts_with("BUSY "), "{first:?}");
            let (sender, receiver) = mpsc::channel();
            thread::scope(|scope| {
                for mut client in rest {
                    let sender = sender.clone();
                    scope.spawn(move || sender.send(client.read_value().unwrap().text()).unwrap());
                }
                for _ in 0..5 {
                    let answer = receiver.recv().unwrap();
                    assert!(answer.starts_with("BUSY "), "{answer}");
                }
                // On a busy machine the last script may not have started yet.
                wait_until("the last script is killed", || kill(&server, "SCRIPT KILL") == Value::ok());
                assert!(receiver.recv().unwrap().contains("killed by user"));
            });
        }
    }
}

#[test]
fn timeouts_end_and_connections_close_while_a_script_is_busy() {
    let server =
        Server::builder(program()).arguments(&["--shards", "2", "--busy-reply-threshold", "50"]).start();
    let mut client = server.client();
    client.set_timeout(PATIENCE).unwrap();
    let mut blocked: Vec<RawClient> = (0..4).map(|_| begin(&server, &["BLPOP", "nothing", "0.3"])).collect();
    let mut watching: Vec<RawClient> = (0..4).map(|_| server.client()).collect();
    for other in &mut watching {
        assert_eq!(other.run("WATCH key"), Value::ok());
        assert_eq!(other.run("MULTI"), Value::ok());
    }
    let mut running = begin(&server, &["EVAL", "while true do redis.call('GET', 'key') end", "0"]);
    wait_until("other clients receive BUSY", || is_busy(&mut client));
    // Clients of the worker that runs the script receive their replies, too.
    let (sender, receiver) = mpsc::channel();
    thread::scope(|scope| {
        for client in &mut blocked {
            let sender = sender.clone();
            scope.spawn(move || sender.send(client.read_value().unwrap()).unwrap());
        }
        assert_eq!(receiver.recv().unwrap(), Value::Null);
        for other in &mut watching[..2] {
            assert!(other.run("EXEC").text().starts_with("EXECABORT "));
        }
        drop(watching);
        assert!((0..8).all(|_| is_busy(&mut server.client())));
        assert_eq!(kill(&server, "SCRIPT KILL"), Value::ok());
    });
    assert!(running.read_value().unwrap().text().contains("killed by user"));
}

/// Begins a script, and waits until it runs.
fn begin_logged(server: &Server, script: &str) -> RawClient {
    let running = begin(server, &["EVAL", &format!("redis.log(redis.LOG_WARNING, 'it runs') {script}"), "0"]);
    wait_until("the script runs", || server.log().contains("it runs"));
    running
}

#[test]
fn a_signal_ends_a_script_that_has_not_written() {
    for save in [&["--save", ""][..], &["--save", "3600 1"]] {
        for mode in MODES {
            let mut server = Server::builder(program()).arguments(mode).arguments(save).start();
            let _running = begin_logged(&server, "while true do pcall(function() while true do end end) end");
            // The script is endless.
            server.signal("TERM");
            assert!(server.wait().success(), "{mode:?}");
        }
    }
}

#[test]
fn a_shutdown_with_save_waits_for_a_script_that_has_written() {
    for mode in MODES {
        let mut server = Server::builder(program()).arguments(mode).arguments(&["--save", "3600 1"]).start();
        let script = "redis.call('SET', 'first', 1) redis.log(redis.LOG_WARNING, 'it has written') \
                      local begun = os.clock() while os.clock() - begun < 0.5 do end redis.call('SET', 'last', 1)";
        let _running = begin_logged(&server, script);
        wait_until("the script has written", || server.log().contains("it has written"));
        server.signal("TERM");
        assert!(server.wait().success(), "{mode:?}");
        let server = Server::builder(program()).arguments(mode).directory(server.directory()).start();
        let mut client = server.client();
        assert_eq!(client.run("MGET first last"), Value::Array(vec![Value::from("1"), Value::from("1")]));
    }
}
