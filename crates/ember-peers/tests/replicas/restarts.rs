//! A restarted ember resumes replication, whichever server is its primary.

use std::path::PathBuf;
use std::thread;

use ember_peers::{Mode, Writer, require_program, require_valkey};
use ember_testkit::{Directory, Server, find_ember_server};

use crate::matrix::assert_same_contents;
use crate::replica::{MODES, start_other, wait_for_link};

/// The number of commands written before the shutdown, while the server is down, and after its restart.
const COMMANDS: usize = 2_000;

/// The arguments for each way to persist data.
const KEEPING: [&[&str]; 2] =
    [&["--save", "3600 1", "--appendonly", "no"], &["--save", "", "--appendonly", "yes"]];

fn start(directory: &Directory, mode: Mode, keeping: &[&str], primary: &Server) -> Server {
    let concurrent = if mode == Mode::Concurrent { "yes" } else { "no" };
    let of = format!("127.0.0.1 {}", primary.port());
    Server::builder(find_ember_server())
        .directory(&directory.0)
        .arguments(&["--concurrent", concurrent, "--shards", "2", "--replicaof", &of])
        .arguments(keeping)
        .start()
}

fn check_restart(program: PathBuf) {
    thread::scope(|scope| {
        for (mode, keeping) in MODES.iter().flat_map(|mode| KEEPING.map(|keeping| (*mode, keeping))) {
            let primary = start_other(program.clone(), &["--repl-backlog-size", "100mb"]);
            scope.spawn(move || {
                let directory = Directory::new(&format!("peers-restarts-{}", primary.port()));
                let mut writer = Writer::new(&primary, 5);
                writer.write(COMMANDS);
                let mut ember = start(&directory, mode, keeping, &primary);
                wait_for_link(&ember);
                writer.write(COMMANDS);
                assert_same_contents(&primary, &ember);
                ember.client().send(b"SHUTDOWN\r\n").unwrap();
                assert!(ember.wait().success(), "{}", ember.log());
                writer.write(COMMANDS);
                let ember = start(&directory, mode, keeping, &primary);
                wait_for_link(&ember);
                writer.write(COMMANDS);
                assert_same_contents(&primary, &ember);
                let counts = ["sync_full", "sync_partial_ok"].map(|name| primary.client().info(name));
                assert_eq!(counts, ["1", "1"], "{mode:?} {keeping:?}: {}", ember.log());
            });
        }
    });
}

#[test]
fn restarts_are_resumed_under_redis() {
    check_restart(require_program("redis-server"));
}

#[test]
fn restarts_are_resumed_under_valkey() {
    check_restart(require_valkey());
}
