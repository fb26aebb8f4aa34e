//! Which calls CLIENT PAUSE holds back.

use ember_protocol::Args;
use ember_scripting::sha1;
use ember_scripting::shebang::{self, ScriptFlags};
use emberkv_core::spec::{Flags, Group};

use super::Executor;
use crate::catalogue::registry::Command;
use crate::clients::client::Client;

impl Executor {
    /// Whether a call waits for a pause to end.
    #[inline]
    pub(super) fn is_paused(&self, client: &Client, command: &Command, args: Args<'_>) -> bool {
        self.server.pause.holds(self.turn.now_ms, true) && self.is_held_back(client, command, args)
    }

    #[cold]
    fn is_held_back(&self, client: &Client, command: &Command, args: Args<'_>) -> bool {
        if client.primary.is_some() {
            return false;
        }
        let queued = client.transaction.as_ref().filter(|_| command.spec.name == "exec");
        self.server.pause.holds(self.turn.now_ms, false)
            || self.may_write(command, args)
            || queued.is_some_and(|transaction| {
                let mut calls = transaction.calls();
                calls.any(|(index, args)| self.may_write(self.server.registry.get(index), args))
            })
    }

    /// Whether a call may write, and replicas have to know.
    fn may_write(&self, command: &Command, args: Args<'_>) -> bool {
        let flags = command.spec.flags;
        flags.contains(Flags::WRITE)
            || (flags.contains(Flags::MAY_REPLICATE)
                && (command.spec.group != Group::Scripting || self.script_may_write(command, args)))
    }

    /// Whether the script or the function that is called may write, as it says itself. If there is none, the call fails
    /// without a wait.
    fn script_may_write(&self, command: &Command, args: Args<'_>) -> bool {
        let scripting = &self.server.scripting;
        let flags = match command.spec.name {
            "eval" => shebang::script_flags(args.at(1)).ok().map(|(flags, _)| flags),
            "evalsha" => {
                let script = sha1::parse(args.at(1)).and_then(|sha| scripting.scripts.get(&sha));
                script.map(|script| script.flags)
            }
            _ => {
                let libraries = scripting.libraries.snapshot();
                libraries.find(args.at(1)).map(|(_, declaration)| declaration.flags)
            }
        };
        flags.is_some_and(|flags| !flags.contains(ScriptFlags::NO_WRITES))
    }
}
