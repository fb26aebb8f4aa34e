//! Log lines about payloads that `RESTORE` refuses because they are inconsistent: the sender has damaged data or
//! attacks the server.

use ember_protocol::Args;
use emberkv_core::error::CommandError;

use crate::catalogue::registry::Command;
use crate::clients::client::ClientView;

/// The interval per worker in which at most one line is logged, so that a client cannot fill the disk with log lines.
const LINE_INTERVAL_MS: i64 = 1000;

/// The index of the payload among the arguments of `RESTORE` and `RESTORE-ASKING`.
const PAYLOAD_AT: usize = 3;

/// A worker's state for logging damaged payloads.
#[derive(Debug, Default)]
pub(super) struct DamagedPayloads {
    /// The time of the last line, as Unix time in ms.
    logged_ms: i64,
    /// The number of payloads refused since the last line.
    unlogged: u64,
}

impl DamagedPayloads {
    /// Logs that a call has failed, if the reason is a damaged payload. Called only for errors.
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
        let sender = client.map_or_else(String::new, |client| format!(" from {}", client.log_name()));
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

/// Returns the name that Redis's log uses for the kind of value whose payload begins with this byte.
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
