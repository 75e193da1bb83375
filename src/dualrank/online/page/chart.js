// Charts as SVG, drawn at the width that they have, so that text is as large as elsewhere.
// What is drawn keeps its elements from one drawing to the next: style sheets can let it move.

const SVG = "http://www.w3.org/2000/svg";
const SPACE = { top: 12, right: 14, bottom: 26, left: 38 };
const LINE_HEIGHT = 15;

export class Chart {
  constructor(svg, height = 240) {
    this.svg = svg;
    this.height = height;
    this.axes = this.add(svg, "g", { class: "axes" });
    this.layers = this.add(svg, "g");
    this.labels = this.add(svg, "g", { class: "labels" });
    this.drawn = new Map();
    this.last = null;
    new ResizeObserver(() => this.last && this.draw(this.last)).observe(svg.parentElement);
  }

  // `x` and `y` are {from, to, ticks: [[value, text], …], log}; `layers` are drawn in their order:
  // {name, look, points: [[x, y], …], kind: "line" | "steps" | "dots", label}
  // {name, look, points: [[x, low, high], …], kind: "band"}
  // {name, look, at: x, kind: "rule", label, low: whether it is named below}, {name, look, from, to, kind: "bar", label, row}
  draw(what) {
    this.last = what;
    const width = Math.max(this.svg.parentElement.clientWidth, 200);
    const right = SPACE.right + (what.room || 0);
    const height = what.height || this.height;
    this.svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.svg.setAttribute("height", height);
    this.svg.setAttribute("aria-label", what.said);
    const left = what.y.ticks.length ? SPACE.left : 2;
    this.x = scale(what.x, left, width - right);
    this.y = scale(what.y, height - SPACE.bottom, SPACE.top);
    this.box = { left, right: width - right, top: SPACE.top, bottom: height - SPACE.bottom, width };
    this.drawAxes(what);
    this.drawLayers(what.layers);
    this.drawLabels(what.layers);
  }

  drawAxes({ x, y }) {
    const { left, right, bottom } = this.box;
    this.axes.replaceChildren();
    for (const [value, text] of y.ticks) {
      const at = round(this.y(value));
      this.add(this.axes, "line", { x1: left, x2: right, y1: at, y2: at });
      this.add(this.axes, "text", { x: left - 8, y: at + 4, "text-anchor": "end" }, text);
    }
    let free = -Infinity;
    for (const [value, text] of x.ticks) {
      const at = round(this.x(value));
      const half = text.length * 3.6;
      if (at - half < free || at + half > this.box.width) continue;
      free = at + half + 8;
      this.add(this.axes, "text", { x: at, y: bottom + 19, "text-anchor": "middle" }, text);
    }
  }

  drawLayers(layers) {
    const names = new Set(layers.map((each) => each.name));
    for (const [name, element] of this.drawn) {
      if (!names.has(name)) {
        element.remove();
        this.drawn.delete(name);
      }
    }
    for (const layer of layers) {
      const tag = layer.kind === "bar" ? "rect" : layer.kind === "rule" ? "line" : "path";
      let element = this.drawn.get(layer.name);
      if (!element) {
        element = this.add(this.layers, tag, {});
        this.drawn.set(layer.name, element);
      }
      this.layers.append(element);
      element.setAttribute("class", `${layer.kind} ${layer.look}`);
      set(element, this.place(layer));
    }
  }

  place(layer) {
    const { top, bottom } = this.box;
    const point = ([x, y]) => `${round(this.x(x))} ${round(this.y(y))}`;
    switch (layer.kind) {
      case "band": {
        const back = [...layer.points].reverse();
        const along = [...layer.points.map(([x, low]) => point([x, low])), ...back.map(([x, , high]) => point([x, high]))];
        return { d: along.length ? `M${along.join("L")}Z` : "" };
      }
      case "steps": {
        const along = layer.points.map((each, i) => `${i ? `H${round(this.x(each[0]))}` : ""}M${point(each)}`);
        return { d: along.join("") };
      }
      case "dots":
        return { d: layer.points.map((each) => `M${point(each)}h.01`).join("") };
      case "rule": {
        const at = round(this.x(layer.at));
        return { x1: at, x2: at, y1: top, y2: bottom };
      }
      case "bar": {
        const from = this.x(layer.from);
        const y = this.y(layer.row);
        return { x: round(from), y: round(y - 11), width: Math.max(round(this.x(layer.to) - from - 1.5), 1.5), height: 22, rx: 3 };
      }
      default:
        return { d: layer.points.length ? `M${layer.points.map(point).join("L")}` : "" };
    }
  }

