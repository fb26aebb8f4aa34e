//! Handshakes that fail, in the log: whoever tries to connect with wrong settings finds the reason there.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use rustls::{AlertDescription, Error};

/// The least time between two lines: anybody can make handshakes fail.
const LINE_INTERVAL_MS: i64 = 1000;

/// What the log was told.
#[derive(Debug)]
pub(super) struct Failures {
    /// When the last line was written.
    told_ms: AtomicI64,
    /// Failures since then.
    untold: AtomicU64,
}

impl Failures {
    pub(super) fn new() -> Failures {
        Failures { told_ms: AtomicI64::new(i64::MIN), untold: AtomicU64::new(0) }
    }

    /// How many failures came before this one without a line; `None` if this one gets none either.
    pub(super) fn admit(&self, now_ms: i64) -> Option<u64> {
        let told_ms = self.told_ms.load(Ordering::Relaxed);
        let is_due = now_ms.saturating_sub(told_ms) >= LINE_INTERVAL_MS;
        // Of two workers one writes the line.
        let is_ours =
            || self.told_ms.compare_exchange(told_ms, now_ms, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        if is_due && is_ours() {
            return Some(self.untold.swap(0, Ordering::Relaxed));
        }
        self.untold.fetch_add(1, Ordering::Relaxed);
        None
    }
}

/// Why a handshake failed, and what may help.
pub(super) fn explain(error: &Error) -> String {
    match error {
        Error::NoCertificatesPresented => {
            "the client shows no certificate, and tls-auth-clients asks for one".to_owned()
        }
        Error::InvalidCertificate(why) => format!("the client's certificate is not accepted: {why}"),
        Error::InvalidMessage(_) => {
            "the client does not speak TLS, and this port does: the one without is port".to_owned()
        }
        Error::AlertReceived(
            alert @ (AlertDescription::UnknownCA
            | AlertDescription::BadCertificate
            | AlertDescription::CertificateUnknown
            | AlertDescription::CertificateExpired),
        ) => format!("the client does not trust the server's certificate ({alert:?})"),
        Error::AlertReceived(alert) => format!("the client gives up: {alert:?}"),
        Error::PeerIncompatible(why) => {
            format!("the client speaks TLS in no way that is allowed here: {why:?}")
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_a_line_each_second_at_most_and_none_is_forgotten() {
        let failures = Failures::new();
        assert_eq!(failures.admit(5000), Some(0));
        assert_eq!((failures.admit(5001), failures.admit(5999)), (None, None));
        assert_eq!(failures.admit(6000), Some(2));
        assert_eq!(failures.admit(7000), Some(0));
    }
}
