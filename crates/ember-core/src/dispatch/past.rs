//! Calls on past states: a read call runs on private shards that contain the past states of its keys, with the clock of
//! that time.

use ember_protocol::{Args, Reply};

use crate::call::{Call, CommandResult, DataCommand, Run, Waiting};
use crate::effects::capture::State;
use crate::error::CommandError;
use crate::keys::{Guards, Keys};
use crate::keyspace::Keyspace;
use crate::keyspace::shard::ShardData;
use crate::spec::Flags;
use crate::turn::{Settings, Turn};

/// Returns whether a call may run on past states: it reads keys that its arguments name, and its reply depends on
/// nothing else but the time.
pub fn may_read_past(command: &DataCommand, args: Args<'_>) -> bool {
    /// Commands whose replies also depend on the time, which is then the past time, and DUMP and OBJECT ENCODING, whose
    /// replies depend on the server's version.
    const TIMED: [&str; 6] = ["ttl", "pttl", "httl", "hpttl", "dump", "encoding"];
    let spec = &command.spec;
    let runs_on_keys = match command.run {
        Run::Keys(_) | Run::Prepared(_) | Run::Long(_) | Run::KeysOrLong { .. } => true,
        Run::KeysOrAllShards { all_shards_if, .. } => !all_shards_if(args),
        _ => false,
    };
    let is_timed = spec.flags.contains(Flags::READONLY) && TIMED.contains(&spec.name);
    runs_on_keys && (spec.is_deterministic_read() || is_timed) && spec.key_positions(args).next().is_some()
}

/// Runs a call for which [`may_read_past`] is true at Unix time `at_ms`. `states` are the states of the keys in its
/// arguments, in their order; none of them is unknown. O(bytes of the values), and the time of the call.
///
/// # Errors
/// Returns the errors of the handler, or an error if a value cannot be decoded.
pub fn run(
    command: &DataCommand,
    keyspace: &Keyspace,
    settings: &Settings,
    (database, at_ms): (usize, i64),
    args: Args<'_>,
    states: &[State],
    reply: &mut Reply,
) -> CommandResult {
    let mut turn = Turn::new(at_ms, 1);
    turn.settings = *settings;
    turn.keeps_expired = true;
    turn.no_touch = true;
    turn.reads_any_key = false;
    let mut shards: Vec<(usize, Box<ShardData>)> = Vec::new();
    for (arg, state) in command.spec.key_positions(args).zip(states) {
        let (name, hash) = (args.at(arg), keyspace.hash(args.at(arg)));
        let at = shards.binary_search_by_key(&hash.shard(), |&(shard, _)| shard).unwrap_or_else(|at| {
            shards.insert(at, (hash.shard(), Box::default()));
            at
        });
        let shard = &mut shards[at].1;
        if let State::Present(image) = state
            && shard.find(database, hash, name).is_none()
        {
            let stored = shard.insert_image(database, hash, name, image, &settings.encoding);
            stored.map_err(|error| CommandError::from(format!("ERR a past value is damaged: {error}")))?;
        }
    }
    let mut guards = Guards::Borrowed(shards);
    let known = (0, keyspace.hash(&[]));
    let handler = match command.run {
        Run::Keys(handler) => {
            let keys = Keys::new(keyspace, &mut guards, args, database, known, &mut turn);
            return handler(&mut Call { args, keys, reply, waiting: Waiting::Never });
        }
        Run::Prepared(prepare) => {
            let locked = prepare(args)?;
            let keys = Keys::new(keyspace, &mut guards, args, database, known, &mut turn);
            return locked(&mut Call { args, keys, reply, waiting: Waiting::Never });
        }
        Run::Long(handler)
        | Run::KeysOrLong { run: handler, .. }
        | Run::KeysOrAllShards { run: handler, .. } => handler,
        _ => unreachable!("other commands do not read the past"),
    };
    let keys = Keys::new(keyspace, &mut guards, args, database, known, &mut turn);
    handler(&mut Call { args, keys, reply, waiting: Waiting::Never }).map(|_| ())
}
