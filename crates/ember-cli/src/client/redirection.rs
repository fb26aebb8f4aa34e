//! Cluster redirections, by which a node refers a client to the owner of a key: `MOVED slot host:port`, `ASK slot
//! host:port`.

/// The maximum number of redirections followed for one command; more indicate a cycle.
pub(crate) const REDIRECTIONS_MAX: usize = 16;

/// A redirection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Redirection {
    pub(crate) slot: u16,
    /// The host of the other node; empty for the node that sent the redirection.
    pub(crate) host: String,
    pub(crate) port: u16,
    /// Whether the redirection is an `ASK`: it applies to one command only, which must be preceded by ASKING.
    pub(crate) is_ask: bool,
}

impl Redirection {
    /// Parses an error as a redirection; `None` if the error is not a redirection.
    pub(crate) fn of(error: &[u8]) -> Option<Redirection> {
        let words: Vec<&str> = std::str::from_utf8(error).ok()?.split(' ').collect();
        let [kind @ ("MOVED" | "ASK"), slot, place] = words[..] else { return None };
        // The host may contain colons, too (IPv6). A node that does not know its own address sends `?`.
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
    fn redirections_are_parsed_and_other_errors_are_not() {
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
