// The overview: the current activity of the server.

import { lastHour, overview } from "./api.js";
import { Series, chart, whenPointed } from "./charts.js";
import { answered, el, facts, renew, table, tile } from "./dom.js";
import { count, micros, percent, size, span } from "./format.js";

const PERIOD_MS = 1000;
const COMMANDS_SHOWN = 12;
const PERCENTILES = [50, 99, 99.9];

/** The time ranges of charts: samples of this page, one per second; or of the server, one per ten seconds. */
const RANGES = { "2 minutes": 120_000, "1 hour": 3_600_000 };
const PAST_PERIOD_MS = 10_000;

/** The previous sample, the function that redraws the view, and the selected range. */
let before = null;
let drawn = null;
let range = "2 minutes";
/** The last hour as sampled by the server, and the time of its request. */
let past = {};
let askedAt = 0;
const names = ["operations", "hits", "memory", "clients", "keys", "received", "sent", ...PERCENTILES.map(String)];
/** The samples since the page was opened. */
const seen = Object.fromEntries(names.map((name) => [name, new Series()]));

export const view = {
  title: "Overview",
  period: PERIOD_MS,
  async show(main) {
    const now = await answered(main, "Overview", ask);
    if (!now) {
      return;
    }
    document.querySelector("#version").textContent = now.version;
    // The first sample, and the first after CONFIG RESETSTAT, have no predecessor for rates.
    const all = "total_commands_processed";
    const known = before && before.now_ms < now.now_ms && number(before.info, all) <= number(now.info, all);
    note(now, known ? before : null);
    drawn = () => draw(main, now, known ? last : null);
    const last = before;
    drawn();
    before = now;
  },
};

whenPointed(() => drawn && document.querySelector("#throughput") && drawn());

/** Returns a new sample; every ten seconds also reads the last hour. */
async function ask() {
  const now = await overview();
  if (Date.now() - askedAt >= PAST_PERIOD_MS) {
    askedAt = Date.now();
    read(await lastHour(), now.now_ms);
  }
  return now;
}

/** Stores the last hour. On the first call it also fills the last two minutes. */
function read({ at_ms: times, ...lists }, now) {
  const isFirst = Object.values(seen).every((series) => series.times.length === 0);
  for (const name of names) {
    const values = (lists[name] ?? []).map((value) => value ?? NaN);
    past[name] = new Series(times, values);
    if (isFirst) {
      times.forEach((time, at) => time > now - RANGES["2 minutes"] && seen[name].add(time, values[at]));
    }
  }
}

function choose(name) {
  range = name;
  drawn?.();
}

function number(info, name) {
  return Number(info[name] ?? NaN);
}

/** Counters of INFO that include requests of the dashboard, with the names of those parts. */
const OWN = {
  total_commands_processed: "commands",
  total_connections_received: "connections",
  total_net_input_bytes: "input_bytes",
  total_net_output_bytes: "output_bytes",
};

/** Returns a counter without the part of the dashboard. */
function others(look, name) {
  return Math.max(0, number(look.info, name) - (look.own[OWN[name]] ?? 0));
}

/** Returns a percentile of latency from counts per power of two of microseconds: the upper bound of its bucket. */
export function percentile(counts, percent) {
  const total = counts.reduce((sum, calls) => sum + calls, 0);
  const wanted = Math.max(1, Math.ceil((total * percent) / 100));
  let sum = 0;
  for (const [bucket, calls] of counts.entries()) {
    sum += calls;
    if (sum >= wanted) {
      return 2 ** bucket;
    }
  }
  return NaN;
}

/** Returns the calls of each command since the last sample. Those of the dashboard are subtracted at the mean time. */
function activity(now, last) {
  return Object.entries(now.commands).map(([name, total]) => {
    const base = last?.commands[name] ?? { calls: 0, seconds: 0, failed: 0, rejected: 0, latency: [] };
    const latency = total.latency.map((calls, bucket) => Math.max(0, calls - (base.latency[bucket] ?? 0)));
    const since = (field) => Math.max(0, total[field] - base[field]);
    const own = (now.own.calls[name] ?? 0) - (last?.own.calls[name] ?? 0);
    const calls = Math.max(0, since("calls") - Math.max(0, own));
    const share = calls / Math.max(1, since("calls"));
    return { name, total, calls, seconds: since("seconds") * share, latency: calls > 0 ? latency : [] };
  });
}

