//! Parses DER values (X.690), which consist of a tag, a length, and contents.

pub(super) const INTEGER: u8 = 0x02;
pub(super) const OCTETS: u8 = 0x04;
pub(super) const OBJECT: u8 = 0x06;
pub(super) const SEQUENCE: u8 = 0x30;
pub(super) const SET: u8 = 0x31;

/// Returns the contents of the first value in `der` and the bytes after the value; `None` if its tag is not `kind`.
pub(super) fn take(der: &[u8], kind: u8) -> Option<(&[u8], &[u8])> {
    let (&found, rest) = der.split_first()?;
    let (&short, rest) = rest.split_first()?;
    let (length, rest) = match short {
        0..=0x7f => (usize::from(short), rest),
        0x81..=0x83 => {
            let (bytes, rest) = rest.split_at_checked(usize::from(short - 0x80))?;
            (bytes.iter().fold(0, |sum, &byte| sum * 256 + usize::from(byte)), rest)
        }
        _ => return None,
    };
    if found == kind { rest.split_at_checked(length) } else { None }
}
