//! CONFIG: values are returned, are changed atomically, and take effect.

use std::fs;

use ember_testkit::Value;

use crate::{MODES, assert_error, assert_ok, builder, everywhere};

fn text_of(value: &Value, name: &str) -> String {
    value.get(name).unwrap_or_else(|| panic!("no {name} in {value:?}")).text()
}

#[test]
fn config_get_accepts_several_patterns() {
    everywhere(&[], |_, client| {
        let values = client.run("CONFIG GET maxmemory* HZ maxmemory");
        assert_eq!(text_of(&values, "maxmemory"), "0");
        assert_eq!(text_of(&values, "maxmemory-policy"), "noeviction");
        assert_eq!(text_of(&values, "HZ"), "10"); // as typed, like Redis
        assert_eq!(values.pairs().unwrap().iter().filter(|(name, _)| name.text() == "maxmemory").count(), 1);
        assert_eq!(client.run("CONFIG GET nothing").pairs().unwrap(), []);
        assert_error(client, "CONFIG GET", "ERR wrong number of arguments for 'config|get' command");
    });
}

#[test]
fn config_set_changes_all_parameters_or_none() {
    everywhere(&[], |_, client| {
        assert_ok(client, "CONFIG SET maxmemory 100mb maxmemory-policy allkeys-lru");
        assert_eq!(text_of(&client.run("CONFIG GET maxmemory"), "maxmemory"), "104857600");
        let refused = client.run("CONFIG SET maxmemory 1 hz many");
        assert!(
            refused.text().starts_with("ERR CONFIG SET failed (possibly related to argument 'hz')"),
            "{refused:?}"
        );
        assert_eq!(text_of(&client.run("CONFIG GET maxmemory"), "maxmemory"), "104857600");
        assert_eq!(client.info("maxmemory_policy"), "allkeys-lru");
        for (line, text) in [
            ("CONFIG SET nothing 1", "ERR Unknown option or number of arguments for CONFIG SET - 'nothing'"),
            ("CONFIG SET hz 1 hz", "ERR syntax error"),
            ("CONFIG SET hz", "ERR wrong number of arguments for 'config|set' command"),
            (
                "CONFIG SET databases 1",
                "ERR CONFIG SET failed (possibly related to argument 'databases') - can't set immutable config",
            ),
            ("CONFIG REWRITE", "ERR The server is running without a config file"),
        ] {
            assert_error(client, line, text);
        }
        let refused = client.run("CONFIG SET maxclients 4000000000").text();
        assert!(refused.contains("The operating system is not able to handle"), "{refused}");
        assert_ok(client, "CONFIG SET maxmemory 0 maxmemory-policy noeviction");
    });
}

#[test]
fn a_lower_memory_limit_evicts_in_the_background() {
    everywhere(&["--enable-debug-command", "yes", "--hz", "100"], |_, client| {
        assert_ok(client, "DEBUG POPULATE 20000 key 100");
        let before = client.run("DBSIZE").integer().unwrap();
        assert_ok(client, "CONFIG SET maxmemory 1mb maxmemory-policy allkeys-random");
        crate::wait_until("keys are evicted", || client.run("DBSIZE").integer().unwrap() < before / 2);
        assert_ok(client, "CONFIG SET maxmemory 1 maxmemory-policy noeviction");
        assert_error(client, "SET a 1", "OOM command not allowed when used memory > 'maxmemory'.");
        assert_ok(client, "CONFIG SET maxmemory 0");
        assert_ok(client, "FLUSHALL");
    });
}

#[test]
fn config_rewrite_keeps_changes_for_the_next_start() {
    for mode in MODES {
        let directory = tempfile_directory();
        let file = directory.join("ember.conf");
        fs::write(&file, "# mine\nhz 20\n").unwrap();
        let path = file.to_str().unwrap();
        // The file's name comes first on a command line.
        let server = builder(mode).arguments(&["--config", path]).start();
        let mut client = server.client();
        assert_eq!(client.info("config_file"), path);
        assert_ok(&mut client, "CONFIG SET hz 30 slowlog-max-len 7");
        assert_ok(&mut client, "CONFIG REWRITE");
        let text = fs::read_to_string(&file).unwrap();
        assert!(text.starts_with("# mine\nhz 30\n") && text.contains("slowlog-max-len 7"), "{text}");
        drop(server);
        fs::remove_dir_all(directory).unwrap();
    }
}

