//! Reads the names of the commands in a stream that arrives in pieces, and which kinds of values its RESTORE commands
//! contain. A piece may end anywhere.

/// The maximum length of a command name in bytes. A name is buffered when a piece ends inside it.
const NAME_BYTES_MAX: usize = 64;

/// The maximum length in bytes of a line with a number.
const LINE_BYTES_MAX: usize = 32;

/// The maximum number of digits of an argument's length: all servers accept less than 2^39 bytes.
const DIGITS_MAX: usize = 12;

/// The maximum number of bytes at the beginning of a payload that are passed on: they state the kind of its value.
const PAYLOAD_BYTES_MAX: usize = 16;

/// The commands with a payload as their third argument.
const RESTORES: [&[u8]; 2] = [b"restore", b"restore-asking"];

/// A part of a command that decides which servers support it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part<'a> {
    /// The command's name.
    Name(&'a [u8]),
    /// The first bytes of the payload of a RESTORE, at most 16.
    Payload(&'a [u8]),
}

/// The role of the next or current argument.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Role {
    Name,
    /// The payload of a RESTORE after this number of other arguments.
    Payload(u8),
    #[default]
    Other,
}

/// A reader of a stream of commands, each an array of bulk strings, which inspects only the parts that [`Part`] lists.
#[derive(Debug, Default)]
pub struct CommandNames {
    /// The number of arguments of the current command that have not begun yet.
    arguments: u64,
    role: Role,
    /// The number of bytes of the current argument that have not arrived, including its line end.
    left: u64,
    /// The bytes received so far of an incomplete name, payload beginning or line with a number, if the last piece
    /// ended inside it.
    begun: Vec<u8>,
}

/// The error if bytes are not a stream of commands, or do not begin with a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoCommands;

