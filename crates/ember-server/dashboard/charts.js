// Lines of what has been, drawn as SVG.

const NAMESPACE = "http://www.w3.org/2000/svg";
const POINTS = 120;
const WIDTH = 240;
const HEIGHT = 60;

/** The last values of a figure. */
export class Series {
  constructor() {
    this.values = [];
  }

  add(value) {
    this.values.push(Number.isFinite(value) ? value : 0);
    this.values = this.values.slice(-POINTS);
  }
}

/** Draws series on one scale, from zero to `top` or the largest value. `label` says it in words. */
export function chart(label, series, top) {
  const svg = document.createElementNS(NAMESPACE, "svg");
  svg.setAttribute("class", "chart");
  svg.setAttribute("viewBox", `0 0 ${WIDTH} ${HEIGHT}`);
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", label);
  const largest = top ?? Math.max(1e-9, ...series.flatMap(({ values }) => values));
  const ground = document.createElementNS(NAMESPACE, "line");
  Object.entries({ x1: 0, y1: HEIGHT - 1, x2: WIDTH, y2: HEIGHT - 1 })
    .forEach(([name, value]) => ground.setAttribute(name, value));
  svg.append(ground);
  for (const { values } of series) {
    const line = document.createElementNS(NAMESPACE, "polyline");
    const first = POINTS - values.length;
    const points = values.map((value, at) => {
      const x = ((first + at) / (POINTS - 1)) * WIDTH;
      const y = HEIGHT - 2 - (Math.min(value, largest) / largest) * (HEIGHT - 4);
      return `${x.toFixed(1)},${y.toFixed(1)}`;
    });
    line.setAttribute("points", points.join(" "));
    svg.append(line);
  }
  return svg;
}
