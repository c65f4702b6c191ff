// The lab: small problems to play with. The page draws, the library on the server computes.

import { el } from "./dom.js";
import { candy } from "./lab_candy.js";
import { em, surface } from "./lab_points.js";
import { network, tennis } from "./lab_tables.js";

const EXPERIMENTS = {
  candy: ["Bags of candy", candy],
  em: ["EM on points", em],
  surface: ["Decision surface", surface],
  tennis: ["Tennis table", tennis],
  network: ["Network", network],
};

export async function lab(view) {
  const place = el("section", { class: "card" });
  async function open(name) {
    const fresh = el("div");
    buttons.forEach((button) => button.setAttribute("aria-pressed", String(button.dataset.name === name)));
    place.setAttribute("aria-label", EXPERIMENTS[name][0]);
    place.replaceChildren(fresh);
    await EXPERIMENTS[name][1](fresh);
  }
  const buttons = Object.entries(EXPERIMENTS).map(([name, [title]]) =>
    el("button", { type: "button", "data-name": name, "aria-pressed": "false", onclick: () => open(name) }, title));
  view.append(el("h1", {}, "Lab"), el("div", { class: "tabs", role: "group", "aria-label": "Experiments" }, buttons), place);
  await open("candy");
}
