//! AUTH: authenticates the connection as a user by name and password.

use emberkv_core::error::CommandError;
use emberkv_core::spec::{Command, Example, Group, Spec};

use super::handshake::HANDSHAKE;
use crate::acl::user::DEFAULT_NAME;
use crate::executor::authorization;
use crate::executor::session::{Outcome, ServerCommand, Session, SessionResult};

pub(super) const COMMANDS: &[ServerCommand] = &[Command::new(
    Spec {
        name: "auth",
        summary: "Authenticates the connection with a password.",
        since: "1.0.0",
        group: Group::Connection,
        complexity: "O(N) for a password of N bytes.",
        arity: -2,
        flags: HANDSHAKE,
        syntax: "[username]@6.0.0 password",
        history: &[("6.0.0", "A user can be named.")],
        is_secret: Some(|_, arg| arg >= 1),
        example: Example { given: &[], call: "AUTH default anything", reply: "OK" },
        ..Spec::DEFAULT
    },
    Some(auth),
)];

const NO_PASSWORD: &str = "ERR AUTH <password> called without any password configured for the default user. Are you \
                           sure your configuration is correct?";

fn auth(session: &mut Session<'_>) -> SessionResult {
    let (user, password) = match session.args.len() {
        2 if session.server.acl.default_user().needs_no_password() => return Err(NO_PASSWORD.into()),
        2 => (DEFAULT_NAME, session.args.at(1)),
        3 => (session.args.at(1), session.args.at(2)),
        _ => return Err(CommandError::Syntax),
    };
    authenticate(session, user, password)?;
    session.reply.ok();
    Ok(Outcome::Done)
}

/// Authenticates the connection as `user` if `password` is one of its passwords.
///
/// # Errors
/// Returns `WRONGPASS`, and counts and logs the attempt; the connection is unchanged.
pub(super) fn authenticate(
    session: &mut Session<'_>,
    user: &[u8],
    password: &[u8],
) -> Result<(), CommandError> {
    session.client.log_in(user, password).map_err(|_| {
        authorization::log_failed_login(session.server, session.client, session.command, session.args, user);
        "WRONGPASS invalid username-password pair or user is disabled.".into()
    })
}
