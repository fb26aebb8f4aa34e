//! Files of the AOF that a rewrite has replaced: how long they are kept, and what the server reports about them.

use std::fs;
use std::path::Path;

use ember_testkit::{RawClient, Value, wait_until};

use crate::{Directory, MODES, start_in};

const KEEPING: [&str; 4] = ["--appendonly", "yes", "--aof-keep-seconds", "3600"];

fn rewrite(client: &mut RawClient) {
    assert!(!client.run("BGREWRITEAOF").is_error());
    wait_until("the rewrite is over", || client.info("aof_rewrite_in_progress") == "0");
    assert_eq!(client.info("aof_last_bgrewrite_status"), "ok");
}

/// Returns the names of the AOF's files, except the manifest.
fn files(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory.join("appendonlydir")).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.retain(|name| !name.ends_with(".manifest"));
    names.sort();
    names
}

fn manifest(directory: &Path) -> String {
    fs::read_to_string(directory.join("appendonlydir/appendonly.aof.manifest")).unwrap()
}

/// Returns the bytes of the files that the manifest marks as replaced.
fn replaced_bytes(directory: &Path) -> u64 {
    let text = manifest(directory);
    let names =
        text.lines().filter(|line| line.contains(" type h")).map(|line| line.split(' ').nth(1).unwrap());
    names.map(|name| fs::metadata(directory.join("appendonlydir").join(name)).unwrap().len()).sum()
}

#[test]
fn replaced_files_are_kept_for_the_configured_time() {
    for mode in MODES {
        let directory = Directory::new("kept");
        let server = start_in(&directory.0, &[mode, &KEEPING].concat());
        let mut client = server.client();
        for round in 0..3 {
            assert_eq!(client.run(&format!("SET key {round}")), Value::ok());
            rewrite(&mut client);
        }
        assert_eq!(files(&directory.0).len(), 7, "{}", manifest(&directory.0));
        let kept = replaced_bytes(&directory.0);
        assert!(kept > 0);
        assert_eq!(client.info("aof_kept_bytes"), kept.to_string());
        // The size of the AOF, on which automatic rewrites depend, does not include the kept files.
        let live: u64 = client.info("aof_current_size").parse().unwrap();
        let all: u64 = files(&directory.0)
            .iter()
            .map(|name| fs::metadata(directory.0.join("appendonlydir").join(name)).unwrap().len())
            .sum();
        assert_eq!(live, all - kept);
        let text = fs::read(directory.0.join("appendonlydir/appendonly.aof.1.incr.aof")).unwrap();
        assert!(String::from_utf8_lossy(&text).contains("#TS:"), "the files contain times");
        // A restart keeps the replaced files.
        drop(client);
        drop(server.crash());
        let server = start_in(&directory.0, &[mode, &KEEPING].concat());
        let mut client = server.client();
        assert_eq!(replaced_bytes(&directory.0), kept);
        assert_eq!(client.info("aof_kept_bytes"), kept.to_string());
        // A shorter time applies to files that are kept already.
        assert_eq!(client.run("CONFIG SET aof-keep-seconds 1"), Value::ok());
        wait_until("the files have expired", || client.info("aof_kept_bytes") == "0");
        assert_eq!(files(&directory.0).len(), 3);
        assert!(!manifest(&directory.0).contains(" type h"));
        assert_eq!(client.run("GET key"), Value::from("2"));
    }
}

#[test]
fn switched_off_nothing_is_kept() {
    for mode in MODES {
        let directory = Directory::new("kept-off");
        let server = start_in(&directory.0, &[mode, &KEEPING].concat());
        let mut client = server.client();
        client.run("SET key 1");
        rewrite(&mut client);
        assert_eq!(files(&directory.0).len(), 3);
        // A time of 0 that is set at run time removes the kept files.
        assert_eq!(client.run("CONFIG SET aof-keep-seconds 0"), Value::ok());
        wait_until("the files are removed", || client.info("aof_kept_bytes") == "0");
        assert_eq!(files(&directory.0).len(), 2);
        rewrite(&mut client);
        assert_eq!(files(&directory.0).len(), 2);
        // The next startup without `aof-keep-seconds` removes the kept files, too.
        assert_eq!(client.run("CONFIG SET aof-keep-seconds 3600"), Value::ok());
        rewrite(&mut client);
        assert_eq!(files(&directory.0).len(), 4);
        drop(client);
        drop(server.crash());
        let server = start_in(&directory.0, &[mode, &["--appendonly", "yes"]].concat());
        let mut client = server.client();
        assert_eq!(files(&directory.0).len(), 3, "a base and two increments");
        assert_eq!(
            (client.info("aof_kept_bytes"), client.run("GET key")),
            ("0".to_owned(), Value::from("1"))
        );
    }
}

#[test]
fn files_that_expired_while_no_server_ran_are_removed_at_startup() {
    let directory = Directory::new("kept-expired");
    let server = start_in(&directory.0, &KEEPING);
    let mut client = server.client();
    client.run("SET key 1");
    rewrite(&mut client);
    drop(client);
    drop(server.crash());
    let text = manifest(&directory.0);
    let (before, replaced) = text.split_once(" replaced ").unwrap();
    let (time, after) = replaced.split_once('\n').unwrap();
    let earlier = time.parse::<i64>().unwrap() - 3601;
    let path = directory.0.join("appendonlydir/appendonly.aof.manifest");
    fs::write(path, format!("{before} replaced {earlier}\n{after}")).unwrap();
    let server = start_in(&directory.0, &KEEPING);
    assert!(!files(&directory.0).contains(&"appendonly.aof.1.incr.aof".to_owned()));
    assert_eq!(server.client().info("aof_kept_bytes"), "0");
}

#[test]
fn a_file_that_begins_with_times_has_them_to_its_end() {
    let directory = Directory::new("kept-times");
    let server = start_in(&directory.0, &[&KEEPING[..], &["--appendfsync", "always"]].concat());
    let mut client = server.client();
    let times = |name: &str| {
        let text = fs::read(directory.0.join("appendonlydir").join(name)).unwrap();
        String::from_utf8_lossy(&text).matches("#TS:").count()
    };
    client.run("SET key 1");
    assert_eq!(client.run("CONFIG SET aof-keep-seconds 0"), Value::ok());
    let second = || std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let begun = second();
    wait_until("the second is over", || second() > begun);
    client.run("SET key 2");
    assert_eq!(times("appendonly.aof.1.incr.aof"), 2);
    rewrite(&mut client);
    client.run("SET key 3");
    assert_eq!(times("appendonly.aof.2.incr.aof"), 0);
}
