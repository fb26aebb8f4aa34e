//! A place in a stream that can be told to others, who may have the same stream.

/// Digits of a stream's name that tell it from others.
pub const NAME_DIGITS: usize = 8;

/// A place in a stream of which servers with the same data have the same bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// What the name of the stream begins with.
    pub name: [u8; NAME_DIGITS],
    /// The bytes of the stream before it.
    pub end: u64,
}

impl Position {
    /// A place in the stream `id`.
    pub fn new(id: &str, end: u64) -> Position {
        let mut name = [b'0'; NAME_DIGITS];
        name.iter_mut().zip(id.bytes()).for_each(|(digit, byte)| *digit = byte);
        Position { name, end }
    }

    /// Whether it is behind a place in the stream `id`; false if it is in another stream.
    pub fn is_behind(self, id: &str, end: u64) -> bool {
        self.is_in(id) && self.end > end
    }

    /// Whether it is a place in the stream `id`.
    pub fn is_in(self, id: &str) -> bool {
        self.name == Position::new(id, 0).name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_in_one_stream_have_an_order() {
        let position = Position::new("0123abcd4567", 50);
        assert_eq!(position.name, *b"0123abcd");
        assert!(position.is_behind("0123abcdffff", 49) && !position.is_behind("0123abcdffff", 50));
        assert!(!position.is_behind("0123abce4567", 0), "nothing is known of another stream");
        assert!(position.is_in("0123abcdffff") && !position.is_in("0123abce4567"));
    }
}
