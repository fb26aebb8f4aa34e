// A console that runs typed commands one at a time, with the user's rights. It stores nothing beyond this page.

import { ask, permitted, userName, word } from "./api.js";
import { Bytes, fromBytes } from "./bytes.js";
import { commonStart, completionsOf, forget, load, syntaxOf } from "./completion.js";
import { dialog, el, tile } from "./dom.js";
import { things } from "./format.js";

/** The number of commands that stay visible with their replies, and of lines in the history. */
const SHOWN_MAX = 100;
const LINES_MAX = 200;

/** The number of completions that are shown. */
const OFFERED_MAX = 40;

/** Limits of a displayed reply: its lines, and the length of a line. */
const REPLY_LINES_MAX = 1000;
const LINE_MAX = 4096;

/** The limit of queued commands of a transaction; the server accepts 512 per request. */
const QUEUE_MAX = 500;

const KEEPS_OPEN = "needs a permanent connection, and each command has a separate one here: use ember-cli";
const CANNOT = new Set(["monitor", "watch", "sync", "psync"]);
const HAS_NO_EFFECT = new Set(["auth", "hello", "reset", "readonly", "readwrite", "asking", "client setname",
  "client setinfo", "client tracking", "client caching", "client reply", "client no-evict", "client no-touch"]);
const ONE_MORE_QUESTION = {
  flushall: "This deletes all keys of all databases.",
  flushdb: "This deletes all keys of the database.",
  shutdown: "This stops the server. It cannot be started again from here.",
};

/** The user, typed lines, position in this history, selected database, queued transaction, and running request. */
const state = { user: null, lines: [], at: 0, database: 0, queue: null, running: null };
const transcript = el("div", { id: "transcript", class: "bytes", role: "log", tabindex: "0", "aria-label": "Replies" });

export const view = {
  title: "Console",
  async show(main) {
    if (state.user !== userName()) {
      // The next user must not see the replies to the previous one.
      Object.assign(state, { user: userName(), lines: [], at: 0, database: 0, queue: null });
      transcript.replaceChildren();
      forget();
    }
    if (main.querySelector("#console")) {
      return;
    }
    // Opens the login dialog if the server requires a password.
    await permitted([["PING"]]);
    const input = el("input", { id: "line", "aria-label": "Command", autocapitalize: "off", autocomplete: "off",
      spellcheck: "false", placeholder: "a command, for example GET key", "aria-describedby": "syntax" });
    const offers = el("p", { id: "offers", class: "row", role: "group", "aria-label": "Completions", hidden: true });
    const syntax = el("p", { id: "syntax", class: "faint" });
    input.addEventListener("keydown", (event) => {
      recall(event, input);
      complete(event, input, offers);
    });
    input.addEventListener("input", () => describe(input, offers, syntax));
    const prompt = el("label", { id: "prompt", for: "line", class: "bytes" }, promptText());
    const form = el("form", { id: "console", class: "console" }, prompt, input, el("button", { type: "submit" }, "Run"));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      submit(input);
    });
    const stop = el("button", { type: "button", id: "stop", disabled: !state.running,
      onclick: () => state.running?.abort() }, "Stop");
    const clear = el("button", { type: "button", onclick: () => {
      transcript.replaceChildren();
      input.focus();
    } }, "Clear");
    const about = el("p", { class: "faint" }, `Commands run as ${userName()}. Quotes and escapes are those of ember-cli; `,
      "MULTI queues commands until EXEC; a command is limited to five seconds. Tab completes names and tokens, the up and ",
      "down keys recall lines.");
    main.replaceChildren(tile("Console", {}, about, transcript, form, offers, syntax,
      el("p", { class: "row" }, stop, clear)));
    transcript.scrollTop = transcript.scrollHeight;
    input.focus();
    await load();
    // The user may have typed meanwhile.
    describe(input, offers, syntax);
  },
};

/** Shows the syntax of the typed command, and removes the completions of the line before. */
function describe(input, offers, syntax) {
  offers.hidden = true;
  const found = syntaxOf(input.value);
  syntax.replaceChildren(...(found ? [el("code", {}, found.call), el("br"), found.summary] : []));
}

/**
 * Tab completes the last word; if several words fit, as far as they agree. The next Tab shows them, and a further one moves
 * the focus to them. If there is nothing to complete, Tab moves the focus as usual.
 */
