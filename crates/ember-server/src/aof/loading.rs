//! Loading an AOF at startup or on request, and opening its files for writing.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use ember_config::Config;
use ember_persistence::aof::{AofDirectory, AofError, AofReader, AofWriter, Part, TornEnd};
use ember_persistence::encryption::Ending;
use ember_persistence::log_of_store;
use ember_persistence::origin::Origin;
use ember_persistence::rdb_file::Source;
use ember_persistence::repair::repair_command;
use ember_protocol::{Args, OwnedBatch, Protocol, Reply, number};
use ember_storage::stores::{EngineKind, Import};
use emberkv_core::dispatch::{Context, Waiting};
use emberkv_core::events::Errand;
use emberkv_core::keys::Guards;
use emberkv_core::turn::Turn;

use crate::aof::opening::OpenedFiles;
use crate::aof::service::{Aof, open};
use crate::aof::{importing, resuming};
use crate::catalogue::registry::Handler;
use crate::executor::Executor;
use crate::executor::linking::Links;
use crate::journal::Reader;
use crate::script_host::functions;
use crate::server::Server;
use crate::snapshot::loading::{self, Between, Present};
use crate::snapshot::point_in_time;
use crate::snapshot::saving;
use crate::snapshot::state::SnapshotState;
use crate::system::clock::unix_ms;
use crate::tiers::Tiers;

/// Interval of progress messages in the log.
const PROGRESS_EVERY: Duration = Duration::from_secs(5);

/// Loads the data set at startup: with `appendonly` from the AOF if there is one, otherwise from the RDB file. If the
/// AOF is enabled, returns its files for further writes; on a full disk they are returned unopened. Until the load
/// ends, workers reply LOADING.
///
/// # Errors
/// Returns one line with the error, its position and a remedy: a server must not start with half of its keys.
pub(crate) fn load_at_start(server: &'static Server) -> Result<Option<OpenedFiles>, String> {
    let config = server.config.snapshot();
    resuming::check_directory(server, &config)?;
    if let Some(engine) = config.store.engine() {
        return load_store(server, &config, engine).map(Some);
    }
    if !config.appendonly {
        loading::load_at_start(server, None)?;
        return Ok(None);
    }
    let mut directory = open(server, &config)?;
    let shown = |error: AofError| error.to_string();
    loading::log_removed(directory.remove_leftovers().map_err(shown)?);
    adopt_single(server, &config, &mut directory)?;
    if directory.exists() {
        return replay_and_continue(server, &config, directory).map(Some);
    }
    // The data of an existing RDB file are not lost when the AOF is first enabled: they become its base.
    loading::load_at_start(server, None)?;
    if SnapshotState::of(server).loaded.load(Ordering::Relaxed) == 0
        && server.scripting.libraries.snapshot().all().next().is_none()
    {
        return OpenedFiles::continue_files(directory, None).map(Some).map_err(shown);
    }
    let opened = match begin_with_loaded(server, &config, &mut directory) {
        Ok(writer) => Ok(OpenedFiles::Begun(directory, writer)),
        Err(error) => OpenedFiles::without_base(directory, error),
    };
    opened.map(Some).map_err(shown)
}

/// Begins an AOF whose base is the data loaded from an RDB file.
fn begin_with_loaded(
    server: &'static Server,
    config: &Config,
    directory: &mut AofDirectory,
) -> Result<AofWriter, AofError> {
    let (writer, rewrite) = directory.begin_replacement()?;
    let base = directory.begin_base(point_in_time::base_form(server, config))?;
    let mut turn = Turn::new(unix_ms(), 1);
    turn.settings.policy = config.maxmemory_policy;
    directory.write_base(&base, |writer| saving::write_all(server, &turn, true, writer))?;
    directory.finish_rewrite(rewrite.taken_at(unix_ms() / 1000), base)?;
    Ok(writer)
}

/// Makes the single AOF file of Redis before 7 the base of an AOF directory without files.
pub(super) fn adopt_single(
    server: &Server,
    config: &Config,
    directory: &mut AofDirectory,
) -> Result<(), String> {
    if !directory.exists() && server.disk.open_to_read(&directory.single_file()).is_ok() {
        directory.adopt().map_err(|error| error.to_string())?;
        tracing::info!("{} is now the base of an AOF in {}", config.appendfilename, config.appenddirname);
    }
    Ok(())
}

