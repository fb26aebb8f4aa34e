// The elements of lists, hashes, sets, sorted sets, streams and vector sets, in pages, with the permitted changes.

import { permitted, run, runAll, transaction, unless } from "./api.js";
import { Bytes, typed } from "./bytes.js";
import { button, bytesOf, dialog, el, facts, table, tell } from "./dom.js";
import { count, size, span, things } from "./format.js";
import { matches } from "./glob.js";
import { groupsOf } from "./groups.js";
import { shownValue } from "./json.js";

const PAGE = 100;

/** Values with at most this number of elements have no search. */
const UNSEARCHED_MAX = 10;

/** A search reads this number of elements per call, and this number of calls until it shows what it has found. */
const SEARCH_PAGE = 1000;
const SEARCH_ROUNDS_MAX = 20;

/** The number of nearest elements that are shown. */
const NEAREST = 10;

/**
 * The operations of each type. `length` is the command that counts elements; `page(key, from, limit, pattern)` is the
 * command that reads a page, and `read(reply, from, limit)` converts its reply to `{items, next}`, without `next` on the
 * last page. The server applies the pattern of a search, unless `sought(item)` returns the texts of an item to compare.
 * `cells(item)` are an item's columns. `check` is the command that returns the value of an item if it has not moved.
 * `set`, `remove` and `add` are changes; each has `fields` for its dialog, and `command`, or `steps`, which run as a
 * transaction. `look` is a button that shows more about an item.
 */
