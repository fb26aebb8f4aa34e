//! A position in a stream that can be compared across servers with the same stream.

/// Digits of a replication ID that distinguish streams.
pub const NAME_DIGITS: usize = 8;

/// A position in a stream, which has the same bytes on all servers with the same data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// The first digits of the replication ID.
    pub name: [u8; NAME_DIGITS],
    /// Number of bytes of the stream before it.
    pub end: u64,
}

impl Position {
    /// Creates a position in the stream `id`.
    pub fn new(id: &str, end: u64) -> Position {
        let mut name = [b'0'; NAME_DIGITS];
        name.iter_mut().zip(id.bytes()).for_each(|(digit, byte)| *digit = byte);
        Position { name, end }
    }

    /// Whether it is after a position in the stream `id`; false if it is in another stream.
    pub fn is_after(self, id: &str, end: u64) -> bool {
        self.is_in(id) && self.end > end
    }

    /// Whether it is a position in the stream `id`.
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
