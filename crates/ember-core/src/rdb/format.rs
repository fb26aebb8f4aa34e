//! The parts of values in RDB: lengths, strings, numbers.

use std::io::{self, BufRead, Write};

use ember_protocol::number;

use crate::algorithms::lzf;

const LENGTH_14_BITS: u8 = 0x40;
const LENGTH_32_BITS: u8 = 0x80;
const LENGTH_64_BITS: u8 = 0x81;
const STRING_INT8: u8 = 0xC0;
const STRING_INT16: u8 = 0xC1;
const STRING_INT32: u8 = 0xC2;
const STRING_LZF: u8 = 0xC3;

/// The maximum length in bytes of the digits of a 32-bit integer: longer strings are not tested for being one.
const INTEGER_DIGITS_MAX: usize = 11;

/// The minimum length in bytes of strings that are packed, as in Redis.
const PACKED_MIN_BYTES: usize = 21;

/// The minimum number of bytes that packing must save.
const SAVING_MIN_BYTES: usize = 4;

/// The maximum capacity in bytes reserved before any byte of a string has arrived.
const RESERVE_MAX_BYTES: u64 = 64 * 1024;

/// The reason why bytes are not a value.
#[derive(Debug)]
pub enum LoadError {
    /// The bytes could not be read, or end too early.
    Io(io::Error),
    /// The bytes are inconsistent; the text states how.
    Corrupt(&'static str),
    /// The value is of this unknown kind.
    UnknownKind(u8),
    /// The value has no elements, which no key may have. Servers with old bugs have saved such values.
    Empty,
}

impl std::fmt::Display for LoadError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            LoadError::Io(error) => write!(f, "{error}"),
            LoadError::Corrupt(text) => f.write_str(text),
            LoadError::UnknownKind(kind) => write!(f, "a value has the unknown type {kind}"),
            LoadError::Empty => f.write_str("a value has no elements"),
        }
    }
}

impl From<io::Error> for LoadError {
    fn from(error: io::Error) -> LoadError {
        LoadError::Io(error)
    }
}

pub(super) const NOT_UNPACKED: LoadError = LoadError::Corrupt("a packed string cannot be unpacked");

/// Writes parts of values to a sink.
#[derive(Debug)]
pub struct Writer<W> {
    sink: W,
    packed_max_bytes: usize,
}

impl<W: Write> Writer<W> {
    /// Returns a writer to `sink`.
    pub fn new(sink: W) -> Writer<W> {
        Writer { sink, packed_max_bytes: usize::MAX }
    }

    /// Disables packing of strings longer than `packed_max_bytes`, so that they are not copied; 0 disables packing of
    /// all strings.
    pub fn with_packed_max_bytes(self, packed_max_bytes: usize) -> Writer<W> {
        Writer { packed_max_bytes, ..self }
    }

    /// Returns the maximum length of strings that are packed.
    pub fn packed_max_bytes(&self) -> usize {
        self.packed_max_bytes
    }

    /// Returns the sink.
    pub fn sink(&self) -> &W {
        &self.sink
    }

    /// Returns the sink, for direct writes.
    pub fn sink_mut(&mut self) -> &mut W {
        &mut self.sink
    }

    /// Returns the sink and ends the writer.
    pub fn into_inner(self) -> W {
        self.sink
    }

    /// Writes one byte.
    pub fn byte(&mut self, byte: u8) -> io::Result<()> {
        self.sink.write_all(&[byte])
    }

    /// Writes a length or count.
    pub fn length(&mut self, length: u64) -> io::Result<()> {
        if length < 1 << 6 {
            self.byte(length as u8)
        } else if length < 1 << 14 {
            self.sink.write_all(&[LENGTH_14_BITS | (length >> 8) as u8, length as u8])
        } else if let Ok(length) = u32::try_from(length) {
            self.byte(LENGTH_32_BITS)?;
            self.sink.write_all(&length.to_be_bytes())
        } else {
            self.byte(LENGTH_64_BITS)?;
            self.sink.write_all(&length.to_be_bytes())
        }
    }

