//! The version of a state: `<history>-<sequence>-<hash>`.
//!
//! The history names a run of a server, in which sequences order states; the hash tells whether two states are equal,
//! whatever their histories.

use ember_protocol::number::parse_u64;

use crate::server::Server;

/// Digits of the name of a history.
const HISTORY_DIGITS: usize = 8;

/// Hexadecimal digits of a hash.
const HASH_DIGITS: usize = 32;

/// A version as a client has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Version<'v> {
    pub(crate) history: &'v [u8],
    pub(crate) sequence: u64,
    pub(crate) hash: u128,
}

impl<'v> Version<'v> {
    /// The version that a text says, if it does.
    pub(crate) fn parse(text: &'v [u8]) -> Option<Version<'v>> {
        let mut parts = text.split(|&byte| byte == b'-');
        let (history, sequence, hash) = (parts.next()?, parts.next()?, parts.next()?);
        let is_hex =
            |part: &[u8]| part.iter().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(byte));
        if parts.next().is_some()
            || (history.len(), hash.len()) != (HISTORY_DIGITS, HASH_DIGITS)
            || !(is_hex(history) && is_hex(hash))
        {
            return None;
        }
        let hash = u128::from_str_radix(std::str::from_utf8(hash).ok()?, 16).ok()?;
        Some(Version { history, sequence: parse_u64(sequence)?, hash })
    }
}

/// The history of this run of a server.
pub(crate) fn history(server: &Server) -> &str {
    &server.run_id[..HISTORY_DIGITS]
}

/// The text of a version of this run of a server.
pub(crate) fn text(server: &Server, sequence: u64, hash: u128) -> String {
    format!("{}-{sequence}-{hash:032x}", history(server))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_versions_are_versions() {
        let text = b"5f3a9c01-81723-9f3c00000000000000000000000000aa";
        let version = Version::parse(text).unwrap();
        assert_eq!((version.history, version.sequence), (&b"5f3a9c01"[..], 81_723));
        assert_eq!(version.hash, 0x9F3C_0000_0000_0000_0000_0000_0000_00AA);
        for end in 0..text.len() {
            assert_eq!(Version::parse(&text[..end]), None);
        }
        for wrong in
            ["5f3a9c01--9f3c00000000000000000000000000aa", "5f3a9c01-1-9F3c00000000000000000000000000aa"]
        {
            assert_eq!(Version::parse(wrong.as_bytes()), None, "{wrong}");
        }
        assert_eq!(Version::parse(&[&text[..], b"-"].concat()), None);
    }
}
