//! Parses certificates (RFC 5280): their subject, serial number, and expiry.
//!
//! ```text
//! Certificate = { { [0 version], serial, algorithm, issuer, { not before, not after }, subject, key,
//!                   [3 extensions] }, … }
//! ```
//!
//! A client's certificate is parsed only after rustls has verified it. Certificates from files may contain anything.

use ember_config::TlsAuthClientsUser;

use super::der::{INTEGER, OBJECT, OCTETS, SEQUENCE, SET, take};

// DER tags that only this file uses.
const VERSION: u8 = 0xa0;
const EXTENSIONS: u8 = 0xa3;
const BOOLEAN: u8 = 0x01;
const URI: u8 = 0x86;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

// Object identifiers of attributes and extensions.
const COMMON_NAME: &[u8] = b"\x55\x04\x03";
const ALTERNATIVE_NAMES: &[u8] = b"\x55\x1d\x11";

/// A time: its DER tag and its text.
type Time<'d> = (u8, &'d [u8]);

/// A parsed certificate.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Certificate<'d> {
    serial: &'d [u8],
    not_after: Time<'d>,
    subject: &'d [u8],
    extensions: &'d [u8],
}

impl<'d> Certificate<'d> {
    /// Parses a DER-encoded certificate; returns `None` if it is malformed.
    pub(super) fn parse(der: &'d [u8]) -> Option<Certificate<'d>> {
        let (body, _) = take(der, SEQUENCE)?;
        let (mut rest, _) = take(body, SEQUENCE)?;
        if let Some((_, after)) = take(rest, VERSION) {
            rest = after;
        }
        let (serial, rest) = take(rest, INTEGER)?;
        let (_algorithm, rest) = take(rest, SEQUENCE)?;
        let (_issuer, rest) = take(rest, SEQUENCE)?;
        let (validity, rest) = take(rest, SEQUENCE)?;
        let (subject, rest) = take(rest, SEQUENCE)?;
        let (_key, mut rest) = take(rest, SEQUENCE)?;
        let (_, not_after) = time(validity)?;
        let (not_after, _) = time(not_after)?;
        // The extensions may follow optional unique identifiers.
        let mut extensions = &[][..];
        while let Some(&kind) = rest.first() {
            let (value, after) = take(rest, kind)?;
            if kind == EXTENSIONS {
                extensions = take(value, SEQUENCE)?.0;
            }
            rest = after;
        }
        Some(Certificate { serial, not_after, subject, extensions })
    }

    /// Returns the candidate user names in `field`, in the order in which they are tried.
    pub(super) fn users(&self, field: TlsAuthClientsUser) -> Vec<Vec<u8>> {
        match field {
            TlsAuthClientsUser::Off => Vec::new(),
            TlsAuthClientsUser::CommonName => self.common_name().map(<[u8]>::to_vec).into_iter().collect(),
            TlsAuthClientsUser::Uri => self.uris().unwrap_or_default(),
        }
    }

    fn common_name(&self) -> Option<&'d [u8]> {
        let mut rest = self.subject;
        while let Some((attributes, after)) = take(rest, SET) {
            let (name, value) = take(take(attributes, SEQUENCE)?.0, OBJECT)?;
            if name == COMMON_NAME {
                // The value is a string with one of several tags.
                return Some(take(value, *value.first()?)?.0);
            }
            rest = after;
        }
        None
    }

    fn uris(&self) -> Option<Vec<Vec<u8>>> {
        let mut rest = self.extensions;
        while let Some((extension, after)) = take(rest, SEQUENCE) {
            let (name, mut value) = take(extension, OBJECT)?;
            if let Some((_critical, after)) = take(value, BOOLEAN) {
                value = after;
            }
            if name == ALTERNATIVE_NAMES {
                return uris_of(take(take(value, OCTETS)?.0, SEQUENCE)?.0);
            }
            rest = after;
        }
        None
    }

    /// Returns the serial number as hexadecimal digits.
    pub(super) fn serial(&self) -> String {
        let significant = self.serial.iter().position(|&byte| byte != 0).unwrap_or(self.serial.len());
        self.serial[significant..].iter().map(|byte| format!("{byte:02X}")).collect()
    }

    /// Returns the end of the certificate's validity, as Unix time in seconds.
    pub(super) fn not_after_s(&self) -> Option<i64> {
        let (kind, text) = self.not_after;
        let digits = text.strip_suffix(b"Z")?;
        let (year, rest) = match kind {
            UTC_TIME => {
                let (year, rest) = digits.split_at_checked(2)?;
                let year = decimal(year)?;
                (if year >= 50 { 1900 + year } else { 2000 + year }, rest)
            }
            _ => {
                let (year, rest) = digits.split_at_checked(4)?;
                (decimal(year)?, rest)
            }
        };
        let parts: Vec<i64> = rest.chunks(2).map(decimal).collect::<Option<_>>()?;
        let &[month, day, hour, minute, second] = &parts[..] else { return None };
        Some(((days_since_1970(year, month, day) * 24 + hour) * 60 + minute) * 60 + second)
    }
}

/// Parses a time in either of its two formats.
fn time(der: &[u8]) -> Option<(Time<'_>, &[u8])> {
    let kind = *der.first().filter(|kind| [UTC_TIME, GENERALIZED_TIME].contains(kind))?;
    let (text, rest) = take(der, kind)?;
    Some(((kind, text), rest))
}

fn uris_of(mut names: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut uris = Vec::new();
    while let Some(&kind) = names.first() {
        let (name, after) = take(names, kind)?;
        if kind == URI {
            uris.push(name.to_vec());
        }
        names = after;
    }
    Some(uris)
}

fn decimal(digits: &[u8]) -> Option<i64> {
    std::str::from_utf8(digits)
        .ok()
        .filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))?
        .parse()
        .ok()
}

/// Returns the number of days from 1970-01-01 to a day of the Gregorian calendar. Years are counted from March, so that
/// a leap day is the last day of its year.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days_of_years = year * 365 + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    days_of_years + (153 * month + 2) / 5 + day - 1 - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_counted_from_1970() {
        for (date, days) in
            [((1970, 1, 1), 0), ((1969, 12, 31), -1), ((2000, 2, 29), 11_016), ((2026, 11, 22), 20_779)]
        {
            assert_eq!(days_since_1970(date.0, date.1, date.2), days, "{date:?}");
        }
    }

    #[test]
    fn both_time_formats_are_parsed() {
        let at = |kind, text| Certificate {
            serial: b"\0\x8f\x01",
            not_after: (kind, text),
            subject: b"",
            extensions: b"",
        };
        assert_eq!(at(UTC_TIME, b"700101000001Z").not_after_s(), Some(1));
        assert_eq!(at(GENERALIZED_TIME, b"20261122171048Z").not_after_s(), Some(1_795_367_448));
        for wrong in [&b"700101000001"[..], b"7001010000Z", b"70010100000xZ", b"Z", b""] {
            assert_eq!(at(UTC_TIME, wrong).not_after_s(), None);
        }
        assert_eq!(at(UTC_TIME, b"").serial(), "8F01");
    }

    #[test]
    fn invalid_certificates_are_rejected() {
        for bytes in [&b""[..], b"\x30", b"\x30\x03\x30\x01\x02", &[0x30; 100], &[0xff; 100]] {
            assert_eq!(Certificate::parse(bytes), None);
        }
    }
}