#[test]
fn config_rewrite_leaves_users_of_an_included_file_unchanged() {
    for mode in MODES {
        let directory = tempfile_directory();
        let (file, users) = (directory.join("ember.conf"), directory.join("users.conf"));
        let spelled = "user alice on >pw ~k:* +@read -@all +get\nuser default on nopass ~* &* +@all\n";
        fs::write(&users, spelled).unwrap();
        fs::write(&file, "include users.conf\nhz 20\n").unwrap();
        let server = builder(mode).arguments(&["--config", file.to_str().unwrap()]).start();
        let mut client = server.client();
        assert_ok(&mut client, "CONFIG SET hz 30");
        assert_ok(&mut client, "CONFIG REWRITE");
        let text = fs::read_to_string(&file).unwrap();
        assert!(text.contains("include users.conf\n") && text.contains("hz 30\n"), "{text}");
        assert!(!text.contains("user "), "{text}");
        assert_eq!(fs::read_to_string(&users).unwrap(), spelled);
        assert_ok(&mut client, "ACL SETUSER alice +set");
        let refused = client.run("CONFIG REWRITE").text();
        assert!(refused.contains("users.conf:1: the included file defines a user"), "{refused}");
        drop(server);
        fs::remove_dir_all(directory).unwrap();
    }
}

#[test]
fn a_file_that_is_rewritten_in_full_starts_the_same_server() {
    for mode in MODES {
        let directory = tempfile_directory();
        let file = directory.join("ember.conf");
        fs::write(&file, "# mine\nenable-debug-command yes\nsave 900 1\n").unwrap();
        let path = file.to_str().unwrap();
        let server = builder(mode).arguments(&["--config", path]).start();
        let mut client = server.client();
        assert_ok(&mut client, "CONFIG SET maxmemory-policy allkeys-lfu");
        let before = client.run("CONFIG GET *");
        assert_ok(&mut client, "DEBUG CONFIG-REWRITE-FORCE-ALL");
        let text = fs::read_to_string(&file).unwrap();
        assert!(text.starts_with("# mine\n") && text.lines().count() > 200, "{text}");
        // The file contains the server's arguments, except for the address, which the test has chosen.
        let server = builder(mode).arguments(&["--config", path]).start();
        let own = ["port", "dir", "unixsocket", "pidfile", "logfile", "proc-title-template"];
        let after = server.client().run("CONFIG GET *");
        let differs = |name: &str| text_of(&before, name) != text_of(&after, name);
        let names = before.elements().unwrap().iter().step_by(2).map(Value::text);
        let different: Vec<String> = names.filter(|name| differs(name)).collect();
        assert!(different.iter().all(|name| own.contains(&&**name)), "{different:?}");
        drop(server);
        fs::remove_dir_all(directory).unwrap();
    }
}

fn tempfile_directory() -> std::path::PathBuf {
    use std::sync::atomic::{AtomicU32, Ordering};
    static COUNTER: AtomicU32 = AtomicU32::new(0);
    let number = COUNTER.fetch_add(1, Ordering::Relaxed);
    let path = std::env::temp_dir().join(format!("ember-config-{}-{number}", std::process::id()));
    fs::create_dir(&path).unwrap();
    path.canonicalize().unwrap()
}

#[test]
fn the_log_level_changes_at_once() {
    everywhere(&["--enable-debug-command", "yes"], |server, client| {
        assert_ok(client, "DEBUG LOG first");
        assert_ok(client, "CONFIG SET loglevel nothing");
        assert_ok(client, "DEBUG LOG hidden");
        assert_ok(client, "CONFIG SET loglevel warning");
        assert_ok(client, "DEBUG LOG second");
        let log = server.log();
        assert!(log.contains("DEBUG LOG: first") && log.contains("DEBUG LOG: second"), "{log}");
        assert!(!log.contains("hidden"), "{log}");
    });
}

#[test]
fn config_resetstat_sets_counters_to_zero() {
    everywhere(&[], |_, client| {
        client.run("GET nothing");
        client.run("NONSENSE");
        assert_ne!(client.info("keyspace_misses"), "0");
        assert_eq!(client.info("errorstat_ERR"), "count=1");
        assert_ok(client, "CONFIG RESETSTAT");
        assert_eq!(client.info("keyspace_misses"), "0");
        assert_eq!(client.info("total_error_replies"), "0");
        assert!(!client.run("INFO errorstats").text().contains("errorstat_ERR"));
        assert!(!client.run("INFO commandstats").text().contains("cmdstat_get"));
    });
}
