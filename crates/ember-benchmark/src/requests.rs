//! Requests as bytes: built once, with the digits of keys overwritten for each request.

use ember_protocol::client::encode_command;

use super::key_patterns::{KEY_DIGITS, KeySequence, write_digits};

/// The placeholder for a key in a command.
const KEY_WORD: &[u8] = b"__key__";

/// The placeholder for the number of a key in a command.
const NUMBER_WORD: &[u8] = b"__rand_int__";

/// The placeholder for a value in a command.
const DATA_WORD: &[u8] = b"__data__";

/// The prefix of keys.
pub(super) const KEY_PREFIX: &[u8] = b"key:";

/// A request, and the positions of its keys' digits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Template {
    bytes: Vec<u8>,
    holes: Vec<usize>,
}

impl Template {
    /// Builds the request of a command with placeholders for keys and values.
    pub(super) fn of_command(words: &[Vec<u8>], data: &[u8]) -> Template {
        let mut holes_in_words = Vec::new();
        let filled: Vec<Vec<u8>> = words
            .iter()
            .map(|word| {
                let (filled, holes) = fill(word, data);
                holes_in_words.push(holes);
                filled
            })
            .collect();
        let mut bytes = Vec::new();
        encode_command(&filled, &mut bytes);
        // Each word in the request follows the words before it and a line with its own length.
        let mut holes = Vec::new();
        let mut at = format!("*{}\r\n", filled.len()).len();
        for (word, offsets) in filled.iter().zip(holes_in_words) {
            at += format!("${}\r\n", word.len()).len();
            holes.extend(offsets.into_iter().map(|offset| at + offset));
            at += word.len() + 2;
        }
        Template { bytes, holes }
    }

    /// Builds a request that is sent unchanged.
    pub(super) fn of_bytes(bytes: &[u8]) -> Template {
        Template { bytes: bytes.to_vec(), holes: Vec::new() }
    }

    /// Returns the number of key numbers in the request.
    pub(super) fn hole_count(&self) -> usize {
        self.holes.len()
    }

    /// Returns the length of the request in bytes.
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }
}

/// Fills the placeholders of a word, with zeros for the digits of keys; returns the word and the positions of these
/// digits.
fn fill(word: &[u8], data: &[u8]) -> (Vec<u8>, Vec<usize>) {
    let mut filled = Vec::new();
    let mut holes = Vec::new();
    let mut rest = word;
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix(DATA_WORD) {
            filled.extend_from_slice(data);
            rest = after;
            continue;
        }
        let after_key = rest.strip_prefix(KEY_WORD);
        if let Some(after) = after_key.or_else(|| rest.strip_prefix(NUMBER_WORD)) {
            if after_key.is_some() {
                filled.extend_from_slice(KEY_PREFIX);
            }
            holes.push(filled.len());
            filled.extend_from_slice(&[b'0'; KEY_DIGITS]);
            rest = after;
            continue;
        }
        filled.push(rest[0]);
        rest = &rest[1..];
    }
    (filled, holes)
}

/// The requests that a connection sends at a time. Each thread has one batch, because only the digits differ between
/// connections.
pub(super) struct Batch {
    /// The kinds of requests, and the number of consecutive requests of each kind.
    parts: Vec<(Template, u32)>,
    bytes: Vec<u8>,
}

impl Batch {
    /// Creates a buffer for batches of up to `count` requests.
    pub(super) fn new(parts: &[(Template, u32)], count: u32) -> Batch {
        let parts: Vec<_> = parts.iter().filter(|(_, times)| *times > 0).cloned().collect();
        let bytes = match parts.as_slice() {
            [(template, _)] => template.bytes.repeat(count as usize),
            _ => Vec::new(),
        };
        Batch { parts, bytes }
    }

    /// Returns the bytes of `count` requests, at most the maximum of the batch, with the next keys. `turn` is the
    /// number of requests that this connection has sent before, which determines the next kind.
    pub(super) fn fill(&mut self, count: u32, turn: u64, keys: &mut KeySequence) -> &[u8] {
        let Batch { parts, bytes } = self;
        if let [(template, _)] = parts.as_slice() {
            let length = template.bytes.len();
            let used = &mut bytes[..length * count as usize];
            if template.hole_count() > 0 {
                for request in used.chunks_exact_mut(length) {
                    write_keys(request, &template.holes, keys);
                }
            }
            return used;
        }
        bytes.clear();
        for turn in turn..turn + u64::from(count) {
            let template = &parts[part_at(parts, turn)].0;
            let start = bytes.len();
            bytes.extend_from_slice(&template.bytes);
            write_keys(&mut bytes[start..], &template.holes, keys);
        }
        bytes
    }
}

/// Returns the index of the part to which the request number `turn` belongs.
pub(super) fn part_at<T>(parts: &[(T, u32)], turn: u64) -> usize {
    let sum: u64 = parts.iter().map(|(_, times)| u64::from(*times)).sum();
    let mut place = turn % sum.max(1);
    for (index, (_, times)) in parts.iter().enumerate() {
        match place.checked_sub(u64::from(*times)) {
            Some(rest) => place = rest,
            None => return index,
        }
    }
    0
}

fn write_keys(request: &mut [u8], holes: &[usize], keys: &mut KeySequence) {
    for &hole in holes {
        write_digits(keys.next(), &mut request[hole..hole + KEY_DIGITS]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::KeyPattern;
    use crate::key_patterns::Keys;

    fn template(words: &[&str]) -> Template {
        let words: Vec<Vec<u8>> = words.iter().map(|word| word.as_bytes().to_vec()).collect();
        Template::of_command(&words, b"xyz")
    }

    fn sequential() -> KeySequence {
        Keys::new(1_000_000, KeyPattern::Sequential, false).sequence(0)
    }

    #[test]
    fn placeholders_are_replaced_by_keys_and_values() {
        let template =
            template(&["MSET", "__key__", "<__data____data__>", "a:__rand_int__:__key__", "__dat__"]);
        let mut batch = Batch::new(&[(template, 1)], 2);
        let mut keys = sequential();
        let first = batch.fill(1, 0, &mut keys).to_vec();
        let wanted = "*5\r\n$4\r\nMSET\r\n$16\r\nkey:000000000000\r\n$8\r\n<xyzxyz>\r\n\
                      $31\r\na:000000000001:key:000000000002\r\n$7\r\n__dat__\r\n";
        assert_eq!(String::from_utf8(first).unwrap(), wanted);
        let both = String::from_utf8(batch.fill(2, 1, &mut keys).to_vec()).unwrap();
        assert_eq!(both.len(), 2 * wanted.len());
        assert!(both.contains("key:000000000003") && both.ends_with("key:000000000008\r\n$7\r\n__dat__\r\n"));
    }

    #[test]
    fn request_kinds_follow_the_configured_ratio() {
        let parts = [(template(&["SET", "__key__", "__data__"]), 1), (template(&["GET", "__key__"]), 3)];
        let mut batch = Batch::new(&parts, 8);
        let text = String::from_utf8(batch.fill(8, 2, &mut sequential()).to_vec()).unwrap();
        let kinds: String =
            text.split("\r\n").filter(|word| ["SET", "GET"].contains(word)).map(|w| &w[..1]).collect();
        assert_eq!(kinds, "GGSGGGSG");
        let only = [(template(&["SET", "__key__", "__data__"]), 0), (template(&["GET", "__key__"]), 1)];
        assert!(Batch::new(&only, 1).fill(1, 0, &mut sequential()).starts_with(b"*2\r\n$3\r\nGET"));
    }
}
