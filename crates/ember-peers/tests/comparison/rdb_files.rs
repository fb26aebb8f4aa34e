//! RDB files and AOFs of one server are loaded by the other, and the check tools of Redis accept ember's files.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use ember_peers::require_program;
use ember_persistence::aof::{AofDirectory, Batch, Rewrite};
use ember_persistence::encryption::Encryption;
use ember_persistence::files::{Disk, OsDisk};
use ember_persistence::key_writer::KeyWriter;
use ember_persistence::rdb_file::{FILE_VERSION, KeyForm, Step};
use ember_protocol::Protocol;
use ember_testkit::{Server, Value, find_ember_server, split_arguments, wait_until};
use emberkv_core::local::Local;

use crate::support::{
    RDB, Seen, assert_same, load_file, must, sample, sample_commands, save, seen, start, write_keys,
};

/// A directory for one test.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("ember-rdb-files-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn redis(&self, arguments: &[&str]) -> Server {
        let builder = Server::builder(require_program("redis-server")).directory(&self.0);
        builder.arguments(&["--save", ""]).arguments(arguments).start()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn disk() -> Arc<dyn Disk> {
    Arc::new(OsDisk)
}

/// Runs one of Redis's check tools, which must succeed; returns its output.
fn checked(program: &str, file: &Path) -> String {
    let output = Command::new(require_program(program)).arg(file).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{program}: {said}");
    said
}

fn saved_by(redis: &Server, folder: &Folder) -> Local {
    assert_eq!(redis.client().command(&["SAVE"]), Value::ok());
    load_file(disk().as_ref(), &folder.file("dump.rdb"), 1).unwrap().0
}

/// Removes streams, because files of Redis 7.0 do not contain the times at which consumers were active.
fn without_streams(mut seen: Seen) -> Seen {
    seen.retain(|(_, name), _| name != b"stream");
    seen
}

/// Removes keys with relative expiries, because these begin at different times in the two servers.
fn without_relative_expiries(seen: Seen) -> Seen {
    let mut seen = without_streams(seen);
    seen.retain(|(_, name), _| name != b"text" && name != b"large-hash");
    seen
}

#[test]
fn redis_loads_saved_files_and_saves_the_same_data() {
    let folder = Folder::new();
    let mut local = sample(false);
    save(&local, &disk(), &folder.file("dump.rdb"), FILE_VERSION);
    assert!(checked("redis-check-rdb", &folder.file("dump.rdb")).contains("RDB looks OK"));
    let redis = folder.redis(&[]);
    assert_eq!(redis.client().command(&["DBSIZE"]), Value::Integer(local.keyspace.len(0) as i64));
    let libraries = redis.client().command(&["FUNCTION", "LIST"]);
    assert_eq!(libraries.elements().map(<[Value]>::len), Some(1));
    let stream = redis.client().run("XINFO STREAM stream FULL");
    assert_eq!(
        stream.get("entries-added"),
        must(&mut local, "XINFO STREAM stream FULL").get("entries-added")
    );
    let mut saved = saved_by(&redis, &folder);
    assert_same(&without_streams(seen(&mut saved)), &without_streams(seen(&mut local)));
    assert_eq!(must(&mut saved, "XRANGE stream - +"), must(&mut local, "XRANGE stream - +"));
}

#[test]
fn files_saved_by_redis_are_loaded() {
    let folder = Folder::new();
    let redis = folder.redis(&["--maxmemory-policy", "allkeys-lfu"]);
    let mut client = redis.client();
    let mut local = Local::new(Protocol::Resp2);
    for line in sample_commands(false) {
        let words = split_arguments(&line).unwrap();
        let reply = client.command(&words);
        assert!(!reply.is_error(), "{line}: {reply:?}");
        must(&mut local, &line);
    }
    let code = "#!lua name=lib\nredis.register_function('f', function() return 1 end)";
    assert!(!client.command(&["FUNCTION", "LOAD", code]).is_error());
    assert_eq!(client.command(&["SAVE"]), Value::ok());
    let (mut loaded, steps) = load_file(disk().as_ref(), &folder.file("dump.rdb"), 2).unwrap();
    assert_same(&without_relative_expiries(seen(&mut loaded)), &without_relative_expiries(seen(&mut local)));
    assert_eq!(must(&mut loaded, "HLEN large-hash").integer(), Some(600));
    assert!(steps.contains(&Step::Function(code.as_bytes().to_vec())), "{steps:?}");
    assert!(
        steps.iter().any(
            |step| matches!(step, Step::Aux { name, value } if name == b"redis-ver" && value == b"7.0.15")
        )
    );
}

