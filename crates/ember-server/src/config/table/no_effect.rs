//! Parameters of Redis that have no meaning here.

use crate::config::parameter::Parameter;
use crate::config::stored::Form;

const THREADS: &str = "workers read, run and write, one for each core: `shards` is their number";
const SYNCS: &str = "a file is made durable once, when it is complete";
const CRASHES: &str = "a crash ends the process with a message and the system's core dump";
const NO_MODULES: &str = "there are no modules";
const NO_RDMA: &str = "there are no connections over RDMA in this version";
const NO_MPTCP: &str = "there is no Multipath TCP in this version";
const TABLES: &str = "tables grow and shrink a group at a time, as keys come and go";

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
    stored("always-show-logo", Form::YesNo, "no", "there is no logo", "Whether a logo stands in the log.")
        .at_start(),
    stored("io-threads", Form::Integer(1..=128), "1", THREADS, "How many threads read and write.").at_start(),
    stored("io-threads-do-reads", Form::YesNo, "no", THREADS, "Whether those threads also read.").at_start(),
    stored(
        "disable-thp",
        Form::YesNo,
        "yes",
        "nothing forks, so huge pages are never copied and are wanted",
        "Whether the process goes without huge pages.",
    )
    .at_start(),
    stored(
        "jemalloc-bg-thread",
        Form::YesNo,
        "yes",
        "it always does",
        "Whether a thread of the allocator gives memory back to the system.",
    ),
    stored(
        "dynamic-hz",
        Form::YesNo,
        "yes",
        "each worker has its share of the background work",
        "Whether background work is done more often with many clients.",
    ),
    stored("activerehashing", Form::YesNo, "yes", TABLES, "Whether tables grow in the background too."),
    stored(
        "aof-rewrite-incremental-fsync",
        Form::YesNo,
        "yes",
        SYNCS,
        "Whether a rewritten AOF is made durable a part at a time.",
    ),
    stored(
        "rdb-save-incremental-fsync",
        Form::YesNo,
        "yes",
        SYNCS,
        "Whether an RDB file is made durable a part at a time.",
    ),
    stored(
        "rdbchecksum",
        Form::YesNo,
        "yes",
        "RDB files always end with a checksum, which takes no time to speak of",
        "Whether RDB files end with a checksum, which is compared when they are read.",
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
        "keys are evicted until there is room, before the command that needs it runs",
        "How long one round of eviction may take.",
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
        "nothing here stops the server with a warning",
        "Which warnings of the start do not stop the server.",
    ),
    stored(
        "locale-collate",
        Form::Text,
        "",
        "texts are compared byte by byte",
        "The locale in whose order SORT and Lua compare texts.",
    ),
    stored(
        "socket-mark-id",
        Form::Integer(0..=u32::MAX as i64),
        "0",
        "sockets are not marked in this version",
        "The mark of sockets for the system's filters; 0 for none.",
    )
    .at_start(),
    stored(
        "tls-dh-params-file",
        Form::Text,
        "",
        "keys are exchanged over elliptic curves only",
        "The parameters of a Diffie-Hellman exchange of keys.",
    ),
    stored(
        "prefetch-batch-max-size",
        Form::Integer(0..=128),
        "16",
        "the keys of all commands that have arrived together are fetched ahead",
        "How many keys are fetched into the cache ahead.",
    ),
    stored(
        "extended-redis-compatibility",
        Form::YesNo,
        "no",
        "the server always answers as Redis",
        "Whether the server calls itself Redis where clients look.",
    ),
    stored(
        "hash-seed",
        Form::Text,
        "",
        "tables are keyed with a new random number at each start",
        "From what the key of the tables' hash function is made.",
    )
    .at_start(),
    stored("mptcp", Form::YesNo, "no", NO_MPTCP, "Whether clients may speak Multipath TCP.").at_start(),
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
        "Which completion vector connections over RDMA use; -1 for any.",
    )
    .at_start(),
    stored(
        "hide-user-data-from-log",
        Form::YesNo,
        "yes",
        "the log names no keys and no values, but where a file that is loaded is broken",
        "Whether keys and values are left out of the log.",
    ),
];
