//! Parameters that limit scripts.

use super::bounds::BYTES_MAX;
use crate::parameter::{Field, Kind, Parameter};

/// The minimum memory limit in bytes, which is just enough for the script libraries.
const SCRIPT_MEMORY_MIN: u64 = 1 << 20;

pub(super) static PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "busy-reply-threshold",
        aliases: &["lua-time-limit"],
        kind: integer!(busy_reply_threshold, 0..=i64::MAX),
        default: "5000",
        mutable: true,
        about: "Milliseconds after which a running script can be ended with `SCRIPT KILL` or `FUNCTION KILL`, and \
                other clients receive BUSY; 0 for never.",
    },
    Parameter {
        name: "script-memory-limit",
        aliases: &[],
        kind: Kind::Memory { range: SCRIPT_MEMORY_MIN..=BYTES_MAX, field: field!(script_memory_limit) },
        default: "256mb",
        mutable: false,
        about: "The memory limit of the scripts of each worker, and the maximum length of the reply to a script; a \
                script that exceeds it ends with an error.",
    },
];
