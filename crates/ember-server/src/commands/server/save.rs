//! SAVE and LASTSAVE: save the data set, and return the time of the last save.

use ember_persistence::full_path::without_directories;
use emberkv_core::error::CommandError;
use emberkv_core::spec::{Category, Command, Example, Flags, Group, Spec};

use crate::executor::session::{Execution, Outcome, ServerCommand};
use crate::snapshot::point_in_time::Purpose;
use crate::snapshot::saving;
use crate::snapshot::state::SnapshotState;

const SAVE: Spec = Spec {
    name: "save",
    summary: "Saves the data set to the file `dbfilename`; all other clients wait.",
    since: "1.0.0",
    group: Group::Server,
    complexity: "O(N) for N keys.",
    arity: 1,
    flags: Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::NO_ASYNC_LOADING).union(Flags::NO_MULTI),
    example: Example { given: &["SET hello world"], call: "SAVE", reply: "OK" },
    ..Spec::DEFAULT
};

pub(super) const COMMANDS: &[ServerCommand] = &[
    Command::new(
        SAVE,
        Some(|_| {
            Ok(Outcome::Continue(|execution| {
                save(execution)?;
                execution.reply.ok();
                Ok(Outcome::Done)
            }))
        }),
    ),
    Command::new(
        Spec {
            name: "lastsave",
            summary: "Returns the Unix time in seconds of the last successful save.",
            complexity: "O(1)",
            flags: Flags::LOADING.union(Flags::STALE).union(Flags::FAST),
            categories: Category::ADMIN.union(Category::DANGEROUS),
            tips: &["nondeterministic_output"],
            example: Example { given: &["SAVE"], call: "LASTSAVE", reply: "..." },
            ..SAVE
        },
        Some(|session| {
            session.reply.integer(SnapshotState::of(session.server).saved_s(session.server));
            Ok(Outcome::Done)
        }),
    ),
];

/// Saves the data set, with exclusive access.
///
/// # Errors
/// Returns the error of the disk.
fn save(execution: &mut Execution<'_>) -> Result<(), CommandError> {
    if SnapshotState::of(execution.executor.server).claims.purpose() == Some(Purpose::Save) {
        return Err("ERR Background save already in progress".into());
    }
    let saved = execution.executor.with_exclusive_access_for(execution.client.view.id, |executor, _| {
        executor.publish();
        saving::save(executor.server, &executor.config, &executor.turn)
    })?;
    saved.map_err(|error| {
        tracing::error!("SAVE failed: {error}");
        format!("ERR the data set could not be saved: {}", without_directories(&error)).into()
    })
}
