//! Scripts inside one long call of a function written in C are stopped like others.

use ember_testkit::Value;

use crate::kill::{assert_little_time, begin, cpu_time, is_busy};
use crate::{PATIENCE, everywhere, wait_until};

/// Single calls of functions written in C that would take minutes.
const LONG_CALLS: [&str; 6] = [
    "return string.find(('a'):rep(30000), ('.-'):rep(20) .. 'b')",
    "return string.find(('a'):rep(30000), ('a-'):rep(20) .. 'b')",
    "return string.gsub(('('):rep(3000000), '%b()', '')",
    "while true do pcall(string.rep, '', 2147483647) end",
    "local t = {} for i = 1, 1000000 do t[i] = i end while true do table.insert(t, 1, 1) table.remove(t, 1) end",
    "local t = {} for i = 1, 1000000 do t[i] = i % 1000 end while true do table.sort(t) t[1] = 1e9 end",
];

#[test]
fn a_script_in_a_long_call_of_one_function_is_ended_at_once() {
    everywhere(&["--busy-reply-threshold", "50"], |server, client| {
        let library =
            format!("#!lua name=long\nredis.register_function('long', function() {} end)", LONG_CALLS[0]);
        assert_eq!(client.command(&["FUNCTION", "LOAD", &library]), Value::from("long"));
        let scripts = LONG_CALLS.map(|script| (["EVAL", script, "0"], "SCRIPT KILL"));
        for (call, command) in scripts.into_iter().chain([(["FCALL", "long", "0"], "FUNCTION KILL")]) {
            let mut running = begin(server, &call);
            wait_until("other clients receive BUSY", || is_busy(client));
            let mut killer = server.client();
            killer.set_timeout(PATIENCE).unwrap();
            let before = cpu_time(server);
            assert_eq!(killer.run(command), Value::ok(), "{call:?}");
            let reply = running.read_value().unwrap().text();
            assert!(reply.contains("Script killed by user"), "{call:?}: {reply}");
            assert_little_time(server, before, &format!("{call:?}"));
            wait_until("the server is free again", || !is_busy(client));
        }
    });
}

#[test]
fn a_server_stops_while_a_script_is_in_a_long_call_of_one_function() {
    for command in [None, Some("SHUTDOWN NOSAVE")] {
        everywhere(&["--busy-reply-threshold", "50"], |server, client| {
            let mut stopper = server.client();
            let _running = begin(server, &["EVAL", LONG_CALLS[0], "0"]);
            wait_until("other clients receive BUSY", || is_busy(client));
            match command {
                Some(command) => stopper.send(format!("{command}\r\n").as_bytes()).unwrap(),
                None => server.signal("TERM"),
            }
            // The call alone would take longer than the client's timeout.
            assert!(client.is_closed().unwrap(), "{command:?}");
        });
    }
}
