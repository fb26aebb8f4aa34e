//! Checks the calls of a connection against the rules of its user.

use std::sync::Arc;

use ember_protocol::number::parse_i64;
use ember_protocol::{Args, OwnedBatch};
use emberkv_core::call::Run;
use emberkv_core::error::CommandError;

use crate::acl::denial::Denial;
use crate::acl::log::{LogEntry, Reason};
use crate::acl::user::User;
use crate::catalogue::registry::{Command, Handler};
use crate::clients::client::{Client, ClientView};
use crate::observability::command_log::cut_argument;
use crate::server::Server;
use crate::system::clock::unix_ms;

/// The reply to a client without access to a channel.
const NO_CHANNEL: &str = "NOPERM No permissions to access a channel";

/// The origin of a call to be checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Context {
    /// A connection outside a transaction.
    TopLevel,
    /// A connection between MULTI and EXEC.
    Transaction,
    /// EXEC, which runs a queued call.
    Exec,
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
            Context::Transaction | Context::Exec => "multi",
            Context::Script => "lua",
        }
    }
}

/// Checks that the client may make a call; counts and logs a refused call.
///
/// # Errors
/// Returns `NOPERM` with the missing permission.
#[inline(always)]
pub(crate) fn authorize(
    server: &Server,
    client: &Client,
    command: &Command,
    args: Args<'_>,
) -> Result<(), CommandError> {
    if client.is_unrestricted { Ok(()) } else { authorize_restricted(server, client, command, args) }
}

/// Does what [`authorize`] does, for a user without all rights.
fn authorize_restricted(
    server: &Server,
    client: &Client,
    command: &Command,
    args: Args<'_>,
) -> Result<(), CommandError> {
    let denied = |denial| deny(server, client, command, args, denial);
    client.identity.user().check(command, args).map_err(denied)?;
    check_databases(server, client, command, args, |select, call| authorize(server, client, select, call))
}

/// Checks that the client may select the databases that a call names in addition to the selected one.
#[inline]
fn check_databases<E>(
    server: &Server,
    client: &Client,
    command: &Command,
    args: Args<'_>,
    check: impl Fn(&Command, Args<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let Some(databases_of) = command.spec.databases_of else { return Ok(()) };
    // Arguments that are not numbers are skipped here; the handler reports them.
    let numbers = databases_of(args).into_iter().filter_map(|arg| parse_i64(args.get(arg)?));
    for number in numbers.filter(|&number| number != client.database as i64) {
        let (select, call) = selecting(server, number);
        check(select, call.command(0))?;
    }
    Ok(())
}

/// Returns the SELECT command and a call of it for this database.
fn selecting(server: &Server, number: i64) -> (&Command, OwnedBatch) {
    let select = server.registry.find_declared(b"select").expect("every server has it");
    let mut call = OwnedBatch::new();
    call.push(&[b"SELECT", number.to_string().as_bytes()]);
    (select, call)
}

/// Checks that the client may use a database that a command specifies without SELECT.
///
/// # Errors
/// Returns `NOPERM` if the database is not the selected one and the client may not select it.
pub(crate) fn authorize_database(
    server: &Server,
    client: &Client,
    database: usize,
) -> Result<(), CommandError> {
    if client.is_unrestricted || database == client.database {
        return Ok(());
    }
    let (select, call) = selecting(server, database as i64);
    authorize(server, client, select, call.command(0))
}

/// Checks that the client may subscribe to a channel.
///
/// # Errors
/// Returns `NOPERM` if the user has no access to the channel.
pub(crate) fn authorize_channel(client: &Client, channel: &[u8]) -> Result<(), CommandError> {
    let is_allowed = client.is_unrestricted || client.identity.user().allows_channel(channel, false);
    if is_allowed { Ok(()) } else { Err(NO_CHANNEL.into()) }
}

/// Returns whether a permitted call may read keys that its arguments do not name; relevant only for commands that can.
#[inline]
pub(crate) fn may_read_any_key(client: &Client, command: &Command, args: Args<'_>) -> bool {
    let Handler::Data(data) = command.handler else { return false };
    client.is_unrestricted
        || !matches!(data.run, Run::KeysOrAllShards { .. })
        || client.identity.user().reads_any_key(command, args)
}

/// Does what [`authorize`] does, for a call that was permitted when it was queued and that EXEC is about to run.
///
/// # Errors
/// Returns `NOPERM` if the rules have changed since the call was queued.
#[inline]
pub(crate) fn authorize_queued(
    server: &Server,
    client: &Client,
    command: &Command,
    args: Args<'_>,
) -> Result<(), CommandError> {
    if client.is_unrestricted {
        return Ok(());
    }
    client.identity.user().check(command, args).map_err(|denial| -> CommandError {
        log_denial(server, Context::Exec, client, command, args, denial);
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
    })?;
    check_databases(server, client, command, args, |select, call| {
        authorize_queued(server, client, select, call)
    })
}

/// Does what [`authorize`] does, for a call that a script makes for its caller.
///
/// # Errors
/// Returns the missing permission, in the form for scripts.
#[inline]
pub(crate) fn authorize_scripted(
    server: &Server,
    client: &Client,
    command: &Command,
    args: Args<'_>,
) -> Result<(), CommandError> {
    if client.is_unrestricted {
        return Ok(());
    }
    let user = client.identity.user();
    user.check(command, args).map_err(|denial| -> CommandError {
        log_denial(server, Context::Script, client, command, args, denial);
        let text = refusal(user, denial, command, args).text().into_owned();
        let reason = text.strip_prefix(b"NOPERM ").unwrap_or(&text);
        [b"ERR ACL failure in script: ", reason].concat().into()
    })?;
    check_databases(server, client, command, args, |select, call| {
        authorize_scripted(server, client, select, call)
    })
}

/// Does what [`authorize`] does, for a blocked call that is about to run again, on any worker.
///
/// # Errors
/// Returns `NOPERM` if the rules have changed since the call was blocked.
pub(crate) fn authorize_waiter(
    server: &Server,
    client_id: u64,
    command: &Command,
    args: Args<'_>,
) -> Result<(), CommandError> {
    if !server.acl.restricts_anybody() {
        return Ok(());
    }
    // If the client has disconnected or its user was removed, the reply is discarded in any case.
    let Some(view) = server.clients.get(client_id) else { return Ok(()) };
    let user = Arc::clone(&view.user.lock());
    let Some(user) = server.acl.find(&user.name).filter(|found| found.is_same(&user)) else { return Ok(()) };
    user.check(command, args).map_err(|denial| {
        let (reason, object) = reason_and_object(denial, command, args);
        enter(server, Context::TopLevel, &view, command, reason, object, &user.name);
        refusal(&user, denial, command, args)
    })
}

/// Returns whether [`authorize`] would permit a call, without counting or logging.
#[inline]
pub(crate) fn permits(server: &Server, client: &Client, command: &Command, args: Args<'_>) -> bool {
    let check = |command: &Command, call: Args<'_>| client.identity.user().check(command, call);
    client.is_unrestricted
        || (check(command, args).is_ok() && check_databases(server, client, command, args, check).is_ok())
}

#[cold]
fn deny(server: &Server, client: &Client, command: &Command, args: Args<'_>, denial: Denial) -> CommandError {
    log_denial(server, Context::of(client), client, command, args, denial);
    refusal(client.identity.user(), denial, command, args)
}

/// Returns the error that the client receives.
fn refusal(user: &User, denial: Denial, command: &Command, args: Args<'_>) -> CommandError {
    match denial {
        Denial::Command => [b"NOPERM ", &*denial.explain(user, command, args)].concat().into(),
        Denial::Key(_) => "NOPERM No permissions to access a key".into(),
        Denial::Channel(_) => NO_CHANNEL.into(),
    }
}

fn reason_and_object<'a>(denial: Denial, command: &'a Command, args: Args<'a>) -> (Reason, &'a [u8]) {
    match denial {
        Denial::Command => (Reason::Command, command.full_name.as_bytes()),
        Denial::Key(at) => (Reason::Key, args.at(at)),
        Denial::Channel(at) => (Reason::Channel, args.at(at)),
    }
}

