// The overview: what the server does now.

import { ReplyError, overview } from "./api.js";
import { Series, chart } from "./charts.js";
import { el, facts, refused, renew, table, tile } from "./dom.js";
import { count, micros, percent, size, span } from "./format.js";

const PERIOD_MS = 1000;
const COMMANDS_SHOWN = 12;
const PERCENTILES = [50, 99, 99.9];

/** The look before, and what was seen since the page was opened. */
let before = null;
const names = ["operations", "hits", "memory", "clients", "keys", "received", "sent", ...PERCENTILES.map(String)];
const seen = Object.fromEntries(names.map((name) => [name, new Series()]));

export const view = {
  title: "Overview",
  period: PERIOD_MS,
  async show(main) {
    let now;
    try {
      now = await overview();
    } catch (error) {
      if (!(error instanceof ReplyError)) {
        throw error;
      }
      main.replaceChildren(tile("Overview", {}, refused(error)));
      return;
    }
    document.querySelector("#version").textContent = now.version;
    // The first look has nothing to be compared with, and neither has one after CONFIG RESETSTAT.
    const all = "total_commands_processed";
    const known = before && before.now_ms < now.now_ms && number(before.info, all) <= number(now.info, all);
    draw(main, now, known ? before : null);
    before = now;
  },
};

function number(info, name) {
  return Number(info[name] ?? NaN);
}

/** The percentile of calls counted by powers of two of microseconds: the bound that so many of them keep. */
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

/** The calls of each command since the last look. */
function activity(now, last) {
  return Object.entries(now.commands).map(([name, total]) => {
    const base = last?.commands[name] ?? { calls: 0, seconds: 0, failed: 0, rejected: 0, latency: [] };
    const latency = total.latency.map((calls, bucket) => Math.max(0, calls - (base.latency[bucket] ?? 0)));
    const since = (field) => Math.max(0, total[field] - base[field]);
    return { name, total, calls: since("calls"), seconds: since("seconds"), latency };
  });
}

