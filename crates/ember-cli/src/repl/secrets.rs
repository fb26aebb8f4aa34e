//! Recognizes commands with secrets, which are not stored in the history.

use ember_protocol::client::SECRET_PARAMETERS;

/// Whether a command's words contain a password or similar secret.
pub(super) fn has_secret(words: &[Vec<u8>]) -> bool {
    let mut lower: Vec<String> =
        words.iter().map(|word| String::from_utf8_lossy(word).to_ascii_lowercase()).collect();
    // A repeat count.
    if lower.len() > 1 && lower[0].parse::<i64>().is_ok() {
        lower.remove(0);
    }
    let words: Vec<&str> = lower.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["auth", ..] => true,
        ["hello", rest @ ..] => rest.contains(&"auth"),
        ["acl", "setuser", _, rules @ ..] => rules.iter().any(|rule| rule.starts_with(['>', '<', '#', '!'])),
        ["config", "set", settings @ ..] => {
            settings.iter().step_by(2).any(|name| SECRET_PARAMETERS.contains(name))
        }
        ["migrate", rest @ ..] => rest.iter().any(|word| ["auth", "auth2"].contains(word)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ember_protocol::client::split_arguments;

    #[test]
    fn commands_with_passwords_are_recognized() {
        for line in [
            "AUTH x",
            "auth user x",
            "3 auth x",
            "\"AUTH\" x",
            "HELLO 3 AUTH default x SETNAME y",
            "ACL SETUSER alice on >x ~*",
            "acl setuser alice #5e884898da28047151d0e56f8dc6292773603d0d6aabbdd62a11ef721d1542d8",
            "CONFIG SET requirepass x",
            "config set PrimaryUser x",
            "CONFIG SET masteruser x",
            "CONFIG SET maxmemory 1gb requirepass x",
            "MIGRATE h 1 k 0 1 AUTH x",
            "MIGRATE h 1 k 0 1 AUTH2 u x",
        ] {
            assert!(has_secret(&split_arguments(line).unwrap()), "{line}");
        }
        for line in
            ["GET auth", "HELLO 3", "ACL SETUSER alice on ~* +get", "CONFIG SET maxmemory 1", "ACL WHOAMI"]
        {
            assert!(!has_secret(&split_arguments(line).unwrap()), "{line}");
        }
    }
}
