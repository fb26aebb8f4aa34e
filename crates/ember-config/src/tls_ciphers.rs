//! Cipher suites by their OpenSSL names, which `redis.conf` uses.

use rustls::SupportedCipherSuite;
use rustls::crypto::aws_lc_rs::cipher_suite as suite;

/// The names of the TLS 1.2 suites, in order of preference.
const TLS12: [(&str, &SupportedCipherSuite); 6] = [
    ("ECDHE-ECDSA-AES256-GCM-SHA384", &suite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384),
    ("ECDHE-ECDSA-AES128-GCM-SHA256", &suite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256),
    ("ECDHE-ECDSA-CHACHA20-POLY1305", &suite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256),
    ("ECDHE-RSA-AES256-GCM-SHA384", &suite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384),
    ("ECDHE-RSA-AES128-GCM-SHA256", &suite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256),
    ("ECDHE-RSA-CHACHA20-POLY1305", &suite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256),
];

/// The names of the TLS 1.3 suites, in order of preference.
const TLS13: [(&str, &SupportedCipherSuite); 3] = [
    ("TLS_AES_256_GCM_SHA384", &suite::TLS13_AES_256_GCM_SHA384),
    ("TLS_AES_128_GCM_SHA256", &suite::TLS13_AES_128_GCM_SHA256),
    ("TLS_CHACHA20_POLY1305_SHA256", &suite::TLS13_CHACHA20_POLY1305_SHA256),
];

/// Returns the suites listed in `ciphers` (TLS 1.2) and `ciphersuites` (TLS 1.3), in that order. An empty list selects
/// all suites of its TLS version.
///
/// # Errors
/// Returns a message with the unknown name and the known names.
pub fn suites(ciphers: &str, ciphersuites: &str) -> Result<Vec<SupportedCipherSuite>, String> {
    let mut suites = named(ciphersuites, &TLS13)?;
    suites.extend(named(ciphers, &TLS12)?);
    Ok(suites)
}

/// Checks a value of `tls-ciphers`.
///
/// # Errors
/// Returns a message with the unknown name and the known names.
pub fn check_ciphers(text: &str) -> Result<(), String> {
    named(text, &TLS12).map(drop)
}

/// Checks a value of `tls-ciphersuites`.
///
/// # Errors
/// Returns a message with the unknown name and the known names.
pub fn check_ciphersuites(text: &str) -> Result<(), String> {
    named(text, &TLS13).map(drop)
}

fn named(text: &str, known: &[(&str, &SupportedCipherSuite)]) -> Result<Vec<SupportedCipherSuite>, String> {
    if text.is_empty() {
        return Ok(known.iter().map(|&(_, suite)| *suite).collect());
    }
    let find = |name: &str| {
        let found = known.iter().find(|(known, _)| *known == name).map(|&(_, suite)| *suite);
        let names = || known.iter().map(|&(name, _)| name).collect::<Vec<_>>().join(":");
        found.ok_or_else(|| format!("argument must be a colon-separated list of these names: {}", names()))
    };
    text.split(':').map(find).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn named_suites_keep_their_order() {
        assert_eq!(suites("", "").unwrap().len(), 9);
        let two = suites("ECDHE-RSA-AES128-GCM-SHA256:ECDHE-RSA-AES256-GCM-SHA384", "TLS_AES_128_GCM_SHA256");
        let expected = [
            suite::TLS13_AES_128_GCM_SHA256,
            suite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
            suite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
        ];
        assert_eq!(two.unwrap(), expected);
    }

    #[test]
    fn unknown_names_are_refused_with_the_known_ones() {
        for text in ["DEFAULT:!MEDIUM", "ECDHE-RSA-AES128-GCM-SHA256:", "AES128-SHA", " "] {
            let error = check_ciphers(text).unwrap_err();
            assert!(error.contains("ECDHE-RSA-AES128-GCM-SHA256:"), "{error}");
        }
        assert!(check_ciphersuites("ECDHE-RSA-AES128-GCM-SHA256").is_err());
    }
}