#[test]
fn redis_loads_a_bgsave_written_under_load() {
    let folder = Folder::new();
    let ember = Server::builder(find_ember_server()).directory(&folder.0).start();
    let mut client = ember.client();
    let mut local = Local::new(Protocol::Resp2);
    for line in sample_commands(false) {
        let reply = client.command(&split_arguments(&line).unwrap());
        assert!(!reply.is_error(), "{line}: {reply:?}");
        must(&mut local, &line);
    }
    let many = "for i = 1, 100000 do redis.call('RPUSH', 'many', 'element ' .. i) end \
                redis.call('SETRANGE', 'long', 2000000, 'end')";
    assert!(!client.command(&["EVAL", many, "2", "many", "long"]).is_error());
    let keys = client.run("DBSIZE");
    let lines = ["BGSAVE", "LPUSH many first", "APPEND long x", "DEL text list set", "SET new 1", "FLUSHDB"];
    let replies = client.pipeline(&lines.map(|line| split_arguments(line).unwrap())).unwrap();
    assert!(replies.iter().all(|reply| !reply.is_error()), "{replies:?}");
    while !client.run("INFO persistence").text().contains("rdb_saves:1\r\n") {
        assert!(
            client.run("INFO persistence").text().contains("rdb_last_bgsave_status:ok"),
            "{}",
            ember.log()
        );
    }
    assert!(checked("redis-check-rdb", &folder.file("dump.rdb")).contains("RDB looks OK"));
    let redis = folder.redis(&[]);
    let mut client = redis.client();
    assert_eq!(client.run("DBSIZE"), keys);
    assert_eq!(client.run("LLEN many"), Value::Integer(100_000));
    assert_eq!(client.run("LINDEX many 0"), Value::from("element 1"));
    assert_eq!(client.run("STRLEN long"), Value::Integer(2_000_003));
    assert_eq!(client.run("DEL many long"), Value::Integer(2));
    let mut saved = saved_by(&redis, &folder);
    assert_same(&without_relative_expiries(seen(&mut saved)), &without_relative_expiries(seen(&mut local)));
}

#[test]
fn redis_loads_and_continues_an_aof_of_ember() {
    for form in [RDB, KeyForm::Commands] {
        redis_continues(form);
    }
}

fn redis_continues(form: KeyForm) {
    let folder = Folder::new();
    let disk = disk();
    let directory = folder.file("appendonlydir");
    let off = Encryption::off();
    let mut aof = AofDirectory::open(&disk, &directory, "appendonly.aof", &off).unwrap();
    aof.set_keep_s(1000);
    let mut local = sample(false);
    let (mut writer, rewrite) = aof.begin_replacement().unwrap();
    let finish = |aof: &mut AofDirectory, rewrite: Rewrite, local: &Local, now_s: i64| {
        let base = aof.begin_base(form).unwrap();
        aof.write_base(&base, |writer| {
            writer.usual_aux("7.0.15", now_s, 1, true)?;
            write_keys(local, writer)
        })
        .unwrap();
        aof.finish_rewrite(rewrite.taken_at(now_s), base).unwrap();
    };
    finish(&mut aof, rewrite, &local, 1_700_000_000);
    let mut batch = Batch::new();
    for number in 0..300 {
        batch.clear();
        batch.time(1_700_000_000 + number);
        batch.command(&[b"SELECT", b"0"]);
        batch.command(&[b"MULTI"]);
        for words in
            [[&b"RPUSH"[..], b"log", number.to_string().as_bytes()], [b"SET", b"\r\n", &b"x".repeat(3000)]]
        {
            batch.command(&words);
            local.run(&words);
        }
        batch.command(&[b"EXEC"]);
        writer.append(&mut batch).unwrap();
        if number == 75 || number == 150 {
            aof.rotate(&mut writer).unwrap();
        }
        if number == 75 {
            let rewrite = aof.begin_rewrite();
            finish(&mut aof, rewrite, &local, 1_700_000_000 + number);
        }
    }
    writer.close().unwrap();
    let kept: Vec<PathBuf> = aof.manifest().history.iter().map(|file| directory.join(&file.name)).collect();
    assert!(kept.len() == 2 && kept.iter().all(|path| path.exists()));
    drop((aof, writer));
    let manifest = directory.join("appendonly.aof.manifest");
    let said = checked("redis-check-aof", &manifest);
    assert!(said.contains("All AOF files and manifest are valid"), "{said}");
    let redis = folder.redis(&["--appendonly", "yes"]);
    // Redis removes the files that ember has kept.
    wait_until("the replaced files are removed", || kept.iter().all(|path| !path.exists()));
    let mut loaded = saved_by(&redis, &folder);
    assert_same(&without_streams(seen(&mut loaded)), &without_streams(seen(&mut local)));
    // Redis appends to ember's last increment, and ember then starts with that file.
    assert!(!redis.client().run("RPUSH log from-redis").is_error());
    let mut redis = redis;
    redis.client().send_command(&["SHUTDOWN", "NOSAVE"]).unwrap();
    redis.wait();
    let (mut local, _) = start(&disk, &directory, &off).unwrap();
    assert_eq!(must(&mut local, "LLEN log").integer(), Some(301));
    assert_eq!(must(&mut local, "LINDEX log -1").text(), "from-redis");
}

