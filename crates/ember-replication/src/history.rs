//! The replication history of a server's data: an ID of 40 hexadecimal digits, and that of the server it followed
//! before.

/// The replication IDs of a server's stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct History {
    /// The ID of the current stream.
    pub id: String,
    /// The ID of the stream that it continues, and the position up to which both have the same bytes.
    pub before: Option<(String, u64)>,
    /// Whether the server has chosen the ID itself, instead of receiving it from a primary.
    pub is_own: bool,
}

impl History {
    /// Creates a new history.
    pub fn new(id: String) -> History {
        History { id, before: None, is_own: true }
    }

    /// Whether the data of a server that followed the stream `id` up to `position` are the beginning of this one.
    pub fn includes(&self, id: &str, position: u64) -> bool {
        id == self.id || self.before.as_ref().is_some_and(|(before, end)| id == before && position <= *end)
    }

    /// Continues under a new ID after `position`: from there on no other stream is the same.
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