function draw(main, now, last) {
  const { info } = now;
  const seconds = last ? (now.now_ms - last.now_ms) / 1000 : NaN;
  const rate = (name) => (last ? (number(info, name) - number(last.info, name)) / seconds : NaN);
  const shown = (value, format) => (Number.isFinite(value) ? format(value) : "–");
  const commands = activity(now, last);

  const operations = rate("total_commands_processed");
  const [hits, misses] = [rate("keyspace_hits"), rate("keyspace_misses")];
  const total = (name) => number(info, name);
  const allHits = total("keyspace_hits") / (total("keyspace_hits") + total("keyspace_misses"));
  const hitRate = hits + misses > 0 ? hits / (hits + misses) : NaN;
  const latency = [];
  commands.forEach((command) =>
    command.latency.forEach((calls, bucket) => (latency[bucket] = (latency[bucket] ?? 0) + calls)));
  const times = PERCENTILES.map((percent) => percentile(Array.from(latency, (calls) => calls ?? 0), percent));
  const databases = Object.entries(info).filter(([name]) => /^db\d+$/.test(name)).map(([, text]) => text);
  const sum = (field) =>
    databases.reduce((all, text) => all + Number(new RegExp(`(?:^|,)${field}=(\\d+)`).exec(text)?.[1] ?? 0), 0);
  const keys = sum("keys");

  if (last) {
    seen.operations.add(operations);
    seen.received.add(rate("total_net_input_bytes"));
    seen.sent.add(rate("total_net_output_bytes"));
    seen.hits.add(Number.isFinite(hitRate) ? hitRate : 0);
    PERCENTILES.forEach((percent, at) => seen[percent].add(times[at]));
  }
  seen.memory.add(total("used_memory"));
  seen.clients.add(total("connected_clients"));
  seen.keys.add(keys);

  renew(main, el("div", { class: "tiles" },
    tile("Throughput", { id: "throughput" },
      figure(shown(operations, count), "commands / s"),
      chart(`Commands per second, now ${shown(operations, count)}`, [seen.operations]),
      facts([["since the start", count(total("total_commands_processed"))],
        ["errors", count(total("total_error_replies"))]])),
    tile("Latency of commands", { id: "latency" },
      figure(micros(times[1]), "99 % within"),
      chart(`Latency: ${PERCENTILES.map((percent, at) => `${percent} % within ${micros(times[at])}`).join(", ")}`,
        [seen["99"], seen["50"], seen["99.9"]]),
      facts(PERCENTILES.map((percent, at) => [`${percent} % within`, micros(times[at])]))),
    tile("Hit rate", { id: "hits" },
      figure(percent(hitRate), "of reads now"),
      chart(`Hit rate, now ${percent(hitRate)}`, [seen.hits], 1),
      facts([["since the start", percent(allHits)], ["hits / s", shown(hits, count)],
        ["misses / s", shown(misses, count)]])),
    tile("Memory", { id: "memory" },
      figure(size(total("used_memory")), "used"),
      chart(`Memory used, now ${size(total("used_memory"))}`, [seen.memory]),
      facts([["data", size(total("used_memory_dataset"))], ["most ever", size(total("used_memory_peak"))],
        ["in the machine's memory", size(total("used_memory_rss"))],
        ["limit", total("maxmemory") > 0 ? size(total("maxmemory")) : "none"],
        ["fragmentation", info.mem_fragmentation_ratio]])),
    tile("Clients", { id: "connected" },
      figure(count(total("connected_clients")), `of ${count(total("maxclients"))}`),
      chart(`Clients connected, now ${total("connected_clients")}`, [seen.clients]),
      facts([["blocked", count(total("blocked_clients"))], ["turned away", count(total("rejected_connections"))],
        ["new / s", shown(rate("total_connections_received"), count)]])),
    tile("Keys", { id: "keycount" },
      figure(count(keys), "keys"),
      chart(`Keys, now ${count(keys)}`, [seen.keys]),
      facts([["with a time to live", count(sum("expires"))], ["expired / s", shown(rate("expired_keys"), count)],
        ["evicted / s", shown(rate("evicted_keys"), count)]])),
    tile("Network", { id: "network" },
      figure(shown(rate("total_net_output_bytes"), size), "/ s sent"),
      chart("Bytes per second, sent and received", [seen.sent, seen.received]),
      facts([["received / s", shown(rate("total_net_input_bytes"), size)],
        ["sent since the start", size(total("total_net_output_bytes"))],
        ["received since the start", size(total("total_net_input_bytes"))]])),
    persistence(info, now.now_ms / 1000),
    workers(now, last, seconds),
    commandTable(commands, seconds),
  ));
}

function figure(value, unit) {
  return el("p", { class: "row" }, el("span", { class: "figure" }, value), el("span", { class: "faint" }, unit));
}

function persistence(info, nowSeconds) {
  const yes = (name) => (info[name] === "1" ? "yes" : "no");
  const isLoading = info.loading === "1";
  const isAofWell = info.aof_enabled !== "1" || info.aof_last_write_status === "ok";
  const isWell = info.rdb_last_bgsave_status === "ok" && isAofWell;
  const state = isLoading ? "loading" : isWell ? "well" : "failing";
  return tile("Persistence", { id: "persistence" },
    el("p", { class: "row" }, el("span", { class: isWell ? "figure" : "figure refused" }, state)),
    facts([
      ["changes since the last save", count(Number(info.rdb_changes_since_last_save))],
      ["last save, or start", `${span(nowSeconds - Number(info.rdb_last_save_time))} ago`],
      ["saving now", yes("rdb_bgsave_in_progress")],
      ["last save", info.rdb_last_bgsave_status],
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
  const columns = [["command"], [calls, "number"], ["mean", "number"], ["99 % within", "number"],
    ["share of time", "number"], ["errors ever", "number"]];
  return tile("Commands", { id: "commands", class: "wide" }, table("What takes the most time now", columns, rows));
}
