//! AOF files: synced data survives every power cut, a torn end is distinguished from damage, and Redis's files are
//! read.

#![allow(clippy::unwrap_used, reason = "a test")]

mod support;

use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use ember_persistence::aof::{AofDirectory, AofError, AofReader, AofWriter, Batch, Part, TornEnd};
use ember_persistence::encryption::{Encryption, Ending, Key, KeyRing};
use ember_persistence::files::{Disk, Faults, Reread, SimulatedDisk, read_whole};
use ember_persistence::key_writer::KeyWriter;
use ember_persistence::origin::Origin;
use ember_persistence::rdb_file::{KeyForm, Source};
use ember_protocol::OwnedBatch;
use ember_testkit::Random;
use emberkv_core::local::Local;
use support::{RDB, assert_same, must, sample, seen, start, write_keys};

/// Length in bytes of the line before a batch.
const BATCH_LINE_BYTES: usize = 66;

/// The commands of a unit, each a list of words.
type Unit = Vec<Vec<Vec<u8>>>;

fn encryptions() -> [Encryption; 2] {
    [Encryption::off(), Encryption::with(KeyRing::new(Key::new([7; 32])))]
}

fn units_of<R: Reread>(reader: &mut AofReader<R>) -> Result<Vec<Unit>, AofError> {
    let (mut units, mut unit) = (Vec::new(), OwnedBatch::new());
    loop {
        match reader.next(&mut unit)? {
            Part::End => return Ok(units),
            Part::Time(_) | Part::Origin(_) => {}
            Part::Unit => units.push(
                (0..unit.len())
                    .map(|index| unit.command(index).iter().map(<[u8]>::to_vec).collect())
                    .collect(),
            ),
        }
    }
}

fn read(bytes: &[u8], ending: Ending) -> Result<(Vec<Unit>, Option<TornEnd>), AofError> {
    let mut reader = AofReader::new(Source::new(io::Cursor::new(bytes), 0), Path::new("x.aof"), ending);
    let units = units_of(&mut reader)?;
    Ok((units, reader.torn()))
}

fn unit(words: &[&str]) -> Unit {
    vec![words.iter().map(|word| word.as_bytes().to_vec()).collect()]
}

fn numbered(batch: &mut Batch, number: usize) {
    batch.clear();
    batch.command(&[b"RPUSH", b"log", number.to_string().as_bytes()]);
}

/// Returns an unencrypted increment of numbered batches, each synced, and the offsets at which the batches begin.
fn increment(count: usize) -> (Vec<u8>, Vec<usize>) {
    let disk: Arc<dyn Disk> = Arc::new(SimulatedDisk::new(1));
    let mut writer = AofWriter::create(&disk, Path::new("d/a"), &Encryption::off()).unwrap();
    let mut batch = Batch::new();
    let mut begins = Vec::new();
    for number in 0..count {
        begins.push(writer.size() as usize);
        numbered(&mut batch, number);
        writer.append(&mut batch).unwrap();
        writer.sync().unwrap();
    }
    begins.push(writer.size() as usize);
    (read_whole(disk.as_ref(), Path::new("d/a"), 1 << 20).unwrap(), begins)
}

#[test]
fn units_are_read_back_with_transactions_as_one() {
    for encryption in encryptions() {
        let disk: Arc<dyn Disk> = Arc::new(SimulatedDisk::new(1));
        let path = Path::new("d/a");
        let mut writer = AofWriter::create(&disk, path, &encryption).unwrap();
        let mut batch = Batch::new();
        batch.time(1_700_000_000);
        batch.command(&[b"SET", b"a", b"\r\n*1\r\n#CRC:"]);
        batch.command(&[b"MULTI"]);
        batch.command(&[b"INCR", b"b"]);
        batch.command(&[b"DEL", b""]);
        batch.command(&[b"EXEC"]);
        let size = writer.append(&mut batch).unwrap();
        batch.clear();
        assert_eq!(writer.append(&mut batch).unwrap(), size);
        batch.encoded(b"*1\r\n$5\r\nMULTI\r\n*1\r\n$4\r\nEXEC\r\n*2\r\n$6\r\nSELECT\r\n$1\r\n9\r\n");
        writer.append(&mut batch).unwrap();
        writer.close().unwrap();
        assert_eq!(writer.size(), writer.durable_size());
        let opened = encryption.open(disk.open_to_read(path).unwrap(), Ending::Whole).unwrap();
        let mut reader = AofReader::new(Source::new(opened, 0), path, Ending::Whole);
        let mut commands = OwnedBatch::new();
        assert_eq!(reader.next(&mut commands).unwrap(), Part::Time(1_700_000_000));
        let units = units_of(&mut reader).unwrap();
        assert!(reader.is_checked() && reader.torn().is_none());
        let transaction = [unit(&["INCR", "b"]), unit(&["DEL", ""])].concat();
        assert_eq!(units, [unit(&["SET", "a", "\r\n*1\r\n#CRC:"]), transaction, unit(&["SELECT", "9"])]);
    }
}

