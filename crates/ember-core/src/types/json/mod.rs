//! JSON documents.
//!
//! A document is one allocation ([`packed`]): about as long as its compact text, copied and freed at once. Reads follow a
//! path by skipping the values before it, whose lengths are known ([`path`]); a change moves the bytes after it
//! ([`edit`]). `docs/decisions/json-documents.md` compares this form with trees of nodes.

mod edit;
pub(crate) mod floats;
mod numbers;
pub mod packed;
pub mod path;
mod text;

use crate::memory::buffer_bytes;
use crate::memory::moving::Mover;
use crate::types::collection::Collection;
use crate::types::value::ValueType;

pub use edit::{Change, DOCUMENT_BYTES_MAX, EditError};
pub use floats::FloatType;
pub use numbers::Number;
pub use text::{
    Format, Parsed, parse, parse_as, parse_number, print, print_as, print_list, print_number, print_string,
};

/// A JSON document.
#[derive(Clone, Debug, Default)]
pub struct Json {
    /// The packed value; empty only until a value is stored.
    packed: Vec<u8>,
}

impl Json {
    /// Returns a document from its packed value.
    pub fn new(packed: Vec<u8>) -> Json {
        Json { packed }
    }

    /// Returns the packed value.
    pub fn packed(&self) -> &[u8] {
        &self.packed
    }

    /// Applies changes of values, one for each position; `depth` is the number of nested containers of the deepest
    /// added value. O(bytes after the change) for one change, otherwise O(bytes of the document and of the changes).
    ///
    /// # Errors
    /// Returns an error if the document would exceed a limit; it is then unchanged.
    pub fn apply(&mut self, changes: Vec<(usize, Change<'_>)>, depth: usize) -> Result<(), EditError> {
        edit::apply(&mut self.packed, changes, depth)
    }
}

impl Collection for Json {
    const TYPE: ValueType = ValueType::Json;

    fn encoding_name(&self) -> &'static str {
        "raw"
    }

    fn memory_bytes(&self) -> usize {
        buffer_bytes(&self.packed)
    }

    /// A document counts as one element: its parts have no names of their own.
    fn len(&self) -> usize {
        usize::from(!self.packed.is_empty())
    }

    fn move_inside(&mut self, _from: u64, _most: usize, mover: &mut Mover<'_>) -> u64 {
        mover.move_vec(&mut self.packed);
        0
    }

