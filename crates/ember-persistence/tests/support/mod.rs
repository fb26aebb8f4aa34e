//! Keyspaces for the tests: one with every type and encoding, and the client-visible state of a keyspace.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, reason = "each suite uses a part")]

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

use ember_persistence::aof::{AofDirectory, AofReader, AofWriter, Part, TornEnd};
use ember_persistence::encryption::{Encryption, Ending, FileSink};
use ember_persistence::files::{Disk, FileReader};
use ember_persistence::key_writer::KeyWriter;
use ember_persistence::rdb_file::{
    self, Batch, FILE_VERSION, Inserter, KeyFacts, KeyForm, RdbError, RdbReader, RdbWriter, SaveOptions,
    Step, VersionCheck, Written,
};
use ember_protocol::{OwnedBatch, Protocol};
use ember_testkit::{Value as Reply, split_arguments};
use emberkv_core::keyspace::Keyspace;
use emberkv_core::keyspace::entry::EntryRef;
use emberkv_core::local::Local;
use emberkv_core::turn::Turn;
use emberkv_core::types::limits::EncodingLimits;

/// Runs a command and returns its reply.
pub fn run(local: &mut Local, words: &[&[u8]]) -> Reply {
    let bytes = local.run(words);
    ember_testkit::read_frame(&mut bytes.as_slice(), &mut Vec::new()).unwrap()
}

/// Runs a command in redis-cli's notation, which must succeed.
pub fn must(local: &mut Local, line: &str) -> Reply {
    let words = split_arguments(line).unwrap();
    let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
    let reply = run(local, &words);
    assert!(!reply.is_error(), "{line}: {reply:?}");
    reply
}

fn list_of(command: &str, count: usize, element: impl Fn(usize) -> String) -> String {
    (0..count).fold(command.to_owned(), |line, number| line + " " + &element(number))
}

/// Commands that create values of all types and encodings. Without `fields_expire`, RDB version 10 can store all of
/// these values.
pub fn sample_commands(fields_expire: bool) -> Vec<String> {
    let large = "x".repeat(70_000);
    let mut lines = vec![
        "SET int 12".to_owned(),
        "SET large-int -9223372036854775808".to_owned(),
        "SET 77 number-as-name".to_owned(),
        "SET text hello PX 1000000000000".to_owned(),
        "SET empty \"\"".to_owned(),
        "SET \"\\x00\\xff \\r\\n\" binary".to_owned(),
        format!("SET repeated {}", "ab".repeat(5000)),
        format!("SET large {large}"),
        format!("SET {} long-name", "n".repeat(300)),
        "RPUSH list a 1 -5 70000 \"\\x00\\xff\" \"\"".to_owned(),
        list_of("RPUSH long-list", 3000, |number| format!("element:{number}")),
        format!("RPUSH wide-list a {large} b"),
        "SADD intset 3 1 70000000000".to_owned(),
        "SADD set a b 1".to_owned(),
        list_of("SADD large-set", 300, |number| format!("m{number}")),
        "ZADD zset 1 a 2.5 b -inf c inf d 3 7".to_owned(),
        list_of("ZADD large-zset", 300, |number| format!("{}.25 m{number}", number * 7 % 300)),
        "HSET hash f v 1 2".to_owned(),
        list_of("HSET large-hash", 600, |number| format!("f{number} {number}")),
        "PEXPIRE large-hash 2000000000000".to_owned(),
        "PFADD hyperloglog a b c".to_owned(),
        "GEOADD geo 13.361389 38.115556 Palermo".to_owned(),
    ];
    lines.extend((1..=250).map(|number| format!("XADD stream {number}-1 f {number} g{} v", number % 3)));
    lines.extend(
        [
            "XDEL stream 3-1 250-1",
            "XGROUP CREATE stream one 0",
            "XGROUP CREATE stream two 100-1 ENTRIESREAD 99",
            "XGROUP CREATECONSUMER stream two carol",
            "XREADGROUP GROUP one alice COUNT 5 STREAMS stream >",
            "XREADGROUP GROUP one bob COUNT 3 STREAMS stream >",
        ]
        .map(str::to_owned),
    );
    if fields_expire {
        lines.push("HSET expiring a 1 b 2 c 3".to_owned());
        lines.push("HPEXPIRE expiring 1000000000000 FIELDS 2 a b".to_owned());
        lines.push(list_of("HSET large-expiring", 600, |number| format!("f{number} {number}")));
        lines.push("HPEXPIRE large-expiring 1000000000000 FIELDS 2 f1 f2".to_owned());
    }
    lines
}

