//! Which user a connection is, and the check of what it asks for.

use std::fmt;
use std::sync::Arc;

use ember_protocol::Args;
use emberkv_core::call::Run;
use emberkv_core::error::CommandError;

use super::log::{LogEntry, Reason};
use super::user::{DEFAULT_NAME, User};
use super::{Denial, Standing};
use crate::client::{Client, ClientView};
use crate::registry::{Command, Handler};
use crate::server::{Server, unix_ms};

/// Where a call comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Context {
    /// A connection.
    TopLevel,
    /// A connection between MULTI and the end of EXEC.
    Transaction,
    /// A script.
    Script,
}

impl Context {
    fn of(client: &Client) -> Context {
        if client.transaction.is_some() { Context::Transaction } else { Context::TopLevel }
    }

    fn name(self) -> &'static str {
        match self {
            Context::TopLevel => "toplevel",
            Context::Transaction => "multi",
            Context::Script => "lua",
        }
    }
}

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

/// Whether a call that was allowed may read keys which its arguments do not name, if it is of a kind that does.
#[inline]
pub(crate) fn may_read_any_key(client: &Client, command: &Command, args: Args<'_>) -> bool {
    let Handler::Data(data) = command.handler else { return false };
    client.is_unrestricted
        || !matches!(data.run, Run::KeysOrAlone { .. })
        || client.identity.user.reads_any_key(command, args)
}

/// As [`authorize`], for a call that was allowed when it was queued and is now to be run by EXEC.
///
/// # Errors
/// `NOPERM`: the rules have changed since.
#[inline]
pub(crate) fn authorize_queued(
    client: &Client,
    command: &Command,
    args: Args<'_>,
) -> Result<(), CommandError> {
    if client.is_unrestricted {
        return Ok(());
    }
    client.identity.user.check(command, args).map_err(|denial| {
        note_denial(Context::Transaction, client, command, args, denial);
        let reason = match denial {
            Denial::Command => "no permission to execute the command or subcommand",
            Denial::Key(_) => "no permission to touch the specified keys",
            Denial::Channel(_) => "no permission to access one of the channels used as arguments to the command",
        };
        format!(
            "NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC call. This \
             command is no longer allowed for the following reason: {reason}"
        )
        .into()
    })
}

/// As [`authorize`], for a call that a script makes for its caller.
///
/// # Errors
/// What is not allowed, as scripts are told.
#[inline]
pub(crate) fn authorize_scripted(
    client: &Client,
    command: &Command,
    args: Args<'_>,
) -> Result<(), CommandError> {
    if client.is_unrestricted {
        return Ok(());
    }
    let Identity { user, .. } = &client.identity;
    user.check(command, args).map_err(|denial| {
        note_denial(Context::Script, client, command, args, denial);
        let text = refusal(user, denial, command, args).text().into_owned();
        let reason = text.strip_prefix(b"NOPERM ").unwrap_or(&text);
        [b"ERR ACL failure in script: ", reason].concat().into()
    })
}

/// As [`authorize`], for a call that has waited and is run again, by whatever worker.
///
/// # Errors
/// `NOPERM`: the rules have changed since.
pub(crate) fn authorize_waiter(
    server: &Server,
    client_id: u64,
    command: &Command,
    args: Args<'_>,
) -> Result<(), CommandError> {
    if !server.acl.restricts_anybody() {
        return Ok(());
    }
    // Who is gone, or whose user is, gets no answer anyway.
    let Some(view) = server.clients.get(client_id) else { return Ok(()) };
    let user = Arc::clone(&view.user.lock());
    let Some(user) = server.acl.find(&user.name).filter(|found| found.is_same(&user)) else { return Ok(()) };
    user.check(command, args).map_err(|denial| {
        let (reason, object) = reason_and_object(denial, command, args);
        enter(server, Context::TopLevel, &view, command, reason, object, &user.name);
        refusal(&user, denial, command, args)
    })
}

/// Whether [`authorize`] would allow a call, without any trace of the question.
#[inline]
pub(crate) fn permits(client: &Client, command: &Command, args: Args<'_>) -> bool {
    client.is_unrestricted || client.identity.user.check(command, args).is_ok()
}

#[cold]
fn deny(client: &Client, command: &Command, args: Args<'_>, denial: Denial) -> CommandError {
    note_denial(Context::of(client), client, command, args, denial);
    refusal(&client.identity.user, denial, command, args)
}

/// What the client is told.
fn refusal(user: &User, denial: Denial, command: &Command, args: Args<'_>) -> CommandError {
    match denial {
        Denial::Command => [b"NOPERM ", &*denial.explain(user, command, args)].concat().into(),
        Denial::Key(_) => "NOPERM No permissions to access a key".into(),
        Denial::Channel(_) => "NOPERM No permissions to access a channel".into(),
    }
}

fn reason_and_object<'a>(denial: Denial, command: &'a Command, args: Args<'a>) -> (Reason, &'a [u8]) {
    match denial {
        Denial::Command => (Reason::Command, command.full_name.as_bytes()),
        Denial::Key(at) => (Reason::Key, args.at(at)),
        Denial::Channel(at) => (Reason::Channel, args.at(at)),
    }
}

/// Counts and logs that a client was not let in as `user`.
pub(crate) fn note_failed_login(client: &Client, command: &Command, args: Args<'_>, user: &[u8]) {
    let server = client.identity.server;
    enter(server, Context::of(client), &client.view, command, Reason::Auth, args.at(0), user);
}

#[cold]
fn note_denial(context: Context, client: &Client, command: &Command, args: Args<'_>, denial: Denial) {
    let Identity { server, user, .. } = &client.identity;
    let (reason, object) = reason_and_object(denial, command, args);
    enter(server, context, &client.view, command, reason, object, &user.name);
}

fn enter(
    server: &Server,
    context: Context,
    view: &ClientView,
    command: &Command,
    reason: Reason,
    object: &[u8],
    user: &[u8],
) {
    let now_ms = unix_ms();
    let mut about = Vec::new();
    view.describe(now_ms, &command.full_name, &mut about);
    let entry = LogEntry {
        id: 0,
        count: 1,
        reason,
        context: context.name(),
        object: object.to_vec(),
        user: user.into(),
        client: about,
        created_ms: now_ms,
        updated_ms: now_ms,
    };
    let max = usize::try_from(server.config.snapshot().acllog_max_len).unwrap_or(usize::MAX);
    server.acl.log.enter(entry, max);
}
