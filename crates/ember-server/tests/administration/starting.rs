//! The log at startup, and after a failed startup.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use ember_testkit::{Server, free_port, wait_until};

use crate::program;

fn start(arguments: &[&str]) -> Server {
    Server::builder(program()).arguments(arguments).unix_socket().start()
}

#[test]
fn the_log_names_version_addresses_and_data_directory() {
    let server = start(&["--appendonly", "yes"]);
    server.client().run("SET key value");
    let log = server.log();
    let (port, socket) = (server.port(), server.unix_socket().unwrap().display().to_string());
    let version = env!("CARGO_PKG_VERSION");
    for line in [
        format!("ember {version}"),
        format!("PID: {}", server.pid()),
        "listening on 127.0.0.1:".to_owned(),
        format!(":{port}"),
        socket,
        format!("data directory {}: no data yet", server.directory().canonicalize().unwrap().display()),
        "Server initialized".to_owned(),
        format!("Ready to accept connections: ember {version}, port {port}"),
    ] {
        assert!(log.contains(&line), "no {line:?} in\n{log}");
    }
    assert!(!log.contains("WARN"), "{log}");
    let directory = server.crash();
    let port = free_port().to_string();
    let path = directory.display().to_string();
    let log = directory.join("second.log").display().to_string();
    let mut again = Command::new(program());
    let mut again =
        again.args(["--port", &port, "--dir", &path, "--save", "", "--logfile", &log]).spawn().unwrap();
    wait_until("the server is ready", || {
        fs::read_to_string(&log).is_ok_and(|log| log.contains("Ready to accept connections"))
    });
    let log = fs::read_to_string(&log).unwrap();
    assert!(log.contains("the append-only file in appendonlydir is not read: appendonly is no"), "{log}");
    again.kill().unwrap();
    again.wait().unwrap();
    fs::remove_dir_all(directory).unwrap();
}

#[test]
fn a_missing_data_directory_is_created_for_the_user_of_the_server_only() {
    let parent = start(&[]).crash().canonicalize().unwrap();
    let directory = parent.join("data");
    let check = ["--data-dir", "./data", "--appendonly", "--check-config"];
    assert!(Command::new(program()).args(check).current_dir(&parent).output().unwrap().status.success());
    assert!(!directory.exists(), "a check leaves no directory");
    let port = free_port().to_string();
    let arguments =
        ["--data-dir", "./data", "--appendonly", "--port", &port, "--bind", "127.0.0.1", "--logfile", "log"];
    let mut server = Command::new(program()).args(arguments).current_dir(&parent).spawn().unwrap();
    let log = || fs::read_to_string(directory.join("log")).unwrap_or_default();
    wait_until("the server is ready", || log().contains("Ready to accept connections"));
    let created = format!("created the data directory {}\n", directory.display());
    assert_eq!(log().matches(&created).count(), 1, "{}", log());
    assert_eq!(fs::metadata(&directory).unwrap().permissions().mode() & 0o777, 0o700);
    assert!(directory.join("appendonlydir").is_dir());
    server.kill().unwrap();
    server.wait().unwrap();
    // A missing parent may be a disk that is not mounted.
    let mut command = Command::new(program());
    command.args(["--port", &port, "--data-dir", "missing/data"]).current_dir(&parent);
    let said = ember_testkit::refusal(&mut command);
    let path = parent.join("missing/data");
    assert!(said.contains(&format!("cannot create dir '{}': ", path.display())), "{said}");
    assert!(!parent.join("missing").exists());
    fs::remove_dir_all(parent).unwrap();
}

#[test]
fn errors_have_full_paths() {
    let directory = start(&[]).crash().canonicalize().unwrap();
    fs::write(directory.join("dump.rdb"), "no data").unwrap();
    let said = |arguments: &[&str]| {
        ember_testkit::refusal(Command::new(program()).args(arguments).current_dir(&directory))
    };
    let shown = |name: &str| directory.join(name).display().to_string();
    let (port, tls) = (free_port().to_string(), free_port().to_string());
    let at = ["--port", &port];
    for (arguments, path) in [
        (&["no.conf"][..], shown("no.conf")),
        (&["--dir", "no/folder"], shown("no/folder")),
        (&["--logfile", "no/log"], shown("no/log")),
        (&["--aclfile", "no.acl"], shown("no.acl")),
        (
            &[
                "--tls-port",
                &tls,
                "--tls-auth-clients",
                "no",
                "--tls-cert-file",
                "no.crt",
                "--tls-key-file",
                "k",
            ],
            shown("no.crt"),
        ),
        (&["--encryption-key-file", "no.key"], shown("no.key")),
        (&["--save", ""], format!("(in {})", directory.display())),
    ] {
        let text = match arguments[0].starts_with("--") {
            true => said(&[&at, arguments].concat()),
            false => said(arguments),
        };
        assert!(text.contains(&path), "{arguments:?}: {text}");
    }
    fs::remove_dir_all(directory).unwrap();
}

#[test]
fn the_version_contains_the_commit_if_known() {
    let output = Command::new(program()).arg("--version").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let rest = text.strip_prefix(concat!("ember-server ", env!("CARGO_PKG_VERSION"))).unwrap().trim_end();
    let commit = rest.strip_prefix(" (commit ").and_then(|rest| rest.strip_suffix(')'));
    let is_commit = |text: &str| text.len() >= 7 && text.chars().all(|letter| letter.is_ascii_hexdigit());
    assert!(rest.is_empty() || commit.is_some_and(is_commit), "{text:?}");
}

#[test]
fn a_failed_start_is_logged_too() {
    let server = start(&[]);
    let directory = server.directory().to_owned();
    let log = directory.join("failed.log");
    let port = server.port().to_string();
    let at = ["--port", &port, "--bind", "127.0.0.1", "--logfile"];
    let mut again = Command::new(program());
    let said = ember_testkit::refusal(again.args(at).arg(&log).current_dir(&directory));
    let line = format!("Failed listening on port {port} of 127.0.0.1: ");
    assert!(said.contains(&line), "{said}");
    let log = fs::read_to_string(log).unwrap();
    assert!(log.contains("ERROR") && log.contains(&line), "{log}");
}
