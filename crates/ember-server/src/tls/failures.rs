//! Log messages about failed handshakes, which help to find wrong settings of clients.

use std::io;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use rustls::{AlertDescription, CertificateError, Error};

/// The minimum time in ms between two log lines, because any client can cause failed handshakes.
const LINE_INTERVAL_MS: i64 = 1000;

/// The rate limiter for log lines about failures.
#[derive(Debug)]
pub(super) struct Failures {
    /// When the last line was logged, as Unix time in ms.
    logged_ms: AtomicI64,
    /// The number of unlogged failures since the last logged line.
    unlogged: AtomicU64,
}

impl Failures {
    pub(super) fn new() -> Failures {
        Failures { logged_ms: AtomicI64::new(i64::MIN), unlogged: AtomicU64::new(0) }
    }

    /// Counts a failure. If it may be logged, returns the number of unlogged failures before it; otherwise `None`.
    pub(super) fn admit(&self, now_ms: i64) -> Option<u64> {
        let logged_ms = self.logged_ms.load(Ordering::Relaxed);
        let is_due = now_ms.saturating_sub(logged_ms) >= LINE_INTERVAL_MS;
        // If two workers report failures at the same time, only one of them logs a line.
        let is_ours = || {
            self.logged_ms.compare_exchange(logged_ms, now_ms, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        };
        if is_due && is_ours() {
            return Some(self.unlogged.swap(0, Ordering::Relaxed));
        }
        self.unlogged.fetch_add(1, Ordering::Relaxed);
        None
    }
}

/// Describes the problem with a certificate of this server or of a peer.
fn fault_of_certificate(why: &CertificateError) -> String {
    match why {
        CertificateError::Other(other)
            if matches!(other.0.downcast_ref(), Some(webpki::Error::UnsupportedCertVersion)) =>
        {
            "it is an X.509 certificate of version 1 or 2, without extensions, and version 3 is needed: issue it again \
             with extensions (openssl x509 -req takes them with -extfile)"
                .to_owned()
        }
        other => other.to_string(),
    }
}

/// Describes the problem with a certificate or key of this server.
pub(super) fn explain_own(error: &Error) -> String {
    match error {
        Error::InvalidCertificate(why) => fault_of_certificate(why),
        other => other.to_string(),
    }
}

/// Describes why a handshake with the primary failed.
pub(crate) fn explain_primary(error: &io::Error) -> String {
    match error.get_ref().and_then(|inner| inner.downcast_ref()) {
        Some(Error::InvalidCertificate(why)) => {
            format!("the primary's certificate is not accepted: {}", fault_of_certificate(why))
        }
        _ => error.to_string(),
    }
}

/// Describes why a handshake with a client failed, with a possible remedy.
pub(super) fn explain(error: &Error) -> String {
    match error {
        Error::NoCertificatesPresented => {
            "the client presents no certificate, but tls-auth-clients requires one".to_owned()
        }
        Error::InvalidCertificate(why) => {
            format!("the client's certificate is not accepted: {}", fault_of_certificate(why))
        }
        Error::InvalidMessage(_) => {
            "the client does not use TLS, but this port does: connect to the port of `port`".to_owned()
        }
        Error::AlertReceived(
            alert @ (AlertDescription::UnknownCA
            | AlertDescription::BadCertificate
            | AlertDescription::CertificateUnknown
            | AlertDescription::CertificateExpired),
        ) => format!("the client does not trust the server's certificate ({alert:?})"),
        Error::AlertReceived(alert) => format!("the client has aborted the handshake: {alert:?}"),
        Error::PeerIncompatible(why) => {
            format!("the client supports no TLS settings that are allowed here: {why:?}")
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_most_one_line_per_second_is_logged_and_all_failures_are_counted() {
        let failures = Failures::new();
        assert_eq!(failures.admit(5000), Some(0));
        assert_eq!((failures.admit(5001), failures.admit(5999)), (None, None));
        assert_eq!(failures.admit(6000), Some(2));
        assert_eq!(failures.admit(7000), Some(0));
    }
}
