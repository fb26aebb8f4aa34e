//! TLS protocol versions.

use rustls::SupportedProtocolVersion;
use rustls::version::{TLS12, TLS13};

/// The protocol versions and their names in the configuration.
const PROTOCOLS: [(&str, &SupportedProtocolVersion); 2] = [("TLSv1.2", &TLS12), ("TLSv1.3", &TLS13)];

/// Returns the versions listed in `text`; both if it is empty.
pub fn protocols(text: &str) -> Result<Vec<&'static SupportedProtocolVersion>, String> {
    let named = |word: &str| PROTOCOLS.iter().find(|(name, _)| name.eq_ignore_ascii_case(word));
    if text.is_empty() {
        return Ok(PROTOCOLS.iter().map(|&(_, version)| version).collect());
    }
    let versions = text.split_whitespace().map(|word| named(word).map(|&(_, version)| version));
    let versions: Option<Vec<_>> = versions.collect();
    let versions = versions.filter(|versions| !versions.is_empty());
    versions.ok_or_else(|| "argument must be 'TLSv1.2', 'TLSv1.3' or both".to_owned())
}

/// Checks a value of `tls-protocols`.
///
/// # Errors
/// Returns a message with the known values.
pub fn check_protocols(text: &str) -> Result<(), String> {
    protocols(text).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn protocols_are_named_as_openssl_names_them() {
        assert_eq!(protocols("").unwrap(), [&TLS12, &TLS13]);
        assert_eq!(protocols("tlsv1.3").unwrap(), [&TLS13]);
        assert_eq!(protocols("TLSv1.3 TLSv1.2").unwrap(), [&TLS13, &TLS12]);
        for text in ["TLSv1", "TLSv1.1 TLSv1.2", " ", "SSLv3"] {
            assert!(check_protocols(text).is_err(), "{text}");
        }
    }
}
