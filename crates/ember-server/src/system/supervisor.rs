//! Telling systemd how the server is: one datagram to the socket that `NOTIFY_SOCKET` names (sd_notify(3)).

use std::env;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixDatagram;

use crate::config::Supervised;

/// The server serves.
pub(crate) const READY: &str = "READY=1";

/// The server stops.
pub(crate) const STOPPING: &str = "STOPPING=1";

/// Whether systemd is to be told.
pub(crate) fn is_told(supervised: Supervised) -> bool {
    match supervised {
        Supervised::No => false,
        Supervised::Systemd => true,
        Supervised::Auto => env::var_os("NOTIFY_SOCKET").is_some(),
    }
}

/// Tells the supervisor `state`, if one is configured.
pub(crate) fn notify(supervised: Supervised, state: &str) {
    if is_told(supervised)
        && let Err(error) = send(state)
    {
        tracing::warn!("cannot tell systemd {state}: {error}");
    }
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
