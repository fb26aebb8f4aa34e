//! At `verbose` and `debug` the log contains what clients do; at `notice` it does not, and it never contains secrets.

use ember_testkit::{Server, Value, wait_until};

use crate::{MODES, assert_ok, builder};

/// Causes every event that the log may contain.
fn cause_events(server: &Server) {
    let mut client = server.client();
    client.run("SET key value");
    assert_ok(&mut client, "ACL SETUSER alice on >hunter1 ~a* +get");
    let mut alice = server.client();
    assert!(alice.run("AUTH alice hunter2").is_error());
    assert_ok(&mut alice, "AUTH alice hunter1");
    assert!(alice.run("GET key").is_error());
    assert!(alice.run("CONFIG GET hz").is_error());
    assert_eq!(client.run("CLIENT KILL USER alice"), Value::Integer(1));
    assert_ok(&mut client, "CONFIG SET hz 20 masterauth hunter3");
    assert_ok(&mut client, "FLUSHDB");
    assert_ok(&mut client, "FLUSHALL");
    assert_ok(&mut client, "CONFIG SET maxmemory 1 maxmemory-policy noeviction");
    // The keys have different owners.
    for key in 0..16 {
        assert!(client.run(&format!("SET other:{key} value")).is_error());
    }
    assert_ok(&mut client, "CONFIG SET maxmemory 0");
    client.run("QUIT");
}

/// Events at `verbose` in the order of `cause_events`; clients are omitted.
const VERBOSE: [&str; 10] = [
    " is connected",
    ": the login as user \"alice\" has failed",
    ", user \"alice\": the key \"key\" is denied",
    ", user \"alice\": the command \"config|get\" is denied",
    " has killed client ",
    " is disconnected: the connection was killed",
    " sets hz = \"20\", masterauth = \"(redacted)\"",
    "a database has been emptied by client ",
    "all databases have been emptied by client ",
    " sets maxmemory = \"0\"",
];

const REFUSAL: &str = " is refused: maxmemory is reached";

#[test]
fn the_log_contains_what_clients_do_at_the_levels_for_it() {
    for mode in MODES {
        for (level, shows_events, shows_refusals) in
            [("notice", false, false), ("verbose", true, false), ("debug", true, true)]
        {
            let server = builder(mode).arguments(&["--loglevel", level]).start();
            cause_events(&server);
            if shows_events {
                // The connections are closed after their last replies.
                wait_until("the events are logged", || {
                    let log = server.log();
                    VERBOSE.iter().all(|event| log.contains(event))
                });
            }
            let log = server.log();
            for event in VERBOSE {
                assert_eq!(log.contains(event), shows_events, "{mode:?} {level} {event}:\n{log}");
            }
            assert_eq!(log.contains(REFUSAL), shows_refusals, "{mode:?} {level}:\n{log}");
            assert_eq!(log.contains("VERBOSE client "), shows_events, "{log}");
            let refusals = log.matches("DEBUG set of ").count();
            assert_eq!(refusals, if shows_refusals { 16 } else { 0 }, "{mode:?} {level}:\n{log}");
            assert!(!log.contains("hunter"), "{log}");
        }
    }
}
