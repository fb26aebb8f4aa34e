//! Checking, repairing and converting: intact data is preserved, losses are reported, and no original is changed.

#![cfg(feature = "encryption")]
#![allow(clippy::unwrap_used, reason = "a test")]

mod support;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ember_persistence::aof::{AofDirectory, Batch};
use ember_persistence::check::{FileError, check_aof, check_file};
use ember_persistence::convert::{
    Reader, Target, convert_aof, convert_aof_for, convert_file, convert_file_for,
};
use ember_persistence::encryption::{Encryption, Ending, Key, KeyRing, is_encrypted};
use ember_persistence::files::{Disk, SimulatedDisk, read_whole};
use ember_persistence::rdb_file::SaveOptions;
use ember_persistence::repair::{Plan, repair_aof, repair_file};
use emberkv_core::local::Local;
use support::{assert_same, begin_aof, load_file, must, sample, save, seen, start, write_keys};

const MANIFEST: &str = "d/appendonlydir/appendonly.aof.manifest";

fn disk() -> Arc<dyn Disk> {
    Arc::new(SimulatedDisk::new(1))
}

fn encrypted() -> Encryption {
    Encryption::with(KeyRing::new(Key::new([3; 32])))
}

fn bytes(disk: &Arc<dyn Disk>, path: &Path) -> Vec<u8> {
    read_whole(disk.as_ref(), path, 1 << 30).unwrap()
}

fn change(disk: &Arc<dyn Disk>, path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut content = bytes(disk, path);
    change(&mut content);
    disk.create(path).unwrap().write_at(0, &content).unwrap();
}

fn cutting() -> Plan {
    Plan { cuts_damage: true, ..Plan::default() }
}

/// Writes an AOF with a base and two increments of 100 units each, one unit per second; returns the AOF's contents.
fn aof(disk: &Arc<dyn Disk>, encryption: &Encryption) -> Local {
    let mut aof =
        AofDirectory::open(disk, Path::new("d/appendonlydir"), "appendonly.aof", encryption).unwrap();
    let mut local = sample(true);
    // Valkey and Redis 7.2 have no JSON.
    must(&mut local, "DEL json");
    let mut writer = begin_aof(&mut aof, &local);
    let mut batch = Batch::new();
    for number in 0..200i64 {
        batch.time(1000 + number);
        batch.command(&[b"MULTI"]);
        for words in [[&b"RPUSH"[..], b"log", number.to_string().as_bytes()], [b"SET", b"last", b"x"]] {
            batch.command(&words);
            local.run(&words);
        }
        batch.command(&[b"EXEC"]);
        if number % 10 == 9 {
            writer.append(&mut batch).unwrap();
            writer.sync().unwrap();
            batch.clear();
        }
        if number == 99 {
            aof.rotate(&mut writer).unwrap();
        }
    }
    local
}

fn increment(number: u64) -> PathBuf {
    PathBuf::from(format!("d/appendonlydir/appendonly.aof.{number}.incr.aof"))
}

fn log_of(disk: &Arc<dyn Disk>, directory: &str, encryption: &Encryption) -> i64 {
    let (mut local, _) = start(disk, directory, encryption).unwrap();
    must(&mut local, "LLEN log").integer().unwrap()
}

#[test]
fn a_report_describes_the_contents_of_a_file() {
    for encryption in [Encryption::off(), encrypted()] {
        let disk = disk();
        aof(&disk, &encryption);
        let checked = check_aof(disk.as_ref(), Path::new(MANIFEST), &encryption).unwrap();
        let reports: Vec<_> = checked.into_iter().map(Result::unwrap).collect();
        assert_eq!(reports.len(), 3);
        let base = reports[0].rdb.as_ref().unwrap();
        assert_eq!((base.version, base.keys, base.expiring, base.functions), (12, 5024, 2, 0));
        assert!(reports[0].commands.is_none());
        let commands = reports[2].commands.as_ref().unwrap();
        assert_eq!((commands.units, commands.commands), (100, 200));
        assert_eq!(commands.times, Some((1100, 1199)));
        assert!(commands.is_checked && commands.torn.is_none());
        assert!(reports.iter().all(|report| report.is_encrypted == encryption.is_on()));
    }
    let disk = disk();
    disk.create(Path::new("d/x")).unwrap().write_at(0, b"hello").unwrap();
    let error = check_file(disk.as_ref(), Path::new("d/x"), &Encryption::off(), Ending::Whole).unwrap_err();
    assert!(matches!(error, FileError::Unknown(_)), "{error}");
    let error = check_aof(disk.as_ref(), Path::new("d/other.manifest"), &Encryption::off()).unwrap_err();
    assert!(matches!(error, FileError::Disk(_)), "{error}");
}

