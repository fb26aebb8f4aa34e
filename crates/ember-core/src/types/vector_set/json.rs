//! Fields of a JSON object, read from its text.
//!
//! All fields that a call mentions are found in one pass. Only the objects on their paths are parsed, and nothing after
//! the last of these fields is read.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::tuple::Value;

/// The maximum number of names, separated by dots, in the path of a field. An object on the path can be read once per
/// name.
pub const PATH_NAMES_MAX: usize = 16;

/// The level of a field that does not exist in the text.
const MISSING: usize = usize::MAX;

const NOT_FOUND: Found<'static> = Found { level: MISSING, rest: &[] };

/// Paths of fields: each names a field of the first level, or, by its dots, a field of an object within it. If a text
/// has both, the field of the first level counts.
#[derive(Clone, Debug)]
pub struct FieldPaths {
    paths: Vec<Box<[u8]>>,
    root: Node,
    /// The number of names of the longest path that lead to an object.
    depth: usize,
    /// The number of branches of all nodes.
    branches: usize,
}

/// The names to find in an object.
#[derive(Clone, Debug, Default)]
struct Node {
    branches: BTreeMap<Box<[u8]>, Branch>,
    /// The number of branches that are fields. These include the fields of nested objects, named by the rest of their
    /// paths.
    fields: usize,
}

#[derive(Clone, Debug)]
struct Branch {
    number: usize,
    field: Option<usize>,
    within: Option<Node>,
}

/// The beginning of a field's value, and the number of objects around the field.
#[derive(Clone, Copy, Debug)]
struct Found<'t> {
    level: usize,
    rest: &'t [u8],
}

impl<'t> Found<'t> {
    /// Returns the value, if there is one, and the number of its bytes that were read.
    fn value(self) -> (Option<Value<'t>>, usize) {
        let mut reader = Reader { rest: self.rest };
        let value = (self.level != MISSING).then(|| reader.value(true)).flatten();
        (value, self.rest.len() - reader.rest.len())
    }
}

impl PartialEq for FieldPaths {
    fn eq(&self, other: &Self) -> bool {
        self.paths == other.paths
    }
}

impl FieldPaths {
    /// Returns these paths, which must be unique; `None` if one has too many names. O(their length · log of their
    /// number).
    pub fn new(paths: Vec<Box<[u8]>>) -> Option<FieldPaths> {
        let (mut root, mut branches, mut depth) = (Node::default(), 0, 0);
        for (field, path) in paths.iter().enumerate() {
            let names = 1 + path.iter().filter(|&&byte| byte == b'.').count();
            if names > PATH_NAMES_MAX {
                return None;
            }
            depth = depth.max(names);
            root.insert(path, field, &mut branches);
        }
        Some(FieldPaths { paths, root, depth, branches })
    }

    /// Returns the maximum number of times that the text of an object is read.
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// Returns the value of each field of the object in `text`, in the order of the paths, and the approximate number
    /// of bytes read. `None` if a field is missing, is an object or an array with objects or arrays in it, or if `text`
    /// is malformed before a field.
    pub(super) fn values<'t>(&self, text: &'t [u8]) -> (Option<Vec<Value<'t>>>, usize) {
        let (found, mut read) = self.find(text);
        let value = |found: Found<'t>| {
            let (value, len) = found.value();
            read += len;
            value
        };
        let values = found.into_iter().map(value).collect();
        (values, read)
    }

    /// Like [`FieldPaths::values`], for a single path of one name, the most frequent case, without an allocation.
    /// `None` for other paths.
    pub(super) fn only_value<'t>(&self, text: &'t [u8]) -> Option<(Option<Value<'t>>, usize)> {
        if (self.paths.len(), self.branches) != (1, 1) {
            return None;
        }
        let (mut found, mut seen) = ([NOT_FOUND], [false]);
        let mut search = Search { found: &mut found, seen: &mut seen, read: 0 };
        search.object(&self.root, 0, Reader { rest: text });
        let read = search.read;
        let (value, len) = found[0].value();
        Some((value, read + len))
    }

    /// Returns the text of each field: the contents of a string, or any other value as it is written.
    pub fn texts<'t>(&self, text: &'t [u8]) -> Vec<Option<Cow<'t, [u8]>>> {
        let (found, _) = self.find(text);
        let text = |found: Found<'t>| {
            if found.level == MISSING {
                return None;
            }
            let mut reader = Reader { rest: found.rest };
            if reader.peek()? == b'"' {
                return unescaped(reader.raw_string()?);
            }
            let start = reader.rest;
            reader.skip()?;
            Some(Cow::Borrowed(&start[..start.len() - reader.rest.len()]))
        };
        found.into_iter().map(text).collect()
    }

    /// Returns where the values of the fields begin, and the approximate number of bytes read. O(the text · the depth).
    fn find<'t>(&self, text: &'t [u8]) -> (Vec<Found<'t>>, usize) {
        let (mut found, mut seen) = (vec![NOT_FOUND; self.paths.len()], vec![false; self.branches]);
        let mut search = Search { found: &mut found, seen: &mut seen, read: 0 };
        if !self.paths.is_empty() {
            search.object(&self.root, 0, Reader { rest: text });
        }
        let read = search.read;
        (found, read)
    }
}

