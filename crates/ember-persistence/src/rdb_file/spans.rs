//! Finds the end of a serialized value by copying its bytes without decoding them.

use std::io::{self, Read};

use emberkv_core::rdb::Kind;

use super::{RdbProblem, Source};

/// The reason why copying a value stopped early.
pub(super) enum Stop {
    /// The value exceeds the limit. The bytes copied so far are consumed from the source.
    TooLong,
    /// The value is invalid or cannot be read.
    Problem(RdbProblem),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Stop {
        Stop::Problem(error.into())
    }
}

const CORRUPT_LENGTH: Stop = Stop::Problem(RdbProblem::Corrupt("a length starts with an unknown byte"));
const NO_LENGTH: Stop = Stop::Problem(RdbProblem::Corrupt("a string was found instead of a length"));
const UNKNOWN_STRING: Stop = Stop::Problem(RdbProblem::Corrupt("a string has an unknown encoding"));

const UNKNOWN_PART: Stop = Stop::Problem(RdbProblem::Corrupt("a part of a value has an unknown encoding"));

const ID_BYTES: u64 = 16;
const TIME_BYTES: u64 = 8;

/// Copies the bytes of one serialized value.
pub(super) struct Copier<'a, R> {
    source: &'a mut Source<R>,
    out: &'a mut Vec<u8>,
    /// The maximum length of `out`, in bytes.
    len_max: usize,
}

enum Length {
    Plain(u64),
    Special(u8),
}