  // A line is named at its end, a rule at its top, a bar inside; names of lines keep apart.
  drawLabels(layers) {
    this.labels.replaceChildren();
    const { top, bottom, right } = this.box;
    const ends = [];
    for (const layer of layers.filter((each) => each.label)) {
      if (layer.kind === "rule") {
        const at = this.x(layer.at);
        const over = at > right - 120;
        this.add(this.labels, "text", { x: round(at + (over ? -5 : 5)), y: layer.low ? bottom - 6 : top + 9, class: layer.look, "text-anchor": over ? "end" : "start" }, layer.label);
      } else if (layer.kind === "bar") {
        const [from, to] = [this.x(layer.from), this.x(layer.to)];
        if (to - from < layer.label.length * 8 + 8) continue;
        this.add(this.labels, "text", { x: round((from + to) / 2), y: round(this.y(layer.row) + 4.5), class: `${layer.look} inside`, "text-anchor": "middle" }, layer.label);
      } else if (layer.points.length) {
        const [, y] = layer.points.at(-1);
        ends.push({ layer, at: this.y(y) });
      }
    }
    ends.sort((a, b) => a.at - b.at);
    const places = apart(ends.map((each) => each.at), LINE_HEIGHT, top + 4, bottom);
    ends.forEach(({ layer }, i) => {
      this.add(this.labels, "text", { x: right + 7, y: round(places[i] + 4), class: layer.look }, layer.label);
    });
  }

  add(parent, tag, attributes = {}, text = "") {
    const element = document.createElementNS(SVG, tag);
    set(element, attributes);
    if (text) element.textContent = text;
    parent.append(element);
    return element;
  }
}

// Ticks at round numbers, about `count` of them.
export function ticks(from, to, count = 4) {
  const rough = (to - from) / count || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((each) => each * power).find((each) => each >= rough * 0.999);
  const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9)) + (step / power === 2.5 ? 1 : 0);
  const found = [];
  for (let at = Math.ceil(from / step - 1e-9) * step; at <= to + step * 1e-9; at += step) {
    found.push([at, at.toFixed(digits)]);
  }
  return found;
}

// Ticks at full seconds, minutes or hours of the reader's clock; times are in seconds.
export function clockTicks(from, to, count) {
  const steps = [5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400];
  const step = steps.find((each) => (to - from) / each <= count) || 86400 * Math.ceil((to - from) / 86400 / count);
  const zone = new Date(from * 1000).getTimezoneOffset() * 60;
  const found = [];
  for (let at = Math.ceil((from - zone) / step) * step + zone; at <= to; at += step) {
    const date = new Date(at * 1000);
    const two = (n) => String(n).padStart(2, "0");
    const clock = `${two(date.getHours())}:${two(date.getMinutes())}`;
    found.push([at, step < 60 ? `${clock}:${two(date.getSeconds())}` : step < 86400 ? clock : `${date.getDate()}.${date.getMonth() + 1}.`]);
  }
  return found;
}

function scale({ from, to, log }, start, end) {
  const see = log ? Math.log : (value) => value;
  const [low, high] = [see(from), see(to)];
  const across = high - low || 1;
  return (value) => start + ((see(value) - low) / across) * (end - start);
}

// Ascending places with at least `gap` between them, between two bounds where there is room.
function apart(places, gap, first, last) {
  const found = [...places];
  for (let i = 0; i < found.length; i++) {
    found[i] = Math.max(found[i], i ? found[i - 1] + gap : first);
  }
  for (let i = found.length - 1; i >= 0; i--) {
    found[i] = Math.min(found[i], i === found.length - 1 ? last : found[i + 1] - gap);
  }
  return found;
}

function set(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
}

function round(value) {
  return Math.round(value * 10) / 10;
}
