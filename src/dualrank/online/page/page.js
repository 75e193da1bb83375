// The page follows the service: the first state from /status, what changes from /stream.

import { drawFigures } from "./figures.js";
import { drawDemo } from "./knobs.js";
import { drawVersions, offerRollback } from "./versions.js";
import { ago, begin, clock, count, length, make, now, setClock, write } from "./words.js";

const RECENT = 180;
const MOST = 1;
const PATIENCE = 3000;

let state = null;
let waiting = false;
const told = new Map();

function merge(part) {
  state = { ...state, ...part };
  setClock(state.time);
  if (waiting || document.hidden) return;
  waiting = true;
  requestAnimationFrame(() => {
    waiting = false;
    draw();
  });
}

function draw() {
  drawHead();
  drawTiles();
  drawAlarms();
  drawDemo(state);
  drawFigures(state);
  drawVersions(state);
}

function drawHead() {
  const { live } = state;
  if (!live) return;
  write("live", `Version ${live.number} is live`);
  const since = live.since ? `since ${clock(live.since)}, ${ago(live.since)}` : "";
  // The whole of it stands in the history below.
  write("why", [since, String(live.why).split(";")[0]].filter(Boolean).join(" · "));
  document.title = `Version ${live.number} · dualrank, live`;
}

function drawTiles() {
  const latest = state.rounds?.at(-1);
  const counts = state.counts || {};
  write("sessions", count(counts.impressions ?? latest?.sessions));
  write("sessions-about", latest ? `learned from ${count(latest.sessions)}` : "none learned from yet");
  const clicks = counts.events ?? latest?.clicks;
  write("clicks", count(clicks));
  const shown = counts.impressions ?? latest?.sessions;
  write("clicks-about", shown ? `${(clicks / shown).toFixed(2)} a session` : "\u00a0");
  write("delay", latest ? length(latest.delay) : "–");
  write("delay-about", latest ? `last round ${ago(latest.time)}` : "no round yet");
  const states = (state.versions || []).map((each) => each.state);
  const of = (name) => states.filter((each) => each === name).length;
  write("made", count(Math.max(0, ...(state.versions || []).map((each) => each.number))));
  write("made-about", `${count(of("refused"))} refused, ${count(of("taken back"))} taken back`);
}

// Only new alarms are added to the live region, so that each is read out once.
function drawAlarms() {
  const all = state.alarms || [];
  const place = document.getElementById("alarms");
  for (const alarm of all) {
    const key = `${alarm.time} ${alarm.kind} ${alarm.said}`;
    if (told.has(key) || now() - alarm.time > RECENT) continue;
    const close = make("button", "", "Seen");
    close.type = "button";
    const box = make("div", "alarm", make("b", "", clock(alarm.time)), make("p", "", begin(alarm.said)), close);
    close.addEventListener("click", () => box.remove());
    told.set(key, { box, time: alarm.time });
    place.prepend(box);
    while (place.children.length > MOST) place.lastElementChild.remove();
  }
  for (const { box, time } of told.values()) if (now() - time > RECENT) box.remove();
  const list = document.getElementById("past-alarms");
  list.hidden = all.length === 0;
  const shown = all.slice(-20).reverse();
  const key = shown.map((each) => each.time).join();
  if (list.dataset.shows === key) return;
  list.dataset.shows = key;
  const items = shown.map((each) => make("li", "", make("p", "head", make("b", "", each.kind), make("time", "", clock(each.time))), make("p", "", begin(each.said))));
  list.querySelector("ol").replaceChildren(...items);
}

function connection(look, said) {
  const element = document.getElementById("connection");
  element.className = look;
  write(element, said);
  document.body.classList.toggle("stale", look === "gone");
}

async function refresh() {
  const response = await fetch("status", { cache: "no-store" });
  if (response.ok) merge(await response.json());
}

function follow() {
  const source = new EventSource("stream");
  source.onopen = () => connection("here", "following");
  source.onmessage = (event) => merge(JSON.parse(event.data));
  source.onerror = () => {
    connection("gone", "disconnected, trying again …");
    if (source.readyState === EventSource.CLOSED) setTimeout(follow, PATIENCE);
  };
}

offerRollback(() => state);
refresh().catch(() => connection("gone", "disconnected, trying again …"));
follow();
setInterval(() => state && !document.hidden && draw(), 1000);