/// Returns a keyspace with the values of [`sample_commands`] in database 0 and a few keys in database 9.
pub fn sample(fields_expire: bool) -> Local {
    let mut local = Local::new(Protocol::Resp2);
    for line in sample_commands(fields_expire) {
        must(&mut local, &line);
    }
    if fields_expire {
        // Redis and Valkey have no JSON.
        must(&mut local, r#"JSON.SET json $ '{"a":[1,2.5,"x"],"b":null}'"#);
    }
    local.database = 9;
    for number in 0..5000 {
        must(&mut local, &format!("SET key:{number} value:{number}"));
    }
    local.database = 0;
    local
}

/// Calls `visit` with every key, in no particular order.
pub fn for_each(local: &Local, mut visit: impl FnMut(usize, EntryRef<'_>)) {
    for database in 0..local.keyspace.databases() {
        for guard in local.keyspace.lock_all() {
            guard.database(database).table().iter().for_each(|entry| visit(database, entry));
        }
    }
}

/// Returns the client-visible state of every key, by database and name.
pub fn seen(local: &mut Local) -> Seen {
    let mut names = Vec::new();
    for_each(local, |database, entry| names.push((database, entry.key().to_vec())));
    let mut seen = BTreeMap::new();
    for (database, name) in names {
        local.database = database;
        let of_type = run(local, &[b"TYPE", &name]).text();
        let commands: &[&[&[u8]]] = match of_type.as_str() {
            "string" => &[&[b"GET", b"?"]],
            "list" => &[&[b"LRANGE", b"?", b"0", b"-1"]],
            "set" => &[&[b"SORT", b"?", b"ALPHA"]],
            "zset" => &[&[b"ZRANGE", b"?", b"0", b"-1", b"WITHSCORES"]],
            "hash" => &[&[b"HGETALL", b"?"]],
            "stream" => &[&[b"XRANGE", b"?", b"-", b"+"], &[b"XINFO", b"STREAM", b"?", b"FULL"]],
            "ReJSON-RL" => &[&[b"JSON.GET", b"?"]],
            other => panic!("{other}"),
        };
        let mut replies = vec![run(local, &[b"PEXPIRETIME", &name])];
        if of_type != "string" {
            // Files do not store whether a string is embedded in its object.
            replies.insert(0, run(local, &[b"OBJECT", b"ENCODING", &name]));
        }
        for words in commands {
            let words: Vec<&[u8]> =
                words.iter().map(|&word| if word == b"?" { &name } else { word }).collect();
            replies.push(run(local, &words));
        }
        if of_type == "hash" {
            let fields = run(local, &[b"HKEYS", &name]);
            let mut fields: Vec<Vec<u8>> =
                fields.elements().unwrap().iter().map(|field| field.bytes().unwrap().to_vec()).collect();
            fields.sort();
            replies.pop();
            for field in fields {
                replies.push(run(local, &[b"HGET", &name, &field]));
                replies.push(run(local, &[b"HPEXPIRETIME", &name, b"FIELDS", b"1", &field]));
            }
        }
        seen.insert((database, name), replies);
    }
    local.database = 0;
    seen
}

/// The result of [`seen`].
pub type Seen = BTreeMap<(usize, Vec<u8>), Vec<Reply>>;

/// Checks that two keyspaces have equal contents; the error names the key that differs.
pub fn assert_same(found: &Seen, expected: &Seen) {
    for key in found.keys().chain(expected.keys()) {
        let (found, expected) = (found.get(key), expected.get(key));
        if found != expected {
            let mut text = format!("found {found:?}\nwhere {expected:?} was expected");
            text.truncate(1000);
            panic!("database {} key {}: {text}", key.0, key.1.escape_ascii());
        }
    }
}

/// The format of bases in RDB.
pub const RDB: KeyForm = KeyForm::Rdb { version: FILE_VERSION, is_packed: true };

/// Begins an AOF whose base is this keyspace, at Unix time 1 s.
pub fn begin_aof(aof: &mut AofDirectory, local: &Local) -> AofWriter {
    let (writer, rewrite) = aof.begin_replacement().unwrap();
    let base = aof.begin_base(RDB).unwrap();
    aof.write_base(&base, |writer| write_keys(local, writer)).unwrap();
    aof.finish_rewrite(rewrite.taken_at(1), base).unwrap();
    writer
}

/// Writes all keys of a keyspace.
pub fn write_keys(local: &Local, writer: &mut impl KeyWriter) -> io::Result<()> {
    let mut result = Ok(());
    for_each(local, |database, entry| {
        if result.is_ok() {
            let facts = KeyFacts { database, expire_at_ms: entry.expire_at_ms(), ..KeyFacts::default() };
            result = writer.key(&facts, entry.key(), entry);
        }
    });
    result
}

/// Returns the options for unencrypted files of a version.
pub fn options(version: u16) -> SaveOptions<'static> {
    static OFF: std::sync::LazyLock<Encryption> = std::sync::LazyLock::new(Encryption::off);
    SaveOptions { version, is_packed: true, encryption: &OFF }
}

/// Saves a keyspace with two libraries and everything else that a file may contain.
pub fn save(local: &Local, disk: &Arc<dyn Disk>, path: &Path, version: u16) -> Written {
    rdb_file::save(disk, path, &options(version), |writer: &mut RdbWriter<FileSink>| {
        writer.usual_aux("7.0.15", 1_700_000_000, 1 << 20, false)?;
        writer.function(b"#!lua name=sample\nredis.register_function('f', function() return 1 end)")?;
        writer.sizes(0, 40, 2)?;
        write_keys(local, writer)
    })
    .unwrap()
}

/// Returns a function that inserts batches of keys into a keyspace.
fn insert_into(keyspace: &Keyspace) -> impl FnMut(&mut Batch) -> Result<(), RdbError> {
    // The time is that of the start, at which no key has expired.
    let mut inserter = Inserter::new(keyspace, Turn::new(0, 1), EncodingLimits::DEFAULT);
    move |batch| inserter.insert(batch).map(drop)
}

/// Loads the keys of a reader into an empty keyspace; returns all other steps, too.
pub fn load<R: io::Read>(reader: &mut RdbReader<R>, threads: usize) -> Result<(Local, Vec<Step>), RdbError> {
    let local = Local::new(Protocol::Resp2);
    let keyspace = &local.keyspace;
    let mut steps = Vec::new();
    rdb_file::load(
        reader,
        threads,
        || insert_into(keyspace),
        |step, _| {
            if !matches!(step, Step::Keys | Step::End) {
                steps.push(step);
            }
            Ok(())
        },
    )?;
    Ok((local, steps))
}

/// Loads a file from a disk.
pub fn load_file(disk: &dyn Disk, path: &Path, threads: usize) -> Result<(Local, Vec<Step>), RdbError> {
    let file = disk.open_to_read(path).unwrap();
    load(&mut RdbReader::new(FileReader::new(file, 0), path, EncodingLimits::DEFAULT)?, threads)
}

/// Loads all files of an AOF in order into a keyspace, as at startup; truncates the torn end.
pub fn start(
    disk: &Arc<dyn Disk>,
    directory: impl AsRef<Path>,
    encryption: &Encryption,
) -> Result<(Local, AofDirectory), Box<dyn std::error::Error>> {
    let aof = AofDirectory::open(disk, directory.as_ref(), "appendonly.aof", encryption)?;
    let mut local = Local::new(Protocol::Resp2);
    play(disk, &aof, encryption, &mut local)?;
    Ok((local, aof))
}

/// Loads the files of an AOF into a keyspace, and truncates its torn end.
pub fn play(
    disk: &Arc<dyn Disk>,
    aof: &AofDirectory,
    encryption: &Encryption,
    local: &mut Local,
) -> Result<(), Box<dyn std::error::Error>> {
    aof.check_sizes()?;
    let files = aof.live_files();
    for (index, path) in files.iter().enumerate() {
        let is_last = index + 1 == files.len();
        let ending = if is_last { Ending::MayBeTorn } else { Ending::Whole };
        let torn = start_file(disk, path, ending, encryption, local)?;
        if is_last {
            aof.settle(torn)?;
        }
    }
    Ok(())
}

fn start_file(
    disk: &Arc<dyn Disk>,
    path: &Path,
    ending: Ending,
    encryption: &Encryption,
    local: &mut Local,
) -> Result<Option<TornEnd>, Box<dyn std::error::Error>> {
    let opened = encryption.open(disk.open_to_read(path)?, ending)?;
    let source = match AofReader::split(opened, path, EncodingLimits::DEFAULT, VersionCheck::Strict)? {
        Err(source) => source,
        Ok(mut rdb) => {
            let keyspace = &local.keyspace;
            rdb_file::load(&mut rdb, 0, || insert_into(keyspace), |_, _| Ok(()))?;
            rdb.into_source()
        }
    };
    let mut reader = AofReader::new(source, path, ending);
    let mut commands = OwnedBatch::new();
    loop {
        match reader.next(&mut commands)? {
            Part::End => {
                local.database = 0;
                return Ok(reader.torn_end());
            }
            Part::Time(_) | Part::Origin(_) => {}
            Part::Unit => {
                for index in 0..commands.len() {
                    let words: Vec<&[u8]> = commands.command(index).iter().collect();
                    if words[0].eq_ignore_ascii_case(b"select") {
                        local.database = std::str::from_utf8(words[1])?.parse()?;
                        continue;
                    }
                    let reply = local.run(&words);
                    assert!(!reply.starts_with(b"-"), "{}", reply.escape_ascii());
                }
            }
        }
    }
}
