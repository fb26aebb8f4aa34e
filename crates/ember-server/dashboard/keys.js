// The key browser: the keys that match a pattern, and the value of one of them.

import { addressOf, keepAddress, parameters } from "./address.js";
import { COMMANDS_MAX, ReplyError, permittedWithOtherKeys, run, runAll } from "./api.js";
import { Bytes, typed } from "./bytes.js";
import { button, dialog, el, refused, tell, tile } from "./dom.js";
import { SKETCHES } from "./elements.js";
import { count, size, span, things } from "./format.js";
import { showKey } from "./value.js";

const TYPES = ["string", "list", "hash", "set", "zset", "stream", "vectorset", "ReJSON-RL", ...Object.keys(SKETCHES)];

/** The number of keys that More adds, the most SCAN calls for them, and the COUNT of a call without and with a filter. */
const WANTED = 100;
const ROUNDS_MAX = 20;
const COUNT_ANY = 100;
const COUNT_SOME = 1000;

/** Keys with a common prefix that ends with a colon are a group; names are not split beyond this depth. */
const SEPARATOR = ":";
const DEPTH_MAX = 8;
/** Groups up to this number of keys are initially expanded. */
const OPEN_MAX = 20;

/** The sort orders of keys in a group. */
const ORDERS = {
  name: (left, right) => (left.key.line < right.key.line ? -1 : 1),
  TTL: (left, right) => (left.ttl ?? Infinity) - (right.ttl ?? Infinity),
  size: (left, right) => (right.bytes ?? 0) - (left.bytes ?? 0),
};

/**
 * The search and the keys found so far, the number of keys in the database, the sort order, the groups that the user has
 * expanded or collapsed, the types of keys that the user may create, and whether the user may delete keys.
 */
const state = { database: 0, pattern: "*", type: "", cursor: "0", found: [], total: null, isBegun: false, shown: null,
  order: "name", open: new Map(), makes: [], mayDelete: false };

export const view = {
  title: "Keys",
  async show(main) {
    if (main.querySelector("#browser")) {
      // The search is repeated only if it has received no reply.
      await (state.isBegun ? null : search());
      return;
    }
    readAddress();
    state.makes = await makes();
    [state.mayDelete] = await permittedWithOtherKeys([["UNLINK", ""]]);
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

/** Shows a key of a database; callable from any view. */
export function openKey(key, database) {
  Object.assign(state, { database, shown: key });
  location.hash = address();
}

/** Shows the keys of a database that match a pattern; callable from any view. */
export function openPattern(pattern, database) {
  Object.assign(state, { database, pattern, type: "", shown: null });
  location.hash = address();
}

/** Returns the search and the shown key as parameters of the URL. */
function inAddress() {
  const { database, pattern, type, shown } = state;
  return { pattern: pattern === "*" ? "" : pattern, type, database: database || "", key: shown?.line };
}

function address() {
  return addressOf("keys", inAddress());
}

/** Continues with the search and the key in the URL; with the last ones if it has none. */
function readAddress() {
  const { pattern, type, database, key } = parameters();
  if (pattern !== undefined || type !== undefined || database !== undefined || key !== undefined) {
    Object.assign(state, { pattern: pattern ?? "*", type: TYPES.includes(type) ? type : "",
      database: Number(database) || 0, shown: key === undefined ? null : named(key) });
  }
  keepAddress("keys", inAddress());
}

/** Returns the key with a name as it is shown; null if the URL was changed to an invalid one. */
function named(line) {
  try {
    return typed(line);
  } catch {
    return null;
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
    state.makes.length > 0 ? button("New key", newKey) : null,
    state.mayDelete ? button("Delete matching keys", deleteMatching, { class: "danger" }) : null);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    Object.assign(state, { pattern: pattern.value || "*", type: type.value, database: Number(database.value) || 0 });
    search().catch((error) => tell(error.message));
  });
  return form;
}

/** Starts a new search. */
async function search() {
  Object.assign(state, { cursor: "0", found: [], isBegun: false });
  keepAddress("keys", inAddress());
  const [total] = await runAll([["DBSIZE"]], state.database);
  state.total = typeof total === "number" ? total : null;
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
      // SCAN may return a key twice.
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
  // The list has been redrawn with a new button.
  document.querySelector("#more")?.focus();
}