#[test]
fn an_aof_of_redis_is_loaded_with_and_without_a_preamble() {
    for preamble in ["yes", "no"] {
        let folder = Folder::new();
        let redis = folder.redis(&[
            "--appendonly",
            "yes",
            "--aof-timestamp-enabled",
            "yes",
            "--aof-use-rdb-preamble",
            preamble,
            "--appendfsync",
            "always",
        ]);
        let mut client = redis.client();
        for line in sample_commands(false) {
            assert!(!client.command(&split_arguments(&line).unwrap()).is_error());
        }
        client.command(&["BGREWRITEAOF"]);
        loop {
            let info = client.command(&["INFO", "persistence"]).text();
            if info.contains("aof_rewrite_in_progress:0") && info.contains("aof_rewrite_scheduled:0") {
                break;
            }
        }
        for line in ["MULTI", "RPUSH log a", "RPUSH log b", "EXEC", "SELECT 3", "SET n 1", "INCR n"] {
            client.run(line);
        }
        let mut saved = saved_by(&redis, &folder);
        let folder_of_aof = redis.crash().join("appendonlydir");
        let (mut local, aof) = start(&disk(), &folder_of_aof, &Encryption::off()).unwrap();
        assert_eq!(aof.live_files().len(), 2);
        assert_same(&without_streams(seen(&mut local)), &without_streams(seen(&mut saved)));
        assert_eq!(must(&mut local, "LLEN log").integer(), Some(2));
        local.database = 3;
        assert_eq!(must(&mut local, "GET n").text(), "2");
    }
}

#[test]
fn a_single_file_of_an_old_redis_becomes_the_base() {
    let folder = Folder::new();
    let old = b"*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\nb\r\n";
    std::fs::write(folder.file("appendonly.aof"), old).unwrap();
    let disk = disk();
    let directory = folder.file("appendonlydir");
    let mut aof = AofDirectory::open(&disk, &directory, "appendonly.aof", &Encryption::off()).unwrap();
    assert!(!aof.exists() && aof.single_file() == folder.file("appendonly.aof"));
    aof.adopt().unwrap();
    aof.begin_increment().unwrap();
    let (mut local, _) = start(&disk, &directory, &Encryption::off()).unwrap();
    assert_eq!(must(&mut local, "GET a").text(), "b");
    let redis = folder.redis(&["--appendonly", "yes"]);
    assert_eq!(redis.client().run("GET a").text(), "b");
}

#[test]
fn each_server_starts_from_the_other_one_s_file() {
    let folder = Folder::new();
    let debug = ["--enable-debug-command", "yes"];
    let ember = || Server::builder(find_ember_server()).directory(&folder.0).arguments(&debug).start();
    let digest = |server: &Server| server.client().run("DEBUG DIGEST");
    let redis = folder.redis(&debug);
    let mut client = redis.client();
    for line in sample_commands(false) {
        assert!(!client.command(&split_arguments(&line).unwrap()).is_error(), "{line}");
    }
    let code = "#!lua name=lib\nredis.register_function('f', function() return 1 end)";
    assert!(!client.command(&["FUNCTION", "LOAD", code]).is_error());
    assert_eq!(client.command(&["SAVE"]), Value::ok());
    let first = digest(&redis);
    drop(redis);
    let server = ember();
    assert_eq!(digest(&server), first);
    let mut client = server.client();
    assert_eq!(client.run("FCALL f 0"), Value::Integer(1));
    assert_eq!(client.run("LPUSH more a b c"), Value::Integer(3));
    assert_eq!(client.run("SAVE"), Value::ok());
    let second = digest(&server);
    assert_ne!(second, first);
    drop(server);
    assert!(checked("redis-check-rdb", &folder.file("dump.rdb")).contains("RDB looks OK"));
    let redis = folder.redis(&debug);
    assert_eq!(digest(&redis), second);
    assert_eq!(redis.client().run("FCALL f 0"), Value::Integer(1));
}

