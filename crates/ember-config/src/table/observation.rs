//! Observability parameters: logs, statistics, events.

use crate::origins::Origins;
use crate::parameter::{Field, Kind, Parameter};
use crate::value::{self, KeyspaceEvents, LogFormat, LogLevel, LogTimestampFormat, SyslogFacility};
use crate::{bind_address, percentiles};

/// The maximum of `hotkeys-sampling`: at a lower rate than one command in a million, samples would be too rare to
/// detect hot keys.
const SAMPLING_MAX: i64 = 1_000_000;

pub(super) static PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "slowlog-log-slower-than",
        aliases: &["commandlog-execution-slower-than"],
        kind: integer!(slowlog_log_slower_than, -1..=i64::MAX),
        default: "10000",
        mutable: true,
        about: "Commands that take at least this many microseconds enter the slow log; 0 for all, -1 for none.",
    },
    Parameter {
        name: "slowlog-max-len",
        aliases: &["commandlog-slow-execution-max-len"],
        kind: integer!(slowlog_max_len, 0..=i64::MAX),
        default: "128",
        mutable: true,
        about: "The maximum number of commands in the slow log.",
    },
    Parameter {
        name: "commandlog-request-larger-than",
        aliases: &[],
        kind: integer!(commandlog_request_larger_than, -1..=i64::MAX),
        default: "1048576",
        mutable: true,
        about: "Commands whose requests have at least this many bytes enter the log of large requests; -1 for none.",
    },
    Parameter {
        name: "commandlog-large-request-max-len",
        aliases: &[],
        kind: integer!(commandlog_large_request_max_len, 0..=i64::MAX),
        default: "128",
        mutable: true,
        about: "The maximum number of commands in the log of large requests.",
    },
    Parameter {
        name: "commandlog-reply-larger-than",
        aliases: &[],
        kind: integer!(commandlog_reply_larger_than, -1..=i64::MAX),
        default: "1048576",
        mutable: true,
        about: "Commands whose replies have at least this many bytes enter the log of large replies; -1 for none.",
    },
    Parameter {
        name: "commandlog-large-reply-max-len",
        aliases: &[],
        kind: integer!(commandlog_large_reply_max_len, 0..=i64::MAX),
        default: "128",
        mutable: true,
        about: "The maximum number of commands in the log of large replies.",
    },
    Parameter {
        name: "commandlog-key-larger-than",
        aliases: &[],
        kind: integer!(commandlog_key_larger_than, -1..=i64::MAX),
        default: "10485760",
        mutable: true,
        about: "Commands after which a key takes, with its value, at least this many bytes of memory enter the log of \
                large keys; -1 for none.",
    },
    Parameter {
        name: "commandlog-large-key-max-len",
        aliases: &[],
        kind: integer!(commandlog_large_key_max_len, 0..=i64::MAX),
        default: "128",
        mutable: true,
        about: "The maximum number of commands in the log of large keys.",
    },
    Parameter {
        name: "hotkeys-sampling",
        aliases: &[],
        kind: integer!(hotkeys_sampling, 0..=SAMPLING_MAX),
        default: "64",
        mutable: true,
        about: "HOTKEYS samples one of this many commands; 0 for none.",
    },
    Parameter {
        name: "latency-monitor-threshold",
        aliases: &[],
        kind: integer!(latency_monitor_threshold, 0..=i64::MAX),
        default: "0",
        mutable: true,
        about: "Events of at least this many milliseconds are recorded for LATENCY; 0 for none.",
    },
    Parameter {
        name: "latency-tracking",
        aliases: &[],
        kind: Kind::YesNo(field!(latency_tracking)),
        default: "yes",
        mutable: true,
        about: "Whether a latency histogram is recorded for each command.",
    },
    Parameter {
        name: "latency-tracking-info-percentiles",
        aliases: &[],
        kind: Kind::Words {
            shape: "up to 32 numbers from 0 to 100",
            get: |config| percentiles::format(&config.latency_tracking_info_percentiles),
            set: |config, text| {
                percentiles::parse(text).map(|parsed| config.latency_tracking_info_percentiles = parsed)
            },
        },
        default: "50 99 99.9",
        mutable: true,
        about: "The percentiles of these latencies in INFO.",
    },
    Parameter {
        name: "metrics-port",
        aliases: &[],
        kind: integer!(metrics_port, 0..=65535),
        default: "0",
        mutable: false,
        about: "The HTTP port of `/metrics` (for Prometheus), `/health` and `/ready`; 0 for none.",
    },
    Parameter {
        name: "metrics-bind",
        aliases: &[],
        kind: Kind::Words {
            shape: "up to 16 addresses",
            get: |config| bind_address::format(&config.metrics_bind),
            set: |config, text| bind_address::parse(text).map(|addresses| config.metrics_bind = addresses),
        },
        default: "127.0.0.1 -::1",
        mutable: false,
        about: "The addresses of that port, as in `bind`. Every client that can connect to them can read all metrics, \
                which name commands and count keys but contain no data. The dashboard shows data.",
    },
    Parameter {
        name: "metrics-dashboard",
        aliases: &[],
        kind: Kind::YesNo(field!(metrics_dashboard)),
        default: "no",
        mutable: true,
        about: "Whether that port serves `/dashboard/`, too: a page that shows the server and its keys with the rights \
                of the user that logs in. It asks for a password if the default user needs one.",
    },
    Parameter {
        name: "http-watch-port",
        aliases: &[],
        kind: integer!(http_watch_port, 0..=65535),
        default: "0",
        mutable: false,
        about: "The HTTP port on which browsers watch live queries (`/watch`); 0 for none.",
    },
    Parameter {
        name: "http-watch-bind",
        aliases: &[],
        kind: Kind::Words {
            shape: "up to 16 addresses",
            get: |config| bind_address::format(&config.http_watch_bind),
            set: |config, text| bind_address::parse(text).map(|addresses| config.http_watch_bind = addresses),
        },
        default: "127.0.0.1 -::1",
        mutable: false,
        about: "The addresses of that port, as in `bind`. It has no TLS: on networks that others can intercept, use a \
                proxy with TLS.",
    },
    Parameter {
        name: "http-watch-origins",
        aliases: &[],
        kind: Kind::Words {
            shape: "up to 64 origins, or *",
            get: |config| config.http_watch_origins.format(),
            set: |config, text| Origins::parse(text).map(|origins| config.http_watch_origins = origins),
        },
        default: "",
        mutable: true,
        about: "The origins of pages that may watch on that port, such as `https://app.example`; `*` for all. Programs \
                and pages of the same origin need not be listed.",
    },
    Parameter {
        name: "http-watch-max-streams",
        aliases: &[],
        kind: integer!(http_watch_max_streams, 0..=1_000_000),
        default: "1000",
        mutable: false,
        about: "The maximum number of simultaneous streams; each also counts as a client (`maxclients`).",
    },
    Parameter {
        name: "tracking-table-max-keys",
        aliases: &[],
        kind: integer!(tracking_table_max_keys, 0..=i64::MAX),
        default: "1000000",
        mutable: true,
        about: "The maximum number of tracked keys; keys beyond it are invalidated; 0 for no limit. The sum is checked \
                ten times a second; between checks each of the 1,024 shards has its share of the limit.",
    },
    Parameter {
        name: "notify-keyspace-events",
        aliases: &[],
        kind: Kind::Words {
            shape: "letters of `KEg$lshzxetdmnA`",
            get: |config| config.notify_keyspace_events.format(),
            set: |config, text| {
                KeyspaceEvents::parse(text).map(|events| config.notify_keyspace_events = events)
            },
        },
        default: "",
        mutable: true,
        about: "Which changes of keys are published: `K` on the channel of the key, `E` on that of the event; `g` \
                generic commands, `$` strings, `l` lists, `s` sets, `h` hashes, `z` sorted sets, `x` expired keys, \
                `e` evicted keys, `t` streams, `m` reads of missing keys, `n` new keys, `A` for `g$lshzxetd`.",
    },
    Parameter {
        name: "loglevel",
        aliases: &[],
        kind: choice!(loglevel: LogLevel),
        default: "notice",
        mutable: true,
        about: "The minimum severity of logged messages.",
    },
    Parameter {
        name: "logfile",
        aliases: &[],
        kind: Kind::Path(field!(logfile)),
        default: "",
        mutable: false,
        about: "The file to log to; empty for the standard output.",
    },
    Parameter {
        name: "syslog-enabled",
        aliases: &[],
        kind: Kind::YesNo(field!(syslog_enabled)),
        default: "no",
        mutable: false,
        about: "Whether the log is also sent to the system's log daemon, at `/dev/log`.",
    },
    Parameter {
        name: "syslog-ident",
        aliases: &[],
        kind: Kind::Path(field!(syslog_ident)),
        default: "redis",
        mutable: false,
        about: "The name of the server in that log.",
    },
    Parameter {
        name: "syslog-facility",
        aliases: &[],
        kind: choice!(syslog_facility: SyslogFacility),
        default: "local0",
        mutable: false,
        about: "The syslog facility of these messages.",
    },
    Parameter {
        name: "log-format",
        aliases: &[],
        kind: choice!(log_format: LogFormat),
        default: "legacy",
        mutable: true,
        about: "The format of log lines: `legacy`, time, level and message; `logfmt`, pairs of name and value; `json`, \
                an object.",
    },
    Parameter {
        name: "log-timestamp-format",
        aliases: &[],
        kind: choice!(log_timestamp_format: LogTimestampFormat),
        default: "legacy",
        mutable: true,
        about: "The format of the time in log lines: `legacy` and `iso8601`, ISO 8601 in UTC, with microseconds or \
                milliseconds; `milliseconds`, Unix time.",
    },
    Parameter {
        name: "availability-zone",
        aliases: &[],
        kind: Kind::Words {
            shape: "a name",
            get: |config| config.availability_zone.clone(),
            set: |config, text| value::parse_line(text).map(|line| config.availability_zone = line),
        },
        default: "",
        mutable: true,
        about: "The server's zone in INFO and HELLO, for clients that prefer the nearest server.",
    },
];
