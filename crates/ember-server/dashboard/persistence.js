// Persistence: the files on disk, saves and rewrites in progress, buttons to start them, and demoted values.

import { ReplyError, overview, permitted, run, runAll } from "./api.js";
import { answered, el, facts, renew, tell, tile } from "./dom.js";
import { count, micros, moment, percent, size, span, things } from "./format.js";

const PERIOD_MS = 1000;
const SETTINGS = ["save", "dir", "dbfilename", "appendfsync", "appenddirname", "aof-use-rdb-preamble"];

export const view = {
  title: "Persistence",
  period: PERIOD_MS,
  async show(main) {
    const now = await answered(main, "Persistence", overview);
    if (!now) {
      return;
    }
    const [maySave, mayRewrite] = await permitted([["BGSAVE"], ["BGREWRITEAOF"]]);
    const [settings] = await runAll([["CONFIG", "GET", ...SETTINGS]]);
    const setting = (name) => (settings instanceof ReplyError ? undefined : settings.get(name)?.line);
    // One listener for the buttons, because each refresh creates them again.
    main.onclick ??= ({ target }) => act(main, target);
    renew(main, el("div", { class: "tiles" },
      snapshot(now.info, now.now_ms / 1000, setting, maySave), log(now.info, setting, mayRewrite), tiers(now.tiers)));
  },
};

const ACTS = {
  save: [["BGSAVE"], "A snapshot is being written."],
  rewrite: [["BGREWRITEAOF"], "The append-only file is being rewritten."],
};

async function act(main, target) {
  const found = ACTS[target.id];
  if (!found || target.getAttribute("aria-disabled") === "true") {
    return;
  }
  try {
    await run(found[0]);
    tell(found[1]);
    await view.show(main);
  } catch (error) {
    tell(error.message);
  }
}

/** Creates a button, or the reason why there is none. */
function starter(id, label, may, isRunning, command) {
  return el("p", { class: "row" }, may
    ? el("button", { type: "button", id, "aria-disabled": String(isRunning) }, isRunning ? "Being written …" : label)
    : el("span", { class: "faint" }, `Read only: this user may not run ${command}.`));
}

/** Describes the result of the last operation. */
function outcome(status, seconds) {
  const time = Number(seconds);
  const took = time > 0 ? `, took ${span(time)}` : time === 0 ? ", took less than a second" : "";
  return status === "ok"
    ? `succeeded${took}` : el("span", { class: "refused" }, "failed: the server's log has the reason");
}

function progress(done, total) {
  const share = total > 0 ? done / total : NaN;
  const value = Number.isFinite(share) ? share.toFixed(3) : "0";
  return Number.isFinite(share)
    ? el("div", {}, el("progress", { max: "1", value, "aria-label": "Keys written" }),
      ` ${percent(share)}: ${count(done)} of ${things(total, "key")}`)
    : null;
}

/** Describes save rules such as `3600 1 300 100`. */
function rules(text) {
  if (text === undefined) {
    return undefined;
  }
  const words = text.split(" ").filter(Boolean).map(Number);
  const pairs = Array.from({ length: words.length / 2 }, (_, at) => [words[2 * at], words[2 * at + 1]]);
  const rule = ([seconds, changes]) => el("div", {}, `after ${span(seconds)} with ${things(changes, "change")}`);
  return pairs.length > 0 ? el("div", {}, pairs.map(rule)) : "never";
}

function snapshot(info, nowSeconds, setting, maySave) {
  const isRunning = info.rdb_bgsave_in_progress === "1";
  const lastSave = Number(info.rdb_last_save_time);
  // Before the first save, the time of the last save is the startup time.
  const hasSaved = Number(info.rdb_saves) > 0;
  const when = `${moment(lastSave)}, ${span(nowSeconds - lastSave)} ago`;
  const running = isRunning
    ? progress(Number(info.current_save_keys_processed), Number(info.current_save_keys_total)) : null;
  return tile("Snapshots (RDB)", { id: "rdb", class: "half" },
    starter("save", "Save now", maySave, isRunning, "BGSAVE"), running,
    facts([
      ["last save", hasSaved ? when : "none since startup"],
      ["result of the last save", hasSaved || info.rdb_last_bgsave_status !== "ok"
        ? outcome(info.rdb_last_bgsave_status, info.rdb_last_bgsave_time_sec) : undefined],
      ["changes since then", count(Number(info.rdb_changes_since_last_save))],
      ["saves since startup", count(Number(info.rdb_saves))],
      ["saved automatically", rules(setting("save"))],
      ["file", setting("dir") === undefined ? undefined : `${setting("dir")}/${setting("dbfilename")}`],
      ["keys loaded at startup", count(Number(info.rdb_last_load_keys_loaded))],
      ["encrypted", info.encryption_enabled === "1" ? "yes" : "no"],
    ]));
}

