//! The position of data in a replication stream, at which a server that loads the data continues.
//!
//! ```text
//! RDB   aux fields   repl-stream-db, repl-id, repl-offset                   (as in Redis)
//! AOF   the last line   #REPL:<id>:<offset>:<database>                      (Redis skips it)
//! ```
//!
//! The line of an AOF describes the data after the commands before it. If commands follow the line, it is void.

use std::io::{self, Write};

use ember_protocol::number;

use crate::rdb_file::RdbWriter;

/// Number of hexadecimal digits of a replication ID.
const ID_DIGITS: usize = 40;

/// The maximum accepted position: a stream that is written to for a thousand years stays below it.
const POSITION_MAX: u64 = 1 << 62;

/// Prefix of the line of an AOF that contains a position.
pub(crate) const ORIGIN_LINE: &[u8] = b"#REPL:";

/// A position in a stream, and the data needed to continue there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    id: [u8; ID_DIGITS],
    /// The number of bytes of the stream before the position.
    pub position: u64,
    /// The database of the next command in the stream, unless that command selects one.
    pub database: usize,
}

impl Origin {
    /// Creates a position in the stream `id`; None if `id` is not a replication ID or the position is too large.
    pub fn new(id: &[u8], position: u64, database: usize) -> Option<Origin> {
        let id: [u8; ID_DIGITS] = id.try_into().ok()?;
        let is_possible = id.iter().all(u8::is_ascii_hexdigit) && position <= POSITION_MAX;
        is_possible.then_some(Origin { id, position, database })
    }

    /// Returns the replication ID of the stream.
    pub fn id(&self) -> &str {
        std::str::from_utf8(&self.id).expect("hexadecimal digits are text")
    }

    /// Returns the line of an AOF that contains this position.
    pub(crate) fn line(&self) -> String {
        format!("#REPL:{}:{}:{}\r\n", self.id(), self.position, self.database)
    }

    /// Parses the line of an AOF that contains a position; None if it is invalid.
    pub(crate) fn parse_line(line: &[u8]) -> Option<Origin> {
        let facts = line.strip_prefix(ORIGIN_LINE)?.strip_suffix(b"\r\n")?;
        let mut facts = facts.split(|&byte| byte == b':');
        let (id, position, database) = (facts.next()?, facts.next()?, facts.next()?);
        let database = usize::try_from(number::parse_u64(database)?).ok()?;
        facts.next().is_none().then_some(())?;
        Origin::new(id, number::parse_u64(position)?, database)
    }

    /// Writes the position to an RDB file.
    ///
    /// # Errors
    /// Returns errors of the sink.
    pub fn write(&self, writer: &mut RdbWriter<impl Write>) -> io::Result<()> {
        writer.aux(b"repl-stream-db", self.database.to_string().as_bytes())?;
        writer.aux(b"repl-id", &self.id)?;
        writer.aux(b"repl-offset", self.position.to_string().as_bytes())
    }
}

/// The aux fields of an RDB file that form a position.
#[derive(Clone, Debug, Default)]
pub struct OriginFields {
    id: Vec<u8>,
    position: Option<u64>,
    database: usize,
}

impl From<Origin> for OriginFields {
    fn from(origin: Origin) -> OriginFields {
        OriginFields { id: origin.id.to_vec(), position: Some(origin.position), database: origin.database }
    }
}

impl OriginFields {
    /// Records a field, if it belongs to a position. An invalid number counts as absent.
    pub fn read_field(&mut self, name: &[u8], value: &[u8]) {
        match name {
            b"repl-stream-db" => {
                let database = number::parse_u64(value).and_then(|number| usize::try_from(number).ok());
                self.database = database.unwrap_or(0);
            }
            b"repl-id" if value.len() == ID_DIGITS => self.id = value.to_vec(),
            b"repl-offset" => self.position = number::parse_u64(value),
            _ => {}
        }
    }

    /// Returns the database of the next command in the stream.
    pub fn database(&self) -> usize {
        self.database
    }

    /// Returns the position, if the file contains all of its fields.
    pub fn origin(&self) -> Option<Origin> {
        Origin::new(&self.id, self.position?, self.database)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rdb_file::FILE_VERSION;

    const ID: &[u8] = b"0123456789abcdef0123456789abcdef01234567";

    #[test]
    fn a_line_encodes_its_origin() {
        for (position, database) in [(0, 0), (POSITION_MAX, 15)] {
            let origin = Origin::new(ID, position, database).unwrap();
            let line = origin.line();
            assert!(line.len() < 128, "Redis reads no longer lines");
            assert_eq!(Origin::parse_line(line.as_bytes()), Some(origin));
        }
        let id = String::from_utf8_lossy(ID);
        for wrong in [
            "#REPL:\r\n".to_owned(),
            format!("#REPL:{id}:1:0"),
            format!("#REPL:{id}:1\r\n"),
            format!("#REPL:{id}:1:0:0\r\n"),
            format!("#REPL:{id}:-1:0\r\n"),
            format!("#REPL:{id}:{}:0\r\n", POSITION_MAX + 1),
            format!("#REPL:{}g:1:0\r\n", &id[1..]),
            format!("#REPL:{}:1:0\r\n", &id[1..]),
        ] {
            assert_eq!(Origin::parse_line(wrong.as_bytes()), None, "{wrong:?}");
        }
    }

    #[test]
    fn fields_of_a_file_form_an_origin_when_complete() {
        let mut fields = OriginFields::default();
        fields.read_field(b"repl-stream-db", b"3");
        fields.read_field(b"repl-id", ID);
        assert_eq!((fields.origin(), fields.database()), (None, 3));
        fields.read_field(b"repl-offset", b"77");
        assert_eq!(fields.origin(), Origin::new(ID, 77, 3));
        fields.read_field(b"repl-offset", b"-1");
        assert_eq!(fields.origin(), None, "-1 means none, as in Redis");
        fields.read_field(b"repl-offset", b"77");
        fields.read_field(b"repl-id", b"short");
        assert_eq!(fields.origin(), Origin::new(ID, 77, 3));
    }

    #[test]
    fn a_file_has_the_fields_of_redis() {
        let mut writer = RdbWriter::new(Vec::new(), FILE_VERSION, false).unwrap();
        Origin::new(ID, 1234, 5).unwrap().write(&mut writer).unwrap();
        let (bytes, _) = writer.finish().unwrap();
        let has = |part: &[u8]| memchr::memmem::find(&bytes, part).is_some();
        assert!(has(b"\x0erepl-stream-db\xc0\x05") || has(b"\x0erepl-stream-db\x015"));
        assert!(has(&[b"\x07repl-id\x28", ID].concat()) && has(b"\x0brepl-offset"));
    }
}
