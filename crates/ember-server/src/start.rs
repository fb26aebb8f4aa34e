//! Startup and shutdown of the server: creates its parts from the configuration, runs them, and stops them.

mod announcement;

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use ember_config::{Config, ConfigHandle, RenameDirective, Store, notice_without_effect};
use ember_persistence::full_path::full_path;
use emberkv_core::keyspace::names::RecordKinds;
use emberkv_core::keyspace::{Keyspace, KeyspaceOptions};
use emberkv_core::reclaim;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;

use crate::acl::identity::Identity;
use crate::acl::selector::Grammar;
use crate::acl::users::Acl;
use crate::aof;
use crate::aof::service::Aof;
use crate::catalogue::registry::Registry;
use crate::clients::listener::Listener;
use crate::clients::listening::Listening;
use crate::clients::mailbox::{Mailbox, Message};
use crate::cluster;
use crate::cluster::bus::{Bus, Order, Prepared};
use crate::commands;
use crate::control_plane::{LastHour, Sockets};
use crate::defragmentation::ActiveDefrag;
use crate::executor::AfterEmptying;
use crate::executor::jobs::Jobs;
use crate::executor::linking::Links;
use crate::files::encryption::FileEncryption;
use crate::history::History;
use crate::history::subscriber::HistorySubscriber;
use crate::journal::Reader;
use crate::journal::stream::Subscriber;
use crate::live_queries::LiveQueries;
use crate::metrics::system_figures::LastFigures;
use crate::migration::Migrations;
use crate::replication::failover::stage::Failover;
use crate::replication::link::{Link, role};
use crate::replication::primary::{Primary, StreamSubscriber};
use crate::replication::shutdown::stage::Shutdown;
use crate::server::conditions::Condition;
use crate::server::services::Services;
use crate::server::{Parts, Server};
use crate::snapshot::background;
use crate::snapshot::emptying;
use crate::snapshot::saving;
use crate::snapshot::state::SnapshotState;
use crate::system::abort_on_panic::AbortOnPanic;
#[cfg(feature = "jemalloc")]
use crate::system::allocator;
use crate::system::clock::unix_ms;
use crate::system::driver::Driver;
use crate::system::heap;
#[cfg(feature = "jemalloc")]
use crate::system::huge_pages;
use crate::system::log::LogHandle;
use crate::system::oom_score;
use crate::system::open_files;
use crate::system::random_name::random_name;
use crate::system::supervisor;
#[cfg(target_os = "linux")]
use crate::system::time_slice;
use crate::system::{affinity, daemon, process_title};
use crate::tiers::records::Records;
use crate::tiers::{Tiers, demotion, memory_budget, reading};
use crate::tls::Tls;
use crate::worker::Worker;

/// The maximum time for which startup waits for the data set. A data set that loads faster is complete before the first
/// connection is served.
const LOADS_UNSEEN: Duration = Duration::from_millis(200);

/// The permissions of a data directory that the server creates: its files contain all data, also those that ACL users
/// may not read.
const DIRECTORY_MODE: u32 = 0o700;

/// The exit code after a second SIGINT or SIGTERM.
const EXIT_INTERRUPTED: i32 = 1;

/// Serves until SIGINT, SIGTERM or `SHUTDOWN`.
///
/// # Errors
/// Returns one line with the reason why the server cannot start. The line is also logged, if logging has started.
pub(crate) fn serve(handle: ConfigHandle) -> Result<(), String> {
    let config = handle.snapshot();
    outlive_file_size_limit()?;
    let created = enter(&config)?;
    let log = LogHandle::start(&config)?;
    if let Some(directory) = created {
        tracing::info!("created the data directory {directory}");
    }
    serve_with_log(handle, log).inspect_err(|error| tracing::error!("{error}"))
}

