//! The sections of INFO that tell what the server is and has: server, clients, memory, persistence, replication, cpu,
//! keyspace.

use std::collections::HashSet;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{SystemTime, UNIX_EPOCH};

use emberkv_core::keyspace::SHARDS;
use emberkv_core::observers::Waiter;

use super::Report;
use crate::conditions::Condition;
use crate::config::Config;
use crate::memory::{self, human, ratio};
use crate::server::{REDIS_VERSION, Server};
use crate::supervisor;

const SECONDS_PER_DAY: u64 = 86_400;

pub(super) fn server(report: &mut Report<'_>) {
    let server = report.server;
    let uptime = server.started.elapsed().as_secs();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let executable = std::env::current_exe().map(|path| path.display().to_string()).unwrap_or_default();
    let file = server.config.file().map(|path| path.display().to_string()).unwrap_or_default();
    let supervised = if supervisor::is_told(report.config.supervised) { "systemd" } else { "no" };
    report.line("redis_version", REDIS_VERSION);
    report.line("ember_version", env!("CARGO_PKG_VERSION"));
    report.line("redis_git_sha1", "00000000");
    report.line("redis_git_dirty", 0);
    report.line("redis_build_id", 0);
    report.line("redis_mode", "standalone");
    report.line("os", operating_system());
    report.line("arch_bits", usize::BITS);
    report.line("monotonic_clock", "POSIX clock_gettime");
    report.line("multiplexing_api", if cfg!(target_os = "linux") { "epoll" } else { "kqueue" });
    report.line("process_id", std::process::id());
    report.line("process_supervised", supervised);
    report.line("run_id", &server.run_id);
    let Config { port, tls_port, .. } = *report.config;
    report.line("tcp_port", if port == 0 { tls_port } else { port });
    report.line("server_time_usec", now.as_micros());
    report.line("uptime_in_seconds", uptime);
    report.line("uptime_in_days", uptime / SECONDS_PER_DAY);
    report.line("hz", report.config.hz);
    report.line("configured_hz", report.config.hz);
    report.line("lru_clock", (now.as_secs() as u32) & 0x00FF_FFFF);
    report.line("executable", executable);
    report.line("config_file", file);
    report.line("io_threads_active", 0);
    report.line("ember_workers", server.workers.len());
    report.line("ember_execution_mode", if server.is_concurrent { "concurrent" } else { "sharded" });
    let listeners = [("tcp", port), ("tls", tls_port)].into_iter().filter(|&(_, port)| port != 0);
    for (number, (name, port)) in listeners.enumerate() {
        let bind = bind(report);
        report.line(&format!("listener{number}"), format_args!("name={name},bind={bind},port={port}"));
    }
}

fn bind(report: &Report<'_>) -> String {
    report.config.bind.iter().map(|address| address.host.as_str()).collect::<Vec<_>>().join(",")
}

fn operating_system() -> String {
    let read = |name: &str| {
        let text = fs::read_to_string(format!("/proc/sys/kernel/{name}")).unwrap_or_default();
        text.trim_end().to_owned()
    };
    let (name, release) = (read("ostype"), read("osrelease"));
    let name = if name.is_empty() { std::env::consts::OS.to_owned() } else { name };
    format!("{name} {release} {}", std::env::consts::ARCH)
}

pub(super) fn clients(report: &mut Report<'_>) {
    let views = report.server.clients.all();
    let largest = |bytes: &dyn Fn(&crate::client::ClientView) -> u64| {
        views.iter().map(|view| bytes(view)).max().unwrap_or(0)
    };
    let largest_input = largest(&|view| view.query_bytes.load(Ordering::Relaxed));
    let largest_output = largest(&|view| view.output_bytes.load(Ordering::Relaxed));
    report.line("connected_clients", views.len());
    report.line("cluster_connections", 0);
    report.line("maxclients", report.config.maxclients);
    report.line("client_recent_max_input_buffer", largest_input);
    report.line("client_recent_max_output_buffer", largest_output);
    report.line("blocked_clients", report.server.blocked_clients.load(Ordering::Relaxed));
    report.line("pubsub_clients", views.iter().filter(|view| view.is_subscribed()).count());
    report.line("tracking_clients", report.server.trackers.len());
    let observed = report.server.observed();
    report.line("watching_clients", observed.watching_clients);
    report.zeros(&["clients_in_timeout_table"]);
    report.line("total_watched_keys", observed.watched_keys);
    report.line("total_blocking_keys", observed.awaited_keys);
    report.line("total_blocking_keys_on_nokey", observed.awaited_keys_or_none);
}