    fn check_invariants(&self) {
        assert_eq!(packed::check(&self.packed, 0), self.packed.len(), "a document is one value");
        assert!(packed::depth(&self.packed, 0) <= packed::DEPTH_MAX);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::path::{Evaluation, Path};
    use super::*;

    fn document(text: &str) -> Json {
        Json::new(parse(text.as_bytes()).unwrap().packed)
    }

    fn text(json: &Json) -> String {
        json.check_invariants();
        let mut out = Vec::new();
        print(json.packed(), 0, &mut out);
        String::from_utf8(out).unwrap()
    }

    fn find(json: &Json, path: &str) -> Vec<usize> {
        let path = Path::parse(path.as_bytes()).unwrap();
        Evaluation::new(json.packed()).run(path.segments()).unwrap()
    }

    #[test]
    fn texts_are_printed_as_they_were_parsed() {
        for written in [
            "null",
            "true",
            "-10",
            "85",
            "86",
            "-11",
            "127",
            "-129",
            "32768",
            "8388608",
            "2147483648",
            "9223372036854775807",
            "-9223372036854775808",
            "18446744073709551615",
            "1.2345678901234567e20",
            "-0.0",
            "0.0",
            "1.0",
            "19.99",
            "0.00001",
            "1e-6",
            "0.1234567",
            "1e22",
            "1e308",
            "1000000000000000.0",
            "-123456.789",
            "\"\"",
            "\"a\\\"\\\\\\b\\f\\n\\r\\t\\u0001\u{7f}é\u{10ffff}/\"",
            "[]",
            "{}",
            "{\"a\":[1,2,{\"b\":null}],\"\":\"\"}",
        ] {
            assert_eq!(text(&document(written)), written);
        }
        assert_eq!(
            text(&document("[1.50, 1e2, 123456789012345680000, -0]")),
            "[1.5,100.0,1.2345678901234568e20,-0.0]"
        );
        for len in [62, 63, 64, 255, 256, 65535, 65536, 70000] {
            let written = format!("[\"{}\",{}1]", "x".repeat(len), "1,".repeat(len));
            assert_eq!(text(&document(&written)), written);
        }
    }

    #[test]
    fn the_last_of_equal_names_wins_in_the_place_of_the_first() {
        assert_eq!(text(&document(r#"{"a":1,"b":2,"a":3}"#)), r#"{"a":3,"b":2}"#);
        let many: String = (0..100).map(|number| format!("\"n{}\":{number},", number % 30)).collect();
        let merged = text(&document(&format!("{{{}\"x\":0}}", many)));
        assert!(
            merged.starts_with("{\"n0\":90,\"n1\":91,\"n2\":92") && merged.ends_with("\"n29\":89,\"x\":0}"),
            "{merged}"
        );
    }

    #[test]
    fn invalid_texts_are_refused_with_the_position() {
        for (written, error) in [
            ("", "EOF while parsing a value at line 1 column 0"),
            ("{bad", "key must be a string at line 1 column 2"),
            ("1 2", "trailing characters at line 1 column 3"),
            ("1e400", "number out of range at line 1 column 5"),
            ("\"\\ud800\"", "unexpected end of hex escape at line 1 column 8"),
        ] {
            assert_eq!(parse(written.as_bytes()).unwrap_err(), error, "{written}");
        }
        assert_eq!(parse(b"\"\xff\"").unwrap_err(), "Couldn't parse as UTF-8 string");
        assert!(parse("[".repeat(200).as_bytes()).unwrap_err().starts_with("recursion limit exceeded"));
        assert_eq!(parse(format!("{}{}", "[".repeat(127), "]".repeat(127)).as_bytes()).unwrap().depth, 127);
    }

    #[test]
    fn changes_of_several_values_are_applied_together() {
        let mut json = document(r#"{"a":[1,2,3],"b":{"a":[4,[5]]},"c":7}"#);
        let nine = parse(b"9").unwrap().packed;
        let append = Change::Splice { removed: usize::MAX..usize::MAX, added: &nine, count: 1 };
        let changes = find(&json, "$..a").into_iter().map(|at| (at, append.clone())).collect();
        json.apply(changes, 0).unwrap();
        assert_eq!(text(&json), r#"{"a":[1,2,3,9],"b":{"a":[4,[5],9]},"c":7}"#);
        let removed = find(&json, "$..[0]").into_iter().chain(find(&json, "$.b.a[1]"));
        let removed = removed.map(|at| (at, Change::Remove)).collect();
        json.apply(removed, 0).unwrap();
        assert_eq!(text(&json), r#"{"a":[2,3,9],"b":{"a":[9]},"c":7}"#);
        let patch = parse(br#"{"c":null,"a":{"x":null,"y":1}}"#).unwrap().packed;
        json.apply(vec![(0, Change::Merge(&patch))], 2).unwrap();
        assert_eq!(text(&json), r#"{"a":{"y":1},"b":{"a":[9]}}"#);
        let kept = vec![(find(&json, "$.b.a")[0], Change::Keep(0..0)), (0, Change::Merge(&patch))];
        json.apply(kept, 2).unwrap();
        assert_eq!(text(&json), r#"{"a":{"y":1},"b":{"a":[]}}"#);
    }

    #[test]
    fn documents_have_limits() {
        let deep = parse(format!("{}{}", "[".repeat(127), "]".repeat(127)).as_bytes()).unwrap();
        let mut json = document("[[1]]");
        let inner = find(&json, "$[0][0]")[0];
        let replace = |at| vec![(at, Change::Replace(deep.packed.clone().into()))];
        assert_eq!(json.apply(replace(inner), deep.depth), Err(EditError::TooDeep));
        assert_eq!(text(&json), "[[1]]");
        let outer = find(&json, "$[0]")[0];
        json.apply(replace(outer), deep.depth).unwrap();
        let huge = Change::Splice { removed: 0..0, added: &vec![0; DOCUMENT_BYTES_MAX], count: 1 };
        assert_eq!(document("[]").apply(vec![(0, huge)], 0), Err(EditError::TooLarge));
    }

    #[derive(Clone, Debug)]
    enum Step {
        Replace(usize, serde_json::Value),
        Remove(usize),
        Insert(usize, usize, Vec<serde_json::Value>),
        Keep(usize, usize, usize),
    }

    fn value() -> impl Strategy<Value = serde_json::Value> {
        let leaf = prop_oneof![
            Just(serde_json::Value::Null),
            any::<bool>().prop_map(Into::into),
            any::<i64>().prop_map(Into::into),
            (-200i64..200).prop_map(Into::into),
            any::<u64>().prop_map(Into::into),
            any::<f64>().prop_filter("finite", |number| number.is_finite()).prop_map(Into::into),
            (-1000i32..1000).prop_map(|cents| (f64::from(cents) / 100.0).into()),
            "[a-z\"\\\\é\n]{0,80}".prop_map(Into::into),
        ];
        leaf.prop_recursive(4, 64, 40, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..40).prop_map(Into::into),
                prop::collection::btree_map("[a-e]{0,3}", inner, 0..30)
                    .prop_map(|members| serde_json::Value::Object(members.into_iter().collect())),
            ]
        })
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            (0usize..200, value()).prop_map(|(at, value)| Step::Replace(at, value)),
            (0usize..200).prop_map(Step::Remove),
            (0usize..200, 0usize..9, prop::collection::vec(value(), 0..4))
                .prop_map(|(at, index, values)| Step::Insert(at, index, values)),
            (0usize..200, 0usize..9, 0usize..9).prop_map(|(at, from, to)| Step::Keep(at, from, to)),
        ]
    }

    /// Returns pointers of all values, in the order of the document.
    fn pointers(value: &serde_json::Value, before: &str, out: &mut Vec<String>) {
        out.push(before.to_owned());
        match value {
            serde_json::Value::Array(elements) => {
                for (index, element) in elements.iter().enumerate() {
                    pointers(element, &format!("{before}/{index}"), out);
                }
            }
            serde_json::Value::Object(members) => {
                for (name, member) in members {
                    pointers(member, &format!("{before}/{name}"), out);
                }
            }
            _ => {}
        }
    }

    proptest! {
        /// A document behaves like a tree of nodes. The order of members, which the tree does not keep, is that of
        /// their names in both.
        #[test]
        fn documents_equal_a_model(first in value(), steps in prop::collection::vec(step(), 1..12)) {
            let mut json = document(&first.to_string());
            let mut model = first;
            for step in steps {
                let all: Vec<usize> = [vec![0], find(&json, "$..*")].concat();
                let mut names = Vec::new();
                pointers(&model, "", &mut names);
                prop_assert_eq!(all.len(), names.len());
                let mut places: Vec<usize> = all;
                places.sort_unstable();
                let (Step::Replace(number, _)
                | Step::Remove(number)
                | Step::Insert(number, ..)
                | Step::Keep(number, ..)) = step;
                let number = number % places.len();
                let (at, pointer) = (places[number], &names[number]);
                let target = model.pointer_mut(pointer).unwrap();
                match step {
                    Step::Replace(_, value) => {
                        let parsed = parse(value.to_string().as_bytes()).unwrap();
                        if json.apply(vec![(at, Change::Replace(parsed.packed.into()))], parsed.depth).is_ok() {
                            *target = value;
                        }
                    }
                    Step::Remove(_) => {
                        let Some((parent, last)) = pointer.rsplit_once('/') else { continue };
                        json.apply(vec![(at, Change::Remove)], 0).unwrap();
                        match model.pointer_mut(parent).unwrap() {
                            serde_json::Value::Array(elements) => _ = elements.remove(last.parse().unwrap()),
                            serde_json::Value::Object(members) => _ = members.remove(last),
                            _ => unreachable!(),
                        }
                    }
                    Step::Insert(_, index, values) => {
                        let serde_json::Value::Array(elements) = target else { continue };
                        let index = index.min(elements.len());
                        let mut added = Vec::new();
                        let mut depth = 0;
                        for value in &values {
                            let parsed = parse(value.to_string().as_bytes()).unwrap();
                            added.extend_from_slice(&parsed.packed);
                            depth = depth.max(parsed.depth);
                        }
                        let change = Change::Splice { removed: index..index, added: &added, count: values.len() };
                        if json.apply(vec![(at, change)], depth).is_ok() {
                            elements.splice(index..index, values);
                        }
                    }
                    Step::Keep(_, from, to) => {
                        let serde_json::Value::Array(elements) = target else { continue };
                        json.apply(vec![(at, Change::Keep(from..to))], 0).unwrap();
                        *elements = elements.drain(..).take(to).skip(from).collect();
                    }
                }
                let parsed: serde_json::Value = serde_json::from_str(&text(&json)).unwrap();
                prop_assert_eq!(&parsed, &model);
            }
        }

        #[test]
        fn arbitrary_texts_and_paths_never_panic(text in ".{0,40}", path in "[$@.a\\[\\]*?()'0-9:,!=<&|~ ]{0,30}") {
            if let Ok(parsed) = parse(text.as_bytes()) {
                Json::new(parsed.packed).check_invariants();
            }
            let json = document(r#"{"a":[1,{"a":[2,3]},"x"]}"#);
            if let Ok(path) = Path::parse(path.as_bytes()) {
                let _ = Evaluation::new(json.packed()).run(path.segments());
            }
        }
    }
}
