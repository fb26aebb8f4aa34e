//! A stream position that can be compared across servers with the same stream.

/// The number of digits of a replication ID with which streams are distinguished.
pub const NAME_DIGITS: usize = 8;

/// A position in a stream. The stream has the same bytes on all servers with the same history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// The first digits of the replication ID.
    pub name: [u8; NAME_DIGITS],
    /// The number of bytes of the stream before the position.
    pub end: u64,
}

impl Position {
    /// Creates a position in the stream `id`.
    pub fn new(id: &str, end: u64) -> Position {
        let mut name = [b'0'; NAME_DIGITS];
        name.iter_mut().zip(id.bytes()).for_each(|(digit, byte)| *digit = byte);
        Position { name, end }
    }

    /// Whether the position is after position `end` of the stream `id`; false if it belongs to another stream.
    pub fn is_after(self, id: &str, end: u64) -> bool {
        self.is_in(id) && self.end > end
    }

    /// Whether the position belongs to the stream `id`.
    pub fn is_in(self, id: &str) -> bool {
        self.name == Position::new(id, 0).name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_in_one_stream_are_ordered() {
        let position = Position::new("0123abcd4567", 50);
        assert_eq!(position.name, *b"0123abcd");
        assert!(position.is_after("0123abcdffff", 49) && !position.is_after("0123abcdffff", 50));
        assert!(!position.is_after("0123abce4567", 0), "positions of other streams are not comparable");
        assert!(position.is_in("0123abcdffff") && !position.is_in("0123abce4567"));
    }
}