/** Returns the current metrics, which charts show over time. */
function figures(now, last) {
  const { info } = now;
  const seconds = last ? (now.now_ms - last.now_ms) / 1000 : NaN;
  const rate = (name) => (last ? (others(now, name) - others(last, name)) / seconds : NaN);
  const [hits, misses] = [rate("keyspace_hits"), rate("keyspace_misses")];
  const latency = [];
  activity(now, last).forEach((command) =>
    command.latency.forEach((calls, bucket) => (latency[bucket] = (latency[bucket] ?? 0) + calls)));
  const times = PERCENTILES.map((percent) => percentile(Array.from(latency, (calls) => calls ?? 0), percent));
  return {
    seconds,
    rate,
    misses,
    found: hits,
    operations: rate("total_commands_processed"),
    received: rate("total_net_input_bytes"),
    sent: rate("total_net_output_bytes"),
    hits: hits + misses > 0 ? hits / (hits + misses) : NaN,
    memory: number(info, "used_memory"),
    clients: Math.max(0, number(info, "connected_clients") - 1),
    keys: sum(info, "keys"),
    ...Object.fromEntries(PERCENTILES.map((percent, at) => [percent, times[at]])),
  };
}

function sum(info, field) {
  const databases = Object.entries(info).filter(([name]) => /^db\d+$/.test(name)).map(([, text]) => text);
  return databases.reduce((all, text) => all + Number(new RegExp(`(?:^|,)${field}=(\\d+)`).exec(text)?.[1] ?? 0), 0);
}

function note(now, last) {
  const current = figures(now, last);
  names.forEach((name) => seen[name].add(now.now_ms, current[name]));
}

function draw(main, now, last) {
  const { info } = now;
  const current = figures(now, last);
  const { seconds, rate, operations, found, misses } = current;
  const shown = (value, format) => (Number.isFinite(value) ? format(value) : "–");
  const commands = activity(now, last);
  const total = (name) => number(info, name);
  const allHits = total("keyspace_hits") / (total("keyspace_hits") + total("keyspace_misses"));
  const source = range === "1 hour" ? past : seen;
  const over = (name, label, lines, options) =>
    chart(name, label, lines.map(([title, series]) => [title, source[series] ?? new Series()]),
      { range: RANGES[range], now: now.now_ms, ...options });
  const perSecond = (value) => `${count(value)} / s`;

  renew(main, ranges(), diskTrouble(info), el("div", { class: "tiles" },
    tile("Throughput", { id: "throughput" },
      figure(shown(operations, count), "commands / s"),
      over("throughput", `Commands per second, now ${shown(operations, count)}`, [["", "operations"]],
        { format: perSecond }),
      facts([["since startup", count(others(now, "total_commands_processed"))],
        ["errors", count(total("total_error_replies"))]])),
    tile("Latency", { id: "latency" },
      figure(micros(current[99]), "p99 in the server"),
      over("latency", `Latency: ${PERCENTILES.map((percent) => `p${percent} ${micros(current[percent])}`).join(", ")}`,
        [["p99", "99"], ["p50", "50"], ["p99.9", "99.9"]], { format: micros, isLogarithmic: true }),
      facts(PERCENTILES.map((percent) => [`p${percent}`, micros(current[percent])]))),
    tile("Hit rate", { id: "hits" },
      figure(percent(current.hits), "of reads"),
      over("hits", `Hit rate, now ${percent(current.hits)}`, [["", "hits"]], { format: percent, top: 1 }),
      facts([["since startup", percent(allHits)], ["hits / s", shown(found, count)],
        ["misses / s", shown(misses, count)]])),
    tile("Memory", { id: "memory" },
      figure(size(current.memory), "used"),
      over("memory", `Memory used, now ${size(current.memory)}`, [["", "memory"]], { format: size, base: 1024 }),
      facts([["data", size(total("used_memory_dataset"))], ["peak", size(total("used_memory_peak"))],
        ["resident (RSS)", size(total("used_memory_rss"))],
        ["limit (maxmemory)", total("maxmemory") > 0 ? size(total("maxmemory")) : "none"],
        ["fragmentation ratio", info.mem_fragmentation_ratio]])),
    tile("Clients", { id: "connected" },
      figure(count(current.clients), `of ${count(total("maxclients"))}`),
      over("clients", `Clients connected, now ${current.clients}`, [["", "clients"]], { format: count }),
      facts([["blocked", count(total("blocked_clients"))], ["rejected", count(total("rejected_connections"))],
        ["new / s", shown(rate("total_connections_received"), count)]])),
    tile("Keys", { id: "keycount" },
      figure(count(current.keys), current.keys === 1 ? "key" : "keys"),
      over("keys", `Keys, now ${count(current.keys)}`, [["", "keys"]], { format: count }),
      facts([["with a TTL", count(sum(info, "expires"))], ["expired / s", shown(rate("expired_keys"), count)],
        ["evicted / s", shown(rate("evicted_keys"), count)]])),
    tile("Network", { id: "network" },
      figure(shown(current.sent, size), "/ s sent"),
      over("network", "Bytes per second, sent and received", [["sent", "sent"], ["received", "received"]],
        { format: (value) => `${size(value)} / s`, base: 1024 }),
      facts([["received / s", shown(current.received, size)],
        ["sent since startup", size(others(now, "total_net_output_bytes"))],
        ["received since startup", size(others(now, "total_net_input_bytes"))]])),
    persistence(info, now.now_ms / 1000),
    workers(now, last, seconds),
    commandTable(commands, seconds),
  ));
}