fn serve_with_log(handle: ConfigHandle, log: LogHandle) -> Result<(), String> {
    let config = handle.snapshot();
    daemon::detach().map_err(|error| format!("daemonize: cannot create a session: {error}"))?;
    announcement::process(handle.file());
    if let Err(error) = process_title::set(&config, handle.file()) {
        tracing::info!("set-proc-title: the title cannot be changed: {error}");
    }
    if let Some(notice) = notice_without_effect(&config) {
        tracing::warn!("{notice}");
    }
    // The affinity is set first, because threads inherit it and the number of workers depends on the available cores.
    affinity::keep_to(&config.server_cpulist, "server_cpulist");
    // A replica takes its role once its data are loaded.
    if let Err(error) = oom_score::apply(&config, || false) {
        tracing::warn!("oom-score-adj: {error}");
    }
    fit_open_files(&handle)?;
    let tls = Tls::new(&config)?;
    let encryption = FileEncryption::new(&config)?;
    let (slots, stored) =
        cluster::starting::open(&handle)?.map_or((None, None), |opened| (Some(opened.slots), opened.stored));
    let listeners = Listener::open_all(&config)?;
    announcement::listeners(&listeners);
    let control_sockets = Sockets::open(&config)?;
    let bus = match &slots {
        Some(slots) => Some(Prepared::open(&config, slots.view().topology.clone(), stored)?),
        None => None,
    };
    let workers = match config.shards {
        0 => thread::available_parallelism().map_or(1, usize::from),
        count => count,
    };
    let system = |error: io::Error| format!("the system provides no event queue: {error}");
    let drivers: Vec<Driver> =
        (0..workers).map(|_| Driver::new()).collect::<Result<_, _>>().map_err(system)?;
    let mailboxes = drivers.iter().map(|driver| Mailbox::new(driver.bell())).collect();
    let random = |error| format!("the system provides no random numbers: {error}");
    let mut kinds = RecordKinds::empty();
    kinds.set(RecordKinds::NAMES, config.store == Store::Btree);
    kinds.set(RecordKinds::SLOTS, slots.is_some());
    let options = KeyspaceOptions {
        databases: if slots.is_some() { config.cluster_databases } else { config.databases },
        hash_function: config.hash_function,
        now_ms: unix_ms(),
        records: kinds,
    };
    let keyspace = Keyspace::new(&options).map_err(random)?;
    let run_id = random_name().map_err(random)?;
    let (mut registry, handlers) = Registry::new(commands::FAMILIES);
    rename_commands(&mut registry, &config.renames)?;
    let handlers: &'static [_] = handlers.leak();
    let bio_cpulist = config.bio_cpulist.clone();
    #[cfg(feature = "jemalloc")]
    allocator::promise_zeros_on_growth();
    reclaim::prepare_thread(move || affinity::keep_to(&bio_cpulist, "bio_cpulist"));
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let records = Records::open(&config, &encryption)?;
    let history = History::open(&config, &encryption)?;
    let services = Services::default()
        .with(AfterEmptying(emptying::save_emptied))
        .with(Aof::default())
        .with(Bus::default())
        .with(SnapshotState::default())
        .with(Link::default())
        .with(Failover::default())
        .with(Shutdown::default())
        .with(ActiveDefrag::default())
        .with(Migrations::default())
        .with(Tiers::new(records))
        .with(history)
        .with(Jobs::new(processors))
        .with(Links::new(processors))
        .with(Listening::new(&listeners))
        .with(LiveQueries::default())
        .with(LastHour::default())
        .with(LastFigures::default())
        .with(Primary::new(workers, run_id.clone(), encryption.current().is_on()));
    let parts = Parts {
        config: handle,
        tls,
        encryption,
        keyspace,
        slots,
        mailboxes,
        registry,
        services,
        run_id,
        log,
    };
    let server = Server::new(parts);
    // The lock is taken before any file is read, and before the PID file of another process could be overwritten.
    server.data_lock.take_if_writing(&config)?;
    cluster::starting::save_first(&server)?;
    let _pid_file = PidFile::write(&config.pidfile);
    server.acl.load_at_start(&config.users, &config.aclfile, server.grammar())?;
    server.conditions.set(Condition::LOADING, true);
    // The server is leaked, so that threads and handlers can refer to it without reference counting.
    let server: &'static Server = Box::leak(Box::new(server));
    let needs_password = !Identity::unknown(&server.acl).user().needs_no_password();
    announcement::exposure(&config, &listeners, needs_password);
    announcement::files(&config);
    control_sockets.serve(server)?;
    if let Some(bus) = bus {
        bus.start(server)?;
    }
    watch_signals(server)?;
    server.startup_memory_bytes.store(heap::allocator().allocated, Ordering::Relaxed);
    #[cfg(feature = "jemalloc")]
    huge_pages::start(workers);
    if Tiers::of(server).is_on() {
        let threads = reading::threads(config.storage_io_threads);
        let started = memory_budget::start(server)
            .and_then(|()| reading::start(server, threads))
            .and_then(|()| demotion::start(server));
        started.map_err(|error| format!("cannot start a thread: {error}"))?;
    }
    tracing::info!("Server initialized: the data set is loaded next");
    let (sender, loaded) = channel();
    let loader = thread::Builder::new().name("loader".to_owned()).spawn(move || {
        let writer = load(server);
        // If loading has taken longer than the wait, the receiver no longer exists.
        let _ = sender.send(());
        writer
    });
    let loader = loader.map_err(|error| format!("cannot start a thread: {error}"))?;
    // Startup continues after the timeout, too: connections then wait for the workers, which reply `LOADING` to their
    // commands.
    let _ = loaded.recv_timeout(LOADS_UNSEEN);
    let mut listeners = Some(listeners);
    let mut threads = Vec::new();
    for (index, driver) in drivers.into_iter().enumerate() {
        let seed = getrandom::u64().map_err(random)?;
        let worker = Worker::new(server, index, driver, listeners.take().unwrap_or_default(), seed, handlers);
        let spawned = thread::Builder::new().name(format!("worker-{index}")).spawn(|| {
            let _guard = AbortOnPanic;
            #[cfg(target_os = "linux")]
            time_slice::shorten();
            worker.run();
        });
        threads.push(spawned.map_err(|error| format!("cannot start a worker thread: {error}"))?);
    }
    let writer = loader.join().map_err(|_| "loading ended with a panic".to_owned())??;
    Bus::of(server).order(Order::Loaded);
    tracing::info!(
        "Ready to accept connections: ember {}, port {}, {workers} workers, {} mode",
        ember_version::VERSION,
        config.port,
        if config.concurrent { "concurrent" } else { "sharded" },
    );
    supervisor::notify(config.supervised, supervisor::READY);
    server.wait_for_stop();
    supervisor::notify(config.supervised, supervisor::STOPPING);
    tracing::info!("stopping: connections are drained");
    for worker in &server.workers {
        worker.mailbox.send(Message::Stop);
    }
    for thread in threads {
        if thread.join().is_err() {
            return Err("a worker ended with a panic".to_owned());
        }
    }
    SnapshotState::of(server).background.give_up(server, Some(background::GIVE_UP_WAIT));
    aof::start::stop(server);
    if writer.join().is_err() {
        return Err("the AOF thread ended with a panic".to_owned());
    }
    saving::save_at_end(server)?;
    tracing::info!("ember is now ready to exit, bye bye...");
    Ok(())
}

