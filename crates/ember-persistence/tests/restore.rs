//! Restoring an AOF to an earlier moment: the result is exactly the data set of that moment, or an error that says which
//! moments the files contain.

#![allow(clippy::unwrap_used, reason = "a test")]

mod support;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ember_persistence::aof::{AofDirectory, AofFile, AofWriter, Batch, KEPT_FILES_MAX, Manifest};
use ember_persistence::check::FileError;
use ember_persistence::encryption::{Encryption, Key, KeyRing};
use ember_persistence::files::{Disk, Faults, FileReader, SimulatedDisk, StoredFile, read_whole};
use ember_persistence::rdb_file::{self, FILE_VERSION, KeyForm, RdbReader, SaveOptions, Step};
use ember_persistence::restore::{LibraryTexts, Range, RestoreError, Restored, Target, Unknown, restore};
use ember_protocol::{Args, Protocol};
use ember_testkit::{Random, Value, split_arguments};
use emberkv_core::local::Local;
use emberkv_core::types::limits::EncodingLimits;
use support::{RDB, Seen, assert_same, run, seen, start, write_keys};

const DIRECTORY: &str = "data/appendonlydir";
const MANIFEST: &str = "data/appendonlydir/appendonly.aof.manifest";
const OUTPUT: &str = "data/restored.rdb";

/// The first moment of the tests, as Unix time in s.
const BEGIN_S: i64 = 1_700_000_000;

/// A moment after all others.
const NOW_S: i64 = BEGIN_S + 1_000_000;

/// Libraries of functions by their order: each line of a code is a name.
#[derive(Debug, Default)]
struct Codes(Vec<Vec<u8>>);

impl LibraryTexts for Codes {
    fn add(&mut self, code: &[u8]) -> Result<(), String> {
        self.0.push(code.to_vec());
        Ok(())
    }

    fn change(&mut self, args: Args<'_>) -> Result<(), String> {
        match args.at(1) {
            b"LOAD" => self.add(args.at(args.len() - 1)),
            b"FLUSH" => {
                self.0.clear();
                Ok(())
            }
            _ => Err("unknown".to_owned()),
        }
    }

    fn codes(&self) -> Vec<Vec<u8>> {
        self.0.clone()
    }
}

fn encryptions() -> [Encryption; 2] {
    [Encryption::off(), Encryption::with(KeyRing::new(Key::new([7; 32])))]
}

fn restored(disk: &dyn Disk, to_s: i64, encryption: &Encryption) -> Result<(Restored, Codes), RestoreError> {
    let mut codes = Codes::default();
    let manifest = Path::new(MANIFEST);
    let target = Target { manifest, to_s, now_s: NOW_S, encryption, databases: 16 };
    restore(disk, &target, &mut codes).map(|restored| (restored, codes))
}

/// The values of all keys as clients see them. Encodings depend on how a value was built.
fn values(local: &mut Local) -> Seen {
    let mut values = seen(local);
    for replies in values.values_mut() {
        if !matches!(replies[0], Value::Integer(_)) {
            replies.remove(0);
        }
    }
    values
}

/// Restores a moment, writes the file, and returns the values in it.
fn values_at(
    disk: &Arc<dyn Disk>,
    to_s: i64,
    encryption: &Encryption,
) -> Result<(Seen, Restored), RestoreError> {
    let (restored, codes) = restored(disk.as_ref(), to_s, encryption)?;
    let path = Path::new(OUTPUT);
    let written = restored.save(disk, path, &codes, NOW_S, encryption)?;
    assert_eq!(written.keys, restored.keys(NOW_S).total);
    let opened =
        encryption.open(disk.open_to_read(path).unwrap(), ember_persistence::encryption::Ending::Whole);
    let mut reader = RdbReader::new(opened.unwrap(), path, EncodingLimits::DEFAULT).unwrap();
    let (mut local, _) = support::load(&mut reader, 0).unwrap();
    disk.remove(path).unwrap();
    Ok((values(&mut local), restored))
}

fn unknown(disk: &dyn Disk, to_s: i64) -> (Unknown, Option<Range>) {
    match restored(disk, to_s, &Encryption::off()) {
        Err(RestoreError::Moment { to_s: named, why, range }) => {
            assert_eq!(named, to_s);
            (why, range)
        }
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("{to_s} was restored"),
    }
}

