//! Decides which calls wait while commands are paused.

use ember_protocol::Args;
use ember_scripting::sha1;
use ember_scripting::shebang::{self, ScriptFlags};
use emberkv_core::spec::{Flags, Group};

use super::Executor;
use crate::catalogue::registry::Command;
use crate::clients::client::Client;

impl Executor {
    /// Returns whether a call waits for a pause to end.
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

    /// Returns whether a call may write, or must reach replicas for another reason.
    fn may_write(&self, command: &Command, args: Args<'_>) -> bool {
        let flags = command.spec.flags;
        flags.contains(Flags::WRITE)
            || (flags.contains(Flags::MAY_REPLICATE)
                && (command.spec.group != Group::Scripting || self.script_may_write(command, args)))
    }

    /// Returns whether the called script or function may write, according to its flags. If it does not exist, the call
    /// does not wait but fails.
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
