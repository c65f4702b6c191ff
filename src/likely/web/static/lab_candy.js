// Five bags with known shares of cherry and lime candies: which one is drawn from?

import { bars, el, failure, percent, post, svg } from "./dom.js";

const WIDTH = 460;
const HEIGHT = 220;

export async function candy(view) {
  let draws = [];
  const problem = el("div", { "aria-live": "polite" });
  const drawn = el("p", { id: "drawn", "aria-live": "polite" });
  const predicted = el("p", {});
  const chart = el("div", {});
  const posterior = bars(["h1: all cherry", "h2: 75 % cherry", "h3: half and half", "h4: 25 % cherry", "h5: all lime"], "Probability of each bag");

  async function ask() {
    try {
      const found = await post("/api/lab/candy", { draws });
      posterior.update(found.posterior.at(-1));
      drawn.textContent = draws.length ? `Drawn: ${draws.join(", ")}` : "Nothing drawn yet: these are the prior probabilities.";
      predicted.replaceChildren("The next candy is lime with probability ", el("b", { id: "next-lime" }, percent(found.next_lime.at(-1))),
        ` by all bags together; the most probable bag alone (${found.map}) gives ${percent(found.map_lime)}.`);
      chart.replaceChildren(history(found.posterior));
      problem.replaceChildren();
    } catch (error) {
      problem.replaceChildren(failure(error));
    }
  }
  const draw = (what) => () => { draws = [...draws, what].slice(-200); ask(); };
  view.append(
    el("h2", {}, "Which bag is it?"),
    el("p", { class: "soft" }, "Prior probabilities 10, 20, 40, 20 and 10 %. Draw candies and watch the posterior."),
    el("div", { class: "buttons" },
      el("button", { type: "button", id: "draw-lime", onclick: draw("lime") }, "Draw a lime"),
      el("button", { type: "button", id: "draw-cherry", onclick: draw("cherry") }, "Draw a cherry"),
      el("button", { type: "button", class: "quiet", onclick: () => { draws = draws.slice(0, -1); ask(); } }, "Take back"),
      el("button", { type: "button", class: "quiet", onclick: () => { draws = []; ask(); } }, "Start again")),
    drawn, problem, el("div", { class: "columns" }, posterior.node, chart), predicted);
  await ask();
}

function history(steps) {
  const x = (i) => 36 + ((WIDTH - 50) * i) / Math.max(steps.length - 1, 4);
  const y = (p) => 10 + (HEIGHT - 40) * (1 - p);
  const lines = [0, 1, 2, 3, 4].map((h) =>
    svg("polyline", { class: `line s${h}`, points: steps.map((shares, i) => `${x(i)},${y(shares[h])}`).join(" ") }));
  const ends = [0, 1, 2, 3, 4].map((h) => svg("circle", { class: `k${h}`, r: 4, cx: x(steps.length - 1), cy: y(steps.at(-1)[h]) }));
  const grid = [0, 0.5, 1].map((p) => [svg("line", { class: "grid", x1: 36, x2: WIDTH - 10, y1: y(p), y2: y(p) }), svg("text", { x: 30, y: y(p) + 4, "text-anchor": "end" }, String(p))]);
  return svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": "Posterior of each bag after every draw" }, grid.flat(), lines, ends,
    svg("text", { x: WIDTH / 2, y: HEIGHT - 8, "text-anchor": "middle" }, `draws (${steps.length - 1})`));
}
