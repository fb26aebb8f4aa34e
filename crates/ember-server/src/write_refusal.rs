//! Why writes are refused for the moment, or wait: what they would change could not be kept as promised.

use std::sync::atomic::{AtomicU8, Ordering};

use emberkv_core::error::CommandError;
use parking_lot::Mutex;

/// A condition under which writes are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// The AOF cannot be written.
    Aof,
    /// The AOF is further behind than the configuration allows.
    AofLag,
}

impl Reason {
    const ALL: [Reason; 2] = [Reason::Aof, Reason::AofLag];

    fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// Set while writes are to wait.
const HOLDS: u8 = 1 << 7;

/// The conditions that hold now.
#[derive(Default)]
pub(crate) struct WriteRefusal {
    state: AtomicU8,
    /// What the disk says, by reason.
    texts: Mutex<[String; Reason::ALL.len()]>,
}

impl WriteRefusal {
    /// Whether writes run as usual.
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        self.state.load(Ordering::Relaxed) == 0
    }

    /// Whether writes are to wait, as long as they are not refused.
    pub(crate) fn holds(&self) -> bool {
        self.state.load(Ordering::Relaxed) == HOLDS
    }

    /// The error of a write, if it is refused.
    pub(crate) fn error(&self) -> Option<CommandError> {
        let state = self.state.load(Ordering::Relaxed);
        let reason = Reason::ALL.into_iter().find(|reason| state & reason.bit() != 0)?;
        let text = &self.texts.lock()[reason as usize];
        Some(format!("MISCONF Errors writing to the AOF file: {text}").into())
    }

    /// Writes are refused from now on.
    pub(crate) fn begin(&self, reason: Reason, text: &str) {
        text.clone_into(&mut self.texts.lock()[reason as usize]);
        self.state.fetch_or(reason.bit(), Ordering::Relaxed);
    }

    /// A reason holds no more.
    pub(crate) fn end(&self, reason: Reason) {
        self.clear(reason.bit());
    }

    /// Lets writes wait, or no more.
    pub(crate) fn hold(&self, waits: bool) {
        if waits { _ = self.state.fetch_or(HOLDS, Ordering::Relaxed) } else { self.clear(HOLDS) }
    }

    fn clear(&self, bits: u8) {
        // A load is cheap, and most often there is nothing to clear.
        if self.state.load(Ordering::Relaxed) & bits != 0 {
            self.state.fetch_and(!bits, Ordering::Relaxed);
        }
    }
}
