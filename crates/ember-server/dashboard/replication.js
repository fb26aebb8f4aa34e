// Replication: the role of the server and its reason, its primary, its replicas and their lag, and the backlog.

import { overview } from "./api.js";
import { answered, el, facts, renew, table, tile } from "./dom.js";
import { count, moment, size, span, things } from "./format.js";

const PERIOD_MS = 1000;

export const view = {
  title: "Replication",
  period: PERIOD_MS,
  async show(main) {
    const now = await answered(main, "Replication", overview);
    if (!now) {
      return;
    }
    const replicas = replicasOf(now.info);
    renew(main, el("div", { class: "tiles" }, topology(now, replicas), link(now), kept(now.info, replicas),
      counts(now.info), details(replicas)));
  },
};

const STATES = { online: "online", wait_bgsave: "waiting for full sync", send_bulk: "receiving full sync" };

/** Returns the replicas, from the lines `slave0:ip=…,port=…,…` of INFO. */
function replicasOf(info) {
  const lines = Object.entries(info).filter(([name]) => /^slave\d+$/.test(name));
  return lines.map(([, line]) => Object.fromEntries(line.split(",").map((field) => {
    const equals = field.indexOf("=");
    return [field.slice(0, equals), field.slice(equals + 1)];
  })));
}

/** Formats address and port. A replica without a TCP port reports port 0. */
function addressOf({ ip, port }) {
  return port === "0" ? ip : `${ip.includes(":") ? `[${ip}]` : ip}:${port}`;
}

/** Formats an offset with all digits, because users compare offsets. */
function offset(text) {
  return Number(text).toLocaleString("en");
}

/** Describes the lag of a replica; one without a finished full sync lacks all data. */
function lack({ state, lag_bytes: bytes }) {
  return state === "online" ? size(Number(bytes)) : "all data";
}

function mark(text, isBad) {
  return el("span", { class: isBad ? "mark wrong" : "mark" }, text);
}

/** Creates a node of the tree: a server, its state, and details. */
function node(name, state, about, properties = {}) {
  return el("div", { class: "node", ...properties }, el("span", { class: "name" }, name), " ", state,
    el("div", { class: "faint" }, about));
}

/** Describes the state of the link to the primary. */
function linkState(info) {
  if (info.ember_link_stopped) {
    return "stopped";
  }
  if (info.master_sync_in_progress === "1") {
    return "loading";
  }
  return info.master_link_status === "up" ? "linked" : "no link";
}

/** Shows the tree of the primary, this server and its replicas. */
function topology({ info, replication, now_ms: nowMs }, replicas) {
  const isReplica = info.role === "slave";
  const since = `since ${moment(replication.since_ms / 1000)}, ${span((nowMs - replication.since_ms) / 1000)} ago`;
  const role = mark(isReplica ? "replica" : "primary");
  const own = node("This server", role, `${replication.why}; ${since}`, { id: "own-role" });
  const below = replicas.length > 0
    ? el("ul", {}, replicas.map((replica) => el("li", {}, replicaNode(replica))))
    : el("p", { class: "faint", id: "no-replicas" }, "It has no replicas.");
  const here = [own, below];
  const whole = isReplica
    ? [primaryNode(info), el("ul", {}, el("li", {}, here))]
    : here;
  return tile("Topology", { id: "topology", class: isReplica ? "half" : "wide" }, el("div", { class: "topology" }, whole));
}

function primaryNode(info) {
  const state = linkState(info);
  const heard = Number(info.master_last_io_seconds_ago);
  const about = state === "linked"
    ? `the primary, last contact ${heard === 0 ? "now" : `${span(heard)} ago`}`
    : `the primary, disconnected for ${span(Number(info.master_link_down_since_seconds))}`;
  return node(addressOf({ ip: info.master_host, port: info.master_port }), mark(state, state !== "linked"), about,
    { id: "its-primary" });
}