const SYNCS = { always: "before each reply", everysec: "once a second", no: "when the system decides" };

/** Describes whether the disk keeps up with writes to the AOF. */
function disk(info) {
  if (info.aof_disk_is_slow !== "1") {
    return "keeps up";
  }
  const writing = Number(info.aof_current_write_ms);
  const [what, ms] = writing > 0 ? ["a write", writing] : ["an fsync", Number(info.aof_current_fsync_ms)];
  return el("span", { class: "refused" }, `slow: ${what} has been running for ${(ms / 1000).toFixed(1)} s`);
}

function log(info, setting, mayRewrite) {
  if (info.aof_enabled !== "1") {
    return tile("Append-only file (AOF)", { id: "aof", class: "half" },
      el("p", {}, "It is off: writes since the last snapshot are lost if the server is killed."),
      el("p", { class: "faint" }, "The parameter appendonly enables it, also on a running server."));
  }
  const isRunning = info.aof_rewrite_in_progress === "1";
  const [bytes, base] = [Number(info.aof_current_size), Number(info.aof_base_size)];
  const hasRewritten = Number(info.aof_rewrites) > 0 || info.aof_last_bgrewrite_status !== "ok";
  return tile("Append-only file (AOF)", { id: "aof", class: "half" },
    starter("rewrite", "Rewrite now", mayRewrite, isRunning, "BGREWRITEAOF"),
    facts([
      ["last write", outcome(info.aof_last_write_status)],
      ["disk", disk(info)],
      ["synced to the disk", SYNCS[setting("appendfsync")]],
      ["waiting to be written", size(Number(info.aof_buffer_length))],
      ["size", size(bytes)],
      ["size after the last rewrite", size(base)],
      ["last rewrite", hasRewritten
        ? outcome(info.aof_last_bgrewrite_status, info.aof_last_rewrite_time_sec) : "none since startup"],
      ["rewrites since startup", count(Number(info.aof_rewrites))],
      ["folder", setting("dir") === undefined ? undefined : `${setting("dir")}/${setting("appenddirname")}`],
    ]));
}

/** Shows tiered storage; returns null if the server does not demote values. */
function tiers(figures) {
  if (!figures) {
    return null;
  }
  return tile("Tiered values", { id: "tiers", class: "half" },
    figures.demotion_stuck
      ? el("p", { class: "refused" }, "No value can be demoted: the server's log has the reason.") : null,
    facts([
      ["values in memory", count(figures.hot_keys)],
      ["memory of the data set", size(figures.hot_bytes)],
      ["pinned values", count(figures.pinned_keys)],
      ["cold values", count(figures.cold_keys)],
      ["memory they would take", size(figures.cold_bytes)],
      ["files", things(figures.segments, "file")],
      ["size of the files", figures.limit_bytes
        ? `${size(figures.stored_bytes)} of at most ${size(figures.limit_bytes)}` : size(figures.stored_bytes)],
      ["referenced in the files", size(figures.live_bytes)],
      ["waiting to be written", size(figures.buffered_bytes)],
      ["memory besides the data", size(figures.beside_bytes)],
      ["budget of data in memory", size(figures.goal_bytes)],
      ["demoted since startup", count(figures.demotions + figures.free_drops)],
      ["fetched since startup", count(figures.fetches)],
      ["waiting fetches", count(figures.reads_waiting)],
      ["time of a fetch, on average", micros(figures.fetch_usec / (figures.fetches + figures.fetches_unwanted))],
      ["joined a running fetch", count(figures.fetches_joined)],
      ["pauses of demotion", count(figures.demotion_pauses)],
      ["could not be read", count(figures.read_errors)],
      ["could not be written", count(figures.write_errors)],
    ]));
}
