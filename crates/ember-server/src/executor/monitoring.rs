//! Sends all commands to monitors when they run.

use ember_config::OutputBufferLimit;
use ember_protocol::Args;
use emberkv_core::spec::Flags;

use crate::catalogue::registry::Command;
use crate::clients::client::Client;
use crate::clients::connection::OUTPUT_HIGH_BYTES;
use crate::clients::push::Push;
use crate::server::Server;
use crate::system::clock::unix_us;

/// The origin of a call that is sent to monitors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MonitoredCaller {
    /// A client itself.
    Client,
    /// A script of a client.
    Script,
}

/// Returns whether calls of a command are sent to monitors when they run. Administrative commands are not sent, and
/// commands that run scripts are sent by their own handlers, before the calls of the script.
pub(crate) fn is_monitored(command: &Command) -> bool {
    !command.spec.flags.intersects(Flags::SKIP_MONITOR.union(Flags::ADMIN))
}

impl Server {
    /// Sends a call to monitors, without its secret arguments. A line that exceeds `limit` is not completed, because it
    /// disconnects its receivers in any case.
    #[cold]
    pub(crate) fn show_to_monitors(
        &self,
        client: &Client,
        command: &Command,
        args: Args<'_>,
        limit: &OutputBufferLimit,
        caller: MonitoredCaller,
    ) {
        let us = unix_us();
        let name = match caller {
            MonitoredCaller::Client => client.view.peer.remote(),
            MonitoredCaller::Script => "lua".to_owned(),
        };
        let head = format!("{}.{:06} [{} {name}]", us / 1_000_000, us % 1_000_000, client.database);
        let mut line = head.into_bytes();
        let bytes_max = match limit.hard_bytes {
            0 => usize::MAX,
            // Smaller outputs are checked only when they are sent.
            bytes => usize::try_from(bytes).unwrap_or(usize::MAX).max(OUTPUT_HIGH_BYTES),
        };
        for (number, argument) in args.iter().enumerate() {
            line.push(b' ');
            let is_secret = command.spec.has_secret_at(args, number);
            quote(if is_secret { b"(redacted)" } else { argument }, bytes_max, &mut line);
        }
        let addresses = self.monitors.addresses();
        let others = addresses.into_iter().filter(|address| address.client_id != client.view.id);
        self.push(Push::Line(line), others.map(|address| (address, None)).collect());
    }
}

/// The number of bytes that are quoted between two checks of the line's length.
const QUOTED_TOGETHER: usize = 64 * 1024;

/// Writes bytes in quotes, with unprintable bytes escaped; stops when the line is longer than `bytes_max`.
fn quote(bytes: &[u8], bytes_max: usize, line: &mut Vec<u8>) {
    line.push(b'"');
    for part in bytes.chunks(QUOTED_TOGETHER) {
        if line.len() > bytes_max {
            break;
        }
        part.iter().for_each(|&byte| escape(byte, line));
    }
    line.push(b'"');
}

fn escape(byte: u8, line: &mut Vec<u8>) {
    match byte {
        b'"' | b'\\' => line.extend([b'\\', byte]),
        b'\n' => line.extend(b"\\n"),
        b'\r' => line.extend(b"\\r"),
        b'\t' => line.extend(b"\\t"),
        0x07 => line.extend(b"\\a"),
        0x08 => line.extend(b"\\b"),
        b' '..=b'~' => line.push(byte),
        _ => line.extend(format!("\\x{byte:02x}").as_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unprintable_bytes_are_escaped() {
        let mut line = Vec::new();
        quote(b"a \"b\"\\\r\n\t\x07\x08\x00\xff", usize::MAX, &mut line);
        assert_eq!(line, br#""a \"b\"\\\r\n\t\a\b\x00\xff""#);
    }

    #[test]
    fn lines_are_truncated_at_their_limit() {
        let mut line = Vec::new();
        quote(&vec![0; 10 * QUOTED_TOGETHER], QUOTED_TOGETHER, &mut line);
        assert_eq!(line.len(), 4 * QUOTED_TOGETHER + 2);
    }
}
