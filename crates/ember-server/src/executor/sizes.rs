//! The logs of large requests and replies: decides which calls are logged, at the cost of one comparison per call.

use ember_config::Config;
use ember_protocol::Args;

use super::Executor;
use crate::catalogue::registry::Command;
use crate::clients::client::ClientView;
use crate::observability::command_log::{LogKind, LoggedCall};
use emberkv_core::spec::Flags;

/// The sizes in bytes from which on requests and replies count as large; `usize::MAX` if none does.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SizeLimits {
    request_bytes: usize,
    reply_bytes: usize,
    /// The size in bytes of a reply from which on a call of the current batch is checked; 0 if the batch is long enough
    /// to contain a large request.
    checked_bytes: usize,
}

impl Default for SizeLimits {
    fn default() -> SizeLimits {
        SizeLimits { request_bytes: usize::MAX, reply_bytes: usize::MAX, checked_bytes: usize::MAX }
    }
}

/// Returns the size in bytes from which on a call is logged; `usize::MAX` if the log is disabled by a negative size or
/// by a log length of 0.
pub(super) fn limit(bytes: i64, kept: u64) -> usize {
    match usize::try_from(bytes) {
        Ok(bytes) if kept > 0 => bytes,
        _ => usize::MAX,
    }
}

impl SizeLimits {
    /// Returns the limits that a configuration specifies.
    pub(super) fn of(config: &Config) -> SizeLimits {
        let reply_bytes = limit(config.commandlog_reply_larger_than, config.commandlog_large_reply_max_len);
        SizeLimits {
            request_bytes: limit(
                config.commandlog_request_larger_than,
                config.commandlog_large_request_max_len,
            ),
            reply_bytes,
            checked_bytes: reply_bytes,
        }
    }

    /// Begins a batch of at most `bytes` bytes.
    #[inline]
    pub(super) fn begin_batch(&mut self, bytes: usize) {
        self.checked_bytes = self.reply_bytes;
        self.include(bytes);
    }

    /// Adds calls from another source, of at most `bytes` bytes, to the current batch.
    #[inline]
    pub(crate) fn include(&mut self, bytes: usize) {
        if bytes >= self.request_bytes {
            self.checked_bytes = 0;
        }
    }

    /// Returns whether a call of the current batch whose reply has this size must be checked.
    #[inline]
    pub(super) fn may_be_large(&self, reply_bytes: usize) -> bool {
        reply_bytes >= self.checked_bytes
    }
}

impl Executor {
    /// Enters a call into the logs of large requests and replies, if it exceeds their limits.
    #[inline]
    pub(crate) fn log_sizes(
        &mut self,
        command: &Command,
        args: Args<'_>,
        client_id: u64,
        reply_bytes: usize,
    ) {
        if self.sizes.may_be_large(reply_bytes) {
            self.log_if_large(command, args, client_id, reply_bytes);
        }
        if !self.turn.notices.large_keys.is_empty() {
            self.log_large_keys(command, args, client_id);
        }
    }

    #[cold]
    fn log_if_large(&mut self, command: &Command, args: Args<'_>, client_id: u64, reply_bytes: usize) {
        if command.spec.flags.contains(Flags::SKIP_SLOWLOG) {
            return;
        }
        let request_bytes = wire_bytes(args);
        let (limits, clients) = (self.sizes, &self.server.clients);
        if request_bytes >= limits.request_bytes {
            let view = clients.get(client_id);
            self.log_command(LogKind::LargeRequest, command, request_bytes as u64, args, view.as_deref());
        }
        if reply_bytes >= limits.reply_bytes {
            let view = clients.get(client_id);
            self.log_command(LogKind::LargeReply, command, reply_bytes as u64, args, view.as_deref());
        }
    }

    #[cold]
    fn log_large_keys(&mut self, command: &Command, args: Args<'_>, client_id: u64) {
        let view = self.server.clients.get(client_id);
        for bytes in std::mem::take(&mut self.turn.notices.large_keys) {
            self.log_command(LogKind::LargeKey, command, bytes as u64, args, view.as_deref());
        }
    }

    /// Enters a call into the given log.
    pub(super) fn log_command(
        &self,
        kind: LogKind,
        command: &Command,
        amount: u64,
        args: Args<'_>,
        client: Option<&ClientView>,
    ) {
        let max = match kind {
            LogKind::Slow => self.config.slowlog_max_len,
            LogKind::LargeRequest => self.config.commandlog_large_request_max_len,
            LogKind::LargeReply => self.config.commandlog_large_reply_max_len,
            LogKind::LargeKey => self.config.commandlog_large_key_max_len,
        };
        let max = usize::try_from(max).unwrap_or(usize::MAX);
        let call = LoggedCall::new(self.turn.now_ms / 1000, amount, command, args, client);
        self.server.command_log.enter(kind, max, call);
    }
}

/// Returns the size in bytes of a request that is encoded as an array of bulk strings.
fn wire_bytes(args: Args<'_>) -> usize {
    /// The number of bytes of a type byte and a line end.
    const LINE_BYTES: usize = 3;
    let head = |number: usize| LINE_BYTES + number.checked_ilog10().unwrap_or(0) as usize + 1;
    head(args.len()) + args.iter().map(|arg| head(arg.len()) + arg.len() + 2).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use ember_protocol::OwnedBatch;

    use super::*;

    #[test]
    fn the_size_of_a_request_is_that_of_its_bytes_on_the_wire() {
        for words in
            [&[&b"GET"[..], b""] as &[&[u8]], &[b"SET", b"key", &[b'x'; 12345]], &[b"x" as &[u8]; 100]]
        {
            let mut batch = OwnedBatch::new();
            batch.push(words);
            let mut wire = format!("*{}\r\n", words.len());
            words.iter().for_each(|word| {
                wire += &format!("${}\r\n{}\r\n", word.len(), String::from_utf8_lossy(word));
            });
            assert_eq!(wire_bytes(batch.command(0)), wire.len());
        }
    }

    #[test]
    fn only_long_batches_and_long_replies_are_checked() {
        let mut limits = SizeLimits { request_bytes: 100, reply_bytes: 50, checked_bytes: 50 };
        limits.begin_batch(99);
        assert!(limits.may_be_large(50) && !limits.may_be_large(49));
        limits.begin_batch(100);
        assert!(limits.may_be_large(0));
        limits.begin_batch(0);
        assert!(!limits.may_be_large(49));
        limits.include(100);
        assert!(limits.may_be_large(0));
        let mut off = SizeLimits::default();
        off.begin_batch(usize::MAX - 1);
        assert!(!off.may_be_large(usize::MAX - 1));
    }
}