/// A server with an AOF whose clock the test sets, and the values that it had at the end of each second.
struct Life {
    disk: SimulatedDisk,
    encryption: Encryption,
    aof: AofDirectory,
    writer: AofWriter,
    local: Local,
    now_s: i64,
    /// The last timestamp in the current file, as the server writes it.
    written_s: Option<i64>,
    has_database: bool,
    has_times: bool,
    /// The values at the end of each second with a change.
    states: BTreeMap<i64, Seen>,
    /// The last time up to which the files are known to contain all changes: a timestamp, or the time of a base.
    known_s: i64,
    /// Times between which changes were not recorded: after the first, and before the second.
    gaps: Vec<(i64, i64)>,
}

impl Life {
    fn new(seed: u64, encryption: &Encryption) -> Life {
        let disk = SimulatedDisk::new(seed);
        let shared: Arc<dyn Disk> = Arc::new(disk.clone());
        let (local, mut aof) = start(&shared, DIRECTORY, encryption).unwrap();
        aof.set_keep_s(1_000_000);
        let writer = aof.begin_increment().unwrap();
        Life {
            disk,
            encryption: encryption.clone(),
            aof,
            writer,
            local,
            now_s: BEGIN_S,
            written_s: None,
            has_database: false,
            has_times: true,
            states: BTreeMap::new(),
            known_s: BEGIN_S,
            gaps: Vec::new(),
        }
    }

    fn shared(&self) -> Arc<dyn Disk> {
        Arc::new(self.disk.clone())
    }

    /// Runs commands in one unit, and appends them to the file.
    fn unit(&mut self, lines: &[&str]) {
        let mut batch = Batch::new();
        if self.has_times && self.written_s != Some(self.now_s) {
            batch.time(self.now_s);
            self.written_s = Some(self.now_s);
            self.known_s = self.now_s;
        }
        let database = self.local.database.to_string();
        if !self.has_database {
            batch.command(&[b"SELECT", database.as_bytes()]);
            self.has_database = true;
        }
        if lines.len() > 1 {
            batch.command(&[b"MULTI"]);
        }
        for line in lines {
            let words = split_arguments(line).unwrap();
            let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
            match words[0] {
                b"SELECT" => self.local.database = line.split(' ').nth(1).unwrap().parse().unwrap(),
                _ => assert!(!run(&mut self.local, &words).is_error(), "{line}"),
            }
            batch.command(&words);
        }
        if lines.len() > 1 {
            batch.command(&[b"EXEC"]);
        }
        self.writer.append(&mut batch).unwrap();
    }

    /// Records the values of this second, and continues `seconds` later.
    fn wait(&mut self, seconds: i64) {
        let database = self.local.database;
        let values = values(&mut self.local);
        self.local.database = database;
        self.states.insert(self.now_s, values);
        self.now_s += seconds;
    }

    fn begin_file(&mut self) {
        (self.written_s, self.has_database) = (None, false);
    }

    /// Rewrites the AOF; without `ends`, writing the base fails. During the rewrite, `meanwhile` runs.
    fn rewrite(&mut self, form: KeyForm, ends: bool, meanwhile: impl FnOnce(&mut Life)) {
        self.aof.rotate(&mut self.writer).unwrap();
        self.begin_file();
        let (rewrite, taken_s) = (self.aof.begin_rewrite().taken_at(self.now_s), self.now_s);
        let base = self.aof.begin_base(form).unwrap();
        let local = &self.local;
        self.aof.write_base(&base, |writer| write_keys(local, writer)).unwrap();
        meanwhile(self);
        if ends {
            self.aof.finish_rewrite(rewrite, base).unwrap();
            self.known_s = self.known_s.max(taken_s);
        }
    }

    /// Starts the server again, after it was killed.
    fn restart(&mut self) {
        let disk = self.shared();
        let database = self.local.database;
        (self.local, self.aof) = start(&disk, DIRECTORY, &self.encryption).unwrap();
        self.local.database = database;
        self.aof.set_keep_s(1_000_000);
        self.writer = self.aof.begin_increment().unwrap();
        self.begin_file();
    }

