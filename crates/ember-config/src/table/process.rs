//! Parameters of the process and its environment.

use super::bounds::{DIRECTORY, INT_MAX};
use crate::cpu_list::CpuList;
use crate::oom_score_values::OomScoreValues;
use crate::parameter::{Field, Kind, Parameter};
use crate::shutdown_options::ShutdownOptions;
use crate::stored::check_title_template;
use crate::value::{self, OomScoreAdj, Supervised};

macro_rules! on_signal {
    ($field:ident) => {
        Kind::Words {
            shape: "`default`, or some of `save`, `nosave`, `now`, `force`",
            get: |config| config.$field.format(),
            set: |config, text| ShutdownOptions::parse(text).map(|on_signal| config.$field = on_signal),
        }
    };
}

macro_rules! cpu_list {
    ($field:ident) => {
        Kind::Words {
            shape: "a list of cores",
            get: |config| config.$field.format(),
            set: |config, text| CpuList::parse(text).map(|list| config.$field = list),
        }
    };
}

pub(super) static PARAMETERS: &[Parameter] = &[
    Parameter {
        name: DIRECTORY,
        aliases: &["data-dir"],
        kind: Kind::Path(field!(dir)),
        default: ".",
        mutable: true,
        about: "The working directory: relative paths of `logfile`, `pidfile` and `unixsocket` begin here, and it \
                contains the data. It is created at startup if its parent exists. CONFIG SET changes it while there is no \
                AOF and no snapshot is written.",
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
        kind: Kind::YesNo(field!(daemonize)),
        default: "no",
        mutable: false,
        about: "Whether the server runs in the background: the program returns at once, and a second process serves \
                clients without a terminal. It logs to `logfile`, if set. No effect with a supervisor.",
    },
    Parameter {
        name: "supervised",
        aliases: &[],
        kind: choice!(supervised: Supervised),
        default: "no",
        mutable: false,
        about: "The supervisor that is notified when the server is ready: `systemd` through `NOTIFY_SOCKET`, `upstart` \
                by a stop of the process (`expect stop`), or `auto` for the one whose variable is set: `NOTIFY_SOCKET` \
                or `UPSTART_JOB`.",
    },
    Parameter {
        name: "shutdown-timeout",
        aliases: &[],
        kind: integer!(shutdown_timeout, 0..=INT_MAX),
        default: "10",
        mutable: true,
        about: "The seconds for which a shutdown waits until replicas have received all writes, and then until clients \
                have read their last replies.",
    },
    Parameter {
        name: "shutdown-on-sigint",
        aliases: &[],
        kind: on_signal!(shutdown_on_sigint),
        default: "default",
        mutable: true,
        about: "The effect of SIGINT: that of SHUTDOWN with these options.",
    },
    Parameter {
        name: "shutdown-on-sigterm",
        aliases: &[],
        kind: on_signal!(shutdown_on_sigterm),
        default: "default",
        mutable: true,
        about: "The effect of SIGTERM: that of SHUTDOWN with these options.",
    },
    Parameter {
        name: "oom-score-adj",
        aliases: &[],
        kind: Kind::Choice {
            names: OomScoreAdj::NAMES,
            get: |config| config.oom_score_adj as usize,
            // Shows `relative` as `yes`, as Redis does.
            set: |config, position| {
                config.oom_score_adj = match OomScoreAdj::ALL[position] {
                    OomScoreAdj::Relative => OomScoreAdj::Yes,
                    other => other,
                }
            },
        },
        default: "no",
        mutable: true,
        about: "Whether the server sets its priority for the system's out-of-memory killer: `absolute`, to \
                `oom-score-adj-values`; `relative` or `yes`, to the previous value plus these values.",
    },
    Parameter {
        name: "oom-score-adj-values",
        aliases: &[],
        kind: Kind::Words {
            shape: "three numbers from -2000 to 2000",
            get: |config| config.oom_score_adj_values.format(),
            set: |config, text| {
                OomScoreValues::parse(text).map(|values| config.oom_score_adj_values = values)
            },
        },
        default: "0 200 800",
        mutable: true,
        about: "The values for `oom-score-adj`, from -1000 (killed never) to 1000 (killed first): for a primary, a \
                replica, and a child process, which this server does not have.",
    },
    Parameter {
        name: "set-proc-title",
        aliases: &[],
        kind: Kind::YesNo(field!(set_proc_title)),
        default: "yes",
        mutable: false,
        about: "Whether `ps` shows a title of the process instead of its command line; on Linux only.",
    },
    Parameter {
        name: "proc-title-template",
        aliases: &[],
        kind: Kind::Words {
            shape: "a text with names in braces",
            get: |config| config.proc_title_template.clone(),
            set: |config, text| {
                check_title_template(text)?;
                value::parse_line(text).map(|template| config.proc_title_template = template)
            },
        },
        default: "{title} {listen-addr} {server-mode}",
        mutable: true,
        about: "The text of that title: `{title}`, the name of the program; `{listen-addr}`, its first address; \
                `{port}`, `{tls-port}`, `{unixsocket}`, `{config-file}`; `{server-mode}`, which is empty here. The \
                title is as long as the command line at most; words beyond that are omitted.",
    },
    Parameter {
        name: "server_cpulist",
        aliases: &["server-cpulist"],
        kind: cpu_list!(server_cpulist),
        default: "",
        mutable: false,
        about: "The cores of the workers and of all threads without a separate list, such as `0,2,8-11` or `0-20:2`; \
                empty for all.",
    },
    Parameter {
        name: "bio_cpulist",
        aliases: &["bio-cpulist"],
        kind: cpu_list!(bio_cpulist),
        default: "",
        mutable: false,
        about: "The cores of the threads that sync the AOF and free large values.",
    },
    Parameter {
        name: "aof_rewrite_cpulist",
        aliases: &["aof-rewrite-cpulist"],
        kind: cpu_list!(aof_rewrite_cpulist),
        default: "",
        mutable: false,
        about: "The cores of the threads that rewrite the AOF.",
    },
    Parameter {
        name: "bgsave_cpulist",
        aliases: &["bgsave-cpulist"],
        kind: cpu_list!(bgsave_cpulist),
        default: "",
        mutable: false,
        about: "The cores of the threads that save in the background.",
    },
];