    /// Writes a string: as an integer if it is the text of an integer, packed if that saves space.
    pub fn string(&mut self, bytes: &[u8]) -> io::Result<()> {
        if bytes.len() <= INTEGER_DIGITS_MAX
            && let Some(number) = number::parse_i64(bytes)
            && let Ok(number) = i32::try_from(number)
        {
            return self.small_integer(number);
        }
        if (PACKED_MIN_BYTES..=self.packed_max_bytes).contains(&bytes.len())
            && let Some(packed) = lzf::compress(bytes, bytes.len() - SAVING_MIN_BYTES)
        {
            self.byte(STRING_LZF)?;
            self.length(packed.len() as u64)?;
            self.length(bytes.len() as u64)?;
            return self.sink.write_all(&packed);
        }
        self.length(bytes.len() as u64)?;
        self.sink.write_all(bytes)
    }

    /// Writes the string that is the text of an integer.
    pub fn integer_string(&mut self, number: i64) -> io::Result<()> {
        match i32::try_from(number) {
            Ok(number) => self.small_integer(number),
            Err(_) => self.string(itoa::Buffer::new().format(number).as_bytes()),
        }
    }

    fn small_integer(&mut self, number: i32) -> io::Result<()> {
        if let Ok(number) = i8::try_from(number) {
            self.sink.write_all(&[STRING_INT8, number as u8])
        } else if let Ok(number) = i16::try_from(number) {
            self.byte(STRING_INT16)?;
            self.sink.write_all(&number.to_le_bytes())
        } else {
            self.byte(STRING_INT32)?;
            self.sink.write_all(&number.to_le_bytes())
        }
    }

    /// Writes a binary double.
    pub fn double(&mut self, number: f64) -> io::Result<()> {
        self.sink.write_all(&number.to_le_bytes())
    }

    /// Writes a time, Unix time in ms.
    pub fn time_ms(&mut self, at_ms: i64) -> io::Result<()> {
        self.sink.write_all(&at_ms.to_le_bytes())
    }

    /// Writes bytes as they are.
    pub fn raw(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.sink.write_all(bytes)
    }
}

/// The decoded beginning of a string or count: a length, or the code of a form that has no length.
enum Length {
    Plain(u64),
    Special(u8),
}

/// The form of a string. The string's bytes follow in the source, except for an integer.
pub(super) enum StringForm {
    /// Unpacked bytes: their number.
    Plain(u64),
    /// Bytes packed by LZF: their numbers, packed and unpacked.
    Packed { packed_len: u64, len: u64 },
    /// The integer whose text the string is.
    Integer(i32),
}

/// Reads parts of values from a source. No allocation is larger than a fixed factor of the bytes that have arrived.
#[derive(Debug)]
pub struct Reader<R> {
    source: R,
}

impl<R: BufRead> Reader<R> {
    /// Returns a reader of `source`.
    pub fn new(source: R) -> Reader<R> {
        Reader { source }
    }

    /// Returns the source.
    pub fn into_inner(self) -> R {
        self.source
    }

    /// Reads `N` bytes.
    ///
    /// # Errors
    /// Returns an error if the source contains fewer bytes.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], LoadError> {
        let mut bytes = [0; N];
        self.source.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    /// Reads one byte.
    ///
    /// # Errors
    /// Returns an error if the source contains no more bytes.
    pub fn byte(&mut self) -> Result<u8, LoadError> {
        self.array::<1>().map(|[byte]| byte)
    }

    fn bytes(&mut self, len: u64) -> Result<Vec<u8>, LoadError> {
        let mut bytes = Vec::new();
        self.bytes_into(len, &mut bytes)?;
        Ok(bytes)
    }

    /// Appends `len` bytes to `bytes`.
    fn bytes_into(&mut self, len: u64, bytes: &mut Vec<u8>) -> Result<(), LoadError> {
        bytes.reserve(len.min(RESERVE_MAX_BYTES) as usize);
        let mut left = len;
        while left > 0 {
            let buffered = self.source.fill_buf()?;
            if buffered.is_empty() {
                return Err(LoadError::Io(io::ErrorKind::UnexpectedEof.into()));
            }
            let piece = usize::try_from(left).map_or(buffered.len(), |left| left.min(buffered.len()));
            bytes.extend_from_slice(&buffered[..piece]);
            self.source.consume(piece);
            left -= piece as u64;
        }
        Ok(())
    }