#[test]
fn a_file_records_its_position_in_the_stream() {
    let disk: Arc<dyn Disk> = Arc::new(SimulatedDisk::new(1));
    let path = Path::new("d/a");
    let mut writer = AofWriter::create(&disk, path, &Encryption::off()).unwrap();
    let origin = Origin::new(&[b'a'; 40], 1234, 3).unwrap();
    let mut batch = Batch::new();
    batch.command(&[b"SET", b"a", b"1"]);
    writer.append(&mut batch).unwrap();
    batch.clear();
    batch.origin(&origin);
    writer.append(&mut batch).unwrap();
    writer.close().unwrap();
    let opened = Encryption::off().open(disk.open_to_read(path).unwrap(), Ending::Whole).unwrap();
    let mut reader = AofReader::new(Source::new(opened, 0), path, Ending::Whole);
    let mut commands = OwnedBatch::new();
    let parts = [(); 3].map(|()| reader.next(&mut commands).unwrap());
    assert_eq!(parts, [Part::Unit, Part::Origin(origin), Part::End]);
}

#[test]
fn a_file_cut_anywhere_is_valid_up_to_the_batch_before() {
    let (bytes, begins) = increment(5);
    for len in 0..=bytes.len() {
        let (units, torn) = read(&bytes[..len], Ending::MayBeTorn).unwrap();
        let whole = begins[1..].iter().filter(|&&end| end <= len).count();
        assert_eq!(units.len(), whole, "{len}");
        let is_whole = begins.contains(&len) || len == 0;
        assert_eq!(torn.is_none(), is_whole, "{len}");
        if let Some(torn) = torn {
            let valid_to = if len < begins[0] { 0 } else { begins[whole] };
            assert_eq!((torn.valid_to, torn.torn_bytes), (valid_to as u64, (len - valid_to) as u64));
        }
        assert_eq!(read(&bytes[..len], Ending::Whole).is_ok(), is_whole);
    }
}

#[test]
fn damage_before_the_durable_position_is_an_error_and_after_it_a_torn_end() {
    let (bytes, begins) = increment(6);
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x10;
        let result = read(&damaged, Ending::MayBeTorn);
        // The last batch declares all previous ones durable; no record declares the last batch durable.
        if at < begins[5] {
            let Err(AofError::Damaged { offset, .. }) = result else { panic!("{at}: {result:?}") };
            let begin = begins.iter().rev().find(|&&begin| begin <= at).copied().unwrap_or(0);
            // Damage to the first line may be detected at the first batch.
            let is_right = offset == begin as u64 || at < begins[0] && offset == begins[0] as u64;
            assert!(is_right, "{at}: {offset}");
        } else {
            let (units, torn) = result.unwrap();
            assert_eq!((units.len(), torn.unwrap().valid_to), (5, begins[5] as u64));
        }
    }
    let message = read(&[&bytes[..begins[2]], &bytes[begins[3]..]].concat(), Ending::Whole).unwrap_err();
    assert!(message.to_string().contains(&format!("x.aof at offset {}: ", begins[2])), "{message}");
    assert!(message.to_string().contains("`ember-cli repair x.aof --output NEW_FILE`"), "{message}");
}

/// Returns a stored increment of batches that each set a key, either all synced or none, and the offsets at which the
/// batches begin.
fn keys(count: usize, is_synced: bool, encryption: &Encryption) -> (Vec<u8>, Vec<usize>) {
    let disk: Arc<dyn Disk> = Arc::new(SimulatedDisk::new(1));
    let mut writer = AofWriter::create(&disk, Path::new("d/a"), encryption).unwrap();
    let mut batch = Batch::new();
    let mut begins = Vec::new();
    for number in 0..count {
        begins.push(writer.size() as usize);
        batch.clear();
        batch.command(&[b"SET", format!("key:{number}").as_bytes(), &vec![b'v'; number * 37 % 200]]);
        writer.append(&mut batch).unwrap();
        if is_synced {
            writer.sync().unwrap();
        }
    }
    begins.push(writer.size() as usize);
    (read_whole(disk.as_ref(), Path::new("d/a"), 1 << 20).unwrap(), begins)
}

/// Returns the number of units of a stored increment, or the error if it is refused.
fn units_stored(bytes: &[u8], encryption: &Encryption) -> Result<usize, String> {
    let (disk, path) = (SimulatedDisk::new(1), Path::new("d/a"));
    disk.create(path).unwrap().write_at(0, bytes).unwrap();
    let opened = encryption.open(disk.open_to_read(path).unwrap(), Ending::MayBeTorn);
    let mut reader =
        AofReader::new(Source::new(opened.map_err(|error| error.to_string())?, 0), path, Ending::MayBeTorn);
    Ok(units_of(&mut reader).map_err(|error| error.to_string())?.len())
}

