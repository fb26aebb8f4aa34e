//! The INFO sections about the state of the server: server, clients, memory, persistence, replication, cpu, keyspace.

use std::fs;
use std::sync::LazyLock;
use std::sync::atomic::Ordering;
use std::time::{SystemTime, UNIX_EPOCH};

use ember_config::Config;
use emberkv_core::reclaim;

use super::Report;
use crate::aof::service::Aof;
use crate::aof::slow_disk;
use crate::catalogue::modules::BUILT_IN;
use crate::defragmentation::ActiveDefrag;
use crate::history;
use crate::journal::Reader;
use crate::live_queries::LiveQueries;
use crate::metrics::memory_report::{self, MemoryReport, human, ratio};
use crate::metrics::system_figures::SystemFigures;
use crate::replication::failover::stage::Failover;
use crate::replication::link::{Link, LinkReport, Phase};
use crate::replication::primary::{Primary, good_replicas};
use crate::replication::shutdown::stage::Shutdown;
use crate::server::conditions::Condition;
use crate::snapshot::state::SnapshotState;
use crate::system::clock::unix_ms;
use crate::system::heap;
use crate::system::supervisor;
use crate::tiers::report::Figures;
use crate::tls::CertificateFact;

const SECONDS_PER_DAY: u64 = 86_400;

pub(super) fn server(report: &mut Report<'_>) {
    let server = report.server;
    let uptime = server.started.elapsed().as_secs();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let file = server.config.file().map(|path| path.display().to_string()).unwrap_or_default();
    let supervised = supervisor::effective(report.config.supervised);
    report.line("redis_version", report.config.redis_version);
    report.line("ember_version", env!("CARGO_PKG_VERSION"));
    // Shortened to the number of digits that Redis shows.
    report.line("redis_git_sha1", ember_version::COMMIT.get(..8).unwrap_or("00000000"));
    report.line("redis_git_dirty", 0);
    report.line("redis_build_id", 0);
    report.line("redis_mode", if server.slots.is_some() { "cluster" } else { "standalone" });
    report.line("os", &*OPERATING_SYSTEM);
    report.line("arch_bits", usize::BITS);
    report.line("monotonic_clock", "POSIX clock_gettime");
    report.line("multiplexing_api", if cfg!(target_os = "linux") { "epoll" } else { "kqueue" });
    report.line("process_id", std::process::id());
    report.line("process_supervised", supervised);
    report.line("run_id", &server.run_id);
    let Config { port, tls_port, .. } = *report.config;
    report.line("tcp_port", if port == 0 { tls_port } else { port });
    report.line("server_time_usec", now.as_micros());
    if let Some(left_ms) = Shutdown::of(server).left_ms(report.now_ms) {
        report.line("shutdown_in_milliseconds", left_ms);
    }
    report.line("uptime_in_seconds", uptime);
    report.line("uptime_in_days", uptime / SECONDS_PER_DAY);
    report.line("hz", report.config.hz);
    report.line("configured_hz", report.config.hz);
    report.line("lru_clock", (now.as_secs() as u32) & 0x00FF_FFFF);
    report.line("executable", &*EXECUTABLE);
    report.line("config_file", file);
    report.line("availability_zone", &report.config.availability_zone);
    report.line("io_threads_active", 0);
    report.line("ember_workers", server.workers.len());
    report.line("ember_store", report.config.store);
    report.line("ember_execution_mode", if server.is_concurrent { "concurrent" } else { "sharded" });
    let listeners = [("tcp", port), ("tls", tls_port)].into_iter().filter(|&(_, port)| port != 0);
    for (number, (name, port)) in listeners.enumerate() {
        let bind = bind(report);
        report.line(&format!("listener{number}"), format_args!("name={name},bind={bind},port={port}"));
    }
}

pub(super) fn modules(report: &mut Report<'_>) {
    for (name, version) in BUILT_IN {
        report.text +=
            &format!("module:name={name},ver={version},api=1,filters=0,usedby=[],using=[],options=[]\r\n");
    }
}

