// The value of a key: its type, time to live and content, with the permitted changes.

import { ReplyError, permitted, run, runAll, unless } from "./api.js";
import { typed } from "./bytes.js";
import { button, dialog, el, facts, refused, tell } from "./dom.js";
import { documentOf, textAt } from "./documents.js";
import { elementsOf } from "./elements.js";
import { viewsOf } from "./formats.js";
import { size, span } from "./format.js";
import { parse, tree } from "./json.js";
import { followOnly, liveButton } from "./live.js";

/** Longer strings are shown up to this number of bytes, read-only; longer JSON only as a tree. */
const STRING_MAX = 64 * 1024;

/** JSON in strings up to this number of bytes is shown as a tree; the server limits replies to 4 MiB. */
const JSON_MAX = 3 * 1024 * 1024;

/** The view of strings that the user has chosen; null before. */
let preferred = null;

/** The number of calls of `showKey`: late replies to an earlier call are discarded. */
let turn = 0;

/**
 * Shows `shown.key` in `place`; `shown.changed(key, to)` is called after the key was deleted, or renamed to `to`. The
 * content of `place` is replaced once all replies have arrived, unless `isKept` then returns true. Returns whether it was
 * replaced.
 */
export async function showKey(place, shown, isKept = () => false) {
  const { key, database } = shown;
  const mine = ++turn;
  const put = (...nodes) => {
    if (mine !== turn || isKept()) {
      return false;
    }
    place.replaceChildren(...nodes);
    return true;
  };
  followOnly(key, database);
  const [type, left, encoding, bytes] = await runAll(
    [["TYPE", key], ["PTTL", key], ["OBJECT", "ENCODING", key], ["MEMORY", "USAGE", key]], database);
  const heading = el("h2", { class: "bytes", tabindex: "-1" }, key.line);
  if (type instanceof ReplyError || type === "none") {
    const why = type === "none" ? el("p", {}, "There is no such key.") : refused(type);
    const live = el("p", { class: "row" }, liveButton(place, key, database, (kept) => showKey(place, shown, kept)));
    return put(heading, why, live);
  }
  const again = async (kept) => {
    const isNew = await showKey(place, shown, kept);
    // The focused element has been replaced, unless it is in a dialog.
    if (document.activeElement === document.body) {
      place.querySelector("h2").focus();
    }
    return isNew;
  };
  const known = (reply, format) => (reply instanceof ReplyError || reply === null ? undefined : format(reply));
  const about = facts([
    ["type", type],
    ["time to live", known(left, (ms) => (ms < 0 ? "none" : ms < 1000 ? `${ms} ms` : span(ms / 1000)))],
    ["encoding", known(encoding, (name) => name.text)],
    ["memory", known(bytes, size)],
  ]);
  const content = el("div", { id: "content" });
  const actions = await keyActions(shown, left, again);
  actions.firstElementChild.after(" ", liveButton(place, key, database, again));
  try {
    const show = { string: showString, "ReJSON-RL": showDocument }[type];
    await (show ? show(content, shown, again) : elementsOf(type, content, shown, again));
  } catch (error) {
    if (!(error instanceof ReplyError)) {
      throw error;
    }
    content.replaceChildren(refused(error));
  }
  return put(heading, about, actions, content);
}

/** Creates buttons for the permitted operations on the key as a whole. */
async function keyActions({ key, database, changed }, left, again) {
  const [mayExpire, mayPersist, mayRename, mayDelete] = await permitted(
    [["PEXPIRE", key, 1], ["PERSIST", key], ["RENAMENX", key, key], ["DEL", key]]);
  const expire = () => dialog("Time to live", [{ name: "seconds", label: "Seconds" }], "Set it", async ({ seconds }) => {
    const ms = Math.round(Number(seconds) * 1000);
    if (seconds.trim() === "" || !(ms > 0)) {
      throw new Error("Enter a number above zero.");
    }
    await run(["PEXPIRE", key, ms], database);
    await again();
    tell("The time to live was set.");
  });
  const persist = async () => {
    await run(["PERSIST", key], database);
    await again();
    tell("The key no longer expires.");
  };
  const newName = { name: "to", label: "New name", value: key.line };
  const rename = () => dialog("Rename", [newName], "Rename it", async ({ to }) => {
    const name = typed(to);
    if ((await run(["RENAMENX", key, name], database)) === 0) {
      throw new Error("A key with this name already exists.");
    }
    await changed(key, name);
    tell("The key was renamed.");
  });
  const remove = () => dialog("Delete this key?", [], "Delete it", async () => {
    const removed = await run(["DEL", key], database);
    await changed(key);
    tell(removed === 0 ? "The key was already deleted." : "The key was deleted.");
  }, { class: "danger", text: el("p", { class: "bytes" }, key.line) });
  const actions = [
    mayExpire ? button("Set time to live", expire) : null,
    mayPersist && left >= 0 ? button("Keep for ever", persist) : null,
    mayRename ? button("Rename", rename) : null,
    mayDelete ? button("Delete", remove, { class: "danger" }) : null,
  ].filter(Boolean);
  const none = el("span", { class: "faint" }, "This user may not rename or delete the key.");
  return el("p", { class: "row", id: "actions" }, button("Refresh", () => again()), actions.length > 0 ? actions : none);
}

