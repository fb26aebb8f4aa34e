//! The address of this server's primary, if it has one.

/// The host and the port of a primary; `None` if this server is a primary.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PrimaryAddress(Option<(String, u16)>);

impl PrimaryAddress {
    /// The value without a primary.
    pub const NONE: PrimaryAddress = PrimaryAddress(None);

    /// Creates the address of a primary.
    pub fn new(host: String, port: u16) -> PrimaryAddress {
        PrimaryAddress(Some((host, port)))
    }

    /// Returns the host and the port, if there is a primary.
    pub fn get(&self) -> Option<(&str, u16)> {
        self.0.as_ref().map(|(host, port)| (host.as_str(), *port))
    }

    /// Reads the value of `replicaof`.
    ///
    /// # Errors
    /// Returns a sentence that describes the mistake.
    pub(super) fn parse(text: &str) -> Result<PrimaryAddress, String> {
        let words: Vec<&str> = text.split_whitespace().collect();
        match words[..] {
            [] | [""] => Ok(PrimaryAddress::NONE),
            [no, one] if no.eq_ignore_ascii_case("no") && one.eq_ignore_ascii_case("one") => {
                Ok(PrimaryAddress::NONE)
            }
            [host, port] => {
                let port = port.parse().map_err(|_| "Invalid master port".to_owned())?;
                Ok(PrimaryAddress::new(host.to_owned(), port))
            }
            _ => Err("wrong number of arguments".to_owned()),
        }
    }

    /// Returns the text that [`PrimaryAddress::parse`] reads.
    pub(super) fn format(&self) -> String {
        self.get().map_or_else(String::new, |(host, port)| format!("{host} {port}"))
    }
}