    /// Switches the AOF off, and on again `seconds` later; the changes in between are not recorded.
    fn interrupt(&mut self, seconds: i64, form: KeyForm) {
        self.writer.sync().unwrap();
        let last_s = self.known_s;
        self.wait(seconds);
        run(&mut self.local, &[b"INCR", b"unrecorded"]);
        let (writer, rewrite) = self.aof.begin_replacement().unwrap();
        self.writer = writer;
        self.begin_file();
        let base = self.aof.begin_base(form).unwrap();
        let local = &self.local;
        self.aof.write_base(&base, |writer| write_keys(local, writer)).unwrap();
        self.aof.finish_rewrite(rewrite.taken_at(self.now_s), base).unwrap();
        self.gaps.push((last_s, self.now_s));
        self.known_s = self.now_s;
    }

    /// Checks that a moment is restored exactly, or is in a gap.
    fn check(&self, disk: &Arc<dyn Disk>, to_s: i64) {
        let found = values_at(disk, to_s, &self.encryption);
        if self.gaps.iter().any(|&(last_s, base_s)| last_s < to_s && to_s < base_s) {
            let error = found.map(drop).unwrap_err();
            assert!(
                matches!(error, RestoreError::Moment { why: Unknown::Gap { .. }, .. }),
                "{to_s}: {error}"
            );
            return;
        }
        let Some((_, expected)) = self.states.range(..=to_s).next_back() else {
            let error = found.map(drop).unwrap_err();
            assert!(matches!(error, RestoreError::Moment { why: Unknown::TooOld, .. }), "{to_s}: {error}");
            return;
        };
        let (found, _) = found.unwrap_or_else(|error| panic!("{to_s}: {error}"));
        assert_same(&found, expected);
    }
}

/// Returns a random change of a key.
fn random_line(random: &mut Random) -> String {
    let key = random.below(4);
    let value = random.below(1000);
    match random.below(17) {
        0 | 1 => format!("SET s{key} {value}"),
        2 => format!("APPEND s{key} -{value}"),
        3 | 4 => format!("RPUSH l{key} {value} x"),
        5 => format!("LPOP l{key}"),
        6 => format!("HSET h{key} f{} {value}", value % 5),
        7 => format!("HDEL h{key} f{}", value % 5),
        8 => format!("SADD e{key} {value}"),
        9 => format!("SPOP e{key} 0"),
        10 => format!("ZADD z{key} {value} m{}", value % 7),
        11 => format!("ZREMRANGEBYRANK z{key} 0 0"),
        12 => format!("PEXPIREAT s{key} {}", 3_000_000_000_000u64 + value as u64),
        13 => format!("PERSIST s{key}"),
        14 => format!("DEL s{key} l{key} h{key}"),
        15 => format!("SELECT {}", value % 3),
        _ => ["SWAPDB 0 1", "FLUSHDB", "RENAME counter counter", "SADD big 1 2 3"][value % 4].to_owned(),
    }
}

fn random_form(random: &mut Random) -> KeyForm {
    if random.below(2) == 0 { RDB } else { KeyForm::Commands }
}

fn random_act(life: &mut Life, random: &mut Random) {
    match random.below(60) {
        0..36 => {
            let line = random_line(random);
            if line.starts_with("RENAME") {
                life.unit(&["SET counter 0"]);
            }
            life.unit(&[&line]);
        }
        36..42 => life.unit(&["INCR left", "SET between 1", "INCR right", "DEL between"]),
        42..54 => life.wait(1 + random.below(3) as i64),
        54..57 => {
            let (form, ends) = (random_form(random), random.below(4) > 0);
            let seconds = random.below(3) as i64;
            let lines = [random_line(random), random_line(random)];
            let lines: Vec<&str> =
                lines.iter().map(String::as_str).filter(|line| !line.starts_with("R")).collect();
            life.rewrite(form, ends, |life| {
                life.wait(seconds);
                lines.iter().for_each(|line| life.unit(&[line]));
            });
        }
        57 | 58 => life.restart(),
        _ => {
            let form = random_form(random);
            life.interrupt(1 + random.below(5) as i64, form);
        }
    }
}

