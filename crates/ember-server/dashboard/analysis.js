// The analysis of all keys of a database: memory by prefix and by type, and times to live, from one scan.

import { COMMANDS_MAX, ReplyError, run, runAll, userName } from "./api.js";
import { button, el, refused, renew, table, tell, tile } from "./dom.js";
import { count, percent, size, things } from "./format.js";
import { openPattern } from "./keys.js";

/** The number of keys per request, of which each takes three commands, and the COUNT of each SCAN. */
const KEYS_AT_A_TIME = Math.floor(COMMANDS_MAX / 3);
/** The shortest time between two updates of the page while keys are scanned. */
const DRAW_MS = 500;

/** A prefix ends with a colon; names are not split beyond this depth. */
const SEPARATOR = ":";
const DEPTH_MAX = 8;
/** The most prefixes that are counted separately; keys with further ones are counted in the part of their prefix that is. */
const PREFIXES_MAX = 20000;
/** The most prefixes that are shown below another one. */
const SHOWN_MAX = 50;

/** Upper limits of times to live in seconds, with their names. */
const LIFETIMES = [[60, "up to 1 min"], [3600, "up to 1 h"], [86400, "up to 1 d"], [604800, "up to 7 d"],
  [2592000, "up to 30 d"], [Infinity, "longer"]];
const ENDLESS = "no expiry";

/** The current or last analysis; null before the first. */
let analysis = null;

/** The prefixes that the user has expanded. */
const open = new Set();

export const view = {
  title: "Analysis",
  async show(main) {
    if (main.querySelector("#analysis")) {
      return;
    }
    // The names of keys are not shown to another user.
    if (analysis && analysis.user !== userName()) {
      analysis.isOver = true;
      analysis = null;
    }
    const pattern = el("input", { name: "pattern", autocapitalize: "off", autocomplete: "off", spellcheck: "false" });
    pattern.value = analysis?.pattern ?? "*";
    const database = el("input", { name: "database", type: "number", min: "0" });
    database.value = analysis?.database ?? 0;
    const start = button("Analyse all keys", () => analyse(pattern.value || "*", Number(database.value) || 0));
    const stop = button("Stop", () => analysis && (analysis.isOver = true), { id: "stop-analysis" });
    const place = el("div", { id: "analysis", class: "tiles" },
      tile("Analysis", { class: "wide" },
        el("p", { class: "row" }, el("label", { class: "inline" }, "Pattern ", pattern),
          el("label", { class: "inline" }, "Database ", database), start, stop),
        el("div", { id: "progress" })),
      tile("Memory by prefix", { id: "prefixes", class: "wide" }, el("div", {})),
      tile("Memory by type", { id: "types", class: "half" }, el("div", {})),
      tile("Time to live", { id: "lifetimes", class: "half" }, el("div", {})));
    // Listeners of the whole tile: an update can reuse an element for another prefix.
    const prefixes = place.querySelector("#prefixes");
    prefixes.addEventListener("toggle", ({ target }) => toggled(target), true);
    prefixes.addEventListener("click", ({ target }) => {
      const chosen = target.closest("[data-pattern]");
      if (chosen) {
        openPattern(chosen.dataset.pattern, analysis.database);
      }
    });
    main.replaceChildren(place);
    draw();
  },
};

function toggled({ dataset, open: isOpen }) {
  if (isOpen === open.has(dataset.prefix)) {
    return;
  }
  if (isOpen) {
    open.add(dataset.prefix);
  } else {
    open.delete(dataset.prefix);
  }
  draw();
}

const group = () => ({ keys: 0, bytes: 0, below: new Map() });

/** Scans all keys of a database that match a pattern. */
async function analyse(pattern, database) {
  if (analysis) {
    analysis.isOver = true;
  }
  const mine = { user: userName(), pattern, database, scanned: 0, all: null, root: group(), prefixes: 0, types: new Map(),
    lifetimes: new Map(), isOver: false, isWhole: false, error: null };
  analysis = mine;
  open.clear();
  draw();
  let drawnAt = performance.now();
  try {
    const [all] = await runAll([["DBSIZE"]], database);
    mine.all = typeof all === "number" && pattern === "*" ? all : null;
    let cursor = "0";
    do {
      const [next, keys] = await run(["SCAN", cursor, "MATCH", pattern, "COUNT", KEYS_AT_A_TIME], database);
      cursor = next.text;
      for (let at = 0; at < keys.length && !mine.isOver; at += KEYS_AT_A_TIME) {
        await add(mine, keys.slice(at, at + KEYS_AT_A_TIME));
      }
      if (performance.now() - drawnAt > DRAW_MS) {
        draw();
        drawnAt = performance.now();
      }
    } while (cursor !== "0" && !mine.isOver);
    mine.isWhole = cursor === "0";
  } catch (error) {
    mine.error = error;
  }
  mine.isOver = true;
  draw();
  tell(mine.error ? mine.error.message : `Scanned ${things(mine.scanned, "key")}.`);
}