/// Loads all files of the AOF, and begins the next increment.
fn replay_and_continue(
    server: &'static Server,
    config: &Config,
    directory: AofDirectory,
) -> Result<OpenedFiles, String> {
    let torn = load_files(server, config, &directory, None)?;
    if let Some(torn) = torn {
        tracing::warn!(
            "the AOF has an incomplete end ({}): its last {} bytes are truncated",
            torn.what,
            torn.torn_bytes
        );
    }
    OpenedFiles::continue_files(directory, torn).map_err(|error| error.to_string())
}

/// Loads the keys of a store, and replays the records of the log that the store does not contain yet.
fn load_store(server: &'static Server, config: &Config, engine: EngineKind) -> Result<OpenedFiles, String> {
    let store = resuming::open(server, config, engine)?;
    let mut directory = open(server, config)?;
    loading::log_removed(directory.remove_leftovers().map_err(|error| error.to_string())?);
    if let Some(source) = importing::source(server, config, store, &mut directory)? {
        let (directory, writer) = importing::import(server, config, store, directory, source)?;
        return Ok(OpenedFiles::Begun(directory, writer));
    }
    let position = store.position();
    let next_increment = position.as_ref().map(|position| position.increment);
    let has_imported = position.is_some_and(|position| position.import == Import::Done);
    log_of_store::meet(next_increment, has_imported, &mut directory).map_err(|error| error.to_string())?;
    resuming::load(server, config, store)?;
    if directory.exists() {
        // Without a checkpoint, every startup would replay the same log again.
        Tiers::of(server).needs_checkpoint.store(true, Ordering::Relaxed);
        return replay_and_continue(server, config, directory);
    }
    OpenedFiles::continue_files(directory, None).map_err(|error| error.to_string())
}

/// The maximum time that a reload waits until the files contain all earlier writes.
const WRITTEN_WITHIN: Duration = Duration::from_secs(10);

/// Waits until the files contain all records, then replaces the keys and libraries in memory by the contents of the
/// files. The worker has exclusive access and holds no lock.
///
/// # Errors
/// Returns one line with the error and its position. If there are no files, a rewrite is running, or the disk refuses
/// writes, the keyspace is unchanged; otherwise it contains the keys before the invalid position.
pub(crate) fn reload(executor: &mut Executor) -> Result<(), String> {
    let (server, config) = (executor.server, Arc::clone(&executor.config));
    executor.publish();
    if Tiers::of(server).store().is_some() {
        return Err(
            "the data set is in a store, and the AOF contains only the changes since its last checkpoint"
                .to_owned(),
        );
    }
    if Aof::of(server).state.is_rewriting() {
        return Err("a rewrite of the AOF is in progress; try again when it has ended".to_owned());
    }
    if server.journal.is_read_by(Reader::Aof) {
        wait_until_written(server)?;
    }
    let directory = open(server, &config)?;
    if !directory.exists() {
        return Err(format!("there is no AOF in {}", config.appenddirname));
    }
    directory.check_sizes().map_err(|error| error.to_string())?;
    loading::empty(executor);
    if let Some(torn) = load_files(server, &config, &directory, None)? {
        tracing::warn!("the AOF has an incomplete end ({}), which is ignored", torn.what);
    }
    Ok(())
}