/// Returns the number of runs: RESTORE_SEEDS, or a few.
fn lives() -> u64 {
    std::env::var("RESTORE_SEEDS").ok().and_then(|count| count.parse().ok()).unwrap_or(12)
}

#[test]
fn every_moment_is_restored_exactly_over_rewrites_restarts_and_gaps() {
    for seed in 0..lives() {
        let encryption = &encryptions()[seed as usize % 2];
        let mut random = Random::new(seed);
        let mut life = Life::new(seed, encryption);
        life.unit(&["SET begin 1"]);
        for _ in 0..250 {
            random_act(&mut life, &mut random);
        }
        life.unit(&["SET end 1"]);
        life.wait(5);
        let disk = life.shared();
        for _ in 0..25 {
            let to_s = BEGIN_S - 2 + random.below((life.now_s - BEGIN_S + 4) as usize) as i64;
            life.check(&disk, to_s);
        }
        for (last_s, base_s) in life.gaps.clone() {
            (last_s..=base_s).for_each(|to_s| life.check(&disk, to_s));
        }
        // The server still starts from the files, which the restores have not changed.
        let expected = life.states.last_key_value().unwrap().1;
        let (mut local, _) = start(&disk, DIRECTORY, encryption).unwrap();
        assert_same(&values(&mut local), expected);
    }
}

#[test]
fn a_power_cut_leaves_every_moment_before_the_last_fsync() {
    for seed in 0..lives() {
        let encryption = &encryptions()[seed as usize % 2];
        let mut random = Random::new(1000 + seed);
        let mut life = Life::new(seed, encryption);
        life.unit(&["SET begin 1"]);
        for _ in 0..120 {
            random_act(&mut life, &mut random);
        }
        life.wait(1);
        life.writer.sync().unwrap();
        let durable_s = life.now_s - 1;
        life.unit(&["RPUSH torn 1", "RPUSH torn 2"]);
        life.unit(&["SET torn 3"]);
        let left: Arc<dyn Disk> = Arc::new(life.disk.after_power_cut(seed));
        for _ in 0..10 {
            let to_s = BEGIN_S + random.below((durable_s - BEGIN_S + 1) as usize) as i64;
            life.check(&left, to_s);
        }
        life.check(&left, durable_s);
        // The torn end is omitted, as at startup, and a transaction is restored as a whole or not at all.
        let (found, _) = values_at(&left, NOW_S, encryption).unwrap();
        let torn = found.keys().filter(|(_, name)| name == b"torn").count();
        assert!(torn <= 1);
    }
}

#[test]
fn files_are_kept_for_the_configured_time_and_no_longer() {
    let mut life = Life::new(1, &Encryption::off());
    const KEEP_S: i64 = 100;
    life.aof.set_keep_s(KEEP_S as u64);
    let mut random = Random::new(7);
    let disk = life.shared();
    for _ in 0..40 {
        for _ in 0..3 {
            life.unit(&[&format!("RPUSH log {}", life.now_s)]);
            life.wait(1 + random.below(5) as i64);
        }
        let form = random_form(&mut random);
        life.rewrite(form, true, |_| ());
        if life.aof.next_expiry_s().is_some_and(|expiry_s| expiry_s <= life.now_s) {
            life.aof.remove_expired(life.now_s).unwrap();
        }
        // Every moment of the time can be restored; earlier ones as long as their files exist.
        for age_s in [0, 1, KEEP_S / 2, KEEP_S] {
            let to_s = life.now_s - age_s;
            if to_s >= BEGIN_S {
                life.check(&disk, to_s);
            }
        }
        let history = &life.aof.manifest().history;
        assert!(history.iter().all(|file| file.replaced_s.unwrap() > life.now_s - KEEP_S));
        let names = disk.list(Path::new(DIRECTORY)).unwrap();
        assert_eq!(names.len(), history.len() + 3, "the manifest, a base, an increment, and the kept files");
        let size = |file: &AofFile| disk.open_to_read(&path_of(&file.name)).unwrap().size().unwrap();
        assert_eq!(life.aof.kept_bytes(), history.iter().map(size).sum::<u64>());
    }
    assert!((4..60).contains(&life.aof.manifest().history.len()), "some of the 80 files are kept");
    let (why, range) = unknown(disk.as_ref(), BEGIN_S);
    assert_eq!(why, Unknown::TooOld);
    let range = range.unwrap();
    assert!(range.oldest_s <= life.now_s - KEEP_S && range.newest_s <= life.now_s, "{range}");
    life.check(&disk, range.oldest_s);
    // Without a time to keep files, the next call removes all kept files, even in a new process.
    let mut aof =
        AofDirectory::open(&disk, Path::new(DIRECTORY), "appendonly.aof", &Encryption::off()).unwrap();
    assert!(aof.kept_bytes() > 0);
    aof.remove_expired(life.now_s).unwrap();
    assert_eq!((aof.kept_bytes(), aof.next_expiry_s()), (0, None));
    assert_eq!(disk.list(Path::new(DIRECTORY)).unwrap().len(), 3);
}

