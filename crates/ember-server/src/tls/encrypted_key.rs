//! Password-protected private keys: PKCS #8 with PBES2 (RFC 5958, RFC 8018), as OpenSSL has written them since 1.0.
//!
//! ```text
//! EncryptedPrivateKeyInfo = { { PBES2, { { PBKDF2, { salt, iterations, [length], [hash] } }, { AES-CBC, iv } } },
//!                             bytes }
//! ```
//!
//! This file parses only the container; aws-lc-rs, which TLS also uses, derives the key and decrypts. A crate that
//! reads the container (pkcs8) would add second implementations of AES, PBKDF2 and SHA-2.

use std::num::NonZeroU32;

use aws_lc_rs::cipher::{AES_128, AES_256, DecryptionContext, PaddedBlockDecryptingKey, UnboundCipherKey};
use aws_lc_rs::pbkdf2;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

use super::der::{INTEGER, OBJECT, OCTETS, SEQUENCE, take};

const BEGIN: &str = "-----BEGIN ENCRYPTED PRIVATE KEY-----";
const END: &str = "-----END ENCRYPTED PRIVATE KEY-----";

/// The maximum number of rounds, because more would delay startup by minutes. OpenSSL's default is 2048.
const ROUNDS_MAX: u32 = 10_000_000;

// Object identifiers of algorithms.
const PBES2: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x01\x05\x0d";
const PBKDF2: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x01\x05\x0c";
const HMAC_SHA1: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x02\x07";
const HMAC_SHA256: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x02\x09";
const HMAC_SHA384: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x02\x0a";
const HMAC_SHA512: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x02\x0b";
const AES_128_CBC: &[u8] = b"\x60\x86\x48\x01\x65\x03\x04\x01\x02";
const AES_256_CBC: &[u8] = b"\x60\x86\x48\x01\x65\x03\x04\x01\x2a";

/// Returns the decrypted key of a PEM file; `None` if the file contains no encrypted key.
///
/// # Errors
/// Returns a short description of the problem with the key or the password.
pub(super) fn read(text: &str, password: &str) -> Option<Result<PrivateKeyDer<'static>, &'static str>> {
    let (_, rest) = text.split_once(BEGIN)?;
    let (body, _) = rest.split_once(END)?;
    let body: String = body.split_whitespace().collect();
    let der = STANDARD.decode(body).map_err(|_| "the encrypted key is damaged");
    Some(der.and_then(|der| decrypt(&der, password)))
}

fn decrypt(der: &[u8], password: &str) -> Result<PrivateKeyDer<'static>, &'static str> {
    let Parts { hash, rounds, salt, cipher, key_bytes, iv, bytes } = parts(der).ok_or(
        "it is not encrypted with PBES2, PBKDF2 and AES-CBC with 128 or 256 bits, or is damaged: encrypt it \
         again with `openssl pkcs8 -topk8 -v2 aes-256-cbc`",
    )?;
    if password.is_empty() {
        return Err("the key is encrypted: set tls-key-file-pass");
    }
    let rounds = NonZeroU32::new(rounds).filter(|rounds| rounds.get() <= ROUNDS_MAX);
    let rounds = rounds.ok_or("the encrypted key requires too many rounds")?;
    let mut secret = vec![0; key_bytes];
    pbkdf2::derive(hash, rounds, salt, password.as_bytes(), &mut secret);
    // The most likely cause of the following errors is a wrong password.
    let wrong = "tls-key-file-pass is not its password";
    let key = UnboundCipherKey::new(cipher, &secret).map_err(|_| wrong)?;
    let key = PaddedBlockDecryptingKey::cbc_pkcs7(key).map_err(|_| wrong)?;
    let iv = <[u8; 16]>::try_from(iv).map_err(|_| wrong)?;
    let mut bytes = bytes.to_vec();
    let plain = key.decrypt(&mut bytes, DecryptionContext::Iv128(iv.into())).map_err(|_| wrong)?;
    // For one in 256 wrong passwords the padding is valid, so the contents are checked, too.
    if take(plain, SEQUENCE).is_none_or(|(_, rest)| !rest.is_empty()) {
        return Err(wrong);
    }
    Ok(PrivatePkcs8KeyDer::from(plain.to_vec()).into())
}

/// The parameters of an encrypted key, and the encrypted bytes.
struct Parts<'d> {
    hash: pbkdf2::Algorithm,
    rounds: u32,
    salt: &'d [u8],
    cipher: &'static aws_lc_rs::cipher::Algorithm,
    key_bytes: usize,
    iv: &'d [u8],
    bytes: &'d [u8],
}

