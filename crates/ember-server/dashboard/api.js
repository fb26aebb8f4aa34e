// Requests to the server. All of them run as the logged-in user.

import { Bytes } from "./bytes.js";

/** The user's name and password, kept in this page until it is closed; null for the default user without a password. */
let credentials = null;

/** The maximum number of commands in a request; the server refuses more. */
export const COMMANDS_MAX = 512;

/** An error reply. */
export class ReplyError extends Error {}

/** The server requires credentials. */
export class Unauthorised extends Error {}

/** Switches to another user if the password is correct; otherwise keeps the current one. */
export async function logIn(user, password) {
  if (user.includes(":")) {
    throw new Error("Users with a colon in their name cannot log in here.");
  }
  const former = credentials;
  credentials = { user, password };
  try {
    await runAll([]);
  } catch (error) {
    credentials = former;
    throw error;
  }
}

/** Returns the name of the logged-in user. */
export function userName() {
  return credentials ? credentials.user : "default";
}

function authorization() {
  const bytes = new TextEncoder().encode(`${credentials.user}:${credentials.password}`);
  let binary = "";
  bytes.forEach((byte) => (binary += String.fromCharCode(byte)));
  return `Basic ${btoa(binary)}`;
}

/**
 * Sends a request to a path of the API and returns the data of its response. `signal` cancels the request, and its work
 * on the server. If the server requires credentials, the document receives an `unauthorised` event.
 */
export async function ask(path, body, signal = undefined) {
  return (await answerOf(path, body, signal)).data;
}

async function answerOf(path, body, signal) {
  const headers = { "Content-Type": "application/json" };
  if (credentials) {
    headers.Authorization = authorization();
  }
  const options = { method: "POST", headers, body: JSON.stringify(body), credentials: "omit", cache: "no-store",
    signal };
  const answer = await fetch(`api/${path}`, options);
  const kind = answer.headers.get("Content-Type");
  if (kind?.startsWith("text/event-stream")) {
    return { stream: answer.body };
  }
  const isJson = kind === "application/json";
  const data = isJson ? await answer.json() : { error: (await answer.text()).trim() };
  if (answer.status === 401) {
    document.dispatchEvent(new CustomEvent("unauthorised", { detail: data.error }));
    throw new Unauthorised(data.error);
  }
  if (!answer.ok) {
    throw new Error(data.error || `HTTP ${answer.status}`);
  }
  return { data };
}

/**
 * Yields the data of server-sent events as they arrive. The error is temporary (`isPassing`) if the connection is lost or
 * cannot be established.
 */
export async function* events(path, body, signal) {
  const passing = (error) => Object.assign(error, { isPassing: error instanceof TypeError });
  const { stream } = await answerOf(path, { ...body, commands: body.commands.map((words) => words.map(word)) }, signal)
    .catch((error) => Promise.reject(passing(error)));
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { value: piece, done } = await reader.read().catch((error) => Promise.reject(passing(error)));
    if (done) {
      return;
    }
    const blocks = (text + piece).split("\n\n");
    text = blocks.pop();
    for (const block of blocks) {
      const line = block.split("\n").find((found) => found.startsWith("data: "));
      if (line) {
        yield JSON.parse(line.slice("data: ".length));
      }
    }
  }
}

/** Encodes an argument of a command: bytes, text or a number. */
export function word(value) {
  return value instanceof Bytes ? value.word : String(value);
}

/** Runs commands one by one and returns their replies, including error replies. */
export async function runAll(commands, database = 0) {
  const asked = commands.map((command) => command.map(word));
  const { replies, error } = await ask("commands", { database, commands: asked });
  const read = replies.map(value);
  while (read.length < commands.length) {
    read.push(new ReplyError(error));
  }
  return read;
}

/** Runs a command and returns its reply; throws an error reply. */
export async function run(command, database = 0) {
  const [reply] = await runAll([command], database);
  return unless(reply);
}

/** Returns a reply; throws it if it is an error. */
export function unless(reply) {
  if (reply instanceof ReplyError) {
    throw reply;
  }
  return reply;
}

/** Runs commands as one transaction and returns their replies; throws the first error reply. */
export async function transaction(commands, database = 0) {
  const replies = await runAll([["MULTI"], ...commands, ["EXEC"]], database);
  replies.forEach(unless);
  return replies.at(-1).map(unless);
}

/** Returns for each command whether the user may run it. */
export async function permitted(commands) {
  return (await verdicts(commands)).permitted;
}

/** Returns for each command whether the user may run it with these or with other keys. */
export async function permittedWithOtherKeys(commands) {
  return (await verdicts(commands)).with_other_keys;
}

function verdicts(commands) {
  return ask("permitted", { commands: commands.map((command) => command.map(word)) });
}

/** Returns the fields of INFO as an object, with counters that INFO lacks. Throws the error reply of INFO. */
export async function overview() {
  const { info, figures, refused } = await ask("overview", { commands: [] });
  if (refused) {
    throw new ReplyError(refused);
  }
  const fields = {};
  for (const line of info.split("\r\n")) {
    const colon = line.indexOf(":");
    if (colon > 0) {
      fields[line.slice(0, colon)] = line.slice(colon + 1);
    }
  }
  return { info: fields, ...figures };
}

/** Returns the last hour: a list of times and a list of values for each metric, oldest first. */
export async function lastHour() {
  const { refused, ...lists } = await ask("history", { commands: [] });
  return refused ? { at_ms: [] } : lists;
}

/** Returns the parameters of the configuration. Throws the error reply of CONFIG GET. */
export async function configuration() {
  const { parameters, refused } = await ask("configuration", { commands: [] });
  if (refused) {
    throw new ReplyError(refused);
  }
  return parameters;
}

/** Converts a reply to JavaScript: arrays, Maps with text keys, numbers if they are exact, `Bytes`. */
function value(reply) {
  if (reply === null || typeof reply === "boolean") {
    return reply;
  }
  if (Array.isArray(reply)) {
    return reply.map(value);
  }
  const [[kind, content]] = Object.entries(reply);
  switch (kind) {
    case "error":
      return new ReplyError(content);
    case "integer":
      return Number.isSafeInteger(Number(content)) ? Number(content) : content;
    case "set":
      return content.map(value);
    case "map":
      return new Map(content.map(([name, inner]) => [plain(value(name)), value(inner)]));
    case "text":
    case "base64":
      return new Bytes(reply);
    default:
      return content;
  }
}

/** Returns a name in a reply as text. */
export function plain(name) {
  return name instanceof Bytes ? name.line : String(name);
}
