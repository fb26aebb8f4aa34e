//! Calls of server commands, which concern the connection, the configuration or the process.

use ember_protocol::{Args, Reply};
use emberkv_core::dispatch::{self, Access, Context, Waiting};
use emberkv_core::error::CommandError;
use emberkv_core::keys::{Guards, Keys};
use emberkv_core::turn::Turn;

use super::Executor;
use super::monitoring::MonitoredCaller;
use crate::catalogue::registry::Command;
use crate::clients::blocked::Blocked;
use crate::clients::client::Client;
use crate::server::Server;

/// The next step of a connection after a call whose reply is written.
pub(crate) enum Outcome {
    /// The connection continues.
    Done,
    /// The connection is closed once all replies are sent.
    Close,
    /// The connection is parked; no reply is written.
    Wait(Box<Blocked>),
    /// The call continues with an [`Execution`], which can run other calls; no reply is written yet.
    Continue(fn(&mut Execution<'_>) -> SessionResult),
    /// The call is retried later; no reply is written, and no data are changed.
    Again,
    /// The call is retried once its cold values ([`Turn::missing`]) are fetched.
    Fetch,
}

/// A call that runs other calls, such as EXEC or EVAL.
pub(crate) struct Execution<'c> {
    /// The worker's executor, which runs the calls.
    pub(crate) executor: &'c mut Executor,
    /// The caller.
    pub(crate) client: &'c mut Client,
    /// The called command.
    pub(crate) command: &'static Command,
    /// The arguments; argument 0 is the name.
    pub(crate) args: Args<'c>,
    /// The buffer for the reply.
    pub(crate) reply: &'c mut Reply,
}

impl Execution<'_> {
    /// Sends the call to monitors, before the calls that it runs.
    pub(crate) fn show_to_monitors(&self) {
        let Executor { server, config, .. } = &*self.executor;
        if !server.monitors.is_empty() {
            let limit = &config.client_output_buffer_limit.pubsub;
            server.show_to_monitors(self.client, self.command, self.args, limit, MonitoredCaller::Client);
        }
    }
}

/// The result of a server command's handler: the reply is written, or an error is returned and no reply is written.
pub(crate) type SessionResult = Result<Outcome, CommandError>;

/// The handler of a server command.
pub(crate) type ServerHandler = fn(&mut Session<'_>) -> SessionResult;

/// A server command; a command that only contains subcommands has no handler.
pub(crate) type ServerCommand = emberkv_core::spec::Command<Option<ServerHandler>>;

/// A call of a server command. The caller holds no shard lock.
pub(crate) struct Session<'c> {
    /// The arguments; argument 0 is the name.
    pub(crate) args: Args<'c>,
    /// The called command.
    pub(crate) command: &'static Command,
    /// The server's shared state.
    pub(crate) server: &'static Server,
    /// The caller.
    pub(crate) client: &'c mut Client,
    /// The worker's state.
    pub(crate) turn: &'c mut Turn,
    /// The buffer for the reply.
    pub(crate) reply: &'c mut Reply,
}

impl Session<'_> {
    /// Runs `inspect` while the shards of the keys that the command's specification names are locked.
    pub(crate) fn with_keys<R>(&mut self, inspect: impl FnOnce(&mut Keys<'_, 'static>) -> R) -> R {
        let keyspace = &self.server.keyspace;
        let mut guards = Guards::None;
        let database = self.client.database;
        let mut context =
            Context { keyspace, guards: &mut guards, turn: self.turn, database, waiting: Waiting::Never };
        let spec = self.command.spec;
        let known = dispatch::hold(spec, Access::of(spec), None, &mut context, self.args);
        let result = inspect(&mut Keys::new(keyspace, &mut guards, self.args, database, known, self.turn));
        guards.release(keyspace, self.turn);
        result
    }
}