/// Damages files of 80 keys. `damage` changes the bytes and returns the range of original bytes that it has changed.
/// Then the file must be refused, or loading returns all batches before that range and no batch followed it.
fn damaged_files_are_refused_or_whole(damage: impl Fn(&mut Vec<u8>, &mut Random) -> Range<usize>) {
    for encryption in encryptions() {
        for is_synced in [false, true] {
            let mut random = Random::new(1);
            let (bytes, begins) = keys(80, is_synced, &encryption);
            assert_eq!(units_stored(&bytes, &encryption), Ok(80));
            for _ in 0..600 {
                let mut damaged = bytes.clone();
                let touched = damage(&mut damaged, &mut random);
                if damaged == bytes {
                    continue;
                }
                let before = begins[1..].iter().filter(|&&end| end <= touched.start).count();
                let has_more = begins[..80].iter().any(|&begin| begin >= touched.end);
                match units_stored(&damaged, &encryption) {
                    Ok(units) => assert!(units >= before && !has_more, "{touched:?}: {units} of {before}"),
                    Err(error) => assert!(error.contains("offset"), "{error}"),
                }
            }
        }
    }
}

fn place(bytes: &[u8], random: &mut Random) -> usize {
    random.below(bytes.len())
}

#[test]
fn missing_bytes_never_cut_off_later_batches() {
    damaged_files_are_refused_or_whole(|bytes, random| {
        let at = place(bytes, random);
        let count = if random.chance(50) { 1 + random.below(8) } else { 1 + random.below(1000) };
        let end = bytes.len().min(at + count);
        bytes.drain(at..end);
        at..end
    });
}

#[test]
fn inserted_bytes_never_cut_off_later_batches() {
    damaged_files_are_refused_or_whole(|bytes, random| {
        let at = place(bytes, random);
        let count = if random.chance(50) { 1 + random.below(8) } else { 1 + random.below(2000) };
        let fill = [0, b'v', b'\n', random.next_u64() as u8][random.below(4)];
        bytes.splice(at..at, std::iter::repeat_n(fill, count));
        at..at
    });
}

#[test]
fn altered_bytes_never_cut_off_later_batches() {
    damaged_files_are_refused_or_whole(|bytes, random| {
        let at = place(bytes, random);
        let end = bytes.len().min(at + 1 + random.below(3));
        for byte in &mut bytes[at..end] {
            // Changing only the lowest bit often changes a digit to another digit.
            *byte ^= if random.chance(50) { 1 } else { 1 + random.below(255) as u8 };
        }
        at..end
    });
}

#[test]
fn a_duplicated_block_never_cuts_off_later_batches() {
    damaged_files_are_refused_or_whole(|bytes, random| {
        let (one, other) = (place(bytes, random), place(bytes, random));
        let block = bytes[one.min(other)..one.max(other)].to_vec();
        let at = if random.chance(20) { bytes.len() } else { place(bytes, random) };
        bytes.splice(at..at, block);
        at..at
    });
}

#[test]
fn exchanged_blocks_are_detected() {
    for encryption in encryptions() {
        let mut random = Random::new(1);
        let (bytes, begins) = keys(80, false, &encryption);
        for _ in 0..600 {
            let mut places = [0; 4].map(|_| begins[random.below(81)]);
            places.sort_unstable();
            let [a, b, c, d] = places;
            let changed = [&bytes[..a], &bytes[c..d], &bytes[b..c], &bytes[a..b], &bytes[d..]].concat();
            if changed != bytes {
                assert!(units_stored(&changed, &encryption).is_err(), "{places:?}");
            }
        }
    }
}

#[test]
fn a_lost_sector_is_distinguished_from_damage_by_its_zeros() {
    let (bytes, begins) = keys(80, false, &Encryption::off());
    let mut torn = 0;
    for sector in (0..bytes.len()).step_by(512) {
        let mut damaged = bytes.clone();
        let end = bytes.len().min(sector + 512);
        damaged[sector.max(begins[0])..end].fill(0);
        let first = begins[1..].iter().filter(|&&end| end <= sector.max(begins[0])).count();
        assert_eq!(units_stored(&damaged, &Encryption::off()), Ok(first));
        torn += 1;
        // Inserted bytes are damage, too: no power cut causes them.
        damaged.insert(end, b'x');
        let has_more = begins[..80].iter().any(|&begin| begin >= end);
        assert!(!has_more || units_stored(&damaged, &Encryption::off()).is_err());
    }
    assert!(torn > 20);
    // Data that a later batch declares durable cannot be a torn end, whatever remains of it.
    let (mut bytes, begins) = keys(80, true, &Encryption::off());
    bytes[begins[40]..begins[50]].fill(0);
    assert!(units_stored(&bytes, &Encryption::off()).is_err());
    // Some file systems extend files before they write the data: the end contains zeros.
    for count in [1, 100, 1000, 100_000] {
        let (mut bytes, begins) = keys(80, false, &Encryption::off());
        bytes.truncate(begins[79] + 20);
        bytes.resize(bytes.len() + count, 0);
        let (units, torn) = read(&bytes, Ending::MayBeTorn).unwrap();
        assert_eq!((units.len(), torn.unwrap().torn_bytes), (79, 20 + count as u64));
        assert!(read(&bytes, Ending::Whole).is_err());
    }
}