/// Writes the fields about the certificates of the server and of its authority. The fields about the certificate of
/// outgoing connections have empty values, because INFO does not report it.
pub(super) fn tls(report: &mut Report<'_>) {
    let facts = report.server.tls.certificate_facts();
    for (name, fact) in
        [("server", facts.server), ("client", CertificateFact::default()), ("ca", facts.authority)]
    {
        let left_s = fact.not_after_s.map_or(0, |at_s| (at_s - report.now_ms / 1000).max(0));
        report.line(&format!("tls_{name}_cert_serial"), fact.serial.as_deref().unwrap_or("none"));
        report.line(&format!("tls_{name}_cert_expires_in_seconds"), left_s);
    }
}

fn bind(report: &Report<'_>) -> String {
    report.config.bind.iter().map(|address| address.host.as_str()).collect::<Vec<_>>().join(",")
}

static EXECUTABLE: LazyLock<String> =
    LazyLock::new(|| std::env::current_exe().map(|path| path.display().to_string()).unwrap_or_default());

/// The name and release of the operating system, and the processor architecture.
static OPERATING_SYSTEM: LazyLock<String> = LazyLock::new(|| {
    let read = |name: &str| {
        let text = fs::read_to_string(format!("/proc/sys/kernel/{name}")).unwrap_or_default();
        text.trim_end().to_owned()
    };
    let (name, release) = (read("ostype"), read("osrelease"));
    let name = if name.is_empty() { std::env::consts::OS.to_owned() } else { name };
    format!("{name} {release} {}", std::env::consts::ARCH)
});

pub(super) fn clients(report: &mut Report<'_>) {
    let views = report.server.clients.all();
    let largest = |bytes: &dyn Fn(&crate::clients::client::ClientView) -> u64| {
        views.iter().map(|view| bytes(view)).max().unwrap_or(0)
    };
    let largest_input = largest(&|view| view.query_bytes.load(Ordering::Relaxed));
    let largest_output = largest(&|view| view.output_bytes.load(Ordering::Relaxed));
    report.line("connected_clients", report.server.clients.count());
    report.line("cluster_connections", 0);
    report.line("maxclients", report.config.maxclients);
    report.line("client_recent_max_input_buffer", largest_input);
    report.line("client_recent_max_output_buffer", largest_output);
    report.line("blocked_clients", report.server.blocked_clients.load(Ordering::Relaxed));
    report.line("pubsub_clients", views.iter().filter(|view| view.is_subscribed()).count());
    report.line("tracking_clients", report.server.trackers.len());
    let census = report.census();
    report.line("watching_clients", census.watching_clients);
    report.line("clients_in_timeout_table", report.server.waiting_in_time.load(Ordering::Relaxed));
    report.line("total_watched_keys", census.watched_keys);
    report.line("total_blocking_keys", census.awaited_keys);
    report.line("total_blocking_keys_on_nokey", census.awaited_keys_or_none);
    let pause = report.server.pause.current(report.now_ms);
    report.line("paused_reason", pause.map_or("none", |pause| pause.reason));
    report.line("paused_actions", pause.map_or("none", |pause| if pause.all { "all" } else { "write" }));
    report.line("paused_timeout_milliseconds", pause.map_or(0, |pause| pause.left_ms));
}

