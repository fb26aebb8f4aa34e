//! Whose history a server's data is: a name of 40 hexadecimal digits, and the one of the server it followed before.

/// The names that a server's stream goes by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct History {
    /// Of the stream that goes on.
    pub id: String,
    /// Of the one whose continuation it is, up to a position; both have the same bytes before that.
    pub before: Option<(String, u64)>,
    /// The server has given it its name, as against the primary that it follows.
    pub is_own: bool,
}

impl History {
    /// A new one.
    pub fn new(id: String) -> History {
        History { id, before: None, is_own: true }
    }

    /// Whether what a server has that followed the stream `id` up to `position` is the beginning of this one.
    pub fn includes(&self, id: &str, position: u64) -> bool {
        id == self.id || self.before.as_ref().is_some_and(|(before, end)| id == before && position <= *end)
    }

    /// Goes on under a new name behind `position`: from here on nobody else's stream is the same.
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
    fn a_branch_includes_what_was_before_it() {
        let mut history = History::new("a".to_owned());
        assert!(history.includes("a", 1000) && !history.includes("b", 0));
        history.branch("b".to_owned(), 50);
        assert!(history.includes("b", 1000) && history.includes("a", 50));
        assert!(!history.includes("a", 51), "the other went on by itself");
    }
}