function complete(event, input, offers) {
  if (event.key === "Escape") {
    offers.hidden = true;
  }
  const isAtEnd = input.selectionStart === input.value.length && input.selectionEnd === input.value.length;
  if (event.key !== "Tab" || event.shiftKey || event.ctrlKey || event.altKey || !isAtEnd || input.value.trim() === "") {
    return;
  }
  if (!offers.hidden) {
    event.preventDefault();
    offers.firstElementChild.focus();
    return;
  }
  const { from, words } = completionsOf(input.value);
  const put = (word, end) => {
    input.value = input.value.slice(0, from) + word + end;
    input.focus();
    input.dispatchEvent(new Event("input"));
  };
  const typedWord = input.value.slice(from);
  if (words.length === 0 || (words.length === 1 && words[0] === typedWord.toUpperCase())) {
    return;
  }
  event.preventDefault();
  const start = commonStart(words);
  if (words.length === 1) {
    put(words[0], " ");
  } else if (start.length > typedWord.length) {
    put(start, "");
  } else {
    offers.replaceChildren(...words.slice(0, OFFERED_MAX).map((word) =>
      el("button", { type: "button", onclick: () => put(word, " ") }, word)));
    offers.hidden = false;
  }
}

function promptText() {
  return `ember${state.database > 0 ? `[${state.database}]` : ""}${state.queue ? "(TX)" : ""}>`;
}

/** Up and Down move through the typed lines. */
function recall(event, input) {
  const step = { ArrowUp: -1, ArrowDown: 1 }[event.key];
  if (!step || state.at + step < 0 || state.at + step > state.lines.length) {
    return;
  }
  event.preventDefault();
  state.at += step;
  input.value = state.lines[state.at] ?? "";
  input.dispatchEvent(new Event("input"));
  input.setSelectionRange(input.value.length, input.value.length);
}

async function submit(input) {
  const line = input.value.trim();
  if (line === "" || state.running) {
    return;
  }
  input.value = "";
  input.dispatchEvent(new Event("input"));
  if (state.lines.at(-1) !== line) {
    state.lines = [...state.lines, line].slice(-LINES_MAX);
  }
  state.at = state.lines.length;
  const entry = el("div", { class: "entry" }, el("div", { class: "typed" }, `${promptText()} ${line}`));
  transcript.append(entry);
  while (transcript.childElementCount > SHOWN_MAX) {
    transcript.firstElementChild.remove();
  }
  transcript.scrollTop = transcript.scrollHeight;
  state.running = new AbortController();
  document.querySelector("#stop").disabled = false;
  try {
    const words = split(line);
    const question = ONE_MORE_QUESTION[nameOf(words)];
    if (!question || (await confirm(line, question))) {
      (await execute(words)).forEach((text) => entry.append(replyOf(text)));
    } else {
      entry.append(el("div", { class: "faint" }, "not run"));
    }
  } catch (error) {
    const text = error.name === "AbortError" ? "Stopped: effects of the command until then remain." : error.message;
    entry.append(el("div", { class: "refused" }, text));
  } finally {
    state.running = null;
    const stop = document.querySelector("#stop");
    if (stop) {
      stop.disabled = true;
      document.querySelector("#prompt").textContent = promptText();
    }
    transcript.scrollTop = transcript.scrollHeight;
  }
}

/** Asks for confirmation of a command that cannot be undone. */
function confirm(line, text) {
  return new Promise((resolve) => {
    const box = dialog("Run it?", [], "Run it", () => resolve(true),
      { class: "danger", text: el("p", {}, el("span", { class: "bytes" }, line), el("br"), text) });
    box.addEventListener("close", () => resolve(false));
  });
}

function nameOf(words) {
  return words[0].text.toLowerCase();
}

/** Runs a command, or queues it for the transaction. Returns the replies as `{text, isError}`. */
async function execute(words) {
  const name = nameOf(words);
  const both = words.length > 1 ? `${name} ${words[1].text.toLowerCase()}` : name;
  if (CANNOT.has(name)) {
    throw new Error(`${name.toUpperCase()} ${KEEPS_OPEN}.`);
  }
  if (name === "discard" && state.queue) {
    state.queue = null;
    return [{ text: "OK" }];
  }
  if (name === "exec" && state.queue) {
    const commands = [["MULTI"], ...state.queue, ["EXEC"]];
    state.queue = null;
    const replies = await send(commands);
    // Errors of queued commands are shown first; the reply of EXEC is then that nothing was run.
    return [...replies.slice(1, -1).filter((reply) => reply?.error !== undefined), replies.at(-1)].map(shown);
  }
  if (name === "multi" && words.length === 1) {
    if (state.queue) {
      throw new Error("ERR MULTI calls can not be nested");
    }
    state.queue = [];
    return [{ text: "OK: EXEC sends the queued commands together, DISCARD discards them" }];
  }
  if (state.queue) {
    if (state.queue.length === QUEUE_MAX) {
      throw new Error(`A transaction has at most ${QUEUE_MAX} commands here.`);
    }
    state.queue.push(words);
    return [{ text: "QUEUED" }];
  }
  const [reply] = await send([words]);
  if (name === "select" && reply?.simple === "OK") {
    state.database = Number(words[1].text);
  }
  const note = HAS_NO_EFFECT.has(name) || HAS_NO_EFFECT.has(both)
    ? [{ text: "(each command has a separate connection here: this does not affect the next one)", isNote: true }]
    : [];
  return [shown(reply), ...note];
}

