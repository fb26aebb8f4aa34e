//! Command lines of check, repair, convert and restore: their output and exit codes, and that no original file is
//! changed.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use ember_persistence::aof::{AofDirectory, Batch};
use ember_persistence::encryption::{Encryption, Key, KeyRing};
use ember_persistence::files::{DirectoryLock, Disk, OsDisk};
use ember_persistence::rdb_file::{self, FILE_VERSION, SaveOptions};
use ember_storage::stores::{Checkpoint, EngineKind, Facts as StoredFacts, Position, Store, StoreOptions};

#[path = "../../ember-persistence/tests/support/mod.rs"]
mod support;

use support::{assert_same, begin_aof, load_file, must, sample, seen, start, write_keys};

/// A directory for one test.
struct Folder(PathBuf);

/// The output and exit status of ember-cli.
#[derive(Debug)]
struct Run {
    code: i32,
    out: String,
    err: String,
}

impl Folder {
    fn new() -> Folder {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("ember-file-tools-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Runs ember-cli in the directory.
    fn run(&self, arguments: &[&str]) -> Run {
        self.run_with_key(arguments, None)
    }

    fn run_with_key(&self, arguments: &[&str], key: Option<&str>) -> Run {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ember-cli"));
        command.args(arguments).current_dir(&self.0).env_remove("EMBER_ENCRYPTION_KEY");
        command.envs(key.map(|key| ("EMBER_ENCRYPTION_KEY", key)));
        let output = command.output().unwrap();
        Run {
            code: output.status.code().unwrap(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Writes a key file.
    fn write_keys(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
        fs::set_permissions(self.path(name), Permissions::from_mode(0o600)).unwrap();
    }

    /// Writes an RDB file that contains the sample keyspace.
    fn snapshot(&self, name: &str, encryption: &Encryption) -> PathBuf {
        let path = self.path(name);
        let options = SaveOptions { version: FILE_VERSION, is_packed: false, encryption };
        let local = sample(false);
        rdb_file::save(&disk(), &path, &options, |writer| write_keys(&local, writer)).unwrap();
        path
    }

    /// Writes an AOF of a base and two increments with 100 units each, in `appendonlydir`.
    fn aof(&self, encryption: &Encryption) {
        let directory = self.path("appendonlydir");
        let mut aof = AofDirectory::open(&disk(), &directory, "appendonly.aof", encryption).unwrap();
        let local = sample(false);
        let mut writer = begin_aof(&mut aof, &local);
        let mut batch = Batch::new();
        for number in 0..200i64 {
            batch.time(1000 + number);
            batch.command(&[b"RPUSH", b"log", number.to_string().as_bytes()]);
            if number % 10 == 9 {
                writer.append(&mut batch).unwrap();
                writer.sync().unwrap();
                batch.clear();
            }
            if number == 99 {
                aof.rotate(&mut writer).unwrap();
            }
        }
    }

    fn increment(&self, number: u64) -> PathBuf {
        self.path(&format!("appendonlydir/appendonly.aof.{number}.incr.aof"))
    }

    fn length_of_log(&self, directory: &str, encryption: &Encryption) -> i64 {
        let (mut local, _) = start(&disk(), self.path(directory), encryption).unwrap();
        must(&mut local, "LLEN log").integer().unwrap()
    }

    /// Returns the paths and contents of all files of the AOF.
    fn originals(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let entries = fs::read_dir(self.path("appendonlydir")).unwrap();
        let mut files: Vec<_> = entries
            .map(|entry| entry.unwrap().path())
            .map(|path| (path.clone(), fs::read(path).unwrap()))
            .collect();
        files.sort();
        files
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn disk() -> Arc<dyn Disk> {
    Arc::new(OsDisk)
}

fn hex(byte: u8) -> String {
    format!("{byte:02x}").repeat(32)
}

fn keyed(byte: u8) -> Encryption {
    Encryption::with(KeyRing::new(Key::new([byte; 32])))
}

fn change(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(path).unwrap();
    change(&mut bytes);
    fs::write(path, bytes).unwrap();
}

fn flip_in_the_middle(path: &Path) {
    change(path, |bytes| {
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
    });
}

#[test]
fn intact_files_are_reported_as_intact() {
    let folder = Folder::new();
    folder.snapshot("dump.rdb", &Encryption::off());
    folder.aof(&Encryption::off());
    let run = folder.run(&["check", "."]);
    assert_eq!((run.code, run.err.as_str()), (0, ""), "{run:?}");
    let lines: Vec<&str> = run.out.lines().collect();
    assert_eq!(lines.len(), 4, "{run:?}");
    assert!(
        lines[0].starts_with("./dump.rdb: intact, ") && lines[0].contains(": RDB version 10, "),
        "{run:?}"
    );
    assert!(lines[1].starts_with("./appendonlydir/appendonly.aof.1.base.rdb: intact, "), "{run:?}");
    assert!(
        lines[3].ends_with(": 100 commands in 100 units, with Unix timestamps from 1100 to 1199"),
        "{run:?}"
    );
    for path in ["appendonlydir", "appendonlydir/appendonly.aof.manifest"] {
        let run = folder.run(&["check", path]);
        assert_eq!((run.code, run.out.lines().count()), (0, 3), "{run:?}");
    }
}

#[test]
fn a_torn_end_is_found_and_truncated() {
    let folder = Folder::new();
    folder.aof(&Encryption::off());
    change(&folder.increment(2), |bytes| bytes.truncate(bytes.len() - 10));
    let before = folder.originals();
    let run = folder.run(&["check", "appendonlydir"]);
    assert_eq!(run.code, 1, "{run:?}");
    assert!(run.err.contains("appendonly.aof.2.incr.aof at offset "), "{run:?}");
    assert!(run.err.contains("with `ember-cli repair appendonlydir --output NEW_DIRECTORY`"), "{run:?}");
    let run = folder.run(&["repair", "appendonlydir", "--output", "repaired"]);
    assert_eq!((run.code, run.err.as_str()), (0, ""), "{run:?}");
    assert!(run.out.contains(" are torn: "), "{run:?}");
    assert!(run.out.contains("stop the server and replace appendonlydir with it"), "{run:?}");
    assert_eq!(folder.originals(), before);
    assert_eq!(folder.run(&["check", "repaired"]).code, 0);
    assert_eq!(folder.length_of_log("repaired", &Encryption::off()), 190);
    let again = folder.run(&["repair", "appendonlydir", "--output", "repaired"]);
    assert_eq!(again.code, 2, "{again:?}");
    assert!(again.err.contains("already exists and is not overwritten"), "{again:?}");
}

#[test]
fn missing_bytes_are_found_and_earlier_data_kept() {
    for encryption in [Encryption::off(), keyed(7)] {
        let folder = Folder::new();
        folder.aof(&encryption);
        change(&folder.increment(2), |bytes| {
            let middle = bytes.len() / 2;
            bytes.drain(middle..middle + 3);
        });
        folder.write_keys("key", &hex(7));
        let key = ["--encryption-key-file", "key"];
        let run = folder.run(&[&["check", "appendonlydir"][..], &key].concat());
        assert_eq!(run.code, 1, "{run:?}");
        assert!(
            run.err.contains("appendonly.aof.2.incr.aof at offset ") && !run.err.contains("torn"),
            "{run:?}"
        );
        let run = folder.run(&[&["repair", "appendonlydir", "--output", "repaired"][..], &key].concat());
        assert_eq!(run.code, 0, "{run:?}");
        let kept = folder.length_of_log("repaired", &encryption);
        assert!((100..200).contains(&kept), "{kept}");
    }
}

#[test]
fn an_aof_in_use_by_a_server_is_checked_but_not_copied() {
    let folder = Folder::new();
    folder.aof(&Encryption::off());
    fs::copy(folder.path("appendonlydir/appendonly.aof.1.base.rdb"), folder.path("dump.rdb")).unwrap();
    let lock = DirectoryLock::take(&folder.0, "process 7, port 6379").unwrap();
    for path in ["appendonlydir", "appendonlydir/appendonly.aof.2.incr.aof"] {
        assert_eq!(folder.run(&["check", path]).code, 0);
        for line in [&["repair", path, "-o", "new"][..], &["convert", path, "-o", "new", "--to", "plain"]] {
            let run = folder.run(line);
            assert_eq!((run.code, run.out.as_str()), (2, ""), "{run:?}");
            assert!(run.err.contains("is in use by a server (process 7, port 6379)"), "{run:?}");
            assert!(!folder.path("new").exists());
        }
    }
    assert_eq!(folder.run(&["repair", "dump.rdb", "-o", "new.rdb"]).code, 0);
    drop(lock);
    assert_eq!(folder.run(&["repair", "appendonlydir", "-o", "new"]).code, 0);
}

#[test]
fn damage_in_the_middle_is_found_and_earlier_data_kept() {
    for encryption in [Encryption::off(), keyed(7)] {
        let folder = Folder::new();
        folder.aof(&encryption);
        folder.write_keys("key", &hex(7));
        flip_in_the_middle(&folder.increment(1));
        let before = folder.originals();
        let key = ["--encryption-key-file", "key"];
        let run = folder.run(&[&["check", "appendonlydir"][..], &key].concat());
        assert_eq!((run.code, run.out.lines().count()), (1, 2), "{run:?}");
        assert!(
            run.err.starts_with("ember-cli: appendonlydir/appendonly.aof.1.incr.aof at offset "),
            "{run:?}"
        );
        assert!(
            run.err.ends_with("with `ember-cli repair appendonlydir --output NEW_DIRECTORY`\n"),
            "{run:?}"
        );
        let run = folder.run(&[&["repair", "appendonlydir", "--output", "new"][..], &key].concat());
        assert_eq!(run.code, 0, "{run:?}");
        assert!(run.out.contains("appendonly.aof.2.incr.aof: left out"), "{run:?}");
        let why = run.out.split("reason: ").nth(1).unwrap().lines().next().unwrap();
        assert!(why.contains("appendonly.aof.1.incr.aof at offset ") && !why.contains("repair"), "{why}");
        assert_eq!(folder.originals(), before);
        let checked = folder.run(&[&["check", "new"][..], &key].concat());
        assert_eq!(checked.code, 0, "{checked:?}");
        assert_eq!(checked.out.matches(", encrypted: ").count(), if encryption.is_on() { 2 } else { 0 });
        let kept = folder.length_of_log("new", &encryption);
        assert!(kept % 10 == 0 && (30..70).contains(&kept), "{kept}");
    }
}

#[test]
fn an_aof_can_be_restored_to_a_point_in_time() {
    let folder = Folder::new();
    folder.aof(&Encryption::off());
    for (until, expected) in [("1042", 43), ("1970-01-01T00:17:22.5Z", 43), ("-1m", 200)] {
        let copy = format!("until-{until}");
        let run = folder.run(&["repair", "appendonlydir", "--output", &copy, "--until", until]);
        assert_eq!(run.code, 0, "{run:?}");
        assert_eq!(folder.length_of_log(&copy, &Encryption::off()), expected, "{until}");
    }
    for until in ["", "0", "yesterday"] {
        let run = folder.run(&["repair", "appendonlydir", "--output", "none", "--until", until]);
        assert_eq!(run.code, 2, "{run:?}");
        assert!(run.err.contains(&format!("--until: '{until}' is not a time: use Unix time")), "{run:?}");
    }
    assert!(!folder.path("none").exists());
}

/// Restores the AOF to a Unix time in s, and returns the length of the list in the file.
fn restored_length(folder: &Folder, to: &str, name: &str) -> i64 {
    let run = folder.run(&["restore", "--to", to, "--out", name]);
    assert_eq!(run.code, 0, "{run:?}");
    let (mut local, _) = load_file(&OsDisk, &folder.path(name), 1).unwrap();
    must(&mut local, "LLEN log").integer().unwrap()
}

#[test]
fn the_data_set_of_an_earlier_time_is_written_to_an_rdb_file() {
    let folder = Folder::new();
    folder.aof(&Encryption::off());
    let before = folder.originals();
    for (to, expected) in [("1000", 1), ("1042", 43), ("1970-01-01T00:17:22.5Z", 43), ("1099", 100)] {
        assert_eq!(restored_length(&folder, to, &format!("to-{to}.rdb")), expected, "{to}");
    }
    for (to, name) in [("1100", "second"), ("-1h", "hour"), ("now", "now"), ("1199", "last")] {
        let expected = if to == "1100" { 101 } else { 200 };
        assert_eq!(restored_length(&folder, to, name), expected, "{to}");
    }
    let run = folder.run(&["restore", "--to", "1042", "--dry-run", "--dir", "appendonlydir"]);
    assert_eq!(run.code, 0, "{run:?}");
    let said: Vec<&str> = run.out.lines().collect();
    let (mut expected, keys) = (sample(false), 1);
    let keys = seen(&mut expected).len() + keys;
    assert_eq!(
        said,
        [
            "restored to the end of the second 1970-01-01T00:17:22Z (1042)",
            "base: appendonlydir/appendonly.aof.1.base.rdb",
            "increment: appendonlydir/appendonly.aof.1.incr.aof",
            "last timestamp: 1970-01-01T00:17:22Z (1042)",
            &format!("{keys} keys, after 43 commands"),
            "nothing is written, because of --dry-run",
        ]
    );
    // An existing file is not overwritten, and no other file is written.
    let run = folder.run(&["restore", "--to", "1042", "--out", "second"]);
    assert_eq!((run.code, run.err.contains("second already exists")), (2, true), "{run:?}");
    assert_eq!(folder.originals(), before);
    let (mut local, _) = load_file(&OsDisk, &folder.path("to-1042.rdb"), 1).unwrap();
    must(&mut local, "DEL log");
    // Version 10 of the format does not store when consumers of streams were last active.
    must(&mut local, "DEL stream");
    must(&mut expected, "DEL stream");
    assert_same(&seen(&mut local), &seen(&mut expected));
}

#[test]
fn a_time_that_the_files_do_not_contain_is_an_error_that_names_those_they_contain() {
    let folder = Folder::new();
    folder.aof(&Encryption::off());
    let run = folder.run(&["restore", "--to", "1970-01-01T00:00:00.5Z", "--out", "new.rdb"]);
    assert_eq!(
        (run.code, run.err.trim_end()),
        (
            2,
            "ember-cli: 1970-01-01T00:00:00Z (0) cannot be restored: it is before the oldest data; the files contain \
             from 1970-01-01T00:00:01Z (1) to 1970-01-01T00:19:59Z (1199)"
        )
    );
    let run = folder.run(&["restore", "--to", "9999-01-01", "--out", "new.rdb"]);
    assert!(run.code == 2 && run.err.contains("it is in the future; the files contain from"), "{run:?}");
    for to in ["", "0", "-1", "yesterday", "1h", "2026-11-26T25:00:00Z", "1.5"] {
        let run = folder.run(&["restore", "--to", to, "--out", "new.rdb"]);
        assert!(run.code == 2 && run.err.contains(&format!("--to: '{to}' is not a time")), "{to}: {run:?}");
    }
    // Damage after the time is no obstacle; damage before it is named.
    flip_in_the_middle(&folder.increment(1));
    let run = folder.run(&["restore", "--to", "1099", "--out", "new.rdb"]);
    assert!(run.code == 1 && run.err.contains("appendonly.aof.1.incr.aof at offset"), "{run:?}");
    assert_eq!(restored_length(&folder, "1010", "early.rdb"), 11);
    assert!(!folder.path("new.rdb").exists());
}

#[test]
fn the_restored_file_is_encrypted_if_the_aof_is() {
    let folder = Folder::new();
    folder.aof(&keyed(1));
    folder.write_keys("keys", &hex(1));
    let restore = |key: Option<&str>, more: &[&str], name: &str| {
        folder.run_with_key(&[&["restore", "--to", "1042", "--out", name], more].concat(), key)
    };
    for (run, name) in [
        (restore(Some(&hex(1)), &[], "one"), "one"),
        (restore(None, &["--encryption-key-file", "keys"], "two"), "two"),
    ] {
        assert_eq!(run.code, 0, "{run:?}");
        let checked = folder.run_with_key(&["check", name], Some(&hex(1)));
        assert!(checked.out.contains(", encrypted"), "{checked:?}");
    }
    let run = restore(None, &[], "three");
    assert!(run.code == 2 && run.err.contains("encrypted"), "{run:?}");
    let run = restore(Some(&hex(2)), &[], "three");
    assert!(run.code == 2 && run.err.contains("appendonly"), "{run:?}");
    assert!(!folder.path("three").exists());
}

#[test]
fn the_directory_of_a_restore_must_contain_one_aof() {
    let folder = Folder::new();
    let restore = |more: &[&str]| folder.run(&[&["restore", "--to", "1042"], more].concat());
    folder.snapshot("dump.rdb", &Encryption::off());
    let run = restore(&["--dry-run"]);
    assert!(run.code == 2 && run.err.contains("no AOF in ."), "{run:?}");
    folder.aof(&Encryption::off());
    assert_eq!(restore(&["--dry-run"]).code, 0);
    assert_eq!(restore(&["--dry-run", "--dir", "appendonlydir/appendonly.aof.manifest"]).code, 0);
    let run = restore(&[]);
    assert!(run.code == 2 && run.err.contains("--out"), "{run:?}");
    let run = restore(&["--dry-run", "--databases", "0"]);
    assert!(run.code == 2 && run.err.contains("must be a number from 1 to"), "{run:?}");
    let run = restore(&["--dry-run", "--databases", "9"]);
    assert!(run.code == 2 && run.err.contains("there is no database 9"), "{run:?}");
    fs::create_dir(folder.path("other")).unwrap();
    let manifest = folder.path("appendonlydir/appendonly.aof.manifest");
    fs::copy(manifest, folder.path("other/other.manifest")).unwrap();
    let run = restore(&["--dry-run"]);
    assert!(run.code == 2 && run.err.contains("several AOFs"), "{run:?}");
    fs::remove_dir_all(folder.path("other")).unwrap();
    // The log of a store is not a data set, so it cannot be restored.
    fill_store(EngineKind::Redb, &folder.0, &Encryption::off());
    let run = restore(&["--dry-run"]);
    assert!(run.code == 2 && run.err.contains("is in a store of redb"), "{run:?}");
}

#[test]
fn a_truncated_snapshot_is_found_and_its_keys_kept() {
    let folder = Folder::new();
    let path = folder.snapshot("dump.rdb", &Encryption::off());
    change(&path, |bytes| bytes.truncate(bytes.len() * 3 / 4));
    let before = fs::read(&path).unwrap();
    let run = folder.run(&["check", "dump.rdb"]);
    assert_eq!(run.code, 1, "{run:?}");
    assert!(
        run.err.starts_with("ember-cli: dump.rdb at offset ")
            && run.err.contains(": the file ends too early"),
        "{run:?}"
    );
    assert!(run.err.ends_with("with `ember-cli repair dump.rdb --output NEW_FILE`\n"), "{run:?}");
    let run = folder.run(&["repair", "dump.rdb", "--output", "new.rdb"]);
    assert_eq!(run.code, 0, "{run:?}");
    let keys = run.out.split("the ").nth(1).unwrap().split(' ').next().unwrap().parse::<u64>().unwrap();
    assert_eq!(fs::read(&path).unwrap(), before);
    let run = folder.run(&["check", "new.rdb"]);
    assert_eq!(run.code, 0, "{run:?}");
    assert!(run.out.contains(&format!("version 10, {keys} keys")) && keys > 1000, "{run:?}");
}

#[test]
fn lost_keys_are_listed() {
    let folder = Folder::new();
    let path = folder.snapshot("dump.rdb", &Encryption::off());
    change(&path, |bytes| {
        let at = bytes.windows(6).position(|window| window == b"intset").unwrap();
        // Damages the width of the vector index's elements.
        bytes[at + 7] = 3;
    });
    let run = folder.run(&["repair", "dump.rdb", "-o", "new.rdb"]);
    assert_eq!(run.code, 0, "{run:?}");
    assert_eq!(run.out.matches("  lost: the key 'intset': ").count(), 1, "{run:?}");
    assert!(!seen(&mut load_file(&OsDisk, &folder.path("new.rdb"), 0).unwrap().0).is_empty());
}

#[test]
fn encrypted_files_need_their_key() {
    let folder = Folder::new();
    folder.snapshot("dump.rdb", &keyed(7));
    let none = folder.run(&["check", "dump.rdb"]);
    assert_eq!(none.code, 2, "{none:?}");
    assert!(none.err.contains("EMBER_ENCRYPTION_KEY"), "{none:?}");
    let wrong = folder.run_with_key(&["check", "dump.rdb"], Some(&hex(8)));
    assert_eq!(wrong.code, 2, "{wrong:?}");
    assert!(wrong.err.contains(&Key::new([7; 32]).fingerprint()), "{wrong:?}");
    let right = folder.run_with_key(&["check", "dump.rdb"], Some(&hex(7)));
    assert_eq!(right.code, 0, "{right:?}");
    assert!(right.out.contains(", encrypted: RDB version "), "{right:?}");
    folder.write_keys("key", "secret");
    let bad = folder.run(&["check", "dump.rdb", "--encryption-key-file", "key"]);
    assert_eq!(bad.code, 2, "{bad:?}");
    assert!(
        bad.err.contains("cannot load keys from key: line 1 is not a key") && !bad.err.contains("secret"),
        "{bad:?}"
    );
    flip_in_the_middle(&folder.path("dump.rdb"));
    let damaged = folder.run_with_key(&["check", "dump.rdb"], Some(&hex(7)));
    assert_eq!(damaged.code, 1, "{damaged:?}");
    assert!(damaged.err.contains("it was altered"), "{damaged:?}");
}

#[test]
fn files_are_converted_both_ways_and_reencrypted_with_another_key() {
    let folder = Folder::new();
    let path = folder.snapshot("dump.rdb", &Encryption::off());
    folder.aof(&Encryption::off());
    folder.write_keys("both", &format!("{}\n{}\n", hex(8), hex(7)));
    let both = ["--encryption-key-file", "both"];
    let convert = |from: &str, to: &str, form: &str, key: Option<&str>, more: &[&str]| {
        let arguments = [&["convert", from, "--output", to, "--to", form][..], more].concat();
        let run = folder.run_with_key(&arguments, key);
        assert_eq!((run.code, run.err.as_str()), (0, ""), "{run:?}");
    };
    convert("dump.rdb", "a.rdb", "encrypted", Some(&hex(7)), &[]);
    convert("a.rdb", "b.rdb", "encrypted", None, &both);
    convert("b.rdb", "c.rdb", "plain", Some(&hex(8)), &[]);
    assert_eq!(fs::read(folder.path("c.rdb")).unwrap(), fs::read(&path).unwrap());
    assert_same(
        &seen(&mut load_file(&OsDisk, &folder.path("c.rdb"), 0).unwrap().0),
        &seen(&mut load_file(&OsDisk, &path, 0).unwrap().0),
    );
    assert_eq!(folder.run_with_key(&["check", "b.rdb"], Some(&hex(8))).code, 0);
    convert("appendonlydir", "sealed", "encrypted", Some(&hex(7)), &[]);
    assert_eq!(folder.length_of_log("sealed", &keyed(7)), 200);
    convert("sealed", "plain", "plain", None, &both);
    assert_eq!(folder.length_of_log("plain", &Encryption::off()), 200);
    let run = folder.run(&["convert", "dump.rdb", "-o", "d.rdb", "--to", "encrypted"]);
    assert_eq!(run.code, 2, "{run:?}");
    assert!(run.err.contains("there is no encryption key") && !folder.path("d.rdb").exists(), "{run:?}");
}

#[test]
fn a_key_file_readable_by_others_is_refused_as_by_the_server() {
    let folder = Folder::new();
    let path = folder.snapshot("dump.rdb", &keyed(7));
    folder.write_keys("key", &hex(7));
    for (mode, is_refused) in [(0o604, true), (0o602, true), (0o640, false)] {
        fs::set_permissions(folder.path("key"), Permissions::from_mode(mode)).unwrap();
        for more in [&["check"][..], &["repair", "-o", "r.rdb"], &["convert", "-o", "c.rdb", "--to", "plain"]]
        {
            let run = folder.run(&[more, &["dump.rdb", "--encryption-key-file", "key"]].concat());
            let refused = format!(
                "ember-cli: cannot load keys from key: its permissions {mode:04o} are too open: remove those of other \
                 users (chmod o= 'key')\n"
            );
            let expected = if is_refused { (2, refused.as_str()) } else { (0, "") };
            assert_eq!((run.code, run.err.as_str()), expected, "{mode:o}: {run:?}");
        }
    }
    assert!(path.exists() && folder.path("c.rdb").exists());
}

#[test]
fn unfinished_files_are_skipped() {
    let folder = Folder::new();
    folder.aof(&Encryption::off());
    let leftover = "temp-ember-1-0-appendonly.aof.manifest";
    fs::write(folder.path("appendonlydir").join(leftover), "half").unwrap();
    fs::write(folder.path("temp-ember-1-0-dump.rdb"), "REDIS").unwrap();
    let run = folder.run(&["convert", "appendonlydir", "-o", "new", "--to", "plain"]);
    assert_eq!((run.code, run.err.as_str()), (0, ""), "{run:?}");
    assert_eq!(folder.length_of_log("new", &Encryption::off()), 200);
    let run = folder.run(&["check", "."]);
    assert_eq!((run.code, run.err.as_str()), (0, ""), "{run:?}");
    assert!(!run.out.contains("temp-ember"), "{run:?}");
}

#[test]
fn a_manifest_that_names_missing_files_is_damage() {
    let folder = Folder::new();
    folder.aof(&Encryption::off());
    fs::remove_file(folder.increment(1)).unwrap();
    let run = folder.run(&["check", "appendonlydir"]);
    assert_eq!(run.code, 1, "{run:?}");
    assert!(run.err.contains("appendonly.aof.1.incr.aof is named by the manifest but is missing"), "{run:?}");
    assert_eq!(folder.run(&["repair", "appendonlydir", "-o", "new"]).code, 1);
}

#[test]
fn wrong_command_lines_and_missing_files_exit_with_two() {
    let folder = Folder::new();
    fs::write(folder.path("text"), "hello").unwrap();
    fs::create_dir(folder.path("empty")).unwrap();
    for arguments in [
        &["check"][..],
        &["check", "none.rdb"],
        &["check", "text"],
        &["check", "empty"],
        &["repair", "text"],
        &["repair", "text", "--output", "copy"],
        &["convert", "text", "--output", "copy"],
        &["convert", "text", "--output", "copy", "--to", "plain"],
        &["check", "--encryption-key", "00", "text"],
    ] {
        let run = folder.run(arguments);
        assert!(run.code == 2 && !run.err.is_empty(), "{arguments:?} {run:?}");
        assert!(!folder.path("copy").exists());
    }
}

/// Creates a store with 300 keys in a separate directory.
fn fill_store(kind: EngineKind, directory: &Path, encryption: &Encryption) {
    let options =
        StoreOptions { cache_bytes: 4 << 20, write_buffer_bytes: 4 << 20, encryption: encryption.clone() };
    let store = Store::open(kind, &disk(), directory, &options).unwrap();
    let position = Position { increment: 7, ..Position::default() };
    let fill = &mut |checkpoint: &mut Checkpoint<'_>| {
        for number in 0..300_u32 {
            let key = format!("key {number}").into_bytes();
            let value = format!("{number}:").repeat(1 + number as usize % 40).into_bytes();
            let facts = StoredFacts {
                database: 0,
                key: &key,
                kind: 0,
                encoding: 0,
                memory_bytes: 64,
                stored_bytes: 0,
                expiry: None,
                element_expiry: None,
            };
            checkpoint.put(&facts, &value)?;
        }
        Ok(())
    };
    store.checkpoint(&position, fill).unwrap();
}

/// Returns the files below a folder, with their contents.
fn all_files(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(all_files(&path));
        } else {
            found.push((path.clone(), fs::read(path).unwrap()));
        }
    }
    found.sort();
    found
}

#[test]
fn intact_stores_are_reported_as_intact() {
    for kind in EngineKind::ALL {
        let folder = Folder::new();
        fill_store(kind, &folder.path("data"), &Encryption::off());
        let before = all_files(&folder.0);
        let files = format!("data/{}", kind.file_name());
        for path in ["data", &files] {
            let run = folder.run(&["check", path]);
            assert_eq!((run.code, run.err.as_str()), (0, ""), "{run:?}");
            assert!(run.out.starts_with(&format!("{files}: intact, ")), "{run:?}");
            let facts = format!(": {kind} store, 300 keys, ");
            assert!(run.out.contains(&facts) && run.out.ends_with("with increment 7\n"), "{run:?}");
        }
        assert!(all_files(&folder.0) == before, "{kind}: the original is only read, and no file is left");
        folder.snapshot("data/dump.rdb", &Encryption::off());
        let run = folder.run(&["check", "data"]);
        assert_eq!((run.code, run.out.lines().count()), (0, 2), "{run:?}");
        let run = folder.run(&["convert", &files, "--output", "copy", "--to", "plain"]);
        assert_eq!(run.code, 2, "{run:?}");
        let lock = DirectoryLock::take(&folder.path("data"), "4711 6379").unwrap();
        let run = folder.run(&["check", "data"]);
        assert!(run.code == 2 && run.err.contains("in use by a server (4711 6379)"), "{run:?}");
        drop(lock);
    }
}

#[test]
fn encrypted_stores_need_their_key() {
    for kind in EngineKind::ALL {
        let folder = Folder::new();
        fill_store(kind, &folder.path("data"), &keyed(5));
        let run = folder.run(&["check", "data"]);
        assert!(run.code == 2 && run.err.contains("encrypted and no key is given"), "{run:?}");
        let run = folder.run_with_key(&["check", "data"], Some(&hex(6)));
        assert!(run.code == 2 && run.err.contains("which is not given"), "{run:?}");
        let run = folder.run_with_key(&["check", "data"], Some(&hex(5)));
        assert!(run.code == 0 && run.out.contains(&format!("bytes, encrypted: {kind} store")), "{run:?}");
        folder.write_keys("keys", &hex(5));
        let run = folder.run(&["check", "data", "--encryption-key-file", "keys"]);
        assert_eq!(run.code, 0, "{run:?}");
        // A configured key that is only for other files is no error.
        fill_store(kind, &folder.path("plain"), &Encryption::off());
        assert_eq!(folder.run_with_key(&["check", "plain"], Some(&hex(5))).code, 0);
    }
}

#[test]
fn damage_anywhere_in_a_store_is_found() {
    for kind in EngineKind::ALL {
        let folder = Folder::new();
        fill_store(kind, &folder.path("data"), &Encryption::off());
        let files = all_files(&folder.path("data"));
        // Non-zero bytes are in use; most zero bytes are unused space.
        let is_used = |bytes: &[u8], at: usize| bytes[at] != 0;
        let places: Vec<(usize, usize)> = (0..files.len())
            .filter(|&file| !files[file].0.ends_with("lock.mdb"))
            .flat_map(|file| (0..files[file].1.len()).map(move |at| (file, at)))
            .filter(|&(file, at)| is_used(&files[file].1, at))
            .collect();
        let mut found = 0;
        for step in 0..24 {
            let (file, at) = places[(step * 7919 + 13) * 104_729 % places.len()];
            let (path, bytes) = &files[file];
            change(path, |bytes| bytes[at] ^= 0x55);
            let run = folder.run(&["check", "data"]);
            assert!((0..=2).contains(&run.code), "{kind} {} at {at}: {run:?}", path.display());
            assert_eq!(run.code == 0, run.err.is_empty(), "{run:?}");
            found += u32::from(run.code > 0);
            if run.code == 0 {
                // The changed byte was not in use; or fjall treats the change as a torn end of its journal.
                let is_all = run.out.contains("300 keys");
                assert!(is_all || run.out.contains("all data are in its log"), "{run:?}");
            }
            assert!(!run.err.contains("panicked"), "{run:?}");
            fs::write(path, bytes).unwrap();
        }
        println!("{kind}: {found} of 24 found");
        assert!(found >= 3, "{kind}: {found}");
        for (path, _) in files.iter().filter(|(path, _)| !path.ends_with("lock.mdb")) {
            fs::write(path, b"no store at all").unwrap();
        }
        let run = folder.run(&["check", "data"]);
        assert!(run.code > 0, "{run:?}");
    }
}