#[test]
fn a_torn_value_that_holds_batches_is_a_torn_end() {
    let disk: Arc<dyn Disk> = Arc::new(SimulatedDisk::new(1));
    let path = Path::new("d/a");
    let mut writer = AofWriter::create(&disk, path, &Encryption::off()).unwrap();
    let mut batch = Batch::new();
    for number in 0..20 {
        numbered(&mut batch, number);
        writer.append(&mut batch).unwrap();
    }
    // Appends a copy of the file itself, and batches of other files.
    let copy = read_whole(disk.as_ref(), path, 1 << 20).unwrap();
    let value = [&copy[..], &keys(80, true, &Encryption::off()).0, &copy[30..]].concat();
    batch.clear();
    batch.command(&[b"SET", b"backup", &value]);
    let begin = writer.size() as usize;
    writer.append(&mut batch).unwrap();
    let bytes = read_whole(disk.as_ref(), path, 1 << 20).unwrap();
    assert_eq!(read(&bytes, Ending::MayBeTorn).unwrap().0.len(), 21);
    for len in (begin + 1..bytes.len()).step_by(7) {
        let (units, torn) = read(&bytes[..len], Ending::MayBeTorn).unwrap();
        assert_eq!((units.len(), torn.unwrap().valid_to), (20, begin as u64), "{len}");
    }
    for at in (begin..bytes.len()).step_by(7) {
        let mut altered = bytes.clone();
        altered[at] ^= 0x10;
        assert_eq!(read(&altered, Ending::MayBeTorn).unwrap().0.len(), 20, "{at}");
    }
}

#[test]
fn commands_of_redis_after_a_damaged_batch_are_not_cut_off() {
    let (bytes, begins) = increment(3);
    let text = b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\nb\r\n";
    let both = [&bytes[..], text, text].concat();
    assert_eq!(read(&both, Ending::MayBeTorn).unwrap().0.len(), 5);
    for at in begins[2] + BATCH_LINE_BYTES..both.len() - 1 {
        if at == bytes.len() {
            // The bytes no longer show whether a command or a batch began here.
            continue;
        }
        let mut altered = both.clone();
        altered[at] ^= 0x80;
        let result = read(&altered, Ending::MayBeTorn).map(|(units, _)| units.len());
        // Files of Redis have no checksums, so damage inside a word is not detected.
        let is_word = at >= bytes.len() && both[at].is_ascii_alphabetic();
        assert!(if is_word { matches!(result, Ok(5)) } else { result.is_err() }, "{at}: {result:?}");
    }
    // Torn ends of Redis's files are truncated.
    let (units, torn) = read(&both[..both.len() - 5], Ending::MayBeTorn).unwrap();
    assert_eq!((units.len(), torn.unwrap().valid_to), (4, (bytes.len() + text.len()) as u64));
}

#[test]
fn files_of_redis_are_read_as_redis_reads_them() {
    let text =
        b"#TS:1700000000\r\n*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\nb\r\n\
        #other\r\n*1\r\n$5\r\nMULTI\r\n*2\r\n$4\r\nINCR\r\n$1\r\nn\r\n*1\r\n$4\r\nEXEC\r\n";
    let (units, torn) = read(text, Ending::Whole).unwrap();
    assert_eq!(units, [unit(&["SELECT", "0"]), unit(&["SET", "a", "b"]), unit(&["INCR", "n"])]);
    assert_eq!(torn, None);
    // An incomplete command is a torn end; an incomplete transaction is torn from its beginning on.
    let multi =
        text.len() - b"*1\r\n$5\r\nMULTI\r\n*2\r\n$4\r\nINCR\r\n$1\r\nn\r\n*1\r\n$4\r\nEXEC\r\n".len();
    for len in multi + 1..text.len() {
        let (units, torn) = read(&text[..len], Ending::MayBeTorn).unwrap();
        assert_eq!((units.len(), torn.unwrap().valid_to), (2, multi as u64), "{len}");
        assert!(read(&text[..len], Ending::Whole).is_err());
    }
    // In files without checksums, nothing else counts as a torn end.
    for end in [
        &b"\0\0\0\0\r\n"[..],
        b"*x\r\n",
        b"*0\r\n",
        b"*1\r\n:1\r\n",
        b"*1\r\n$1\r\nabc",
        b"PING\r\n",
        b"*1\r\n$-1\r\n",
    ] {
        let error = read(&[text, end].concat(), Ending::MayBeTorn).unwrap_err();
        assert!(matches!(error, AofError::Damaged { offset, .. } if offset == text.len() as u64), "{error}");
    }
    // A file of ember without its first line is not treated as a file of Redis.
    let (bytes, begins) = increment(2);
    assert!(matches!(read(&bytes[begins[0]..], Ending::MayBeTorn), Err(AofError::Damaged { offset: 0, .. })));
    // Redis may have appended to a file of ember.
    let text = String::from_utf8_lossy(text).replace("#other\r\n", "");
    let both = [&bytes[..], text.as_bytes()].concat();
    assert_eq!(read(&both, Ending::Whole).unwrap().0.len(), 5);
}

