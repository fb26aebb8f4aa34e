//! Channels whose messages are the states of live queries: `__watch@0__:GET price`.

use ember_protocol::client::split_arguments;

/// The prefix of the names of live-query channels.
const PREFIX: &[u8] = b"__watch@";

/// Returns whether a channel's name begins with [`PREFIX`], even if the rest is malformed. Clients cannot publish to
/// channels with this prefix.
pub(crate) fn is_watching(channel: &[u8]) -> bool {
    channel.starts_with(PREFIX)
}

/// Returns the database number and the words of the call that a channel's name contains.
pub(crate) fn parse(channel: &[u8]) -> Option<(usize, Vec<Vec<u8>>)> {
    let rest = channel.strip_prefix(PREFIX)?;
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let database = std::str::from_utf8(&rest[..digits]).ok()?.parse().ok()?;
    let words = split_arguments(rest[digits..].strip_prefix(b"__:")?)?;
    (!words.is_empty()).then_some((database, words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channel_names_contain_a_database_and_a_call() {
        let words = |words: &[&str]| words.iter().map(|word| word.as_bytes().to_vec()).collect::<Vec<_>>();
        assert_eq!(parse(b"__watch@0__:GET price"), Some((0, words(&["GET", "price"]))));
        assert_eq!(parse(b"__watch@15__:GET \"a b\""), Some((15, words(&["GET", "a b"]))));
        for wrong in [
            "__watch@__:GET a",
            "__watch@0__:",
            "__watch@0:GET a",
            "__watch@x__:GET a",
            "__watch@0__:GET \"a",
        ] {
            assert_eq!(parse(wrong.as_bytes()), None, "{wrong}");
            assert!(is_watching(wrong.as_bytes()));
        }
        assert!(!is_watching(b"news"));
    }
}
