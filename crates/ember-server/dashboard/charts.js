// Line charts of past values in SVG, with a scale, a time axis, a legend for several lines, and the values at the pointer.

const NAMESPACE = "http://www.w3.org/2000/svg";
const POINTS_MAX = 400;
const WIDTH = 240;
const HEIGHT = 60;

/** The values of a metric with their times in milliseconds, oldest first. NaN stands for an unknown value. */
export class Series {
  constructor(times = [], values = []) {
    this.times = times;
    this.values = values;
  }

  add(time, value) {
    this.times = [...this.times, time].slice(-POINTS_MAX);
    this.values = [...this.values, value].slice(-POINTS_MAX);
  }
}

/** The position of the pointer: the name of a chart, and the fraction of its width from 0 to 1. */
let pointed = null;
let redraw = () => {};

function point(event) {
  const plot = event.target.closest?.(".plot");
  const before = pointed;
  if (plot) {
    const { left, width } = plot.getBoundingClientRect();
    pointed = { name: plot.dataset.name, share: Math.min(1, Math.max(0, (event.clientX - left) / width)) };
  } else {
    pointed = null;
  }
  if (pointed || before) {
    redraw();
  }
}

/** Calls `draw` whenever the pointer moves within a chart or leaves it. */
export function whenPointed(draw) {
  redraw = draw;
  document.addEventListener("pointermove", point);
  document.addEventListener("pointerdown", point);
}

function svg(tag, attributes) {
  const element = document.createElementNS(NAMESPACE, tag);
  Object.entries(attributes).forEach(([name, value]) => element.setAttribute(name, String(value)));
  return element;
}

function html(tag, className, text) {
  const element = document.createElement(tag);
  element.className = className;
  element.textContent = text;
  return element;
}

/** Rounds up to a number such as 1, 2, 5, 10, 20, …, so that the scale does not change with each value. */
function ceiling(value, base) {
  const unit = base ** Math.floor(Math.log(value) / Math.log(base));
  const steps = base === 10 ? [1, 2, 5, 10] : [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024];
  return unit * steps.find((step) => unit * step >= value);
}

/** Formats an age: `40 s ago`, `25 min ago`, `now`. */
function ago(milliseconds) {
  const seconds = Math.round(milliseconds / 1000);
  if (seconds < 1) {
    return "now";
  }
  return seconds < 120 ? `${seconds} s ago` : `${Math.round(seconds / 60)} min ago`;
}

/** Returns the scale from zero to `top`: its name at the top, its lines, and the position of a value between 0 and 1. */
function linear(top, format) {
  return { names: { top: format(top) }, lines: [0, top / 2, top], share: (value) => Math.min(value, top) / top };
}

/** Returns the logarithmic scale between the powers of ten around some values; a line stands for each power. */
function logarithmic(values, format) {
  const exponent = (value) => Math.log10(Math.max(value, 1));
  const from = Math.floor(Math.min(...values.map(exponent)));
  const to = Math.max(from + 1, Math.ceil(Math.max(...values.map(exponent))));
  const lines = Array.from({ length: to - from + 1 }, (_, at) => 10 ** (from + at));
  const names = { top: format(10 ** to), bottom: format(10 ** from) };
  return { names, lines, share: (value) => (exponent(value) - from) / (to - from) };
}

/**
 * Draws lines on one scale. It extends from zero to `top` or to a round number not below the largest value, or with
 * `isLogarithmic` between powers of ten, so that small values remain visible next to large ones. A line is
 * `[name, series]`; `format` formats a value; `range` is the time in milliseconds from the left edge to the right edge,
 * which is `now`.
 */
export function chart(name, label, lines, { format, range, now, top, isLogarithmic = false, base = 10 }) {
  const from = now - range;
  const place = (time) => ((time - from) / range) * WIDTH;
  const shown = lines.map(([title, { times, values }]) => [title, times
    .map((time, at) => [time, values[at]])
    .filter(([time, value]) => time >= from && Number.isFinite(value))]);
  const all = shown.flatMap(([, points]) => points.map(([, value]) => value));
  const largest = Math.max(0, ...all);
  const scale = isLogarithmic && largest > 0
    ? logarithmic(all, format) : linear(top ?? (largest > 0 ? ceiling(largest, base) : 1), format);
  const height = (value) => HEIGHT - 1 - scale.share(value) * (HEIGHT - 3);
  const image = svg("svg", { class: "chart", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img" });
  image.setAttribute("aria-label", label);
  scale.lines.forEach((value) =>
    image.append(svg("line", { x1: 0, y1: height(value), x2: WIDTH, y2: height(value) })));
  for (const [, points] of shown) {
    const drawn = points.map(([time, value]) => `${place(time).toFixed(1)},${height(value).toFixed(1)}`);
    image.append(svg("polyline", { points: drawn.join(" ") }));
  }

  const { names } = scale;
  const plot = html("div", names.bottom ? "plot between" : "plot", "");
  plot.dataset.name = name;
  plot.append(image, html("span", "scale", largest > 0 || top ? names.top : ""));
  plot.append(...(names.bottom ? [html("span", "scale bottom", names.bottom)] : []));
  const at = pointed?.name === name ? from + pointed.share * range : null;
  const found = at === null ? [] : shown.map(([title, points]) => [title, nearest(points, at)]).filter(([, hit]) => hit);
  if (found.length > 0) {
    const [, [time]] = found[0];
    image.append(svg("line", { class: "at", x1: place(time), y1: 0, x2: place(time), y2: HEIGHT }));
    const values = found.map(([title, [, value]]) => (lines.length > 1 ? `${title} ${format(value)}` : format(value)));
    plot.append(html("span", pointed.share > 0.5 ? "tip left" : "tip", `${ago(now - time)}: ${values.join(", ")}`));
  }

  const below = html("div", "below faint", "");
  below.append(html("span", "", ago(range)));
  if (lines.length > 1) {
    const legend = html("span", "legend", "");
    lines.forEach(([title], number) => legend.append(html("span", `line${number + 1}`, title)));
    below.append(legend);
  }
  below.append(html("span", "", "now"));
  const whole = html("div", "charted", "");
  whole.append(plot, below);
  return whole;
}

/** Returns the point whose time is nearest. */
function nearest(points, at) {
  return points.reduce((best, point) => (best && Math.abs(best[0] - at) <= Math.abs(point[0] - at) ? best : point), null);
}