#[test]
fn a_base_of_commands_is_loaded_and_damage_in_it_is_found() {
    for encryption in encryptions() {
        let disk: Arc<dyn Disk> = Arc::new(SimulatedDisk::new(3));
        let mut aof = AofDirectory::open(&disk, Path::new(DIRECTORY), "appendonly.aof", &encryption).unwrap();
        let mut local = sample(true);
        let (_, rewrite) = aof.begin_replacement().unwrap();
        let base = aof.begin_base(KeyForm::Commands).unwrap();
        let mut keys = 0;
        let written = aof.write_base(&base, |writer| {
            writer.usual_aux("7.0.15", 1_700_000_000, 1, true)?;
            writer.sizes(0, 40, 2)?;
            write_keys(&local, writer)?;
            keys = writer.keys();
            Ok(())
        });
        written.unwrap();
        aof.finish_rewrite(rewrite, base).unwrap();
        assert_eq!(keys as usize, seen(&mut local).len());
        assert_eq!(aof.manifest().base.as_ref().unwrap().name, "appendonly.aof.1.base.aof");
        let (mut loaded, _) = start(&disk, DIRECTORY, &encryption).unwrap();
        assert_same(&without_seen_times(seen(&mut loaded)), &without_seen_times(seen(&mut local)));
        let path = aof.live_files().remove(0);
        let file = disk.open(&path).unwrap();
        let size = file.size().unwrap();
        let mut byte = [0];
        for offset in [20, size / 2, size - 1] {
            file.read_at(offset, &mut byte).unwrap();
            file.write_at(offset, &[byte[0] ^ 1]).unwrap();
            assert!(start(&disk, DIRECTORY, &encryption).is_err(), "{offset} of {size}");
            file.write_at(offset, &byte).unwrap();
        }
        file.set_size(size - 1).unwrap();
        assert!(start(&disk, DIRECTORY, &encryption).is_err());
    }
}

/// Removes streams, because commands do not restore all of their facts: the times at which consumers were seen, and the
/// history of tables and blocks.
fn without_seen_times(mut seen: support::Seen) -> support::Seen {
    seen.retain(|(_, name), _| name != b"stream");
    seen
}

/// Returns the length of the list `log`, whose numbers must be 0, 1, 2, ….
fn log_len(local: &mut Local) -> usize {
    let log = must(local, "LRANGE log 0 -1");
    let log = log.elements().unwrap();
    for (index, number) in log.iter().enumerate() {
        assert_eq!(number.text(), index.to_string());
    }
    log.len()
}

const DIRECTORY: &str = "data/appendonlydir";

/// The number of appends for which a replaced file is kept: those between a few rewrites.
const KEPT_APPENDS: u64 = 40;

/// One run of a server with an AOF: its writes, and the number of writes it has promised to be durable.
struct Life {
    disk: SimulatedDisk,
    encryption: Encryption,
    aof: AofDirectory,
    writer: AofWriter,
    local: Local,
    /// The number of appended numbers; the next field is how many of them are durable.
    appended: usize,
    durable: usize,
    may_fail: bool,
}

impl Life {
    fn begin(disk: &SimulatedDisk, encryption: &Encryption) -> Life {
        let shared: Arc<dyn Disk> = Arc::new(disk.clone());
        let (mut local, mut aof) = start(&shared, DIRECTORY, encryption).unwrap();
        aof.set_keep_s(KEPT_APPENDS);
        let writer = aof.begin_increment().unwrap();
        let appended = log_len(&mut local);
        let (disk, encryption) = (disk.clone(), encryption.clone());
        Life { disk, encryption, aof, writer, local, appended, durable: appended, may_fail: false }
    }

    fn append(&mut self) {
        if self.writer.is_closed() {
            let _ = self.writer.recover();
            if self.aof.rotate(&mut self.writer).is_err() {
                return;
            }
        }
        let mut batch = Batch::new();
        numbered(&mut batch, self.appended);
        if self.appended % 7 == 3 {
            // A record that spans several sectors.
            batch.command(&[b"SET", b"filler", &vec![b'f'; 3000]]);
        }
        if self.writer.append(&mut batch).is_ok() {
            must(&mut self.local, &format!("RPUSH log {}", self.appended));
            self.appended += 1;
        }
    }

    fn sync(&mut self) {
        if self.writer.sync().is_ok() {
            self.durable = self.appended;
        } else if self.writer.recover().is_ok() {
            assert_eq!(self.writer.durable_size(), self.writer.size());
            self.durable = self.appended;
        }
    }

