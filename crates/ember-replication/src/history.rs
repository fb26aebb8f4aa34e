//! The replication history of a server's data: its replication ID, 40 hexadecimal digits, and the ID of the history
//! that it continues.

/// The replication IDs of a server's stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct History {
    /// The ID of the current stream.
    pub id: String,
    /// The ID of the previous stream, which this one continues, and the position up to which both have the same bytes.
    pub before: Option<(String, u64)>,
    /// Whether the server has chosen the ID itself, rather than received it from a primary.
    pub is_own: bool,
}

impl History {
    /// Creates a history with this replication ID, which continues no other history.
    pub fn new(id: String) -> History {
        History { id, before: None, is_own: true }
    }

    /// Whether the stream `id` up to `position` is the beginning of this stream, so that a server that has followed it
    /// can resume.
    pub fn includes(&self, id: &str, position: u64) -> bool {
        id == self.id || self.before.as_ref().is_some_and(|(before, end)| id == before && position <= *end)
    }

    /// Continues under a new ID from `position` on: the bytes from there on belong to no other stream.
    pub fn branch(&mut self, id: String, position: u64) {
        let before = std::mem::replace(&mut self.id, id);
        self.before = Some((before, position));
        self.is_own = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_branch_includes_the_history_before_it() {
        let mut history = History::new("a".to_owned());
        assert!(history.includes("a", 1000) && !history.includes("b", 0));
        history.branch("b".to_owned(), 50);
        assert!(history.includes("b", 1000) && history.includes("a", 50));
        assert!(!history.includes("a", 51), "the other history has diverged");
    }
}
