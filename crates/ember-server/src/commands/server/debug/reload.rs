//! DEBUG RELOAD and LOADAOF: replace the data set in memory by the data set in the files.
//!
//! Both have exclusive access. The loaded data are not journaled: if a RELOAD has changed the data set, the AOF is
//! rewritten.

use std::sync::atomic::Ordering;

use ember_persistence::full_path::without_directories;
use emberkv_core::commands::arguments::is_word;
use emberkv_core::error::CommandError;

use crate::aof;
use crate::aof::service::Aof;
use crate::executor::session::{Execution, Outcome, Session, SessionResult};
use crate::executor::{Executor, Section};
use crate::history::History;
use crate::journal::Reader;
use crate::snapshot::loading::{self, Present};
use crate::snapshot::point_in_time::Purpose;
use crate::snapshot::saving;
use crate::snapshot::state::SnapshotState;

/// The options of DEBUG RELOAD.
#[derive(Clone, Copy)]
struct Options {
    saves: bool,
    empties: bool,
    present: Present,
}

impl Options {
    fn parse(execution: &Execution<'_>) -> Result<Options, CommandError> {
        let mut options = Options { saves: true, empties: true, present: Present::Refused };
        for number in 2..execution.args.len() {
            match number {
                _ if is_word(execution.args, number, "MERGE") => options.present = Present::Replaced,
                _ if is_word(execution.args, number, "NOFLUSH") => options.empties = false,
                _ if is_word(execution.args, number, "NOSAVE") => options.saves = false,
                _ => {
                    let text = "ERR DEBUG RELOAD only supports the MERGE, NOFLUSH and NOSAVE options.";
                    return Err(text.into());
                }
            }
        }
        Ok(options)
    }

    /// Returns whether the reload may change the data set.
    fn changes_data(self) -> bool {
        !self.saves || !self.empties
    }
}

pub(super) fn reload(_: &mut Session<'_>) -> SessionResult {
    Ok(Outcome::Continue(|execution| {
        let options = Options::parse(execution)?;
        with_exclusive_access(execution, |executor| reload_with(executor, options))?;
        tracing::info!("the data set was reloaded by DEBUG RELOAD");
        execution.reply.ok();
        Ok(Outcome::Done)
    }))
}

pub(super) fn loadaof(_: &mut Session<'_>) -> SessionResult {
    Ok(Outcome::Continue(|execution| {
        with_exclusive_access(execution, |executor| {
            let loaded = aof::loading::reload(executor);
            executor.server.renew_queries();
            loaded.map_err(|error| {
                tracing::error!("DEBUG LOADAOF: {error}");
                format!("ERR Error trying to load the AOF files: {}", without_directories(&error)).into()
            })
        })?;
        tracing::info!("the AOF was reloaded by DEBUG LOADAOF");
        execution.reply.ok();
        Ok(Outcome::Done)
    }))
}

/// Runs `act` with exclusive access. Fails inside a transaction or script, whose exclusive access other calls share.
fn with_exclusive_access(
    execution: &mut Execution<'_>,
    act: impl FnOnce(&mut Executor) -> Result<(), CommandError>,
) -> Result<(), CommandError> {
    if execution.executor.section != Section::Shared {
        return Err("ERR the data set cannot be reloaded inside of a transaction or a script".into());
    }
    let client = execution.client.view.id;
    execution.executor.with_exclusive_access_for(client, |executor, _| {
        let result = act(executor);
        if let Some(history) = History::of(executor.server) {
            history.restart(executor.server);
        }
        result
    })?
}

fn reload_with(executor: &mut Executor, options: Options) -> Result<(), CommandError> {
    let server = executor.server;
    if options.saves {
        if SnapshotState::of(server).claims.purpose() == Some(Purpose::Save) {
            return Err("ERR Background save already in progress".into());
        }
        executor.publish();
        saving::save(server, &executor.config, &executor.turn).map_err(|error| {
            tracing::error!("DEBUG RELOAD: {error}");
            format!("ERR the data set could not be saved: {}", without_directories(&error))
        })?;
    }
    let loaded = loading::reload(executor, options.empties, options.present);
    server.renew_queries();
    if server.journal.is_read_by(Reader::Aof) && (options.changes_data() || loaded.is_err()) {
        Aof::of(server).state.is_rewrite_scheduled.store(true, Ordering::Relaxed);
    }
    loaded.map_err(|error| {
        tracing::error!("DEBUG RELOAD: {error}");
        format!("ERR Error trying to load the RDB dump: {}", without_directories(&error)).into()
    })
}
