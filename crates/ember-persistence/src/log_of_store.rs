//! The log of a store: where the log continues after the last checkpoint, and what a checkpoint contains in addition to
//! its rows.
//!
//! A checkpoint contains the number of the first increment whose changes its rows do not contain. So the log need not
//! be updated together with the store: all earlier increments are obsolete.

use crate::aof::{AofDirectory, AofError};

/// Makes the log begin where the store ends: at increment `next_increment` or, if the store has had no checkpoint yet,
/// at increment 1. `has_imported` says that the rows were imported from existing files, one of which may be the log.
///
/// # Errors
/// Returns [`AofError::NotOfStore`], with the log unchanged, if the log does not belong to the store; and errors of the
/// disk.
pub fn meet(next_increment: Option<u64>, has_imported: bool, log: &mut AofDirectory) -> Result<(), AofError> {
    let manifest = log.manifest();
    let range = match (manifest.increments.first(), manifest.increments.last()) {
        (Some(first), Some(last)) => format!("has increments {} to {}", first.sequence, last.sequence),
        _ => "has no increments".to_owned(),
    };
    let directory = log.directory().to_owned();
    let refused = |what: String| Err(AofError::NotOfStore { directory, what });
    if manifest.base.is_some() && !has_imported {
        return refused("the log has a base, so it is the AOF of a server without a store".to_owned());
    }
    let Some(increment) = next_increment else {
        // Before the store's first checkpoint, the log contains the whole data set, from increment 1 on.
        return match manifest.increments.first() {
            Some(first) if first.sequence != 1 => {
                refused(format!("the store has had no checkpoint, but the log {range}"))
            }
            _ => Ok(()),
        };
    };
    if log.resume_at(increment)? {
        return Ok(());
    }
    refused(format!("the store continues with increment {increment}, but the log {range}"))
}

/// The data that a checkpoint contains in addition to the keys.
///
/// ```text
/// number of databases, 4 | name of each, 4 … | length of a library, 8 | its code | …        little-endian
/// ```
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Notes {
    /// The internal name that the shards use for each database, by database number.
    pub names: Vec<usize>,
    /// The code of each function library.
    pub libraries: Vec<Vec<u8>>,
}

impl Notes {
    /// Encodes the notes for storage in a checkpoint.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = (self.names.len() as u32).to_le_bytes().to_vec();
        self.names.iter().for_each(|&name| bytes.extend_from_slice(&(name as u32).to_le_bytes()));
        for library in &self.libraries {
            bytes.extend_from_slice(&(library.len() as u64).to_le_bytes());
            bytes.extend_from_slice(library);
        }
        bytes
    }

    /// Decodes the notes of a checkpoint; None if they are invalid.
    pub fn decode(bytes: &[u8]) -> Option<Notes> {
        let (count, rest) = bytes.split_first_chunk()?;
        let (names, mut rest) = rest.split_at_checked(4 * u32::from_le_bytes(*count) as usize)?;
        let names = names
            .chunks_exact(4)
            .map(|name| u32::from_le_bytes([name[0], name[1], name[2], name[3]]) as usize);
        let mut notes = Notes { names: names.collect(), libraries: Vec::new() };
        while let Some((len, after)) = rest.split_first_chunk() {
            let (library, after) = after.split_at_checked(u64::from_le_bytes(*len) as usize)?;
            notes.libraries.push(library.to_vec());
            rest = after;
        }
        rest.is_empty().then_some(notes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_read_as_they_were_written_and_no_other_bytes_are() {
        let notes = Notes { names: vec![0, 2, 1], libraries: vec![b"#!lua".to_vec(), Vec::new()] };
        let bytes = notes.encode();
        assert_eq!(Notes::decode(&bytes).unwrap(), notes);
        assert_eq!(Notes::decode(&Notes::default().encode()).unwrap(), Notes::default());
        // At these lengths, the bytes are valid notes with one library fewer.
        let whole = [16, 29, bytes.len()];
        for len in 0..bytes.len() {
            assert_eq!(Notes::decode(&bytes[..len]).is_some(), whole.contains(&len), "{len}");
        }
        let mut damaged = bytes;
        damaged[16] = 0xFF;
        damaged[23] = 0xFF;
        assert_eq!(Notes::decode(&damaged), None);
    }
}
