//! AUTH: one password, that of the user `default`.

use emberkv_core::error::CommandError;
use emberkv_core::spec::{Command, Example, Group, Spec};

use super::HANDSHAKE;
use crate::session::{Outcome, ServerCommand, Session, SessionResult};

pub(super) const COMMANDS: &[ServerCommand] = &[Command::new(
    Spec {
        name: "auth",
        summary: "Tells the server a password, so that it serves the connection.",
        since: "1.0.0",
        group: Group::Connection,
        complexity: "O(N) for a password of N bytes.",
        arity: -2,
        flags: HANDSHAKE,
        syntax: "[username]@6.0.0 password",
        history: &[("6.0.0", "A user can be named.")],
        example: Example { given: &[], call: "AUTH default anything", reply: "OK" },
        ..Spec::DEFAULT
    },
    Some(auth),
)];

const NO_PASSWORD: &str = "ERR AUTH <password> called without any password configured for the default user. Are you \
                           sure your configuration is correct?";

fn auth(session: &mut Session<'_>) -> SessionResult {
    let (user, password) = match session.args.len() {
        2 if session.server.config.snapshot().requirepass.reveal().is_empty() => {
            return Err(NO_PASSWORD.into());
        }
        2 => (&b"default"[..], session.args.at(1)),
        3 => (session.args.at(1), session.args.at(2)),
        _ => return Err(CommandError::Syntax),
    };
    authenticate(session, user, password)?;
    session.reply.ok();
    Ok(Outcome::Done)
}

/// Lets the connection in when `password` is that of `user`.
///
/// # Errors
/// `WRONGPASS`; the connection is as it was.
pub(super) fn authenticate(
    session: &mut Session<'_>,
    user: &[u8],
    password: &[u8],
) -> Result<(), CommandError> {
    let config = session.server.config.snapshot();
    let expected = config.requirepass.reveal().as_bytes();
    // Without a password the default user may give any.
    if user != b"default" || !(expected.is_empty() || are_equal(expected, password)) {
        return Err("WRONGPASS invalid username-password pair or user is disabled.".into());
    }
    session.client.is_authenticated = true;
    Ok(())
}

/// Compares in a time that depends on the length of `given` alone, so that it tells nothing of the secret.
fn are_equal(secret: &[u8], given: &[u8]) -> bool {
    let difference = given.iter().zip(secret.iter().cycle()).fold(0, |all, (one, other)| all | (one ^ other));
    std::hint::black_box(difference) == 0 && secret.len() == given.len()
}

#[cfg(test)]
mod tests {
    use super::are_equal;

    #[test]
    fn only_the_whole_password_is_equal() {
        assert!(are_equal(b"secret", b"secret"));
        for given in [&b""[..], b"s", b"secre", b"secreT", b"secrets", b"secretsecret"] {
            assert!(!are_equal(b"secret", given));
        }
    }
}
