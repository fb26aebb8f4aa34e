//! The address of this server's primary, if it has one.

/// The host and the port of a primary; none if the server is a primary itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PrimaryAddress(Option<(String, u16)>);

impl PrimaryAddress {
    /// No primary.
    pub const NONE: PrimaryAddress = PrimaryAddress(None);

    /// Returns the address with this host and port.
    pub fn new(host: String, port: u16) -> PrimaryAddress {
        PrimaryAddress(Some((host, port)))
    }

    /// Its host and port, if there is one.
    pub fn get(&self) -> Option<(&str, u16)> {
        self.0.as_ref().map(|(host, port)| (host.as_str(), *port))
    }

    /// Reads the words of the parameter.
    ///
    /// # Errors
    /// A sentence that describes the mistake.
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

    /// Returns the words that [`PrimaryAddress::parse`] reads.
    pub(super) fn format(&self) -> String {
        self.get().map_or_else(String::new, |(host, port)| format!("{host} {port}"))
    }
}
