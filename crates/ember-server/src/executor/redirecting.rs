//! Calls whose keys are in slots that this cluster node does not serve are refused, mostly with the address of the node
//! that does.

use ember_protocol::Args;
use emberkv_core::error::CommandError;
use emberkv_core::keyspace::hash::KeyHash;

use super::Executor;
use crate::catalogue::registry::Command;
use crate::clients::client::{Client, SlotCaller};
use crate::clients::transaction::{Transaction, Watched};
use crate::server::slots::{Refusal, SlotCall, slots_of};

impl Executor {
    /// Checks that this node serves the slot of a client's call; for EXEC, of all queued calls. `hash` is the hash of the
    /// call's key, if it has exactly one and its hash is known.
    ///
    /// # Errors
    /// Returns the error with which the call is refused.
    #[inline]
    pub(super) fn check_slots_for(
        &self,
        client: &Client,
        command: &Command,
        hash: Option<KeyHash>,
        args: Args<'_>,
    ) -> Result<(), CommandError> {
        if client.primary.is_some() {
            return Ok(());
        }
        let caller = client.view.slot_caller();
        let queued = client.transaction.as_deref().filter(|_| command.spec.name == "exec");
        let checked = match queued {
            None => self.check_slots(caller, command, hash, args).map(drop),
            Some(queued) => self.check_queued_slots(caller, queued),
        };
        checked.map_err(Refusal::error)
    }

    /// Reads the clock: whether this cluster node may serve its slots from now on. On other servers, nothing happens.
    #[inline]
    pub(crate) fn refresh_lease(&mut self) {
        if let Some(slots) = &self.server.slots {
            self.has_lease = slots.has_lease();
        }
    }

    /// Checks that this node serves the slot of a call; returns the slot if there is one. On a server that is not a node
    /// of a cluster, there is none.
    ///
    /// # Errors
    /// Returns why this node does not run the call.
    #[inline]
    pub(crate) fn check_slots(
        &self,
        caller: SlotCaller,
        command: &Command,
        hash: Option<KeyHash>,
        args: Args<'_>,
    ) -> Result<Option<u16>, Refusal> {
        let Some(slots) = &self.server.slots else { return Ok(None) };
        match hash.map(KeyHash::slot) {
            Some(slot) if self.has_lease && slots.serves(slot) => Ok(Some(slot)),
            _ => {
                let call = SlotCall::of(caller, command, self.has_lease);
                slots.check(&self.config, call, slots_of(command, args))
            }
        }
    }

    fn check_queued_slots(&self, caller: SlotCaller, queued: &Transaction) -> Result<(), Refusal> {
        let Some(slots) = &self.server.slots else { return Ok(()) };
        let registry = &self.server.registry;
        let found = queued.calls().flat_map(|(index, args)| slots_of(registry.get(index), args));
        let call = SlotCall::of_queued(caller, queued.flags(), self.has_lease);
        slots.check(&self.config, call, found).map(drop)
    }

    /// Returns whether this node no longer has the data of a watched key, so that it does not learn of changes.
    pub(super) fn has_lost_watched(&self, watched: &Watched) -> bool {
        let Some(slots) = &self.server.slots else { return false };
        let mut names = watched.calls().flat_map(|(.., args)| args.iter().skip(1));
        names.any(|name| !slots.has_data_of(ember_cluster::slots::slot_of(name)))
    }
}
