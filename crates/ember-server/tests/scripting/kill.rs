//! Scripts that do not end: what others are told, and how they are ended.

use ember_testkit::{RawClient, Server, Value};

use crate::{PATIENCE, eval, everywhere, wait_until};

/// Begins a call on a connection of its own.
pub(crate) fn begin(server: &Server, words: &[&str]) -> RawClient {
    let mut client = server.client();
    client.set_timeout(PATIENCE).unwrap();
    client.send_command(words).unwrap();
    client
}

pub(crate) fn is_busy(client: &mut RawClient) -> bool {
    client.run("GET key").text().starts_with("BUSY ")
}

/// Ends the script that `client` waits for, from a connection that was there before and from a new one.
fn kill(server: &Server, command: &str) -> Value {
    let mut killer = server.client();
    killer.set_timeout(PATIENCE).unwrap();
    killer.run(command)
}

#[test]
fn a_script_without_an_end_is_ended_by_script_kill() {
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
            wait_until("others are told that the server is busy", || is_busy(client));
            let answer = client.run("GET key").text();
            assert_eq!(
                answer,
                "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE."
            );
            assert_eq!(client.run("PING").text(), answer);
            assert!(kill(server, "FUNCTION KILL").text().starts_with("BUSY "));
            assert_eq!(kill(server, "SCRIPT KILL"), Value::ok(), "{script}");
            let told = running.read_value().unwrap().text();
            assert!(told.starts_with("ERR Script killed by user with SCRIPT KILL..."), "{script}: {told}");
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
        wait_until("others are told that the server is busy", || is_busy(client));
        assert!(kill(server, "SCRIPT KILL").text().starts_with("UNKILLABLE "));
        assert_eq!(running.read_value().unwrap(), Value::Integer(1));
        assert_eq!(client.run("GET written"), Value::from("1"));
    });
}

#[test]
fn a_function_without_an_end_is_ended_by_function_kill() {
    everywhere(&["--busy-reply-threshold", "50"], |server, client| {
        let library =
            "#!lua name=endless\nredis.register_function('endless', function() while true do end end)";
        assert_eq!(client.command(&["FUNCTION", "LOAD", library]), Value::from("endless"));
        let mut running = begin(server, &["FCALL", "endless", "1", "key"]);
        wait_until("others are told that the server is busy", || is_busy(client));
        assert!(client.run("GET key").text().contains("FUNCTION KILL"));
        let stats = kill(server, "FUNCTION STATS");
        let script = stats.get("running_script").unwrap();
        assert_eq!(script.get("name"), Some(Value::from("endless")));
        assert_eq!(script.get("command").unwrap().elements().unwrap().len(), 4);
        assert!(kill(server, "SCRIPT KILL").text().starts_with("BUSY "));
        assert_eq!(kill(server, "FUNCTION KILL"), Value::ok());
        assert!(running.read_value().unwrap().text().contains("Script killed by user"));
    });
}

#[test]
fn a_server_stops_although_a_script_runs() {
    everywhere(&["--busy-reply-threshold", "50"], |server, client| {
        let _running = begin(server, &["EVAL", "redis.call('SET', 'a', 1) while true do end", "0"]);
        wait_until("others are told that the server is busy", || is_busy(client));
        server.signal("TERM");
        wait_until("the connection is closed", || client.is_closed().unwrap_or(true));
    });
}

#[test]
fn a_library_that_does_not_end_is_not_loaded() {
    everywhere(&[], |_, client| {
        let answer = client.command(&["FUNCTION", "LOAD", "#!lua name=slow\nwhile true do end"]);
        assert_eq!(answer.text(), "ERR Error registering functions: ERR FUNCTION LOAD timeout");
    });
}
