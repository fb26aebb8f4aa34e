//! Where a node of a cluster sends a client that asks for keys of another one: `MOVED slot host:port`, `ASK slot host:port`.

/// Answers of this kind that are followed for one command; more go round in a circle.
pub(crate) const REDIRECTIONS_MAX: usize = 16;

/// A redirection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Redirection {
    pub(crate) slot: u16,
    /// Empty: the node that said it.
    pub(crate) host: String,
    pub(crate) port: u16,
    /// For one command, which is announced by ASKING.
    pub(crate) is_ask: bool,
}

impl Redirection {
    /// What an error says; `None` if it is another one.
    pub(crate) fn of(error: &[u8]) -> Option<Redirection> {
        let words: Vec<&str> = std::str::from_utf8(error).ok()?.split(' ').collect();
        let [kind @ ("MOVED" | "ASK"), slot, place] = words[..] else { return None };
        // The address may have colons too. A node that does not know its own says `?`.
        let (host, port) = place.rsplit_once(':').filter(|(host, _)| *host != "?")?;
        Some(Redirection {
            slot: slot.parse().ok()?,
            host: host.to_owned(),
            port: port.parse().ok()?,
            is_ask: kind == "ASK",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirections_say_where_and_other_errors_nothing() {
        let moved = Redirection { slot: 3999, host: "10.0.0.1".to_owned(), port: 6381, is_ask: false };
        assert_eq!(Redirection::of(b"MOVED 3999 10.0.0.1:6381"), Some(moved.clone()));
        assert_eq!(Redirection::of(b"ASK 3999 10.0.0.1:6381"), Some(Redirection { is_ask: true, ..moved }));
        assert_eq!(Redirection::of(b"MOVED 1 ::1:6381").unwrap().host, "::1");
        assert_eq!(Redirection::of(b"MOVED 1 :6381").unwrap().host, "");
        for error in [
            &b"ERR no"[..],
            b"MOVED",
            b"MOVED x h:1",
            b"MOVED 1 h",
            b"MOVED 1 h:70000",
            b"MOVED 1 ?:1",
            b"\xff",
        ] {
            assert_eq!(Redirection::of(error), None, "{}", error.escape_ascii());
        }
    }
}
