//! The process and its surroundings.

use super::bounds::INT_MAX;
use crate::config::parameter::{Field, Kind, Parameter};
use crate::config::value::Supervised;

pub(super) static PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "dir",
        aliases: &["data-dir"],
        kind: Kind::Path(field!(dir)),
        default: ".",
        mutable: false,
        about: "The directory the server works in: relative paths of `logfile`, `pidfile` and `unixsocket` begin here, and data is kept here.",
    },
    Parameter {
        name: "pidfile",
        aliases: &[],
        kind: Kind::Path(field!(pidfile)),
        default: "",
        mutable: false,
        about: "A file for the process id, removed at exit; empty for none.",
    },
    Parameter {
        name: "daemonize",
        aliases: &[],
        kind: Kind::Fixed {
            accepts: &["no"],
            reason: "the server stays in the foreground: let a supervisor such as systemd run it",
        },
        default: "no",
        mutable: false,
        about: "Whether the server detaches from its terminal.",
    },
    Parameter {
        name: "supervised",
        aliases: &[],
        kind: choice!(supervised: Supervised),
        default: "no",
        mutable: false,
        about: "Which supervisor is told when the server is ready: `systemd` through `NOTIFY_SOCKET`, or `auto` for \
                systemd when that variable is set.",
    },
    Parameter {
        name: "shutdown-timeout",
        aliases: &[],
        kind: integer!(shutdown_timeout, 0..=INT_MAX),
        default: "10",
        mutable: true,
        about: "Seconds a shutdown may wait for clients to read their last replies.",
    },
];
