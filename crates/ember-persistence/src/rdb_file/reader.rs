//! Reads RDB files.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use emberkv_core::rdb::{Kind, LoadError, Reader, VALKEY_VERSION, VERSION_MAX, read_value};
use emberkv_core::types::limits::EncodingLimits;

use super::batch::{BatchKey, Found};
use super::modules::{self, Skipped, SkippedData};
use super::spans::{Copier, Stop};
use super::{
    Batch, CHECKSUM_SINCE, HEADER_BYTES, KeyFacts, MAGIC, RdbError, RdbProblem, Source, VALKEY_MAGIC,
    VALUE_BYTES_MAX, opcode,
};

/// The maximum length in bytes of a function library or an aux field; a greater length is treated as damage.
const TEXT_BYTES_MAX: u64 = 512 * 1024 * 1024;

/// The type of the part with which an auxiliary block of a module begins: an integer without sign.
const AUX_TIME_PART: u64 = 2;

/// The next part of an RDB file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Keys, which are in the batch.
    Keys,
    /// An aux field.
    Aux {
        /// The name of the field.
        name: Vec<u8>,
        /// The value of the field.
        value: Vec<u8>,
    },
    /// The code of a function library.
    Function(Vec<u8>),
    /// The number of keys of a database that follow. This is a hint, which may be wrong.
    Sizes {
        /// The number of the database.
        database: usize,
        /// The number of keys in the database.
        keys: u64,
        /// The number of keys with an expiry in the database.
        expiring: u64,
    },
    /// Data of a module that were skipped; one step per module, after all keys.
    Skipped(SkippedData),
    /// The end of the file. If the checksum is verified, it was correct.
    End,
}

/// Which RDB versions a reader accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VersionCheck {
    /// Only known versions.
    Strict,
    /// Also newer versions, as long as the file contains nothing unknown.
    Relaxed,
}

impl VersionCheck {
    /// Returns the newest accepted version.
    pub fn newest(self) -> u16 {
        match self {
            VersionCheck::Strict => VERSION_MAX,
            VersionCheck::Relaxed => u16::MAX,
        }
    }
}

/// A reader of an RDB file, in order. The input may be hostile: no allocation exceeds a fixed multiple of the bytes
/// received, and no input causes a panic.
#[derive(Debug)]
pub struct RdbReader<R> {
    source: Source<R>,
    file: Arc<PathBuf>,
    limits: EncodingLimits,
    version: u16,
    /// Whether the file has the format of Valkey.
    is_valkey: bool,
    database: usize,
    /// The step after the keys that were returned last, to be returned next.
    pending: Option<Step>,
    is_over: bool,
    /// Whether the checksum at the end is verified.
    is_checked: bool,
    /// Whether keys with values of unknown modules are skipped, not refused.
    skips_unknown_modules: bool,
    skipped: Skipped,
}

impl<R: Read> RdbReader<R> {
    /// Creates a reader of `inner`, the contents of `file` from the beginning. `limits` select the encodings of values
    /// that are built while they are read.
    ///
    /// # Errors
    /// Returns an error if the contents do not begin like an RDB file of a known version.
    pub fn new(inner: R, file: &Path, limits: EncodingLimits) -> Result<RdbReader<R>, RdbError> {
        RdbReader::from_source(Source::new(inner, 0), file, limits, VersionCheck::Strict)
    }

    /// Like [`RdbReader::new`], for a source from which nothing has been read, and for the versions that `check`
    /// accepts.
    ///
    /// # Errors
    /// Returns an error if the contents do not begin like an RDB file of an accepted version.
    pub fn from_source(
        source: Source<R>,
        file: &Path,
        limits: EncodingLimits,
        check: VersionCheck,
    ) -> Result<RdbReader<R>, RdbError> {
        let file = Arc::new(file.to_owned());
        let mut reader = RdbReader {
            source,
            file,
            limits,
            version: 0,
            is_valkey: false,
            database: 0,
            pending: None,
            is_over: false,
            is_checked: true,
            skips_unknown_modules: false,
            skipped: Skipped::default(),
        };
        match reader.header(check) {
            Ok(version) => reader.version = version,
            Err(problem) => return Err(reader.error(0, problem)),
        }
        Ok(reader)
    }

