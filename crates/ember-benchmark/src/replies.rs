//! Counts replies: finds the ends of replies of any type in the received data, without storing the replies.
//!
//! The socket splits replies at arbitrary bytes. The state between two reads consists of the number of values still to
//! come (a nested reply needs no stack: its elements are added to that number), the number of bytes to skip, and an
//! incomplete line.

/// The maximum length of a stored line, in bytes: enough for lines with a type and a number. Of longer lines (statuses,
/// errors) only the beginning is stored.
const LINE_BYTES_MAX: usize = 256;

/// The maximum number of values in one reply: far more than in real replies, and low enough that sums do not overflow.
const VALUES_MAX: u64 = 1 << 40;

/// The counts so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    /// All replies.
    pub(super) replies: u64,
    /// Replies that are errors.
    pub(super) errors: u64,
    /// Replies that are nil or an empty array: no data was found.
    pub(super) misses: u64,
}

/// A counter of the replies of one connection.
#[derive(Debug, Default)]
pub(super) struct ReplyCounter {
    /// The number of values still to come until the current reply is complete; 0 between replies.
    values: u64,
    /// The number of bytes of a string still to come, including its line end.
    skip: u64,
    /// An incomplete line.
    line: Vec<u8>,
    /// Whether that line is longer than its stored part.
    is_long: bool,
    /// Whether the current value is a push, which is not a reply to a request.
    is_push: bool,
    /// Whether the last byte of the line is `\r`.
    is_returned: bool,
    /// The text of the first error.
    pub(super) first_error: Option<String>,
}

/// Received data is not a reply; contains the beginning of that data.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NoReply(pub(super) String);

impl ReplyCounter {
    /// Counts the replies that end in these bytes. Linear; only the beginning of an incomplete line is stored.
    ///
    /// # Errors
    /// Returns an error if the bytes are not RESP; the counter must not be used afterwards.
    pub(super) fn feed(&mut self, mut bytes: &[u8], tally: &mut Tally) -> Result<(), NoReply> {
        while !bytes.is_empty() {
            if self.skip > 0 {
                bytes = self.skip_string(bytes, tally)?;
                continue;
            }
            let Some(end) = bytes.iter().position(|&byte| byte == b'\n') else {
                return self.keep(bytes);
            };
            let (line, rest) = bytes.split_at(end + 1);
            bytes = rest;
            if self.line.is_empty() {
                self.take_line(&line[..end], tally)?;
            } else {
                self.keep(&line[..end])?;
                if self.is_long && self.is_returned {
                    // Only the beginning of the line was stored, which is sufficient; the line end is restored.
                    self.line.push(b'\r');
                }
                let mut line = std::mem::take(&mut self.line);
                self.is_long = false;
                self.take_line(&line, tally)?;
                line.clear();
                self.line = line;
            }
        }
        Ok(())
    }

    /// Whether no incomplete reply has been received.
    pub(super) fn is_between(&self) -> bool {
        self.values == 0 && self.skip == 0 && self.line.is_empty()
    }

    fn keep(&mut self, bytes: &[u8]) -> Result<(), NoReply> {
        let allowed = LINE_BYTES_MAX - self.line.len().min(LINE_BYTES_MAX);
        self.line.extend_from_slice(&bytes[..bytes.len().min(allowed)]);
        self.is_long |= bytes.len() > allowed;
        if let Some(&last) = bytes.last() {
            self.is_returned = last == b'\r';
        }
        match self.line.first() {
            // Other types of lines contain numbers and are short.
            Some(b'+' | b'-' | b'(' | b',') | None => Ok(()),
            Some(_) if self.is_long => Err(no_reply(&self.line)),
            Some(_) => Ok(()),
        }
    }