impl<'a, R: Read> Copier<'a, R> {
    /// Creates a copier from `source` to `out`, whose length is limited to `len_max` bytes.
    pub(super) fn new(source: &'a mut Source<R>, out: &'a mut Vec<u8>, len_max: usize) -> Copier<'a, R> {
        Copier { source, out, len_max }
    }

    fn fixed(&mut self, count: u64) -> Result<(), Stop> {
        let allowed = self.len_max.saturating_sub(self.out.len()) as u64;
        if count > allowed {
            self.source.take_into(allowed, self.out)?;
            return Err(Stop::TooLong);
        }
        Ok(self.source.take_into(count, self.out)?)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Stop> {
        self.fixed(N as u64)?;
        let mut bytes = [0; N];
        bytes.copy_from_slice(&self.out[self.out.len() - N..]);
        Ok(bytes)
    }

    fn byte(&mut self) -> Result<u8, Stop> {
        self.array::<1>().map(|[byte]| byte)
    }

    fn any_length(&mut self) -> Result<Length, Stop> {
        let first = self.byte()?;
        Ok(Length::Plain(match first {
            0..0x40 => u64::from(first),
            0x40..0x80 => u64::from(first & 0x3F) << 8 | u64::from(self.byte()?),
            0x80 => u64::from(u32::from_be_bytes(self.array()?)),
            0x81 => u64::from_be_bytes(self.array()?),
            0xC0.. => return Ok(Length::Special(first)),
            _ => return Err(CORRUPT_LENGTH),
        }))
    }

    fn length(&mut self) -> Result<u64, Stop> {
        match self.any_length()? {
            Length::Plain(length) => Ok(length),
            Length::Special(_) => Err(NO_LENGTH),
        }
    }

    fn lengths(&mut self, count: usize) -> Result<(), Stop> {
        (0..count).try_for_each(|_| self.length().map(drop))
    }

    fn string(&mut self) -> Result<(), Stop> {
        let len = match self.any_length()? {
            Length::Plain(len) => len,
            Length::Special(0xC0) => 1,
            Length::Special(0xC1) => 2,
            Length::Special(0xC2) => 4,
            Length::Special(0xC3) => {
                let packed_len = self.length()?;
                self.length()?;
                packed_len
            }
            Length::Special(_) => return Err(UNKNOWN_STRING),
        };
        self.fixed(len)
    }

    fn strings(&mut self, count: u64) -> Result<(), Stop> {
        (0..count).try_for_each(|_| self.string())
    }

    fn text_double(&mut self) -> Result<(), Stop> {
        match self.byte()? {
            253.. => Ok(()),
            len => self.fixed(len.into()),
        }
    }

    /// Copies the number with which a value of a module begins.
    pub(super) fn module_id(&mut self) -> Result<u64, Stop> {
        self.length()
    }

    /// Copies a value of this kind; that of a module without its number.
    pub(super) fn value(&mut self, kind: Kind) -> Result<(), Stop> {
        match kind {
            Kind::String
            | Kind::HashZipmap
            | Kind::ListZiplist
            | Kind::SetIntset
            | Kind::SortedSetZiplist
            | Kind::HashZiplist
            | Kind::HashListpack
            | Kind::SortedSetListpack
            | Kind::SetListpack => self.string(),
            Kind::List | Kind::Set | Kind::ListZiplists => {
                let count = self.length()?;
                self.strings(count)
            }
            Kind::Hash => {
                for _ in 0..self.length()? {
                    self.strings(2)?;
                }
                Ok(())
            }
            Kind::ListListpacks => {
                for _ in 0..self.length()? {
                    self.length()?;
                    self.string()?;
                }
                Ok(())
            }
            Kind::SortedSetText => {
                for _ in 0..self.length()? {
                    self.string()?;
                    self.text_double()?;
                }
                Ok(())
            }
            Kind::SortedSet => {
                for _ in 0..self.length()? {
                    self.string()?;
                    self.fixed(size_of::<f64>() as u64)?;
                }
                Ok(())
            }
            Kind::HashExpiring => {
                self.fixed(TIME_BYTES)?;
                for _ in 0..self.length()? {
                    self.length()?;
                    self.strings(2)?;
                }
                Ok(())
            }
            Kind::HashOfValkey => {
                for _ in 0..self.length()? {
                    self.strings(2)?;
                    self.fixed(TIME_BYTES)?;
                }
                Ok(())
            }
            Kind::HashTriplets => {
                self.fixed(TIME_BYTES)?;
                self.string()
            }
            Kind::Stream1 | Kind::Stream2 | Kind::Stream3 => self.stream(kind),
            Kind::Module
            | Kind::Json
            | Kind::Bloom
            | Kind::Cuckoo
            | Kind::CountMin
            | Kind::TopK
            | Kind::TDigest => self.parts(),
        }
    }

    /// Copies the parts of a module's value, each after a number that is its type.
    fn parts(&mut self) -> Result<(), Stop> {
        loop {
            match self.length()? {
                0 => return Ok(()),
                1 | 2 => self.lengths(1)?,
                3 => self.fixed(size_of::<f32>() as u64)?,
                4 => self.fixed(size_of::<f64>() as u64)?,
                5 => self.string()?,
                _ => return Err(UNKNOWN_PART),
            }
        }
    }

    fn stream(&mut self, kind: Kind) -> Result<(), Stop> {
        for _ in 0..self.length()? {
            self.strings(2)?;
        }
        // These are the number of entries and the last ID; later versions add the first ID, the greatest deleted ID,
        // and the number of entries ever added.
        self.lengths(if kind == Kind::Stream1 { 3 } else { 8 })?;
        for _ in 0..self.length()? {
            self.string()?;
            // These are the last ID; later versions add the number of entries read.
            self.lengths(if kind == Kind::Stream1 { 2 } else { 3 })?;
            for _ in 0..self.length()? {
                self.fixed(ID_BYTES + TIME_BYTES)?;
                self.length()?;
            }
            for _ in 0..self.length()? {
                self.string()?;
                self.fixed(if kind == Kind::Stream3 { 2 * TIME_BYTES } else { TIME_BYTES })?;
                for _ in 0..self.length()? {
                    self.fixed(ID_BYTES)?;
                }
            }
        }
        Ok(())
    }
}
