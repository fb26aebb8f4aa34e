// Patterns of SCAN and KEYS (`*`, `?`, `[a-z]`, `\`), for elements that the server cannot search.

/**
 * Returns whether some bytes match a pattern; both are compared as they are shown. Takes at most as many steps as the
 * product of both lengths.
 */
export function matches(bytes, pattern) {
  const [text, parts] = [[...bytes.line], partsOf(pattern)];
  let [at, part] = [0, 0];
  // Where the last star was, and the first letter after the letters that it covers.
  let star = -1;
  let covered = 0;
  while (at < text.length) {
    if (parts[part] === "*") {
      [star, covered] = [part, at];
      part += 1;
    } else if (part < parts.length && parts[part](text[at])) {
      at += 1;
      part += 1;
    } else if (star >= 0) {
      covered += 1;
      [at, part] = [covered, star + 1];
    } else {
      return false;
    }
  }
  return parts.slice(part).every((rest) => rest === "*");
}

/** Splits a pattern into stars, and functions that compare one letter. */
function partsOf(pattern) {
  const letters = [...pattern];
  const parts = [];
  for (let at = 0; at < letters.length; at += 1) {
    const letter = letters[at];
    if (letter === "*") {
      parts.push("*");
    } else if (letter === "?") {
      parts.push(() => true);
    } else if (letter === "[") {
      const end = letters.indexOf("]", at + 1);
      const chosen = letters.slice(at + 1, end < 0 ? letters.length : end);
      parts.push(choice(chosen));
      at = end < 0 ? letters.length : end;
    } else {
      at += letter === "\\" && at + 1 < letters.length ? 1 : 0;
      const wanted = letters[at];
      parts.push((other) => other === wanted);
    }
  }
  return parts;
}

/** Compares a letter with those between brackets: `abc`, `a-z`, or `^` and the others. */
function choice(letters) {
  const isOther = letters[0] === "^";
  const rest = isOther ? letters.slice(1) : letters;
  return (letter) => {
    let is = false;
    for (let at = 0; at < rest.length; at += 1) {
      if (rest[at + 1] === "-" && at + 2 < rest.length) {
        const [low, high] = [rest[at], rest[at + 2]].sort();
        is ||= letter >= low && letter <= high;
        at += 2;
      } else {
        is ||= letter === rest[at];
      }
    }
    return is !== isOther;
  };
}
