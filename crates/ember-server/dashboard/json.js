// JSON values, shown as a collapsible tree. Numbers and the order of members are preserved.

import { Bytes, visible } from "./bytes.js";
import { bytesOf, el } from "./dom.js";
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
 * `{name, value}` for each member and the brackets `[]` or `{}`; any other value is `{text}`, its source text.
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

/** Shows a value in a table; JSON values with a collapsed tree. */
export function shownValue(bytes) {
  const value = bytes instanceof Bytes && bytes.isText ? parse(bytes.text) : null;
  if (!value) {
    return bytesOf(bytes);
  }
  const { line } = bytes;
  const summary = el("summary", { class: "bytes" }, line.length > SUMMARY_MAX ? `${line.slice(0, SUMMARY_MAX)}…` : line);
  return folding(summary, false, () => [tree(value)]);
}

function part({ name, value }, depth) {
  const label = name === undefined ? [] : [el("span", { class: "json-name" }, visible(name)), ": "];
  if (value.text !== undefined) {
    const kind = value.text.startsWith('"') ? "json-string" : "json-other";
    return el("div", {}, label, el("span", { class: kind }, visible(value.text)));
  }
  const { members, ends } = value;
  if (members.length === 0) {
    return el("div", {}, label, ends);
  }
  const about = things(members.length, ends === "{}" ? "member" : "element");
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

/** Creates a collapsible element, whose content is created when it is expanded. */
function folding(summary, isOpen, make) {
  const inner = el("div", { class: "inner" }, isOpen ? make() : []);
  const whole = el("details", { open: isOpen }, summary, inner);
  whole.addEventListener("toggle", () => {
    if (whole.open && inner.childElementCount === 0) {
      inner.replaceChildren(...make());
    }
  });
  return whole;
}
