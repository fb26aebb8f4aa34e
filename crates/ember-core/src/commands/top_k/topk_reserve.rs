//! TOPK.RESERVE.

use ember_protocol::number;

use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::commands::sketch;
use crate::effects::events::Event;
use crate::error::CommandError;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::Collection;
use crate::types::sketches::TopK;
use crate::types::sketches::top_k::{DECAY_DEFAULT, DEPTH_DEFAULT, ITEMS_MAX, WIDTH_DEFAULT};

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "topk.reserve",
        summary: "Creates a sketch of the most frequent items.",
        since: "8.0.0",
        group: Group::TopK,
        complexity: "O(K) for K items.",
        arity: -3,
        flags: Flags::WRITE.union(Flags::DENYOOM),
        keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::INSERT))],
        syntax: "key topk [width depth decay]",
        example: Example { given: &[], call: "TOPK.RESERVE words 3", reply: "OK" },
        ..Spec::DEFAULT
    },
    Run::Keys(topk_reserve),
)];

fn topk_reserve(call: &mut Call<'_, '_>) -> CommandResult {
    let args = call.args;
    if ![3, 6].contains(&args.len()) {
        return Err(CommandError::WrongArity("topk.reserve".into()));
    }
    if call.keys.key(1).exists() {
        return Err("TopK: key already exists".into());
    }
    let dimension = |arg: usize, max: u32| {
        let number = number::parse_i64(args.at(arg)).and_then(|number| u32::try_from(number).ok());
        number.filter(|number| (1..=max).contains(number))
    };
    let items = dimension(2, ITEMS_MAX).ok_or("TopK: invalid k")?;
    let (mut width, mut depth, mut decay) = (WIDTH_DEFAULT, DEPTH_DEFAULT, DECAY_DEFAULT);
    if args.len() == 6 {
        width = dimension(3, u32::MAX).ok_or("TopK: invalid width")?;
        depth = dimension(4, u32::MAX).ok_or("TopK: invalid depth")?;
        decay = number::parse_f64(args.at(5))
            .filter(|&decay| decay > 0.0 && decay <= 1.0)
            .ok_or("TopK: invalid decay value. must be '<= 1' & '> 0'")?;
    }
    sketch::check_memory(call.keys.turn, TopK::place_bytes(items))?;
    let created = TopK::new(items, width, depth, decay).map_err(|_| "TopK: the sketch is too large")?;
    sketch::check_memory(call.keys.turn, created.memory_bytes().saturating_add(created.counters().len()))?;
    call.keys.key(1).edit_or_create(Event::module("topk.reserve"), |sketch: &mut TopK| *sketch = created)?;
    call.reply.ok();
    Ok(())
}