/// Counts and logs a failed authentication as `user`.
pub(crate) fn log_failed_login(
    server: &Server,
    client: &Client,
    command: &Command,
    args: Args<'_>,
    user: &[u8],
) {
    enter(server, Context::of(client), &client.view, command, Reason::Auth, args.at(0), user);
}

#[cold]
fn log_denial(
    server: &Server,
    context: Context,
    client: &Client,
    command: &Command,
    args: Args<'_>,
    denial: Denial,
) {
    let user = client.identity.user();
    let (reason, object) = reason_and_object(denial, command, args);
    enter(server, context, &client.view, command, reason, object, &user.name);
}

/// The maximum number of bytes of a name in a line about a denial; longer names are cut.
const NAME_BYTES_MAX: usize = 128;

/// Describes a denial for the log: `client 7 at 127.0.0.1:40000, user "alice": the key "x" is denied`.
fn described(view: &ClientView, entry: &LogEntry) -> String {
    let shown = |name: &[u8]| name[..name.len().min(NAME_BYTES_MAX)].escape_ascii().to_string();
    let (client, user) = (view.log_name(), shown(&entry.user));
    match entry.reason {
        Reason::Auth => format!("{client}: the login as user \"{user}\" has failed"),
        reason => {
            format!("{client}, user \"{user}\": the {} \"{}\" is denied", reason.name(), shown(&entry.object))
        }
    }
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
    let caller = match context {
        Context::Script | Context::Exec => view.last_command().map(|index| server.registry.get(index)),
        Context::TopLevel | Context::Transaction => None,
    };
    view.describe_for_log(now_ms, &caller.unwrap_or(command).full_name, &mut about);
    let entry = LogEntry {
        id: 0,
        count: 1,
        reason,
        context: context.name(),
        object: cut_argument(object),
        user: cut_argument(user),
        client: about,
        created_ms: now_ms,
        updated_ms: now_ms,
    };
    tracing::debug!("{}", described(view, &entry));
    let max = usize::try_from(server.config.snapshot().acllog_max_len).unwrap_or(usize::MAX);
    server.acl.log.enter(entry, max);
}