/// How many keys are observed.
#[derive(Default)]
struct Observed {
    watching_clients: usize,
    watched_keys: usize,
    /// Keys that somebody waits for.
    awaited_keys: usize,
    /// Those of them whose waiters are told, too, when the key is there no more.
    awaited_keys_or_none: usize,
}

impl Server {
    /// O(keys observed).
    fn observed(&self) -> Observed {
        let mut observed = Observed::default();
        let mut watches = HashSet::new();
        let ends_without_key =
            |waiter: &Arc<Waiter>| self.registry.get(waiter.command).spec.name == "xreadgroup";
        for shard in 0..SHARDS {
            let shard = self.keyspace.lock(shard);
            let Some(observers) = shard.observers() else { continue };
            for watches_of_key in observers.all_watches() {
                observed.watched_keys += 1;
                watches.extend(watches_of_key.iter().map(Arc::as_ptr));
            }
            for waiters in observers.all_waiters() {
                observed.awaited_keys += 1;
                observed.awaited_keys_or_none += usize::from(waiters.iter().any(ends_without_key));
            }
        }
        observed.watching_clients = watches.len();
        observed
    }
}

/// Scripts and functions run in the same interpreters: all their memory is told as that of scripts.
fn scripts(report: &mut Report<'_>) {
    let scripting = &report.server.scripting;
    let interpreters = scripting.interpreter_bytes();
    let (scripts, libraries) = (&scripting.scripts, scripting.libraries.snapshot());
    let (script_bytes, function_bytes) = (scripts.text_bytes() as u64, libraries.code_bytes() as u64);
    report.line("used_memory_lua", interpreters);
    report.line("used_memory_vm_eval", interpreters);
    report.line("used_memory_lua_human", human(interpreters));
    report.line("used_memory_scripts_eval", script_bytes);
    report.line("number_of_cached_scripts", scripts.len());
    report.line("number_of_functions", libraries.functions_count());
    report.line("number_of_libraries", libraries.all().count());
    report.line("used_memory_vm_functions", 0);
    report.line("used_memory_vm_total", interpreters);
    report.line("used_memory_vm_total_human", human(interpreters));
    report.line("used_memory_functions", function_bytes);
    report.line("used_memory_scripts", script_bytes + function_bytes);
    report.line("used_memory_scripts_human", human(script_bytes + function_bytes));
}

pub(super) fn memory(report: &mut Report<'_>) {
    let numbers = report.memory;
    let system = memory::system_bytes().unwrap_or(0);
    let with_human = |report: &mut Report<'_>, name: &str, bytes: u64| {
        report.line(name, bytes);
        report.line(&format!("{name}_human"), human(bytes));
    };
    with_human(report, "used_memory", numbers.allocated);
    with_human(report, "used_memory_rss", numbers.resident);
    with_human(report, "used_memory_peak", numbers.peak);
    report.line("used_memory_peak_perc", format_args!("{:.2}%", numbers.peak_percentage()));
    report.line("used_memory_overhead", numbers.overhead());
    report.line("used_memory_startup", numbers.startup);
    report.line("used_memory_dataset", numbers.dataset);
    report.line("used_memory_dataset_perc", format_args!("{:.2}%", numbers.dataset_percentage()));
    report.line("allocator_allocated", numbers.allocated);
    report.line("allocator_active", numbers.active);
    report.line("allocator_resident", numbers.allocator_resident);
    report.line("allocator_retained", numbers.retained);
    with_human(report, "total_system_memory", system);
    scripts(report);
    with_human(report, "maxmemory", report.config.maxmemory);
    report.line("maxmemory_policy", report.config.maxmemory_policy);
    let overhead = |report: &mut Report<'_>, name: &str, unit: &str, part: u64, whole: u64| {
        report.line(&format!("{name}_ratio"), format_args!("{:.2}", ratio(part, whole)));
        report.line(&format!("{name}{unit}_bytes"), part as i64 - whole as i64);
    };
    overhead(report, "allocator_frag", "", numbers.active, numbers.allocated);
    overhead(report, "allocator_rss", "", numbers.allocator_resident, numbers.active);
    overhead(report, "rss_overhead", "", numbers.resident, numbers.allocator_resident);
    overhead(report, "mem_fragmentation", "", numbers.resident, numbers.allocated);
    report.zeros(&["mem_not_counted_for_evict", "mem_replication_backlog", "mem_total_replication_buffers"]);
    report.zeros(&["mem_clients_slaves"]);
    report.line("mem_clients_normal", numbers.clients);
    report.zeros(&["mem_cluster_links", "mem_aof_buffer"]);
    report.line("mem_allocator", memory::ALLOCATOR_NAME);
    report.zeros(&["active_defrag_running", "lazyfree_pending_objects", "lazyfreed_objects"]);
}

