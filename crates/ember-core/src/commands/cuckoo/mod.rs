//! Cuckoo filter commands.

mod cf_add;
mod cf_compact;
mod cf_debug;
mod cf_del;
mod cf_exists;
mod cf_info;
mod cf_insert;
mod cf_reserve;
mod cf_scandump;

use super::sketch::{self, NOT_FOUND};
use crate::call::{Call, CommandResult, DataCommand};
use crate::effects::events::Event;
use crate::error::CommandError;
use crate::keys::Edited;
use crate::turn::Turn;
use crate::types::sketches::Cuckoo;
use crate::types::sketches::cuckoo::{BUCKET_SIZE_DEFAULT, EXPANSION_DEFAULT, ITERATIONS_DEFAULT, NotAdded};

/// The commands of this family, one list per file.
pub(super) const COMMANDS: &[&[DataCommand]] = &[
    cf_add::COMMANDS,
    cf_compact::COMMANDS,
    cf_debug::COMMANDS,
    cf_del::COMMANDS,
    cf_exists::COMMANDS,
    cf_info::COMMANDS,
    cf_insert::COMMANDS,
    cf_reserve::COMMANDS,
    cf_scandump::COMMANDS,
];

/// The capacity of a filter that a command without capacity creates.
const CAPACITY_DEFAULT: u64 = 1024;

/// Creates a filter.
fn create(
    turn: &Turn,
    capacity: u64,
    bucket_size: u16,
    iterations: u16,
    expansion: u16,
) -> Result<Cuckoo, CommandError> {
    let filter = Cuckoo::new(capacity, bucket_size, iterations, expansion);
    let filter = filter.map_err(|_| "Couldn't create Cuckoo Filter")?;
    sketch::check_memory(turn, filter.bytes())?;
    Ok(filter)
}

/// The properties of a command that adds items.
#[derive(Clone, Copy)]
struct Insertion {
    /// The name of the command.
    event: &'static str,
    /// The capacity of the filter that is created if the key is missing; `None` if none is created.
    capacity: Option<u64>,
    /// Whether items that the filter seems to contain are skipped.
    is_unique: bool,
    /// Whether the reply is an array.
    is_multi: bool,
}

/// Adds the arguments from `first` on.
fn insert(call: &mut Call<'_, '_>, first: usize, insertion: Insertion) -> CommandResult {
    let Insertion { event, capacity, is_unique, is_multi } = insertion;
    let args = call.args;
    let is_new = !call.keys.key(1).exists();
    let created = match capacity {
        Some(capacity) if is_new => {
            let turn = &*call.keys.turn;
            Some(create(turn, capacity, BUCKET_SIZE_DEFAULT, ITERATIONS_DEFAULT, EXPANSION_DEFAULT)?)
        }
        None if is_new => return Err(NOT_FOUND.into()),
        _ => None,
    };
    let mut key = call.keys.key(1);
    if key.value::<Cuckoo>()?.is_some_and(Cuckoo::has_many_tables) {
        return Err("Maximum expansions reached".into());
    }
    let results = key.edit_or_create(Event::module(event), |filter: &mut Cuckoo| {
        if let Some(created) = created {
            *filter = created;
        }
        let results: Vec<_> = (first..args.len()).map(|arg| filter.add(args.at(arg), is_unique)).collect();
        Edited { is_change: is_new || results.contains(&Ok(())), result: results }
    })?;
    if let Some(capacity) = capacity.filter(|_| is_new) {
        key.journal("CF.RESERVE", |words| _ = words.integer(capacity));
        key.journal(if is_unique { "CF.INSERTNX" } else { "CF.INSERT" }, |words| {
            words.word(b"ITEMS");
            (first..args.len()).for_each(|arg| _ = words.word(args.at(arg)));
        });
    }
    if is_multi {
        call.reply.array(results.result.len());
    }
    // In RedisBloom, CF.INSERTNX replies with integers in RESP3, too.
    let is_boolean = !(is_unique && is_multi) && call.reply.is_resp3();
    for result in results.result {
        match result {
            Ok(()) if is_boolean => call.reply.boolean(true),
            Ok(()) => call.reply.integer(1),
            Err(NotAdded::Exists) if is_boolean => call.reply.boolean(false),
            Err(NotAdded::Exists) => call.reply.integer(0),
            Err(NotAdded::NoSpace) if !is_multi => return Err("Filter is full".into()),
            Err(NotAdded::NoSpace) if is_boolean => call.reply.boolean(false),
            Err(NotAdded::NoSpace) => call.reply.integer(-1),
            Err(NotAdded::TooLarge) if !is_multi => return Err("Memory allocation failure".into()),
            Err(NotAdded::TooLarge) => call.reply.error("Memory allocation failure"),
        }
    }
    Ok(())
}

/// Returns the number of bytes of the filter in argument 1; 0 if there is none.
fn bytes_of(call: &Call<'_, '_>) -> usize {
    call.keys.value::<Cuckoo>(1).ok().flatten().map_or(0, Cuckoo::bytes)
}