async function send(commands) {
  const asked = { database: state.database, commands: commands.map((words) => words.map(word)) };
  const { replies, error } = await ask("commands", asked, state.running.signal);
  return error ? [...replies, { error }] : replies;
}

function replyOf({ text, isError, isNote }) {
  return el("div", { class: isError ? "refused" : isNote ? "faint" : undefined }, text);
}

function shown(reply) {
  return { text: format(reply), isError: reply?.error !== undefined };
}

/** Formats a reply as ember-cli does, up to the limits of lines and of their length. */
export function format(reply) {
  const lines = [];
  let missing = 0;
  const add = (line) => {
    if (lines.length < REPLY_LINES_MAX) {
      lines.push(line.length > LINE_MAX ? `${line.slice(0, LINE_MAX)}… (${things(line.length, "character")} in all)` : line);
    } else {
      missing += 1;
    }
  };
  if (reply?.text?.includes("\n")) {
    // Texts with several lines, such as INFO, are shown unquoted.
    Bytes.of(reply.text.replaceAll("\r\n", "\n")).lines.split("\n").forEach(add);
  } else {
    write(reply, "", "", add);
  }
  return missing > 0 ? [...lines, `… ${things(missing, "more line is", "more lines are")} not shown`].join("\n")
    : lines.join("\n");
}

/** Writes a reply with the prefix `first` on its first line and `rest` on the others. */
function write(reply, first, rest, add) {
  const kind = ["set", "map"].find((name) => !Array.isArray(reply) && reply?.[name]) ?? "array";
  const list = kind === "array" ? reply : reply[kind];
  if (!Array.isArray(list)) {
    add(first + single(reply));
    return;
  }
  const [mark, empty] = { array: [")", "array"], set: ["~", "set"], map: ["#", "hash"] }[kind];
  if (list.length === 0) {
    add(`${first}(empty ${empty})`);
    return;
  }
  const width = String(list.length).length;
  list.forEach((item, at) => {
    const number = `${String(at + 1).padStart(width)}${mark} `;
    const name = kind === "map" ? `${single(item[0])} => ` : "";
    const begin = (at === 0 ? first : rest) + number + name;
    write(kind === "map" ? item[1] : item, begin, rest + " ".repeat(number.length), add);
  });
}

function single(reply) {
  if (reply === null) {
    return "(nil)";
  }
  if (typeof reply === "boolean") {
    return `(${reply})`;
  }
  if (Array.isArray(reply)) {
    return "(array)";
  }
  const [[kind, content]] = Object.entries(reply);
  switch (kind) {
    case "text":
    case "base64":
      return `"${new Bytes(reply).line.replaceAll('"', '\\"')}"`;
    case "simple":
      return content;
    case "error":
      return `(error) ${content}`;
    default:
      return `(${kind}) ${content}`;
  }
}

const ESCAPES = { n: 10, r: 13, t: 9, b: 8, a: 7 };

/** Splits a line into arguments: separated by spaces, in double quotes with escapes, or in single quotes. */
export function split(line) {
  const encoder = new TextEncoder();
  const words = [];
  let at = 0;
  const isSpace = () => at < line.length && /\s/.test(line[at]);
  while (at < line.length) {
    while (isSpace()) {
      at += 1;
    }
    if (at === line.length) {
      break;
    }
    const bytes = [];
    const quote = line[at] === '"' || line[at] === "'" ? line[at] : null;
    at += quote ? 1 : 0;
    for (;;) {
      if (at >= line.length) {
        if (quote) {
          throw new Error("A quote is not closed.");
        }
        break;
      }
      if (quote ? line[at] === quote : isSpace()) {
        break;
      }
      const hexadecimal = quote === '"' && /^\\x([0-9a-fA-F]{2})/.exec(line.slice(at, at + 4));
      if (hexadecimal) {
        bytes.push(parseInt(hexadecimal[1], 16));
        at += 4;
      } else if (line[at] === "\\" && at + 1 < line.length && (quote === '"' || (quote === "'" && line[at + 1] === "'"))) {
        const letter = String.fromCodePoint(line.codePointAt(at + 1));
        bytes.push(...(quote === '"' && ESCAPES[letter] ? [ESCAPES[letter]] : encoder.encode(letter)));
        at += 1 + letter.length;
      } else {
        const letter = String.fromCodePoint(line.codePointAt(at));
        bytes.push(...encoder.encode(letter));
        at += letter.length;
      }
    }
    if (quote) {
      at += 1;
      if (at < line.length && !isSpace()) {
        throw new Error("A closing quote must be followed by a space.");
      }
    }
    words.push(fromBytes(Uint8Array.from(bytes)));
  }
  return words;
}
