//! JSON documents in the format of RedisJSON: a value of the module `ReJSON-RL`.
//!
//! ```text
//! version 3   string: the text                                                       written
//! version 2   the same, then a number; if it is not 0, two strings follow
//! version 0   a node: number of the type, then a string (2 string, 0x10 boolean), an integer (8), a double (4);
//!             for 0x20 (object) the number of members, each 0x80, name, node; for 0x40 (array) that of elements
//! version 4   string: CBOR
//! ```
//!
//! The version is in the last bits of the module's number.
//!
//! The format: RedisJSON 1.0 to 2.8, and 8.8.

use std::io::{self, BufRead, Write};

use super::cbor;
use super::format::{LoadError, Reader, Writer};
use super::parts::{self, Parts, double, number, signed, string};
use crate::types::json::{Json, Number, packed, parse, print, print_number, print_string};

/// The number of the module: nine letters of six bits, `ReJSON-RL`, and ten bits for the version, which is 0.
const MODULE: u64 = 5_035_677_737_576_115_200;

/// The numbers of the module with the versions that are read.
pub(super) const MODULE_IDS: [u64; 4] = [MODULE, MODULE | 2, MODULE | 3, MODULE | 4];

/// The version that is written.
const WRITTEN: u64 = MODULE | 3;

/// Writes a document. O(its bytes).
pub(super) fn write<W: Write>(writer: &mut Writer<W>, json: &Json) -> io::Result<()> {
    let mut text = Vec::with_capacity(json.packed().len());
    print(json.packed(), 0, &mut text);
    let mut parts = Parts::begin(writer, WRITTEN)?;
    parts.string(&text)?;
    parts.end()
}

/// Reads a document, after the module's number.
pub(super) fn read<R: BufRead>(reader: &mut Reader<R>, module_id: u64) -> Result<Json, LoadError> {
    let mut text = Vec::new();
    if module_id == MODULE {
        read_node(reader, &mut text, packed::DEPTH_MAX)?;
    } else {
        text = string(reader)?;
        if module_id == MODULE | 4 {
            text = cbor::text_of(&text, packed::DEPTH_MAX)?;
        }
    }
    if module_id == MODULE | 2 && number(reader)? != 0 {
        // The name of a search index and a key, which only old versions used.
        string(reader)?;
        string(reader)?;
    }
    parts::end(reader)?;
    let parsed = parse(&text).map_err(|_| LoadError::Corrupt("a JSON document is invalid"))?;
    Ok(Json::new(parsed.packed))
}

/// Reads a node of version 0, and appends its text.
fn read_node<R: BufRead>(
    reader: &mut Reader<R>,
    text: &mut Vec<u8>,
    depth_left: usize,
) -> Result<(), LoadError> {
    const NULL: u64 = 1;
    const STRING: u64 = 2;
    const DOUBLE: u64 = 4;
    const INTEGER: u64 = 8;
    const BOOLEAN: u64 = 0x10;
    const OBJECT: u64 = 0x20;
    const ARRAY: u64 = 0x40;
    const MEMBER: u64 = 0x80;
    const UNKNOWN: LoadError = LoadError::Corrupt("a JSON document has a node of an unknown type");
    match number(reader)? {
        NULL => text.extend_from_slice(b"null"),
        STRING => print_string(&string(reader)?, text),
        DOUBLE => {
            let number = Some(double(reader)?).filter(|number| number.is_finite());
            print_number(
                Number::Double(number.ok_or(LoadError::Corrupt("a JSON number is not finite"))?),
                text,
            );
        }
        INTEGER => print_number(Number::Int(signed(reader)?), text),
        BOOLEAN => {
            let is_true = string(reader)?.first() == Some(&b'1');
            text.extend_from_slice(if is_true { b"true" } else { b"false" });
        }
        container @ (OBJECT | ARRAY) => {
            let depth_left = depth_left
                .checked_sub(1)
                .ok_or(LoadError::Corrupt("a JSON document is nested too deeply"))?;
            text.push(if container == OBJECT { b'{' } else { b'[' });
            for index in 0..number(reader)? {
                if index > 0 {
                    text.push(b',');
                }
                if container == OBJECT {
                    if number(reader)? != MEMBER {
                        return Err(UNKNOWN);
                    }
                    print_string(&string(reader)?, text);
                    text.push(b':');
                }
                read_node(reader, text, depth_left)?;
            }
            text.push(if container == OBJECT { b'}' } else { b']' });
        }
        _ => return Err(UNKNOWN),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(module_id: u64, parts: &[u8]) -> Result<String, LoadError> {
        let json = read(&mut Reader::new(parts), module_id)?;
        let mut text = Vec::new();
        print(json.packed(), 0, &mut text);
        Ok(String::from_utf8(text).expect("JSON is UTF-8"))
    }

    #[test]
    fn documents_of_all_versions_are_read() {
        let text = r#"{"a":[1,2.5]}"#;
        let string = [b"\x05\x0d", text.as_bytes()].concat();
        assert_eq!(read_text(MODULE | 3, &[&string[..], b"\0"].concat()).unwrap(), text);
        assert_eq!(read_text(MODULE | 2, &[&string[..], b"\x02\0\0"].concat()).unwrap(), text);
        let indexed = [&string[..], b"\x02\x01\x05\x01i\x05\x01k\0"].concat();
        assert_eq!(read_text(MODULE | 2, &indexed).unwrap(), text);
        let cbor = b"\x05\x09\xa1\x61a\x82\x01\xf9\x41\x00\xf6\0";
        assert!(read_text(MODULE | 4, cbor).is_err());
        let cbor = b"\x05\x08\xa1\x61a\x82\x01\xf9\x41\x00\0";
        assert_eq!(read_text(MODULE | 4, cbor).unwrap(), text);
        let nodes = [
            &b"\x02\x20\x02\x01\x02\x40\x80\x05\x01a"[..],
            b"\x02\x40\x40\x02\x05",
            b"\x02\x08\x01\x81\xff\xff\xff\xff\xff\xff\xff\xfe",
            b"\x02\x04\x04\0\0\0\0\0\0\x04\x40",
            b"\x02\x02\x05\x01\"",
            b"\x02\x10\x05\x011",
            b"\x02\x01",
            b"\0",
        ]
        .concat();
        assert_eq!(read_text(MODULE, &nodes).unwrap(), r#"{"a":[-2,2.5,"\"",true,null]}"#);
        assert!(read_text(MODULE | 3, b"\x05\x01{\0").is_err());
        let deep = [&b"\x02\x40\x40\x02\x01".repeat(200)[..], b"\x02\x01\0"].concat();
        assert!(read_text(MODULE, &deep).is_err());
    }
}