/// Writes the memory of scripts. Scripts and functions share the interpreters, so the whole memory of interpreters is
/// reported as that of scripts.
fn scripts(report: &mut Report<'_>) {
    let scripting = &report.server.scripting;
    let interpreters = scripting.interpreter_bytes();
    let (scripts, libraries) = (&scripting.scripts, scripting.libraries.snapshot());
    let (script_bytes, function_bytes) = (scripts.text_bytes() as u64, libraries.code_bytes() as u64);
    report.line("used_memory_lua", interpreters);
    report.line("used_memory_vm_eval", interpreters);
    report.line("used_memory_lua_human", human(interpreters));
    report.line("used_memory_scripts_eval", script_bytes);
    report.line("number_of_cached_scripts", scripts.count());
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
    let numbers = MemoryReport::of(report.server);
    let system = memory_report::system_bytes().unwrap_or(0);
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
    report.line("allocator_allocated", numbers.allocator.allocated);
    report.line("allocator_active", numbers.allocator.active);
    report.line("allocator_resident", numbers.allocator.resident);
    report.line("allocator_retained", numbers.allocator.retained);
    with_human(report, "total_system_memory", system);
    scripts(report);
    with_human(report, "maxmemory", report.config.maxmemory);
    report.line("maxmemory_policy", report.config.maxmemory_policy);
    let overhead = |report: &mut Report<'_>, name: &str, unit: &str, part: u64, whole: u64| {
        report.line(&format!("{name}_ratio"), format_args!("{:.2}", ratio(part, whole)));
        report.line(&format!("{name}{unit}_bytes"), part as i64 - whole as i64);
    };
    overhead(report, "allocator_frag", "", numbers.allocator.active, numbers.allocator.allocated);
    overhead(report, "allocator_rss", "", numbers.allocator.resident, numbers.allocator.active);
    overhead(report, "rss_overhead", "", numbers.resident, numbers.allocator.resident);
    overhead(report, "mem_fragmentation", "", numbers.resident, numbers.allocated);
    report.line("mem_not_counted_for_evict", numbers.not_counted());
    let backlog = Primary::of(report.server).backlog_bytes();
    report.line("mem_replication_backlog", backlog);
    report.line("mem_total_replication_buffers", backlog);
    report.line("mem_clients_slaves", numbers.replicas);
    report.line("mem_clients_normal", numbers.other_clients());
    report.zeros(&["mem_cluster_links"]);
    let waiting = Aof::of(report.server).buffer_bytes(report.server);
    report.line("mem_snapshot_buffer", numbers.held_back);
    report.line("mem_watches", LiveQueries::of(report.server).memory_bytes());
    report.line("mem_aof_buffer", waiting);
    report.line("mem_allocator", heap::ALLOCATOR_NAME);
    report.line("active_defrag_running", ActiveDefrag::of(report.server).effort_percent());
    report.line("lazyfree_pending_objects", reclaim::pending());
    report.line("lazyfreed_objects", reclaim::freed());
}

/// Writes the state of persistence. Fields of features that do not exist here have constant values.
pub(super) fn persistence(report: &mut Report<'_>) {
    let snapshots = SnapshotState::of(report.server);
    let number = |counter: &std::sync::atomic::AtomicU64| counter.load(std::sync::atomic::Ordering::Relaxed);
    let (saves, loaded, expired) =
        (number(&snapshots.saves), number(&snapshots.loaded), number(&snapshots.expired));
    let (processed, total) = snapshots.claims.progress();
    let background = &snapshots.background;
    report.line("loading", u8::from(report.server.is_loading()));
    report.zeros(&["async_loading", "current_cow_peak", "current_cow_size", "current_cow_size_age"]);
    report.line("current_fork_perc", "0.00");
    report.line("current_save_keys_processed", processed);
    report.line("current_save_keys_total", total);
    report.line("rdb_changes_since_last_save", snapshots.changes(report.server));
    report.line("rdb_bgsave_in_progress", u8::from(snapshots.is_saving()));
    report.line("rdb_last_save_time", snapshots.saved_s(report.server));
    report.line("rdb_last_bgsave_status", if background.has_failed() { "err" } else { "ok" });
    report.line("rdb_last_bgsave_time_sec", background.last_s().unwrap_or(-1));
    report.line("rdb_current_bgsave_time_sec", background.current_s().unwrap_or(-1));
    report.line("rdb_saves", saves);
    report.line("rdb_last_cow_size", snapshots.claims.preimage_bytes());
    report.line("rdb_last_load_keys_expired", expired);
    report.line("rdb_last_load_keys_loaded", loaded);
    aof(report);
    report.zeros(&["module_fork_in_progress", "module_fork_last_cow_size"]);
    aof_files(report);
    let fingerprint = report.server.encryption.fingerprint();
    report.line("encryption_enabled", u8::from(fingerprint.is_some()));
    if let Some(fingerprint) = fingerprint {
        report.line("encryption_key_fingerprint", fingerprint);
    }
    loading(report);
}