fn path_of(name: &str) -> PathBuf {
    Path::new(DIRECTORY).join(name)
}

#[test]
fn without_a_time_to_keep_replaced_files_are_removed_at_once() {
    let mut life = Life::new(1, &Encryption::off());
    life.aof.set_keep_s(0);
    for _ in 0..3 {
        life.unit(&["INCR n"]);
        life.wait(1);
        life.rewrite(RDB, true, |_| ());
        assert_eq!(life.aof.manifest().history, []);
        assert_eq!(life.shared().list(Path::new(DIRECTORY)).unwrap().len(), 3);
    }
    // From the newest base on, moments can still be restored.
    let base_s = life.now_s;
    life.unit(&["INCR n"]);
    life.wait(1);
    life.check(&life.shared(), base_s);
    let (why, range) = unknown(&life.disk, base_s - 1);
    assert_eq!((why, range), (Unknown::TooOld, Some(Range { oldest_s: base_s, newest_s: base_s })));
}

#[test]
fn an_aof_without_its_first_base_keeps_its_manifest() {
    let disk: Arc<dyn Disk> = Arc::new(SimulatedDisk::new(1));
    let open =
        || AofDirectory::open(&disk, Path::new(DIRECTORY), "appendonly.aof", &Encryption::off()).unwrap();
    let mut aof = open();
    aof.begin_replacement().unwrap();
    aof.remove_expired(NOW_S).unwrap();
    assert_eq!((aof.next_expiry_s(), aof.exists()), (None, false));
    assert!(!open().exists());
}

#[test]
fn the_number_of_kept_files_is_limited() {
    let mut life = Life::new(1, &Encryption::off());
    life.unit(&["INCR n"]);
    let mut manifest = life.aof.manifest().clone();
    let kept = |number: u64| {
        let file = AofFile::new(
            format!("appendonly.aof.{number}.base.rdb"),
            number,
            ember_persistence::aof::FileType::History,
        );
        AofFile { replaced_s: Some(BEGIN_S), size: Some(1), ..file }
    };
    manifest.history = (1..=KEPT_FILES_MAX as u64 + 5).map(kept).collect();
    assert!(manifest.to_bytes().len() as u64 * 10 < Manifest::MAX_BYTES);
    let disk = life.shared();
    disk.open(Path::new(MANIFEST)).unwrap().write_at(0, &manifest.to_bytes()).unwrap();
    life.restart();
    life.aof.remove_expired(life.now_s).unwrap();
    let history = &life.aof.manifest().history;
    assert_eq!((history.len(), history[0].sequence), (KEPT_FILES_MAX, 6));
    // A new base never gets the name of a kept one.
    life.rewrite(RDB, true, |_| ());
    assert_eq!(life.aof.manifest().base.as_ref().unwrap().sequence, KEPT_FILES_MAX as u64 + 6);
}

#[test]
fn a_transaction_is_restored_as_a_whole_or_not_at_all() {
    let mut life = Life::new(1, &Encryption::off());
    for _ in 0..20 {
        life.unit(&["INCR left", "INCR right"]);
        life.wait(1);
    }
    let disk = life.shared();
    for to_s in BEGIN_S..life.now_s {
        let (found, restored) = values_at(&disk, to_s, &Encryption::off()).unwrap();
        assert_eq!(found[&(0, b"left".to_vec())], found[&(0, b"right".to_vec())]);
        assert_eq!(restored.origin.last_s, Some(to_s));
    }
}