const AOF: [&str; 6] = ["--appendonly", "yes", "--appendfsync", "always", "--enable-debug-command", "yes"];

/// Writes data of all types to a server, including transactions, scripts and random commands; returns the digest
/// afterwards.
fn write_all(server: &Server) -> Value {
    let mut client = server.client();
    let library =
        "#!lua name=lib\nredis.register_function('f', function(k) return redis.call('INCR', k[1]) end)";
    let script =
        "redis.call('SPOP', 'set') redis.call('EXPIRE', 'list', 1000) return redis.call('INCR', 'scripted')";
    assert_eq!(client.command(&["FUNCTION", "LOAD", library]), Value::from("lib"));
    for line in sample_commands(false) {
        let words = split_arguments(&line).unwrap();
        let reply = client.command(&words);
        assert!(!reply.is_error(), "{words:?}: {reply:?}");
    }
    assert!(!client.command(&["EVAL", script, "0"]).is_error());
    for line in [
        "FCALL f 1 called",
        "MULTI",
        "INCRBYFLOAT float 1.1",
        "SELECT 7",
        "SET elsewhere 1 EX 100000",
        "SELECT 0",
        "LPOP long-list 7",
        "EXEC",
        "SPOP large-set 9",
        "ZPOPMIN large-zset 3",
        "GETEX text PERSIST",
        "COPY set copied",
        "RENAME hash renamed",
        "XADD stream * late 1",
        "SORT intset STORE sorted",
        "BITFIELD bits SET u8 3 77",
        "SETRANGE range 5 abc",
        "MOVE int 3",
        "SWAPDB 7 8",
    ] {
        let reply = client.run(line);
        assert!(!reply.is_error(), "{line}: {reply:?}");
    }
    client.run("DEBUG DIGEST")
}

#[test]
fn each_server_starts_from_the_other_one_s_aof() {
    for mode in ["yes", "no"] {
        let folder = Folder::new();
        let ember = |arguments: &[&str]| {
            let builder = Server::builder(find_ember_server()).directory(&folder.0);
            builder
                .arguments(&[&AOF[..], &["--concurrent", mode, "--shards", "2"], arguments].concat())
                .start()
        };
        let server = ember(&[]);
        let written = write_all(&server);
        drop(server.crash());
        checked("redis-check-aof", &folder.file("appendonlydir/appendonly.aof.manifest"));
        let redis = folder.redis(&AOF);
        assert_eq!(redis.client().run("DEBUG DIGEST"), written, "redis has the data written by ember");
        assert_eq!(redis.client().run("FCALL f 1 called"), Value::Integer(2));
        let mut client = redis.client();
        client.run("BGREWRITEAOF");
        while !client.run("INFO persistence").text().contains("aof_rewrite_in_progress:0") {
            std::thread::yield_now();
        }
        client.run("APPEND text !");
        let continued = client.run("DEBUG DIGEST");
        drop((client, redis.crash()));
        let server = ember(&[]);
        let mut client = server.client();
        assert_eq!(client.run("DEBUG DIGEST"), continued, "ember has the data added by redis");
        assert_eq!(
            client.run("BGREWRITEAOF"),
            Value::Simple("Background append only file rewriting started".into())
        );
        while !client.run("INFO persistence").text().contains("aof_rewrite_in_progress:0") {
            std::thread::yield_now();
        }
        client.run("APPEND text ?");
        let rewritten = client.run("DEBUG DIGEST");
        drop((client, server.crash()));
        checked("redis-check-aof", &folder.file("appendonlydir/appendonly.aof.manifest"));
        assert_eq!(folder.redis(&AOF).client().run("DEBUG DIGEST"), rewritten);
    }
}

#[test]
fn an_aof_written_by_redis_is_continued() {
    for preamble in ["yes", "no"] {
        let folder = Folder::new();
        let redis = folder.redis(&[&AOF[..], &["--aof-use-rdb-preamble", preamble]].concat());
        let written = write_all(&redis);
        drop(redis.crash());
        let builder = Server::builder(find_ember_server()).directory(&folder.0);
        let server = builder.arguments(&AOF).start();
        let mut client = server.client();
        assert_eq!(client.run("DEBUG DIGEST"), written);
        assert_eq!(client.run("FCALL f 1 called"), Value::Integer(2));
        drop((client, server.crash()));
        checked("redis-check-aof", &folder.file("appendonlydir/appendonly.aof.manifest"));
    }
}
