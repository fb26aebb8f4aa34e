//! An endless script: other clients receive BUSY, new connections are served, and the script can be killed.

use std::time::{Duration, Instant};

use ember_testkit::{RawClient, Server, Value};

use crate::{MODES, start};

const ENDLESS: &str = "EVAL \"while true do pcall(function() while true do end end) end\" 0";

/// Returns a connection whose script runs for longer than `busy-reply-threshold`.
fn busy(server: &Server, script: &str) -> RawClient {
    let mut control = server.client();
    assert_eq!(control.run("CONFIG SET busy-reply-threshold 30"), Value::ok());
    let mut running = server.client();
    running.send(format!("{script}\r\n").as_bytes()).unwrap();
    let begun = Instant::now();
    loop {
        // Only new connections are certain to receive replies: an old one may belong to the busy worker.
        let mut other = server.client();
        other.set_timeout(Duration::from_secs(2)).unwrap();
        other.send(b"GET a\r\n").unwrap();
        if let Ok(Value::Error(error)) = other.read_value() {
            let expected =
                "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.";
            assert_eq!(String::from_utf8(error).unwrap(), expected);
            return running;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "no client receives BUSY");
    }
}

#[test]
fn an_endless_script_is_killed_from_a_new_connection_in_every_mode() {
    for mode in MODES {
        let server = start(mode);
        let mut running = busy(&server, ENDLESS);
        let mut other = server.client();
        assert!(other.run("PING").is_error() && other.run("CONFIG GET port").is_error(), "{mode:?}");
        assert_eq!(other.run("SCRIPT KILL"), Value::ok(), "{mode:?}");
        let error = running.read_value().unwrap().text();
        assert!(error.starts_with("ERR Error running script") || error.contains("killed by user"), "{error}");
        assert_eq!(other.run("SET a 1"), Value::ok());
        assert_eq!(running.run("GET a").text(), "1");
        assert!(other.run("SCRIPT KILL").text().starts_with("NOTBUSY "));
    }
}

#[test]
fn a_script_that_has_written_is_not_killed_and_a_shutdown_ends_it() {
    for mode in MODES {
        let mut server = start(mode);
        let _running = busy(&server, "EVAL \"redis.call('set', 'a', '1') while true do end\" 1 a");
        let mut other = server.client();
        assert!(other.run("SCRIPT KILL").text().starts_with("UNKILLABLE "), "{mode:?}");
        other.send(b"SHUTDOWN NOSAVE\r\n").unwrap();
        assert!(server.wait().success(), "{mode:?}");
    }
}

#[test]
fn batched_replies_do_not_wait_for_the_end_of_a_script() {
    for concurrent in ["yes", "no"] {
        let server = start(&["--concurrent", concurrent, "--shards", "1", "--enable-debug-command", "yes"]);
        let (mut sleeper, mut quick, mut endless) = (server.client(), server.client(), server.client());
        for client in [&mut sleeper, &mut quick, &mut endless] {
            // With a threshold of 0, no client receives BUSY, so no other connection is served.
            assert_eq!(client.run("CONFIG SET busy-reply-threshold 0"), Value::ok());
        }
        // The only worker reads both requests after its sleep.
        sleeper.send(b"DEBUG SLEEP 0.3\r\n").unwrap();
        quick.send(b"SET a 1\r\n").unwrap();
        endless.send(format!("{ENDLESS}\r\n").as_bytes()).unwrap();
        assert_eq!(sleeper.read_value().unwrap(), Value::ok());
        assert_eq!(quick.read_value().unwrap(), Value::ok());
    }
}

#[test]
fn a_transaction_may_be_opened_but_not_filled_during_a_script() {
    for mode in MODES {
        let server = start(mode);
        let mut running = busy(&server, ENDLESS);
        let mut other = server.client();
        assert_eq!(other.run("MULTI"), Value::ok(), "{mode:?}");
        assert!(other.run("INCR a").text().starts_with("BUSY "), "{mode:?}");
        assert_eq!(server.client().run("SCRIPT KILL"), Value::ok(), "{mode:?}");
        assert!(running.read_value().unwrap().is_error(), "{mode:?}: the script has ended");
        let refused = "EXECABORT Transaction discarded because of previous errors.";
        assert_eq!(other.run("EXEC").text(), refused, "{mode:?}");
    }
}
