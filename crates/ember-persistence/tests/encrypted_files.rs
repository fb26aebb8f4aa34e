//! Encrypted files: they are read back, and any tampering is reported.

#![cfg(feature = "encryption")]
#![allow(clippy::unwrap_used, reason = "a test")]

mod support;

use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Arc;

use ember_persistence::aof::{AofDirectory, AofReader, AofWriter, Batch, Part};
use ember_persistence::encryption::{
    Encryption, EncryptionError, EncryptionProblem, Ending, FileSink, Key, KeyRing, is_encrypted,
};
use ember_persistence::files::{Disk, SimulatedDisk, read_whole};
use ember_persistence::rdb_file::{self, RdbReader, SaveOptions, Source};
use ember_protocol::OwnedBatch;
use emberkv_core::types::limits::EncodingLimits;
use support::{RDB, assert_same, sample, seen, write_keys};

const HEAD: usize = 60;
const CHUNK_HEAD: usize = 36;
const TAG_AND_END: usize = 17;

fn key(number: u8) -> Key {
    Key::new([number; 32])
}

fn encryption(number: u8) -> Encryption {
    Encryption::with(KeyRing::new(key(number)))
}

fn disk() -> Arc<dyn Disk> {
    Arc::new(SimulatedDisk::new(1))
}

fn put(disk: &Arc<dyn Disk>, bytes: &[u8]) {
    disk.create(Path::new("d/x")).unwrap().write_at(0, bytes).unwrap();
}

fn get(disk: &Arc<dyn Disk>) -> Vec<u8> {
    read_whole(disk.as_ref(), Path::new("d/x"), 1 << 30).unwrap()
}

fn write(disk: &Arc<dyn Disk>, encryption: &Encryption, plain: &[u8]) {
    let file = disk.create(Path::new("d/x")).unwrap();
    let mut sink = FileSink::begin(file, encryption).unwrap();
    sink.write_all(plain).unwrap();
    sink.finish().unwrap();
}

fn read(disk: &Arc<dyn Disk>, encryption: &Encryption, ending: Ending) -> Result<Vec<u8>, EncryptionError> {
    let mut opened = encryption.open(disk.open_to_read(Path::new("d/x")).unwrap(), ending)?;
    let mut plain = Vec::new();
    match opened.read_to_end(&mut plain) {
        Ok(_) => Ok(plain),
        Err(error) => Err(*error.into_inner().unwrap().downcast().unwrap()),
    }
}

fn problem(disk: &Arc<dyn Disk>, bytes: &[u8]) -> EncryptionProblem {
    put(disk, bytes);
    read(disk, &encryption(1), Ending::Whole).unwrap_err().problem
}

/// Returns the offsets at which the chunks of a file begin, and the end of the file.
fn chunks(bytes: &[u8]) -> Vec<usize> {
    let mut begins = vec![HEAD];
    while let Some(len) = bytes.get(begins[begins.len() - 1] + 4..).and_then(|rest| rest.first_chunk::<4>()) {
        let len = (u32::from_le_bytes(*len) & !(1 << 31)) as usize;
        begins.push(begins[begins.len() - 1] + CHUNK_HEAD + len + TAG_AND_END);
    }
    begins
}

#[test]
fn files_of_every_size_are_read_back_and_contain_no_plaintext() {
    let disk = disk();
    for len in [0, 1, 65_535, 65_536, 65_537, 300_000] {
        let plain = b"secret! ".repeat(len / 8 + 1)[..len].to_vec();
        write(&disk, &encryption(1), &plain);
        assert_eq!(read(&disk, &encryption(1), Ending::Whole).unwrap(), plain);
        let stored = get(&disk);
        assert!(!stored.windows(6).any(|window| window == b"secret"));
        assert!(is_encrypted(disk.open_to_read(Path::new("d/x")).unwrap().as_ref()).unwrap());
        write(&disk, &encryption(1), &plain);
        assert_ne!(get(&disk)[HEAD - 32..], stored[HEAD - 32..], "each file has a separate key");
    }
    write(&disk, &Encryption::off(), b"plain");
    assert_eq!(read(&disk, &encryption(1), Ending::Whole).unwrap(), b"plain");
}

