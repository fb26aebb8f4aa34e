//! The version of a state: `<run>-<sequence>-<hash>`, or `<run>-<sequence>-<hash>-<stream>-<position>` if there are
//! replicas.
//!
//! The name of the run identifies a run of a server, within which sequence numbers order the states. The hash shows
//! whether two states are equal, even in different runs. The stream is the replication stream, which contains all
//! changes in the state before the position. So another server with the same stream can determine whether it has
//! received them.

use ember_protocol::number::parse_u64;
use ember_replication::position::{NAME_DIGITS, Position};

use crate::server::Server;

/// The number of digits of a run's name.
const RUN_DIGITS: usize = 8;

/// The number of hexadecimal digits of a hash.
const HASH_DIGITS: usize = 32;

/// A version that a client has sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Version<'v> {
    pub(crate) run: &'v [u8],
    pub(crate) sequence: u64,
    pub(crate) hash: u128,
    pub(crate) position: Option<Position>,
}

impl<'v> Version<'v> {
    /// Parses a version; returns `None` if it is malformed.
    pub(crate) fn parse(text: &'v [u8]) -> Option<Version<'v>> {
        let mut parts = text.split(|&byte| byte == b'-');
        let (run, sequence, hash) = (parts.next()?, parts.next()?, parts.next()?);
        let is_hex =
            |part: &[u8]| part.iter().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(byte));
        let position = match parts.next() {
            None => None,
            Some(name) => {
                let name: [u8; NAME_DIGITS] = Some(name).filter(|name| is_hex(name))?.try_into().ok()?;
                Some(Position { name, end: parse_u64(parts.next()?)? })
            }
        };
        if parts.next().is_some()
            || (run.len(), hash.len()) != (RUN_DIGITS, HASH_DIGITS)
            || !(is_hex(run) && is_hex(hash))
        {
            return None;
        }
        let hash = u128::from_str_radix(std::str::from_utf8(hash).ok()?, 16).ok()?;
        Some(Version { run, sequence: parse_u64(sequence)?, hash, position })
    }
}

/// Returns the name that identifies this run of a server.
pub(crate) fn run(server: &Server) -> &str {
    &server.run_id[..RUN_DIGITS]
}

/// Returns the text of the version of a state of this run of the server.
pub(crate) fn text(server: &Server, sequence: u64, hash: u128, position: Option<Position>) -> String {
    let mut text = format!("{}-{sequence}-{hash:032x}", run(server));
    if let Some(Position { name, end }) = position {
        text += &format!("-{}-{end}", String::from_utf8_lossy(&name));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_versions_are_versions() {
        let text = b"5f3a9c01-81723-9f3c00000000000000000000000000aa";
        let version = Version::parse(text).unwrap();
        assert_eq!((version.run, version.sequence), (&b"5f3a9c01"[..], 81_723));
        assert_eq!((version.hash, version.position), (0x9F3C_0000_0000_0000_0000_0000_0000_00AA, None));
        for end in 0..text.len() {
            assert_eq!(Version::parse(&text[..end]), None);
        }
        for wrong in
            ["5f3a9c01--9f3c00000000000000000000000000aa", "5f3a9c01-1-9F3C00000000000000000000000000aa"]
        {
            assert_eq!(Version::parse(wrong.as_bytes()), None, "{wrong}");
        }
        assert_eq!(Version::parse(&[&text[..], b"-"].concat()), None);
    }

    #[test]
    fn a_version_may_end_with_a_stream_position() {
        let text = b"5f3a9c01-81723-9f3c00000000000000000000000000aa";
        let parse = |more: &str| Version::parse(&[&text[..], more.as_bytes()].concat()).map(|it| it.position);
        assert_eq!(parse("-0123abcd-77"), Some(Some(Position { name: *b"0123abcd", end: 77 })));
        for wrong in ["-0123abcd", "-0123abcd-", "-0123abc-7", "-0123abcx-7", "-0123abcd-7-", "-0123abcd-x"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
