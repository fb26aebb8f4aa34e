//! Evaluates the command of a live query on one consistent state of its keys, without counting a use of them.

use ember_protocol::{Args, Reply};

use super::{Access, Context, run};
use crate::call::{Attempt, AttemptResult, CommandResult, DataCommand};
use crate::effects::events::EventClass;
use crate::keys::Keys;

/// Runs a reading call with the locks of all its keys. The caller holds no lock before; afterwards the locks are pinned
/// in `context.guards`, and the caller releases them.
///
/// Expired data are removed first. Then `at_moment` is called; the keys do not change from then until the locks are
/// released. `bring` is called to fetch missing values. The call counts neither as a lookup nor as a use, and publishes
/// no event. A long-running call returns [`Attempt::Offload`] if `context.waiting` allows it.
///
/// # Errors
/// Returns the errors of the handler, which has written nothing in that case, and those of `bring`.
pub fn evaluate(
    command: &DataCommand,
    context: &mut Context<'_, '_>,
    args: Args<'_>,
    reply: &mut Reply,
    at_moment: impl FnOnce(),
    mut bring: impl FnMut(&mut Context<'_, '_>) -> CommandResult,
) -> AttemptResult {
    let Context { keyspace, guards, turn, database, .. } = context;
    let mut shards =
        command.spec.key_positions(args).map(|arg| keyspace.hash(args.at(arg)).shard()).collect();
    guards.pin(keyspace, turn, &mut shards);
    let mut keys = Keys::new(keyspace, guards, args, *database, (0, keyspace.hash(&[])), turn);
    command.spec.key_positions(args).for_each(|arg| keys.expire(arg));
    at_moment();
    let (hits, misses) = (turn.counters.hits, turn.counters.misses);
    let classes = std::mem::replace(&mut turn.notices.classes, EventClass::empty());
    let no_touch = std::mem::replace(&mut turn.no_touch, true);
    let result = loop {
        let attempt = run(command, Access::of(&command.spec), None, context, args, reply);
        if !matches!(attempt, Ok(Attempt::Fetch)) {
            break attempt;
        }
        if let Err(error) = bring(context) {
            break Err(error);
        }
    };
    let turn = &mut *context.turn;
    (turn.counters.hits, turn.counters.misses) = (hits, misses);
    turn.notices.classes = classes;
    turn.no_touch = no_touch;
    result
}