    fn rewrite(&mut self) {
        let result = (|| {
            self.aof.rotate(&mut self.writer)?;
            self.durable = self.appended;
            // The number of appends is the clock.
            let rewrite = self.aof.begin_rewrite().taken_at(self.appended as i64);
            // Bases are written in both formats alternately.
            let form = if self.appended.is_multiple_of(2) { RDB } else { KeyForm::Commands };
            let base = self.aof.begin_base(form)?;
            self.aof.write_base(&base, |writer| write_keys(&self.local, writer))?;
            self.aof.finish_rewrite(rewrite, base)
        })();
        if self.writer.needs_recovery() {
            let _ = self.writer.recover();
        }
        assert!(result.is_ok() || self.may_fail);
    }

    /// Checks that after a power cut the files contain all durable data, and no data that was not appended.
    fn check(&self, seed: u64) {
        let left: Arc<dyn Disk> = Arc::new(self.disk.after_power_cut(seed));
        let (mut local, _) =
            start(&left, DIRECTORY, &self.encryption).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let len = log_len(&mut local);
        assert!(
            (self.durable..=self.appended + 1).contains(&len),
            "{len} of {}..{}",
            self.durable,
            self.appended
        );
    }
}

/// Returns the number of runs: CRASH_SEEDS, or a few.
fn lives() -> u64 {
    std::env::var("CRASH_SEEDS").ok().and_then(|count| count.parse().ok()).unwrap_or(60)
}

fn live(seed: u64, encryption: &Encryption, faults: Option<Faults>) {
    let mut random = Random::new(seed);
    let mut disk = SimulatedDisk::new(seed);
    for _ in 0..4 {
        let mut life = Life::begin(&disk, encryption);
        life.may_fail = faults.is_some();
        for _ in 0..random.below(40) {
            if let Some(faults) = &faults {
                disk.set_faults(if random.chance(30) { faults.clone() } else { Faults::default() });
            }
            match random.below(10) {
                0..6 => life.append(),
                6..9 => life.sync(),
                _ => life.rewrite(),
            }
            life.check(random.next_u64());
        }
        disk.set_faults(Faults::default());
        let left = disk.after_power_cut(random.next_u64());
        drop(life);
        disk = left;
    }
}

#[test]
fn synced_data_survive_every_power_cut() {
    for encryption in encryptions() {
        for seed in 0..lives() {
            live(seed, &encryption, None);
        }
    }
}

#[test]
fn synced_data_survive_failing_writes_and_syncs_and_a_power_cut() {
    let faults = Faults {
        write_error_percent: 30,
        sync_error_percent: 30,
        name_error_percent: 20,
        ..Faults::default()
    };
    for encryption in encryptions() {
        for seed in 0..lives() {
            live(seed, &encryption, Some(faults.clone()));
        }
    }
}

/// Returns a writer to which numbered batches from 0 on have been appended, and its disk.
fn writer(encryption: &Encryption) -> (SimulatedDisk, AofWriter) {
    let disk = SimulatedDisk::new(5);
    let shared: Arc<dyn Disk> = Arc::new(disk.clone());
    let writer = AofWriter::create(&shared, Path::new("d/a"), encryption).unwrap();
    disk.sync_directory(Path::new("d")).unwrap();
    (disk, writer)
}

fn append(writer: &mut AofWriter, number: usize) -> Result<u64, AofError> {
    let mut batch = Batch::new();
    numbered(&mut batch, number);
    writer.append(&mut batch)
}

fn units_on(disk: &SimulatedDisk, encryption: &Encryption) -> usize {
    let opened = encryption.open(disk.open_to_read(Path::new("d/a")).unwrap(), Ending::MayBeTorn).unwrap();
    let mut reader = AofReader::new(Source::new(opened, 0), Path::new("d/a"), Ending::MayBeTorn);
    let units = units_of(&mut reader).unwrap();
    for (number, found) in units.iter().enumerate() {
        assert_eq!(found, &unit(&["RPUSH", "log", &number.to_string()]));
    }
    units.len()
}

#[test]
fn a_sync_covers_earlier_appends_while_others_continue() {
    for encryption in encryptions() {
        let (disk, mut writer) = writer(&encryption);
        let mut random = Random::new(11);
        let (mut appended, mut durable) = (0, 0);
        let mut under_way = None;
        for _ in 0..300 {
            match under_way.take() {
                None if random.chance(50) => under_way = Some((writer.sync_task(), appended)),
                Some((task, upto)) if random.chance(30) => {
                    // The task runs on another thread, as in the server.
                    let outcome = std::thread::spawn(|| task.run()).join().unwrap();
                    writer.finish_sync(outcome).unwrap();
                    durable = upto;
                }
                task => {
                    under_way = task;
                    append(&mut writer, appended).unwrap();
                    appended += 1;
                }
            }
            let left = units_on(&disk.after_power_cut(random.next_u64()), &encryption);
            assert!((durable..=appended).contains(&left), "{left} of {durable}..{appended}");
        }
        assert!(durable > 20);
    }
}

