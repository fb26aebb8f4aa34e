//! The log: where messages go, and the level that CONFIG SET changes.

use std::fs::OpenOptions;
use std::io;
use std::sync::Mutex;

use tracing::level_filters::LevelFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Registry, fmt, reload};

use crate::config::{Config, LogLevel};

/// Changes the level of the process's log.
pub(crate) struct LogHandle(reload::Handle<LevelFilter, Registry>);

impl LogHandle {
    /// Starts the log as `config` says: on the standard output, or behind what is in a file.
    ///
    /// # Errors
    /// One line that names the file which cannot be opened.
    pub(crate) fn start(config: &Config) -> Result<LogHandle, String> {
        let (filter, handle) = reload::Layer::new(filter_of(config.loglevel));
        let format = fmt::layer().with_target(false).with_ansi(false);
        let registry = tracing_subscriber::registry().with(filter);
        if config.logfile.is_empty() {
            registry.with(format.with_writer(io::stdout)).init();
        } else {
            let file = OpenOptions::new().create(true).append(true).open(&config.logfile);
            let file = file.map_err(|error| format!("cannot open logfile '{}': {error}", config.logfile))?;
            registry.with(format.with_writer(Mutex::new(file))).init();
        }
        Ok(LogHandle(handle))
    }

    /// Shows messages of this level and above from now on.
    pub(crate) fn set_level(&self, level: LogLevel) {
        let filter = filter_of(level);
        if self.0.with_current(|current| *current == filter).unwrap_or(true) {
            return;
        }
        if let Err(error) = self.0.reload(filter) {
            tracing::error!("the log's level cannot be changed: {error}");
        }
    }
}

fn filter_of(level: LogLevel) -> LevelFilter {
    match level {
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Verbose | LogLevel::Notice => LevelFilter::INFO,
        LogLevel::Warning => LevelFilter::WARN,
        LogLevel::Nothing => LevelFilter::OFF,
    }
}