#[test]
fn changes_without_times_are_never_attributed_to_a_moment() {
    let mut life = Life::new(1, &Encryption::off());
    life.unit(&["SET a 1"]);
    life.wait(10);
    life.rewrite(RDB, true, |_| ());
    let base_s = life.now_s;
    life.has_times = false;
    life.unit(&["SET a 2"]);
    life.wait(10);
    life.unit(&["SET a 3"]);
    life.wait(10);
    let disk = life.shared();
    life.check(&disk, BEGIN_S);
    life.check(&disk, base_s - 1);
    let range = Some(Range { oldest_s: BEGIN_S, newest_s: base_s });
    for to_s in [base_s, base_s + 5, base_s + 15, NOW_S - 1] {
        let why = Unknown::Undated { after_s: Some(base_s), before_s: None };
        assert_eq!(unknown(disk.as_ref(), to_s), (why, range));
    }
    // A restore to the present includes all changes, whatever their timestamps.
    life.check(&disk, NOW_S);
    // A later time shows that the changes are earlier.
    life.has_times = true;
    life.unit(&["SET a 4"]);
    let dated_s = life.now_s;
    life.wait(10);
    let (why, _) = unknown(disk.as_ref(), dated_s - 1);
    assert_eq!(why, Unknown::Undated { after_s: Some(base_s), before_s: Some(dated_s) });
    life.check(&disk, dated_s);
    life.check(&disk, dated_s + 5);
}

#[test]
fn moments_that_the_files_do_not_contain_are_errors_that_name_those_they_contain() {
    let mut life = Life::new(1, &Encryption::off());
    let disk = life.shared();
    assert_eq!(unknown(disk.as_ref(), NOW_S + 1), (Unknown::Future, None));
    assert_eq!(unknown(disk.as_ref(), BEGIN_S), (Unknown::TooOld, None));
    life.restart();
    life.unit(&["SET a 1"]);
    life.wait(100);
    life.interrupt(50, RDB);
    life.unit(&["SET a 2"]);
    life.wait(1);
    let (why, range) = unknown(disk.as_ref(), BEGIN_S - 1);
    let newest_s = life.now_s - 1;
    assert_eq!((why, range), (Unknown::TooOld, Some(Range { oldest_s: BEGIN_S, newest_s })));
    let error = restored(disk.as_ref(), BEGIN_S + 120, &Encryption::off()).map(drop).unwrap_err();
    assert_eq!(
        error.to_string(),
        "2023-11-14T22:15:20Z (1700000120) cannot be restored: changes are missing after 2023-11-14T22:13:20Z until \
         2023-11-14T22:15:50Z, because the AOF was off or could not be written; the files contain from \
         2023-11-14T22:13:20Z (1700000000) to 2023-11-14T22:15:50Z (1700000150)"
    );
    assert_eq!(unknown(disk.as_ref(), NOW_S + 1).0, Unknown::Future);
}

