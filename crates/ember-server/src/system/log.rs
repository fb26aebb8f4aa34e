//! The log: its destinations, and the level and format of its lines, which CONFIG SET can change.

use std::fs::OpenOptions;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};

use ember_config::{Config, LogLevel};
use ember_persistence::full_path::full_path;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Registry, fmt, reload};

use super::log_line::{LineForm, Lines};
use super::syslog::{self, Syslog};

/// A handle that changes the level and format of the process's log.
pub(crate) struct LogHandle {
    level: reload::Handle<LevelFilter, Registry>,
    lines: Arc<LineForm>,
}

impl LogHandle {
    /// Starts the log according to `config`: to standard output or appended to a file, and additionally to the log
    /// daemon if enabled.
    ///
    /// # Errors
    /// Returns one line that names the file that cannot be opened, or the parameter.
    pub(crate) fn start(config: &Config) -> Result<LogHandle, String> {
        let (filter, handle) = reload::Layer::new(filter_of(config.loglevel));
        let lines = Arc::new(LineForm::default());
        lines.set(config);
        let format = fmt::layer().with_ansi(false).event_format(Lines(Arc::clone(&lines)));
        let (syslog, problem) = open_syslog(config)?;
        // The daemon adds the time, and the syslog protocol transmits the level.
        let bare = || fmt::layer().with_target(false).with_ansi(false).with_level(false).without_time();
        let registry =
            tracing_subscriber::registry().with(filter).with(syslog.map(|syslog| bare().with_writer(syslog)));
        if config.logfile.is_empty() {
            registry.with(format.with_writer(io::stdout)).init();
        } else {
            let file = OpenOptions::new().create(true).append(true).open(&config.logfile);
            let file = file
                .map_err(|error| format!("cannot open logfile '{}': {error}", full_path(&config.logfile)))?;
            registry.with(format.with_writer(Mutex::new(file))).init();
        }
        if let Some(error) = problem {
            tracing::warn!("syslog-enabled: no log daemon listens at {}: {error}", syslog::SOCKET);
        }
        Ok(LogHandle { level: handle, lines })
    }

    /// Sets the level and the format of lines according to `config`.
    pub(crate) fn set(&self, config: &Config) {
        self.lines.set(config);
        let filter = filter_of(config.loglevel);
        if self.level.with_current(|current| *current == filter).unwrap_or(true) {
            return;
        }
        if let Err(error) = self.level.reload(filter) {
            tracing::error!("the log's level cannot be changed: {error}");
        }
    }
}

/// Opens the connection to the log daemon if it is enabled. Also returns the reason if the daemon does not receive
/// lines now.
fn open_syslog(config: &Config) -> Result<(Option<Syslog<'static>>, Option<io::Error>), String> {
    if !config.syslog_enabled {
        return Ok((None, None));
    }
    let syslog =
        Syslog::new(Path::new(syslog::SOCKET), config.syslog_facility.number(), &config.syslog_ident);
    let syslog = syslog.map_err(|error| format!("syslog-enabled: {error}"))?;
    let problem = syslog.probe().err();
    Ok((Some(syslog), problem))
}

fn filter_of(level: LogLevel) -> LevelFilter {
    match level {
        // Redis's `verbose` is between its `debug` and `notice`.
        LogLevel::Debug => LevelFilter::TRACE,
        LogLevel::Verbose => LevelFilter::DEBUG,
        LogLevel::Notice => LevelFilter::INFO,
        LogLevel::Warning => LevelFilter::WARN,
        LogLevel::Nothing => LevelFilter::OFF,
    }
}
