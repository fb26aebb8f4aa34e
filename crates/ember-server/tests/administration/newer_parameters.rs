//! Parameters that Redis 8 and Valkey 8 and 9 have added.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use ember_testkit::{RawClient, Value};

use crate::{MODES, assert_error, assert_ok, builder, everywhere, wait_until};

#[test]
fn the_availability_zone_appears_in_info_and_hello() {
    everywhere(&[], |_, client| {
        assert_eq!(client.info("availability_zone"), "");
        assert!(client.run("HELLO").get("availability_zone").is_none());
        assert_ok(client, "CONFIG SET availability-zone eu-1a");
        assert_eq!(client.info("availability_zone"), "eu-1a");
        assert_eq!(client.run("HELLO").get("availability_zone").unwrap().text(), "eu-1a");
        assert_eq!(client.command(&["CONFIG", "SET", "availability-zone", ""]).text(), "OK");
    });
}

#[test]
fn log_lines_have_the_configured_format() {
    for mode in MODES {
        let server = builder(mode).arguments(&["--log-format", "logfmt"]).start();
        let mut client = server.client();
        let last = |what: &str| {
            wait_until("the text is logged", || server.log().lines().any(|line| line.contains(what)));
            server.log().lines().rfind(|line| line.contains(what)).unwrap().to_owned()
        };
        let ready = last("Ready to accept");
        let pid = format!("pid={} ", server.pid());
        assert!(
            ready.starts_with(&pid)
                && ready.contains(" level=notice message=\"Ready to accept connections: ember "),
            "{ready}"
        );
        assert_ok(&mut client, "CONFIG SET log-format json log-timestamp-format milliseconds");
        assert_ok(&mut client, "CONFIG SET hash-max-listpack-entries 7 dynamic-hz no");
        let json = last("dynamic-hz");
        assert!(json.starts_with(&format!("{{\"pid\":{},\"timestamp\":\"1", server.pid())), "{json}");
        assert!(json.contains(",\"level\":\"warning\",\"message\":\"CONFIG SET: "), "{json}");
        assert_ok(&mut client, "CONFIG SET log-format legacy log-timestamp-format iso8601");
        assert_ok(&mut client, "CONFIG SET activerehashing no");
        let legacy = last("activerehashing");
        let (time, rest) = legacy.split_once(' ').unwrap();
        assert!(
            time.len() == 24 && time.ends_with('Z') && rest.starts_with(" WARN CONFIG SET: "),
            "{legacy}"
        );
        assert_error(
            &mut client,
            "CONFIG SET log-format xml",
            "ERR CONFIG SET failed (possibly related to argument 'log-format') - argument(s) must be one of the \
             following: legacy, logfmt, json",
        );
    }
}

#[test]
fn the_unix_socket_has_the_configured_group() {
    let group = rustix::process::getgid().as_raw().to_string();
    let arguments = ["--unixsocket", "s.sock", "--unixsocketperm", "770", "--unixsocketgroup", &group];
    let server = builder(MODES[0]).arguments(&arguments).start();
    let found = fs::metadata(server.directory().join("s.sock")).unwrap();
    assert_eq!((found.gid().to_string(), found.permissions().mode() & 0o777), (group, 0o770));
    let mut client = server.client();
    assert_eq!(client.command(&["CONFIG", "SET", "unixsocketgroup", ""]).text(), "OK");
    assert_error(
        &mut client,
        "CONFIG SET unixsocketgroup nobodys-group",
        "ERR CONFIG SET failed (possibly related to argument 'unixsocketgroup') - Unable to change the group of the Unix \
         socket: unixsocketgroup: there is no group 'nobodys-group'",
    );
}

#[test]
fn a_flood_of_connections_is_accepted_a_few_at_a_time() {
    for mode in MODES {
        let server = builder(mode).arguments(&["--max-new-connections-per-cycle", "1"]).start();
        let mut clients: Vec<RawClient> = (0..50).map(|_| server.client()).collect();
        clients.iter_mut().for_each(|client| assert_eq!(client.run("PING").text(), "PONG"));
    }
}

#[test]
fn files_of_newer_versions_are_read_if_allowed() {
    for mode in MODES {
        let server = builder(mode).start();
        let mut client = server.client();
        assert_ok(&mut client, "SET a 1");
        assert_ok(&mut client, "CONFIG SET rdbcompression no");
        assert_ok(&mut client, "SAVE");
        let directory = server.crash();
        let path = directory.join("dump.rdb");
        let mut bytes = fs::read(&path).unwrap();
        bytes[5..9].copy_from_slice(b"0099");
        // Removes the checksum, which is eight bytes of zero.
        let end = bytes.len() - 8;
        bytes[end..].fill(0);
        fs::write(&path, &bytes).unwrap();
        let relaxed = ["--rdb-version-check", "relaxed", "--enable-debug-command", "yes"];
        let server = builder(mode).directory(&directory).arguments(&relaxed).start();
        let mut client = server.client();
        assert_eq!(client.run("GET a").text(), "1");
        // The payload of the string "1" with version 99.
        let mut payload = vec![0, 0xc0, 1, 99, 0];
        payload.extend([0; 8]);
        assert_ok(&mut client, "DEBUG SET-SKIP-CHECKSUM-VALIDATION 1");
        let restore = [&b"RESTORE"[..], b"b", b"0", &payload];
        assert_eq!(client.command(&restore), Value::ok());
        assert_eq!(client.run("GET b").text(), "1");
        assert_ok(&mut client, "CONFIG SET rdb-version-check strict");
        client.run("DEL b");
        assert_eq!(client.command(&restore).text(), "ERR DUMP payload version or checksum are wrong");
        assert!(client.run("DEBUG RELOAD NOSAVE").text().contains("the format's version is 99"));
        assert_eq!(client.run("GET a").text(), "1", "nothing has changed");
        drop(server);
        let _ = fs::remove_dir_all(directory);
    }
}

#[test]
fn ps_shows_the_configured_process_title() {
    let shown = |pid: u32| {
        let bytes = fs::read(format!("/proc/{pid}/cmdline")).unwrap();
        String::from_utf8_lossy(&bytes).trim_end_matches('\0').to_owned()
    };
    for mode in MODES {
        let room = ["--proc-title-template", "a {port} b {listen-addr} {server-mode} {config-file}"];
        let server = builder(mode).arguments(&room).start();
        let port = server.port();
        assert_eq!(shown(server.pid()), format!("a {port} b 127.0.0.1:{port}"));
        assert_ok(&mut server.client(), "CONFIG SET proc-title-template {{{port}");
        assert_eq!(shown(server.pid()), format!("{{{port}"));
        let server = builder(mode).arguments(&["--set-proc-title", "no"]).start();
        assert!(shown(server.pid()).contains("\0--set-proc-title\0no"));
    }
}

#[test]
fn info_reports_a_pause() {
    everywhere(&[], |server, client| {
        let fields = ["paused_reason", "paused_actions", "paused_timeout_milliseconds"];
        assert_eq!(fields.map(|field| client.info(field)), ["none", "none", "0"]);
        assert_eq!(client.info("evicted_scripts"), "0");
        let mut other = server.client();
        assert_ok(&mut other, "CLIENT PAUSE 100000 WRITE");
        assert_eq!(
            fields[..2].iter().map(|field| client.info(field)).collect::<Vec<_>>(),
            ["client_pause", "write"]
        );
        let left = client.info_number("paused_timeout_milliseconds");
        assert!((1..=100_000).contains(&left), "{left}");
        assert_ok(&mut other, "CLIENT UNPAUSE");
        assert_eq!(client.info("paused_reason"), "none");
    });
}
