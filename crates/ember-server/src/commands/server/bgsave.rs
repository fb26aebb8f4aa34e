//! BGSAVE: starts a save of the data set in the background.

use emberkv_core::commands::arguments::is_word;
use emberkv_core::error::CommandError;
use emberkv_core::spec::{Command, Example, Flags, Group, Spec};

use crate::executor::Section;
use crate::executor::session::{Execution, Outcome, ServerCommand, SessionResult};
use crate::snapshot::background::{Unbegun, begin_bgsave};
use crate::snapshot::point_in_time::Purpose;
use crate::snapshot::state::SnapshotState;

pub(super) const COMMANDS: &[ServerCommand] = &[Command::new(
    Spec {
        name: "bgsave",
        summary: "Saves the data set to the file `dbfilename` in the background.",
        since: "1.0.0",
        group: Group::Server,
        complexity: "O(1). The file takes O(N) for N keys in the background.",
        arity: -1,
        flags: Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::NO_ASYNC_LOADING),
        syntax: "[SCHEDULE]@3.2.2",
        history: &[("3.2.2", "`SCHEDULE`.")],
        example: Example { given: &["SET hello world"], call: "BGSAVE SCHEDULE", reply: "..." },
        ..Spec::DEFAULT
    },
    Some(|session| {
        let args = session.args;
        if args.len() > 2 || (args.len() == 2 && !is_word(args, 1, "SCHEDULE")) {
            return Err(CommandError::Syntax);
        }
        Ok(Outcome::Continue(bgsave))
    }),
)];

fn bgsave(execution: &mut Execution<'_>) -> SessionResult {
    let Execution { executor, args, reply, .. } = execution;
    let state = SnapshotState::of(executor.server);
    // In a transaction, the save is scheduled, so that the snapshot contains the state after the transaction.
    let taken = state.claims.purpose();
    if taken != Some(Purpose::Save) && executor.section != Section::Shared {
        state.background.schedule();
        reply.simple("Background saving scheduled");
        return Ok(Outcome::Done);
    }
    match begin_bgsave(executor) {
        Ok(()) => reply.simple("Background saving started"),
        Err(Unbegun::Taken(Purpose::Save)) => return Err("ERR Background save already in progress".into()),
        Err(Unbegun::Taken(Purpose::AofBase | Purpose::Sync)) if args.len() == 2 => {
            state.background.schedule();
            reply.simple("Background saving scheduled");
        }
        Err(Unbegun::Taken(Purpose::AofBase | Purpose::Sync)) => {
            return Err(
                "ERR Another child process is active (AOF?): can't BGSAVE right now. Use BGSAVE SCHEDULE in \
                        order to schedule a BGSAVE whenever possible."
                    .into(),
            );
        }
        Err(Unbegun::NoThread) => return Err("ERR".into()),
    }
    Ok(Outcome::Done)
}
