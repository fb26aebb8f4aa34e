//! Persistence.

use super::bounds::{BYTES_MAX, ENCRYPTION_KEY_FILE, INT_MAX};
use crate::config::parameter::{Field, Kind, Parameter};
use crate::config::value::{AppendFsync, RdbTarget, RdbVersionCheck};

/// Checks the name of a file in `dir`.
fn file_name(text: &str, parameter: &str) -> Result<String, String> {
    if text.is_empty() || text.contains(['/', '\0']) {
        return Err(format!("{parameter} can't be a path, just a filename"));
    }
    Ok(text.to_owned())
}

pub(super) static PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "appendonly",
        aliases: &[],
        kind: Kind::YesNo(field!(appendonly)),
        default: "no",
        mutable: true,
        about: "Whether every write is recorded in an append-only file (AOF), from which the data set is loaded at \
                startup.",
    },
    Parameter {
        name: "appendfsync",
        aliases: &[],
        kind: choice!(appendfsync: AppendFsync),
        default: "everysec",
        mutable: true,
        about: "When a write is durable: `always`, before it is acknowledged; `everysec`, within about a second; `no`, when \
                the operating system sees fit.",
    },
    Parameter {
        name: "no-appendfsync-on-rewrite",
        aliases: &[],
        kind: Kind::YesNo(field!(no_appendfsync_on_rewrite)),
        default: "no",
        mutable: true,
        about: "Whether `appendfsync` is as good as `no` while the AOF is rewritten or a snapshot written: writes are \
                faster then, and a power cut may take those of the whole time.",
    },
    Parameter {
        name: "appenddirname",
        aliases: &[],
        kind: Kind::Words {
            shape: "the name of a directory",
            get: |config| config.appenddirname.clone(),
            set: |config, text| file_name(text, "appenddirname").map(|name| config.appenddirname = name),
        },
        default: "appendonlydir",
        mutable: false,
        about: "The directory in `dir` with the files of the AOF.",
    },
    Parameter {
        name: "appendfilename",
        aliases: &[],
        kind: Kind::Words {
            shape: "the name of a file",
            get: |config| config.appendfilename.clone(),
            set: |config, text| file_name(text, "appendfilename").map(|name| config.appendfilename = name),
        },
        default: "appendonly.aof",
        mutable: false,
        about: "How the names of the files of the AOF begin.",
    },
    Parameter {
        name: "aof-timestamp-enabled",
        aliases: &[],
        kind: Kind::YesNo(field!(aof_timestamp_enabled)),
        default: "no",
        mutable: true,
        about: "Whether the AOF says the time of its commands, so that it can be cut at a time.",
    },
    Parameter {
        name: "aof-load-truncated",
        aliases: &[],
        kind: Kind::YesNo(field!(aof_load_truncated)),
        default: "yes",
        mutable: true,
        about: "Whether the server starts when the end of the AOF was lost in a crash, and cuts it there; otherwise it says \
                so and ends.",
    },
    Parameter {
        name: "aof-use-rdb-preamble",
        aliases: &[],
        kind: Kind::YesNo(field!(aof_use_rdb_preamble)),
        default: "yes",
        mutable: true,
        about: "Whether a rewrite writes the base of the AOF as an RDB file: it is smaller and loaded faster. Otherwise the \
                base is the commands that make the data set.",
    },
    Parameter {
        name: "auto-aof-rewrite-percentage",
        aliases: &[],
        kind: integer!(auto_aof_rewrite_percentage, 0..=INT_MAX),
        default: "100",
        mutable: true,
        about: "By how much per cent the AOF must have grown since its last rewrite to be rewritten by itself; 0: never.",
    },
    Parameter {
        name: "auto-aof-rewrite-min-size",
        aliases: &[],
        kind: Kind::Memory { range: 0..=BYTES_MAX, field: field!(auto_aof_rewrite_min_size) },
        default: "64mb",
        mutable: true,
        about: "An AOF below this size is not rewritten by itself.",
    },
    Parameter {
        name: "aof-lag-limit",
        aliases: &[],
        kind: integer!(aof_lag_limit, 0..=3_600_000),
        default: "0",
        mutable: true,
        about: "With `appendfsync everysec`: how many ms a write may stay without being durable because the disk is slow. \
                While one is older, writes wait, and are refused after `aof-wait-limit`; below 1000 they wait for each \
                fsync. 0 for no limit: writes are neither delayed nor refused because an fsync takes long.",
    },
    Parameter {
        name: "aof-wait-limit",
        aliases: &[],
        kind: integer!(aof_wait_limit, 0..=3_600_000),
        default: "1000",
        mutable: true,
        about: "With `aof-lag-limit`: how many ms writes wait for a slow disk. After that they are refused with MISCONF \
                until the disk has caught up. A connection whose replies wait for a disk that fails is closed after this \
                time.",
    },
    Parameter {
        name: "dbfilename",
        aliases: &[],
        kind: Kind::Words {
            shape: "the name of a file",
            get: |config| config.dbfilename.clone(),
            set: |config, text| file_name(text, "dbfilename").map(|name| config.dbfilename = name),
        },
        default: "dump.rdb",
        mutable: true,
        about: "The file in `dir` that the data set is read from at the start, if it is there, and that is written: an RDB \
                file as Redis has it.",
    },
    Parameter {
        name: "rdbcompression",
        aliases: &[],
        kind: Kind::YesNo(field!(rdbcompression)),
        default: "yes",
        mutable: true,
        about: "Whether strings in RDB files are packed by LZF where that makes them shorter.",
    },
    Parameter {
        name: ENCRYPTION_KEY_FILE,
        aliases: &[],
        kind: Kind::Path(field!(encryption_key_file)),
        default: "",
        mutable: true,
        about: "A file with the keys that files of the data set are encrypted with: 32 bytes in hexadecimal digits or \
                base64 on each line, the current key first, then older ones. Empty for the keys of the variable \
                `EMBER_ENCRYPTION_KEY`, or no encryption without it. CONFIG SET reads the file again.",
    },
    Parameter {
        name: "save",
        aliases: &[],
        kind: Kind::Lines {
            shape: "pairs of seconds and changes",
            get: |config| config.save.format(),
            set: |config, text| config.save.set(text),
            add: |config, text| config.save.add(text),
        },
        default: "3600 1 300 100 60 10000",
        mutable: true,
        about: "When the data set is saved in the background automatically: after a number of seconds with at least a \
                number of changes; one fulfilled pair is enough. Empty for never; SHUTDOWN then saves only with SAVE. \
                Further lines of a file add their pairs.",
    },
    Parameter {
        name: "stop-writes-on-bgsave-error",
        aliases: &[],
        kind: Kind::YesNo(field!(stop_writes_on_bgsave_error)),
        default: "yes",
        mutable: true,
        about: "Whether writes are refused after saving in the background has failed, until it succeeds: only while \
                there are rules in `save`.",
    },
    Parameter {
        name: "rdb-version-check",
        aliases: &[],
        kind: choice!(rdb_version_check: RdbVersionCheck),
        default: "strict",
        mutable: true,
        about: "Whether RDB files, and payloads of RESTORE, of versions that are not known yet are refused: `strict`; with \
                `relaxed` they are read as far as they hold nothing that is unknown, and refused where they do. Version \
                80, of Valkey 9, is known.",
    },
    Parameter {
        name: "rdb-target",
        aliases: &[],
        kind: choice!(rdb_target: RdbTarget),
        default: "redis",
        mutable: true,
        about: "The server that is to read RDB files, bases of the append-only file and payloads of DUMP. `redis`: Redis \
                7.0, or the first Redis that has all of the data (7.4 if a field of a hash expires); `redis-7.2`, `redis-8` \
                and `valkey-9`: this one. What it lacks is written all the same, so that nothing is lost, and a warning \
                of the log says that it cannot read the file.",
    },
];
