//! Parameters of persistence.

use super::bounds::{BYTES_MAX, ENCRYPTION_KEY_FILE, INT_MAX};
use crate::parameter::{Field, Kind, Parameter};
use crate::value::{AppendFsync, RdbTarget, RdbVersionCheck, parse_line};

/// The maximum of `aof-keep-seconds`: 100 years.
const AOF_KEEP_SECONDS_MAX: i64 = 100 * 365 * 24 * 3600;

/// The maximum of `history-max-age`: 100 years.
const HISTORY_AGE_MAX: i64 = 100 * 365 * 24 * 3600;

/// The minimum of the limits of the history: a few segments of its files.
const HISTORY_SIZE_MIN: u64 = 8 << 20;

/// Checks the patterns of `history-keys`.
fn history_keys(text: &str) -> Result<String, String> {
    let mut patterns = text.split_ascii_whitespace().peekable();
    if patterns.peek().is_some() && patterns.all(|pattern| pattern.starts_with('!')) {
        return Err("history-keys needs a pattern without !".to_owned());
    }
    parse_line(text)
}

/// Checks a file name that must not contain a directory, because the file is in `dir`.
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
        about: "When a write is durable: `always`, before it is acknowledged; `everysec`, within about a second; `no`, \
                when the operating system decides.",
    },
    Parameter {
        name: "no-appendfsync-on-rewrite",
        aliases: &[],
        kind: Kind::YesNo(field!(no_appendfsync_on_rewrite)),
        default: "no",
        mutable: true,
        about: "Whether `appendfsync` acts as `no` while the AOF is rewritten or a snapshot is written: writes are \
                faster then, and a power cut may lose all writes of that time.",
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
        about: "The prefix of the names of the AOF's files.",
    },
    Parameter {
        name: "aof-timestamp-enabled",
        aliases: &[],
        kind: Kind::YesNo(field!(aof_timestamp_enabled)),
        default: "no",
        mutable: true,
        about: "Whether the AOF contains timestamps, so that it can be truncated at a given time. `no` takes effect \
                with the next file, so that no change follows an earlier timestamp.",
    },
    Parameter {
        name: "aof-keep-seconds",
        aliases: &[],
        kind: integer!(aof_keep_seconds, 0..=AOF_KEEP_SECONDS_MAX),
        default: "0",
        mutable: true,
        about: "The seconds for which the files of the AOF are kept after a rewrite has replaced them, so that \
                `ember-cli restore` can restore the data set to any moment of that time; 0 for removing them at once. \
                Implies `aof-timestamp-enabled`. Not with a `store` that has its own files.",
    },
    Parameter {
        name: "history-keys",
        aliases: &[],
        kind: Kind::Words {
            shape: "patterns separated by spaces",
            get: |config| config.history_keys.clone(),
            set: |config, text| history_keys(text).map(|text| config.history_keys = text),
        },
        default: "",
        mutable: false,
        about: "The keys whose past states can be read: patterns as in `KEYS`, separated by spaces; keys that match a \
                pattern after `!` are left out. Empty for none, which costs nothing.",
    },
    Parameter {
        name: "history-path",
        aliases: &[],
        kind: Kind::Path(field!(history_path)),
        default: "history",
        mutable: false,
        about: "With `history-keys`: a directory, used by this server only, for past states. It is emptied at startup.",
    },
    Parameter {
        name: "history-max-age",
        aliases: &[],
        kind: integer!(history_max_age, 1..=HISTORY_AGE_MAX),
        default: "604800",
        mutable: true,
        about: "The seconds for which past states can be read. They are removed in large parts, up to an eighth of \
                this time later.",
    },
    Parameter {
        name: "history-max-size",
        aliases: &[],
        kind: Kind::Memory { range: HISTORY_SIZE_MIN..=BYTES_MAX, field: field!(history_max_size) },
        default: "10gb",
        mutable: true,
        about: "The size limit of the files in `history-path`. The oldest states are removed before it is exceeded.",
    },
    Parameter {
        name: "history-max-memory",
        aliases: &[],
        kind: Kind::Memory { range: HISTORY_SIZE_MIN..=BYTES_MAX, field: field!(history_max_memory) },
        default: "256mb",
        mutable: true,
        about: "The memory limit of the history's index, which takes about 60 bytes for each past state and 110 for \
                each key. The oldest states are removed when it is exceeded.",
    },
    Parameter {
        name: "history-max-value",
        aliases: &[],
        kind: Kind::Memory { range: 0..=BYTES_MAX, field: field!(history_max_value) },
        default: "1mb",
        mutable: false,
        about: "The maximum memory of a key with its value for which states are recorded, because each change of a \
                covered key records the whole value. Reads of a state that was not recorded return the error GAP.",
    },
    Parameter {
        name: "aof-load-truncated",
        aliases: &[],
        kind: Kind::YesNo(field!(aof_load_truncated)),
        default: "yes",
        mutable: true,
        about: "Whether the server truncates an AOF whose end was lost in a crash, and starts; otherwise it reports \
                this and exits.",
    },
    Parameter {
        name: "aof-use-rdb-preamble",
        aliases: &[],
        kind: Kind::YesNo(field!(aof_use_rdb_preamble)),
        default: "yes",
        mutable: true,
        about: "Whether a rewrite writes the base of the AOF as an RDB file, which is smaller and loads faster. \
                Otherwise the base consists of commands that recreate the data set.",
    },
    Parameter {
        name: "auto-aof-rewrite-percentage",
        aliases: &[],
        kind: integer!(auto_aof_rewrite_percentage, 0..=INT_MAX),
        default: "100",
        mutable: true,
        about: "The growth of the AOF since its last rewrite, in per cent, that starts an automatic rewrite; 0 for \
                never.",
    },
    Parameter {
        name: "auto-aof-rewrite-min-size",
        aliases: &[],
        kind: Kind::Memory { range: 0..=BYTES_MAX, field: field!(auto_aof_rewrite_min_size) },
        default: "64mb",
        mutable: true,
        about: "The minimum size of the AOF for an automatic rewrite.",
    },
    Parameter {
        name: "aof-lag-limit",
        aliases: &[],
        kind: integer!(aof_lag_limit, 0..=3_600_000),
        default: "0",
        mutable: true,
        about: "With `appendfsync everysec`: the milliseconds within which a write must be durable. While a slow \
                disk delays a write for longer, further writes wait, and are refused after `aof-wait-limit`; below \
                1000, writes wait for each fsync. 0 for no limit: writes are neither delayed nor refused because of \
                a slow fsync.",
    },
    Parameter {
        name: "aof-wait-limit",
        aliases: &[],
        kind: integer!(aof_wait_limit, 0..=3_600_000),
        default: "1000",
        mutable: true,
        about: "With `aof-lag-limit`: the milliseconds for which writes wait for a slow disk. After that they are \
                refused with MISCONF until the disk has caught up. A connection whose replies wait for a failing disk \
                is closed after this time.",
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
        about: "The RDB file in `dir`, in Redis's format, to which the data set is saved and from which it is loaded \
                at startup.",
    },
    Parameter {
        name: "rdbcompression",
        aliases: &[],
        kind: Kind::YesNo(field!(rdbcompression)),
        default: "yes",
        mutable: true,
        about: "Whether strings in RDB files are compressed with LZF if that makes them shorter.",
    },
    Parameter {
        name: ENCRYPTION_KEY_FILE,
        aliases: &[],
        kind: Kind::Path(field!(encryption_key_file)),
        default: "",
        mutable: true,
        about: "A file with the encryption keys of the data files: 32 bytes in hexadecimal digits or base64 on each \
                line, the current key first, then older ones. Empty for the keys of the variable \
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
        about: "Whether writes are refused after a failed background save until one succeeds, as long as there are \
                rules in `save`.",
    },
    Parameter {
        name: "rdb-version-check",
        aliases: &[],
        kind: choice!(rdb_version_check: RdbVersionCheck),
        default: "strict",
        mutable: true,
        about: "Whether RDB files and payloads of RESTORE with an unknown version are refused (`strict`), or accepted \
                if they contain nothing unknown (`relaxed`). Version 80, of Valkey 9, is known.",
    },
    Parameter {
        name: "rdb-skip-unknown-modules",
        aliases: &[],
        kind: Kind::YesNo(field!(rdb_skip_unknown_modules)),
        default: "no",
        mutable: true,
        about: "Whether keys with values of unknown modules in an RDB file or a full sync are skipped with a warning; \
                otherwise such a file is refused.",
    },
    Parameter {
        name: "rdb-target",
        aliases: &[],
        kind: choice!(rdb_target: RdbTarget),
        default: "redis",
        mutable: true,
        about: "The server for which RDB files, bases of the append-only file and payloads of DUMP are written. \
                `redis`: Redis 7.0, or the first Redis that supports all of the data (7.4 if a field of a hash \
                expires); `redis-7.2`, `redis-8` and `valkey-9`: that server. Data that it does not support is \
                still written, so that nothing is lost, and the log warns that the server cannot read the file.",
    },
];
