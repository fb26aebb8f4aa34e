//! What of a file another server lacks.

use std::fmt::{self, Display};

use emberkv_core::rdb::Features;

/// Keys that a message names; the others are counted.
const NAMED_KEYS_MAX: usize = 20;

/// What of a file the server that is to read the copy lacks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lacking {
    /// What it lacks.
    pub features: Features,
    /// How many keys have it.
    pub keys: u64,
    /// The names of the first of them.
    pub named: Vec<Vec<u8>>,
    /// Commands that the server does not know.
    pub commands: u64,
}

impl Lacking {
    /// Whether the server lacks nothing.
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

impl Display for Lacking {
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