const KINDS = {
  list: {
    length: "LLEN",
    first: 0,
    columns: [["index", "number"], ["element"]],
    page: (key, from, limit) => ["LRANGE", key, from, from + limit - 1],
    read: (reply, from, limit) => ({
      items: reply.map((value, at) => ({ index: from + at, value })),
      next: reply.length === limit ? from + limit : undefined,
    }),
    sought: ({ value }) => [value],
    cells: ({ index, value }) => [index, shownValue(value)],
    check: (key, { index }) => ["LINDEX", key, index],
    set: {
      fields: ({ value }) => [{ name: "value", label: "Element", kind: "lines", value: value.lines }],
      command: (key, { index }, { value }) => ["LSET", key, index, typed(value)],
    },
    remove: {
      // LREM removes by value, so the element first receives a unique one.
      steps: (key, { index }) => {
        const mark = `removed-${crypto.getRandomValues(new BigUint64Array(2)).join("-")}`;
        return [["LSET", key, index, mark], ["LREM", key, 1, mark]];
      },
    },
    add: {
      fields: () => [
        { name: "value", label: "Element", kind: "lines" },
        { name: "end", label: "At", kind: ["the end", "the start"] },
      ],
      command: (key, _, { value, end }) => [end === "the start" ? "LPUSH" : "RPUSH", key, typed(value)],
    },
  },
  hash: {
    length: "HLEN",
    first: "0",
    columns: [["field"], ["value"], ["time to live", "number"]],
    page: (key, from, limit, pattern) => ["HSCAN", key, from, ...matching(pattern), "COUNT", limit],
    read: scanned((name, value) => ({ name, value })),
    async extend(key, items, database) {
      const left = await runAll([["HPTTL", key, "FIELDS", items.length, ...items.map(({ name }) => name)]], database);
      items.forEach((item, at) => (item.left = Array.isArray(left[0]) ? left[0][at] : -1));
    },
    cells: ({ name, value, left }) => [bytesOf(name), shownValue(value), left >= 0 ? span(left / 1000) : ""],
    set: {
      fields: ({ value }) => [{ name: "value", label: "Value", kind: "lines", value: value.lines }],
      command: (key, { name }, { value }) => ["HSETEX", key, "FXX", "KEEPTTL", "FIELDS", 1, name, typed(value)],
    },
    remove: { command: (key, { name }) => ["HDEL", key, name] },
    add: {
      fields: () => [{ name: "name", label: "Field" }, { name: "value", label: "Value", kind: "lines" }],
      command: (key, _, { name, value }) => ["HSETNX", key, typed(name), typed(value)],
    },
  },
  set: {
    length: "SCARD",
    first: "0",
    columns: [["member"]],
    page: (key, from, limit, pattern) => ["SSCAN", key, from, ...matching(pattern), "COUNT", limit],
    read: ([next, members]) => ({
      items: members.map((value) => ({ value })),
      next: next.text === "0" ? undefined : next.text,
    }),
    cells: ({ value }) => [shownValue(value)],
    remove: { command: (key, { value }) => ["SREM", key, value] },
    add: {
      fields: () => [{ name: "value", label: "Member", kind: "lines" }],
      command: (key, _, { value }) => ["SADD", key, typed(value)],
    },
  },
  zset: {
    length: "ZCARD",
    first: 0,
    columns: [["rank", "number"], ["score", "number"], ["member"]],
    page: (key, from, limit) => ["ZRANGE", key, from, from + limit - 1, "WITHSCORES"],
    read: (reply, from, limit) => ({
      items: reply.map(([value, score], at) => ({ index: from + at, value, score })),
      next: reply.length === limit ? from + limit : undefined,
    }),
    sought: ({ value }) => [value],
    cells: ({ index, score, value }) => [index, score, shownValue(value)],
    set: {
      fields: ({ score }) => [{ name: "score", label: "Score", value: score }],
      command: (key, { value }, { score }) => ["ZADD", key, "XX", score, value],
    },
    remove: { command: (key, { value }) => ["ZREM", key, value] },
    add: {
      fields: () => [{ name: "score", label: "Score", value: "0" }, { name: "value", label: "Member", kind: "lines" }],
      command: (key, _, { score, value }) => ["ZADD", key, "NX", score, typed(value)],
    },
  },
  stream: {
    length: "XLEN",
    first: "-",
    columns: [["entry"], ["fields"]],
    page: (key, from, limit) => ["XRANGE", key, from, "+", "COUNT", limit],
    read: (reply, _, limit) => ({
      items: reply.map(([id, fields]) => ({ id: id.text, fields })),
      next: reply.length === limit ? `(${reply.at(-1)[0].text}` : undefined,
    }),
    sought: ({ id, fields }) => [Bytes.of(id), ...fields],
    cells: ({ id, fields }) => [id, el("div", { class: "bytes" }, pairs(fields))],
    remove: { command: (key, { id }) => ["XDEL", key, id] },
    add: {
      fields: () => [{ name: "name", label: "Field" }, { name: "value", label: "Value", kind: "lines" }],
      command: (key, _, { name, value }) => ["XADD", key, "*", typed(name), typed(value)],
    },
  },
  vectorset: {
    length: "VCARD",
    first: "-",
    columns: [["element"], ["attributes"]],
    page: (key, from, limit) => ["VRANGE", key, from, "+", limit],
    read: (reply, _, limit) => ({
      items: reply.map((name) => ({ name })),
      next: reply.length === limit ? behind(reply.at(-1)) : undefined,
    }),
    sought: ({ name }) => [name],
    async extend(key, items, database) {
      const replies = await runAll(items.map(({ name }) => ["VGETATTR", key, name]), database);
      items.forEach((item, at) => (item.value = replies[at] instanceof Bytes ? replies[at] : null));
    },
    cells: ({ name, value }) => [bytesOf(name), value ? shownValue(value) : ""],
    look: { label: "Nearest", show: nearest },
    set: {
      fields: ({ value }) => [{ name: "value", label: "Attributes", kind: "lines", value: value ? value.lines : "" }],
      command: (key, { name }, { value }) => ["VSETATTR", key, name, typed(value)],
    },
    remove: { command: (key, { name }) => ["VREM", key, name] },
  },
};

/** Returns the start of the range of names after `name`, without it. */
function behind(name) {
  return name.isText ? `(${name.text}` : new Bytes({ base64: btoa(`(${atob(name.json.base64)}`) });
}

/** Shows the index of a vector set. */
async function indexOf(key, database) {
  const info = unless((await runAll([["VECTOR.INFO", key]], database))[0]);
  const text = (name) => info.get(name).text;
  const links = info.get("m") > 0 ? [["links", info.get("m")]] : [];
  const lists = info.get("nlist") > 0 ? [["lists", count(info.get("nlist"))]] : [];
  return facts([
    ["dimensions", count(info.get("dimensions"))],
    ["elements", count(info.get("vectors"))],
    ["quantization", text("quantization")],
    ["distance", text("distance")],
    ["index", text("type")],
    ...links,
    ...lists,
    ["not linked yet", count(info.get("pending"))],
    ["memory of the index", size(info.get("memory"))],
  ].map(([name, value]) => [name, String(value)]));
}

