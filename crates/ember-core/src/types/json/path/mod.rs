//! Paths: which values of a document a command reads or changes.
//!
//! ```text
//! path      $ segment …                                                        JSONPath
//!           [.] name segment … | . | [ … ] segment …                           legacy: the same after "$."
//! segment   .name | .* | ..name | ..* | [selector] | .[selector] | ..[selector]
//! selector  'name', … | "name", … | index, … | start:end:step | * | ?filter
//! filter    test && test || (filter) || !test
//! test      term | term op term                                                op: == != < <= > >= =~
//! term      @segment … | $segment … | number | string | true | false | null
//! ```
//!
//! A name after a dot consists of ASCII letters, digits and ``-_`~+#%$^/:``. Spaces between the parts are ignored.
//! Indexes may be negative. The grammar is that of RedisJSON 2.8, and `!` of Redis 8.8.

mod evaluate;
mod filter;
mod parse;

use std::borrow::Cow;

pub use evaluate::{Evaluation, TooManySteps};
pub use filter::Filter;

/// A step from a value to some of the values in it.
#[derive(Clone, Debug)]
pub enum Segment {
    /// The member with this name.
    Name(Box<[u8]>),
    /// The members with these names.
    Names(Vec<Box<[u8]>>),
    /// The elements with these indexes.
    Indexes(Vec<i64>),
    /// Every `step`-th element from `start` to the one before `end`.
    Range {
        /// The first index; 0 if it is missing.
        start: i64,
        /// The index after the last one; `None` for the end of the array.
        end: Option<i64>,
        /// The distance between two elements; at least 1.
        step: usize,
    },
    /// All elements or members.
    All,
    /// The value itself and everything in it, to which the next segment applies.
    Descend,
    /// The elements or members for which the filter is true.
    Filter(Box<Filter>),
}

/// A parsed path.
#[derive(Clone, Debug)]
pub struct Path<'p> {
    /// The path as the client has sent it.
    pub original: &'p [u8],
    /// The path as JSONPath.
    pub full: Cow<'p, [u8]>,
    /// Whether the path is a legacy path, which selects one value.
    pub is_legacy: bool,
    segments: Vec<Segment>,
}

/// A path that does not follow the grammar.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathError {
    full: Vec<u8>,
    at: usize,
}

/// The maximum number of bytes of a path that an error quotes.
const QUOTED_MAX: usize = 256;

impl PathError {
    /// Returns the description of the error, which quotes the path.
    pub fn text(&self) -> Vec<u8> {
        let (before, after) = self.full.split_at(self.at.min(self.full.len()));
        let before = &before[before.len().saturating_sub(QUOTED_MAX)..];
        let mut text = format!("Error occurred on position {}, \"", self.at).into_bytes();
        text.extend_from_slice(before);
        if after.is_empty() {
            text.extend_from_slice(b" <<<<----\", the path ends too early.");
        } else {
            text.extend_from_slice(b" ---->>>> ");
            text.extend_from_slice(&after[..after.len().min(QUOTED_MAX)]);
            text.extend_from_slice(b"\", unexpected character.");
        }
        text
    }
}

/// The last segment of a path that names one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Last<'p> {
    /// The name of a member.
    Name(&'p [u8]),
    /// The index of an element.
    Index,
}

