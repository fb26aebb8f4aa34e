//! SHA-1, the digest that identifies scripts.

use aws_lc_rs::digest::{Context, SHA1_FOR_LEGACY_USE_ONLY};

/// Returns the digest of `text`.
pub fn digest(text: &[u8]) -> [u8; 20] {
    let computed = aws_lc_rs::digest::digest(&SHA1_FOR_LEGACY_USE_ONLY, text);
    let mut digest = [0; 20];
    digest.copy_from_slice(computed.as_ref());
    digest
}

/// Returns the digest of a text that `pieces` yields, or the first error that it yields.
pub(super) fn digest_of_pieces<'p, E>(
    pieces: impl Iterator<Item = Result<&'p [u8], E>>,
) -> Result<[u8; 20], E> {
    let mut context = Context::new(&SHA1_FOR_LEGACY_USE_ONLY);
    for piece in pieces {
        context.update(piece?);
    }
    let mut digest = [0; 20];
    digest.copy_from_slice(context.finish().as_ref());
    Ok(digest)
}

/// Formats a digest as lower-case hexadecimal digits.
pub fn hex(digest: &[u8; 20]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Parses a digest of 40 hexadecimal digits in either case.
pub fn parse(text: &[u8]) -> Option<[u8; 20]> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let (pairs, rest) = text.as_chunks::<2>();
    let mut digest = [0; 20];
    if pairs.len() != digest.len() || !rest.is_empty() {
        return None;
    }
    for (byte, [high, low]) in digest.iter_mut().zip(pairs) {
        *byte = (digit(*high)? << 4 | digit(*low)?) as u8;
    }
    Some(digest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_read_back_in_either_case() {
        let text = "e0e1f9fabfc9d4800c877a703b823ac0578ff8db";
        assert_eq!(hex(&digest(b"return 1")), text);
        assert_eq!(parse(text.as_bytes()), Some(digest(b"return 1")));
        assert_eq!(parse(text.to_uppercase().as_bytes()), Some(digest(b"return 1")));
        assert_eq!(parse(b"e0e1"), None);
        assert_eq!(parse("+".repeat(40).as_bytes()), None);
        assert_eq!(parse(&[0xff; 40]), None);
    }
}