impl CommandNames {
    /// Reads the next bytes of the stream, calls `find` for each part that [`Part`] lists, and returns the first `Some`
    /// that `find` returns. Bytes after that part are not read. O(arguments).
    ///
    /// # Errors
    /// Returns an error if these bytes cannot follow the previous ones.
    pub fn find<T>(
        &mut self,
        mut bytes: &[u8],
        mut find: impl FnMut(Part<'_>) -> Option<T>,
    ) -> Result<Option<T>, NoCommands> {
        while !bytes.is_empty() {
            if self.left == 0 {
                bytes = self.read_number(bytes)?;
                continue;
            }
            let (piece, rest_after) = bytes.split_at(self.left.min(bytes.len() as u64) as usize);
            self.left -= piece.len() as u64;
            bytes = rest_after;
            let found = match self.role {
                Role::Name => self.read_name(piece, &mut find),
                Role::Payload(0) => self.read_payload(piece, &mut find),
                Role::Payload(_) | Role::Other => None,
            };
            if found.is_some() {
                return Ok(found);
            }
            if self.left == 0
                && let Role::Payload(others) = &mut self.role
            {
                *others -= 1;
            }
        }
        Ok(None)
    }

    /// Reads a line with the number of arguments of a command, or of bytes of an argument; returns the bytes after it.
    fn read_number<'b>(&mut self, bytes: &'b [u8]) -> Result<&'b [u8], NoCommands> {
        let end = bytes.iter().take(LINE_BYTES_MAX).position(|&byte| byte == b'\n');
        let (line, rest_after) = bytes.split_at(end.map_or(bytes.len(), |end| end + 1));
        if self.begun.len() + line.len() > LINE_BYTES_MAX {
            return Err(NoCommands);
        }
        if end.is_none() || !self.begun.is_empty() {
            self.begun.extend_from_slice(line);
        }
        if end.is_none() {
            return Ok(rest_after);
        }
        let whole = if self.begun.is_empty() { line } else { &self.begun };
        let (&sign, digits) = whole.strip_suffix(b"\r\n").and_then(<[u8]>::split_first).ok_or(NoCommands)?;
        let number = number(digits).ok_or(NoCommands)?;
        self.begun.clear();
        match (sign, self.arguments) {
            (b'*', 0) => (self.arguments, self.role) = (number, Role::Name),
            (b'$', 1..) => {
                self.arguments -= 1;
                self.left = number + 2;
            }
            _ => return Err(NoCommands),
        }
        Ok(rest_after)
    }

    /// Reads a piece of a command name, or of its line end.
    fn read_name<T>(&mut self, piece: &[u8], find: &mut impl FnMut(Part<'_>) -> Option<T>) -> Option<T> {
        let is_whole = self.left == 0;
        let name = if is_whole && self.begun.is_empty() {
            piece
        } else {
            let allowed = NAME_BYTES_MAX - self.begun.len();
            self.begun.extend_from_slice(&piece[..piece.len().min(allowed)]);
            &self.begun
        };
        if !is_whole {
            return None;
        }
        let name = name.strip_suffix(b"\r\n").unwrap_or(name);
        let is_restore = RESTORES.iter().any(|known| name.eq_ignore_ascii_case(known));
        let found = find(Part::Name(name));
        // The name is one of the arguments before the payload.
        self.role = if is_restore { Role::Payload(3) } else { Role::Other };
        self.begun.clear();
        found
    }

    /// Reads a piece of a payload, until its beginning is known.
    fn read_payload<T>(&mut self, piece: &[u8], find: &mut impl FnMut(Part<'_>) -> Option<T>) -> Option<T> {
        let missing = PAYLOAD_BYTES_MAX - self.begun.len();
        self.begun.extend_from_slice(&piece[..piece.len().min(missing)]);
        if self.left > 0 && self.begun.len() < PAYLOAD_BYTES_MAX {
            return None;
        }
        let found = find(Part::Payload(&self.begun));
        self.role = Role::Other;
        self.begun.clear();
        found
    }
}

/// Parses a number with at most [`DIGITS_MAX`] digits.
fn number(digits: &[u8]) -> Option<u64> {
    let is_number = (1..=DIGITS_MAX).contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit);
    is_number.then(|| digits.iter().fold(0, |number, digit| number * 10 + u64::from(digit - b'0')))
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: &[u8] =
        b"*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n*1\r\n$5\r\nMULTI\r\n*3\r\n$3\r\nSET\r\n$1\r\nk\r\n\
        $16\r\n*1\r\n$4\r\nNONE\r\n\r\n\r\n*1\r\n$4\r\nEXEC\r\n*2\r\n$0\r\n\r\n$1\r\na\r\n\
        *5\r\n$7\r\nRestore\r\n$1\r\nk\r\n$1\r\n0\r\n$17\r\n0123456789abcdefg\r\n$7\r\nREPLACE\r\n\
        *4\r\n$14\r\nRESTORE-ASKING\r\n$0\r\n\r\n$1\r\n0\r\n$1\r\n7\r\n\
        *2\r\n$7\r\nRESTORE\r\n$1\r\nk\r\n*1\r\n$4\r\nPING\r\n";

    #[test]
    fn parts_are_found_wherever_the_pieces_end() {
        for piece in [1, 2, 3, 7, 20, STREAM.len()] {
            let (mut names, mut found) = (CommandNames::default(), Vec::new());
            for bytes in STREAM.chunks(piece) {
                let none: Option<()> = names
                    .find(bytes, |part| {
                        found.push(match part {
                            Part::Name(name) => String::from_utf8_lossy(name).into_owned(),
                            Part::Payload(begin) => format!("payload {}", begin.escape_ascii()),
                        });
                        None
                    })
                    .expect("it is a stream");
                assert_eq!(none, None);
            }
            let expected = [
                "SELECT",
                "MULTI",
                "SET",
                "EXEC",
                "",
                "Restore",
                "payload 0123456789abcdef",
                "RESTORE-ASKING",
                "payload 7\\r\\n",
                "RESTORE",
                "PING",
            ];
            assert_eq!(found, expected, "{piece}");
        }
    }

    #[test]
    fn parsing_stops_after_the_requested_name() {
        let mut names = CommandNames::default();
        let mut many = 0;
        let found = names.find(STREAM, |part| {
            many += 1;
            (part == Part::Name(b"MULTI")).then_some("here")
        });
        assert_eq!((found, many), (Ok(Some("here")), 2));
    }

    #[test]
    fn malformed_streams_are_errors() {
        for bytes in [
            &b"SET k v\r\n"[..],
            b"*1\n",
            b"$3\r\nSET\r\n",
            b"*1\r\n*1\r\n",
            b"*1\r\n$18446744073709551615\r\n",
            b"*1\r\n$-1\r\n",
            b"*11111111111111111111111111111111111111",
        ] {
            let read = CommandNames::default().find(bytes, |_| None::<()>);
            assert_eq!(read, Err(NoCommands), "{}", bytes.escape_ascii());
        }
    }

    #[test]
    fn long_names_take_bounded_memory() {
        let mut names = CommandNames::default();
        names.find(b"*1\r\n$1000000\r\n", |_| None::<()>).expect("it is a stream");
        for _ in 0..1000 {
            names.find(&[b'x'; 1000], |_| None::<()>).expect("it is a stream");
        }
        assert!(names.begun.capacity() <= 2 * NAME_BYTES_MAX);
    }
}
