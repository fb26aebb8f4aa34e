// JSON values, shown as a collapsible tree. Numbers and the order of members are preserved.

import { Bytes, visible } from "./bytes.js";
import { bytesOf, el, tell } from "./dom.js";
import { viewsOf } from "./formats.js";
import { things } from "./format.js";

/** Objects and arrays up to this depth and this number of members are initially expanded. */
const OPEN_DEPTH = 3;
const OPEN_MEMBERS = 50;

/** The number of members that are shown at a time. */
const MEMBERS_AT_A_TIME = 200;

/** The length of the summary of a collapsed value in a table, in characters. */
const SUMMARY_MAX = 80;

const TOKENS = /"(?:[^"\\]|\\.)*"|[[\]{}:]|[^\s"[\]{},:]+/g;

/**
 * Parses a text that is a JSON object or array; returns null for other texts. An object or array is `{members, ends}` with
 * `{name, value}` for each member and the brackets `[]` or `{}`; any other value is `{text}`, its source text. The tree also
 * shows `{load}`, a function that returns a promise of a value, called when the user expands it.
 */
export function parse(text) {
  if (!/^\s*[[{]/.test(text)) {
    return null;
  }
  try {
    JSON.parse(text);
  } catch {
    return null;
  }
  // The text is valid JSON, so tokens are enough to find its structure.
  const root = { members: [] };
  const open = [root];
  let name;
  let last;
  for (const [token] of text.matchAll(TOKENS)) {
    const { members } = open.at(-1);
    if (token === ":") {
      name = last;
      members.pop();
    } else if (token === "]" || token === "}") {
      open.pop();
    } else {
      const isPart = token === "[" || token === "{";
      const value = isPart ? { members: [], ends: token === "[" ? "[]" : "{}" } : { text: token };
      members.push({ name, value });
      name = undefined;
      last = token;
      if (isPart) {
        open.push(value);
      }
    }
  }
  return root.members[0].value;
}

/** Shows a value returned by `parse`. */
export function tree(value) {
  return el("div", { class: "json" }, part({ value }, 0));
}

/** Shows a value in a table; JSON values, and bytes that are not text, with a collapsed view. */
export function shownValue(bytes) {
  if (!(bytes instanceof Bytes)) {
    return bytesOf(bytes);
  }
  const { line } = bytes;
  const shown = line.length > SUMMARY_MAX ? `${line.slice(0, SUMMARY_MAX)}…` : line;
  if (!bytes.isText) {
    const [[name, make]] = Object.entries(viewsOf(bytes.array));
    const summary = el("summary", {}, el("span", { class: "bytes" }, shown), " ", el("span", { class: "faint" }, name));
    return folding(summary, false, () => [make()]);
  }
  const value = parse(bytes.text);
  return value ? folding(el("summary", { class: "bytes" }, shown), false, () => [tree(value)]) : bytesOf(bytes);
}

function part({ name, value }, depth) {
  const label = name === undefined ? [] : [el("span", { class: "json-name" }, visible(name)), ": "];
  if (value.text !== undefined) {
    const kind = value.text.startsWith('"') ? "json-string" : "json-other";
    return el("div", {}, label, el("span", { class: kind }, visible(value.text)));
  }
  if (value.load) {
    const summary = el("summary", {}, label, el("span", { class: "faint" }, "…"));
    return folding(summary, false, () => [value.load().then((loaded) => part({ value: loaded }, 0))]);
  }
  const { members, ends, count = members.length } = value;
  if (members.length === 0) {
    return el("div", {}, label, ends);
  }
  const about = things(count, ends === "{}" ? "member" : "element");
  const summary = el("summary", {}, label, ends[0], " ", el("span", { class: "faint" }, about), ` ${ends[1]}`);
  const isOpen = depth < OPEN_DEPTH && members.length <= OPEN_MEMBERS;
  return folding(summary, isOpen || depth === 0, () => [shown(members, 0, depth + 1)]);
}

/** Shows members from an index, with a button for the following ones. */
function shown(members, from, depth) {
  const end = from + MEMBERS_AT_A_TIME;
  const list = el("div", {}, members.slice(from, end).map((member) => part(member, depth)));
  if (end < members.length) {
    const more = el("button", { type: "button", onclick: () => more.replaceWith(shown(members, end, depth)) },
      `More: ${things(members.length - end, "is", "are")} not shown`);
    list.append(more);
  }
  return list;
}

/** Creates a collapsible element, whose content (elements, or promises of them) is created when it is expanded. */
function folding(summary, isOpen, make) {
  const inner = el("div", { class: "inner" }, isOpen ? make() : []);
  const whole = el("details", { open: isOpen }, summary, inner);
  whole.addEventListener("toggle", async () => {
    if (whole.open && inner.childElementCount === 0) {
      try {
        inner.replaceChildren(...await Promise.all(make()));
      } catch (error) {
        tell(error.message);
      }
    }
  });
  return whole;
}