#[test]
fn files_are_converted_both_ways() {
    let (disk, off) = (disk(), Encryption::off());
    let (plain, sealed, back) = (Path::new("d/a.rdb"), Path::new("d/b.rdb"), Path::new("d/c.rdb"));
    let mut local = sample(true);
    save(&local, &disk, plain, 12);
    convert_file(&disk, plain, sealed, &off, &encrypted()).unwrap();
    assert!(is_encrypted(disk.open_to_read(sealed).unwrap().as_ref()).unwrap());
    convert_file(&disk, sealed, back, &encrypted(), &off).unwrap();
    assert_eq!(bytes(&disk, back), bytes(&disk, plain));
    assert_same(&seen(&mut load_file(disk.as_ref(), back, 0).unwrap().0), &seen(&mut local));
    let error = convert_file(&disk, plain, back, &off, &off).unwrap_err();
    assert!(error.to_string().contains("not overwritten"), "{error}");
    let mut local = aof(&disk, &off);
    convert_aof(&disk, Path::new(MANIFEST), Path::new("d/sealed"), &off, &encrypted()).unwrap();
    let (mut loaded, _) = start(&disk, "d/sealed", &encrypted()).unwrap();
    // The RDB version of a base does not store when consumers were active.
    let (mut found, mut expected) = (seen(&mut loaded), seen(&mut local));
    for seen in [&mut found, &mut expected] {
        seen.remove(&(0, b"stream".to_vec()));
    }
    assert_same(&found, &expected);
    assert!(start(&disk, "d/sealed", &off).is_err());
    let manifest = Path::new("d/sealed/appendonly.aof.manifest");
    convert_aof(&disk, manifest, Path::new("d/plain"), &encrypted(), &off).unwrap();
    assert_eq!(bytes(&disk, Path::new("d/plain/appendonly.aof.2.incr.aof")), bytes(&disk, &increment(2)));
}

/// Like `support::seen`, without the stream: files of Redis 7.0 do not store when consumers were active.
fn seen_without_stream(local: &mut Local) -> support::Seen {
    let mut seen = seen(local);
    seen.remove(&(0, b"stream".to_vec()));
    seen
}

#[test]
fn files_are_converted_for_other_servers() {
    let (disk, off) = (disk(), Encryption::off());
    let original = Path::new("d/a.rdb");
    let mut local = sample(true);
    must(&mut local, "DEL json");
    save(&local, &disk, original, 12);
    let convert = |from: &Path, to: &str, target, leaves_out, encryption: &Encryption| {
        let reader = Reader { target, leaves_out, encryption: encryption.clone() };
        convert_file_for(&disk, from, Path::new(to), &off, Ending::Whole, &reader)
    };
    let head = |path: &str| bytes(&disk, Path::new(path))[..9].to_vec();
    convert(original, "d/valkey.rdb", Target::Valkey9, false, &off).unwrap();
    assert_eq!(head("d/valkey.rdb"), b"VALKEY080");
    let valkey = Path::new("d/valkey.rdb");
    assert_same(&seen(&mut load_file(disk.as_ref(), valkey, 0).unwrap().0), &seen(&mut local));
    let error = convert(valkey, "d/old.rdb", Target::Redis72, false, &off).unwrap_err();
    assert!(error.to_string().contains("redis-7.2 has no hash fields that expire: the keys '"), "{error}");
    assert!(disk.open_to_read(Path::new("d/old.rdb")).is_err());
    let copied = convert(valkey, "d/old.rdb", Target::Redis72, true, &off).unwrap();
    assert_eq!((copied.unsupported.keys, head("d/old.rdb")), (2, b"REDIS0011".to_vec()));
    let (mut old, _) = load_file(disk.as_ref(), Path::new("d/old.rdb"), 0).unwrap();
    let call = "HMGET expiring a b c";
    assert_eq!(must(&mut old, call), must(&mut local, call));
    assert_eq!(must(&mut old, "HLEN large-expiring"), must(&mut local, "HLEN large-expiring"));
    assert!(
        convert(Path::new("d/old.rdb"), "d/same.rdb", Target::Redis72, false, &off).is_ok(),
        "nothing expires"
    );
    // Encrypted files are converted, too.
    convert(original, "d/sealed.rdb", Target::Valkey9, false, &encrypted()).unwrap();
    convert_file(&disk, Path::new("d/sealed.rdb"), Path::new("d/plain.rdb"), &encrypted(), &off).unwrap();
    assert_eq!(head("d/plain.rdb"), b"VALKEY080");
    let (mut plain, _) = load_file(disk.as_ref(), Path::new("d/plain.rdb"), 0).unwrap();
    assert_same(&seen(&mut plain), &seen(&mut local));
}