impl Node {
    fn insert(&mut self, path: &[u8], field: usize, branches: &mut usize) {
        self.branch(path, branches).field = Some(field);
        self.fields += 1;
        if let Some(dot) = memchr::memchr(b'.', path) {
            let within = self.branch(&path[..dot], branches).within.get_or_insert_default();
            within.insert(&path[dot + 1..], field, branches);
        }
    }

    fn branch(&mut self, name: &[u8], branches: &mut usize) -> &mut Branch {
        self.branches.entry(name.into()).or_insert_with(|| {
            *branches += 1;
            Branch { number: *branches - 1, field: None, within: None }
        })
    }
}

/// A pass over a text.
struct Search<'s, 't> {
    found: &'s mut [Found<'t>],
    /// The branches whose names were found: the first of equal names counts.
    seen: &'s mut [bool],
    read: usize,
}

impl<'t> Search<'_, 't> {
    /// Finds the fields of an object at nesting level `level`. Returns the reader after the object, unless the object
    /// is malformed or all fields were found before its end.
    fn object(&mut self, node: &Node, level: usize, reader: Reader<'t>) -> Option<Reader<'t>> {
        let mut at = reader;
        let after = self.fields(node, level, &mut at);
        self.read += reader.rest.len() - at.rest.len();
        after.map(|()| at)
    }

    fn fields(&mut self, node: &Node, level: usize, reader: &mut Reader<'t>) -> Option<()> {
        let mut left = node.fields;
        reader.take(b'{')?;
        if reader.take(b'}').is_some() {
            return Some(());
        }
        loop {
            let name = reader.raw_string()?;
            reader.take(b':')?;
            let branch = node.branches.get(name);
            let branch = branch.filter(|branch| !std::mem::replace(&mut self.seen[branch.number], true));
            if let Some(field) = branch.and_then(|branch| branch.field) {
                if level < self.found[field].level {
                    self.found[field] = Found { level, rest: reader.rest };
                }
                left -= 1;
                if left == 0 {
                    return None;
                }
            }
            let within = branch.and_then(|branch| branch.within.as_ref());
            match within.and_then(|within| self.object(within, level + 1, *reader)) {
                Some(after) => *reader = after,
                None => reader.skip()?,
            }
            if reader.take(b',').is_none() {
                return reader.take(b'}');
            }
        }
    }
}

#[derive(Clone, Copy)]
struct Reader<'t> {
    rest: &'t [u8],
}

impl<'t> Reader<'t> {
    fn peek(&mut self) -> Option<u8> {
        self.rest = self.rest.trim_ascii_start();
        self.rest.first().copied()
    }

    /// Consumes this byte, if it is the next one.
    fn take(&mut self, byte: u8) -> Option<()> {
        (self.peek()? == byte).then(|| self.rest = &self.rest[1..])
    }

