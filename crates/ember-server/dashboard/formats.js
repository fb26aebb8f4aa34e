// Views of bytes: hexadecimal, MessagePack, and the content of gzip and zlib.

import { fromBytes } from "./bytes.js";
import { el } from "./dom.js";
import { size, things } from "./format.js";
import { parse, tree } from "./json.js";

/** The number of bytes in a line of the hexadecimal view, and of lines that are shown at a time. */
const LINE_BYTES = 16;
const LINES_AT_A_TIME = 256;

/** The most bytes that are unpacked: a small value can have any size unpacked. */
const UNPACKED_MAX = 1024 * 1024;

/** The depth of nested MessagePack values; deeper ones are not shown as MessagePack. */
const DEPTH_MAX = 64;

/** The signatures of packed data: gzip (RFC 1952), and zlib (RFC 1950) with its usual window. */
const PACKED = [
  { name: "gzip", algorithm: "gzip", is: ([first, second]) => first === 0x1f && second === 0x8b },
  { name: "zlib", algorithm: "deflate", is: ([first, second]) => first === 0x78 && (256 * first + second) % 31 === 0 },
];

/** Returns the views that suit some bytes: names, with functions that create an element, or a promise of one. */
export function viewsOf(bytes) {
  const views = {};
  const packed = PACKED.find(({ is }) => is(bytes));
  if (packed) {
    views[packed.name] = () => unpacked(bytes, packed.algorithm);
  }
  const message = messagePack(bytes);
  if (message) {
    views.MessagePack = () => tree(message);
  }
  views.Hex = () => hexadecimal(bytes, 0);
  return views;
}

/** Shows bytes as text, as a tree if they are JSON or MessagePack. */
function shown(bytes) {
  const content = fromBytes(bytes);
  const value = content.isText ? parse(content.text) : messagePack(bytes);
  if (value) {
    return tree(value);
  }
  return content.isText ? el("div", { class: "bytes" }, content.lines) : hexadecimal(bytes, 0);
}

/** Shows lines of a position, bytes in hexadecimal, and the printable characters among them. */
function hexadecimal(bytes, from) {
  const end = Math.min(bytes.length, from + LINE_BYTES * LINES_AT_A_TIME);
  const lines = [];
  for (let at = from; at < end; at += LINE_BYTES) {
    const part = [...bytes.subarray(at, Math.min(at + LINE_BYTES, end))];
    const digits = part.map((byte) => byte.toString(16).padStart(2, "0"));
    const halves = [digits.slice(0, LINE_BYTES / 2), digits.slice(LINE_BYTES / 2)].map((half) => half.join(" "));
    const letters = part.map((byte) => (byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : "."));
    lines.push(`${at.toString(16).padStart(8, "0")}  ${halves.join("  ").padEnd(3 * LINE_BYTES)}  ${letters.join("")}`);
  }
  const text = el("pre", { class: "hex" }, lines.join("\n"));
  if (end === bytes.length) {
    return el("div", {}, text);
  }
  const more = el("button", { type: "button", onclick: () => more.replaceWith(hexadecimal(bytes, end)) },
    `More: ${size(bytes.length - end)} not shown`);
  return el("div", {}, text, more);
}

/** Unpacks bytes up to a limit, and shows the content. */
async function unpacked(bytes, algorithm) {
  const reader = new Blob([bytes]).stream().pipeThrough(new DecompressionStream(algorithm)).getReader();
  const pieces = [];
  let length = 0;
  let note = "";
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) {
        break;
      }
      pieces.push(value.subarray(0, UNPACKED_MAX - length));
      length += pieces.at(-1).length;
      if (length === UNPACKED_MAX) {
        note = `, the first ${size(UNPACKED_MAX)}`;
        await reader.cancel();
        break;
      }
    }
  } catch {
    note = ", damaged or cut off after them";
  }
  const content = new Uint8Array(await new Blob(pieces).arrayBuffer());
  return el("div", {}, el("p", { class: "faint" }, `${size(length)} unpacked${note}`), shown(content));
}

/**
 * Decodes MessagePack to the form of `parse` in json.js; null if the bytes are not one map or array of it. A string is
 * shown in quotes, and bytes that are not text with escapes.
 */
