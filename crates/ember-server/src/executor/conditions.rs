//! What a command meets that does not run at once: data being loaded, a disk that fails, a snapshot that has to save first.

use ember_protocol::Args;
use emberkv_core::error::CommandError;
use emberkv_core::keys::Guards;
use emberkv_core::spec::Flags;

use super::Executor;
use crate::catalogue::registry::Command;
use crate::clients::client::Client;
use crate::server::conditions::{Condition, LOADING_ERROR};

/// What may change keys.
const CHANGES: Flags = Flags::WRITE.union(Flags::MAY_REPLICATE);

impl Executor {
    /// Whether a command of a client is to be tried again later.
    ///
    /// # Errors
    /// If it is refused.
    #[cold]
    pub(super) fn must_wait(
        &mut self,
        client: &Client,
        guards: &mut Guards<'static>,
        command: &Command,
        args: Args<'_>,
    ) -> Result<bool, CommandError> {
        let conditions = &self.server.conditions;
        let now = conditions.get();
        if now.contains(Condition::LOADING) && !command.spec.flags.contains(Flags::LOADING) {
            return Err(LOADING_ERROR.into());
        }
        if now.contains(Condition::PUSHES_BEHIND) {
            return Ok(true);
        }
        let queued = client.transaction.as_ref().filter(|_| command.spec.name == "exec");
        let flags = queued.map_or(command.spec.flags, |transaction| transaction.flags());
        if now.intersects(Condition::REFUSES_WRITES)
            && (flags.contains(Flags::WRITE) || command.spec.name == "ping")
            && let Some(error) = conditions.write_refusal()
        {
            return Err(error.into());
        }
        let runs_now = client.transaction.is_none() || command.spec.is_immediate;
        if now.contains(Condition::AOF_BEHIND) && flags.contains(Flags::WRITE) && runs_now {
            return Ok(true);
        }
        if !now.contains(Condition::SNAPSHOT) || !flags.intersects(CHANGES) || !runs_now {
            return Ok(false);
        }
        Ok(match queued {
            None => self.is_kept_waiting(guards, command, args),
            Some(transaction) => transaction.calls().any(|(index, args)| {
                let command = self.server.registry.get(index);
                command.spec.flags.intersects(CHANGES) && self.is_kept_waiting(guards, command, args)
            }),
        })
    }

    /// Whether one of the keys of a call cannot be changed before a snapshot has saved it.
    fn is_kept_waiting(&mut self, guards: &mut Guards<'static>, command: &Command, args: Args<'_>) -> bool {
        let keyspace = &self.server.keyspace;
        command.spec.key_positions(args).any(|arg| {
            let hash = keyspace.hash(args.at(arg));
            guards.hold_one(keyspace, &mut self.turn, hash);
            guards.data(hash.shard()).must_wait(hash, args.at(arg))
        })
    }

    /// Whether a command on one key may run on the worker that the key belongs to, which cannot let it wait.
    #[inline]
    pub(super) fn meets_nothing(
        &mut self,
        guards: &mut Guards<'static>,
        command: &Command,
        args: Args<'_>,
    ) -> bool {
        let now = self.server.conditions.get();
        now.is_empty() || self.meets_no(now, guards, command, args)
    }

    #[cold]
    fn meets_no(
        &mut self,
        now: Condition,
        guards: &mut Guards<'static>,
        command: &Command,
        args: Args<'_>,
    ) -> bool {
        let changes = command.spec.flags.intersects(CHANGES);
        let delays = Condition::REFUSES_WRITES | Condition::AOF_BEHIND;
        if now.intersects(Condition::LOADING | Condition::PUSHES_BEHIND)
            || (changes && now.intersects(delays))
        {
            return false;
        }
        !changes || !self.is_kept_waiting(guards, command, args)
    }
}
