// Binary-safe strings, in three forms: encoded in JSON, displayed, and typed by the user.

const encoder = new TextEncoder();

/** A string that JSON encodes as `{"text": …}` or `{"base64": …}`. */
export class Bytes {
  constructor(json) {
    this.json = json;
  }

  static of(text) {
    return new Bytes({ text });
  }

  /** The JSON form of the string as an argument of a command. */
  get word() {
    return this.json.text ?? this.json;
  }

  /** Whether it is UTF-8. */
  get isText() {
    return this.json.text !== undefined;
  }

  /** The bytes. */
  get array() {
    return this.isText ? encoder.encode(this.json.text)
      : Uint8Array.from(atob(this.json.base64), (letter) => letter.charCodeAt(0));
  }

  /** The text; empty if the bytes are not UTF-8. */
  get text() {
    return this.json.text ?? "";
  }

  /** The string on one line, with invisible characters escaped, so that every byte is displayed. */
  get line() {
    return this.shown(false);
  }

  /** The same, with unescaped line breaks. */
  get lines() {
    return this.shown(true);
  }

  shown(keepsLineEnds) {
    if (this.isText) {
      return [...this.json.text].map((letter) => shownLetter(letter, keepsLineEnds)).join("");
    }
    return atob(this.json.base64).replace(/[^]/g, (letter) =>
      letter > "\x7e" ? hexadecimal(letter) : shownLetter(letter, keepsLineEnds));
  }

  equals(other) {
    return this.json.text === other.json.text && this.json.base64 === other.json.base64;
  }
}

const NAMED = { "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t" };

// Control, format and unassigned characters: they are invisible or change the direction of the text.
const UNSEEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\p{Co}\p{Cn}]/u;

function shownLetter(letter, keepsLineEnds) {
  if (letter === "\n" && keepsLineEnds) {
    return letter;
  }
  if (NAMED[letter]) {
    return NAMED[letter];
  }
  if (UNSEEN.test(letter)) {
    return [...encoder.encode(letter)].map((byte) => hexadecimal(String.fromCharCode(byte))).join("");
  }
  return letter;
}

/** Escapes only invisible characters, not backslashes: for JSON, which contains its own escapes. */
export function visible(text) {
  return [...text].map((letter) => (UNSEEN.test(letter) ? shownLetter(letter, false) : letter)).join("");
}

function hexadecimal(letter) {
  return "\\x" + letter.charCodeAt(0).toString(16).padStart(2, "0");
}

/** Parses the format of `line` and `lines`. Throws an error with a text for the user. */
export function typed(text) {
  const bytes = [];
  const escape = /\\(?:([\\nrt])|x([0-9a-fA-F]{2})|)/y;
  const meaning = { "\\": 92, n: 10, r: 13, t: 9 };
  for (let at = 0; at < text.length;) {
    if (text[at] !== "\\") {
      const end = text.indexOf("\\", at);
      const plain = text.slice(at, end < 0 ? text.length : end);
      encoder.encode(plain).forEach((byte) => bytes.push(byte));
      at += plain.length;
      continue;
    }
    escape.lastIndex = at;
    const [whole, name, digits] = escape.exec(text);
    if (!name && !digits) {
      throw new Error("A backslash begins \\\\, \\n, \\r, \\t or \\x and two hexadecimal digits.");
    }
    bytes.push(name ? meaning[name] : parseInt(digits, 16));
    at += whole.length;
  }
  return fromBytes(Uint8Array.from(bytes));
}

/** Converts an array of bytes. */
export function fromBytes(array) {
  try {
    return Bytes.of(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(array));
  } catch {
    let binary = "";
    array.forEach((byte) => (binary += String.fromCharCode(byte)));
    return new Bytes({ base64: btoa(binary) });
  }
}
