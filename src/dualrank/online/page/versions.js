// The history of versions, and the way back to an earlier one.

import { ago, begin, clock, count, make, write } from "./words.js";

const FEW = 6;
const MANY = 60;
const TOLD = { live: "went live", refused: "refused", "taken back": "taken back" };

let token = "";

export function drawVersions(state) {
  const told = (state.happened || []).filter((each) => each.what in TOLD).reverse();
  fill(document.getElementById("happened"), told.slice(0, FEW));
  const earlier = document.getElementById("earlier");
  earlier.hidden = told.length <= FEW;
  fill(earlier.querySelector("ol"), told.slice(FEW, MANY));
  document.getElementById("back").disabled = choices(state).length === 0;
}

function fill(list, happenings) {
  const key = happenings.map((each) => `${each.time} ${each.version} ${each.what}`).join();
  if (list.dataset.shows !== key) {
    list.dataset.shows = key;
    list.replaceChildren(...happenings.map(item));
  }
  [...list.querySelectorAll("time")].forEach((each) => write(each, ago(Number(each.dataset.time))));
}

function item({ time, version, what, why }) {
  const when = make("time", "");
  when.dataset.time = time;
  when.dateTime = new Date(time * 1000).toISOString();
  when.title = clock(time);
  const head = make("p", "head", make("b", "", `Version ${version}`), make("span", "tag", TOLD[what]), when);
  return make("li", what.replace(" ", "-"), head, make("p", "", begin(why)));
}

function choices(state) {
  const there = (state.versions || []).filter((each) => each.state === "replaced" && each.number !== state.live?.number);
  return there.sort((a, b) => (b.since || 0) - (a.since || 0)).slice(0, 10);
}

export function offerRollback(current) {
  const dialog = document.getElementById("rollback");
  const form = dialog.querySelector("form");
  document.getElementById("back").addEventListener("click", () => {
    const state = current();
    const options = choices(state).map((each) => {
      const option = make("option", "", `version ${each.number}, live ${each.since ? ago(each.since) : "before"}, ${count(each.sessions)} sessions`);
      option.value = each.number;
      return option;
    });
    form.to.replaceChildren(...options);
    form.token.value = token;
    write("refused", "");
    write("rollback-about", `Version ${state.live.number} is taken back, and the one you choose answers the next search. The learner goes on from there.`);
    dialog.showModal();
  });
  form.querySelector("[value=no]").addEventListener("click", () => dialog.close());
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const answer = await send(Number(form.to.value), form.why.value, form.token.value);
    if (answer.ok) {
      token = form.token.value;
      dialog.close();
    } else {
      token = "";
      write("refused", answer.said);
    }
  });
  dialog.addEventListener("close", () => {
    form.token.value = "";
    form.why.value = "";
  });
}

async function send(to, why, secret) {
  try {
    const response = await fetch("rollback", {
      method: "POST",
      headers: { "Content-Type": "application/json", Authorization: `Bearer ${secret}` },
      body: JSON.stringify({ to, why: why || "by hand, on the page" }),
    });
    return { ok: response.ok, said: response.ok ? "" : await sentence(response) };
  } catch {
    return { ok: false, said: "The server does not answer; try again." };
  }
}

export async function sentence(response) {
  const text = await response.text();
  try {
    const found = JSON.parse(text);
    return String(found.error ?? found.detail ?? text);
  } catch {
    return text || `The server answered ${response.status}.`;
  }
}