    /// Skips the rest of a string, including its line end.
    fn skip_string<'a>(&mut self, bytes: &'a [u8], tally: &mut Tally) -> Result<&'a [u8], NoReply> {
        let count = usize::try_from(self.skip).unwrap_or(usize::MAX).min(bytes.len());
        let (skipped, rest) = bytes.split_at(count);
        // The last two bytes are the line end.
        for (offset, wanted) in [(2, b'\r'), (1, b'\n')] {
            let index = self.skip.checked_sub(offset).and_then(|index| usize::try_from(index).ok());
            if let Some(found) = index.and_then(|index| skipped.get(index))
                && *found != wanted
            {
                return Err(NoReply("a string without its line end".to_owned()));
            }
        }
        self.skip -= count as u64;
        if self.skip == 0 {
            self.end_value(tally);
        }
        Ok(rest)
    }

    /// Handles one line without its `\n`.
    fn take_line(&mut self, line: &[u8], tally: &mut Tally) -> Result<(), NoReply> {
        let [kind, text @ .., b'\r'] = line else { return Err(no_reply(line)) };
        let is_reply = self.values == 0;
        if is_reply {
            self.values = 1;
        }
        match kind {
            b'+' | b':' | b',' | b'(' | b'#' => {}
            b'-' => self.count_error_reply(is_reply, text, tally),
            b'_' => tally.misses += u64::from(is_reply),
            b'$' | b'=' | b'!' => match number(text, line)? {
                None => tally.misses += u64::from(is_reply),
                Some(length) => {
                    if *kind == b'!' {
                        self.count_error_reply(is_reply, b"(an error of RESP3)", tally);
                    }
                    self.skip = length + 2;
                    return Ok(());
                }
            },
            b'*' | b'~' | b'%' | b'>' | b'|' => match number(text, line)? {
                None => tally.misses += u64::from(is_reply),
                Some(count) => {
                    if *kind == b'>' && is_reply {
                        self.is_push = true;
                    }
                    tally.misses += u64::from(is_reply && count == 0 && *kind != b'|');
                    let pairs = if matches!(kind, b'%' | b'|') { 2 * count } else { count };
                    // Attributes precede a value and are not values themselves.
                    self.values += pairs + u64::from(*kind == b'|');
                    if self.values > VALUES_MAX {
                        return Err(no_reply(line));
                    }
                }
            },
            _ => return Err(no_reply(line)),
        }
        self.end_value(tally);
        Ok(())
    }

    fn count_error_reply(&mut self, is_reply: bool, text: &[u8], tally: &mut Tally) {
        if is_reply {
            tally.errors += 1;
            if self.first_error.is_none() {
                self.first_error = Some(String::from_utf8_lossy(text).into_owned());
            }
        }
    }

    fn end_value(&mut self, tally: &mut Tally) {
        self.values -= 1;
        if self.values == 0 {
            tally.replies += u64::from(!self.is_push);
            self.is_push = false;
        }
    }
}

/// Parses a length or count; None for -1.
fn number(text: &[u8], line: &[u8]) -> Result<Option<u64>, NoReply> {
    if text == b"-1" {
        return Ok(None);
    }
    let is_number = !text.is_empty() && text.len() <= 12 && text.iter().all(u8::is_ascii_digit);
    if !is_number {
        return Err(no_reply(line));
    }
    Ok(Some(text.iter().fold(0, |number, digit| number * 10 + u64::from(digit - b'0'))))
}