    fn header(&mut self, check: VersionCheck) -> Result<u16, RdbProblem> {
        let mut bytes = Vec::new();
        (&mut self.source).take(HEADER_BYTES as u64).read_to_end(&mut bytes)?;
        self.is_valkey = bytes.starts_with(VALKEY_MAGIC);
        let magic: &[u8] = if self.is_valkey { VALKEY_MAGIC } else { MAGIC };
        let digits = bytes.strip_prefix(magic).ok_or(RdbProblem::NotRdb)?;
        if digits.len() != HEADER_BYTES - magic.len() || !digits.iter().all(u8::is_ascii_digit) {
            return Err(RdbProblem::NotRdb);
        }
        let version = digits.iter().fold(0, |version, digit| version * 10 + u16::from(digit - b'0'));
        let (oldest, newest) = match (self.is_valkey, check) {
            (true, VersionCheck::Strict) => (VALKEY_VERSION, VALKEY_VERSION),
            (true, VersionCheck::Relaxed) => (VALKEY_VERSION, u16::MAX),
            (false, check) => (1, check.newest()),
        };
        if (oldest..=newest).contains(&version) { Ok(version) } else { Err(RdbProblem::Version(version)) }
    }

    /// Disables the verification of the checksum.
    pub fn ignore_checksum(&mut self) {
        self.is_checked = false;
    }

    /// Sets whether keys with values of unknown modules are skipped; by default they are an error.
    pub fn skip_unknown_modules(&mut self, skips: bool) {
        self.skips_unknown_modules = skips;
    }

    /// Returns the RDB version of the file.
    pub fn version(&self) -> u16 {
        self.version
    }

    /// Returns the number of bytes read so far.
    pub fn offset(&self) -> u64 {
        self.source.offset()
    }

    /// Returns the source of the bytes after the RDB file. [`Step::End`] must have been reached.
    pub fn into_source(self) -> Source<R> {
        self.source
    }

    /// Creates an error at `offset` of this file.
    pub fn error(&self, offset: u64, problem: RdbProblem) -> RdbError {
        RdbError { file: self.file.to_path_buf(), offset, problem }
    }

    /// Reads the next part of the file. Keys replace the contents of `batch`.
    ///
    /// # Errors
    /// Returns an error if the file is damaged or cannot be read. `batch` then contains the keys that were read before
    /// the error.
    pub fn next(&mut self, batch: &mut Batch) -> Result<Step, RdbError> {
        batch.clear();
        batch.file = Arc::clone(&self.file);
        if let Some(step) = self.pending.take() {
            return Ok(step);
        }
        if self.is_over {
            return Ok(self.last_step());
        }
        let mut facts = KeyFacts { database: self.database, ..KeyFacts::default() };
        while !batch.is_full() {
            let at = self.source.offset();
            match self.part(batch, &mut facts) {
                Ok(None) => {}
                Ok(Some(step)) if batch.is_empty() => return Ok(step),
                Ok(Some(step)) => {
                    self.pending = Some(step);
                    break;
                }
                Err(RdbProblem::Truncated) => {
                    return Err(self.error(self.source.offset(), RdbProblem::Truncated));
                }
                Err(problem) => return Err(self.error(at, problem)),
            }
        }
        Ok(Step::Keys)
    }

    /// Reads up to the next step or key; for a key, fills in `facts`.
    fn part(&mut self, batch: &mut Batch, facts: &mut KeyFacts) -> Result<Option<Step>, RdbProblem> {
        match self.source.byte()? {
            opcode::DATABASE => {
                let number = self.length()?;
                self.database = usize::try_from(number).map_err(|_| RdbProblem::Database(number))?;
                facts.database = self.database;
            }
            opcode::EXPIRY_MS => facts.expire_at_ms = Some(i64::from_le_bytes(self.source.array()?)),
            opcode::EXPIRY_S => {
                let at_s = i32::from_le_bytes(self.source.array()?);
                facts.expire_at_ms = Some(i64::from(at_s) * 1000);
            }
            opcode::IDLE => facts.idle_s = Some(self.length()?),
            opcode::FREQUENCY => facts.frequency = Some(self.source.byte()?),
            opcode::SLOT_INFO => {
                for _ in 0..3 {
                    self.length()?;
                }
            }
            opcode::RESIZE => {
                let (keys, expiring) = (self.length()?, self.length()?);
                return Ok(Some(Step::Sizes { database: self.database, keys, expiring }));
            }
            opcode::AUX => return Ok(Some(Step::Aux { name: self.text()?, value: self.text()? })),
            opcode::FUNCTION => return Ok(Some(Step::Function(self.text()?))),
            opcode::SLOT_IMPORT if self.is_valkey => {
                return Err(RdbProblem::Refused(
                    "it contains slots of a cluster that were being imported".to_owned(),
                ));
            }
            opcode::FUNCTION_OF_CANDIDATE => return Err(RdbProblem::FunctionOfCandidate),
            opcode::MODULE_AUX => {
                let id = self.length()?;
                if !self.module_block()? {
                    return Ok(None);
                }
                self.skipped.of(id).blocks += 1;
            }
            opcode::END => {
                self.end()?;
                self.is_over = true;
                return Ok(Some(self.last_step()));
            }
            kind => {
                self.key(kind, batch, *facts)?;
                *facts = KeyFacts { database: self.database, ..KeyFacts::default() };
            }
        }
        Ok(None)
    }