async function addWithTypes(keys) {
  const known = (reply) => (reply instanceof ReplyError || reply === null ? undefined : reply);
  const atATime = Math.floor(COMMANDS_MAX / 3);
  for (let at = 0; at < keys.length; at += atATime) {
    const some = keys.slice(at, at + atATime);
    const asked = some.flatMap((key) => [["TYPE", key], ["PTTL", key], ["MEMORY", "USAGE", key]]);
    const replies = await runAll(asked, state.database);
    some.forEach((key, index) => {
      const [type, left, bytes] = replies.slice(3 * index, 3 * index + 3);
      // A key that has been deleted since has the type none.
      if (type !== "none") {
        const ttl = known(left) >= 0 ? left : undefined;
        state.found.push({ key, type: known(type) ?? "?", ttl, bytes: known(bytes) });
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
    ? refused(error)
    : el("p", { id: "found", class: "faint" }, summaryOf(isWhole));
  const items = itemsOf(state.found, "", 0);
  const rest = isWhole ? null : el("p", { class: "row" }, button("More", moreByHand, { id: "more" }));
  const keys = el("ul", { class: "keys" }, items);
  const head = items.length > 0 ? orders() : null;
  list.replaceChildren(...[el("h3", {}, "List of keys"), summary, head, keys, rest].filter(Boolean));
}

/** Describes the number of found keys, or the reason why there are none. */
function summaryOf(isWhole) {
  const { found, pattern, type, database, total } = state;
  if (!isWhole) {
    return `${things(found.length, "key")} so far${total === null ? "" : `; the database has ${count(total)}`}`;
  }
  if (found.length > 0) {
    return things(found.length, "key");
  }
  if (pattern !== "*" || type !== "") {
    return "No key has this pattern and type.";
  }
  return `Database ${database} has no keys.${state.makes.length > 0 ? " New key creates one." : ""}`;
}

/** Creates the column headings, which select the sort order. */
function orders() {
  const head = (name) => button(name, () => {
    state.order = name;
    drawList(null);
    document.querySelector(`.orders [data-order="${name}"]`)?.focus();
  }, { "data-order": name, "aria-pressed": String(state.order === name) });
  return el("p", { class: "orders", role: "group", "aria-label": "Sort by" }, el("span", { class: "faint" }, "type"),
    Object.keys(ORDERS).map(head));
}

/** Creates the list items of keys with a common prefix: groups first, then single keys. */
function itemsOf(keys, begin, depth) {
  const groups = new Map();
  for (const found of keys) {
    const end = found.key.line.indexOf(SEPARATOR, begin.length);
    const isDeeper = end >= 0 && end + 1 < found.key.line.length && depth < DEPTH_MAX;
    const name = isDeeper ? found.key.line.slice(0, end + 1) : "";
    groups.set(name, [...(groups.get(name) ?? []), found]);
  }
  const alone = [...groups].filter(([name, members]) => name === "" || members.length === 1).flatMap(([, some]) => some);
  const shared = [...groups].filter(([name, members]) => name !== "" && members.length > 1).sort();
  return [
    ...shared.map(([name, members]) => group(name, begin, members, depth, shared.length === 1 && alone.length === 0)),
    ...alone.sort(ORDERS[state.order]).map((found) => el("li", {}, keyButton(found, begin))),
  ];
}

/** Creates a group, whose items are created when it is expanded. An only group is initially expanded. */
function group(name, begin, members, depth, isAll) {
  const isSmall = members.length <= OPEN_MAX || state.found.length <= OPEN_MAX;
  const isOpen = state.open.get(name) ?? (isAll || isSmall);
  const inner = el("ul", {}, isOpen ? itemsOf(members, name, depth + 1) : []);
  const summary = el("summary", {}, el("span", { class: "bytes" }, name.slice(begin.length)), " ",
    el("span", { class: "faint" }, things(members.length, "key")));
  const whole = el("details", { open: isOpen }, summary, inner);
  whole.addEventListener("toggle", () => {
    state.open.set(name, whole.open);
    if (whole.open && inner.childElementCount === 0) {
      inner.replaceChildren(...itemsOf(members, name, depth + 1));
    }
  });
  return el("li", {}, whole);
}

function keyButton({ key, type, ttl, bytes }, begin) {
  const isShown = state.shown !== null && key.equals(state.shown);
  const properties = { type: "button", "aria-pressed": String(isShown), "aria-label": key.line, title: key.line };
  return el("button", { ...properties, onclick: ({ currentTarget }) => {
    document.querySelectorAll(".keys button").forEach((other) =>
      other.setAttribute("aria-pressed", String(other === currentTarget)));
    show(key);
  } }, el("span", { class: "kind" }, type), el("div", { class: "bytes" }, key.line.slice(begin.length)),
    el("span", { class: "faint" }, ttl === undefined ? "" : span(Math.ceil(ttl / 1000)).split(" ").slice(0, 2).join(" ")),
    el("span", { class: "faint" }, bytes === undefined ? "" : size(bytes)));
}

async function show(key) {
  state.shown = key;
  keepAddress("keys", inAddress());
  try {
    if (!(await showKey(place(), { key, database: state.database, changed: keyChanged }))) {
      return;
    }
    tell(`${key.line} is shown.`);
    // In a narrow window the key is below the list.
    if (place().getBoundingClientRect().top > window.innerHeight) {
      place().querySelector("h2").focus();
    }
  } catch (error) {
    tell(error.message);
  }
}

/** Updates the list after a key was deleted, renamed (`to` is its new name) or created. */
async function keyChanged(key, to) {
  state.found = state.found.filter((found) => !found.key.equals(key));
  state.shown = to ?? null;
  if (to) {
    await addWithTypes([to]);
    await show(to);
  } else {
    place().replaceChildren(el("p", { class: "faint" }, "Choose a key."));
    keepAddress("keys", inAddress());
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

/** Returns the types of keys that the user may create under at least some name. */
async function makes() {
  const types = Object.keys(FIRST);
  const calls = types.map((type) => FIRST[type](Bytes.of(""), { name: "", score: "0", value: "" }));
  const may = await permittedWithOtherKeys(calls);
  return types.filter((_, at) => may[at]);
}

function newKey() {
  const isOf = (...types) => ({ type }) => types.includes(type);
  const fields = [
    { name: "key", label: "Key" },
    { name: "type", label: "Type", kind: state.makes },
    { name: "name", label: "Field", shows: isOf("hash", "stream") },
    { name: "score", label: "Score", value: "0", shows: isOf("zset") },
    { name: "value", label: "Value", kind: "lines" },
  ];
  dialog("New key", fields, "Create it", async (values) => {
    const key = typed(values.key);
    const { database } = state;
    // Prevents adding an element to an existing key.
    const [exists] = await runAll([["EXISTS", key]], database);
    if (exists === 1) {
      throw new Error("A key with this name already exists.");
    }
    const made = await run(FIRST[values.type](key, values), database);
    if (made === null) {
      throw new Error("A key with this name already exists.");
    }
    await keyChanged(key, key);
    tell("The key was created.");
  });
}

/** The number of keys that one command deletes, and of names that the confirmation shows. */
const DELETED_AT_A_TIME = 200;
const EXAMPLES_MAX = 5;

/** Calls `act` with the keys of the current search, some at a time, until it returns false. */
async function eachMatching({ pattern, type, database }, act) {
  const filter = type ? ["TYPE", type] : [];
  let cursor = "0";
  do {
    const [next, keys] = await run(["SCAN", cursor, "MATCH", pattern, "COUNT", COUNT_SOME, ...filter], database);
    cursor = next.text;
    for (let at = 0; at < keys.length; at += DELETED_AT_A_TIME) {
      if (!await act(keys.slice(at, at + DELETED_AT_A_TIME))) {
        return;
      }
    }
  } while (cursor !== "0");
}

/** Counts the keys of the current search, and deletes them after a confirmation. */
async function deleteMatching() {
  const { pattern, type, database } = state;
  const search = { pattern, type, database };
  let found = 0;
  const examples = [];
  await eachMatching(search, (keys) => {
    found += keys.length;
    examples.push(...keys.slice(0, EXAMPLES_MAX - examples.length));
    tell(`Counting: ${things(found, "key")} so far`);
    return document.querySelector("#browser") !== null;
  });
  if (found === 0) {
    tell("No key has this pattern and type.");
    return;
  }
  const kind = type ? `${type} ` : "";
  const title = `Delete ${things(found, `${kind}key`)} of database ${database} that match ${pattern}?`;
  const fields = [{ name: "confirmation", label: "Enter the pattern to confirm" }];
  const names = examples.map((key) => el("li", { class: "bytes" }, key.line));
  const more = found > examples.length ? el("li", { class: "faint" }, `and ${count(found - examples.length)} more`) : null;
  const text = el("div", {}, el("ul", {}, names, more),
    el("p", { class: "faint" }, "Keys that are created meanwhile and match are deleted, too."));
  const box = dialog(title, fields, "Delete them", async ({ confirmation }) => {
    if (confirmation !== pattern) {
      throw new Error(`The pattern is ${pattern}`);
    }
    let deleted = 0;
    await eachMatching(search, async (keys) => {
      deleted += await run(["UNLINK", ...keys], database);
      tell(`Deleted ${things(deleted, "key")}`);
      // Closing the dialog stops the deletion.
      return box.open;
    });
    tell(`Deleted ${things(deleted, "key")}.`);
    await keysDeleted();
  }, { class: "danger", text });
}

async function keysDeleted() {
  state.shown = null;
  place()?.replaceChildren(el("p", { class: "faint" }, "Choose a key."));
  await search();
}