fn no_reply(line: &[u8]) -> NoReply {
    /// The maximum number of bytes that the error shows.
    const SHOWN_BYTES: usize = 40;
    NoReply(format!("\"{}\"", line[..line.len().min(SHOWN_BYTES)].escape_ascii()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(pieces: &[&[u8]]) -> Result<(Tally, ReplyCounter), NoReply> {
        let mut counter = ReplyCounter::default();
        let mut tally = Tally::default();
        for piece in pieces {
            counter.feed(piece, &mut tally)?;
        }
        Ok((tally, counter))
    }

    const ALL: &[u8] = b"+OK\r\n:1\r\n$3\r\nabc\r\n$0\r\n\r\n$-1\r\n*-1\r\n_\r\n-ERR first\r\n*0\r\n,1.5\r\n#t\r\n(12\r\n\
        *2\r\n*2\r\n:1\r\n$1\r\na\r\n-ERR inner\r\n%2\r\n+a\r\n$-1\r\n+b\r\n*0\r\n~1\r\n:1\r\n=6\r\ntxt:\r\n\r\n\
        >2\r\n+message\r\n$2\r\nhi\r\n|1\r\n+ttl\r\n:3600\r\n$1\r\nx\r\n!9\r\nERR other\r\n+OK\r\n";

    #[test]
    fn every_type_is_counted_however_it_is_cut() {
        let wanted = Tally { replies: 19, errors: 2, misses: 4 };
        let (tally, counter) = count(&[ALL]).unwrap();
        assert_eq!((tally, counter.first_error.as_deref()), (wanted, Some("ERR first")));
        assert!(counter.is_between());
        for cut in 1..ALL.len() {
            for second in cut..ALL.len() {
                let (tally, counter) = count(&[&ALL[..cut], &ALL[cut..second], &ALL[second..]]).unwrap();
                assert_eq!(tally, wanted, "cut at {cut} and {second}");
                assert!(counter.is_between());
            }
        }
        let bytes: Vec<&[u8]> = ALL.chunks(1).collect();
        assert_eq!(count(&bytes).unwrap().0, wanted);
    }

    #[test]
    fn the_counter_agrees_with_the_parser() {
        let mut stream = ALL;
        let mut replies = 0;
        while !stream.is_empty() {
            let value = ember_protocol::client::read_value(&mut stream).unwrap();
            replies += u64::from(!matches!(value, ember_protocol::client::Value::Push(_)));
        }
        assert_eq!(count(&[ALL]).unwrap().0.replies, replies);
    }

    #[test]
    fn an_incomplete_reply_is_not_counted() {
        for cut in [&b"$3\r\nab"[..], b"*2\r\n:1\r\n", b"+O", b"%1\r\n+a\r\n", b"|1\r\n+a\r\n:1\r\n"] {
            let (tally, counter) = count(&[b"+OK\r\n", cut]).unwrap();
            assert_eq!((tally.replies, counter.is_between()), (1, false), "{}", cut.escape_ascii());
        }
    }

    #[test]
    fn invalid_replies_are_errors_not_panics() {
        for bad in [
            &b"HTTP/1.1 400 Bad Request\r\n"[..],
            b"\r\n",
            b"\n",
            b"+OK\n",
            b"$\r\n",
            b"$-2\r\n",
            b"$x\r\n",
            b"$9999999999999\r\n",
            b"*99999999999999999999\r\n",
            b"*999999999999\r\n*999999999999\r\n*999999999999\r\n",
            b"$1\r\nabc",
            b"$2\r\nab\rx",
        ] {
            let whole = [bad, &b"x".repeat(LINE_BYTES_MAX)].concat();
            assert!(count(&[&whole, b"\r\n"]).is_err(), "{}", bad.escape_ascii());
            let bytes: Vec<&[u8]> = whole.chunks(1).chain([&b"\r\n"[..]]).collect();
            assert!(count(&bytes).is_err(), "{} in bytes", bad.escape_ascii());
        }
    }

    #[test]
    fn long_statuses_and_errors_are_replies_too() {
        let long = [b"-ERR ", &b"x".repeat(100_000)[..], b"\r\n+OK\r\n"].concat();
        for size in [1, 7, 256, 257, 100_000, 200_000] {
            let pieces: Vec<&[u8]> = long.chunks(size).collect();
            let (tally, counter) = count(&pieces).unwrap();
            assert_eq!((tally.replies, tally.errors), (2, 1), "in pieces of {size}");
            assert!(counter.first_error.unwrap().starts_with("ERR xxx"));
        }
    }
}