/** Shows operations that the disk prevents or delays, if any; the view Persistence has the details. */
function diskTrouble(info) {
  const troubles = [
    [info.aof_last_write_status === "err", "Writes are refused: the append-only file cannot be written."],
    [info.aof_writes_delayed === "1", "Writes wait for the disk."],
    [info.aof_disk_is_slow === "1", "The disk is slow: an fsync or a write takes long."],
  ];
  const lines = troubles.filter(([is]) => is).map(([, text]) => el("p", { class: "refused" }, text));
  return el("div", { id: "disk", role: "status" }, lines);
}

/** Creates the buttons for the time range. They share one listener, because each refresh creates them again. */
function ranges() {
  const choices = Object.keys(RANGES).map((name) =>
    el("button", { type: "button", "data-range": name, "aria-pressed": String(name === range) }, name));
  return el("div", { class: "row", role: "group", "aria-label": "Time range of the charts" }, choices);
}

document.addEventListener("click", ({ target }) => target.dataset?.range && choose(target.dataset.range));

function figure(value, unit) {
  return el("p", { class: "row" }, el("span", { class: "figure" }, value), el("span", { class: "faint" }, unit));
}

function persistence(info, nowSeconds) {
  const yes = (name) => (info[name] === "1" ? "yes" : "no");
  const isLoading = info.loading === "1";
  const isAofWell = info.aof_enabled !== "1" || info.aof_last_write_status === "ok";
  const isWell = info.rdb_last_bgsave_status === "ok" && isAofWell;
  const state = isLoading ? "loading" : isWell ? "healthy" : "failing";
  return tile("Persistence", { id: "persistence" },
    el("p", { class: "row" }, el("span", { class: isWell ? "figure" : "figure refused" }, state)),
    facts([
      ["changes since the last save", count(Number(info.rdb_changes_since_last_save))],
      ["last save, or startup", `${span(nowSeconds - Number(info.rdb_last_save_time))} ago`],
      ["saving now", yes("rdb_bgsave_in_progress")],
      ["last save was", info.rdb_last_bgsave_status],
      ["append-only file", info.aof_enabled === "1" ? "on" : "off"],
      ...(info.aof_enabled === "1"
        ? [["its size", size(Number(info.aof_current_size))], ["rewriting now", yes("aof_rewrite_in_progress")],
          ["last write", info.aof_last_write_status], ["last rewrite", info.aof_last_bgrewrite_status]]
        : []),
      ["up for", span(Number(info.uptime_in_seconds))],
    ]));
}

function workers(now, last, seconds) {
  const rows = now.workers.map((worker, index) => {
    const base = last?.workers[index];
    const [busy, idle] = base
      ? [worker.busy_seconds - base.busy_seconds, worker.idle_seconds - base.idle_seconds]
      : [NaN, NaN];
    const load = busy + idle > 0 ? Math.max(0, busy / (busy + idle)) : NaN;
    const value = Number.isFinite(load) ? load.toFixed(3) : "0";
    const meter = el("meter", { min: "0", max: "1", high: "0.9", value, "aria-label": `Load of worker ${index}` });
    const speed = base ? count((worker.commands - base.commands) / seconds) : "–";
    return [String(index), meter, percent(load), speed, count(worker.connections)];
  });
  const columns = [["worker"], ["load"], ["", "number"], ["commands / s", "number"], ["connections", "number"]];
  const list = table("Threads that serve clients", columns, rows);
  return tile("Load of the workers", { id: "workers", class: "wide" }, list);
}

function commandTable(commands, seconds) {
  const all = commands.reduce((sum, { seconds }) => sum + seconds, 0);
  const rows = commands
    .filter(({ calls }) => calls > 0)
    .sort((left, right) => right.seconds - left.seconds)
    .slice(0, COMMANDS_SHOWN)
    .map(({ name, total, calls, seconds: time, latency }) => [
      name,
      Number.isFinite(seconds) ? count(calls / seconds) : count(calls),
      micros((time / calls) * 1e6),
      micros(percentile(latency, 99)),
      percent(time / all),
      count(total.failed + total.rejected),
    ]);
  const calls = Number.isFinite(seconds) ? "calls / s" : "calls";
  const columns = [["command"], [calls, "number"], ["mean", "number"], ["p99", "number"],
    ["share of time", "number"], ["errors", "number"]];
  return tile("Commands", { id: "commands", class: "wide" }, table("Commands by time used now", columns, rows,
    "No commands in the last second."));
}
