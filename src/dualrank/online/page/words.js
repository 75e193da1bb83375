// Numbers and times as people write them, and elements whose text comes from data.

const whole = new Intl.NumberFormat("en");

// Times are those of the server, whatever the clock of the reader says.
let ahead = 0;

export function setClock(time) {
  if (time) ahead = time - Date.now() / 1000;
}

export const now = () => Date.now() / 1000 + ahead;

export function count(value) {
  return value === undefined || value === null ? "–" : whole.format(Math.round(value));
}

export function percent(value) {
  const shown = value * 100;
  return `${shown.toFixed(shown < 9.95 ? 1 : 0)}%`;
}

export function length(seconds) {
  const s = Math.max(0, seconds);
  if (s < 10) return `${s.toFixed(1)} s`;
  if (s < 90) return `${Math.round(s)} s`;
  if (s < 5400) return `${Math.round(s / 60)} min`;
  if (s < 129600) return `${Math.round(s / 3600)} h`;
  return `${Math.round(s / 86400)} days`;
}

export function ago(time) {
  const past = now() - time;
  return past < 1.5 ? "just now" : `${length(past < 10 ? Math.round(past) + 1e-9 : past).replace(".0", "")} ago`;
}

export function clock(time) {
  const date = new Date(time * 1000);
  const today = date.toDateString() === new Date().toDateString();
  const said = date.toLocaleTimeString("en-GB");
  return today ? said : `${date.toLocaleDateString("en-GB", { day: "numeric", month: "short" })}, ${said}`;
}

// Text is text: nothing that comes from data is ever read as markup.
export function make(tag, look, ...inside) {
  const element = document.createElement(tag);
  if (look) element.className = look;
  element.append(...inside.map((each) => (each instanceof Node ? each : String(each))));
  return element;
}

export function write(id, text) {
  const element = typeof id === "string" ? document.getElementById(id) : id;
  if (element.textContent !== text) element.textContent = text;
}

// Sentences of the service begin small, since they follow a name elsewhere.
export function begin(sentence) {
  const text = String(sentence ?? "");
  return text.charAt(0).toUpperCase() + text.slice(1);
}
