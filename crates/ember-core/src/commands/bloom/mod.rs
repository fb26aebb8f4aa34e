//! Bloom filter commands.

mod bf_add;
mod bf_card;
mod bf_debug;
mod bf_exists;
mod bf_info;
mod bf_insert;
mod bf_reserve;
mod bf_scandump;

use ember_protocol::number;

use super::sketch::{self, NOT_FOUND};
use crate::call::{Call, CommandResult, DataCommand};
use crate::effects::events::Event;
use crate::error::CommandError;
use crate::keys::Edited;
use crate::turn::Turn;
use crate::types::Collection;
use crate::types::sketches::Bloom;
use crate::types::sketches::bloom::{FORCE_64, NO_ROUND, NO_SCALING, NotAdded};

/// The commands of this family, one list per file.
pub(super) const COMMANDS: &[&[DataCommand]] = &[
    bf_add::COMMANDS,
    bf_card::COMMANDS,
    bf_debug::COMMANDS,
    bf_exists::COMMANDS,
    bf_info::COMMANDS,
    bf_insert::COMMANDS,
    bf_reserve::COMMANDS,
    bf_scandump::COMMANDS,
];

/// The parameters of a new filter.
#[derive(Clone, Copy)]
struct Creation {
    error: f64,
    capacity: u64,
    expansion: u32,
    is_scaling: bool,
}

impl Creation {
    /// The parameters of a filter that a command other than BF.RESERVE creates.
    const DEFAULT: Creation = Creation { error: 0.01, capacity: 100, expansion: 2, is_scaling: true };

    /// Returns the new filter.
    fn create(&self, turn: &Turn) -> Result<Bloom, CommandError> {
        let options = FORCE_64 | NO_ROUND | if self.is_scaling { 0 } else { NO_SCALING };
        let filter = Bloom::new(self.capacity, self.error, options, self.expansion);
        let filter = filter.map_err(|_| "ERR could not create filter")?;
        sketch::check_memory(turn, usize::try_from(filter.reported_bytes()).unwrap_or(usize::MAX))?;
        Ok(filter)
    }
}

/// Parses a factor by which a filter grows.
fn expansion(bytes: &[u8]) -> Option<u32> {
    number::parse_i64(bytes).and_then(|number| u32::try_from(number).ok())
}

const FULL: &str = "ERR non scaling filter is full";
const TOO_LARGE: &str = "ERR problem inserting into filter";

/// Adds the arguments from `first` on to the filter, which is created if it is missing and `creation` is given; `event`
/// is the name of the command. Replies with an array if `is_multi`.
fn insert(
    call: &mut Call<'_, '_>,
    first: usize,
    creation: Option<Creation>,
    is_multi: bool,
    event: &'static str,
) -> CommandResult {
    let args = call.args;
    let is_new = !call.keys.key(1).exists();
    let created = match creation {
        Some(creation) if is_new => Some(creation.create(call.keys.turn)?),
        None if is_new => return Err(NOT_FOUND.into()),
        _ => None,
    };
    let mut key = call.keys.key(1);
    let results = key.edit_or_create(Event::module(event), |filter: &mut Bloom| {
        if let Some(created) = created {
            *filter = created;
        }
        let mut results = Vec::with_capacity(args.len() - first);
        for arg in first..args.len() {
            results.push(filter.add(args.at(arg)));
            if results.last() == Some(&Err(NotAdded::Full)) {
                break;
            }
        }
        Edited { is_change: is_new || results.contains(&Ok(true)), result: results }
    })?;
    if let Some(Creation { error, capacity, expansion, is_scaling }) = creation.filter(|_| is_new) {
        key.journal("BF.RESERVE", |words| {
            let mut text = Vec::new();
            number::write_f64(&mut text, error);
            words.word(&text).integer(capacity);
            match is_scaling {
                true => words.word(b"EXPANSION").integer(expansion),
                false => words.word(b"NONSCALING"),
            };
        });
        key.journal("BF.MADD", |words| (first..args.len()).for_each(|arg| _ = words.word(args.at(arg))));
    }
    if is_multi {
        call.reply.array(results.result.len());
    }
    for result in results.result {
        match result {
            Ok(is_added) => call.reply.boolean(is_added),
            Err(error) => {
                let text = if error == NotAdded::Full { FULL } else { TOO_LARGE };
                if !is_multi {
                    return Err(text.into());
                }
                call.reply.error(text);
            }
        }
    }
    Ok(())
}

/// Returns the number of bytes of the filter in argument 1; 0 if there is none.
fn bytes_of(call: &Call<'_, '_>) -> usize {
    let filter = call.keys.value::<Bloom>(1).ok().flatten().filter(|filter| !filter.is_vacant());
    filter.map_or(0, |filter| usize::try_from(filter.reported_bytes()).unwrap_or(usize::MAX))
}
