//! Parameters of listeners and connections.

use emberkv_core::redis_version::RedisVersion;

use super::bounds::INT_MAX;
use crate::bind_address;
use crate::parameter::{Field, Kind, Parameter};
use crate::value;

pub(super) static PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "bind",
        aliases: &["host"],
        kind: Kind::Words {
            shape: "up to 16 addresses",
            get: |config| bind_address::format(&config.bind),
            set: |config, text| bind_address::parse(text).map(|addresses| config.bind = addresses),
        },
        default: "127.0.0.1 -::1",
        mutable: true,
        about: "The addresses to listen on: IP addresses, host names, `*` (all IPv4) or `::*` (all IPv6). With a \
                `-` before an address, it is no error if the machine does not have this address. Without any \
                address there is no TCP listener.",
    },
    Parameter {
        name: "port",
        aliases: &[],
        kind: integer!(port, 0..=65535),
        default: "6379",
        mutable: true,
        about: "The TCP port to listen on; 0 for no TCP listener.",
    },
    Parameter {
        name: "redis-version",
        aliases: &[],
        kind: Kind::Words {
            shape: "three numbers from 0 to 255",
            get: |config| config.redis_version.to_string(),
            set: |config, text| {
                let version =
                    RedisVersion::parse(text).ok_or("argument must be three numbers such as 7.4.0")?;
                config.redis_version = version;
                Ok(())
            },
        },
        default: "7.2.4",
        mutable: false,
        about: "The version of Redis that INFO, HELLO, LOLWUT, `redis.REDIS_VERSION` and metrics report. Nothing \
                else depends on it. Some client libraries use a feature only if the reported version has it, even \
                though ember supports it.",
    },
    Parameter {
        name: "tcp-backlog",
        aliases: &[],
        kind: integer!(tcp_backlog, 0..=INT_MAX),
        default: "511",
        mutable: false,
        about: "The maximum number of connections that wait to be accepted; the kernel's `somaxconn` limits it \
                further.",
    },
    Parameter {
        name: "unixsocket",
        aliases: &[],
        kind: Kind::Path(field!(unixsocket)),
        default: "",
        mutable: false,
        about: "The path of a Unix socket to listen on; empty for none.",
    },
    Parameter {
        name: "unixsocketperm",
        aliases: &[],
        kind: Kind::Octal { max: 0o777, field: field!(unixsocketperm) },
        default: "0",
        mutable: false,
        about: "The permissions of the Unix socket; 0 leaves them to the umask.",
    },
    Parameter {
        name: "unixsocketgroup",
        aliases: &[],
        kind: Kind::Words {
            shape: "a group",
            get: |config| config.unixsocketgroup.clone(),
            set: |config, text| value::parse_line(text).map(|line| config.unixsocketgroup = line),
        },
        default: "",
        mutable: true,
        about: "The group of the Unix socket: a name in `/etc/group` or a number; empty for the group of the process.",
    },
    Parameter {
        name: "timeout",
        aliases: &[],
        kind: integer!(timeout, 0..=INT_MAX),
        default: "0",
        mutable: true,
        about: "Seconds after which an idle connection is closed; 0 for never.",
    },
    Parameter {
        name: "tcp-keepalive",
        aliases: &[],
        kind: integer!(tcp_keepalive, 0..=INT_MAX),
        default: "300",
        mutable: true,
        about: "Seconds between TCP keep-alive probes on an idle connection; 0 for none.",
    },
    Parameter {
        name: "maxclients",
        aliases: &[],
        kind: integer!(maxclients, 1..=u32::MAX as i64),
        default: "10000",
        mutable: true,
        about: "The maximum number of connected clients.",
    },
    Parameter {
        name: "max-new-connections-per-cycle",
        aliases: &[],
        kind: integer!(max_new_connections_per_cycle, 1..=1000),
        default: "10",
        mutable: true,
        about: "The maximum number of connections accepted in one turn of the event loop, before existing ones are \
                served again.",
    },
    Parameter {
        name: "max-new-tls-connections-per-cycle",
        aliases: &[],
        kind: integer!(max_new_tls_connections_per_cycle, 1..=1000),
        default: "1",
        mutable: true,
        about: "The same for connections with TLS: each handshake takes the time of many commands.",
    },
];
