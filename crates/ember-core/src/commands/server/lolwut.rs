//! LOLWUT, which replies with a random picture and the version.

use crate::algorithms::random::Random;
use crate::call::{CommandResult, DataCommand, KeyspaceCall, Run};
use crate::commands::arguments::{integer, is_word};
use crate::spec::{Command, Example, Flags, Group, Spec};

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "lolwut",
        summary: "Draws a picture and shows the version.",
        since: "5.0.0",
        group: Group::Server,
        complexity: "O(1)",
        arity: -1,
        flags: Flags::READONLY.union(Flags::FAST),
        syntax: "[VERSION version]",
        example: Example { given: &[], call: "LOLWUT VERSION 3", reply: "..." },
        ..Spec::DEFAULT
    },
    Run::Keyspace(lolwut),
)];

const COLUMNS: usize = 64;
const ROWS: usize = 18;

/// The characters of a fire, from the coolest to the hottest.
const HEAT: &[u8] = b"  ..::-=+*oxO#%@";

fn lolwut(call: &mut KeyspaceCall<'_>) -> CommandResult {
    let args = call.args;
    let version = if args.len() >= 3 && is_word(args, 1, "VERSION") { integer(args, 2)? } else { 1 };
    let reported = call.turn.settings.redis_version;
    let random = &mut call.turn.random;
    let mut picture = match version {
        1 => fire(random),
        2 => branches(random),
        _ => String::new(),
    };
    // Tests of client libraries search for "Redis ver.".
    picture
        .push_str(&format!("ember ver. {}, answers as Redis ver. {reported}\n", env!("CARGO_PKG_VERSION")));
    call.reply.verbatim(b"txt", picture.as_bytes());
    Ok(())
}

/// Draws a fire: the lowest row has random heat, which cools and drifts as it rises.
fn fire(random: &mut Random) -> String {
    let mut row: Vec<usize> = (0..COLUMNS)
        .map(|column| {
            let from_centre = column.abs_diff(COLUMNS / 2);
            (HEAT.len() + 6).saturating_sub(from_centre / 3 + random.below(7))
        })
        .collect();
    let mut rows = Vec::with_capacity(ROWS);
    for _ in 0..ROWS {
        rows.push(row.iter().map(|&heat| char::from(HEAT[heat.min(HEAT.len() - 1)])).collect::<String>());
        row = (0..COLUMNS)
            .map(|column| {
                let from = (column + random.below(3)).saturating_sub(1).min(COLUMNS - 1);
                row[from].saturating_sub(random.below(3))
            })
            .collect();
    }
    rows.iter().rev().map(|row| format!("{}\n", row.trim_end())).collect()
}

/// Draws the rows of a cellular automaton that starts with one cell (S. Wolfram, "Statistical mechanics of cellular
/// automata", 1983). The rule is one of those that draw branches.
fn branches(random: &mut Random) -> String {
    const RULES: [u8; 5] = [30, 45, 90, 110, 150];
    let rule = RULES[random.below(RULES.len())];
    let mut cells = [false; COLUMNS];
    cells[COLUMNS / 2] = true;
    let mut picture = format!("rule {rule}\n");
    for _ in 0..ROWS {
        let row: String = cells.iter().map(|&is_alive| if is_alive { '#' } else { ' ' }).collect();
        picture.push_str(row.trim_end());
        picture.push('\n');
        let at = |index: usize| u8::from(cells[index % COLUMNS]);
        cells = std::array::from_fn(|index| {
            let seen = at(index + COLUMNS - 1) << 2 | at(index) << 1 | at(index + 1);
            rule >> seen & 1 == 1
        });
    }
    picture
}