export function messagePack(bytes) {
  const kind = bytes[0];
  // Maps and arrays only: any short text is some MessagePack values.
  if (!(kind >= 0x80 && kind <= 0x9f) && !(kind >= 0xdc && kind <= 0xdf)) {
    return null;
  }
  try {
    const unpacker = new Unpacker(bytes);
    const value = unpacker.value(0);
    return unpacker.at === bytes.length ? value : null;
  } catch {
    return null;
  }
}

class Unpacker {
  constructor(bytes) {
    this.bytes = bytes;
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    this.at = 0;
  }

  /** Reads a number with a method of DataView; a position after the end is an error. */
  number(method, length) {
    const number = this.view[method](this.at);
    this.at += length;
    return number;
  }

  /** Reads an unsigned number of 1, 2 or 4 bytes. */
  length(bytes) {
    return this.number(`getUint${8 * bytes}`, bytes);
  }

  take(length) {
    if (this.at + length > this.bytes.length) {
      throw new RangeError("the end is missing");
    }
    this.at += length;
    return this.bytes.subarray(this.at - length, this.at);
  }

  text(length) {
    return { text: `"${fromBytes(this.take(length)).line.replaceAll('"', '\\"')}"` };
  }

  extension(length) {
    const type = this.number("getInt8", 1);
    const content = this.take(length);
    return { text: `extension ${type} (${things(length, "byte")}: ${[...content.subarray(0, 32)]
      .map((byte) => byte.toString(16).padStart(2, "0")).join("")}${length > 32 ? "…" : ""})` };
  }

  members(count, depth, isMap) {
    // Each member takes at least one byte, so a false count is not followed.
    if (depth === DEPTH_MAX || count > this.bytes.length - this.at) {
      throw new RangeError("too many members");
    }
    const members = [];
    for (let number = 0; number < count; number += 1) {
      const name = isMap ? this.value(depth + 1) : undefined;
      members.push({ name: name && (name.text ?? "(composite key)"), value: this.value(depth + 1) });
    }
    return { members, ends: isMap ? "{}" : "[]" };
  }

  value(depth) {
    const kind = this.number("getUint8", 1);
    if (kind <= 0x7f) {
      return { text: String(kind) };
    }
    if (kind >= 0xe0) {
      return { text: String(kind - 256) };
    }
    if (kind <= 0x8f) {
      return this.members(kind & 0x0f, depth, true);
    }
    if (kind <= 0x9f) {
      return this.members(kind & 0x0f, depth, false);
    }
    if (kind <= 0xbf) {
      return this.text(kind & 0x1f);
    }
    return this.named(kind, depth);
  }

  /** Reads a value whose form is named by its first byte (specification of MessagePack, "Formats"). */
  named(kind, depth) {
    switch (kind) {
      case 0xc0:
        return { text: "null" };
      case 0xc2:
        return { text: "false" };
      case 0xc3:
        return { text: "true" };
      case 0xc4: case 0xc5: case 0xc6:
        return this.text(this.length(1 << (kind - 0xc4)));
      case 0xc7: case 0xc8: case 0xc9:
        return this.extension(this.length(1 << (kind - 0xc7)));
      case 0xca:
        return { text: String(this.number("getFloat32", 4)) };
      case 0xcb:
        return { text: String(this.number("getFloat64", 8)) };
      case 0xcc: case 0xcd: case 0xce:
        return { text: String(this.length(1 << (kind - 0xcc))) };
      case 0xcf:
        return { text: String(this.number("getBigUint64", 8)) };
      case 0xd0: case 0xd1: case 0xd2:
        return { text: String(this.number(`getInt${8 << (kind - 0xd0)}`, 1 << (kind - 0xd0))) };
      case 0xd3:
        return { text: String(this.number("getBigInt64", 8)) };
      case 0xd4: case 0xd5: case 0xd6: case 0xd7: case 0xd8:
        return this.extension(1 << (kind - 0xd4));
      case 0xd9: case 0xda: case 0xdb:
        return this.text(this.length(1 << (kind - 0xd9)));
      case 0xdc: case 0xdd:
        return this.members(this.length(2 << (kind - 0xdc)), depth, false);
      case 0xde: case 0xdf:
        return this.members(this.length(2 << (kind - 0xde)), depth, true);
      default:
        throw new RangeError("an unused first byte");
    }
  }
}