#[test]
fn damage_is_an_error_that_names_the_file_if_the_file_is_needed() {
    let mut life = Life::new(1, &Encryption::off());
    for _ in 0..2 {
        for _ in 0..10 {
            life.unit(&["RPUSH log a b c d e f g h"]);
            life.wait(1);
        }
        life.rewrite(RDB, true, |_| ());
    }
    let disk = life.shared();
    let moments = [BEGIN_S + 5, BEGIN_S + 15, life.now_s];
    let names: Vec<String> = life.aof.manifest().history.iter().map(|file| file.name.clone()).collect();
    assert_eq!(
        names,
        ["appendonly.aof.1.incr.aof", "appendonly.aof.1.base.rdb", "appendonly.aof.2.incr.aof"]
    );
    for (name, needed) in names.iter().zip([[true, false, false], [false, true, false], [false, true, false]])
    {
        let path = path_of(name);
        let file = disk.open(&path).unwrap();
        let size = file.size().unwrap();
        let bytes = read_whole(disk.as_ref(), &path, u64::MAX).unwrap();
        type Damage<'d> = &'d dyn Fn(&dyn StoredFile);
        let damages: [Damage<'_>; 3] = [
            &|file| file.write_at(size / 3, &[bytes[size as usize / 3] ^ 1]).unwrap(),
            &|file| file.set_size(size - 1).unwrap(),
            &|file| file.set_size(0).unwrap(),
        ];
        for damage in damages {
            damage(file.as_ref());
            for (to_s, is_needed) in moments.into_iter().zip(needed) {
                match restored(disk.as_ref(), to_s, &Encryption::off()) {
                    Ok(_) => assert!(!is_needed, "{name} {to_s}"),
                    Err(error) => {
                        assert!(is_needed && error.is_damage(), "{name} {to_s}: {error}");
                        assert!(error.to_string().contains(name), "{error}");
                    }
                }
            }
            file.set_size(0).unwrap();
            file.write_at(0, &bytes).unwrap();
        }
        disk.remove(&path).unwrap();
        for (to_s, is_needed) in moments.into_iter().zip(needed) {
            let found = restored(disk.as_ref(), to_s, &Encryption::off());
            // A base that is missing, as after an interrupted removal, only means that its moments are too old.
            assert!(found.is_ok() != is_needed || name.contains(".base."), "{name} {to_s}");
        }
        disk.create(&path).unwrap().write_at(0, &bytes).unwrap();
    }
    moments.into_iter().for_each(|to_s| life.check(&disk, to_s));
}

#[test]
fn a_full_disk_leaves_no_file() {
    for encryption in encryptions() {
        let mut life = Life::new(1, &encryption);
        for number in 0..500 {
            life.unit(&[&format!("SET key:{number} {}", "x".repeat(number + 1))]);
        }
        life.wait(1);
        let shared = life.shared();
        let (restored, codes) = restored(shared.as_ref(), BEGIN_S, &encryption).unwrap();
        let names = |disk: &dyn Disk| {
            let mut names = disk.list(Path::new("data")).unwrap();
            names.sort();
            names
        };
        let before = names(shared.as_ref());
        let used: u64 = {
            let files = shared.list(Path::new(DIRECTORY)).unwrap();
            files
                .iter()
                .map(|name| shared.open_to_read(&Path::new(DIRECTORY).join(name)).unwrap().size().unwrap())
                .sum()
        };
        for room in [0, 1, 5000] {
            life.disk.set_faults(Faults { capacity_bytes: Some(used + room), ..Faults::default() });
            let error = restored.save(&shared, Path::new(OUTPUT), &codes, NOW_S, &encryption).unwrap_err();
            assert!(matches!(&error, FileError::Disk(error) if error.is_full()), "{room}: {error}");
            assert_eq!(names(shared.as_ref()), before, "{room}");
        }
        life.disk.set_faults(Faults::default());
        restored.save(&shared, Path::new(OUTPUT), &codes, NOW_S, &encryption).unwrap();
        // An existing file is not overwritten.
        let error = restored.save(&shared, Path::new(OUTPUT), &codes, NOW_S, &encryption).unwrap_err();
        assert!(matches!(error, FileError::Exists(_)), "{error}");
    }
}

