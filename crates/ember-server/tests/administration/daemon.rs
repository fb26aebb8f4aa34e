//! A server in the background, and a server that stops its own process to notify its supervisor.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use ember_testkit::{RawClient, free_port};

use crate::{MODES, builder, program, wait_until};

/// Returns a field of `/proc/<pid>/stat`, numbered as in proc(5): the parent (4), the session (6), ….
fn stat(pid: &str, field: usize) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_whitespace().nth(field - 3).map(str::to_owned)
}

/// Reads a file as soon as it is complete.
fn line_of(path: &Path) -> String {
    let read = || fs::read_to_string(path).ok().filter(|text| text.ends_with('\n'));
    wait_until("the file is written", || read().is_some());
    read().unwrap().trim().to_owned()
}

#[test]
fn a_daemon_has_a_separate_session() {
    for (mode, reads_input) in [(MODES[0], false), (MODES[1], true)] {
        let directory = builder(mode).start().crash();
        let port = free_port();
        let file =
            format!("port {port}\npidfile {0}/server.pid\nlogfile {0}/server.log\n", directory.display());
        let path = directory.join("redis.conf");
        fs::write(&path, &file).unwrap();
        let mut command = Command::new(program());
        command.args(mode).args(["--daemonize", "yes", "--dir", directory.to_str().unwrap()]);
        let mut started = if reads_input {
            command.arg("-").stdin(Stdio::piped()).spawn().unwrap()
        } else {
            command.args(["--config", path.to_str().unwrap()]).stdin(Stdio::null()).spawn().unwrap()
        };
        if let Some(mut input) = started.stdin.take() {
            input.write_all(file.as_bytes()).unwrap();
        }
        assert_eq!(started.wait().unwrap().code(), Some(0));
        let pid = line_of(&directory.join("server.pid"));
        assert_ne!(pid, started.id().to_string());
        wait_until("the daemon answers", || {
            fs::read_to_string(directory.join("server.log")).unwrap().contains("Ready to accept connections")
        });
        assert_eq!(stat(&pid, 6).as_ref(), Some(&pid), "the daemon is a session leader");
        let mut client = RawClient::connect(format!("127.0.0.1:{port}").parse().unwrap()).unwrap();
        assert_eq!(client.run("PING").text(), "PONG");
        for descriptor in 0..3 {
            let target = fs::read_link(format!("/proc/{pid}/fd/{descriptor}")).unwrap();
            let is_input = descriptor == 0 && reads_input;
            assert!(is_input || target == Path::new("/dev/null"), "{descriptor}: {}", target.display());
        }
        client.send_command(&["SHUTDOWN", "NOSAVE"]).unwrap();
        wait_until("the daemon has ended", || !directory.join("server.pid").exists());
        fs::remove_dir_all(directory).unwrap();
    }
}

#[test]
fn errors_are_reported_before_the_server_daemonizes() {
    let output = Command::new(program()).args(["--daemonize", "yes", "--port", "x"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--port: argument couldn't be parsed"));
}

#[test]
fn a_server_under_upstart_stops_itself_when_ready() {
    let directory = builder(MODES[0]).start().crash();
    let (port, log) = (free_port().to_string(), directory.join("server.log"));
    let mut server = Command::new(program())
        .args(["--supervised", "auto", "--daemonize", "yes", "--port", &port])
        .args(["--dir", directory.to_str().unwrap(), "--logfile", log.to_str().unwrap()])
        .env_remove("NOTIFY_SOCKET")
        .env("UPSTART_JOB", "ember")
        .spawn()
        .unwrap();
    let pid = server.id().to_string();
    wait_until("the process stops", || stat(&pid, 3).as_deref() == Some("T"));
    assert!(fs::read_to_string(&log).unwrap().contains("Ready to accept connections"));
    let go_on = Command::new("kill").args(["-CONT", &pid]).status().unwrap();
    assert!(go_on.success());
    let mut client = RawClient::connect(format!("127.0.0.1:{port}").parse().unwrap()).unwrap();
    assert!(client.run("INFO server").text().contains("process_supervised:upstart"));
    client.send_command(&["SHUTDOWN", "NOSAVE"]).unwrap();
    assert!(server.wait().unwrap().success());
    fs::remove_dir_all(directory).unwrap();
}
