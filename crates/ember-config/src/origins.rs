//! Origins of web pages: scheme, host and port, as browsers send them.

/// The maximum number of origins in a list.
const ORIGINS_MAX: usize = 64;

/// The origins whose pages may connect.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origins(Vec<String>);

impl Origins {
    /// Reads origins separated by white space; `*` allows any origin.
    ///
    /// # Errors
    /// Returns a message if a word is not an origin, or if there are too many origins.
    pub fn parse(text: &str) -> Result<Origins, String> {
        let origins: Vec<String> = text.split_whitespace().map(str::to_ascii_lowercase).collect();
        if origins.len() > ORIGINS_MAX {
            return Err(format!("there are more than {ORIGINS_MAX} origins"));
        }
        match origins.iter().find(|origin| *origin != "*" && host_of(origin).is_none()) {
            Some(wrong) => Err(format!("'{wrong}' is not an origin such as https://app.example or *")),
            None => Ok(Origins(origins)),
        }
    }

    /// Returns the text that [`Origins::parse`] reads.
    pub fn format(&self) -> String {
        self.0.join(" ")
    }

    /// Whether pages with this origin may connect.
    pub fn allow(&self, origin: &str) -> bool {
        self.0.iter().any(|allowed| allowed == "*" || origin.eq_ignore_ascii_case(allowed))
    }

    /// Whether one of the origins has this host, with any port.
    pub fn have_host(&self, host: &str) -> bool {
        self.0.iter().filter_map(|origin| host_of(origin)).any(|known| known.eq_ignore_ascii_case(host))
    }
}

/// Returns the host of an origin, without its port; `None` if `origin` is not an origin.
fn host_of(origin: &str) -> Option<&str> {
    let authority = origin.strip_prefix("https://").or_else(|| origin.strip_prefix("http://"))?;
    let colon = authority.rfind(':').filter(|&at| !authority[at..].contains(']'));
    let (host, port) = colon.map_or((authority, None), |at| (&authority[..at], Some(&authority[at + 1..])));
    let is_host =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_' | b'[' | b']' | b':');
    let has_port = port.is_none_or(|port| port.parse::<u16>().is_ok());
    (!host.is_empty() && host.bytes().all(is_host) && has_port).then_some(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_are_scheme_host_and_port() {
        let text = "https://App.example http://127.0.0.1:8080 http://[::1]:90";
        let origins = Origins::parse(text).unwrap();
        assert_eq!(origins.format(), text.to_ascii_lowercase());
        assert!(origins.allow("https://app.example") && origins.allow("http://127.0.0.1:8080"));
        assert!(!origins.allow("http://app.example") && !origins.allow("https://app.example:8443"));
        assert!(
            origins.have_host("APP.example") && origins.have_host("[::1]") && !origins.have_host("example")
        );
        for wrong in ["app.example", "https://", "https://a/", "ftp://a", "http://a:x", "http://a b/", "null"]
        {
            assert!(Origins::parse(wrong).is_err(), "{wrong}");
        }
        assert!(Origins::parse(&"http://a ".repeat(ORIGINS_MAX + 1)).is_err());
    }

    #[test]
    fn a_star_allows_any_origin_and_an_empty_list_none() {
        assert!(Origins::parse("*").unwrap().allow("null"));
        assert!(!Origins::parse("").unwrap().allow("https://app.example"));
    }
}
