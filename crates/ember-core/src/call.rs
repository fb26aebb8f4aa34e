//! A call of a data command: arguments in, changes under the shard locks, reply bytes out.

use ember_protocol::{Args, OwnedBatch, Reply};

use crate::error::CommandError;
use crate::keys::Keys;
use crate::keyspace::Keyspace;
use crate::turn::Turn;

/// The steps that a call may always process on the worker: offloading them would take at least as long.
const FEW_STEPS: usize = 256;

/// An in-place change of up to this multiple of a short call's steps is not offloaded: it is too short for other
/// clients to notice.
const CHANGED_FACTOR: usize = 2;

/// An in-place change of less than this fraction (1/32) of a value's elements is not offloaded: copying the whole value
/// would delay its client and waiting writers of the key for longer than it would spare other clients.
const CHANGED_PART_MIN: usize = 32;

/// The result of a handler: it has written its reply, or returns an error and has written nothing.
pub type CommandResult = Result<(), CommandError>;

/// A call whose keys' shards are locked.
pub struct Call<'c, 'k> {
    /// The arguments; argument 0 is the name of the command. In a call of a subcommand, argument 0 is the name of the
    /// container and argument 1 that of the subcommand.
    pub args: Args<'c>,
    /// The keys among the arguments.
    pub keys: Keys<'c, 'k>,
    /// The buffer for the reply.
    pub reply: &'c mut Reply,
    /// Whether the call may wait until one of its keys changes.
    pub waiting: Waiting,
}

impl Call<'_, '_> {
    /// Returns how many elements, or steps of about the same duration, the call may process under its locks. A call
    /// that needs more steps, and has changed nothing yet, returns [`Attempt::Offload`].
    #[inline]
    pub fn steps_max(&self) -> usize {
        self.waiting.steps_max(self.keys.turn)
    }

    /// Returns whether the call must return [`Attempt::Offload`] because it changes `changed` of a value's `len`
    /// elements in place. An offloaded call changes a copy.
    #[inline]
    pub fn is_long_change(&self, changed: usize, len: usize) -> bool {
        changed > self.steps_max().saturating_mul(CHANGED_FACTOR) && len / CHANGED_PART_MIN <= changed
    }

    /// Like [`Call::steps_max`], for vector searches. Once the searches of this turn have used up their steps, the
    /// limit is low: otherwise many short searches would block other clients as long as a long one. After its search,
    /// the caller calls [`Turn::count_search`].
    pub fn search_steps_max(&self) -> usize {
        let steps_max = self.steps_max();
        let may_wait = self.waiting == Waiting::Allowed;
        if may_wait && self.keys.turn.search_steps_left == 0 { steps_max.min(FEW_STEPS) } else { steps_max }
    }
}

impl KeyspaceCall<'_> {
    /// See [`Call::steps_max`].
    pub fn steps_max(&self) -> usize {
        self.waiting.steps_max(self.turn)
    }
}

impl Waiting {
    #[inline]
    fn steps_max(self, turn: &Turn) -> usize {
        match self {
            Waiting::Allowed => turn.settings.short_call_steps,
            Waiting::Never | Waiting::InScript | Waiting::Retry => usize::MAX,
        }
    }
}

/// Whether a call may wait until one of its keys changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// The call must not wait, as in a transaction: it replies as after a timeout.
    Never,
    /// The call must not wait, because a script makes it.
    InScript,
    /// The call may wait.
    Allowed,
    /// The call has waited and is run again because one of its keys has changed.
    Retry,
}

/// The result of a handler that may wait.
pub enum Attempt {
    /// The reply is written.
    Done,
    /// Nothing is written: the call must be run again when one of its keys has changed. Returned only if [`Waiting`]
    /// allows it.
    Wait(Wait),
    /// Nothing is written or changed: the call is long-running ([`Call::steps_max`]) and must be run on borrowed values
    /// ([`crate::dispatch::loan`]). Returned only by commands with [`Run::may_be_long`].
    Offload,
    /// Nothing is written or changed: values are missing ([`Turn::missing`]). The call must be run again when they are
    /// resident. Only while [`Turn::checks_values`].
    Fetch,
}

