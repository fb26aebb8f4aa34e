//! Log messages at startup: the program, its configuration, its addresses, the files in the data directory, and whether
//! the server is accessible to the whole network.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use ember_config::Config;
use ember_persistence::full_path::full_path;

use crate::clients::listener::Listener;

/// Logs the version and the configuration file.
pub(super) fn process(file: Option<&Path>) {
    tracing::info!("ember {}, PID: {}", ember_version::SHOWN, std::process::id());
    match file {
        Some(file) => tracing::info!("configuration file {}", full_path(file)),
        None => {
            tracing::info!("no configuration file: using the defaults, the environment and the command line")
        }
    }
}

/// Logs the addresses on which the server accepts clients.
pub(super) fn listeners(listeners: &[Arc<Listener>]) {
    let shown = |is_tls: bool| {
        let chosen = listeners.iter().filter(|listener| listener.is_tls() == is_tls);
        chosen.map(|listener| listener.shown()).collect::<Vec<_>>().join(", ")
    };
    for (addresses, how) in [(shown(false), ""), (shown(true), " with TLS")] {
        if !addresses.is_empty() {
            tracing::info!("listening{how} on {addresses}");
        }
    }
}

/// Logs the files in the data directory, and whether the server reads them.
pub(super) fn files(config: &Config) {
    let has_rdb = fs::metadata(&config.dbfilename).is_ok_and(|file| file.is_file());
    let has_aof = fs::read_dir(&config.appenddirname).is_ok_and(|mut files| files.next().is_some());
    let rdb = || format!("the RDB file {}", config.dbfilename);
    let aof = || format!("the append-only file in {}", config.appenddirname);
    let found = match (has_rdb, has_aof) {
        (false, false) => "no data yet".to_owned(),
        (true, false) => rdb(),
        (false, true) => aof(),
        (true, true) => format!("{} and {}", rdb(), aof()),
    };
    tracing::info!("data directory {}: {found}", full_path("."));
    if has_aof && !config.appendonly {
        tracing::warn!("{} is not read: appendonly is no", aof());
    }
}

/// Warns if any client that can connect to this machine can read and change all data.
pub(super) fn exposure(config: &Config, listeners: &[Arc<Listener>], needs_password: bool) {
    let is_open =
        |listener: &&Arc<Listener>| listener.is_open_to_others() && !asks_for_certificate(config, listener);
    let open: Vec<String> = listeners.iter().filter(is_open).map(|listener| listener.shown()).collect();
    if let Some(warning) = warning(&open, config.protected_mode || needs_password) {
        tracing::warn!("{warning}");
    }
}

/// Returns a warning about addresses to which other machines can connect, unless access is restricted (`is_guarded`).
fn warning(open: &[String], is_guarded: bool) -> Option<String> {
    (!open.is_empty() && !is_guarded).then(|| {
        format!(
            "no password is set, protected-mode is no, and other machines can connect to {}: every client \
             that reaches these addresses can read and change all data. Set requirepass, or users with ACL, \
             or bind to 127.0.0.1",
            open.join(", ")
        )
    })
}

/// Returns whether the listener requires a client certificate that this server trusts.
fn asks_for_certificate(config: &Config, listener: &Listener) -> bool {
    listener.is_tls() && config.tls_auth_clients == ember_config::TlsAuthClients::Yes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_open_to_all_addresses_logs_a_warning() {
        let open = ["0.0.0.0:6379".to_owned()];
        assert!(warning(&open, false).unwrap().contains("can connect to 0.0.0.0:6379: every client"));
        assert_eq!((warning(&open, true), warning(&[], false)), (None, None));
    }
}
