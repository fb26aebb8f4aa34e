//! The version of Redis that the server reports to clients.

use std::fmt;

/// A version of Redis, as client libraries and scripts compare it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RedisVersion([u8; 3]);

impl RedisVersion {
    /// The default version that the server reports: the Redis version with whose behaviour it is compatible.
    pub const ANSWERED: RedisVersion = RedisVersion([7, 2, 4]);

    /// Parses a version of three numbers, each at most 255, which is the limit in the version number for scripts.
    pub fn parse(text: &str) -> Option<RedisVersion> {
        let mut parts = text.split('.').map(|part| {
            let is_number = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
            part.parse().ok().filter(|_| is_number)
        });
        let version = [parts.next()??, parts.next()??, parts.next()??];
        parts.next().is_none().then_some(RedisVersion(version))
    }

    /// Returns the version as one number, with a byte each for the major, minor and patch number.
    pub fn number(self) -> u32 {
        self.0.iter().fold(0, |number, &part| number << 8 | u32::from(part))
    }
}

impl Default for RedisVersion {
    fn default() -> RedisVersion {
        RedisVersion::ANSWERED
    }
}

impl fmt::Display for RedisVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [major, minor, patch] = self.0;
        write!(f, "{major}.{minor}.{patch}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_three_numbers_of_a_byte() {
        for text in ["7.2.4", "8.0.0", "255.255.255"] {
            assert_eq!(RedisVersion::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(RedisVersion::ANSWERED.number(), 0x0007_0204);
        for text in ["", "7", "7.4", "7.4.0.1", "7.4.256", "7.4.+1", "7.4.", "v7.4.0", " 7.4.0"] {
            assert_eq!(RedisVersion::parse(text), None, "{text}");
        }
    }
}
