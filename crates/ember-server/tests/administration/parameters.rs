//! The parameters of Redis: those without an effect are kept and named, the others do what they say.

use std::fs;

use ember_testkit::Value;

use crate::{MODES, assert_error, assert_ok, builder, everywhere, wait_until};

fn text_of(value: &Value, name: &str) -> String {
    value.get(name).unwrap_or_else(|| panic!("no {name} in {value:?}")).text()
}

const NOTICE: &str = "these parameters are accepted and have no effect:";

#[test]
fn parameters_without_effect_are_checked_kept_and_written() {
    for mode in MODES {
        let server = builder(mode).start();
        let path = server.directory().join("ember.conf");
        drop(server);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "repl-backlog-size 2mb\nslave-priority 7\n").unwrap();
        let server = builder(mode).arguments(&["--config", path.to_str().unwrap()]).start();
        let mut client = server.client();
        assert_eq!(text_of(&client.run("CONFIG GET repl-backlog-size"), "repl-backlog-size"), "2097152");
        assert_ok(&mut client, "CONFIG SET replica-priority 8 activedefrag YES masterauth secret");
        assert_eq!(text_of(&client.run("CONFIG GET slave-priority"), "slave-priority"), "8");
        assert_eq!(text_of(&client.run("CONFIG GET activedefrag"), "activedefrag"), "yes");
        assert_ok(&mut client, "CONFIG REWRITE");
        let written = fs::read_to_string(&path).unwrap();
        for line in ["repl-backlog-size 2mb", "replica-priority 8", "activedefrag yes", "masterauth secret"] {
            assert!(written.contains(line), "{line} in {written}");
        }
        drop(client);
        drop(server);
        let server = builder(mode).arguments(&["--config", path.to_str().unwrap()]).start();
        let values = server.client().run("CONFIG GET masterauth replica-priority");
        assert_eq!(
            (text_of(&values, "masterauth"), text_of(&values, "replica-priority")),
            ("secret".into(), "8".into())
        );
        fs::remove_dir_all(path.parent().unwrap()).unwrap();
    }
}

#[test]
fn parameters_without_effect_are_refused_as_by_redis() {
    everywhere(&[], |_, client| {
        for (change, error) in [
            ("repl-timeout 0", "argument must be between 1 and 2147483647 inclusive"),
            ("io-threads 4", "can't set immutable config"),
            (
                "repl-diskless-load maybe",
                "argument(s) must be one of the following: disabled, on-empty-db, swapdb",
            ),
            (
                "cluster-announce-hostname a_b",
                "Hostnames may only contain alphanumeric characters, hyphens or dots",
            ),
            ("activerehashing 1", "argument must be 'yes' or 'no'"),
        ] {
            let name = change.split(' ').next().unwrap();
            let text = format!("ERR CONFIG SET failed (possibly related to argument '{name}') - {error}");
            assert_error(client, &format!("CONFIG SET {change}"), &text);
        }
    });
}

#[test]
fn parameters_without_effect_are_named_once_in_the_log() {
    let server =
        builder(MODES[0]).arguments(&["--io-threads", "4", "--repl-timeout", "5", "--hz", "20"]).start();
    let lines = |text: &str| server.log().lines().filter(|line| line.ends_with(text)).count();
    assert_eq!(lines(&format!("{NOTICE} io-threads, repl-timeout")), 1, "{}", server.log());
    let mut client = server.client();
    assert_ok(&mut client, "CONFIG SET slave-priority 1 hz 10 repl-timeout 60");
    wait_until("the log names it", || lines(&format!("{NOTICE} replica-priority")) == 1);
    assert_eq!(server.log().matches(NOTICE).count(), 2);
}

#[test]
fn a_server_with_defaults_names_no_parameters() {
    let server = builder(MODES[0]).arguments(&["--repl-timeout", "60", "--disable-thp", "yes"]).start();
    assert!(!server.log().contains(NOTICE), "{}", server.log());
}

#[test]
fn hidden_parameters_are_shown_to_those_who_name_them() {
    everywhere(&[], |_, client| {
        assert_eq!(client.run("CONFIG GET watchdog*").pairs().unwrap(), []);
        assert_eq!(text_of(&client.run("CONFIG GET watchdog-period"), "watchdog-period"), "0");
    });
}
