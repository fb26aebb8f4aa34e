//! A call of a command that the server itself runs: about the connection, the configuration, the process.

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

/// What a call does to its connection once its reply is written.
pub(crate) enum Outcome {
    /// Nothing.
    Done,
    /// Closes it when all replies are sent.
    Close,
    /// Parks it; nothing is written.
    Wait(Box<Blocked>),
    /// Nothing yet, and nothing is written: the call goes on with the means to run other calls.
    Continue(fn(&mut Execution<'_>) -> SessionResult),
    /// Keeps it waiting; nothing is written or done, and the call is tried again later.
    Again,
    /// The same, until values are here that are away ([`Turn::lacking`]).
    Fetch,
}

/// A call that runs other calls: EXEC, EVAL.
pub(crate) struct Execution<'c> {
    /// What runs calls.
    pub(crate) executor: &'c mut Executor,
    /// Who calls.
    pub(crate) client: &'c mut Client,
    /// What is called.
    pub(crate) command: &'static Command,
    /// The arguments; 0 is the name.
    pub(crate) args: Args<'c>,
    /// Where the reply goes.
    pub(crate) reply: &'c mut Reply,
}

impl Execution<'_> {
    /// Shows monitors the call, before those that it makes itself.
    pub(crate) fn show_to_monitors(&self) {
        let Executor { server, config, .. } = &*self.executor;
        if !server.monitors.is_empty() {
            let limit = &config.client_output_buffer_limit.pubsub;
            server.show_to_monitors(self.client, self.command, self.args, limit, MonitoredCaller::Client);
        }
    }
}

/// What a server command's handler returns: its reply is written, or an error and nothing is written.
pub(crate) type SessionResult = Result<Outcome, CommandError>;

/// What runs a server command.
pub(crate) type ServerHandler = fn(&mut Session<'_>) -> SessionResult;

/// A server command; a container has no handler.
pub(crate) type ServerCommand = emberkv_core::spec::Command<Option<ServerHandler>>;

/// A call of a server command. No shard lock is held.
pub(crate) struct Session<'c> {
    /// The arguments; 0 is the name.
    pub(crate) args: Args<'c>,
    /// What is called.
    pub(crate) command: &'static Command,
    /// The process.
    pub(crate) server: &'static Server,
    /// Who calls.
    pub(crate) client: &'c mut Client,
    /// The worker's state.
    pub(crate) turn: &'c mut Turn,
    /// Where the reply goes.
    pub(crate) reply: &'c mut Reply,
}

impl Session<'_> {
    /// Runs `look` with the shards of the keys locked that the command's specification names.
    pub(crate) fn with_keys<R>(&mut self, look: impl FnOnce(&mut Keys<'_, 'static>) -> R) -> R {
        let keyspace = &self.server.keyspace;
        let mut guards = Guards::None;
        let database = self.client.database;
        let mut context =
            Context { keyspace, guards: &mut guards, turn: self.turn, database, waiting: Waiting::Never };
        let spec = self.command.spec;
        let known = dispatch::hold(spec, Access::of(spec), None, &mut context, self.args);
        let result = look(&mut Keys::new(keyspace, &mut guards, self.args, database, known, self.turn));
        guards.release(keyspace, self.turn);
        result
    }
}
