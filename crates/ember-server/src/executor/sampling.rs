//! Sampling for HOTKEYS: one of `hotkeys-sampling` commands is sampled. All other commands cost one comparison per
//! batch.

use ember_protocol::{Args, Batch};
use emberkv_core::dispatch::Access as Locks;
use emberkv_core::keyspace::hash::KeyHash;
use emberkv_core::spec::{Flags, KeyFlags, Spec};

use super::Executor;
use super::preparing::Prepared;
use crate::clients::client::Client;
use crate::observability::hot_keys::{Access, Sample};

/// The number of commands until the next sampled one.
#[derive(Debug)]
pub(super) struct Sampling {
    /// One of this number of commands is sampled; 0 disables sampling.
    interval: u32,
    left: usize,
}

impl Sampling {
    /// A state in which no command is sampled.
    pub(super) const OFF: Sampling = Sampling { interval: 0, left: usize::MAX };

    /// Sets the sampling interval.
    pub(super) fn set_interval(&mut self, interval: u32) {
        if self.interval != interval {
            *self = Sampling { interval, left: if interval == 0 { usize::MAX } else { 0 } };
        }
    }

    /// Returns whether one of the next `count` commands must be sampled; if not, skips them.
    #[inline]
    fn is_due_within(&mut self, count: usize) -> bool {
        if self.left >= count {
            self.left -= count;
            return false;
        }
        true
    }
}

impl Executor {
    /// Advances past the batch that is about to run, beginning with command `start`, and samples its due commands. The
    /// batch is prepared.
    #[inline]
    pub(super) fn sample(&mut self, client: &Client, batch: &Batch, input: &[u8], start: usize) {
        if self.sampling.is_due_within(batch.len() - start) {
            self.sample_some(client, batch, input, start);
        }
    }

    #[inline(always)]
    fn sample_some(&mut self, client: &Client, batch: &Batch, input: &[u8], start: usize) {
        let interval = self.sampling.interval as usize;
        if interval == 0 {
            self.sampling.left = usize::MAX;
            return;
        }
        let mut at = start + self.sampling.left;
        while at < batch.len() {
            if client.is_authenticated {
                let (prepared, args) = (self.prepared[at - start], batch.command(at, input));
                match prepared {
                    Prepared { command: Some(command), hash: Some(hash), .. }
                        if command.spec.accepts(args.len()) =>
                    {
                        self.add_sample(client.database, command.spec, args, (0, 1), hash);
                    }
                    _ => self.sample_one(client.database, args),
                }
            }
            // The distance is random, with the interval as its mean, so that a periodic load cannot evade sampling.
            at += 1 + self.turn.random.below(2 * interval - 1);
        }
        self.sampling.left = at - batch.len();
    }

    /// Samples a command that does not have exactly one key.
    #[cold]
    fn sample_one(&mut self, database: usize, args: Args<'_>) {
        let Ok(command) = self.server.registry.resolve(args) else { return };
        let spec = command.spec;
        let count = spec.key_positions(args).count();
        if count == 0 {
            return;
        }
        let chosen = self.turn.random.below(count);
        let Some(key) = spec.key_positions(args).nth(chosen).and_then(|at| args.get(at)) else { return };
        self.add_sample(database, spec, args, (chosen, count), self.server.keyspace.hash(key));
    }

    /// Counts the access of a command to the key with number `chosen` of its `count` keys; it represents all accesses of
    /// one sampling interval.
    fn add_sample(
        &mut self,
        database: usize,
        spec: &Spec,
        args: Args<'_>,
        (chosen, count): (usize, usize),
        hash: KeyHash,
    ) {
        let Some(key) = spec.key_positions(args).nth(chosen).and_then(|at| args.get(at)) else { return };
        let is_read = spec.flags.contains(Flags::READONLY) || reads_key(spec, args, chosen);
        let weight = self.sampling.interval.saturating_mul(u32::try_from(count).unwrap_or(u32::MAX));
        let access = if is_read { Access::Read } else { Access::Write };
        let sample = Sample { access, database, key, hash, weight };
        self.server.workers[self.index].hot_keys.lock().add_sample(self.turn.now_ms, &sample);
    }
}

/// Returns whether a command that may write only reads its key with number `number`.
fn reads_key(spec: &Spec, args: Args<'_>, number: usize) -> bool {
    let flags = match Locks::of(spec) {
        Locks::One(_) => spec.keys.first().map(|keys| keys.flags),
        _ => spec.keys_with_flags(args).nth(number).map(|(_, flags)| flags),
    };
    flags.is_some_and(|flags| flags.contains(KeyFlags::RO))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_skipped_until_one_is_due() {
        let mut sampling = Sampling::OFF;
        assert!(!sampling.is_due_within(1_000_000));
        sampling.set_interval(64);
        assert!(sampling.is_due_within(1), "the first command is sampled");
        sampling.left = 10;
        assert!(!sampling.is_due_within(4) && !sampling.is_due_within(6));
        assert!(sampling.is_due_within(1));
        sampling.set_interval(64);
        assert_eq!(sampling.left, 0, "nothing changes");
        sampling.set_interval(0);
        assert!(!sampling.is_due_within(1));
    }
}
