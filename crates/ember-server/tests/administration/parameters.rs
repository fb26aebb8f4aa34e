//! The parameters of Redis: those without effect are stored and named in the log, the others take effect.

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use ember_testkit::{RawClient, Value, free_port};

use crate::{MODES, assert_error, assert_ok, builder, everywhere, program, wait_until};

fn text_of(value: &Value, name: &str) -> String {
    value.get(name).unwrap_or_else(|| panic!("no {name} in {value:?}")).text()
}

const NOTICE: &str = "these parameters are accepted and have no effect:";

#[test]
fn parameters_without_effect_are_validated_stored_and_rewritten() {
    for mode in MODES {
        let server = builder(mode).start();
        let path = server.directory().join("ember.conf");
        drop(server);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "repl-backlog-size 2mb\nslave-priority 7\n").unwrap();
        let server = builder(mode).arguments(&["--config", path.to_str().unwrap()]).start();
        let mut client = server.client();
        assert_eq!(text_of(&client.run("CONFIG GET repl-backlog-size"), "repl-backlog-size"), "2097152");
        assert_ok(&mut client, "CONFIG SET replica-priority 8 activerehashing NO masterauth secret");
        assert_eq!(text_of(&client.run("CONFIG GET slave-priority"), "slave-priority"), "8");
        assert_eq!(text_of(&client.run("CONFIG GET activerehashing"), "activerehashing"), "no");
        assert_ok(&mut client, "CONFIG REWRITE");
        let written = fs::read_to_string(&path).unwrap();
        for line in ["repl-backlog-size 2mb", "replica-priority 8", "activerehashing no", "masterauth secret"]
        {
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
fn invalid_values_of_parameters_without_effect_are_refused_as_in_redis() {
    everywhere(&[], |_, client| {
        for (change, error) in [
            ("repl-timeout 0", "argument must be between 1 and 2147483647 inclusive"),
            ("io-threads 4", "can't set immutable config"),
            (
                "propagation-error-behavior maybe",
                "argument(s) must be one of the following: ignore, panic, panic-on-replicas",
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
fn parameters_without_effect_are_logged_once() {
    let server =
        builder(MODES[0]).arguments(&["--io-threads", "4", "--dynamic-hz", "no", "--hz", "20"]).start();
    let lines = |text: &str| server.log().lines().filter(|line| line.ends_with(text)).count();
    assert_eq!(lines(&format!("{NOTICE} dynamic-hz, io-threads")), 1, "{}", server.log());
    let mut client = server.client();
    assert_ok(&mut client, "CONFIG SET activerehashing no hz 10 dynamic-hz yes");
    wait_until("the log names it", || lines(&format!("{NOTICE} activerehashing")) == 1);
    assert_eq!(server.log().matches(NOTICE).count(), 2);
}

#[test]
fn a_server_with_defaults_logs_no_parameters() {
    let server =
        builder(MODES[0]).arguments(&["--cluster-migration-barrier", "1", "--disable-thp", "yes"]).start();
    assert!(!server.log().contains(NOTICE), "{}", server.log());
}

#[test]
fn hidden_parameters_are_returned_only_by_exact_name() {
    everywhere(&[], |_, client| {
        assert_eq!(client.run("CONFIG GET watchdog*").pairs().unwrap(), []);
        assert_eq!(text_of(&client.run("CONFIG GET watchdog-period"), "watchdog-period"), "0");
    });
}

#[test]
fn a_signal_stops_the_server_with_the_configured_shutdown_options() {
    for mode in MODES {
        for (signal, name, options, is_saved) in [
            ("INT", "shutdown-on-sigint", "save now", true),
            ("TERM", "shutdown-on-sigterm", "nosave force", false),
            ("TERM", "shutdown-on-sigint", "save", false),
        ] {
            let mut server = builder(mode).start();
            let mut client = server.client();
            assert_ok(&mut client, "SET a 1");
            client.command(&["CONFIG", "SET", name, options]);
            assert_eq!(text_of(&client.run(&format!("CONFIG GET {name}")), name), options);
            server.signal(signal);
            assert_eq!(server.wait().code(), Some(0), "{}", server.log());
            assert_eq!(server.directory().join("dump.rdb").exists(), is_saved, "{signal} {options}");
        }
    }
}

#[test]
fn a_forced_shutdown_ignores_a_failed_save() {
    for mode in MODES {
        let mut server = builder(mode).arguments(&["--shutdown-on-sigterm", "save", "force"]).start();
        assert_ok(&mut server.client(), "SET a 1");
        // A directory with the file's name makes the save fail.
        fs::create_dir(server.directory().join("dump.rdb")).unwrap();
        server.signal("TERM");
        assert_eq!(server.wait().code(), Some(0), "{}", server.log());
        assert!(server.log().contains("the data set could not be saved"), "{}", server.log());
    }
}

#[test]
fn the_oom_score_of_the_process_follows_the_configuration() {
    everywhere(&[], |server, client| {
        let score =
            || fs::read_to_string(format!("/proc/{}/oom_score_adj", server.pid())).unwrap().trim().to_owned();
        let before = score();
        assert_ok(client, "CONFIG SET oom-score-adj relative");
        assert_eq!(text_of(&client.run("CONFIG GET oom-score-adj"), "oom-score-adj"), "yes");
        client.command(&[
            "CONFIG",
            "SET",
            "oom-score-adj",
            "absolute",
            "oom-score-adj-values",
            "990 995 1000",
        ]);
        assert_eq!(score(), "990");
        assert_ok(client, "REPLICAOF 127.0.0.1 0");
        assert_eq!(score(), "995", "a replica");
        assert_ok(client, "REPLICAOF NO ONE");
        // Only a privileged process can lower the score again.
        assert!(["990", "995"].contains(&&*score()), "{}", score());
        let refused = client.command(&["CONFIG", "SET", "hz", "11", "oom-score-adj-values", "1 2"]).text();
        assert_eq!(
            refused,
            "ERR CONFIG SET failed (possibly related to argument 'oom-score-adj-values') - wrong number of arguments"
        );
        client.command(&["CONFIG", "SET", "oom-score-adj", "no", "oom-score-adj-values", "0 200 800"]);
        assert!([&*before, "990", "995"].contains(&&*score()), "{}", score());
    });
}

/// Returns the cores on which the thread `name` of a server may run.
fn cores(pid: u32, name: &str) -> Option<String> {
    for thread in fs::read_dir(format!("/proc/{pid}/task")).unwrap() {
        let path = thread.unwrap().path();
        if fs::read_to_string(path.join("comm")).is_ok_and(|comm| comm.trim() == name) {
            let status = fs::read_to_string(path.join("status")).unwrap();
            let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
            return list.map(|list| list.trim().to_owned());
        }
    }
    None
}

#[test]
fn threads_stay_on_their_configured_cores() {
    let server = builder(MODES[0])
        .arguments(&["--server_cpulist", "0", "--bio_cpulist", "0-1", "--appendonly", "yes"])
        .start();
    assert_eq!(cores(server.pid(), "worker-1").as_deref(), Some("0"));
    if std::thread::available_parallelism().unwrap().get() > 1 {
        wait_until("the thread has its cores", || cores(server.pid(), "aof-sync").as_deref() == Some("0-1"));
    }
}

#[test]
fn an_unwritable_pidfile_is_logged() {
    let server = builder(MODES[0]).arguments(&["--pidfile", "nowhere/at/all.pid"]).start();
    let path = server.directory().join("nowhere/at/all.pid");
    let expected = format!("cannot write pidfile '{}'", path.display());
    assert!(server.log().contains(&expected), "{}", server.log());
}

#[test]
fn files_are_written_and_read_with_the_configured_delay() {
    for mode in MODES {
        let server = builder(mode).arguments(&["--enable-debug-command", "yes"]).start();
        let mut client = server.client();
        assert_ok(&mut client, "DEBUG POPULATE 100");
        assert_ok(&mut client, "CONFIG SET rdb-key-save-delay 10000000");
        client.run("BGSAVE");
        assert_eq!(client.info("rdb_bgsave_in_progress"), "1");
        assert_ok(&mut client, "SET other 1");
        assert_ok(&mut client, "CONFIG SET rdb-key-save-delay -1");
        wait_until("the snapshot is saved", || client.info("rdb_bgsave_in_progress") == "0");
        let directory = server.crash();
        let begun = Instant::now();
        let slow = builder(mode).directory(&directory).arguments(&["--key-load-delay", "3000"]).start();
        assert_eq!(slow.client().run("DBSIZE").integer(), Some(100));
        assert!(begun.elapsed() >= Duration::from_millis(300));
        drop(slow);
        fs::remove_dir_all(directory).unwrap();
    }
}

#[test]
fn higher_expire_effort_expires_more_keys_per_turn() {
    for (effort, is_cut_short) in [("1", true), ("10", false)] {
        let server = builder(&["--shards", "1"])
            .arguments(&["--enable-debug-command", "yes", "--active-expire-effort", effort])
            .start();
        let mut client = server.client();
        assert_ok(&mut client, "DEBUG SET-ACTIVE-EXPIRE 0");
        for key in 0..5000 {
            client.run(&format!("SET {key} x PX 1"));
        }
        wait_until("the last has expired", || client.run("PTTL 4999").integer() == Some(-2));
        assert_ok(&mut client, "DEBUG SET-ACTIVE-EXPIRE 1");
        wait_until("all keys are removed", || client.run("DBSIZE").integer() == Some(0));
        let cuts = client.info("expired_time_cap_reached_count");
        assert_eq!(cuts != "0", is_cut_short, "effort {effort}: {cuts}");
    }
}

#[test]
fn with_no_appendfsync_on_rewrite_writes_wait_for_no_fsync_during_a_snapshot() {
    for mode in MODES {
        let server = builder(mode).arguments(&["--appendonly", "yes", "--appendfsync", "always"]).start();
        let mut client = server.client();
        assert_ok(&mut client, "SET a 1");
        assert_eq!(client.info("aof_unsynced_bytes"), "0");
        assert_ok(&mut client, "CONFIG SET rdb-key-save-delay 10000000 no-appendfsync-on-rewrite yes");
        wait_until("the AOF has its base", || client.info("aof_rewrite_in_progress") == "0");
        client.run("BGSAVE");
        assert_ok(&mut client, "SET b 1");
        wait_until("some bytes are not durable", || client.info("aof_unsynced_bytes") != "0");
        assert_ok(&mut client, "CONFIG SET rdb-key-save-delay 0");
        wait_until("all bytes are durable again", || client.info("aof_unsynced_bytes") == "0");
    }
}

#[test]
fn commands_are_renamed_or_disabled() {
    for mode in MODES {
        let directory = builder(mode).arguments(&["--appendonly", "yes"]).start().crash();
        let path = directory.join("ember.conf");
        let text = "rename-command SET store\nrename-command flushall \"\"\nrename-command config \"Config-3f\"\n\
                    user bob on nopass ~* +set +get\nappendonly yes\nappendfsync always\n";
        fs::write(&path, text).unwrap();
        let start =
            || builder(mode).directory(&directory).arguments(&["--config", path.to_str().unwrap()]).start();
        let server = start();
        for protocol in ["2", "3"] {
            let mut client = server.client();
            client.command(&["HELLO", protocol]);
            assert_ok(&mut client, "STORE a 1");
            for line in ["SET a 2", "FLUSHALL", "CONFIG GET hz"] {
                let refused = client.run(line).text();
                assert!(refused.starts_with("ERR unknown command"), "{line}: {refused}");
            }
            assert_eq!(text_of(&client.run("config-3F GET hz"), "hz"), "10");
            assert_eq!(
                client.command(&["EVAL", "return redis.call('store', 'a', '3').ok", "0"]).text(),
                "OK"
            );
            let named = |client: &mut RawClient, pattern: &str| {
                client.run(&format!("COMMAND LIST FILTERBY PATTERN {pattern}"))
            };
            assert_eq!(named(&mut client, "flushall"), Value::Array(Vec::new()));
            assert_eq!(named(&mut client, "config|get"), Value::Array(vec![Value::from("config|get")]));
            assert_eq!(client.run("COMMAND INFO SET"), Value::Array(vec![client.run("GET nothing")]));
            // ACL rules still use the original names.
            client.run("AUTH bob any");
            assert_ok(&mut client, "store a 4");
            assert!(client.run("DEL a").text().starts_with("NOPERM"));
        }
        drop(server.crash());
        let server = start();
        assert_eq!(server.client().run("GET a").text(), "4");
        assert_ok(&mut server.client(), "CONFIG-3F REWRITE");
        let written = fs::read_to_string(&path).unwrap();
        assert!(written.starts_with("rename-command SET store\nrename-command flushall \"\"\n"), "{written}");
        drop(server);
        fs::remove_dir_all(directory).unwrap();
    }
}

/// Runs `ember-server` with these arguments; returns its output and whether it succeeded.
fn outcome(directory: &Path, arguments: &[&str]) -> (bool, String) {
    let output = Command::new(program()).args(arguments).current_dir(directory).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(text).unwrap())
}

#[test]
fn a_configuration_check_reports_all_errors_at_once() {
    let directory = builder(MODES[0]).start().crash();
    let write = |text: &str| fs::write(directory.join("a.conf"), text).unwrap();
    write("hz 20\nrename-command GET fetch\nuser bob on +get\n");
    for arguments in [&["--check-config", "a.conf"][..], &["a.conf", "--check-config", "--port", "1"]] {
        assert_eq!(outcome(&directory, arguments), (true, "the configuration is valid\n".to_owned()));
    }
    write("hz 0\nloadmodule search.so\nport x\n");
    let mistakes = "ember-server: a.conf:1: hz: argument must be between 1 and 500 inclusive\n\
                    ember-server: a.conf:2: loadmodule: modules are not supported, so 'search.so' cannot be loaded: \
                    remove this line\n\
                    ember-server: a.conf:3: port: argument couldn't be parsed into an integer\n";
    for arguments in [&["a.conf"][..], &["--check-config", "a.conf"]] {
        assert_eq!(outcome(&directory, arguments), (false, mistakes.to_owned()));
    }
    write("rename-command none other\nrename-command GET set\nuser bob on +nothing\ntls-port 1\n");
    let (is_fine, output) = outcome(&directory, &["--check-config", "a.conf"]);
    assert!(!is_fine);
    for mistake in [
        "a.conf:1: rename-command: there is no command 'none'",
        "a.conf:2: rename-command: 'get' cannot be renamed to 'set', which is the name of another command",
        "a.conf:3: user: ",
    ] {
        assert!(output.contains(mistake), "{mistake} in {output}");
    }
    assert_eq!(output.lines().count(), 4, "{output}");
    fs::remove_dir_all(directory).unwrap();
}

#[test]
fn protected_parameters_change_only_for_allowed_clients() {
    for mode in MODES {
        for (setting, is_allowed) in [("no", false), ("yes", true), ("local", true)] {
            let server = builder(mode).arguments(&["--enable-protected-configs", setting]).start();
            let mut client = server.client();
            let answer = client.run("CONFIG SET dbfilename other.rdb").text();
            let refused = "ERR CONFIG SET failed (possibly related to argument 'dbfilename') - can't set protected config";
            assert_eq!(answer, if is_allowed { "OK" } else { refused });
            assert_ok(&mut client, "SET a 1");
            assert_ok(&mut client, "SAVE");
            assert_eq!(server.directory().join("other.rdb").exists(), is_allowed);
            assert_eq!(text_of(&client.run("CONFIG GET dir"), "dir"), server.directory().to_str().unwrap());
        }
    }
}

#[test]
fn a_change_of_several_parameters_is_undone_when_one_fails() {
    everywhere(&[], |server, client| {
        let score = || fs::read_to_string(format!("/proc/{}/oom_score_adj", server.pid())).unwrap();
        let before = score();
        fs::write(server.directory().join("appendonlydir"), "no directory").unwrap();
        let failed =
            client.command(&["CONFIG", "SET", "hz", "50", "oom-score-adj", "absolute", "appendonly", "yes"]);
        assert!(failed.text().contains("(possibly related to argument 'appendonly')"), "{failed:?}");
        let values = client.run("CONFIG GET hz oom-score-adj appendonly");
        let texts = ["hz", "oom-score-adj", "appendonly"].map(|name| text_of(&values, name));
        assert_eq!(texts, ["10", "no", "no"]);
        assert_eq!(score(), before);
        fs::remove_file(server.directory().join("appendonlydir")).unwrap();
    });
}

#[test]
fn the_server_starts_without_a_syslog_daemon() {
    let server =
        builder(MODES[0]).arguments(&["--syslog-enabled", "yes", "--syslog-facility", "local3"]).start();
    let says_so = server.log().contains("syslog-enabled: no log daemon listens at /dev/log");
    assert_eq!(says_so, !Path::new("/dev/log").exists(), "{}", server.log());
}

fn client_at(host: &str, port: u16) -> Option<RawClient> {
    RawClient::connect(format!("{host}:{port}").parse().unwrap()).ok()
}

#[test]
fn the_server_listens_on_the_configured_addresses() {
    for mode in MODES {
        let server = builder(mode).start();
        let (mut client, old) = (server.client(), server.port());
        let new = free_port();
        assert_ok(&mut client, &format!("CONFIG SET port {new}"));
        assert_eq!(client_at("127.0.0.1", new).unwrap().run("PING").text(), "PONG");
        assert!(client_at("127.0.0.1", old).is_none(), "the old port is closed");
        assert_eq!(client.info("tcp_port"), new.to_string());
        // All addresses replace one address, and vice versa.
        assert_ok(&mut client, "CONFIG SET bind *");
        assert_eq!(client_at("127.0.0.2", new).unwrap().run("PING").text(), "PONG");
        client.command(&["CONFIG", "SET", "bind", "127.0.0.1 127.0.0.3"]);
        assert!(client_at("127.0.0.2", new).is_none());
        for host in ["127.0.0.1", "127.0.0.3"] {
            assert_eq!(client_at(host, new).unwrap().run("PING").text(), "PONG");
        }
        // Disables the port, and enables it again.
        assert_ok(&mut client, "CONFIG SET port 0");
        assert!(client_at("127.0.0.1", new).is_none());
        assert_ok(&mut client, &format!("CONFIG SET port {old} bind 127.0.0.1"));
        assert_eq!(server.client().run("PING").text(), "PONG");
    }
}

#[test]
fn the_server_keeps_its_addresses_when_new_ones_fail() {
    for mode in MODES {
        let server = builder(mode).start();
        let mut client = server.client();
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = taken.local_addr().unwrap().port();
        let failed = |name: &str, error: &str| {
            format!("ERR CONFIG SET failed (possibly related to argument '{name}') - {error}")
        };
        let refused = client.run(&format!("CONFIG SET hz 20 port {port}")).text();
        assert_eq!(refused, failed("port", "Unable to listen on this port. Check server logs."));
        let refused = client.run("CONFIG SET bind 192.0.2.1").text();
        assert_eq!(refused, failed("bind", "Failed to bind to specified addresses."));
        let values = client.run("CONFIG GET port bind hz");
        assert_eq!(text_of(&values, "port"), server.port().to_string());
        assert_eq!((text_of(&values, "bind"), text_of(&values, "hz")), ("127.0.0.1".into(), "10".into()));
        assert_eq!(server.client().run("PING").text(), "PONG");
    }
}

#[test]
fn the_data_directory_changes_only_for_allowed_clients() {
    for mode in MODES {
        let server = builder(mode).arguments(&["--enable-protected-configs", "local"]).start();
        let mut client = server.client();
        let failed =
            |error: &str| format!("ERR CONFIG SET failed (possibly related to argument 'dir') - {error}");
        assert_error(&mut client, "CONFIG SET dir other", &failed("No such file or directory"));
        let other = server.directory().join("other");
        fs::create_dir(&other).unwrap();
        assert_ok(&mut client, "CONFIG SET dir other");
        assert_eq!(text_of(&client.run("CONFIG GET dir"), "dir"), other.to_str().unwrap());
        assert_ok(&mut client, "SET a 1");
        assert_ok(&mut client, "SAVE");
        assert!(other.join("dump.rdb").exists());
        // No other server can use the port; then the port is changed back.
        let second = builder(mode).arguments(&["--enable-protected-configs", "yes"]).start();
        let mut second = second.client();
        assert_ok(&mut second, "SAVE");
        let refused = second.command(&["CONFIG", "SET", "dir", other.to_str().unwrap()]).text();
        assert!(refused.contains("is used by another server"), "{refused}");
        assert_ok(&mut second, "SAVE");
        assert_ok(&mut client, "CONFIG SET appendonly yes");
        let refused = client.run("CONFIG SET dir ..").text();
        assert!(refused.contains("the directory contains the files of the AOF"), "{refused}");
    }
}

#[test]
fn all_values_from_config_get_can_be_set_again() {
    everywhere(&["--enable-protected-configs", "yes"], |_, client| {
        let values = client.run("CONFIG GET *");
        for (name, value) in values.pairs().unwrap() {
            let answer = client.command(&["CONFIG", "SET", &name.text(), &value.text()]).text();
            assert_eq!(answer, "OK", "{name:?}");
        }
        assert_eq!(client.run("CONFIG GET *"), values);
    });
}
