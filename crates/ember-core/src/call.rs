//! A call of a data command: arguments in, changes under the shard locks, reply bytes out.

use ember_protocol::{Args, OwnedBatch, Reply};

use crate::error::CommandError;
use crate::keys::Keys;
use crate::keyspace::Keyspace;
use crate::turn::Turn;

/// Steps that take no longer than to have others take them.
const FEW_STEPS: usize = 256;

/// A change in place of this many times as many elements as a call may look at is made elsewhere: below that it takes less
/// time than the others would notice.
const CHANGED_FACTOR: usize = 2;

/// A change in place of fewer elements than this part of a value is made where it stands: a copy of all of them would take
/// longer for the client, and for waiting writers of the key, than other clients save.
const CHANGED_PART_MIN: usize = 32;

/// What a handler returns: done with its reply written, or an error with nothing written.
pub type CommandResult = Result<(), CommandError>;

/// A call whose keys' shards are locked.
pub struct Call<'c, 'k> {
    /// The arguments; 0 is the name, also when the command is a subcommand (then 1 is the subcommand's).
    pub args: Args<'c>,
    /// The keys.
    pub keys: Keys<'c, 'k>,
    /// Where the reply goes.
    pub reply: &'c mut Reply,
    /// Whether the call may wait for a change of its keys.
    pub waiting: Waiting,
}

impl Call<'_, '_> {
    /// How many elements, or steps that take about as long, the call may look at here. One that has to look at more, and
    /// that has changed nothing yet, is answered with [`Attempt::Offload`].
    #[inline]
    pub fn steps_max(&self) -> usize {
        self.waiting.steps_max(self.keys.turn)
    }

    /// Whether the call is to be answered with [`Attempt::Offload`] because it changes this many elements of a value of
    /// `len` in place. Elsewhere that is a change of a copy.
    #[inline]
    pub fn is_long_change(&self, changed: usize, len: usize) -> bool {
        changed > self.steps_max().saturating_mul(CHANGED_FACTOR) && len / CHANGED_PART_MIN <= changed
    }

    /// The same for a search among vectors. When those of this turn have taken as many steps as they may, it is of few, or
    /// others would wait for many short ones as for a long one. Who searches calls [`Turn::note_search`].
    pub fn search_steps_max(&self) -> usize {
        let steps_max = self.steps_max();
        let may_wait = self.waiting == Waiting::Allowed;
        if may_wait && self.keys.turn.search_steps_left == 0 { steps_max.min(FEW_STEPS) } else { steps_max }
    }
}

impl KeyspaceCall<'_> {
    /// As [`Call::steps_max`].
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

/// Whether a call may wait for a change of its keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// It may not, as in a transaction: it is answered as if its time were over.
    Never,
    /// The same, and it is a script's.
    InScript,
    /// It may.
    Allowed,
    /// It has waited, and is run again because one of its keys has changed.
    Retry,
}

/// What a handler of a command that may wait returns.
pub enum Attempt {
    /// The reply is written.
    Done,
    /// Nothing is written: the call is to be run again when one of its keys has changed. Only where that is allowed
    /// ([`Waiting`]).
    Wait(Wait),
    /// Nothing is written or changed: the call takes long ([`Call::steps_max`]), and is to be run on values that its keys
    /// lend it ([`crate::dispatch::loan`]). Only of a command that [`Run::may_be_long`].
    Offload,
    /// Nothing is written or changed: values are away that the call needs, [`Turn::lacking`]. It is to be run again
    /// when they are here. Only while [`Turn::checks_values`].
    Fetch,
}

/// How a call waits.
pub struct Wait {
    /// For how many ms; `None` is for ever.
    pub timeout_ms: Option<u64>,
    /// Writes the reply of a call that may not wait: in transactions and scripts. After a time-out the reply is
    /// [`Reply::null_array`], whatever the command.
    pub empty_reply: fn(&mut Reply),
    /// The call to run again, if not the same.
    pub instead: Option<OwnedBatch>,
}

/// What a handler of a command that may wait returns; an error ends the waiting.
pub type AttemptResult = Result<Attempt, CommandError>;

/// A call that concerns the keyspace as a whole; no lock is held.
pub struct KeyspaceCall<'c> {
    /// The arguments; 0 is the name.
    pub args: Args<'c>,
    /// All data.
    pub keyspace: &'c Keyspace,
    /// The number of the selected database.
    pub database: usize,
    /// The worker's state.
    pub turn: &'c mut Turn,
    /// Where the reply goes.
    pub reply: &'c mut Reply,
    /// Whether the call may be run elsewhere.
    pub waiting: Waiting,
}

/// What a call does while the locks of its keys are held.
pub type Locked<'c> = Box<dyn FnOnce(&mut Call<'_, '_>) -> CommandResult + 'c>;

/// How a data command is run.
#[derive(Clone, Copy, Debug)]
pub enum Run {
    /// With the shards of the keys in its specification locked.
    Keys(fn(&mut Call<'_, '_>) -> CommandResult),
    /// The same, after what takes a while and needs only the arguments: that is done before the shards are locked.
    Prepared(for<'c> fn(Args<'c>) -> Result<Locked<'c>, CommandError>),
    /// As `Keys`, and may take long: then it can be run elsewhere.
    Long(fn(&mut Call<'_, '_>) -> AttemptResult),
    /// As `Long`, for a command whose calls are nearly always short.
    KeysOrLong {
        /// Whether a call may take long, as far as its arguments tell; others run as those of `Keys`.
        long_if: fn(Args<'_>) -> bool,
        /// The handler.
        run: fn(&mut Call<'_, '_>) -> AttemptResult,
    },
    /// As `Long`, and may have to wait for a change of one of its keys.
    Blocking(fn(&mut Call<'_, '_>) -> AttemptResult),
    /// As `Long`; a call that touches keys which its arguments do not name runs with all shards locked.
    KeysOrAllShards {
        /// Whether a call does.
        all_shards_if: fn(Args<'_>) -> bool,
        /// The handler.
        run: fn(&mut Call<'_, '_>) -> AttemptResult,
    },
    /// With exclusive access to the keyspace: it touches keys that its arguments do not name.
    Exclusive(fn(&mut KeyspaceCall<'_>) -> CommandResult),
    /// Without any lock.
    Keyspace(fn(&mut KeyspaceCall<'_>) -> CommandResult),
    /// The same, and may take long: then it can be run elsewhere.
    LongKeyspace(fn(&mut KeyspaceCall<'_>) -> AttemptResult),
    /// Not at all: it has subcommands.
    Container,
}

impl Run {
    /// Whether a call may be answered with [`Attempt::Offload`].
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

    /// Whether a call runs on the keys in its arguments in a short time, so that any worker can run it for another.
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