    #[inline]
    fn any_length(&mut self) -> Result<Length, LoadError> {
        // Nearly always the buffer contains the whole length.
        let split = match *self.source.fill_buf()? {
            [first @ 0..LENGTH_14_BITS, ..] => Some((u64::from(first), 1)),
            [first @ LENGTH_14_BITS..LENGTH_32_BITS, second, ..] => {
                Some((u64::from(first & 0x3F) << 8 | u64::from(second), 2))
            }
            [LENGTH_32_BITS, a, b, c, d, ..] => Some((u64::from(u32::from_be_bytes([a, b, c, d])), 5)),
            _ => None,
        };
        match split {
            Some((length, bytes)) => {
                self.source.consume(bytes);
                Ok(Length::Plain(length))
            }
            None => self.any_length_by_bytes(),
        }
    }

    fn any_length_by_bytes(&mut self) -> Result<Length, LoadError> {
        let first = self.byte()?;
        let length = match first {
            0..LENGTH_14_BITS => u64::from(first),
            LENGTH_14_BITS..LENGTH_32_BITS => u64::from(first & 0x3F) << 8 | u64::from(self.byte()?),
            LENGTH_32_BITS => u64::from(u32::from_be_bytes(self.array()?)),
            LENGTH_64_BITS => u64::from_be_bytes(self.array()?),
            STRING_INT8.. => return Ok(Length::Special(first)),
            _ => return Err(LoadError::Corrupt("a length starts with an unknown byte")),
        };
        Ok(Length::Plain(length))
    }

    /// Reads a length or count.
    ///
    /// # Errors
    /// Returns an error if the source does not contain a length.
    pub fn length(&mut self) -> Result<u64, LoadError> {
        match self.any_length()? {
            Length::Plain(length) => Ok(length),
            Length::Special(_) => Err(LoadError::Corrupt("a string was found instead of a length")),
        }
    }

    /// Reads a string.
    ///
    /// # Errors
    /// Returns an error if the source does not contain a string.
    pub fn string(&mut self) -> Result<Vec<u8>, LoadError> {
        let mut string = Vec::new();
        self.string_into(&mut string)?;
        Ok(string)
    }

    /// Reads a string into `string`, replacing its contents.
    ///
    /// # Errors
    /// Returns an error if the source does not contain a string.
    pub(super) fn string_into(&mut self, string: &mut Vec<u8>) -> Result<(), LoadError> {
        string.clear();
        match self.string_form()? {
            StringForm::Plain(len) => self.bytes_into(len, string)?,
            StringForm::Packed { packed_len, len } => {
                let packed = self.bytes(packed_len)?;
                let unpacked = usize::try_from(len).ok().and_then(|len| lzf::decompress(&packed, len));
                *string = unpacked.ok_or(NOT_UNPACKED)?;
            }
            StringForm::Integer(number) => {
                string.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
            }
        }
        Ok(())
    }

    /// Reads the part that precedes the bytes of a string.
    pub(super) fn string_form(&mut self) -> Result<StringForm, LoadError> {
        let number = match self.any_length()? {
            Length::Plain(len) => return Ok(StringForm::Plain(len)),
            Length::Special(STRING_LZF) => {
                let (packed_len, len) = (self.length()?, self.length()?);
                return Ok(StringForm::Packed { packed_len, len });
            }
            Length::Special(STRING_INT8) => i32::from(i8::from_le_bytes(self.array()?)),
            Length::Special(STRING_INT16) => i32::from(i16::from_le_bytes(self.array()?)),
            Length::Special(STRING_INT32) => i32::from_le_bytes(self.array()?),
            Length::Special(_) => return Err(LoadError::Corrupt("a string has an unknown encoding")),
        };
        Ok(StringForm::Integer(number))
    }

    /// Reads a binary double.
    ///
    /// # Errors
    /// Returns an error if the source contains fewer than 8 bytes.
    pub fn double(&mut self) -> Result<f64, LoadError> {
        Ok(f64::from_le_bytes(self.array()?))
    }

