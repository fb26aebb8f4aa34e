// Formatting of numbers, sizes and times.

const small = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });
const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

/** Formats a count: 1,234 or 1.2 M. */
export function count(number) {
  for (const [size, name] of [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e5, "k"]]) {
    if (number >= size) {
      return `${small.format(number / (name === "k" ? 1e3 : size))} ${name}`;
    }
  }
  return number < 10 && !Number.isInteger(number) ? small.format(number) : whole.format(number);
}

/** Formats a number of bytes. */
export function size(bytes) {
  for (const [unit, name] of [[2 ** 40, "TiB"], [2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"]]) {
    if (bytes >= unit) {
      return `${small.format(bytes / unit)} ${name}`;
    }
  }
  return `${whole.format(bytes)} B`;
}

/** Formats a fraction as a percentage. */
export function percent(share) {
  return Number.isFinite(share) ? `${small.format(share * 100)} %` : "–";
}

/** Formats a number of microseconds. */
export function micros(time) {
  if (!Number.isFinite(time)) {
    return "–";
  }
  if (time >= 1e6) {
    return `${small.format(time / 1e6)} s`;
  }
  return time >= 1e3 ? `${small.format(time / 1e3)} ms` : `${small.format(time)} µs`;
}

/** Formats a number of seconds with its two largest units. */
export function span(seconds) {
  const units = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
  const parts = [];
  let left = Math.max(0, Math.floor(seconds));
  for (const [unit, name] of units) {
    const number = Math.floor(left / unit);
    left -= number * unit;
    if (number > 0 || (unit === 1 && parts.length === 0)) {
      parts.push(`${number} ${name}`);
    }
  }
  return parts.slice(0, 2).join(" ");
}

/** Formats a Unix time in seconds. */
export function moment(seconds) {
  return new Date(seconds * 1000).toLocaleString("en", { dateStyle: "medium", timeStyle: "medium" });
}

/** Formats a count with its noun: `1 key`, `2 keys`. */
export function things(number, one, many = `${one}s`) {
  return `${count(number)} ${number === 1 ? one : many}`;
}
