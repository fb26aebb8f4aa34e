//! WATCH.OPEN: watches any command that reads keys, with all options.

use std::time::Duration;

use ember_protocol::{Args, OwnedBatch};
use emberkv_core::call::DataCommand;
use emberkv_core::commands::FAMILIES;
use emberkv_core::commands::arguments::{integer, is_word};
use emberkv_core::error::CommandError;
use emberkv_core::spec::{Command, Example, KeyFlags, KeySpec, Spec};

use super::TEMPLATE;
use crate::clients::watchers::{Form, Pace};
use crate::executor::session::{Execution, Outcome, ServerCommand, SessionResult};
use crate::live_queries::opening::{self, Wish};

/// The maximum of option INTERVAL, the minimum time between two states of a query, in ms: one day.
const INTERVAL_MS_MAX: i64 = 24 * 3600 * 1000;

pub(super) const COMMANDS: &[ServerCommand] = &[Command::new(
    Spec {
        name: "watch.open",
        summary: "Watches a command: returns its result with a version, and sends each new result.",
        complexity: "That of the command.",
        arity: -4,
        keys: &[KeySpec::unknown(KeyFlags::RO.union(KeyFlags::ACCESS))],
        keys_of: Some(keys_of),
        syntax: "[SINCE version] [INTERVAL milliseconds] [EVERY] COMMAND command arg [arg ...]",
        example: Example { given: &[], call: "WATCH.OPEN INTERVAL 100 COMMAND GET price", reply: "..." },
        ..TEMPLATE
    },
    Some(|_| Ok(Outcome::Continue(open))),
)];

/// The options of WATCH.OPEN, which precede the watched command.
#[derive(Default)]
struct Options<'o> {
    pace: Pace,
    since: Option<&'o [u8]>,
    /// The index of the argument that is the name of the watched command.
    command_at: usize,
}

impl<'o> Options<'o> {
    fn parse(args: Args<'o>) -> Result<Options<'o>, CommandError> {
        let mut options = Options::default();
        let mut at = 1;
        while at < args.len() {
            let has_next = at + 1 < args.len();
            match () {
                () if is_word(args, at, "COMMAND") && has_next => {
                    options.command_at = at + 1;
                    return Ok(options);
                }
                () if is_word(args, at, "EVERY") => options.pace.sends_equal = true,
                () if is_word(args, at, "SINCE") && has_next => {
                    at += 1;
                    options.since = Some(args.at(at));
                }
                () if is_word(args, at, "INTERVAL") && has_next => {
                    at += 1;
                    let ms = integer(args, at)?;
                    if !(0..=INTERVAL_MS_MAX).contains(&ms) {
                        return Err(format!("ERR INTERVAL is 0 to {INTERVAL_MS_MAX} milliseconds").into());
                    }
                    options.pace.interval = Duration::from_millis(ms.unsigned_abs());
                }
                () => return Err(CommandError::Syntax),
            }
            at += 1;
        }
        Err(CommandError::Syntax)
    }
}

fn open(execution: &mut Execution<'_>) -> SessionResult {
    let args = execution.args;
    let Options { pace, since, command_at } = Options::parse(args)?;
    let mut call = OwnedBatch::new();
    call.append(args.skip(command_at));
    let database = execution.client.database;
    let wish = Wish { call: call.command(0), database, form: Form::Open, pace, since };
    opening::open(execution, &wish)
}

/// Returns the positions of the watched command's keys. Does not find a command under a name set by `rename-command`;
/// access to its keys is checked later, when the command is resolved.
fn keys_of(args: Args<'_>) -> Vec<usize> {
    let Ok(Options { command_at, .. }) = Options::parse(args) else { return Vec::new() };
    let is_it =
        |command: &&DataCommand| args.at(command_at).eq_ignore_ascii_case(command.spec.name.as_bytes());
    let mut commands = FAMILIES.iter().copied().flatten().copied().flatten();
    let Some(command) = commands.find(is_it) else { return Vec::new() };
    command.spec.key_positions(args.skip(command_at)).map(|at| at + command_at).collect()
}