/// Writes the progress of loading, during loading only.
fn loading(report: &mut Report<'_>) {
    if !report.server.is_loading() {
        return;
    }
    let loading = &SnapshotState::of(report.server).loading;
    let (percent, eta_s) = loading.outlook();
    report.line("loading_start_time", loading.since_s());
    report.line("loading_total_bytes", loading.total_bytes.load(Ordering::Relaxed));
    report.line("loading_rdb_used_mem", loading.used_bytes.load(Ordering::Relaxed));
    report.line("loading_loaded_bytes", loading.loaded_bytes());
    report.line("loading_loaded_perc", format_args!("{percent:.2}"));
    report.line("loading_eta_seconds", eta_s);
}

fn aof(report: &mut Report<'_>) {
    let aof = &Aof::of(report.server).state;
    let status = |failed: bool| if failed { "err" } else { "ok" };
    report.line("aof_enabled", u8::from(report.server.journal.is_read_by(Reader::Aof)));
    report.line("aof_rewrite_in_progress", u8::from(aof.is_rewriting()));
    report.line("aof_rewrite_scheduled", u8::from(aof.is_scheduled()));
    report.line("aof_last_rewrite_time_sec", aof.last_rewrite_s.load(Ordering::Relaxed));
    report.line("aof_current_rewrite_time_sec", aof.rewriting_s());
    report.line("aof_last_bgrewrite_status", status(aof.rewrite_failed.load(Ordering::Relaxed)));
    report.line("aof_rewrites", aof.rewrites.load(Ordering::Relaxed));
    report.line("aof_rewrites_consecutive_failures", aof.failed_in_a_row.load(Ordering::Relaxed));
    report.line("aof_last_write_status", status(aof.failing_ms() > 0));
    report.line("aof_last_cow_size", SnapshotState::of(report.server).claims.preimage_bytes());
}

/// Writes the fields that Redis shows only if the AOF is enabled.
fn aof_files(report: &mut Report<'_>) {
    let aof = &Aof::of(report.server).state;
    if !report.server.journal.is_read_by(Reader::Aof) {
        return;
    }
    report.line("aof_current_size", aof.size.load(Ordering::Relaxed));
    report.line("aof_base_size", aof.base_size.load(Ordering::Relaxed));
    report.line("aof_kept_bytes", aof.kept_bytes.load(Ordering::Relaxed));
    report.line("aof_pending_rewrite", u8::from(aof.is_scheduled()));
    report.line("aof_buffer_length", Aof::of(report.server).buffer_bytes(report.server));
    report.line("aof_unsynced_bytes", aof.unsynced_bytes.load(Ordering::Relaxed));
    report.line("aof_pending_bio_fsync", u8::from(aof.is_syncing.load(Ordering::Relaxed)));
    report.line("aof_delayed_fsync", aof.delayed_syncs.load(Ordering::Relaxed));
    report.line("aof_current_fsync_ms", aof.sync.running_ms().unwrap_or(0));
    report.line("aof_last_fsync_ms", aof.sync.last_ms());
    report.line("aof_current_write_ms", aof.write.running_ms().unwrap_or(0));
    let delayed = report.server.conditions.get().contains(Condition::AOF_LAGS);
    report.line("aof_writes_delayed", u8::from(delayed));
    report.line("aof_disk_is_slow", u8::from(slow_disk::slowness(report.server).is_some()));
}