/** Shows the nearest neighbors of an element in `place`. */
async function nearest(place, { name }, { key, database }) {
  const search = ["VSIM", key, "ELE", name, "COUNT", NEAREST + 1, "WITHSCORES"];
  const found = unless((await runAll([search], database))[0]);
  // Keys of a Map are converted to lines already.
  const others = [...found].filter(([other]) => other !== name.line).slice(0, NEAREST);
  const rows = others.map(([other, score]) => [el("div", { class: "bytes" }, other), Number(score).toFixed(4)]);
  const columns = [["element"], ["score", "number"]];
  place.replaceChildren(table(`Nearest to ${name.line}`, columns, rows, "There are no others."));
  place.querySelector("[role=region]").focus();
}

function matching(pattern) {
  return pattern ? ["MATCH", pattern] : [];
}

/** The last search in the elements of a key, which is kept when the key is shown again. */
let lastSearch = null;

/** Returns a function that reads the pairs of a reply of HSCAN. */
function scanned(make) {
  return ([next, flat]) => ({
    items: Array.from({ length: flat.length / 2 }, (_, at) => make(flat[2 * at], flat[2 * at + 1])),
    next: next.text === "0" ? undefined : next.text,
  });
}

function pairs(fields) {
  const pair = (_, at) => `${fields[2 * at].line}: ${fields[2 * at + 1].line}`;
  return Array.from({ length: fields.length / 2 }, pair).join("\n");
}

/** The types of sketches, with the command that returns the properties of one. */
export const SKETCHES = {
  "MBbloom--": "BF.INFO",
  MBbloomCF: "CF.INFO",
  "CMSk-TYPE": "CMS.INFO",
  "TopK-TYPE": "TOPK.INFO",
  "TDIS-TYPE": "TDIGEST.INFO",
};

/** Shows the properties of a sketch, whose items are not stored. */
async function sketch(command, key, database) {
  const info = unless((await runAll([[command, key]], database))[0]);
  return facts([...info].map(([name, value]) => [name, value === null ? "none" : String(value)]));
}

/** Shows the first page of the elements of a key. `again` refreshes the key after a change. */
export async function elementsOf(type, content, shown, again) {
  const kind = KINDS[type];
  if (Object.hasOwn(SKETCHES, type)) {
    content.replaceChildren(await sketch(SKETCHES[type], shown.key, shown.database));
    return;
  }
  if (!kind) {
    content.replaceChildren(el("p", {}, `Values of the type ${type} cannot be shown here.`));
    return;
  }
  const { key, database } = shown;
  const [total] = await runAll([[kind.length, key]], database);
  const may = await rights(kind, key);
  const list = el("div", {});
  const foot = el("p", { class: "row" });
  const more = el("div", { id: "more" });
  let items = [];
  let from = kind.first;
  const isSame = lastSearch && lastSearch.database === database && lastSearch.key.equals(key);
  let pattern = isSame ? lastSearch.pattern : "";
  const load = async () => {
    const limit = pattern ? SEARCH_PAGE : PAGE;
    const wanted = items.length + (pattern ? PAGE : 1);
    for (let round = 0; round < SEARCH_ROUNDS_MAX && items.length < wanted && from !== undefined; round += 1) {
      const page = kind.read(unless((await runAll([kind.page(key, from, limit, pattern)], database))[0]), from, limit);
      const isSought = (item) => !pattern || !kind.sought || kind.sought(item).some((text) => matches(text, pattern));
      const found = page.items.filter(isSought);
      for (let at = 0; kind.extend && at < found.length; at += PAGE) {
        await kind.extend(key, found.slice(at, at + PAGE), database);
      }
      items.push(...found);
      from = page.next;
    }
    draw();
  };
  const search = async (wanted) => {
    [items, from, pattern] = [[], kind.first, wanted];
    lastSearch = { key, database, pattern };
    await load();
  };
  const draw = () => {
    const columns = may.set || may.remove || kind.look ? [...kind.columns, ["", "actions"]] : kind.columns;
    const rows = items.map((item) => {
      const cells = kind.cells(item);
      return columns === kind.columns ? cells : [...cells, itemActions(kind, may, item, shown, again, more)];
    });
    const of = typeof total === "number" ? `${count(items.length)} of ${things(total, "element")}`
      : things(items.length, "element");
    const caption = pattern ? `${of}: those that match${from === undefined ? "" : ", so far"}` : of;
    list.replaceChildren(table(caption, columns, rows, pattern ? "No element matches." : "There are no elements."));
    foot.replaceChildren(...[
      from === undefined ? null : button("More", load),
      may.add ? button("Add", () => ask("Add", kind, kind.add, {}, shown, again)) : null,
      may.set || may.remove || may.add ? null : el("span", { class: "faint" }, "Read only."),
    ].filter(Boolean));
  };
  await load();
  const head = type === "vectorset" ? [await indexOf(key, database)] : [];
  const find = total <= UNSEARCHED_MAX && pattern === "" ? [] : [searchForm(search, pattern)];
  content.replaceChildren(...head, ...find, list, foot, more, ...(type === "stream" ? [await groupsOf(key, database)] : []));
}

