//! Which user a connection is, and the check of what it asks for.

use std::fmt;
use std::sync::Arc;

use ember_protocol::Args;
use emberkv_core::error::CommandError;

use super::log::{LogEntry, Reason};
use super::user::{DEFAULT_NAME, User};
use super::{Denial, Standing};
use crate::client::Client;
use crate::registry::Command;
use crate::server::{Server, unix_ms};

/// Where a denied call came from.
const CONTEXT: &str = "toplevel";

/// The user that a connection is.
pub(crate) struct Identity {
    server: &'static Server,
    user: Arc<User>,
    /// The generation of the users when `user` was looked up.
    generation: u64,
    /// It was right about a password, or none was needed when it came.
    has_authenticated: bool,
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity").field("user", &self.user).finish_non_exhaustive()
    }
}

impl Identity {
    /// What a connection is that has not said who it is: the default user.
    pub(crate) fn unknown(server: &'static Server) -> Identity {
        let Standing { user, is_open, generation } = server.acl.look_up(DEFAULT_NAME);
        let user = user.expect("the default user cannot be removed");
        Identity { server, user, generation, has_authenticated: is_open }
    }

    /// The user.
    pub(crate) fn user(&self) -> &Arc<User> {
        &self.user
    }

    /// Whether the user may do everything.
    pub(crate) fn is_unrestricted(&self) -> bool {
        self.user.is_unrestricted()
    }

    /// Whether a login has succeeded, or none was needed when the connection was made.
    pub(crate) fn has_authenticated(&self) -> bool {
        self.has_authenticated
    }
}

impl Client {
    /// Makes the connection the user `name` if `password` is right.
    ///
    /// # Errors
    /// That it is not; the connection is as it was.
    pub(crate) fn log_in(&mut self, name: &[u8], password: &[u8]) -> Result<(), WrongPassword> {
        let server = self.identity.server;
        let Standing { user, generation, .. } = server.acl.look_up(name);
        let user = user.filter(|user| user.accepts(password)).ok_or(WrongPassword)?;
        self.become_user(Identity { server, user, generation, has_authenticated: true });
        Ok(())
    }

    /// Makes the connection what it was when it was new.
    pub(crate) fn log_out(&mut self) {
        self.become_user(Identity::unknown(self.identity.server));
    }

    fn become_user(&mut self, identity: Identity) {
        self.is_authenticated = identity.has_authenticated();
        self.is_unrestricted = identity.is_unrestricted();
        *self.view.user.lock() = Arc::clone(&identity.user);
        self.identity = identity;
    }

    /// Whether users have changed since the connection's own was looked up.
    #[inline]
    pub(crate) fn is_user_stale(&self) -> bool {
        self.identity.generation != self.identity.server.acl.generation()
    }

    /// Looks the connection's user up again; false when there is no such user any more.
    #[cold]
    pub(crate) fn refresh_user(&mut self) -> bool {
        let Identity { server, ref user, has_authenticated, .. } = self.identity;
        let Standing { user: found, is_open, generation } = server.acl.look_up(&user.name);
        let Some(found) = found.filter(|found| found.id == user.id) else { return false };
        self.become_user(Identity { server, user: found, generation, has_authenticated });
        // Whoever has not logged in is let in while no password is needed, and only then.
        self.is_authenticated |= is_open;
        true
    }
}

/// No user has this name and password, or it is off.
pub(crate) struct WrongPassword;

/// Checks that the client may make a call; one that may not is counted and logged.
///
/// # Errors
/// `NOPERM`, with what is not allowed.
#[inline]
pub(crate) fn authorize(client: &Client, command: &Command, args: Args<'_>) -> Result<(), CommandError> {
    if client.is_unrestricted {
        return Ok(());
    }
    client.identity.user.check(command, args).map_err(|denial| deny(client, command, args, denial))
}

/// Whether [`authorize`] would allow a call, without any trace of the question.
#[inline]
pub(crate) fn permits(client: &Client, command: &Command, args: Args<'_>) -> bool {
    client.is_unrestricted || client.identity.user.check(command, args).is_ok()
}

#[cold]
fn deny(client: &Client, command: &Command, args: Args<'_>, denial: Denial) -> CommandError {
    let user = &client.identity.user;
    let (reason, object) = match denial {
        Denial::Command => (Reason::Command, command.full_name.as_bytes()),
        Denial::Key(at) => (Reason::Key, args.at(at)),
        Denial::Channel(at) => (Reason::Channel, args.at(at)),
    };
    enter(client, command, reason, object, &user.name);
    match denial {
        Denial::Command => [b"NOPERM ", &*denial.explain(user, command, args)].concat().into(),
        Denial::Key(_) => "NOPERM No permissions to access a key".into(),
        Denial::Channel(_) => "NOPERM No permissions to access a channel".into(),
    }
}

/// Counts and logs that a client was not let in as `user`.
pub(crate) fn note_failed_login(client: &Client, command: &Command, args: Args<'_>, user: &[u8]) {
    enter(client, command, Reason::Auth, args.at(0), user);
}

fn enter(client: &Client, command: &Command, reason: Reason, object: &[u8], user: &[u8]) {
    let server = client.identity.server;
    let now_ms = unix_ms();
    let mut about = Vec::new();
    client.view.describe(now_ms, &command.full_name, &mut about);
    let entry = LogEntry {
        id: 0,
        count: 1,
        reason,
        context: CONTEXT,
        object: object.to_vec(),
        user: user.into(),
        client: about,
        created_ms: now_ms,
        updated_ms: now_ms,
    };
    let max = usize::try_from(server.config.snapshot().acllog_max_len).unwrap_or(usize::MAX);
    server.acl.log.enter(entry, max);
}
