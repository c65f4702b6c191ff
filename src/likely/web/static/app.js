// Views and their addresses: #predict, #score, #workbench, #lab.

import { el, failure, get } from "./dom.js";
import { lab } from "./lab.js";
import { predict } from "./predict.js";
import { score } from "./score.js";
import { workbench } from "./workbench.js";

const VIEWS = {
  predict: { title: "Predict", make: predict, model: true },
  score: { title: "Score a file", make: score, model: true },
  workbench: { title: "Workbench", make: workbench },
  lab: { title: "Lab", make: lab },
};
const state = { models: [], workbench: false, model: null };

const main = document.getElementById("main");
const select = document.getElementById("model-select");

function views() {
  return Object.keys(VIEWS).filter((name) => (VIEWS[name].model ? state.models.length : name !== "workbench" || state.workbench));
}

function current() {
  const asked = location.hash.slice(1);
  const open = views();
  return open.includes(asked) ? asked : state.workbench && !state.models.length ? "workbench" : open[0];
}

function navigation() {
  const links = views().map((name) =>
    el("a", { href: `#${name}`, "aria-current": name === current() ? "page" : null }, VIEWS[name].title));
  document.getElementById("nav").replaceChildren(...links);
  select.replaceChildren(...state.models.map((each) => el("option", { value: each.name }, each.name)));
  select.value = state.model || "";
  document.getElementById("model-choice").hidden = state.models.length < 2;
}

export async function refresh(model) {
  const found = await get("/api/models");
  Object.assign(state, found);
  const names = state.models.map((each) => each.name);
  state.model = names.includes(model) ? model : names.includes(state.model) ? state.model : names[0] || null;
}

let turn = 0;

async function show() {
  const name = current();
  if (!name) return;
  const mine = ++turn; // a view that takes longer must not replace one that was asked for later
  navigation();
  document.title = `${VIEWS[name].title} – Likely`;
  const view = el("div");
  try {
    await VIEWS[name].make(view, { model: state.model, refresh, open: (view_) => { location.hash = view_; } });
  } catch (error) {
    view.replaceChildren(failure(error));
  }
  if (mine === turn) main.replaceChildren(view);
}

select.addEventListener("change", () => { state.model = select.value; show(); });
window.addEventListener("hashchange", async () => { await show(); main.focus(); });

try {
  await refresh();
  const health = await get("/health");
  document.getElementById("version").textContent = `Likely ${health.version}`;
  await show();
} catch (error) {
  main.replaceChildren(failure(error));
}