#[test]
fn an_aof_is_converted_for_another_server_with_its_increments() {
    let (disk, off) = (disk(), Encryption::off());
    let mut local = aof(&disk, &off);
    let reader = |target| Reader { target, leaves_out: false, encryption: Encryption::off() };
    let convert =
        |to: &str, target| convert_aof_for(&disk, Path::new(MANIFEST), Path::new(to), &off, &reader(target));
    convert("d/valkey", Target::Valkey9).unwrap();
    let (mut loaded, _) = start(&disk, "d/valkey", &off).unwrap();
    assert_same(&seen_without_stream(&mut loaded), &seen_without_stream(&mut local));
    let base = bytes(&disk, Path::new("d/valkey/appendonly.aof.1.base.rdb"));
    assert!(base.starts_with(b"VALKEY080"));
    let increment = bytes(&disk, Path::new("d/valkey/appendonly.aof.2.incr.aof"));
    assert!(increment.windows(6).any(|bytes| bytes == b"#TS:11"), "timestamps are kept");
    assert!(convert("d/old", Target::Redis72).is_err());
}

#[test]
fn keys_before_the_damage_of_an_rdb_file_are_recovered() {
    let (disk, off) = (disk(), Encryption::off());
    let (path, target) = (Path::new("d/a.rdb"), Path::new("d/a.repaired.rdb"));
    let local = sample(false);
    let size = save(&local, &disk, path, 10).size;
    change(&disk, path, |bytes| bytes.truncate(size as usize * 3 / 4));
    let before = bytes(&disk, path);
    assert!(repair_file(&disk, path, target, &off, Ending::Whole, &Plan::default()).is_err());
    let repaired = repair_file(&disk, path, target, &off, Ending::Whole, &cutting()).unwrap();
    assert!(repaired.kept_keys > 1000 && repaired.kept_keys < 5000, "{repaired:?}");
    assert!(repaired.cut.unwrap().contains("d/a.rdb at offset"));
    assert_eq!(bytes(&disk, path), before);
    let report = check_file(disk.as_ref(), target, &off, Ending::Whole).unwrap();
    assert_eq!(report.rdb.unwrap().keys, repaired.kept_keys);
    // One value and the checksum are damaged: the other keys are preserved.
    let unpacked = SaveOptions { is_packed: false, ..support::options(10) };
    ember_persistence::rdb_file::save(&disk, path, &unpacked, |writer| write_keys(&local, writer)).unwrap();
    change(&disk, path, |bytes| {
        let at = bytes.windows(6).position(|window| window == b"intset").unwrap();
        // Damages the width of the intset's elements.
        bytes[at + 7] = 3;
    });
    let other = Path::new("d/b.repaired.rdb");
    let repaired = repair_file(&disk, path, other, &off, Ending::Whole, &cutting()).unwrap();
    assert_eq!(repaired.lost_keys.len(), 1);
    assert_eq!(repaired.lost_keys[0].0, b"intset");
    assert_eq!(repaired.kept_keys, 5021);
}