    /// Reads a double that is stored as text after a length of one byte.
    ///
    /// # Errors
    /// Returns an error if the source does not contain such a double.
    pub fn text_double(&mut self) -> Result<f64, LoadError> {
        match self.byte()? {
            255 => Ok(f64::NEG_INFINITY),
            254 => Ok(f64::INFINITY),
            253 => Ok(f64::NAN),
            len => {
                let text = self.bytes(len.into())?;
                number::parse_f64(&text).ok_or(LoadError::Corrupt("a score is not a number"))
            }
        }
    }

    /// Reads a time, Unix time in ms.
    ///
    /// # Errors
    /// Returns an error if the source contains fewer than 8 bytes.
    pub fn time_ms(&mut self) -> Result<i64, LoadError> {
        Ok(i64::from_le_bytes(self.array()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut Writer<Vec<u8>>) -> io::Result<()>) -> Vec<u8> {
        let mut writer = Writer::new(Vec::new());
        write(&mut writer).unwrap();
        writer.into_inner()
    }

    #[test]
    fn lengths_take_as_few_bytes_as_they_need() {
        for (length, expected) in [
            (0, &b"\x00"[..]),
            (63, b"\x3F"),
            (64, b"\x40\x40"),
            (16_383, b"\x7F\xFF"),
            (16_384, b"\x80\x00\x00\x40\x00"),
            (u32::MAX.into(), b"\x80\xFF\xFF\xFF\xFF"),
            (1 << 32, b"\x81\x00\x00\x00\x01\x00\x00\x00\x00"),
            (u64::MAX, b"\x81\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF"),
        ] {
            let bytes = written(|writer| writer.length(length));
            assert_eq!(bytes, expected);
            assert_eq!(Reader::new(expected).length().unwrap(), length);
            // The string is read with every size of the reader's buffer.
            for capacity in 1..=expected.len() {
                let buffered = io::BufReader::with_capacity(capacity, expected);
                assert_eq!(Reader::new(buffered).length().unwrap(), length);
            }
        }
    }

    #[test]
    fn strings_are_integers_where_that_is_shorter() {
        for (text, expected) in [
            (&b"0"[..], &b"\xC0\x00"[..]),
            (b"-128", b"\xC0\x80"),
            (b"128", b"\xC1\x80\x00"),
            (b"-32769", b"\xC2\xFF\x7F\xFF\xFF"),
            (b"2147483648", b"\x0A2147483648"),
            (b"01", b"\x0201"),
            (b"", b"\x00"),
        ] {
            let bytes = written(|writer| writer.string(text));
            assert_eq!(bytes, expected, "{}", text.escape_ascii());
            assert_eq!(Reader::new(expected).string().unwrap(), text);
        }
        assert_eq!(written(|writer| writer.integer_string(1 << 40)), b"\x0D1099511627776");
        let packed = written(|writer| writer.string(&[b'a'; 1000]));
        assert!(packed.len() < 40 && packed[0] == STRING_LZF);
        assert_eq!(Reader::new(&packed[..]).string().unwrap(), [b'a'; 1000]);
        let long: Vec<u8> = (0..1000_u32).flat_map(u32::to_be_bytes).collect();
        let bytes = written(|writer| writer.string(&long));
        assert_eq!(Reader::new(io::BufReader::with_capacity(7, &bytes[..])).string().unwrap(), long);
    }

    #[test]
    fn false_lengths_are_rejected_without_allocating_them() {
        for bytes in [
            &b"\x81\x7F\xFF\xFF\xFF\xFF\xFF\xFF\xFFabc"[..],
            b"\xC3\x03\x81\x7F\xFF\xFF\xFF\xFF\xFF\xFF\xFFabc",
            b"\xC3\x81\x7F\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x03abc",
            b"\x05abc",
            b"\xC4",
            b"\x82",
            b"",
        ] {
            Reader::new(bytes).string().unwrap_err();
        }
        Reader::new(&b"\xC0\x01"[..]).length().unwrap_err();
    }
}
