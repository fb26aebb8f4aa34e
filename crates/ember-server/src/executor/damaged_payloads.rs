//! Lines of the log about payloads that `RESTORE` refuses: they contradict themselves, so the sender has damaged data or
//! wants to do harm.

use ember_protocol::Args;
use emberkv_core::error::CommandError;

use crate::catalogue::registry::Command;
use crate::clients::client::ClientView;

/// A worker writes at most one line in this time, so that a client cannot fill the disk with them.
const LINE_INTERVAL_MS: i64 = 1000;

/// The place of the payload among the arguments of `RESTORE` and `RESTORE-ASKING`.
const PAYLOAD_AT: usize = 3;

/// What a worker has logged of damaged payloads.
#[derive(Debug, Default)]
pub(super) struct DamagedPayloads {
    /// When the last line was written, Unix time in ms.
    logged_ms: i64,
    /// Payloads refused since then without a line.
    unlogged: u64,
}

impl DamagedPayloads {
    /// Logs that a call has failed, if that is because its payload is damaged. Called for errors alone.
    pub(super) fn log_if_damaged(
        &mut self,
        command: &Command,
        error: &CommandError,
        args: Args<'_>,
        client: Option<&ClientView>,
        now_ms: i64,
    ) {
        if !command.spec.name.starts_with("restore") || &*error.text() != b"ERR Bad data format" {
            return;
        }
        if now_ms.saturating_sub(self.logged_ms) < LINE_INTERVAL_MS {
            self.unlogged += 1;
            return;
        }
        let sender = client.map_or_else(String::new, |client| format!(" from {}", client.who()));
        let kind =
            args.get(PAYLOAD_AT).and_then(|payload| payload.first()).map_or("Value", |kind| name(*kind));
        let others = match std::mem::take(&mut self.unlogged) {
            0 => String::new(),
            count => format!("; {count} others were refused before"),
        };
        self.logged_ms = now_ms;
        tracing::warn!("RESTORE refuses a payload{sender}: {kind} integrity check failed{others}");
    }
}

/// The form of a value whose payload begins with this byte, in the words of Redis's log.
fn name(kind: u8) -> &'static str {
    match kind {
        9 => "Zipmap",
        10 | 14 => "Ziplist",
        11 => "Intset",
        12 => "Zset ziplist",
        13 => "Hash ziplist",
        15 | 19 | 21 => "Stream listpack",
        16 => "Hash listpack",
        17 => "Zset listpack",
        18 => "Listpack",
        20 => "Set listpack",
        _ => "Value",
    }
}
