// Hot keys, which are used most, and big keys, which use the most memory.

import { ReplyError, permitted, run, runAll } from "./api.js";
import { Bytes } from "./bytes.js";
import { button, bytesOf, el, refused, renew, table, tell, tile } from "./dom.js";
import { count, percent, size, things } from "./format.js";
import { openKey } from "./keys.js";

const PERIOD_MS = 3000;
const HOT_MAX = 20;
const BIG_MAX = 25;

/** The number of keys per request. */
const KEYS_AT_A_TIME = 200;

/** The current or last search for big keys; null before the first. */
let search = null;

export const view = {
  title: "Hot and big keys",
  period: PERIOD_MS,
  async show(main) {
    if (!main.querySelector("#hot")) {
      const list = el("div", { id: "big-list" });
      const input = el("input", { type: "number", min: "0", value: "0", name: "database" });
      const start = button("Look for big keys", () => lookForBig(Number(input.value) || 0));
      // The button remains without a running search, because it may have the focus.
      const stop = button("Stop", () => search && (search.isOver = true), { id: "stop-big" });
      // One listener for all keys: an update of the list can reuse a button for another key.
      const open = ({ target }) => {
        const chosen = target.closest("[data-key]");
        if (chosen) {
          openKey(new Bytes(JSON.parse(chosen.dataset.key)), Number(chosen.dataset.database));
        }
      };
      main.replaceChildren(el("div", { class: "tiles", onclick: open },
        tile("Hot keys", { id: "hot", class: "wide" }, el("div", { id: "hot-list" })),
        tile("Big keys", { id: "big", class: "wide" },
          el("p", { class: "row" }, el("label", { class: "inline" }, "Database ", input), start, stop), list)));
      drawBig();
    }
    await drawHot(main.querySelector("#hot-list"));
  },
};

async function drawHot(place) {
  let keys;
  try {
    keys = await run(["HOTKEYS", "GET", "COUNT", HOT_MAX]);
  } catch (error) {
    if (!(error instanceof ReplyError)) {
      throw error;
    }
    renew(place, refused(error));
    return;
  }
  const rows = keys.map((key) => [
    keyButton(key.get("key"), key.get("database")),
    key.get("database"),
    plainText(key.get("access")),
    count(key.get("per-second")),
    percent(Number(key.get("percent")) / 100),
  ]);
  const columns = [["key"], ["db", "number"], ["access"], ["accesses / s", "number"], ["of all", "number"]];
  renew(place, table("The keys used most in the last seconds, from a sample", columns, rows,
    "No key was used often in the last seconds."));
}

function plainText(value) {
  return value.text ?? value;
}

function keyButton(key, database) {
  const about = { "data-key": JSON.stringify(key.json), "data-database": String(database) };
  return el("button", { type: "button", ...about }, bytesOf(key));
}

/** Scans all keys of a database and keeps the biggest. */
async function lookForBig(database) {
  if (search) {
    search.isOver = true;
  }
  const mine = { database, looked: 0, all: 0, found: [], isOver: false, error: null };
  search = mine;
  try {
    const [maySize] = await permitted([["DBSIZE"]]);
    mine.all = maySize ? await run(["DBSIZE"], database) : 0;
    let cursor = "0";
    do {
      const [next, keys] = await run(["SCAN", cursor, "COUNT", KEYS_AT_A_TIME], database);
      cursor = next.text;
      for (let at = 0; at < keys.length && !mine.isOver; at += KEYS_AT_A_TIME) {
        await weigh(mine, keys.slice(at, at + KEYS_AT_A_TIME));
        drawBig();
      }
    } while (cursor !== "0" && !mine.isOver);
  } catch (error) {
    mine.error = error;
  }
  mine.isOver = true;
  drawBig();
  tell(mine.error ? mine.error.message : `Scanned ${things(mine.looked, "key")}.`);
}

async function weigh(mine, keys) {
  const replies = await runAll(keys.flatMap((key) => [["MEMORY", "USAGE", key], ["TYPE", key]]), mine.database);
  keys.forEach((key, at) => {
    const [bytes, type] = [replies[2 * at], replies[2 * at + 1]];
    if (bytes instanceof ReplyError) {
      mine.error ??= bytes;
    } else if (bytes !== null) {
      mine.found.push({ key, bytes, type: type instanceof ReplyError ? "?" : type });
    }
  });
  mine.looked += keys.length;
  mine.found.sort((left, right) => right.bytes - left.bytes);
  mine.found.length = Math.min(mine.found.length, BIG_MAX);
}

function drawBig() {
  const list = document.querySelector("#big-list");
  if (!list) {
    return;
  }
  document.querySelector("#stop-big").setAttribute("aria-disabled", String(!search || search.isOver));
  if (!search) {
    renew(list, el("p", { class: "faint" }, "Scans all keys of a database, a few at a time."));
    return;
  }
  const { database, looked, all, found, isOver, error } = search;
  const rows = found.map(({ key, bytes, type }) => [keyButton(key, database), type, size(bytes)]);
  const state = isOver ? "scanned" : "scanning:";
  const keys = all > 0 ? `${count(looked)} of ${things(all, "key")}` : things(looked, "key");
  const caption = `Database ${database}: ${state} ${keys}; those that take the most memory`;
  renew(list, ...[error ? refused(error) : null].filter(Boolean),
    table(caption, [["key"], ["type"], ["memory", "number"]], rows, isOver ? "The database is empty." : "Nothing yet."));
}
