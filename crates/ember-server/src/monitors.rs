//! Monitors: connections that are shown the commands of all others as they run.

use std::sync::atomic::{AtomicUsize, Ordering};

use ember_protocol::Args;
use emberkv_core::spec::Flags;
use parking_lot::RwLock;

use crate::client::Client;
use crate::pubsub::{Address, Push};
use crate::registry::Command;
use crate::server::{Server, unix_us};

/// All monitors.
#[derive(Default)]
pub(crate) struct Monitors {
    count: AtomicUsize,
    addresses: RwLock<Vec<Address>>,
}

impl Monitors {
    /// Adds a connection.
    pub(crate) fn add(&self, address: Address) {
        let mut addresses = self.addresses.write();
        addresses.push(address);
        self.count.store(addresses.len(), Ordering::Relaxed);
    }

    /// Removes a connection.
    pub(crate) fn remove(&self, address: Address) {
        let mut addresses = self.addresses.write();
        addresses.retain(|other| *other != address);
        self.count.store(addresses.len(), Ordering::Relaxed);
    }

    /// Whether there are none.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.count.load(Ordering::Relaxed) == 0
    }
}

impl Server {
    /// Shows monitors a call. Commands of operators are not shown, nor secret arguments.
    #[cold]
    pub(crate) fn show_to_monitors(&self, client: &Client, command: &Command, args: Args<'_>) {
        let flags = command.spec.flags;
        if flags.intersects(Flags::SKIP_MONITOR.union(Flags::ADMIN)) {
            return;
        }
        let us = unix_us();
        let head = format!(
            "{}.{:06} [{} {}]",
            us / 1_000_000,
            us % 1_000_000,
            client.database,
            client.view.peer.remote()
        );
        let mut line = head.into_bytes();
        for (number, argument) in args.iter().enumerate() {
            line.push(b' ');
            let is_secret = command.spec.has_secret_at(args, number);
            quote(if is_secret { b"(redacted)" } else { argument }, &mut line);
        }
        let addresses = self.monitors.addresses.read().clone();
        let others = addresses.into_iter().filter(|address| address.client_id != client.view.id);
        self.push(Push::Line(line), others.map(|address| (address, None)).collect());
    }
}

/// Writes bytes in quotes, what is not printable escaped.
fn quote(bytes: &[u8], line: &mut Vec<u8>) {
    line.push(b'"');
    for &byte in bytes {
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
    line.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_printable_is_escaped() {
        let mut line = Vec::new();
        quote(b"a \"b\"\\\r\n\t\x07\x08\x00\xff", &mut line);
        assert_eq!(line, br#""a \"b\"\\\r\n\t\a\b\x00\xff""#);
    }
}