fn parts(der: &[u8]) -> Option<Parts<'_>> {
    let (info, _) = take(der, SEQUENCE)?;
    let (algorithm, rest) = take(info, SEQUENCE)?;
    let (bytes, _) = take(rest, OCTETS)?;
    let (derivation, rest) = take(named(algorithm, PBES2)?, SEQUENCE)?;
    let (encryption, _) = take(rest, SEQUENCE)?;
    let (salt, rest) = take(named(derivation, PBKDF2)?, OCTETS)?;
    let (rounds, mut rest) = take(rest, INTEGER)?;
    let rounds =
        rounds.iter().try_fold(0_u32, |sum, &byte| sum.checked_mul(256)?.checked_add(byte.into()))?;
    if let Some((_length, after)) = take(rest, INTEGER) {
        rest = after;
    }
    let hash = match take(rest, SEQUENCE) {
        None => HMAC_SHA1,
        Some((hash, _)) => take(hash, OBJECT)?.0,
    };
    let hash = match hash {
        HMAC_SHA1 => pbkdf2::PBKDF2_HMAC_SHA1,
        HMAC_SHA256 => pbkdf2::PBKDF2_HMAC_SHA256,
        HMAC_SHA384 => pbkdf2::PBKDF2_HMAC_SHA384,
        HMAC_SHA512 => pbkdf2::PBKDF2_HMAC_SHA512,
        _ => return None,
    };
    let (cipher, rest) = take(encryption, OBJECT)?;
    let (cipher, key_bytes) = match cipher {
        AES_128_CBC => (&AES_128, 16),
        AES_256_CBC => (&AES_256, 32),
        _ => return None,
    };
    Some(Parts { hash, rounds, salt, cipher, key_bytes, iv: take(rest, OCTETS)?.0, bytes })
}

/// Returns the parameters of an algorithm; `None` if `name` identifies another algorithm.
fn named<'d>(algorithm: &'d [u8], name: &[u8]) -> Option<&'d [u8]> {
    let (found, rest) = take(algorithm, OBJECT)?;
    if found == name { take(rest, SEQUENCE).map(|(parameters, _)| parameters) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A key for this test only, in the format that `openssl pkcs8 -topk8 -v2 aes-256-cbc` writes with the password
    /// `sesame`.
    const BODY: &str = "MIHsMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAgzjqufIi5KFwICCAAwDAYIKoZIhvcNAgkFADAdBglghkgBZQME\
        ASoEEI4Zc2PWDYxQQPKP1+eE55AEgZB2mBsnnT/BN20iPASM/idDIN7AGPZjvzjCs32fFRM9CPiDC43irMIMwQV295+O2oiQ\
        S63HSSnnoeUn0t8C1TULsw+LnBoaQZcdsyOp3rAC2FrFo/1dnYt43kvQ/KnBVzhWFKJCkVoMzt+eJBOKiVzYVDd9/hu8iiqK\
        oCQ5mow5kmocBZMQcn3V9moS/SgCs+c=";

    /// The same key without a password.
    const PLAIN: &str = "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgY47YGrEHUNjRxLobJ1l7n2SJ8993EKt2Xmm4zWzgSmehRANC\
        AASZyDUSGiGU5nt7Ij56IopWdZiscm7Xc/iPXu34hdIzOWg5cgACsDGgzmHskPAOHXBhtAvaatzHnGhwPKHlWz/c";

    fn pem(body: &str) -> String {
        format!("# A key.\n{BEGIN}\n{body}\n{END}\n")
    }

    #[test]
    fn the_password_decrypts_the_key() {
        let key = read(&pem(BODY), "sesame").unwrap().unwrap();
        assert_eq!(STANDARD.encode(key.secret_der()), PLAIN);
        assert!(read("-----BEGIN PRIVATE KEY-----", "").is_none());
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (body, password, error) in [
            (BODY, "sesam", "tls-key-file-pass is not its password"),
            (BODY, "", "the key is encrypted: set tls-key-file-pass"),
            ("%", "sesame", "the encrypted key is damaged"),
        ] {
            assert_eq!(read(&pem(body), password).unwrap().unwrap_err(), error);
        }
    }

    #[test]
    fn damage_is_an_error() {
        let der = STANDARD.decode(BODY).unwrap();
        for at in 0..der.len() {
            assert!(decrypt(&der[..at], "sesame").is_err(), "{at}");
            let mut damaged = der.clone();
            damaged[at] ^= 0x81;
            let _ = parts(&damaged);
        }
    }
}