#[test]
fn a_damaged_aof_is_kept_up_to_the_damage() {
    for encryption in [Encryption::off(), encrypted()] {
        let disk = disk();
        aof(&disk, &encryption);
        let plan = Plan { encryption: encryption.clone(), ..cutting() };
        change(&disk, &increment(1), |bytes| {
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
        });
        let checked = check_aof(disk.as_ref(), Path::new(MANIFEST), &encryption).unwrap();
        assert!(checked[0].is_ok() && checked[2].is_ok());
        let error = checked[1].as_ref().unwrap_err();
        assert!(error.is_damage());
        assert!(
            error.to_string().ends_with("with `ember-cli repair d/appendonlydir --output NEW_DIRECTORY`"),
            "{error}"
        );
        let refused = Plan { cuts_damage: false, ..plan.clone() };
        assert!(repair_aof(&disk, Path::new(MANIFEST), Path::new("d/no"), &encryption, &refused).is_err());
        let repaired =
            repair_aof(&disk, Path::new(MANIFEST), Path::new("d/new"), &encryption, &plan).unwrap();
        assert_eq!(repaired.len(), 2);
        assert!(repaired[1].cut.is_some());
        assert_eq!(repaired[1].left_out, [increment(2)]);
        let kept = log_of(&disk, "d/new", &encryption);
        assert!(kept % 10 == 0 && (30..70).contains(&kept), "{kept}");
        let again = repair_aof(&disk, Path::new(MANIFEST), Path::new("d/new"), &encryption, &plan);
        assert!(matches!(again, Err(FileError::Exists(_))));
    }
}

#[test]
fn a_closed_file_that_lost_whole_batches_is_reported_and_kept_up_to_the_gap() {
    for encryption in [Encryption::off(), encrypted()] {
        let disk = disk();
        aof(&disk, &encryption);
        let whole = bytes(&disk, &increment(1));
        let line = if encryption.is_on() { &b"EChk"[..] } else { b"#CRC" };
        let last = whole.windows(4).rposition(|window| window == line).unwrap();
        // The last batch of a closed increment has no commands.
        let end = whole[..last].windows(4).rposition(|window| window == line).unwrap();
        for left in [end, 0] {
            change(&disk, &increment(1), |bytes| bytes.truncate(left));
            let checked = check_aof(disk.as_ref(), Path::new(MANIFEST), &encryption).unwrap();
            assert!(checked[0].is_ok() && checked[2].is_ok());
            let error = checked[1].as_ref().unwrap_err();
            let expected = format!("has {left} bytes but had {} when it was closed", whole.len());
            assert!(error.is_damage() && error.to_string().contains(&expected), "{error}");
            let plan = Plan { encryption: encryption.clone(), ..Plan::default() };
            let target = format!("d/refused-{left}");
            let refused = repair_aof(&disk, Path::new(MANIFEST), Path::new(&target), &encryption, &plan);
            assert!(matches!(refused, Err(FileError::Aof(_))), "{refused:?}");
            let target = format!("d/left-{left}");
            let plan = Plan { cuts_damage: true, ..plan };
            let repaired = repair_aof(&disk, Path::new(MANIFEST), Path::new(&target), &encryption, &plan);
            let repaired = repaired.unwrap();
            assert!(repaired[1].cut.is_some(), "{repaired:?}");
            assert_eq!(repaired[1].left_out, [increment(2)]);
            assert_eq!(log_of(&disk, &target, &encryption), if left == 0 { 0 } else { 90 });
        }
    }
}

#[test]
fn a_torn_end_is_truncated_and_a_point_in_time_restored() {
    for encryption in [Encryption::off(), encrypted()] {
        let disk = disk();
        aof(&disk, &encryption);
        change(&disk, &increment(2), |bytes| bytes.truncate(bytes.len() - 10));
        let plan = Plan { encryption: encryption.clone(), ..Plan::default() };
        let repaired =
            repair_aof(&disk, Path::new(MANIFEST), Path::new("d/cut"), &encryption, &plan).unwrap();
        assert!(repaired[2].cut.as_ref().unwrap().contains("torn"), "{repaired:?}");
        assert_eq!(log_of(&disk, "d/cut", &encryption), 190);
        for (until_s, expected) in [(1000, 1), (1042, 43), (1099, 100), (1100, 101), (1155, 156)] {
            let plan = Plan { until_s: Some(until_s), ..plan.clone() };
            let target = format!("d/until-{until_s}");
            repair_aof(&disk, Path::new(MANIFEST), Path::new(&target), &encryption, &plan).unwrap();
            assert_eq!(log_of(&disk, &target, &encryption), expected, "{until_s}");
        }
    }
}