#[test]
fn many_writers_share_one_sync_of_a_slow_disk() {
    let (disk, mut writer) = writer(&Encryption::off());
    let before = disk.syncs();
    for number in 0..100 {
        append(&mut writer, number).unwrap();
    }
    let (entered, wait_entered) = std::sync::mpsc::channel();
    let (release, wait_released) = std::sync::mpsc::channel::<()>();
    let wait_released = std::sync::Mutex::new(wait_released);
    disk.set_faults(Faults {
        slow_sync_percent: 100,
        slow_sync: Some(Arc::new(move |_| {
            entered.send(()).unwrap();
            wait_released.lock().unwrap().recv().unwrap();
        })),
        ..Faults::default()
    });
    let task = writer.sync_task();
    let syncing = std::thread::spawn(|| task.run());
    wait_entered.recv().unwrap();
    // While the disk is busy, appending continues.
    for number in 100..200 {
        append(&mut writer, number).unwrap();
    }
    assert_eq!(writer.durable_size(), 25);
    release.send(()).unwrap();
    writer.finish_sync(syncing.join().unwrap()).unwrap();
    assert_eq!(disk.syncs(), before + 1);
    assert_eq!(
        (0..20).map(|seed| units_on(&disk.after_power_cut(seed), &Encryption::off())).min(),
        Some(100)
    );
}

#[test]
fn a_full_disk_refuses_batches_until_it_has_space() {
    for encryption in encryptions() {
        let (disk, mut writer) = writer(&encryption);
        append(&mut writer, 0).unwrap();
        let size = writer.size();
        for capacity_bytes in [size, size + 20, size + 90] {
            disk.set_faults(Faults { capacity_bytes: Some(capacity_bytes), ..Faults::default() });
            for _ in 0..2 {
                let Err(AofError::Disk(error)) = append(&mut writer, 1) else {
                    panic!("the batch does not fit")
                };
                assert!(error.is_full() && error.to_string().contains("d/a"));
                assert_eq!((writer.size(), units_on(&disk, &encryption)), (size, 1));
            }
        }
        disk.set_faults(Faults::default());
        append(&mut writer, 1).unwrap();
        writer.sync().unwrap();
        for seed in 0..20 {
            assert_eq!(units_on(&disk.after_power_cut(seed), &encryption), 2);
        }
    }
}

#[test]
fn after_a_failed_sync_nothing_is_durable_until_all_is_rewritten() {
    for encryption in encryptions() {
        let (disk, mut writer) = writer(&encryption);
        for number in 0..40 {
            append(&mut writer, number).unwrap();
        }
        let stale = writer.sync_task();
        disk.set_faults(Faults { sync_error_percent: 100, ..Faults::default() });
        assert!(matches!(writer.sync(), Err(AofError::Disk(_))));
        assert!(writer.needs_recovery());
        assert!(writer.recover().is_err(), "the disk still fails");
        assert!(append(&mut writer, 40).is_err());
        disk.set_faults(Faults::default());
        writer.recover().unwrap();
        assert_eq!(units_on(&disk.after_power_cut(3), &encryption), 40);
        // A sync of the old handle proves nothing about the new one.
        let outcome = stale.run();
        writer.finish_sync(outcome).unwrap();
        assert!(!writer.needs_recovery());
        append(&mut writer, 40).unwrap();
        writer.close().unwrap();
        assert!(matches!(append(&mut writer, 41), Err(AofError::Closed(_))));
        assert_eq!(units_on(&disk.after_power_cut(3), &encryption), 41);
    }
}

#[test]
fn records_beyond_the_retention_limit_cause_a_rewrite() {
    for encryption in encryptions() {
        let disk = SimulatedDisk::new(5);
        let mut life = Life::begin(&disk, &encryption);
        life.append();
        life.sync();
        life.writer.set_retained_max(1000);
        (0..50).for_each(|_| life.append());
        disk.set_faults(Faults { sync_error_percent: 100, ..Faults::default() });
        assert!(life.writer.sync().is_err());
        disk.set_faults(Faults::default());
        let error = life.writer.recover().unwrap_err();
        assert!(matches!(error, AofError::Lost(_)) && error.to_string().contains("BGREWRITEAOF"), "{error}");
        life.check(1);
        let (writer, rewrite) = life.aof.begin_replacement().unwrap();
        life.writer = writer;
        life.check(2);
        let base = life.aof.begin_base(RDB).unwrap();
        life.aof.write_base(&base, |writer| write_keys(&life.local, writer)).unwrap();
        life.check(3);
        life.aof.finish_rewrite(rewrite, base).unwrap();
        life.durable = life.appended;
        (4..20).for_each(|seed| life.check(seed));
        life.append();
        life.sync();
        life.check(20);
        assert_eq!(life.aof.live_files().len(), 2);
    }
}