    /// Reads the bytes of a string between its quotes.
    fn raw_string(&mut self) -> Option<&'t [u8]> {
        self.take(b'"')?;
        let mut at = 0;
        loop {
            at += memchr::memchr2(b'"', b'\\', self.rest.get(at..)?)?;
            if self.rest[at] == b'"' {
                break;
            }
            at += 2;
        }
        let string = &self.rest[..at];
        self.rest = &self.rest[at + 1..];
        Some(string)
    }

    fn word(&mut self) -> &'t [u8] {
        let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
        let end = self.rest.iter().position(|byte| !is_part(byte)).unwrap_or(self.rest.len());
        let word;
        (word, self.rest) = self.rest.split_at(end);
        word
    }

    /// Reads a value; an array only if one is allowed.
    fn value(&mut self, may_be_array: bool) -> Option<Value<'t>> {
        match self.peek()? {
            b'"' => Some(Value::String(unescaped(self.raw_string()?)?)),
            b'[' if may_be_array => {
                self.take(b'[')?;
                let mut elements = Vec::new();
                if self.take(b']').is_some() {
                    return Some(elements.into());
                }
                loop {
                    elements.push(match self.value(false)? {
                        Value::Tuple(_) => return None,
                        element => element,
                    });
                    if self.take(b']').is_some() {
                        return Some(elements.into());
                    }
                    self.take(b',')?;
                }
            }
            b't' => (self.word() == b"true").then_some(Value::Number(1.0)),
            b'f' => (self.word() == b"false").then_some(Value::Number(0.0)),
            b'n' => (self.word() == b"null").then_some(Value::Null),
            b'-' | b'0'..=b'9' => std::str::from_utf8(self.word()).ok()?.parse().ok().map(Value::Number),
            _ => None,
        }
    }

    /// Skips a value.
    fn skip(&mut self) -> Option<()> {
        let mut depth = 0usize;
        loop {
            match self.peek()? {
                b'"' => _ = self.raw_string()?,
                b'{' | b'[' => {
                    depth += 1;
                    self.rest = &self.rest[1..];
                    continue;
                }
                b'}' | b']' => {
                    depth = depth.checked_sub(1)?;
                    self.rest = &self.rest[1..];
                }
                b',' | b':' if depth > 0 => {
                    self.rest = &self.rest[1..];
                    continue;
                }
                _ if self.word().is_empty() => return None,
                _ => {}
            }
            if depth == 0 {
                return Some(());
            }
        }
    }
}

/// Returns a string with its escapes decoded.
fn unescaped(raw: &[u8]) -> Option<Cow<'_, [u8]>> {
    if memchr::memchr(b'\\', raw).is_none() {
        return Some(Cow::Borrowed(raw));
    }
    let mut bytes = Vec::with_capacity(raw.len());
    let mut rest = raw.iter().copied();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        match rest.next()? {
            b'n' => bytes.push(b'\n'),
            b't' => bytes.push(b'\t'),
            b'r' => bytes.push(b'\r'),
            b'b' => bytes.push(8),
            b'f' => bytes.push(12),
            b'u' => {
                let first = hex4(&mut rest)?;
                let code = if (0xD800..0xDC00).contains(&first) {
                    let is_pair = rest.next() == Some(b'\\') && rest.next() == Some(b'u');
                    let second = is_pair.then(|| hex4(&mut rest)).flatten()?.checked_sub(0xDC00)?;
                    0x10000 + ((first - 0xD800) << 10) + second
                } else {
                    first
                };
                bytes.extend(char::from_u32(code)?.encode_utf8(&mut [0; 4]).bytes());
            }
            byte @ (b'"' | b'\\' | b'/') => bytes.push(byte),
            _ => return None,
        }
    }
    Some(Cow::Owned(bytes))
}