/** Creates the form for a search in the elements; the empty pattern shows all. */
function searchForm(search, pattern) {
  const input = el("input", { type: "search", name: "elements", autocapitalize: "off", autocomplete: "off",
    spellcheck: "false", placeholder: "for example *name*" });
  input.value = pattern;
  const form = el("form", { class: "row", role: "search", "aria-label": "Elements" },
    el("label", { class: "inline" }, "Pattern ", input), el("button", { type: "submit" }, "Search"));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    search(input.value).catch((error) => tell(error.message));
  });
  return form;
}

/** Returns the changes to elements of the key that the user may make. */
async function rights(kind, key) {
  const sample = { index: 0, value: Bytes.of(""), name: Bytes.of(""), id: "0-1" };
  const answers = { value: "", name: "", score: "0", end: "the end" };
  const acts = ["set", "remove", "add"].filter((name) => kind[name]);
  const calls = acts.map((name) => callsOf(kind[name], key, sample, answers));
  const allowed = await permitted(calls.flat());
  const may = {};
  acts.forEach((name, at) => (may[name] = allowed.splice(0, calls[at].length).every(Boolean)));
  return may;
}

function callsOf(act, key, item, answers) {
  return act.steps ? [["MULTI"], ...act.steps(key, item), ["EXEC"]] : [act.command(key, item, answers)];
}

function itemActions(kind, may, item, shown, again, more) {
  // The label of an item does not contain its time to live.
  const cells = kind.cells({ ...item, left: undefined }).map((cell) => cell.textContent ?? cell);
  const about = cells.join(" ").trim().slice(0, 60);
  const edit = may.set
    ? button("Edit", () => ask("Edit", kind, kind.set, item, shown, again), { "aria-label": `Edit ${about}` })
    : null;
  const remove = may.remove
    ? button("Delete", () => confirmRemove(kind, item, about, shown, again),
      { class: "danger", "aria-label": `Delete ${about}` })
    : null;
  const look = kind.look
    ? button(kind.look.label, () => kind.look.show(more, item, shown), { "aria-label": `${kind.look.label} ${about}` })
    : null;
  return el("span", {}, look, " ", edit, " ", remove);
}

/** Throws an error if an item has moved or changed. */
async function checkPlace(kind, item, { key, database }) {
  if (kind.check) {
    const value = await run(kind.check(key, item), database);
    if (value === null || !value.equals(item.value)) {
      throw new Error("It has moved or changed: refresh to see where it is.");
    }
  }
}

function ask(verb, kind, act, item, shown, again) {
  const { key, database } = shown;
  dialog(verb, act.fields(item), verb === "Edit" ? "Save" : verb, async (values) => {
    if (verb === "Edit") {
      await checkPlace(kind, item, shown);
    }
    const reply = await run(act.command(key, item, values), database);
    await again();
    tell(reply === 0 && verb === "Add" ? "It already exists." : "It was saved.");
  });
}

function confirmRemove(kind, item, about, shown, again) {
  const { key, database, changed } = shown;
  const act = kind.remove;
  dialog("Delete this element?", [], "Delete it", async () => {
    await checkPlace(kind, item, shown);
    await (act.steps ? transaction(act.steps(key, item), database) : run(act.command(key, item), database));
    // The key is deleted with its last element, except for streams.
    const [exists] = await runAll([["EXISTS", key]], database);
    await (exists === 0 ? changed(key) : again());
    tell("The element was deleted.");
  }, { class: "danger", text: el("p", { class: "bytes" }, about) });
}