#[test]
fn the_key_must_be_known() {
    let disk = disk();
    write(&disk, &encryption(1), b"something");
    let error = read(&disk, &encryption(2), Ending::Whole).unwrap_err();
    assert!(matches!(&error.problem, EncryptionProblem::WrongKey(name) if *name == key(1).fingerprint()));
    assert!(error.to_string().starts_with("d/x at offset 0: it is encrypted with a key of fingerprint"));
    let error = read(&disk, &Encryption::off(), Ending::Whole).unwrap_err();
    assert!(matches!(error.problem, EncryptionProblem::NoKey));
    let mut both = KeyRing::new(key(2));
    both.add_older(key(1));
    let both = Encryption::with(both);
    assert_eq!(read(&disk, &both, Ending::Whole).unwrap(), b"something");
    write(&disk, &both, b"rotated");
    assert_eq!(read(&disk, &encryption(2), Ending::Whole).unwrap(), b"rotated");
}

#[test]
fn every_flipped_bit_is_detected() {
    let disk = disk();
    write(&disk, &encryption(1), b"0123456789");
    let stored = get(&disk);
    for at in 0..stored.len() {
        for bit in 0..8 {
            let mut changed = stored.clone();
            changed[at] ^= 1 << bit;
            put(&disk, &changed);
            match read(&disk, &encryption(1), Ending::Whole) {
                // Without its magic bytes the file counts as unencrypted, and no reader would accept its contents.
                Ok(plain) => assert!(at < 8 && plain == changed),
                Err(error) => assert!(at >= 8, "{error}"),
            }
        }
    }
    let mut version = stored.clone();
    version[8] = 3;
    assert!(matches!(problem(&disk, &version), EncryptionProblem::Version(3)));
    let mut content = stored.clone();
    content[HEAD + CHUNK_HEAD] ^= 1;
    assert!(matches!(problem(&disk, &content), EncryptionProblem::Altered));
}

#[test]
fn truncated_moved_and_exchanged_blocks_are_reported() {
    let disk = disk();
    let plain: Vec<u8> = (0..200_000u32).map(|number| number as u8).collect();
    write(&disk, &encryption(1), &plain);
    let stored = get(&disk);
    let begins = chunks(&stored);
    assert_eq!(begins.len(), 5);
    for len in [8, 30, HEAD, HEAD + 1, begins[1], begins[1] + 5, begins[2] + 100, begins[3], stored.len() - 1]
    {
        let problem = problem(&disk, &stored[..len]);
        assert!(matches!(problem, EncryptionProblem::Truncated), "{len}: {problem:?}");
    }
    let chunk = |number: usize| &stored[begins[number]..begins[number + 1]];
    let swapped = [&stored[..HEAD], chunk(1), chunk(0), chunk(2), chunk(3)].concat();
    assert!(
        matches!(problem(&disk, &swapped), EncryptionProblem::Moved { from } if from == begins[1] as u64)
    );
    let without = [&stored[..HEAD], chunk(0), chunk(2), chunk(3)].concat();
    assert!(
        matches!(problem(&disk, &without), EncryptionProblem::Moved { from } if from == begins[2] as u64)
    );
    let longer = [&stored[..], b"more"].concat();
    assert!(matches!(problem(&disk, &longer), EncryptionProblem::TooLong));
    write(&disk, &encryption(1), &plain);
    let other = get(&disk);
    let exchanged = [&stored[..begins[1]], &other[begins[1]..]].concat();
    assert!(matches!(problem(&disk, &exchanged), EncryptionProblem::Altered));
}

#[test]
fn an_encrypted_rdb_file_is_loaded_like_a_plain_one() {
    let (disk, path) = (disk(), Path::new("d/dump.rdb"));
    let mut local = sample(true);
    let encryption = encryption(1);
    let options = SaveOptions { version: 10, is_packed: true, encryption: &encryption };
    rdb_file::save(&disk, path, &options, |writer| write_keys(&local, writer)).unwrap();
    let opened = encryption.open(disk.open_to_read(path).unwrap(), Ending::Whole).unwrap();
    let mut reader = RdbReader::new(opened, path, EncodingLimits::DEFAULT).unwrap();
    let (mut loaded, _) = support::load(&mut reader, 2).unwrap();
    assert_same(&seen(&mut loaded), &seen(&mut local));
    // An error of the encryption is reported unchanged.
    let mut stored = read_whole(disk.as_ref(), path, 1 << 30).unwrap();
    let middle = stored.len() / 2;
    stored[middle] ^= 1;
    disk.create(path).unwrap().write_at(0, &stored).unwrap();
    let opened = encryption.open(disk.open_to_read(path).unwrap(), Ending::Whole).unwrap();
    let mut reader = RdbReader::new(opened, path, EncodingLimits::DEFAULT).unwrap();
    let error = support::load(&mut reader, 2).err().unwrap().to_string();
    assert!(error.contains("it was altered"), "{error}");
}

