// Completion of commands in the console: names, tokens and syntax, from the documentation that the server returns.

import { ReplyError, run } from "./api.js";

/** The depth of nested arguments that is read. */
const DEPTH_MAX = 8;

/** The ends of names that watch a command, and end this. They are offered only after their dot: there are many. */
const WATCH_FORMS = [".WATCH", ".UNWATCH"];

/** The commands by name in capital letters, containers and subcommands; null before they are loaded. */
let commands = null;

/** Loads the documentation, once. Without the right to read it, nothing is completed. */
export async function load() {
  if (commands) {
    return;
  }
  let docs;
  try {
    docs = await run(["COMMAND", "DOCS"]);
  } catch (error) {
    if (error instanceof ReplyError) {
      return;
    }
    throw error;
  }
  commands = new Map();
  docs.forEach((about, name) => add(name, about));
}

/** Forgets the documentation, because another user may not read it. */
export function forget() {
  commands = null;
}

function add(name, about) {
  commands.set(name.replace("|", " ").toUpperCase(), { summary: about.get("summary")?.text ?? "",
    args: argumentsOf(about, 0) });
  about.get("subcommands")?.forEach((inner, subname) => add(subname, inner));
}

function argumentsOf(about, depth) {
  const text = (from, name) => from.get(name)?.text;
  return depth === DEPTH_MAX ? [] : (about.get("arguments") ?? []).map((one) => {
    const flags = (one.get("flags") ?? []).map((flag) => flag.text ?? flag);
    return { name: text(one, "display_text") ?? text(one, "name") ?? "", token: text(one, "token") || null,
      type: text(one, "type"), isOptional: flags.includes("optional"), isMultiple: flags.includes("multiple"),
      repeatsToken: flags.includes("multiple_token"), parts: argumentsOf(one, depth + 1) };
  });
}

/** Formats an argument: `[EX seconds|PX milliseconds]`. */
function synopsis({ name, token, type, isOptional, isMultiple, repeatsToken, parts }) {
  const join = (mark) => parts.map(synopsis).join(mark);
  const own = { "pure-token": () => "", oneof: () => join("|"), block: () => join(" ") }[type]?.() ?? name;
  const both = [token, own].filter(Boolean).join(" ");
  const shown = isMultiple ? `${both} [${repeatsToken ? both : own} ...]` : both;
  return isOptional ? `[${shown}]` : shown;
}

/** Returns the tokens with which an argument can begin. */
function tokensOf({ token, type, parts }) {
  if (token) {
    return [token];
  }
  return type === "oneof" ? parts.flatMap(tokensOf) : type === "block" && parts.length > 0 ? tokensOf(parts[0]) : [];
}

/** Returns the command that a line begins with, with its name. */
function commandOf(line) {
  const words = line.trimStart().toUpperCase().split(/\s+/);
  for (const name of [words.slice(0, 2).join(" "), words[0]]) {
    const found = commands?.get(name);
    if (found) {
      return { name, ...found };
    }
  }
  return null;
}

/** Describes the command that a line begins with; null if it is unknown. */
export function syntaxOf(line) {
  const command = commandOf(line);
  return command && { call: [command.name, ...command.args.map(synopsis)].join(" "), summary: command.summary };
}

/**
 * Returns the completions of the last word of a line: `{from, words}`, the position of the word and what can replace it. A
 * word in quotes is not completed.
 */
export function completionsOf(line) {
  const from = line.search(/\S*$/);
  const word = line.slice(from).toUpperCase();
  const before = line.slice(0, from).trimStart().toUpperCase().replace(/\s+/g, " ");
  const nothing = { from, words: [] };
  if (!commands || /["']/.test(line)) {
    return nothing;
  }
  const isOffered = (name) => {
    const dot = WATCH_FORMS.map((form) => name.indexOf(form)).find((at) => at >= 0) ?? -1;
    return dot < 0 || before.length + word.length > dot;
  };
  // Names of commands in the first word, subcommands in the second one, else tokens of the command's arguments.
  const names = [...commands.keys()].filter((name) => name.startsWith(before + word) && isOffered(name))
    .map((name) => name.slice(before.length)).filter((rest) => rest !== "" && !rest.includes(" "));
  const command = before === "" ? null : commandOf(before);
  const isContainer = command && names.length > 0;
  const tokens = command && !isContainer ? command.args.flatMap(tokensOf) : [];
  const fitting = tokens.filter((token) => token.startsWith(word));
  return { from, words: [...new Set([...names, ...fitting])].sort() };
}

/** Returns the longest common beginning of some words. */
export function commonStart(words) {
  const [first = "", ...others] = words;
  let length = first.length;
  for (const other of others) {
    while (!other.startsWith(first.slice(0, length))) {
      length -= 1;
    }
  }
  return first.slice(0, length);
}
