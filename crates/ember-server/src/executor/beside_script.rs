//! Beside a script: what a worker does with commands while a script that runs for long is alone with the keyspace.

use std::time::Duration;

use ember_protocol::{Args, Batch, Reply};
use emberkv_core::keys::Guards;
use emberkv_core::spec::{Flags, Group};

use super::{Executor, Flow, Progress};
use crate::acl;
use crate::client::Client;
use crate::registry::{Handler, is_http};
use crate::session::Outcome;

/// How long a worker waits outside the gate before it looks whether a script keeps it closed.
const GATE_PATIENCE: Duration = Duration::from_millis(10);

impl Executor {
    /// Goes inside the gate. False if a script keeps everyone out and has been doing so for long.
    #[inline]
    pub(crate) fn enter_gate(&mut self) -> bool {
        while !self.server.gate.try_enter(self.index, GATE_PATIENCE) {
            if self.server.scripting.running.is_busy() {
                return false;
            }
        }
        self.server.journal.attach(&mut self.turn.journal);
        true
    }

    /// Runs what may run beside a script of the commands of `batch` from number `start` on, and refuses the others.
    #[cold]
    pub(crate) fn run_beside_script(
        &mut self,
        client: &mut Client,
        batch: &Batch,
        input: &[u8],
        start: usize,
        reply: &mut Reply,
    ) -> Progress {
        // The script's own time goes on.
        let clock = self.clock;
        let mut progress = Progress::Done;
        for number in start..batch.len() {
            if let Flow::Close = self.execute_beside_script(client, batch.command(number, input), reply) {
                progress = Progress::Close;
                break;
            }
        }
        self.clock = clock;
        progress
    }

    fn execute_beside_script(&mut self, client: &mut Client, args: Args<'_>, reply: &mut Reply) -> Flow {
        let guards = &mut Guards::None;
        let command = match self.server.registry.resolve(args) {
            Ok(command) => command,
            Err(_) if is_http(args) => return Flow::Close,
            Err(error) => return self.refuse(client, guards, None, error, reply),
        };
        if !client.is_authenticated && !command.spec.flags.contains(Flags::NO_AUTH) {
            let error = "NOAUTH Authentication required.".into();
            return self.refuse(client, guards, Some(command), error, reply);
        }
        if let Err(error) = acl::authorize(client, command, args) {
            return self.refuse(client, guards, Some(command), error, reply);
        }
        // What watches keys or has a transaction open could come to touch the keyspace.
        let is_harmless = matches!(command.handler, Handler::Server(_))
            && command.spec.flags.contains(Flags::ALLOW_BUSY)
            && command.spec.group != Group::Transactions
            && client.transaction.is_none()
            && client.watched.is_none();
        if !is_harmless {
            // Also when the script has ended just now: this worker is not inside the gate.
            let error = self.server.scripting.running.busy_or_ended_error();
            return self.refuse(client, guards, Some(command), error, reply);
        }
        let mark = client.reply_mode.is_silent().then(|| reply.mark());
        let result = self.complete(command, None, client, guards, args, reply);
        let flow = if let Ok(Outcome::Close) = result { Flow::Close } else { Flow::Next };
        self.finish(command, result, args, Some(client), reply);
        self.apply_reply_mode(client, mark, reply);
        flow
    }
}