impl<'p> Path<'p> {
    /// Parses a path. O(its bytes).
    ///
    /// # Errors
    /// Returns an error if the path does not follow the grammar.
    pub fn parse(original: &'p [u8]) -> Result<Path<'p>, PathError> {
        let is_legacy = Path::is_legacy_text(original);
        let full = match original {
            _ if !is_legacy => Cow::Borrowed(original),
            b"." => Cow::Borrowed(&b"$"[..]),
            [b'.', ..] => Cow::Owned([b"$", original].concat()),
            _ => Cow::Owned([b"$.", original].concat()),
        };
        match parse::parse(&full) {
            Ok(segments) => Ok(Path { original, full, is_legacy, segments }),
            Err(at) => Err(PathError { full: full.into_owned(), at }),
        }
    }

    /// Returns whether a path is a legacy path, according to its first bytes.
    pub fn is_legacy_text(path: &[u8]) -> bool {
        !matches!(path, [b'$'] | [b'$', b'.' | b'[', ..])
    }

    /// Returns whether the path selects the whole document.
    pub fn is_root(&self) -> bool {
        self.segments.is_empty()
    }

    /// Returns the segments.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// Returns the last segment and those before it; `None` if the path may select several values, or the whole
    /// document.
    pub fn split_last(&self) -> Option<(Last<'_>, &[Segment])> {
        fn name_of(segment: &Segment) -> Option<Last<'_>> {
            match segment {
                Segment::Name(name) => Some(Last::Name(name)),
                Segment::Names(names) if names.len() == 1 => Some(Last::Name(&names[0])),
                Segment::Indexes(indexes) if indexes.len() == 1 => Some(Last::Index),
                _ => None,
            }
        }
        let (last, before) = self.segments.split_last()?;
        before.iter().all(|segment| name_of(segment).is_some()).then_some(())?;
        Some((name_of(last)?, before))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{parse, print};
    use super::*;

    fn select(doc: &str, path: &str) -> String {
        let doc = parse(doc.as_bytes()).unwrap().packed;
        let path = match Path::parse(path.as_bytes()) {
            Ok(path) => path,
            Err(error) => return String::from_utf8(error.text()).unwrap(),
        };
        let found = Evaluation::new(&doc).run(path.segments()).unwrap();
        let mut texts = Vec::new();
        for at in found {
            let mut text = Vec::new();
            print(&doc, at, &mut text);
            texts.push(String::from_utf8(text).unwrap());
        }
        texts.join(" ")
    }

    #[test]
    fn paths_select_the_documented_values() {
        let doc = r#"{"a":1,"b":[1,2,[3,4],{"a":[5],"n":null}],"x y":2,"0k":3,"o":{"p":{"a":7},"q":"text"}}"#;
        for (path, expected) in [
            ("$.a", "1"),
            ("a", "1"),
            (".a", "1"),
            ("$['a','0k']", "1 3"),
            ("$[\"x y\"]", "2"),
            ("$.0k", "3"),
            ("$.b [ 0 ]", "1"),
            ("$.b[-1].a", "[5]"),
            ("$.b[-10]", "1"),
            ("$.b[10]", ""),
            ("$.b[0,0,1]", "1 1 2"),
            ("$.b[1:3]", "2 [3,4]"),
            ("$.b[::2]", "1 [3,4]"),
            ("$.b[-2:]", "[3,4] {\"a\":[5],\"n\":null}"),
            ("$.b[:-3]", "1"),
            ("$..a", "1 [5] 7"),
            ("$..[0]", "1 3 5"),
            ("$.b[*]", "1 2 [3,4] {\"a\":[5],\"n\":null}"),
            ("$.o.*.a", "7"),
            ("$.b[?(@>1)]", "2"),
            ("$.b[?@==1||@==2]", "1 2"),
            ("$.b[?(@.a)]", "{\"a\":[5],\"n\":null}"),
            ("$.b[?!(@.a) && @ < 2]", "1"),
            ("$.b[?@.n == null].a", "[5]"),
            ("$.o[?@ =~ '^te.t$']", "\"text\""),
            ("$.o[?@.a == $.o.p.a]", "{\"a\":7}"),
            ("$.b[?@ == 'x' && @ == 1 || @ == 2]", "2"),
            ("$.a[?@ == 1]", ""),
            (
                "$",
                "{\"a\":1,\"b\":[1,2,[3,4],{\"a\":[5],\"n\":null}],\"x y\":2,\"0k\":3,\"o\":{\"p\":{\"a\":7},\"q\":\"text\"}}",
            ),
        ] {
            assert_eq!(select(doc, path), expected, "{path}");
        }
    }

    #[test]
    fn invalid_paths_are_refused_with_their_position() {
        for (path, at) in [
            ("$[", 2),
            ("$.", 2),
            ("$.*a", 3),
            ("$[1", 3),
            ("$['a", 4),
            ("$[?", 3),
            ("$[?(@.a]", 7),
            ("$[1:2:0]", 6),
            ("$.é", 2),
            ("$..", 3),
            ("$.a b", 4),
        ] {
            let error = Path::parse(path.as_bytes()).unwrap_err();
            assert_eq!(error.at, at, "{path}");
        }
        assert!(Path::parse(format!("$[?{}1{}]", "(".repeat(1000), ")".repeat(1000)).as_bytes()).is_err());
    }

    #[test]
    fn hostile_paths_end_after_a_limited_number_of_steps() {
        let doc = parse(format!("{}1{}", "[".repeat(100), "]".repeat(100)).as_bytes()).unwrap().packed;
        let path = Path::parse(b"$..*..*..*..*..*..*..*").unwrap();
        assert_eq!(Evaluation::new(&doc).run(path.segments()), Err(TooManySteps));
    }
}
