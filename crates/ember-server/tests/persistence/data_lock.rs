//! Two servers with one data directory: only one of them writes to it.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use ember_testkit::{Server, Value};

use crate::{Directory, builder, refusal, start_in};

const AOF: [&str; 2] = ["--appendonly", "yes"];

fn assert_names_the_holder(text: &str, directory: &Path, holder: &Server) {
    let directory = fs::canonicalize(directory).unwrap();
    assert_names(text, &directory.display().to_string(), holder);
}

/// Asserts that an error for a client names the holder of the lock, but only the last component of the directory's
/// path.
fn assert_names_the_holder_to_a_client(text: &str, directory: &Path, holder: &Server) {
    assert_names(text, &directory.file_name().unwrap().to_string_lossy(), holder);
}

fn assert_names(text: &str, directory: &str, holder: &Server) {
    for part in [
        &*format!("the data directory '{directory}' is used by another server"),
        &format!("(process {}, port {})", holder.pid(), holder.port()),
        "--dir",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn a_second_server_does_not_start_in_the_same_directory() {
    let directory = Directory::new("lock-second");
    for arguments in [&AOF[..], &["--save", "3600 1"]] {
        let server = start_in(&directory.0, arguments);
        server.client().run("INCR rounds");
        assert_names_the_holder(&refusal(&directory.0, &AOF, None), &directory.0, &server);
        assert_names_the_holder(&refusal(&directory.0, &["--save", "60 1"], None), &directory.0, &server);
        // The next server can start, however the previous one ended.
        drop(server.crash());
    }
    let server = start_in(&directory.0, &AOF);
    assert_eq!(server.client().run("GET rounds"), Value::from("1"));
}

#[test]
fn a_server_without_persistence_shares_a_directory_with_one_that_persists() {
    let directory = Directory::new("lock-beside");
    let writer = start_in(&directory.0, &AOF);
    writer.client().run("SET key writer");
    let other = start_in(&directory.0, &["--save", "", "--enable-debug-command", "yes"]);
    let mut client = other.client();
    client.run("SET key other");
    for words in [&["SAVE"][..], &["CONFIG", "SET", "appendonly", "yes"], &["CONFIG", "SET", "save", "60 1"]]
    {
        let reply = client.command(words);
        assert!(reply.is_error(), "{words:?}: {reply:?}");
        assert_names_the_holder_to_a_client(&reply.text(), &directory.0, &writer);
    }
    assert!(client.run("BGREWRITEAOF").is_error());
    assert_names_the_holder(&other.log(), &directory.0, &writer);
    for (name, value) in [("appendonly", "no"), ("save", "")] {
        let shown = client.run(&format!("CONFIG GET {name}"));
        assert_eq!(shown, Value::Array(vec![name.into(), value.into()]));
    }
    client.run("BGSAVE");
    while client.info("rdb_bgsave_in_progress") == "1" {}
    assert_eq!(client.info("rdb_last_bgsave_status"), "err");
    assert!(!directory.0.join("dump.rdb").exists());
    // Once no other server writes to the directory, this one can, and then excludes others.
    drop(writer.crash());
    assert_eq!(client.run("SAVE"), Value::ok());
    assert_names_the_holder(&refusal(&directory.0, &AOF, None), &directory.0, &other);
    drop(other);
    assert_eq!(start_in(&directory.0, &AOF).client().run("GET key"), Value::from("writer"));
}

#[test]
fn a_file_being_written_by_another_server_is_not_removed() {
    let directory = Directory::new("lock-leftover");
    let writer = start_in(&directory.0, &["--save", "3600 1"]);
    let unfinished = directory.0.join("temp-ember-1-0-dump.rdb");
    fs::write(&unfinished, b"REDIS0010").unwrap();
    drop(start_in(&directory.0, &[]));
    assert!(unfinished.exists());
    drop(writer.crash());
    drop(start_in(&directory.0, &[]));
    assert!(!unfinished.exists());
}

#[test]
fn a_server_loads_data_from_a_directory_it_cannot_lock() {
    let directory = Directory::new("lock-read-only");
    let server = start_in(&directory.0, &[]);
    let mut client = server.client();
    client.run("SET key value");
    client.run("SAVE");
    drop(server.crash());
    fs::remove_file(directory.0.join("ember.lock")).unwrap();
    // The root user can write to any file; a directory instead of the file prevents writing by every user.
    fs::create_dir(directory.0.join("ember.lock")).unwrap();
    fs::set_permissions(directory.0.join("ember.lock"), Permissions::from_mode(0o555)).unwrap();
    let server = builder(&["--save", "3600 1"]).directory(&directory.0).start();
    let mut client = server.client();
    assert_eq!(client.run("GET key"), Value::from("value"));
    assert!(server.log().contains("cannot lock ./ember.lock"), "{}", server.log());
    assert!(client.run("SAVE").text().contains("cannot lock ./ember.lock"));
}
