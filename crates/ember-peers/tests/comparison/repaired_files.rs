//! Files written by `ember-cli repair` are loaded by redis-server and accepted by its check tools.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use ember_peers::require_program;
use ember_persistence::aof::{AofDirectory, Batch};
use ember_persistence::encryption::Encryption;
use ember_persistence::files::{Disk, OsDisk};
use ember_persistence::rdb_file::FILE_VERSION;
use ember_testkit::{Server, Value, find_ember_cli};

use crate::support::{begin_aof, sample, save};

fn fresh_folder(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("ember-repaired-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).unwrap();
    path
}

fn disk() -> Arc<dyn Disk> {
    Arc::new(OsDisk)
}

fn run(program: PathBuf, folder: &Path, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).current_dir(folder).output().unwrap();
    let said =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{arguments:?}: {said}");
    said
}

#[test]
fn a_repaired_snapshot_is_loaded_by_redis() {
    let folder = fresh_folder("rdb");
    let path = folder.join("damaged.rdb");
    save(&sample(false), &disk(), &path, FILE_VERSION);
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() * 3 / 4]).unwrap();
    run(find_ember_cli(), &folder, &["repair", "damaged.rdb", "--output", "dump.rdb"]);
    let said = run(require_program("redis-check-rdb"), &folder, &["dump.rdb"]);
    assert!(said.contains("RDB looks OK"), "{said}");
    let redis = Server::builder(require_program("redis-server"))
        .directory(&folder)
        .arguments(&["--save", ""])
        .start();
    let info = redis.client().command(&["INFO", "keyspace"]).text();
    let counts = info.split("keys=").skip(1).map(|rest| rest.split(',').next().unwrap());
    let keys: u64 = counts.map(|count| count.parse::<u64>().unwrap()).sum();
    assert!(keys > 1000, "{keys}");
    drop(redis);
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_repaired_aof_is_loaded_by_redis() {
    let folder = fresh_folder("aof");
    let directory = folder.join("damaged");
    let mut aof = AofDirectory::open(&disk(), &directory, "appendonly.aof", &Encryption::off()).unwrap();
    let local = sample(false);
    let mut writer = begin_aof(&mut aof, &local);
    let mut batch = Batch::new();
    for number in 0..100i64 {
        batch.clear();
        batch.command(&[b"SELECT", b"0"]);
        batch.command(&[b"RPUSH", b"log", number.to_string().as_bytes()]);
        writer.append(&mut batch).unwrap();
        writer.sync().unwrap();
    }
    drop((writer, aof));
    let increment = directory.join("appendonly.aof.1.incr.aof");
    let mut bytes = std::fs::read(&increment).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&increment, bytes).unwrap();
    run(find_ember_cli(), &folder, &["repair", "damaged", "--output", "appendonlydir"]);
    let said = run(require_program("redis-check-aof"), &folder, &["appendonlydir/appendonly.aof.manifest"]);
    assert!(said.contains("All AOF files and manifest are valid"), "{said}");
    let redis = Server::builder(require_program("redis-server"))
        .directory(&folder)
        .arguments(&["--save", "", "--appendonly", "yes"])
        .start();
    let Value::Integer(kept) = redis.client().run("LLEN log") else { panic!("no list") };
    assert!((30..70).contains(&kept), "{kept}");
    drop(redis);
    std::fs::remove_dir_all(&folder).unwrap();
}