async function add(mine, keys) {
  const asked = keys.flatMap((key) => [["TYPE", key], ["PTTL", key], ["MEMORY", "USAGE", key]]);
  const replies = await runAll(asked, mine.database);
  keys.forEach((key, index) => {
    const [type, left, bytes] = replies.slice(3 * index, 3 * index + 3);
    const error = [type, left, bytes].find((reply) => reply instanceof ReplyError);
    if (error) {
      throw error;
    }
    mine.scanned += 1;
    // A key that has been deleted since the scan has no memory.
    if (bytes === null) {
      return;
    }
    addTo(mine.root, bytes);
    addTo(entry(mine.types, type), bytes);
    addTo(entry(mine.lifetimes, lifetime(left)), bytes);
    let place = mine.root;
    let end = key.line.indexOf(SEPARATOR);
    for (let depth = 0; end >= 0 && end + 1 < key.line.length && depth < DEPTH_MAX; depth += 1) {
      const prefix = key.line.slice(0, end + 1);
      if (!place.below.has(prefix)) {
        if (mine.prefixes === PREFIXES_MAX) {
          break;
        }
        mine.prefixes += 1;
      }
      place = entry(place.below, prefix);
      addTo(place, bytes);
      end = key.line.indexOf(SEPARATOR, end + 1);
    }
  });
}

function entry(map, name) {
  if (!map.has(name)) {
    map.set(name, group());
  }
  return map.get(name);
}

function addTo(sums, bytes) {
  sums.keys += 1;
  sums.bytes += bytes;
}

/** Returns the class of a time to live in milliseconds. */
function lifetime(milliseconds) {
  return milliseconds < 0 ? ENDLESS : LIFETIMES.find(([seconds]) => milliseconds <= 1000 * seconds)[1];
}

function draw() {
  const place = document.querySelector("#analysis");
  if (!place) {
    return;
  }
  place.querySelector("#stop-analysis").setAttribute("aria-disabled", String(!analysis || analysis.isOver));
  if (!analysis) {
    renew(place.querySelector("#progress"), el("p", { class: "faint" },
      "Reads type, time to live and memory of every key, a few at a time, without blocking other clients."));
    return;
  }
  const { scanned, all, root, isOver, isWhole, error } = analysis;
  const done = isOver ? (isWhole ? "Scanned" : "Stopped after") : "Scanning:";
  const text = `${done} ${all === null ? things(scanned, "key") : `${count(scanned)} of ${things(all, "key")}`}, `
    + `${size(root.bytes)}`;
  renew(place.querySelector("#progress"), ...[
    el("p", { id: "analysed" }, text),
    isOver || all === null ? null : el("progress", { max: String(Math.max(all, 1)), value: String(scanned),
      "aria-label": "Scanned keys" }),
    error ? refused(error) : null,
  ].filter(Boolean));
  const prefixes = listOf(root, "");
  renew(place.querySelector("#prefixes > div"), prefixes
    ?? el("p", { class: "faint" }, "No key has a name with a colon."));
  renew(place.querySelector("#types > div"), sums("Memory of each type", "type", [...analysis.types]
    .sort(([, left], [, right]) => right.bytes - left.bytes)));
  const classes = [ENDLESS, ...LIFETIMES.map(([, name]) => name)];
  renew(place.querySelector("#lifetimes > div"), sums("Keys by time to live", "time to live",
    classes.filter((name) => analysis.lifetimes.has(name)).map((name) => [name, analysis.lifetimes.get(name)])));
}

function sums(caption, heading, entries) {
  const { root } = analysis;
  const rows = entries.map(([name, { keys, bytes }]) =>
    [name, count(keys), percent(keys / root.keys), size(bytes), percent(bytes / root.bytes)]);
  const columns = [[heading], ["keys", "number"], ["", "number"], ["memory", "number"], ["", "number"]];
  return table(caption, columns, rows, "no keys");
}

/** Creates the list of the prefixes below another one, those with most memory first; null if there are none. */
function listOf(parent, begin) {
  const found = [...parent.below].sort(([, left], [, right]) => right.bytes - left.bytes);
  if (found.length === 0) {
    return null;
  }
  const items = found.slice(0, SHOWN_MAX).map(([prefix, sums]) => el("li", {}, item(prefix, sums, begin)));
  const rest = found.length > SHOWN_MAX ? el("li", { class: "faint" }, `and ${count(found.length - SHOWN_MAX)} more`) : null;
  return el("ul", { class: "prefixes" }, items, rest);
}

function item(prefix, { keys, bytes, below }, begin) {
  const { root } = analysis;
  const isOpen = open.has(prefix);
  const facts = `${things(keys, "key")}, ${size(bytes)}, ${percent(bytes / root.bytes)}`;
  const pattern = `${prefix.replace(/[\\*?[\]]/g, "\\$&")}*`;
  const name = [el("span", { class: "bytes" }, prefix.slice(begin.length)), " ",
    el("span", { class: "faint" }, facts), " ",
    el("button", { type: "button", "data-pattern": pattern, "aria-label": `Keys of ${prefix}` }, "Keys")];
  if (below.size === 0) {
    return el("div", { class: "leaf" }, name);
  }
  return el("details", { open: isOpen, "data-prefix": prefix }, el("summary", {}, name),
    isOpen ? listOf({ below }, prefix) : null);
}