    /// Returns the next step after the end of the file.
    fn last_step(&mut self) -> Step {
        self.skipped.take().map_or(Step::End, Step::Skipped)
    }

    /// Skips an auxiliary block of a module, whose number was read. Returns whether the block contains anything.
    fn module_block(&mut self) -> Result<bool, RdbProblem> {
        // The first part is the time at which Redis passes the block to the module: before or after the keys.
        if self.length()? != AUX_TIME_PART {
            return Err(RdbProblem::Corrupt("an auxiliary block of a module does not begin with a number"));
        }
        self.length()?;
        modules::skip_parts(&mut self.source)
    }

    fn length(&mut self) -> Result<u64, RdbProblem> {
        Ok(Reader::new(&mut self.source).length()?)
    }

    fn text(&mut self) -> Result<Vec<u8>, RdbProblem> {
        let mut limited = (&mut self.source).take(TEXT_BYTES_MAX);
        Ok(Reader::new(&mut limited).string()?)
    }

    fn end(&mut self) -> Result<(), RdbProblem> {
        if self.version < CHECKSUM_SINCE {
            return Ok(());
        }
        let computed = self.source.checksum();
        let stored = u64::from_le_bytes(self.source.array()?);
        if self.is_checked && stored != 0 && stored != computed {
            return Err(RdbProblem::Checksum { computed, stored });
        }
        Ok(())
    }

    fn key(&mut self, kind: u8, batch: &mut Batch, facts: KeyFacts) -> Result<(), RdbProblem> {
        let is_module = opcode::MODULE_VALUES.contains(&kind);
        let known = if self.is_valkey { Kind::from_valkey_byte(kind) } else { Kind::from_redis_byte(kind) };
        if known.is_none() && !is_module {
            return Err(RdbProblem::UnknownKind(kind));
        }
        let name_at = batch.bytes.len();
        let offset = self.source.offset();
        self.name(&mut batch.bytes)?;
        let value_at = batch.bytes.len();
        // The value of the oldest form has no parts that could be skipped.
        let Some(mut kind) = known else { return Err(RdbProblem::Module(modules::name(self.length()?))) };
        let len_max = value_at + VALUE_BYTES_MAX;
        let mut copier = Copier::new(&mut self.source, &mut batch.bytes, len_max);
        let copied = if kind == Kind::Module {
            match copier.module_id() {
                Ok(id) => match Kind::of_module(id) {
                    Some(of_module) => {
                        kind = of_module;
                        copier.value(kind)
                    }
                    None => {
                        batch.bytes.truncate(name_at);
                        return self.skip_value(id);
                    }
                },
                Err(stop) => Err(stop),
            }
        } else {
            copier.value(kind)
        };
        let value = match copied {
            Ok(()) => Found::Bytes(kind, value_at..batch.bytes.len()),
            Err(Stop::TooLong) => {
                let begun = batch.bytes.split_off(value_at);
                let whole = begun.as_slice().chain(&mut self.source);
                match read_value(&mut Reader::new(whole), kind, &self.limits) {
                    Err(LoadError::Empty) => Found::Empty,
                    value => Found::Built(value?),
                }
            }
            Err(Stop::Problem(problem)) => {
                batch.bytes.truncate(name_at);
                return Err(problem);
            }
        };
        batch.keys.push(BatchKey { facts, name: name_at..value_at, value, offset });
        Ok(())
    }

    /// Skips the value of an unknown module, whose number was read, if that is allowed.
    fn skip_value(&mut self, id: u64) -> Result<(), RdbProblem> {
        if !self.skips_unknown_modules {
            return Err(RdbProblem::Module(modules::name(id)));
        }
        modules::skip_parts(&mut self.source)?;
        self.skipped.of(id).keys += 1;
        Ok(())
    }

    /// Appends the name of a key to `out`.
    fn name(&mut self, out: &mut Vec<u8>) -> Result<(), RdbProblem> {
        // The length of nearly all names is encoded in one byte.
        match self.source.buffered()?.first() {
            Some(&len @ 0..0x40) => {
                self.source.advance(1);
                self.source.take_into(len.into(), out)?;
            }
            _ => out.extend_from_slice(&Reader::new(&mut self.source).string()?),
        }
        Ok(())
    }
}