fn wait_until_written(server: &Server) -> Result<(), String> {
    let last = server.journal.last_number();
    let begun = Instant::now();
    while server.journal.released() < last {
        // Workers that left the gate earlier may publish their records only now, so the journal's thread must collect
        // them.
        server.journal.call_thread();
        if begun.elapsed() >= WRITTEN_WITHIN {
            return Err("the disk does not accept the pending writes; see the log".to_owned());
        }
        thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

/// Loads all files; returns the torn end of the last file, which must be cut off.
pub(super) fn load_files(
    server: &'static Server,
    config: &Config,
    directory: &AofDirectory,
    mut between: Option<Between<'_>>,
) -> Result<Option<TornEnd>, String> {
    let begun = Instant::now();
    directory.check_sizes().map_err(|error| format!("cannot load the data set: {error}"))?;
    let files = directory.live_files();
    let last_increment = directory.manifest().increments.len();
    let size = |path: &std::path::PathBuf| server.disk.open_to_read(path).and_then(|file| file.size());
    let loading = &SnapshotState::of(server).loading;
    loading.begin(files.iter().map(|path| size(path).unwrap_or(0)).sum());
    // The commands after the base remove each key that has expired, so expired keys are loaded.
    loading.keep_expired(true);
    let mut player = Player::new(server, config);
    let mut torn = None;
    for (number, path) in files.iter().enumerate() {
        let may_be_torn = number + 1 == files.len() && last_increment > 0;
        let ending = if may_be_torn { Ending::MayBeTorn } else { Ending::Whole };
        let begun = Instant::now();
        let before = player.commands;
        let between = between.as_mut().map(|between| &mut **between as Between<'_>);
        torn = load_file(server, config, path, ending, &mut player, between)?;
        tracing::info!(
            "loaded {}: {} commands in {:.3} seconds",
            path.display(),
            player.commands - before,
            begun.elapsed().as_secs_f64()
        );
    }
    if let (Some(torn), Some(file)) = (&torn, files.last())
        && !config.aof_load_truncated
    {
        return Err(format!(
            "{} at offset {}: {} bytes are torn: {}; aof-load-truncated no forbids truncating them: set it \
             to yes, or run `{}`",
            file.display(),
            torn.valid_to,
            torn.torn_bytes,
            torn.what,
            repair_command(file)
        ));
    }
    loading.set_origin(player.origin);
    if player.failed > 0 {
        tracing::warn!(
            "{} commands of the AOF failed; they may also have failed when they first ran",
            player.failed
        );
    }
    tracing::info!("loaded the AOF in {:.3} seconds", begun.elapsed().as_secs_f64());
    Ok(torn)
}

fn load_file(
    server: &'static Server,
    config: &Config,
    path: &Path,
    ending: Ending,
    player: &mut Player<'_>,
    mut between: Option<Between<'_>>,
) -> Result<Option<TornEnd>, String> {
    let shown = |error: &dyn std::fmt::Display| format!("cannot load the data set: {error}");
    let file = server.disk.open_to_read(path).map_err(|error| shown(&error))?;
    let total = file.size().map_err(|error| shown(&error))?;
    let loading = &SnapshotState::of(server).loading;
    let encryption = server.encryption();
    let opened = encryption.open(Arc::clone(&file), ending);
    let opened = opened.map_err(|error| shown(&error))?;
    server.encryption.warn_of_plain(&opened, path);
    let limits = config.encoding_limits();
    let split = AofReader::split(opened, path, limits, config.version_check());
    let source: Source<_> = match split.map_err(|error| shown(&error))? {
        Ok(mut rdb) => {
            let between = between.as_mut().map(|between| &mut **between as Between<'_>);
            loading::load_from(server, config, &mut rdb, path, Present::Refused, total, between)?;
            rdb.into_source()
        }
        Err(source) => source,
    };
    let mut reader = AofReader::new(source, path, ending);
    player.begin_file();
    let mut batch = OwnedBatch::new();
    let mut logged_at = Instant::now();
    loop {
        match reader.next(&mut batch).map_err(|error| shown(&error))? {
            Part::Unit => {
                player.play(&batch, path, reader.offset(), reader.is_checked())?;
                Tiers::of(server).wait_to_load(server);
                if let Some(between) = &mut between {
                    between()?;
                }
                if config.key_load_delay != 0 {
                    loading.record_read(reader.offset());
                    loading::delay_loading(server, batch.len() as u64);
                }
            }
            Part::Time(_) => {}
            Part::Origin(origin) => player.origin = Some(origin),
            Part::End => {
                loading.end_file(total);
                return Ok(reader.torn_end());
            }
        }
        if player.commands.is_multiple_of(PROGRESS_COMMANDS) {
            loading.record_read(reader.offset());
            if server.is_stopping() {
                return Err("loading is abandoned: the server is stopping".to_owned());
            }
            if logged_at.elapsed() >= PROGRESS_EVERY {
                logged_at = Instant::now();
                loading.log_progress(path);
            }
        }
    }
}

/// Number of commands between two checks whether a progress message is due.
const PROGRESS_COMMANDS: u64 = 4096;

/// The state for running the commands of an AOF on the keyspace.
struct Player<'c> {
    server: &'static Server,
    config: &'c Config,
    turn: Turn,
    guards: Guards<'static>,
    database: usize,
    reply: Reply,
    /// The number of commands that were run, and the number of those that failed.
    commands: u64,
    failed: u64,
    /// The position of the data in a replication stream, if a file contains one after the last command.
    origin: Option<Origin>,
}

impl<'c> Player<'c> {
    fn new(server: &'static Server, config: &'c Config) -> Player<'c> {
        let now_ms = unix_ms();
        let mut turn = Turn::new(now_ms, 1);
        turn.settings.policy = config.maxmemory_policy;
        turn.settings.string_bytes_max = usize::MAX;
        turn.settings.encoding = config.encoding_limits();
        turn.settings.links_vectors_later = true;
        turn.replay_at(now_ms);
        turn.checks_values = Tiers::of(server).is_on();
        let reply = Reply::new(Protocol::Resp2);
        let (guards, origin) = (Guards::None, None);
        Player { server, config, turn, guards, database: 0, reply, commands: 0, failed: 0, origin }
    }

    /// Selects database 0: each file starts there and selects other databases itself.
    fn begin_file(&mut self) {
        self.database = 0;
    }

    /// Runs commands that apply as a unit. Commands of a file that ember wrote succeed unless the file is damaged.
    fn play(&mut self, unit: &OwnedBatch, path: &Path, offset: u64, is_own: bool) -> Result<(), String> {
        self.origin = None;
        for number in 0..unit.len() {
            let args = unit.command(number);
            self.commands += 1;
            let Err((error, is_final)) = self.run(args) else { continue };
            let name = String::from_utf8_lossy(args.at(0));
            let text = format!("{} before offset {offset}: {name}: {error}", path.display());
            if is_final || is_own {
                return Err(format!("cannot load the data set: {text}; restore a backup"));
            }
            if self.failed == 0 {
                tracing::warn!("{text}");
            }
            self.failed += 1;
        }
        self.guards.release(&self.server.keyspace, &mut self.turn);
        self.server.keyspace.publish_bytes(std::mem::take(&mut self.turn.growth_bytes));
        // No client waits for a key yet.
        if !self.turn.notices.is_empty() {
            for (errand, database, key) in std::mem::take(&mut self.turn.notices).errands {
                if errand == Errand::Link {
                    Links::of(self.server).link_loaded(self.server, (database, key));
                }
            }
        }
        Ok(())
    }

    /// Runs a command; returns its error, and whether only a damaged file can cause that error.
    fn run(&mut self, args: Args<'_>) -> Result<(), (String, bool)> {
        let text =
            |error: &emberkv_core::error::CommandError| String::from_utf8_lossy(&error.text()).into_owned();
        let unresolved = |error| match text(&error) {
            text if text.starts_with("ERR unknown command") => {
                let name = String::from_utf8_lossy(args.at(0));
                format!("Unknown command '{name}' reading the append only file")
            }
            text => text,
        };
        let command =
            self.server.registry.resolve_in_file(args).map_err(|error| (unresolved(error), true))?;
        match command.handler {
            Handler::Data(data) => {
                let mut context = Context {
                    keyspace: &self.server.keyspace,
                    guards: &mut self.guards,
                    turn: &mut self.turn,
                    database: self.database,
                    waiting: Waiting::Never,
                };
                self.reply.clear();
                let call = (data, command.access);
                let result = Tiers::of(self.server).run_fetching(call, &mut context, args, &mut self.reply);
                result.map(drop).map_err(|error| (text(&error), false))
            }
            _ if command.full_name == "select" => {
                let database = number::parse_u64(args.at(1)).and_then(|number| number.try_into().ok());
                let exists = |database: &usize| *database < self.server.keyspace.databases();
                let wrong = || {
                    ("this database does not exist; set `databases` to its previous value".to_owned(), true)
                };
                self.database = database.filter(exists).ok_or_else(wrong)?;
                Ok(())
            }
            _ => match functions::replay(self.server, self.config, command, args) {
                Some(result) => result.map_err(|error| (text(&error), true)),
                None => {
                    Err(("this command cannot occur in an AOF of this server or of Redis 7".to_owned(), true))
                }
            },
        }
    }
}