fn hex4(bytes: &mut impl Iterator<Item = u8>) -> Option<u32> {
    (0..4).try_fold(0, |code, _| Some(code << 4 | char::from(bytes.next()?).to_digit(16)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithms::random::Random;

    fn field<'t>(text: &'t [u8], path: &[u8]) -> Option<Value<'t>> {
        FieldPaths::new(vec![path.into()]).unwrap().values(text).0.map(|mut values| values.remove(0))
    }

    /// Returns where the value of a field begins, by one pass for each name of its path.
    fn rest_of<'t>(text: &'t [u8], path: &[u8]) -> Option<&'t [u8]> {
        let of_name = |text: &'t [u8], name: &[u8]| {
            let mut reader = Reader { rest: text };
            reader.take(b'{')?;
            if reader.take(b'}').is_some() {
                return None;
            }
            loop {
                let found = reader.raw_string()?;
                reader.take(b':')?;
                if found == name {
                    return Some(reader.rest);
                }
                reader.skip()?;
                reader.take(b',')?;
            }
        };
        of_name(text, path).or_else(|| {
            let dot = path.iter().position(|&byte| byte == b'.')?;
            rest_of(of_name(text, &path[..dot])?, &path[dot + 1..])
        })
    }

    #[test]
    fn one_pass_finds_the_same_values_as_a_pass_per_field() {
        fn object(random: &mut Random, depth: usize) -> String {
            let names = ["a", "b", "a.b", "b.a", "a.a.b", "", "c"];
            let value = |random: &mut Random| match random.below(if depth < 3 { 4 } else { 2 }) {
                0 => random.below(100).to_string(),
                1 => ["[1,\"}\"]", "\"x\"", "null", "x!", "{", ""][random.below(6)].to_owned(),
                _ => object(random, depth + 1),
            };
            let fields: Vec<String> = (0..random.below(5))
                .map(|_| format!("\"{}\" :{}", names[random.below(names.len())], value(random)))
                .collect();
            format!("{{ {}}}", fields.join(", "))
        }
        let paths = ["a", "b", "c", "a.b", "a.a", "a.b.a", "b.a.b", "a.a.b", ".a", "a..b", ""];
        let mut random = Random::seeded(5);
        let mut hits = 0;
        for _ in 0..20_000 {
            let text = object(&mut random, 0);
            let wanted: Vec<&str> = paths.into_iter().filter(|_| random.below(3) == 0).collect();
            let all = FieldPaths::new(wanted.iter().map(|path| path.as_bytes().into()).collect()).unwrap();
            let (found, _) = all.find(text.as_bytes());
            for (path, found) in wanted.iter().zip(found) {
                let found = (found.level != MISSING).then_some(found.rest);
                assert_eq!(found, rest_of(text.as_bytes(), path.as_bytes()), "{path} of {text}");
                hits += usize::from(found.is_some());
            }
        }
        assert!(hits > 5000, "{hits}");
    }

    #[test]
    fn long_paths_are_refused_and_long_texts_read_once() {
        let path = |names: usize| vec!["a"; names].join(".").into_bytes().into();
        assert!(FieldPaths::new(vec![path(PATH_NAMES_MAX)]).is_some());
        assert!(FieldPaths::new(vec![path(PATH_NAMES_MAX + 1)]).is_none());
        let nested = ["{\"a\":".repeat(10_000), "1".to_owned(), "}".repeat(10_000)].concat();
        let paths = FieldPaths::new(vec![path(PATH_NAMES_MAX)]).unwrap();
        let (_, read) = paths.values(nested.as_bytes());
        assert!(read <= (PATH_NAMES_MAX + 1) * nested.len(), "{read}");
    }

    #[test]
    fn fields_of_the_first_level_are_found() {
        let text = br#" {"a" : {"year":1, "x":["}",{}]} ,"b":[1,"two"],"year": 1984, "s":"\u00e9\n\"","t":true,"z":null }"#;
        let number = |name: &[u8]| match field(text, name) {
            Some(Value::Number(number)) => Some(number),
            _ => None,
        };
        assert_eq!((number(b"year"), number(b"t"), number(b"x")), (Some(1984.0), Some(1.0), None));
        assert!(matches!(field(text, b"s"), Some(Value::String(text)) if &*text == "é\n\"".as_bytes()));
        let elements = vec![Value::Number(1.0), Value::String(b"two".into())];
        assert_eq!(field(text, b"b"), Some(elements.into()));
        assert!(matches!(field(text, b"z"), Some(Value::Null)));
        assert!(field(text, b"a").is_none() && field(text, b"missing").is_none());
    }

    #[test]
    fn broken_text_has_no_fields() {
        for text in [
            "",
            "{",
            "[1]",
            "1",
            "{\"a\"}",
            "{\"b\":}",
            "{\"b\":[}",
            "{\"b\":1",
            "{\"b\"\"a\":1}",
            "{b:1}",
            "{\"b\":]}",
        ] {
            assert!(field(text.as_bytes(), b"a").is_none(), "{text}");
        }
        for text in [r#"{"a":[1,[2]]}"#, r#"{"a":"\ud800"}"#, r#"{"a":"\x"}"#, r#"{"a":tru}"#, r#"{"a":1e}"#]
        {
            assert!(field(text.as_bytes(), b"a").is_none(), "{text}");
        }
    }
}
