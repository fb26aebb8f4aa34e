//! Redis parameters that have no equivalent in ember and no effect.

use crate::parameter::Parameter;
use crate::stored::Form;

const THREADS: &str =
    "each worker reads, runs and writes; `shards` is the number of workers, by default one per core";
const SYNCS: &str = "a file is synced once, when it is complete";
const CRASHES: &str = "a crash ends the process with a message and the system's core dump";
const NO_MODULES: &str = "there are no modules";
const NO_RDMA: &str = "there are no connections over RDMA in this version";
const NO_MPTCP: &str = "there is no Multipath TCP in this version";
const TABLES: &str = "tables grow and shrink group by group as keys are added and removed";

const fn stored(
    name: &'static str,
    form: Form,
    default: &'static str,
    reason: &'static str,
    about: &'static str,
) -> Parameter {
    Parameter::without_effect(name, form, default, reason, about)
}

pub(super) static PARAMETERS: &[Parameter] = &[
    stored("always-show-logo", Form::YesNo, "no", "there is no logo", "Whether the log begins with a logo.")
        .at_start(),
    stored("io-threads", Form::Integer(1..=128), "1", THREADS, "The number of threads that read and write.")
        .at_start(),
    stored("io-threads-do-reads", Form::YesNo, "no", THREADS, "Whether those threads also read.").at_start(),
    stored(
        "disable-thp",
        Form::YesNo,
        "yes",
        "the server does not fork, so huge pages are never copied and are useful",
        "Whether huge pages are disabled for the process.",
    )
    .at_start(),
    stored(
        "jemalloc-bg-thread",
        Form::YesNo,
        "yes",
        "such a thread always runs",
        "Whether a thread of the allocator returns memory to the system.",
    ),
    stored(
        "dynamic-hz",
        Form::YesNo,
        "yes",
        "each worker has its share of the background work",
        "Whether background work runs more often with many clients.",
    ),
    stored(
        "activerehashing",
        Form::YesNo,
        "yes",
        TABLES,
        "Whether tables are rehashed in the background, too.",
    ),
    stored(
        "aof-rewrite-incremental-fsync",
        Form::YesNo,
        "yes",
        SYNCS,
        "Whether a rewritten AOF is synced in parts.",
    ),
    stored(
        "rdb-save-incremental-fsync",
        Form::YesNo,
        "yes",
        SYNCS,
        "Whether an RDB file is synced in parts.",
    ),
    stored(
        "rdbchecksum",
        Form::YesNo,
        "yes",
        "RDB files always end with a checksum, whose cost is negligible",
        "Whether RDB files end with a checksum, which is verified when they are loaded.",
    )
    .at_start(),
    stored(
        "sanitize-dump-payload",
        Form::Choice(&["no", "yes", "clients"]),
        "no",
        "values of RESTORE are always checked in full, for every client",
        "Whether RESTORE checks a whole value before it is used.",
    ),
    stored(
        "maxmemory-eviction-tenacity",
        Form::Integer(0..=100),
        "10",
        "keys are evicted until there is enough memory, before the command that needs it runs",
        "The maximum duration of one round of eviction.",
    ),
    stored("crash-log-enabled", Form::YesNo, "yes", CRASHES, "Whether a crash is logged."),
    stored("crash-memcheck-enabled", Form::YesNo, "yes", CRASHES, "Whether memory is tested after a crash."),
    stored(
        "enable-module-command",
        Form::Choice(&["no", "yes", "local"]),
        "no",
        NO_MODULES,
        "Which clients may use MODULE: none, all, or those on this machine.",
    )
    .at_start(),
    stored(
        "ignore-warnings",
        Form::Text,
        "",
        "no warning prevents startup",
        "The startup warnings that do not prevent startup.",
    ),
    stored(
        "locale-collate",
        Form::Text,
        "",
        "strings are compared byte by byte",
        "The locale whose order SORT and Lua use to compare strings.",
    ),
    stored(
        "socket-mark-id",
        Form::Integer(0..=u32::MAX as i64),
        "0",
        "sockets are not marked in this version",
        "The mark of sockets for the system's packet filters; 0 for none.",
    )
    .at_start(),
    stored(
        "tls-dh-params-file",
        Form::Text,
        "",
        "key exchange uses elliptic curves only",
        "The parameters of the Diffie-Hellman key exchange.",
    ),
    stored(
        "prefetch-batch-max-size",
        Form::Integer(0..=128),
        "16",
        "the keys of all commands that have arrived together are prefetched",
        "The number of keys that are prefetched into the CPU cache.",
    ),
    stored(
        "extended-redis-compatibility",
        Form::YesNo,
        "no",
        "the server always behaves like Redis",
        "Whether the server identifies itself as Redis to clients.",
    ),
    stored(
        "hash-seed",
        Form::Text,
        "",
        "tables are keyed with a new random number at each start",
        "The seed of the tables' hash function.",
    )
    .at_start(),
    stored("mptcp", Form::YesNo, "no", NO_MPTCP, "Whether clients may use Multipath TCP.").at_start(),
    stored("rdma-port", Form::Integer(0..=65535), "0", NO_RDMA, "The port for connections over RDMA."),
    stored("rdma-bind", Form::Text, "", NO_RDMA, "The addresses for connections over RDMA."),
    stored(
        "rdma-rx-size",
        Form::Integer(64 * 1024..=16 * 1024 * 1024),
        "1048576",
        NO_RDMA,
        "The size of a connection's buffer over RDMA.",
    )
    .at_start(),
    stored(
        "rdma-completion-vector",
        Form::Integer(-1..=1024),
        "-1",
        NO_RDMA,
        "The completion vector of connections over RDMA; -1 for any.",
    )
    .at_start(),
    stored(
        "hide-user-data-from-log",
        Form::YesNo,
        "yes",
        "the log contains no keys and no values, except those of a damaged file during loading",
        "Whether keys and values are omitted from the log.",
    ),
];
