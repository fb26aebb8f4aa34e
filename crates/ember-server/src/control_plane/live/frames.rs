//! A reader of RESP3 messages that keeps only the beginning of long strings, so its memory does not depend on what clients
//! publish.
//!
//! It reads what a worker sends to a subscriber or monitor: lines (`+OK`), and pushes of strings and numbers.

/// The maximum number of bytes that are kept of a string or line.
pub(super) const KEPT_BYTES_MAX: usize = 4096;

/// The maximum number of parts of a push; those of messages have at most four.
const PARTS_MAX: usize = 16;

/// A string of which the beginning is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Part {
    /// The first [`KEPT_BYTES_MAX`] bytes.
    pub(super) bytes: Vec<u8>,
    /// The number of all bytes.
    pub(super) length: usize,
}

impl Part {
    fn add(&mut self, bytes: &[u8]) {
        let kept = bytes.len().min(KEPT_BYTES_MAX.saturating_sub(self.bytes.len()));
        self.bytes.extend_from_slice(&bytes[..kept]);
        self.length += bytes.len();
    }

    /// Whether bytes are missing at the end.
    pub(super) fn is_cut(&self) -> bool {
        self.bytes.len() < self.length
    }
}

/// A message.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Frame {
    Line(Part),
    Push(Vec<Part>),
}

/// The message cannot be read: it has another type, or too many parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unreadable;

/// The state between two reads.
#[derive(Debug, Default)]
pub(super) struct Frames {
    /// The line or string that has arrived in part.
    part: Part,
    /// The number of missing bytes of a string, with its line end; `None` in a line.
    missing: Option<usize>,
    /// The parts of a push, and the number of those that are missing.
    push: Option<(Vec<Part>, usize)>,
}

impl Frames {
    /// Reads bytes, and calls `act` with each complete message.
    ///
    /// # Errors
    /// Returns an error after which no more bytes can be read.
    pub(super) fn read(&mut self, mut bytes: &[u8], act: &mut impl FnMut(Frame)) -> Result<(), Unreadable> {
        while !bytes.is_empty() {
            let taken = match self.missing {
                Some(missing) => self.read_string(missing, bytes, act),
                None => self.read_line(bytes, act)?,
            };
            bytes = &bytes[taken..];
        }
        Ok(())
    }

    /// Reads bytes of a string; returns their number.
    fn read_string(&mut self, missing: usize, bytes: &[u8], act: &mut impl FnMut(Frame)) -> usize {
        let taken = missing.min(bytes.len());
        // The last two bytes are the line end.
        let content = taken.min(missing.saturating_sub(2));
        self.part.add(&bytes[..content]);
        self.missing = Some(missing - taken);
        if missing == taken {
            self.missing = None;
            self.end_part(act);
        }
        taken
    }

    /// Reads bytes of a line; returns their number.
    fn read_line(&mut self, bytes: &[u8], act: &mut impl FnMut(Frame)) -> Result<usize, Unreadable> {
        let Some(end) = memchr::memchr(b'\n', bytes) else {
            self.part.add(bytes);
            return Ok(bytes.len());
        };
        self.part.add(&bytes[..end]);
        let Part { bytes: mut line, length } = std::mem::take(&mut self.part);
        if line.len() == length && line.last() == Some(&b'\r') {
            line.pop();
        }
        let (kind, rest) = line.split_first().ok_or(Unreadable)?;
        let number = || std::str::from_utf8(rest).ok()?.parse::<usize>().ok();
        match kind {
            b'$' | b'=' => {
                // A length is not allocated: only bytes that arrive are kept.
                let bytes = number().and_then(|length| length.checked_add(2)).ok_or(Unreadable)?;
                self.missing = Some(bytes);
            }
            b'>' if self.push.is_none() => {
                let parts = number().filter(|parts| (1..=PARTS_MAX).contains(parts)).ok_or(Unreadable)?;
                self.push = Some((Vec::new(), parts));
            }
            b'+' | b'-' | b':' => {
                // The line's first byte is its kind; the last one, which may be missing, its end.
                self.part = Part { bytes: rest.to_vec(), length: length.saturating_sub(2) };
                self.end_part(act);
            }
            _ => return Err(Unreadable),
        }
        Ok(end + 1)
    }

    fn end_part(&mut self, act: &mut impl FnMut(Frame)) {
        let part = std::mem::take(&mut self.part);
        let Some((mut parts, missing)) = self.push.take() else { return act(Frame::Line(part)) };
        parts.push(part);
        if missing == 1 {
            act(Frame::Push(parts));
        } else {
            self.push = Some((parts, missing - 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads bytes in pieces of a size; returns the messages.
    fn read(bytes: &[u8], piece: usize) -> Result<Vec<Frame>, Unreadable> {
        let (mut frames, mut found) = (Frames::default(), Vec::new());
        for piece in bytes.chunks(piece) {
            frames.read(piece, &mut |frame| found.push(frame))?;
        }
        Ok(found)
    }

    fn part(text: &str) -> Part {
        Part { bytes: text.as_bytes().to_vec(), length: text.len() }
    }

    #[test]
    fn messages_are_read_in_pieces_of_any_size() {
        let bytes = b"+OK\r\n>3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$4\r\na\r\nb\r\n>3\r\n+subscribe\r\n$0\r\n\r\n:1\r\n-ERR x\r\n";
        let expected = [
            Frame::Line(part("OK")),
            Frame::Push(vec![part("message"), part("c"), part("a\r\nb")]),
            Frame::Push(vec![part("subscribe"), part(""), part("1")]),
            Frame::Line(part("ERR x")),
        ];
        for piece in 1..=bytes.len() {
            assert_eq!(read(bytes, piece).as_deref(), Ok(&expected[..]), "{piece}");
        }
    }

    #[test]
    fn only_the_beginning_of_long_strings_is_kept() {
        let long = "x".repeat(3 * KEPT_BYTES_MAX);
        let bytes = format!("+{long}\r\n>2\r\n$1\r\na\r\n${}\r\n{long}\r\n+OK\r\n", long.len());
        for piece in [1, 1000, KEPT_BYTES_MAX, bytes.len()] {
            let found = read(bytes.as_bytes(), piece).unwrap();
            let [Frame::Line(line), Frame::Push(parts), Frame::Line(last)] = &found[..] else {
                panic!("{found:?}")
            };
            for part in [line, &parts[1]] {
                assert!(part.is_cut() && part.bytes.len() >= KEPT_BYTES_MAX - 1, "{piece}");
                assert_eq!(part.length, long.len(), "{piece}");
            }
            assert_eq!(last.bytes, b"OK");
        }
    }

    #[test]
    fn other_types_are_refused() {
        for bytes in
            [&b"*1\r\n:1\r\n"[..], b"\n", b"$-1\r\n", b">99\r\n", b">0\r\n", b">1\r\n>1\r\n", b"%1\r\n"]
        {
            assert_eq!(read(bytes, bytes.len()), Err(Unreadable), "{bytes:?}");
        }
    }
}