/// Checks whether [`serve`] would start with this configuration, as far as possible without side effects: does not open
/// ports, does not read the data set, and removes the data directory again if it creates it.
///
/// # Errors
/// Returns a line for each mistake.
pub(crate) fn check(handle: &ConfigHandle) -> Result<(), String> {
    let config = handle.snapshot();
    let created = enter(&config)?;
    let (mut registry, _) = Registry::new(commands::FAMILIES);
    let renamed = rename_commands(&mut registry, &config.renames);
    let grammar = Grammar::of(&registry, &config);
    let users = Acl::new(grammar, b"").load_at_start(&config.users, &config.aclfile, grammar);
    let checks = [renamed, users, Tls::new(&config).map(drop), FileEncryption::new(&config).map(drop)];
    let node = cluster::starting::open(handle).map(drop);
    let mut mistakes: Vec<String> = checks.into_iter().chain([node]).filter_map(Result::err).collect();
    if let Some(directory) = created
        && let Err(error) = fs::remove_dir(&directory)
    {
        mistakes.push(format!("cannot remove '{directory}' after the check: {error}"));
    }
    if mistakes.is_empty() { Ok(()) } else { Err(mistakes.join("\n")) }
}

/// Makes the data directory the working directory. Creates it if it is missing. Missing parents are created only for
/// the directory of a store: a missing parent of `dir` is rather a typing error or a disk that is not mounted, and the
/// server would start without its data. Returns the full path of the directory if it was created.
fn enter(config: &Config) -> Result<Option<String>, String> {
    let directory = Path::new(&config.dir);
    let path = full_path(directory);
    let is_store = config.store != Store::None;
    let is_missing = !directory.exists();
    if is_missing
        && let Err(error) = DirBuilder::new().recursive(is_store).mode(DIRECTORY_MODE).create(directory)
    {
        let name = if is_store { "path" } else { "dir" };
        return Err(format!("cannot create {name} '{path}': {error}"));
    }
    std::env::set_current_dir(directory).map_err(|error| format!("cannot use dir '{path}': {error}"))?;
    Ok(is_missing.then_some(path))
}

/// Renames and removes commands as configured by the `rename-command` lines.
fn rename_commands(registry: &mut Registry, renames: &[RenameDirective]) -> Result<(), String> {
    let wrong = |rename: &RenameDirective, error| format!("{}: rename-command: {error}", rename.origin);
    let renamed = renames.iter().filter_map(|rename| {
        registry.rename(&rename.from, &rename.to).err().map(|error| wrong(rename, error))
    });
    let mistakes: Vec<String> = renamed.collect();
    if mistakes.is_empty() { Ok(()) } else { Err(mistakes.join("\n")) }
}

/// Makes a write that exceeds the file size limit fail, like a write to a full disk. By default, the system's signal
/// SIGXFSZ would end the process; Rust's runtime handles only SIGPIPE.
fn outlive_file_size_limit() -> Result<(), String> {
    // A flag that is never read is a safe handler without effect; the failed write returns an error to its thread.
    let handled = signal_hook::flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)));
    handled.map(drop).map_err(|error| format!("cannot handle the signal SIGXFSZ: {error}"))
}