async function showString(content, { key, database }, again) {
  const [length, start] = (await runAll([["STRLEN", key], ["GETRANGE", key, 0, STRING_MAX - 1]], database)).map(unless);
  if (length > STRING_MAX && length <= JSON_MAX && /^\s*[[{]/.test(String.fromCharCode(...start.array.subarray(0, 100)))) {
    const whole = await run(["GETRANGE", key, 0, JSON_MAX - 1], database);
    const value = whole.isText ? parse(whole.text) : null;
    if (value) {
      showTree(content, `${size(length)}, JSON`, value);
      return;
    }
  }
  const save = (value) => ["SET", key, value, "IFEQ", start, "KEEPTTL"];
  await showText(content, database, again, { start, length, isWhole: length <= STRING_MAX, save });
}

/** Shows JSON that is too long to be edited here. */
function showTree(content, about, value) {
  content.replaceChildren(el("p", { class: "faint" }, about), el("div", { id: "value" }, tree(value)),
    el("p", { class: "faint" }, "Read only."));
}

/** Replaces a JSON document if its text is unchanged. */
const REPLACE_DOCUMENT = `if redis.call('JSON.GET', KEYS[1], '.') == ARGV[1] then
  return redis.call('JSON.SET', KEYS[1], '$', ARGV[2])
end`;

async function showDocument(content, { key, database }, again) {
  const start = await textAt(key, database, ".");
  if (start === null) {
    const about = "JSON, too long to be read at once: parts are read when you unfold them";
    showTree(content, about, await documentOf(key, database));
    return;
  }
  const { length } = start.text;
  if (length > STRING_MAX) {
    showTree(content, `${size(length)}, JSON`, parse(start.text));
    return;
  }
  const save = (value) => ["EVAL", REPLACE_DOCUMENT, 1, key, start, value];
  await showText(content, database, again, { start, length, isWhole: true, save });
}

/**
 * Shows bytes as text, and in the other views that suit them. `save(value)` returns the command that replaces the value
 * if it is still the one that is shown, so a concurrent change by another client is not overwritten.
 */
async function showText(content, database, again, { start, length, isWhole, save }) {
  const [maySave] = await permitted([save(start)]);
  const rows = Math.min(24, start.lines.split("\n").length + 2);
  const area = el("textarea", { rows, "aria-label": "Value", spellcheck: "false", readonly: !(isWhole && maySave) });
  area.defaultValue = start.lines;
  const summary = isWhole ? size(length) : `${size(length)}, the first ${size(STRING_MAX)} of them`;
  const store = button("Save", async () => {
    if ((await run(save(typed(area.value)), database)) === null) {
      throw new Error("The value was changed by another client: refresh to see it.");
    }
    await again();
    tell("The value was saved.");
  });
  const value = isWhole && start.isText ? parse(start.text) : null;
  const readOnly = isWhole && maySave ? null : el("p", { class: "faint" }, "Read only.");
  const text = el("div", {}, el("p", { class: "faint" }, "A backslash begins an escape: \\\\ \\n \\xff"), area,
    isWhole && maySave ? el("p", { class: "row" }, store) : null);
  const { Hex: hex, ...others } = viewsOf(start.array);
  // Bytes are shown decoded first, if they can be; text can be edited.
  const views = { ...(value ? { Tree: () => tree(value) } : {}), ...others, Text: () => text, Hex: hex };
  const [decoded] = Object.keys(views);
  const place = el("div", { id: "value" });
  const choose = async (name) => {
    choices.forEach((choice) => choice.setAttribute("aria-pressed", String(choice.textContent === name)));
    place.replaceChildren(await views[name]());
  };
  const choices = Object.keys(views).map((name) => button(name, () => {
    preferred = name;
    return choose(name);
  }));
  await choose(views[preferred] ? preferred : decoded);
  const kind = value ? "JSON" : decoded !== "Text" ? decoded : start.isText ? "text" : "binary";
  content.replaceChildren(...[el("p", { class: "faint" }, `${summary}, ${kind}`),
    el("div", { class: "row", role: "group", "aria-label": "Show as" }, choices), place, readOnly].filter(Boolean));
}