/// Returns the number of units of an increment, excluding its torn end, or the error.
fn units(disk: &Arc<dyn Disk>, path: &Path, ending: Ending) -> Result<usize, String> {
    let opened = encryption(1).open(disk.open_to_read(path).unwrap(), ending);
    let opened = opened.map_err(|error| error.to_string())?;
    let mut reader = AofReader::new(Source::new(opened, 0), path, ending);
    let (mut unit, mut count) = (OwnedBatch::new(), 0);
    loop {
        match reader.next(&mut unit).map_err(|error| error.to_string())? {
            Part::Unit => count += 1,
            Part::Time(_) | Part::Origin(_) => {}
            Part::End => return Ok(count),
        }
    }
}

#[test]
fn a_torn_end_of_an_increment_is_distinguished_from_damage() {
    let (disk, path) = (disk(), Path::new("d/x"));
    let mut writer = AofWriter::create(&disk, path, &encryption(1)).unwrap();
    let mut batch = Batch::new();
    for number in 0..6 {
        batch.clear();
        batch.command(&[b"SET", b"key", number.to_string().as_bytes()]);
        writer.append(&mut batch).unwrap();
        if number < 4 {
            writer.sync().unwrap();
        }
    }
    let stored = get(&disk);
    let begins = chunks(&stored);
    // The first line and six batches. The last two declare four of them durable.
    assert_eq!(begins.len(), 8);
    for at in HEAD..stored.len() {
        let mut changed = stored.clone();
        changed[at] ^= 1;
        put(&disk, &changed);
        let result = units(&disk, path, Ending::MayBeTorn);
        // A damaged chunk that is followed by an intact one is not a torn end.
        if at < begins[6] {
            let error = result.unwrap_err();
            let is_named =
                error.contains("altered") || error.contains("moved") || error.contains("truncated");
            assert!(is_named, "{at}: {error}");
        } else {
            assert_eq!(result, Ok(5), "{at}");
        }
        assert!(units(&disk, path, Ending::Whole).is_err());
    }
    // The exception is a chunk of which a sector never reached the disk.
    for (lost, expected) in [(begins[5]..begins[6], Some(4)), (begins[4]..begins[5], None)] {
        let mut changed = stored.clone();
        changed[lost].fill(0);
        put(&disk, &changed);
        assert_eq!(units(&disk, path, Ending::MayBeTorn).ok(), expected);
    }
    for len in HEAD..stored.len() {
        put(&disk, &stored[..len]);
        let whole = begins[2..].iter().filter(|&&end| end <= len).count();
        assert_eq!(units(&disk, path, Ending::MayBeTorn), Ok(whole), "{len}");
    }
}

#[test]
fn keys_are_rotated_by_a_rewrite() {
    let disk = disk();
    let directory = Path::new("d/appendonlydir");
    let mut aof = AofDirectory::open(&disk, directory, "appendonly.aof", &encryption(1)).unwrap();
    let mut writer = aof.begin_increment().unwrap();
    let mut batch = Batch::new();
    batch.command(&[b"SET", b"key", b"value"]);
    writer.append(&mut batch).unwrap();
    let mut keys = KeyRing::new(key(2));
    keys.add_older(key(1));
    aof.set_encryption(&Encryption::with(keys));
    aof.rotate(&mut writer).unwrap();
    let rewrite = aof.begin_rewrite();
    let base = aof.begin_base(RDB).unwrap();
    aof.write_base(&base, |_| io::Result::Ok(())).unwrap();
    aof.finish_rewrite(rewrite, base).unwrap();
    assert_eq!(aof.live_files().len(), 2);
    for file in aof.live_files() {
        let ending =
            if file.ends_with("appendonly.aof.1.base.rdb") { Ending::Whole } else { Ending::MayBeTorn };
        let mut opened = encryption(2).open(disk.open_to_read(&file).unwrap(), ending).unwrap();
        io::copy(&mut opened, &mut io::sink()).unwrap();
        assert!(encryption(1).open(disk.open_to_read(&file).unwrap(), ending).is_err());
    }
    assert_eq!(disk.list(directory).unwrap().len(), 3);
}
