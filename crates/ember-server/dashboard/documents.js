// JSON documents that are too long for one reply: their members are read when they are expanded.

import { ReplyError, run, runAll } from "./api.js";
import { parse } from "./json.js";

/** The number of elements of an array that are read at a time. */
const ELEMENTS_AT_A_TIME = 100;

/** Values that take more memory are not read as a whole: the server would format all of their text. */
const READ_BYTES_MAX = 3 * 1024 * 1024;

/** The start of the error for a reply that is too long. */
const TOO_LONG = "the reply has more than";

/** Returns the text of the values at a path; null if it is too long for one reply. */
export async function textAt(key, database, path) {
  const sizes = (await runAll([["JSON.DEBUG", "MEMORY", key, path]], database)).flat();
  const known = sizes.filter((bytes) => !(bytes instanceof ReplyError));
  if (known.reduce((sum, bytes) => sum + bytes, 0) > READ_BYTES_MAX) {
    return null;
  }
  try {
    return await run(["JSON.GET", key, path], database);
  } catch (error) {
    // Text can be longer than the memory of its value.
    if (!error.message.startsWith(TOO_LONG)) {
      throw error;
    }
    return null;
  }
}

/** Returns a document in the form of `parse`; parts of it are loaded later if it is too long. */
export function documentOf(key, database) {
  return valueAt({ key, database }, "$");
}

/** Returns the value at a path that leads to one value. */
async function valueAt(place, path) {
  const { key, database } = place;
  const reply = await textAt(key, database, path);
  if (reply !== null) {
    return parse(reply.text).members[0]?.value ?? { text: "(deleted)" };
  }
  // RESP3 has one more level of lists here.
  const [type] = (await run(["JSON.TYPE", key, path], database)).flat();
  return type.text === "object" ? objectAt(place, path) : type.text === "array" ? arrayAt(place, path)
    : { text: "… (a text that is too long)" };
}

async function objectAt(place, path) {
  const [names] = await run(["JSON.OBJKEYS", place.key, path], place.database);
  const members = names.map((name) => {
    const quoted = JSON.stringify(name.text);
    return { name: quoted, value: { load: () => valueAt(place, `${path}[${quoted}]`) } };
  });
  return { members, ends: "{}" };
}

async function arrayAt(place, path) {
  const [length] = await run(["JSON.ARRLEN", place.key, path], place.database);
  const parts = Array.from({ length: Math.ceil(length / ELEMENTS_AT_A_TIME) }, (_, at) => {
    const [from, end] = [at * ELEMENTS_AT_A_TIME, Math.min(length, (at + 1) * ELEMENTS_AT_A_TIME)];
    return { name: `${from}–${end - 1}`, value: { load: () => elementsAt(place, path, from, end) } };
  });
  return { members: parts, ends: "[]", count: length };
}

/** Returns some elements of an array; each separately if they are too long together. */
async function elementsAt(place, path, from, end) {
  const reply = await textAt(place.key, place.database, `${path}[${from}:${end}]`);
  if (reply !== null) {
    return parse(reply.text);
  }
  const members = Array.from({ length: end - from }, (_, at) =>
    ({ name: String(from + at), value: { load: () => valueAt(place, `${path}[${from + at}]`) } }));
  return { members, ends: "[]" };
}