/// What is on disk; the fields of what does not exist here say so.
pub(super) fn persistence(report: &mut Report<'_>) {
    let snapshots = &report.server.snapshots;
    let number = |counter: &std::sync::atomic::AtomicU64| counter.load(std::sync::atomic::Ordering::Relaxed);
    let (saves, loaded, expired) =
        (number(&snapshots.saves), number(&snapshots.loaded), number(&snapshots.expired));
    let (processed, total) = snapshots.claims.progress();
    let background = &snapshots.background;
    let is_loading = report.server.conditions.get().contains(Condition::LOADING);
    report.line("loading", u8::from(is_loading));
    report.zeros(&["async_loading", "current_cow_peak", "current_cow_size", "current_cow_size_age"]);
    report.line("current_fork_perc", "0.00");
    report.line("current_save_keys_processed", processed);
    report.line("current_save_keys_total", total);
    report.line("rdb_changes_since_last_save", snapshots.changes(report.server));
    report.line("rdb_bgsave_in_progress", u8::from(background.current_s().is_some()));
    report.line("rdb_last_save_time", snapshots.saved_s(report.server));
    report.line("rdb_last_bgsave_status", if background.has_failed() { "err" } else { "ok" });
    report.line("rdb_last_bgsave_time_sec", background.last_s().unwrap_or(-1));
    report.line("rdb_current_bgsave_time_sec", background.current_s().unwrap_or(-1));
    report.line("rdb_saves", saves);
    report.line("rdb_last_cow_size", snapshots.claims.handed_bytes());
    report.line("rdb_last_load_keys_expired", expired);
    report.line("rdb_last_load_keys_loaded", loaded);
    report.zeros(&["aof_enabled", "aof_rewrite_in_progress", "aof_rewrite_scheduled"]);
    report.line("aof_last_rewrite_time_sec", -1);
    report.line("aof_current_rewrite_time_sec", -1);
    report.line("aof_last_bgrewrite_status", "ok");
    report.zeros(&["aof_rewrites", "aof_rewrites_consecutive_failures"]);
    report.line("aof_last_write_status", "ok");
    report.zeros(&["aof_last_cow_size", "module_fork_in_progress", "module_fork_last_cow_size"]);
    if is_loading {
        let loading = &snapshots.loading;
        let (percent, eta_s) = loading.outlook();
        report.line("loading_start_time", loading.since_s());
        report.line("loading_total_bytes", number(&loading.total_bytes));
        report.line("loading_rdb_used_mem", number(&loading.used_bytes));
        report.line("loading_loaded_bytes", number(&loading.loaded_bytes));
        report.line("loading_loaded_perc", format_args!("{percent:.2}"));
        report.line("loading_eta_seconds", eta_s);
    }
}

