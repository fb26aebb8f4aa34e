//! Reloads the TLS files when they have changed (`tls-auto-reload-interval`).
//!
//! Checking the files may take long if they are on another machine, and so may reading the keys, so a separate thread
//! does both; at most one runs at a time.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::Worker;
use crate::server::Server;
use crate::system::abort_on_panic::AbortOnPanic;

/// Whether the checking thread runs.
static IS_CHECKING: AtomicBool = AtomicBool::new(false);

impl Worker {
    /// Starts a check of the TLS files, if one is due.
    pub(super) fn check_tls_files(&mut self) {
        let interval = Duration::from_secs(u64::from(self.executor.config.tls_auto_reload_interval));
        if interval.is_zero() || Instant::now() < self.checks_tls_at {
            return;
        }
        self.checks_tls_at = Instant::now() + interval;
        if IS_CHECKING.swap(true, Ordering::Relaxed) {
            return;
        }
        let server = self.server;
        let spawned = thread::Builder::new().name("tls-files".to_owned()).spawn(move || {
            let _guard = AbortOnPanic;
            reload_if_changed(server);
            IS_CHECKING.store(false, Ordering::Relaxed);
        });
        if let Err(error) = spawned {
            IS_CHECKING.store(false, Ordering::Relaxed);
            tracing::warn!("tls-auto-reload-interval: cannot start a thread: {error}");
        }
    }
}

/// Reloads the files if they have changed. Files that cannot be used are tried again after their next change, because a
/// certificate and its key are replaced one after the other.
fn reload_if_changed(server: &Server) {
    if !server.tls.has_new_files(&server.config.snapshot()) {
        return;
    }
    let mut reloaded = Ok(());
    // A concurrent CONFIG SET takes effect before or after the reload, not in between.
    let kept = server.config.set_if(&[], true, |_, config| {
        reloaded = server.tls.reload(config);
        Ok(())
    });
    match (kept, reloaded) {
        (Ok(()), Ok(())) => {
            tracing::info!("tls-auto-reload-interval: the TLS files have changed and are read again")
        }
        (Ok(()), Err(error)) => tracing::warn!("tls-auto-reload-interval: {error}"),
        (Err(error), _) => {
            tracing::warn!("tls-auto-reload-interval: {}", String::from_utf8_lossy(&error.text()));
        }
    }
}
