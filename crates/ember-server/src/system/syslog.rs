//! Sends log lines to the system's log daemon: one datagram per line, in the format of RFC 3164, to the daemon's
//! socket.
//!
//! The socket does not block, and nothing is buffered. A line that the daemon does not accept is lost to the daemon,
//! but is still in the server's own log.

use std::io;
use std::os::unix::net::UnixDatagram;
use std::path::Path;

use tracing::{Level, Metadata};
use tracing_subscriber::fmt::MakeWriter;

/// The path of the socket on which log daemons listen.
pub(super) const SOCKET: &str = "/dev/log";

/// A connection to the log daemon.
pub(super) struct Syslog<'p> {
    socket: UnixDatagram,
    path: &'p Path,
    /// The facility's number in the protocol.
    facility: u8,
    ident: String,
}

impl<'p> Syslog<'p> {
    /// Creates a connection to the socket at `path`.
    ///
    /// # Errors
    /// Returns an error if no socket can be created. Does not check whether a daemon listens, because the daemon may
    /// start later.
    pub(super) fn new(path: &'p Path, facility: u8, ident: &str) -> io::Result<Syslog<'p>> {
        let socket = UnixDatagram::unbound()?;
        socket.set_nonblocking(true)?;
        Ok(Syslog { socket, path, facility, ident: ident.to_owned() })
    }

    fn send(&self, severity: u8, text: &str) -> io::Result<()> {
        let priority = self.facility * 8 + severity;
        let line = format!("<{priority}>{}[{}]: {text}", self.ident, std::process::id());
        self.socket.send_to(line.as_bytes(), self.path).map(drop)
    }

    /// Checks whether a daemon listens.
    ///
    /// # Errors
    /// Returns the system's error if no daemon listens.
    pub(super) fn probe(&self) -> io::Result<()> {
        self.send(severity(Level::INFO), "the log starts")
    }
}

/// Returns the severity of a level in the protocol.
fn severity(level: Level) -> u8 {
    match level {
        Level::ERROR => 3,
        Level::WARN => 4,
        Level::INFO => 5,
        Level::DEBUG | Level::TRACE => 7,
    }
}

/// A writer that sends one line.
pub(super) struct Line<'s> {
    syslog: &'s Syslog<'s>,
    severity: u8,
}

impl io::Write for Line<'_> {
    /// Sends a whole line, because the formatter writes each line with one call.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        // The error is ignored, because it would be reported on standard error for each line.
        let _ = self.syslog.send(self.severity, String::from_utf8_lossy(line).trim_end());
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'s> MakeWriter<'s> for Syslog<'static> {
    type Writer = Line<'s>;

    fn make_writer(&'s self) -> Line<'s> {
        Line { syslog: self, severity: severity(Level::INFO) }
    }

    fn make_writer_for(&'s self, metadata: &Metadata<'_>) -> Line<'s> {
        Line { syslog: self, severity: severity(*metadata.level()) }
    }
}

#[cfg(test)]
mod tests {
    use tracing_subscriber::fmt;
    use tracing_subscriber::layer::SubscriberExt;

    use super::*;

    #[test]
    fn each_line_is_a_datagram_with_its_severity() {
        let path = std::env::temp_dir().join(format!("ember-syslog-{}.sock", std::process::id()));
        let daemon = UnixDatagram::bind(&path).unwrap();
        // The path is leaked to have a static lifetime, as in the server.
        let leaked: &'static Path = path.clone().leak();
        let syslog = Syslog::new(leaked, 16, "ember").unwrap();
        let format = fmt::layer().with_target(false).with_level(false).with_ansi(false).without_time();
        let subscriber = tracing_subscriber::registry().with(format.with_writer(syslog));
        tracing::subscriber::with_default(subscriber, || {
            tracing::info!("ready: port {}", 6379);
            tracing::warn!("careful");
            tracing::error!("wrong");
        });
        for (priority, text) in [(133, "ready: port 6379"), (132, "careful"), (131, "wrong")] {
            let mut bytes = [0; 200];
            let length = daemon.recv(&mut bytes).unwrap();
            let expected = format!("<{priority}>ember[{}]: {text}", std::process::id());
            assert_eq!(String::from_utf8_lossy(&bytes[..length]), expected);
        }
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_missing_daemon_is_an_error_only_at_startup() {
        let syslog = Syslog::new(Path::new("/nowhere/at/all"), 1, "ember").unwrap();
        assert!(syslog.probe().is_err());
        assert_eq!(io::Write::write(&mut syslog.make_writer(), b"lost\n").unwrap(), 5);
    }
}