#[test]
fn records_after_the_next_sync_are_retained_again() {
    for encryption in encryptions() {
        let disk = SimulatedDisk::new(6);
        let mut life = Life::begin(&disk, &encryption);
        life.writer.set_retained_max(10_000);
        (0..50).for_each(|_| life.append());
        let sync = life.writer.sync_task();
        (0..3).for_each(|_| life.append());
        life.writer.finish_sync(sync.run()).unwrap();
        life.durable = 50;
        life.append();
        disk.set_faults(Faults { sync_error_percent: 100, ..Faults::default() });
        assert!(life.writer.sync().is_err());
        life.check(1);
        disk.set_faults(Faults::default());
        life.writer.recover().unwrap();
        life.durable = life.appended;
        (2..20).for_each(|seed| life.check(seed));
    }
}

#[test]
fn an_old_single_file_is_adopted_despite_a_power_cut_at_any_time() {
    for seed in 0..40 {
        for faulty in [false, true] {
            let disk = SimulatedDisk::new(seed);
            let single = Path::new("data/appendonly.aof");
            let file = disk.create(single).unwrap();
            file.write_at(0, b"*3\r\n$5\r\nRPUSH\r\n$3\r\nlog\r\n$1\r\n0\r\n").unwrap();
            file.sync().unwrap();
            disk.sync_directory(Path::new("data")).unwrap();
            let shared: Arc<dyn Disk> = Arc::new(disk.clone());
            let off = Encryption::off();
            let mut aof = AofDirectory::open(&shared, Path::new(DIRECTORY), "appendonly.aof", &off).unwrap();
            if faulty {
                disk.set_faults(Faults { name_error_percent: 40, ..Faults::default() });
            }
            let adopted = aof.adopt();
            let left: Arc<dyn Disk> = Arc::new(disk.after_power_cut(seed));
            let (mut local, mut aof) = start(&left, DIRECTORY, &off).unwrap();
            if !aof.exists() {
                assert!(adopted.is_err());
                aof.adopt().unwrap();
                local = start(&left, DIRECTORY, &off).unwrap().0;
            }
            assert_eq!(log_len(&mut local), 1);
        }
    }
}

#[test]
fn an_aof_without_its_manifest_or_a_file_is_not_treated_as_absent() {
    let disk = SimulatedDisk::new(1);
    let mut life = Life::begin(&disk, &Encryption::off());
    life.append();
    life.rewrite();
    let open = |disk: &SimulatedDisk| {
        let shared: Arc<dyn Disk> = Arc::new(disk.clone());
        AofDirectory::open(&shared, Path::new(DIRECTORY), "appendonly.aof", &Encryption::off()).map(drop)
    };
    open(&disk).unwrap();
    let manifest = Path::new("data/appendonlydir/appendonly.aof.manifest");
    let other = disk.after_power_cut(1);
    other.remove(manifest).unwrap();
    assert!(matches!(open(&other), Err(AofError::NoManifest(_))));
    let other = disk.after_power_cut(1);
    other.remove(&life.aof.live_files()[1]).unwrap();
    let error = open(&other).unwrap_err().to_string();
    assert!(error.contains("incr.aof is named by the manifest but is missing"), "{error}");
    other.create(manifest).unwrap().write_at(0, b"nothing").unwrap();
    let error = open(&other).unwrap_err().to_string();
    assert!(error.contains("appendonly.aof.manifest line 1: "), "{error}");
}

#[test]
fn a_closed_file_is_recorded_with_its_size_and_refused_when_it_is_shorter() {
    for encryption in encryptions() {
        let disk = SimulatedDisk::new(1);
        let mut life = Life::begin(&disk, &encryption);
        (0..5).for_each(|_| life.append());
        life.rewrite();
        (0..5).for_each(|_| life.append());
        life.aof.rotate(&mut life.writer).unwrap();
        life.append();
        let shared: Arc<dyn Disk> = Arc::new(disk.clone());
        let paths = life.aof.live_files();
        let size = |path: &Path| disk.open_to_read(path).unwrap().size().unwrap();
        let recorded: Vec<Option<u64>> = life.aof.manifest().live().map(|file| file.size).collect();
        assert_eq!(recorded, [Some(size(&paths[0])), Some(size(&paths[1])), None]);
        for path in &paths[..2] {
            let whole = read_whole(&disk, path, 1 << 20).unwrap();
            for left in [0, 1, whole.len() - 1] {
                disk.create(path).unwrap().write_at(0, &whole[..left]).unwrap();
                let aof =
                    AofDirectory::open(&shared, Path::new(DIRECTORY), "appendonly.aof", &encryption).unwrap();
                let error = aof.check_sizes().unwrap_err();
                assert!(error.is_damage() && matches!(error, AofError::Short { .. }), "{error}");
            }
            disk.create(path).unwrap().write_at(0, &whole).unwrap();
        }
        assert!(start(&shared, DIRECTORY, &encryption).is_ok());
    }
}
