// Strings of any bytes: as JSON carries them, as people read them, and as people type them.

const encoder = new TextEncoder();

/** The value of `{"text": …}` or `{"base64": …}`. */
export class Bytes {
  constructor(json) {
    this.json = json;
  }

  static of(text) {
    return new Bytes({ text });
  }

  /** What to send for it: a word of a command. */
  get word() {
    return this.json.text ?? this.json;
  }

  /** Whether it is UTF-8. */
  get isText() {
    return this.json.text !== undefined;
  }

  /** The text, or nothing where there is none. */
  get text() {
    return this.json.text ?? "";
  }

  /** One line that names every byte: what cannot be seen is escaped. */
  get line() {
    return this.shown(false);
  }

  /** The same with line ends as they are. */
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

// Controls, and what changes the direction or hides: text is to look like what it is.
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

/** Text with what cannot be seen escaped, and nothing else: for JSON, which has its own backslashes. */
export function visible(text) {
  return [...text].map((letter) => (UNSEEN.test(letter) ? shownLetter(letter, false) : letter)).join("");
}

function hexadecimal(letter) {
  return "\\x" + letter.charCodeAt(0).toString(16).padStart(2, "0");
}

/** Reads what `line` and `lines` write. Throws an error that people understand. */
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

/** Bytes of an array. */
export function fromBytes(array) {
  try {
    return Bytes.of(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(array));
  } catch {
    let binary = "";
    array.forEach((byte) => (binary += String.fromCharCode(byte)));
    return new Bytes({ base64: btoa(binary) });
  }
}
