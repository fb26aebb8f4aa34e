//! Parameters for tests of servers, which `CONFIG GET` shows only when their full names are requested, as in Redis.

use super::bounds::INT_MAX;
use crate::parameter::{Kind, Parameter};
use crate::stored::Form;

pub(super) static PARAMETERS: &[Parameter] = &[
    Parameter::without_effect(
        "aof-disable-auto-gc",
        Form::YesNo,
        "no",
        "files of the AOF are removed as soon as no manifest names them",
        "Whether old files of the AOF are kept.",
    ),
    Parameter::without_effect(
        "loading-process-events-interval-bytes",
        Form::Integer(1024..=INT_MAX),
        "2097152",
        "workers serve clients while a file is loaded",
        "The bytes of a file that are loaded before clients are served in between.",
    ),
    Parameter::without_effect(
        "cluster-ping-interval",
        Form::Integer(0..=i64::MAX),
        "0",
        "the feature is not available in this version",
        "The interval in milliseconds at which nodes send PING to each other; 0 for the default.",
    ),
    Parameter {
        name: "rdb-key-save-delay",
        aliases: &[],
        kind: integer!(rdb_key_save_delay, -INT_MAX - 1..=INT_MAX),
        default: "0",
        mutable: true,
        about: "The delay in microseconds after each key while an RDB file is written; if negative, the number of \
                keys after which there is a delay of one microsecond. The delay is at most ten seconds per key.",
    },
    Parameter {
        name: "key-load-delay",
        aliases: &[],
        kind: integer!(key_load_delay, -INT_MAX - 1..=INT_MAX),
        default: "0",
        mutable: true,
        about: "The same for each key and command while a file is loaded.",
    },
    Parameter {
        name: "tiered-goal",
        aliases: &[],
        kind: integer!(tiered_goal, 0..=90),
        default: "90",
        mutable: true,
        about: "The percentage of `maxmemory` above which values are demoted; 0 demotes all eligible values \
                continuously.",
    },
    Parameter::without_effect(
        "use-exit-on-panic",
        Form::YesNo,
        "no",
        "a panic always aborts the process",
        "Whether a failed assertion ends the process without a core dump.",
    ),
    Parameter::without_effect(
        "watchdog-period",
        Form::Integer(0..=INT_MAX),
        "0",
        "the slow log and LATENCY record slow calls",
        "The milliseconds after which a running call is logged; 0 for never.",
    ),
];
