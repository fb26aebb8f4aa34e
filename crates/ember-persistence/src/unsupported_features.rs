//! Features that a file uses and another server lacks.

use std::fmt::{self, Display};

use emberkv_core::rdb::Features;

/// The maximum number of keys that a message names; further keys are only counted.
const NAMED_KEYS_MAX: usize = 20;

/// The features of a file that the target server lacks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnsupportedFeatures {
    /// The features that the server lacks.
    pub features: Features,
    /// The number of keys that use these features.
    pub keys: u64,
    /// The names of the first of these keys.
    pub named: Vec<Vec<u8>>,
    /// The number of commands that the server lacks.
    pub commands: u64,
}

impl UnsupportedFeatures {
    /// Whether the server supports everything in the file.
    pub fn is_empty(&self) -> bool {
        self.features.is_empty()
    }

    pub(crate) fn add_key(&mut self, features: Features, name: &[u8]) {
        self.features = self.features.and(features);
        self.keys += 1;
        if self.named.len() < NAMED_KEYS_MAX {
            self.named.push(name.to_vec());
        }
    }
}

impl Display for UnsupportedFeatures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.features)?;
        for (number, name) in self.named.iter().enumerate() {
            write!(f, "{} '{}'", if number == 0 { ": the keys" } else { "," }, name.escape_ascii())?;
        }
        let more = self.keys - self.named.len() as u64;
        if more > 0 {
            write!(f, " and {more} more")?;
        }
        if self.commands > 0 {
            write!(f, "{} {} commands", if self.keys == 0 { ":" } else { ", and" }, self.commands)?;
        }
        Ok(())
    }
}
