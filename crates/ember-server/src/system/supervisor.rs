//! Notifications to a supervisor about the server's state: to systemd by a datagram to the socket in `NOTIFY_SOCKET`
//! (sd_notify(3)); to upstart by stopping the process when it is ready (`expect stop`), after which upstart continues
//! it.

use std::env;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixDatagram;

use ember_config::Supervised;

/// The message that the server is ready.
pub(crate) const READY: &str = "READY=1";

/// The message that the server is shutting down.
pub(crate) const STOPPING: &str = "STOPPING=1";

/// Returns the supervisor to notify. `auto` is replaced by the detected supervisor, or by none.
pub(crate) fn effective(supervised: Supervised) -> Supervised {
    match supervised {
        Supervised::Auto if env::var_os("NOTIFY_SOCKET").is_some() => Supervised::Systemd,
        Supervised::Auto if env::var_os("UPSTART_JOB").is_some() => Supervised::Upstart,
        Supervised::Auto => Supervised::No,
        named => named,
    }
}

/// Notifies the supervisor of `state`, if one is configured.
pub(crate) fn notify(supervised: Supervised, state: &str) {
    let result = match effective(supervised) {
        Supervised::Systemd => send(state),
        Supervised::Upstart if state == READY => stop(),
        _ => Ok(()),
    };
    if let Err(error) = result {
        tracing::warn!("cannot notify the supervisor of {state}: {error}");
    }
}

/// Stops the process (SIGSTOP) until the supervisor continues it.
fn stop() -> io::Result<()> {
    if env::var_os("UPSTART_JOB").is_none() {
        // Without upstart, no supervisor would continue the process.
        return Err(io::Error::new(io::ErrorKind::NotFound, "UPSTART_JOB is not set"));
    }
    Ok(rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::STOP)?)
}

fn send(state: &str) -> io::Result<()> {
    let path = env::var_os("NOTIFY_SOCKET")
        .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "NOTIFY_SOCKET is not set"))?;
    let socket = UnixDatagram::unbound()?;
    match path.as_bytes().strip_prefix(b"@") {
        #[cfg(target_os = "linux")]
        Some(name) => {
            use std::os::linux::net::SocketAddrExt;
            let address = std::os::unix::net::SocketAddr::from_abstract_name(name)?;
            socket.send_to_addr(state.as_bytes(), &address)?;
        }
        _ => {
            socket.send_to(state.as_bytes(), path)?;
        }
    }
    Ok(())
}