pub(super) fn replication(report: &mut Report<'_>) {
    report.line("role", "master");
    report.line("connected_slaves", 0);
    report.line("master_failover_state", "no-failover");
    report.line("master_replid", &report.server.run_id);
    report.line("master_replid2", "0".repeat(40));
    report.line("master_repl_offset", 0);
    report.line("second_repl_offset", -1);
    report.zeros(&[
        "repl_backlog_active",
        "repl_backlog_size",
        "repl_backlog_first_byte_offset",
        "repl_backlog_histlen",
    ]);
}

pub(super) fn cpu(report: &mut Report<'_>) {
    let process = CpuTimes::read("/proc/self/stat").unwrap_or_default();
    let main = format!("/proc/self/task/{}/stat", std::process::id());
    let main_thread = CpuTimes::read(&main).unwrap_or_default();
    for (name, seconds) in [
        ("used_cpu_sys", process.system),
        ("used_cpu_user", process.user),
        ("used_cpu_sys_children", process.children_system),
        ("used_cpu_user_children", process.children_user),
        ("used_cpu_sys_main_thread", main_thread.system),
        ("used_cpu_user_main_thread", main_thread.user),
    ] {
        report.line(name, format_args!("{seconds:.6}"));
    }
}

/// Processor time used, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct CpuTimes {
    user: f64,
    system: f64,
    children_user: f64,
    children_system: f64,
}

impl CpuTimes {
    /// Reads a `stat` file of `/proc` (proc_pid_stat(5)); `None` where there is none.
    fn read(path: &str) -> Option<CpuTimes> {
        CpuTimes::parse(&fs::read_to_string(path).ok()?, rustix::param::clock_ticks_per_second() as f64)
    }

    fn parse(stat: &str, ticks_per_second: f64) -> Option<CpuTimes> {
        // The second field is a name in brackets that may hold blanks and brackets. Behind it field 3 comes first;
        // the times are fields 14 to 17.
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let seconds = |field: usize| {
            let ticks: f64 = fields.get(field - 3)?.parse().ok()?;
            Some(ticks / ticks_per_second)
        };
        Some(CpuTimes {
            user: seconds(14)?,
            system: seconds(15)?,
            children_user: seconds(16)?,
            children_system: seconds(17)?,
        })
    }
}

/// Keys looked at for the mean time to live of a database.
const TTL_SAMPLES: i64 = 1000;

pub(super) fn keyspace(report: &mut Report<'_>) {
    let keyspace = &report.server.keyspace;
    let mut databases = vec![Counts::default(); keyspace.databases()];
    for shard in 0..SHARDS {
        let data = keyspace.lock(shard);
        for (index, counts) in databases.iter_mut().enumerate() {
            let database = data.database(index);
            counts.keys += database.table().len();
            counts.volatile += database.volatile();
            if database.volatile() > 0 && counts.sampled < TTL_SAMPLES {
                for expire_at_ms in database.table().iter().take(64).filter_map(|entry| entry.expire_at_ms())
                {
                    counts.ttl_sum_ms =
                        counts.ttl_sum_ms.saturating_add((expire_at_ms - report.now_ms).max(0));
                    counts.sampled += 1;
                }
            }
        }
    }
    for (index, counts) in databases.iter().enumerate().filter(|(_, counts)| counts.keys > 0) {
        let mean_ms = counts.ttl_sum_ms / counts.sampled.max(1);
        report.line(
            &format!("db{index}"),
            format_args!("keys={},expires={},avg_ttl={mean_ms}", counts.keys, counts.volatile),
        );
    }
}

/// What a database holds.
#[derive(Clone, Copy, Default)]
struct Counts {
    keys: usize,
    volatile: usize,
    ttl_sum_ms: i64,
    sampled: i64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_times_are_found_behind_any_name() {
        let stat = "42 (a ) b) R 1 2 3 4 5 6 7 8 9 10 250 50 100 7 20 0 1 0";
        let times = CpuTimes { user: 2.5, system: 0.5, children_user: 1.0, children_system: 0.07 };
        assert_eq!(CpuTimes::parse(stat, 100.0), Some(times));
        assert_eq!(CpuTimes::parse("42 (a) R 1", 100.0), None);
        assert_eq!(CpuTimes::parse("", 100.0), None);
    }
}