function replicaNode(replica) {
  const behind = Number(replica.lag_bytes);
  const about = replica.state === "online"
    ? `${behind === 0 ? "up to date" : `${size(behind)} behind`}, last contact ${heard(replica)}`
    : `last contact ${heard(replica)}`;
  return node(addressOf(replica), mark(STATES[replica.state] ?? replica.state, replica.state !== "online"), about);
}

function heard({ lag }) {
  return lag === "0" ? "now" : `${span(Number(lag))} ago`;
}

/** Shows the link of a replica to its primary; returns null for a primary. */
function link({ info, replication, now_ms: nowMs }) {
  if (info.role !== "slave") {
    return null;
  }
  const isUp = info.master_link_status === "up";
  const since = isUp ? replication.linked_ms : nowMs - 1000 * Number(info.master_link_down_since_seconds);
  const [read, applied] = [Number(info.slave_read_repl_offset), Number(info.slave_repl_offset)];
  const why = info.ember_link_stopped ?? replication.trouble;
  const [done, total] = [Number(info.master_sync_read_bytes), Number(info.master_sync_total_bytes)];
  const copied = total > 0 ? `${size(done)} of ${size(total)}` : size(done);
  return tile("Link to the primary", { id: "link", class: "half" },
    !isUp && why ? el("p", { class: "refused" }, why) : null,
    facts([
      ["state", linkState(info)],
      ["since", `${moment(since / 1000)}, ${span((nowMs - since) / 1000)} ago`],
      ["received so far", info.master_sync_in_progress === "1" ? copied : undefined],
      ["offset read", offset(read)],
      ["offset applied", offset(applied)],
      ["read and not applied", size(Math.max(0, read - applied))],
      ["last contact", isUp ? heard({ lag: info.master_last_io_seconds_ago }) : undefined],
    ]));
}

/** Shows the part of the stream that is retained for replicas that lag. */
function kept(info, replicas) {
  const isOn = info.repl_backlog_active === "1";
  const spilled = Number(info.repl_backlog_spilled_bytes);
  const all = Number(info.repl_backlog_histlen);
  const most = Math.max(0, ...replicas.map(({ lag_bytes: bytes }) => Number(bytes)));
  return tile("Replication stream", { id: "backlog", class: "half" }, isOn
    ? facts([
      ["offset", offset(info.master_repl_offset)],
      ["history", el("span", { class: "bytes", title: info.master_replid }, `${info.master_replid.slice(0, 10)}…`)],
      ["kept for replicas that reconnect", size(all)],
      ["of this on the disk", size(spilled)],
      ["backlog in memory, at most", size(Number(info.repl_backlog_size))],
      ["largest lag of a replica", replicas.length > 0 ? size(most) : undefined],
    ])
    : el("p", {}, "No replica has connected, so nothing is kept."));
}

function counts(info) {
  const good = info.min_slaves_good_slaves;
  const failover = info.master_failover_state;
  return tile("Since startup", { id: "synchronizations", class: "half" }, facts([
    ["received a full sync", things(Number(info.sync_full), "replica")],
    ["resumed with a partial sync", things(Number(info.sync_partial_ok), "replica")],
    ["denied a partial sync", things(Number(info.sync_partial_err), "replica")],
    ["sent to replicas", size(Number(info.total_net_repl_output_bytes))],
    ["received from a primary", size(Number(info.total_net_repl_input_bytes))],
    ["good replicas for writes", good === undefined ? undefined : count(Number(good))],
    ["failover", failover === "no-failover" ? "none in progress" : failover],
  ]));
}

/** Shows the replicas as a table, which suits many replicas better than the tree; returns null without replicas. */
function details(replicas) {
  if (replicas.length === 0) {
    return null;
  }
  const columns = [["address"], ["state"], ["offset", "number"], ["behind", "number"], ["last contact", "number"]];
  const rows = replicas.map((replica) => [addressOf(replica), STATES[replica.state] ?? replica.state,
    offset(replica.offset), lack(replica), heard(replica)]);
  return tile("Replicas", { id: "replicas", class: "wide" }, table(things(replicas.length, "replica"), columns, rows));
}