/// Loads the data set while workers reply `LOADING`, then enables commands. Returns the AOF writer's thread.
fn load(server: &'static Server) -> Result<JoinHandle<()>, String> {
    let loaded = aof::loading::load_at_start(server);
    if server.is_stopping() {
        // Commands are refused until the process exits.
        tracing::info!("loading is abandoned");
        return aof::start::start(server, None, Vec::new());
    }
    let aof = loaded.map_err(|error| format!("{error} (in {})", full_path(".")))?;
    let is_kept = aof.is_some();
    let mut subscribers: Vec<Box<dyn Subscriber>> = vec![Box::new(StreamSubscriber::new(server))];
    if let Some(history) = History::of(server) {
        history.start(server)?;
        subscribers.push(Box::new(HistorySubscriber::new(server, history)));
    }
    let writer = aof::start::start(server, aof, subscribers)?;
    server.gate.while_empty(|| {
        cluster::starting::take_slots_of_keys(server)?;
        server.journal.switch(Reader::Aof, is_kept);
        if let Some(history) = History::of(server) {
            history.begin(server);
        }
        let role = role::take_at_start(server);
        server.conditions.set(Condition::LOADING, false);
        role
    })?;
    Ok(writer)
}

/// Raises the limit of open files to the number that `maxclients` requires, or lowers `maxclients` to the limit.
fn fit_open_files(handle: &ConfigHandle) -> Result<(), String> {
    let config = handle.snapshot();
    let wanted = config.maxclients;
    let possible = open_files::clients_possible(wanted, config.streams_max());
    if possible < wanted {
        tracing::warn!(
            "the limit of open files allows no more than {possible} clients: maxclients is lowered to this \
             number"
        );
        handle
            .set(&[(b"maxclients", possible.to_string().as_bytes())])
            .map_err(|error| String::from_utf8_lossy(&error.text()).into_owned())?;
    }
    Ok(())
}

/// Handles signals: the first SIGINT or SIGTERM drains the connections, the second one ends the process immediately.
/// SIGHUP reloads the files of TLS and of encryption.
fn watch_signals(server: &'static Server) -> Result<(), String> {
    let mut signals = Signals::new([SIGHUP, SIGINT, SIGTERM])
        .map_err(|error| format!("cannot watch for signals: {error}"))?;
    let watch = move || {
        for signal in signals.forever() {
            if signal == SIGHUP {
                reload_files(server);
                continue;
            }
            if SnapshotState::of(server).is_ending.swap(true, Ordering::Relaxed) {
                tracing::warn!("signal {signal} again: exiting immediately");
                std::process::exit(EXIT_INTERRUPTED);
            }
            tracing::info!("signal {signal}");
            let config = server.config.snapshot();
            server.end_by_signal(match signal {
                SIGINT => config.shutdown_on_sigint,
                _ => config.shutdown_on_sigterm,
            });
        }
    };
    let spawned = thread::Builder::new().name("signals".to_owned()).spawn(watch);
    spawned.map(drop).map_err(|error| format!("cannot start the signal thread: {error}"))
}

/// Reloads the TLS files and the encryption keys. A concurrent CONFIG SET takes effect entirely before or after the
/// reload.
fn reload_files(server: &Server) {
    let mut reloaded = [Ok(()), Ok(())];
    let kept = server.config.set_if(&[], true, |_, config| {
        reloaded = [server.tls.reload(config), server.encryption.reload(config)];
        Ok(())
    });
    if let Err(error) = kept {
        tracing::warn!("SIGHUP: {}", String::from_utf8_lossy(&error.text()));
    }
    let files = ["the files of TLS, if there are any, are", "the keys of files, if there are any, are"];
    for (what, reloaded) in files.iter().zip(reloaded) {
        match reloaded {
            Ok(()) => tracing::info!("SIGHUP: {what} read again"),
            Err(error) => tracing::warn!("SIGHUP: {error}"),
        }
    }
}

/// The PID file, which is removed when this value is dropped.
struct PidFile<'p>(&'p str);

impl PidFile<'_> {
    /// Writes the PID file. If that fails, the server runs without a PID file, as Redis does.
    fn write(path: &str) -> Option<PidFile<'_>> {
        if path.is_empty() {
            return None;
        }
        match std::fs::write(path, format!("{}\n", std::process::id())) {
            Ok(()) => Some(PidFile(path)),
            Err(error) => {
                tracing::warn!("cannot write pidfile '{}': {error}", full_path(path));
                None
            }
        }
    }
}

impl Drop for PidFile<'_> {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_file(Path::new(self.0)) {
            tracing::debug!("cannot remove the pidfile: {error}");
        }
    }
}
