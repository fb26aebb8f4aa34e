//! Parameters of authentication and access control.

use crate::parameter::{Field, Kind, Parameter};
use crate::value::{DebugCommand, PubsubDefault};

pub(super) static PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "protected-mode",
        aliases: &[],
        kind: Kind::YesNo(field!(protected_mode)),
        default: "yes",
        mutable: true,
        about: "Whether only clients on this machine are served while there is no password.",
    },
    Parameter {
        name: "requirepass",
        aliases: &[],
        kind: Kind::Secret { field: field!(requirepass), file: Some(field!(requirepass_file)) },
        default: "",
        mutable: true,
        about: "The password of the default user; empty for none. On the command line every user of the machine can \
                read it: prefer `requirepass-file`.",
    },
    Parameter {
        name: "requirepass-file",
        aliases: &[],
        kind: Kind::Path(field!(requirepass_file)),
        default: "",
        mutable: false,
        about: "A file whose first line is the password, read once at startup; empty for none. The later of \
                `requirepass` and this parameter applies.",
    },
    Parameter {
        name: "aclfile",
        aliases: &[],
        kind: Kind::Path(field!(aclfile)),
        default: "",
        mutable: false,
        about: "A file with users, read at startup and by ACL LOAD, written by ACL SAVE; empty for none. Users are \
                defined there or in `user` lines of the configuration file, not in both.",
    },
    Parameter {
        name: "acl-pubsub-default",
        aliases: &[],
        kind: choice!(acl_pubsub_default: PubsubDefault),
        default: "resetchannels",
        mutable: true,
        about: "The channels of publish and subscribe that new users may use.",
    },
    Parameter {
        name: "acllog-max-len",
        aliases: &[],
        kind: integer!(acllog_max_len, 0..=i64::MAX),
        default: "128",
        mutable: true,
        about: "The maximum number of denials in ACL LOG.",
    },
    Parameter {
        name: "enable-debug-command",
        aliases: &[],
        kind: choice!(enable_debug_command: DebugCommand),
        default: "no",
        mutable: false,
        about: "Which clients may use DEBUG: none, all, or those on this machine.",
    },
    Parameter {
        name: "enable-protected-configs",
        aliases: &[],
        kind: choice!(enable_protected_configs: DebugCommand),
        default: "no",
        mutable: false,
        about: "Which clients may change `dir` and `dbfilename` by CONFIG SET: none, all, or those on this machine.",
    },
];
