// The demo: what its simulated users do, and the sliders that change it.

import { sentence } from "./versions.js";
import { ago, length, make, now, write } from "./words.js";

const KNOBS = {
  eta: { label: "position bias η", about: "0: users look at everything", form: (value) => value.toFixed(1) },
  noise: { label: "click noise ε", about: "clicks on what is not relevant", form: (value) => `${Math.round(value * 100)}%` },
  rate: { label: "traffic", about: "searches a second", form: (value) => `${Math.round(value)}/s` },
};
const QUIET = 1.5;

let touched = 0;
let timer = 0;

export function drawDemo({ demo }) {
  document.getElementById("demo").hidden = !demo;
  if (!demo) return;
  const form = document.getElementById("knobs");
  if (!form.children.length) {
    form.append(...Object.keys(KNOBS).filter((name) => name in demo.knobs).map((name) => slider(name, demo)));
  }
  // A slider that somebody is moving stays where the hand is.
  if (now() - touched > QUIET) {
    for (const input of form.querySelectorAll("input")) {
      input.value = demo.knobs[input.name];
      tell(input);
    }
  }
  write("story", story(demo));
}

function slider(name, demo) {
  const [min, max, step] = demo.limits[name];
  const input = make("input", "");
  Object.assign(input, { type: "range", name, min, max, step, id: `knob-${name}` });
  input.value = demo.knobs[name];
  input.setAttribute("aria-describedby", `about-${name}`);
  input.addEventListener("input", () => {
    touched = now();
    tell(input);
    clearTimeout(timer);
    timer = setTimeout(() => turn(name, Number(input.value)), 200);
  });
  const label = make("label", "", KNOBS[name].label);
  label.htmlFor = input.id;
  const output = make("output", "");
  output.htmlFor = input.id;
  const about = make("small", "", KNOBS[name].about);
  about.id = `about-${name}`;
  const row = make("div", "knob", label, output, input, about);
  queueMicrotask(() => tell(input));
  return row;
}

function tell(input) {
  const said = KNOBS[input.name].form(Number(input.value));
  write(input.parentElement.querySelector("output"), said);
  input.setAttribute("aria-valuetext", said);
}

async function turn(name, value) {
  try {
    const response = await fetch("demo", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ [name]: value }),
    });
    if (!response.ok) write("story", await sentence(response));
  } catch {
    write("story", "The server does not answer; try again.");
  }
}

function story({ knobs, truths, next_change: next }) {
  const last = truths.at(-1);
  const depth = last.examination.length;
  const seen = `one in ${Math.round(1 / last.examination[depth - 1])}`;
  let said = `They search, look down the list and click. Of those who see the first result, ${seen} sees the ${depth}th.`;
  if (truths.length > 1 && now() - last.time < 180) {
    const before = truths.at(-2).eta;
    const how = last.eta > before ? "look less far down" : last.eta < before ? "look further down" : "click differently";
    said = `They changed their habits ${ago(last.time)} and ${how} now: of those who see the first result, ${seen} sees the ${depth}th. Nobody told the learner; it follows from clicks alone.`;
  } else if (next) {
    const turnTo = next.eta > knobs.eta ? "look less far down" : "look further down";
    said += ` In ${length(Math.max(next.time - now(), 0)).replace(/\.\d/, "")} they will change their habits and ${turnTo}, and nobody tells the learner. Or move η yourself.`;
  } else {
    said += " Move η, and watch the curve follow from clicks alone.";
  }
  return said;
}
