//! DIGEST, and the digests of `IFDEQ` and `IFDNE`: the 64-bit XXH3 hash without a seed (Collet), as 16 hexadecimal
//! digits.

use xxhash_rust::xxh3::xxh3_64;

use super::value;
use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::error::CommandError;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::value::StringValue;

/// The number of hexadecimal digits of a digest, including leading zeros.
const DIGITS: usize = 16;

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "digest",
        summary: "Returns the digest of a string value as 16 hexadecimal digits.",
        since: "8.4.0",
        group: Group::String,
        complexity: "O(N) for a value of N bytes.",
        arity: 2,
        flags: Flags::READONLY.union(Flags::FAST),
        keys: &[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))],
        syntax: "key",
        example: Example {
            given: &["SET hello \"Hello world\""],
            call: "DIGEST hello",
            reply: "\"b6acb9d84a38ff74\"",
        },
        ..Spec::DEFAULT
    },
    Run::Keys(digest),
)];

/// Returns the digest of a value.
pub(super) fn of(value: StringValue<'_>) -> u64 {
    xxh3_64(value.bytes(&mut itoa::Buffer::new()))
}

/// Parses a digest, which consists of [`DIGITS`] digits in upper or lower case.
///
/// # Errors
/// Returns an error that describes digests if `text` is not a digest.
pub(super) fn parse(text: &[u8]) -> Result<u64, CommandError> {
    let is_digest = text.len() == DIGITS && text.iter().all(u8::is_ascii_hexdigit);
    let digits = std::str::from_utf8(text).ok().filter(|_| is_digest);
    let digest = digits.and_then(|digits| u64::from_str_radix(digits, 16).ok());
    digest.ok_or_else(|| "ERR a digest must be exactly 16 hexadecimal characters".into())
}

fn digest(call: &mut Call<'_, '_>) -> CommandResult {
    match value::string(call.keys.read(1))? {
        Some(value) => call.reply.bulk(format!("{:016x}", of(value)).as_bytes()),
        None => call.reply.null(),
    }
    Ok(())
}