/// The ways in which a call may wait.
pub struct Wait {
    /// The timeout in ms; `None` means no timeout.
    pub timeout_ms: Option<u64>,
    /// Writes the reply of a call that must not wait because it is part of a transaction or script. After a timeout the
    /// reply is [`Reply::null_array`] for every command.
    pub empty_reply: fn(&mut Reply),
    /// The call to run again, if it differs from the original.
    pub instead: Option<OwnedBatch>,
}

/// The result of a handler that may wait; an error ends the wait.
pub type AttemptResult = Result<Attempt, CommandError>;

/// A call on the whole keyspace; no lock is held.
pub struct KeyspaceCall<'c> {
    /// The arguments; argument 0 is the name of the command.
    pub args: Args<'c>,
    /// The keyspace that the call accesses.
    pub keyspace: &'c Keyspace,
    /// The number of the selected database.
    pub database: usize,
    /// The state of the worker that runs the call.
    pub turn: &'c mut Turn,
    /// The buffer for the reply.
    pub reply: &'c mut Reply,
    /// Whether the call may be offloaded.
    pub waiting: Waiting,
}

/// The part of a call that runs while the locks of its keys are held.
pub type Locked<'c> = Box<dyn FnOnce(&mut Call<'_, '_>) -> CommandResult + 'c>;

/// The way in which a data command runs.
#[derive(Clone, Copy, Debug)]
pub enum Run {
    /// The handler runs while the shards of the call's keys are locked.
    Keys(fn(&mut Call<'_, '_>) -> CommandResult),
    /// Like `Keys`, but the work that needs only the arguments and takes long is done before the shards are locked.
    Prepared(for<'c> fn(Args<'c>) -> Result<Locked<'c>, CommandError>),
    /// Like `Keys`, but may be long-running and can then be offloaded.
    Long(fn(&mut Call<'_, '_>) -> AttemptResult),
    /// Like `Long`, for a command nearly all of whose calls are short.
    KeysOrLong {
        /// Returns whether a call may be long-running, according to its arguments; other calls run like `Keys`.
        long_if: fn(Args<'_>) -> bool,
        /// The handler.
        run: fn(&mut Call<'_, '_>) -> AttemptResult,
    },
    /// Like `Long`, and the call may wait until one of its keys changes.
    Blocking(fn(&mut Call<'_, '_>) -> AttemptResult),
    /// Like `Long`; a call that accesses keys that are not in its arguments runs with all shards locked.
    KeysOrAllShards {
        /// Returns whether a call accesses keys that are not in its arguments.
        all_shards_if: fn(Args<'_>) -> bool,
        /// The handler.
        run: fn(&mut Call<'_, '_>) -> AttemptResult,
    },
    /// The handler runs with exclusive access to the keyspace, because it accesses keys that are not in its arguments.
    Exclusive(fn(&mut KeyspaceCall<'_>) -> CommandResult),
    /// The handler runs without any lock.
    Keyspace(fn(&mut KeyspaceCall<'_>) -> CommandResult),
    /// Like `Keyspace`, but may be long-running and can then be offloaded.
    LongKeyspace(fn(&mut KeyspaceCall<'_>) -> AttemptResult),
    /// The command cannot be called: it only contains subcommands.
    Container,
}

impl Run {
    /// Returns whether a call may return [`Attempt::Offload`].
    pub fn may_be_long(self) -> bool {
        matches!(
            self,
            Run::Long(_)
                | Run::KeysOrLong { .. }
                | Run::KeysOrAllShards { .. }
                | Run::Blocking(_)
                | Run::LongKeyspace(_)
        )
    }

    /// Returns whether a call is short and runs on the keys in its arguments, so that any worker can run it on behalf
    /// of another one.
    #[inline]
    pub fn is_short(self, args: Args<'_>) -> bool {
        match self {
            Run::Keys(_) => true,
            Run::KeysOrLong { long_if, .. } => !long_if(args),
            _ => false,
        }
    }
}

/// A data command.
pub type DataCommand = crate::spec::Command<Run>;