pub(super) fn replication(report: &mut Report<'_>) {
    let server = report.server;
    let primary = Primary::of(server);
    let (now_ms, replicas, history) = (unix_ms(), primary.replicas(), primary.history());
    let end = primary.end();
    match Link::report(server) {
        None => report.line("role", "master"),
        Some(link) => replica(report, &link),
    }
    report.line("connected_slaves", replicas.len());
    if report.config.min_replicas_to_write != 0 && report.config.min_replicas_max_lag != 0 {
        report.line("min_slaves_good_slaves", good_replicas::count(server, report.config));
    }
    for (number, view) in replicas.iter().enumerate() {
        let state = view.stage().name();
        let (address, port) = (&view.address, view.port);
        let (offset, lag, lag_bytes) = (view.acknowledged(), view.lag_s(now_ms), view.lag_bytes(end));
        report.line(
            &format!("slave{number}"),
            format_args!(
                "ip={address},port={port},state={state},offset={offset},lag={lag},lag_bytes={lag_bytes}"
            ),
        );
    }
    report.line("master_failover_state", Failover::of(server).stage().name());
    report.line("master_replid", &history.id);
    let (before, before_end) = history.before.unzip();
    report.line("master_replid2", before.unwrap_or_else(|| "0".repeat(40)));
    report.line("master_repl_offset", end);
    // As in Redis, this is the offset of the first byte that the two histories do not share.
    report.line("second_repl_offset", before_end.map_or(-1, |end| end as i64 + 1));
    let first = primary.first_kept();
    report.line("repl_backlog_active", u8::from(first.is_some()));
    report.line("repl_backlog_size", server.config.snapshot().repl_backlog_size);
    report.line("repl_backlog_first_byte_offset", first.map_or(0, |first| first + 1));
    report.line("repl_backlog_spilled_bytes", primary.spilled_bytes());
    report.line("repl_backlog_histlen", first.map_or(0, |first| primary.end() - first));
}

/// Writes the state of a replica's connection to its primary.
fn replica(report: &mut Report<'_>, link: &LinkReport) {
    let seconds_since = |then_ms: i64| (report.now_ms - then_ms).max(0) / 1000;
    let is_up = link.phase == Phase::Connected;
    // As in Redis, offsets are 1 if there is no stream.
    let (read, applied) = link.offsets.unwrap_or((1, 1));
    let last_io = link.read_ms.map_or(-1, seconds_since);
    let copied_s = seconds_since(link.copy.read_ms);
    let down_s = seconds_since(link.down_since_ms);
    report.line("role", "slave");
    report.line("master_host", &link.host);
    report.line("master_port", link.port);
    report.line("master_link_status", if is_up { "up" } else { "down" });
    report.line("master_last_io_seconds_ago", last_io);
    report.line("master_sync_in_progress", u8::from(link.phase == Phase::Copying));
    report.line("slave_read_repl_offset", read);
    report.line("slave_repl_offset", applied);
    if link.phase == Phase::Copying {
        let (total, read) = (link.copy.total.unwrap_or(0), link.copy.read);
        report.line("master_sync_total_bytes", total);
        report.line("master_sync_read_bytes", read);
        report.line("master_sync_left_bytes", total.saturating_sub(read));
        report.line("master_sync_perc", format_args!("{:.2}", 100.0 * read as f64 / total.max(1) as f64));
        report.line("master_sync_last_io_seconds_ago", copied_s);
    }
    if !is_up {
        report.line("master_link_down_since_seconds", down_s);
    }
    if let Some(why) = &link.stopped {
        report.line("ember_link_stopped", why.replace(['\r', '\n'], " "));
    }
    report.line("slave_priority", report.config.replica_priority);
    report.line("slave_read_only", 1);
    report.line("replica_announced", u8::from(report.config.replica_announced));
}

pub(super) fn cpu(report: &mut Report<'_>) {
    let SystemFigures { processor: process, processor_of_main_thread: main_thread, .. } =
        SystemFigures::recent(report.server);
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

pub(super) fn keyspace(report: &mut Report<'_>) {
    let census = report.census();
    for (index, counts) in census.databases.iter().enumerate().filter(|(_, counts)| counts.keys > 0) {
        let mean_ms = counts.mean_ttl_ms();
        report.line(
            &format!("db{index}"),
            format_args!(
                "keys={},expires={},avg_ttl={mean_ms},keys_with_volatile_items={}",
                counts.keys, counts.volatile, counts.expiring
            ),
        );
    }
}

/// Writes the figures of the history of keys.
pub(super) fn history(report: &mut Report<'_>) {
    for (name, figure) in history::report::Figures::of(report.server).pairs() {
        report.line(&format!("history_{name}"), figure);
    }
}

/// Writes the statistics of demoted and fetched values.
pub(super) fn tiers(report: &mut Report<'_>) {
    let figures = Figures::of(report.server);
    for (name, figure) in figures.now().into_iter().chain(figures.since_start()) {
        report.line(&format!("tier_{name}"), figure);
    }
}