#[test]
fn functions_and_the_expiries_of_keys_are_restored() {
    let disk: Arc<dyn Disk> = Arc::new(SimulatedDisk::new(1));
    let mut aof =
        AofDirectory::open(&disk, Path::new(DIRECTORY), "appendonly.aof", &Encryption::off()).unwrap();
    let mut writer = aof.begin_increment().unwrap();
    let mut batch = Batch::new();
    let at_ms = ((BEGIN_S + 100) * 1000).to_string();
    let commands: [(i64, &[&[u8]]); 6] = [
        (0, &[b"FUNCTION", b"LOAD", b"#!lua name=one\n"]),
        (0, &[b"SET", b"volatile", b"1", b"PXAT", at_ms.as_bytes()]),
        (0, &[b"SET", b"lasting", b"1"]),
        (1, &[b"FUNCTION", b"LOAD", b"#!lua name=two\n"]),
        (2, &[b"FUNCTION", b"FLUSH"]),
        (100, &[b"DEL", b"volatile"]),
    ];
    for (second, words) in commands {
        batch.time(BEGIN_S + second);
        batch.command(words);
        writer.append(&mut batch).unwrap();
        batch.clear();
    }
    for (second, libraries, total, expired) in
        [(0, 1, 2, 1), (1, 2, 2, 1), (2, 0, 2, 1), (99, 0, 2, 1), (100, 0, 1, 0)]
    {
        let (restored, codes) = restored(disk.as_ref(), BEGIN_S + second, &Encryption::off()).unwrap();
        assert_eq!(codes.0.len(), libraries, "{second}");
        let keys = restored.keys(NOW_S);
        assert_eq!((keys.total, keys.expired), (total, expired), "{second}");
        // At that moment, the key had not expired.
        assert_eq!(restored.keys(BEGIN_S + second).expired, 0);
        restored.save(&disk, Path::new(OUTPUT), &codes, NOW_S, &Encryption::off()).unwrap();
        let file = disk.open_to_read(Path::new(OUTPUT)).unwrap();
        let mut reader =
            RdbReader::new(FileReader::new(file, 0), Path::new(OUTPUT), EncodingLimits::DEFAULT).unwrap();
        let (_, steps) = support::load(&mut reader, 0).unwrap();
        let functions: Vec<_> = steps
            .into_iter()
            .filter_map(|step| match step {
                Step::Function(code) => Some(code),
                _ => None,
            })
            .collect();
        assert_eq!(functions, codes.0);
        disk.remove(Path::new(OUTPUT)).unwrap();
    }
}

#[test]
fn files_of_redis_with_timestamps_are_restored() {
    let disk: Arc<dyn Disk> = Arc::new(SimulatedDisk::new(1));
    let mut local = Local::new(Protocol::Resp2);
    support::must(&mut local, "SET a 0");
    let path = path_of("appendonly.aof.1.base.rdb");
    let options = SaveOptions { version: FILE_VERSION, is_packed: true, encryption: &Encryption::off() };
    disk.create_directory(Path::new(DIRECTORY)).unwrap();
    rdb_file::save(&disk, &path, &options, |writer| {
        writer.usual_aux("7.0.15", BEGIN_S, 1, true)?;
        write_keys(&local, writer)
    })
    .unwrap();
    let text = "#TS:1700000001\r\n*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\n1\r\n\
        #TS:1700000003\r\n*1\r\n$5\r\nMULTI\r\n*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\n3\r\n*2\r\n$4\r\nINCR\r\n$1\r\na\r\n\
        *1\r\n$4\r\nEXEC\r\n*2\r\n$4\r\nLPOP\r\n$1\r\na\r\n";
    disk.create(&path_of("appendonly.aof.1.incr.aof")).unwrap().write_at(0, text.as_bytes()).unwrap();
    let manifest =
        "file appendonly.aof.1.base.rdb seq 1 type b\nfile appendonly.aof.1.incr.aof seq 1 type i\n";
    disk.create(Path::new(MANIFEST)).unwrap().write_at(0, manifest.as_bytes()).unwrap();
    for (second, expected, failed) in [(0, "0", 0), (1, "1", 0), (2, "1", 0), (3, "4", 1), (9, "4", 1)] {
        let (found, restored) = values_at(&disk, BEGIN_S + second, &Encryption::off()).unwrap();
        assert_eq!(found[&(0, b"a".to_vec())][1].text(), expected, "{second}");
        // As at a start, a command that fails is only reported: it failed when it first ran, too.
        assert_eq!(restored.origin.failed.0, failed, "{second}");
    }
    assert_eq!(unknown(disk.as_ref(), BEGIN_S - 1).0, Unknown::TooOld);
}

#[test]
fn an_encrypted_aof_needs_its_key() {
    let [off, key] = encryptions();
    let mut life = Life::new(1, &key);
    life.unit(&["SET a 1"]);
    life.wait(1);
    life.rewrite(RDB, true, |_| ());
    for to_s in [BEGIN_S, life.now_s] {
        let error = restored(&life.disk, to_s, &off).map(drop).unwrap_err();
        assert!(error.to_string().contains("encrypted"), "{error}");
        let (restored, _) = restored(&life.disk, to_s, &key).unwrap();
        assert!(restored.origin.is_encrypted);
    }
}
