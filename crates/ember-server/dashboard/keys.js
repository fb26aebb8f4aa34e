// The browser of keys: a list by pattern, and what is behind one of them.

import { ReplyError, run, runAll } from "./api.js";
import { typed } from "./bytes.js";
import { button, bytesOf, dialog, el, tell, tile } from "./dom.js";
import { showKey } from "./value.js";

const TYPES = ["string", "list", "hash", "set", "zset", "stream"];

/** Keys that are to be found at once, and the rounds of SCAN that look for them: at any key, or for some among many. */
const WANTED = 100;
const ROUNDS_MAX = 20;
const COUNT_ANY = 100;
const COUNT_SOME = 1000;

/** What is looked for, and what was found so far. */
const state = { database: 0, pattern: "*", type: "", cursor: "0", found: [], isBegun: false, shown: null };

export const view = {
  title: "Keys",
  async show(main) {
    if (main.querySelector("#browser")) {
      // The list is only asked for again if there was no answer.
      await (state.isBegun ? null : search());
      return;
    }
    main.replaceChildren(el("div", { id: "browser" }, searchForm(), el("div", { class: "browser" },
      tile("List of keys", { id: "list" }), tile("Key", { id: "key" }))));
    if (state.shown) {
      await show(state.shown);
    } else {
      place().replaceChildren(el("p", { class: "faint" }, "Choose a key."));
    }
    await search();
  },
};

/** Shows a key of whatever database, from any view. */
export function openKey(key, database) {
  Object.assign(state, { database, shown: key });
  if (location.hash === "#keys") {
    show(key);
  } else {
    location.hash = "#keys";
  }
}

function place() {
  return document.querySelector("#key");
}

function searchForm() {
  const pattern = el("input", { name: "pattern", autocapitalize: "off", autocomplete: "off", spellcheck: "false" });
  pattern.value = state.pattern;
  const types = TYPES.map((name) => el("option", {}, name));
  const type = el("select", { name: "type" }, el("option", { value: "" }, "any"), types);
  type.value = state.type;
  const database = el("input", { name: "database", type: "number", min: "0" });
  database.value = state.database;
  const form = el("form", { class: "row", role: "search", "aria-label": "Keys" },
    el("label", { class: "inline" }, "Pattern ", pattern), el("label", { class: "inline" }, "Type ", type),
    el("label", { class: "inline" }, "Database ", database), el("button", { type: "submit" }, "Search"),
    button("New key", newKey));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    Object.assign(state, { pattern: pattern.value || "*", type: type.value, database: Number(database.value) || 0 });
    search().catch((error) => tell(error.message));
  });
  return form;
}

/** Begins anew. */
async function search() {
  Object.assign(state, { cursor: "0", found: [], isBegun: false });
  await more();
}

async function more() {
  const wanted = state.found.length + WANTED;
  try {
    for (let round = 0; round < ROUNDS_MAX && state.found.length < wanted; round += 1) {
      const { pattern, type, cursor, database } = state;
      const filter = type ? ["TYPE", type] : [];
      const count = pattern === "*" && !type ? COUNT_ANY : COUNT_SOME;
      const [next, keys] = await run(["SCAN", cursor, "MATCH", pattern, "COUNT", count, ...filter], database);
      Object.assign(state, { cursor: next.text, isBegun: true });
      // SCAN may tell a key twice.
      const known = new Set(state.found.map(({ key }) => JSON.stringify(key.json)));
      const fresh = keys.filter((key) => !known.has(JSON.stringify(key.json)));
      await addWithTypes(fresh);
      if (state.cursor === "0") {
        break;
      }
    }
  } catch (error) {
    if (!(error instanceof ReplyError)) {
      throw error;
    }
    drawList(error);
    return;
  }
  drawList(null);
}

async function moreByHand() {
  await more();
  // The button is another one now.
  document.querySelector("#more")?.focus();
}

async function addWithTypes(keys) {
  for (let at = 0; at < keys.length; at += 400) {
    const some = keys.slice(at, at + 400);
    const types = await runAll(some.map((key) => ["TYPE", key]), state.database);
    some.forEach((key, index) => {
      const type = types[index];
      // A key that is gone meanwhile has the type none.
      if (type !== "none") {
        state.found.push({ key, type: type instanceof ReplyError ? "?" : type });
      }
    });
  }
}

function drawList(error) {
  const list = document.querySelector("#list");
  if (!list) {
    return;
  }
  const isWhole = state.cursor === "0";
  const summary = error
    ? el("p", { class: "refused" }, error.message)
    : el("p", { id: "found", class: "faint" }, `${state.found.length} keys${isWhole ? "" : " so far"}`);
  const items = state.found.map(({ key, type }) => el("li", {}, keyButton(key, type)));
  const rest = isWhole ? null : el("p", { class: "row" }, button("More", moreByHand, { id: "more" }));
  list.replaceChildren(...[el("h3", {}, "List of keys"), summary, el("ul", { class: "keys" }, items), rest].filter(Boolean));
}

function keyButton(key, type) {
  const isShown = state.shown !== null && key.equals(state.shown);
  return el("button", { type: "button", "aria-pressed": String(isShown), onclick: ({ currentTarget }) => {
    document.querySelectorAll(".keys button").forEach((other) =>
      other.setAttribute("aria-pressed", String(other === currentTarget)));
    show(key);
  } }, el("span", { class: "kind" }, type), bytesOf(key));
}

async function show(key) {
  state.shown = key;
  try {
    await showKey(place(), { key, database: state.database, changed: keyChanged });
    tell(`${key.line} is shown.`);
    // In a narrow window it is below the list.
    if (place().getBoundingClientRect().top > window.innerHeight) {
      place().querySelector("h2").focus();
    }
  } catch (error) {
    tell(error.message);
  }
}

/** A key was removed, renamed (`to` is its new name) or made. */
async function keyChanged(key, to) {
  state.found = state.found.filter((found) => !found.key.equals(key));
  state.shown = to ?? null;
  if (to) {
    await addWithTypes([to]);
    await show(to);
  } else {
    place().replaceChildren(el("p", { class: "faint" }, "Choose a key."));
  }
  drawList(null);
}

const FIRST = {
  string: (key, { value }) => ["SET", key, typed(value), "NX"],
  list: (key, { value }) => ["RPUSH", key, typed(value)],
  hash: (key, { name, value }) => ["HSETNX", key, typed(name), typed(value)],
  set: (key, { value }) => ["SADD", key, typed(value)],
  zset: (key, { score, value }) => ["ZADD", key, "NX", score, typed(value)],
  stream: (key, { name, value }) => ["XADD", key, "*", typed(name), typed(value)],
};

function newKey() {
  const isOf = (...types) => ({ type }) => types.includes(type);
  const fields = [
    { name: "key", label: "Key" },
    { name: "type", label: "Type", kind: TYPES },
    { name: "name", label: "Field", shows: isOf("hash", "stream") },
    { name: "score", label: "Score", value: "0", shows: isOf("zset") },
    { name: "value", label: "Value", kind: "lines" },
  ];
  dialog("New key", fields, "Make it", async (values) => {
    const key = typed(values.key);
    const { database } = state;
    // In one step, so that nothing is added to a key that is there.
    const [exists] = await runAll([["EXISTS", key]], database);
    if (exists === 1) {
      throw new Error("There is a key with this name.");
    }
    const made = await run(FIRST[values.type](key, values), database);
    if (made === null) {
      throw new Error("There is a key with this name.");
    }
    await keyChanged(key, key);
    tell("The key was made.");
  });
}
