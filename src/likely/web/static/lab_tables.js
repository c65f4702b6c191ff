// The tennis table, which can be edited, and a network, which can be given evidence.

import { bars, el, failure, percent, post, signed, svg } from "./dom.js";

export async function tennis(view) {
  let rows = null;
  let day = {};
  const problem = el("div", { "aria-live": "polite" });
  const table = el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Days" });
  const form = el("div", { class: "buttons" });
  const result = el("div", { "aria-live": "polite" });
  const smoothing = el("input", { type: "number", id: "smoothing", min: 0, max: 100, step: 0.5, value: 1, onchange: () => ask() });

  async function ask() {
    try {
      const found = await post("/api/lab/tennis", { rows, day, smoothing: Number(smoothing.value) || 0 });
      rows = found.rows;
      day = found.day;
      drawTable(found);
      drawDay(found);
      drawResult(found);
      problem.replaceChildren();
    } catch (error) {
      problem.replaceChildren(failure(error));
    }
  }
  function chooser(label, values, value, put) {
    const select = el("select", { "aria-label": label, onchange: () => { put(select.value); ask(); } }, values.map((each) => el("option", { value: each, selected: each === value }, each)));
    return select;
  }
  function drawTable({ columns, target }) {
    const names = [...Object.keys(columns), target];
    const domains = { ...columns, [target]: ["No", "Yes"] };
    const focused = document.activeElement ? document.activeElement.getAttribute("aria-label") : null;
    table.replaceChildren(el("table", { class: "table-edit" },
      el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Day"), names.map((name) => el("th", { scope: "col" }, name)), el("th", { scope: "col" }, el("span", { class: "visually-hidden" }, "Remove")))),
      el("tbody", {}, rows.map((row, i) => el("tr", {}, el("th", { scope: "row" }, String(i + 1)),
        names.map((name) => el("td", {}, chooser(`Day ${i + 1}, ${name}`, domains[name], row[name], (value) => { rows[i] = { ...row, [name]: value }; }))),
        el("td", {}, el("button", { type: "button", class: "quiet small", "aria-label": `Remove day ${i + 1}`, onclick: () => { rows = rows.filter((_, j) => j !== i); ask(); } }, "×")))))));
    if (focused) { const again = [...table.querySelectorAll("[aria-label]")].find((node) => node.getAttribute("aria-label") === focused); if (again) again.focus(); }
  }
  function drawDay({ columns }) {
    form.replaceChildren(...Object.entries(columns).map(([name, values]) => el("label", { class: "inline" }, `${name} `, chooser(`New day, ${name}`, values, day[name], (value) => { day = { ...day, [name]: value }; }))));
  }
  function drawResult({ explanation, target }) {
    const shares = bars(explanation.classes, `Probability of ${target}`);
    shares.update(explanation.probabilities);
    const lines = explanation.evidence.map((entry) => el("tr", {}, el("th", { scope: "row" }, `${entry.columns[0]} = ${entry.values[0]}`),
      entry.log_likelihood.map((value) => el("td", { class: "num" }, value === null ? "0" : Math.exp(value).toFixed(3))), el("td", { class: "num" }, signed(entry.weight[1]))));
    result.replaceChildren(shares.node, el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Factors" }, el("table", {}, el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Factor"), explanation.classes.map((label) => el("th", { scope: "col", class: "num" }, `P(· | ${label})`)), el("th", { scope: "col", class: "num" }, `weight for ${explanation.classes[1]}`))),
      el("tbody", {}, el("tr", {}, el("th", { scope: "row" }, "Prior"), explanation.log_prior.map((value) => el("td", { class: "num" }, value === null ? "0" : Math.exp(value).toFixed(3))), el("td", { class: "num" }, "")), lines))));
  }
  view.append(el("h2", {}, "Play tennis?"), el("p", { class: "soft" }, "Change any cell of the table or of the new day: the model is counted again."),
    problem, el("h3", {}, "The new day"), form, el("div", { class: "buttons" }, el("label", { class: "inline", for: "smoothing" }, "Pseudocount of each value ", smoothing)), result,
    el("h3", {}, "What was seen"), table,
    el("div", { class: "buttons" }, el("button", { type: "button", class: "quiet", onclick: () => { rows = [...rows, { ...rows.at(-1) }]; ask(); } }, "Add a day"),
      el("button", { type: "button", class: "quiet", onclick: () => { rows = null; ask(); } }, "The textbook's table")));
  await ask();
}

const PLACES = { Cloudy: [230, 50], Sprinkler: [100, 160], Rain: [360, 160], Wet: [230, 270] };

export async function network(view) {
  let evidence = {};
  const problem = el("div", { "aria-live": "polite" });
  const picture = el("div", {});
  const controls = el("div", {});

  async function ask() {
    try {
      const found = await post("/api/lab/network", { evidence });
      drawNetwork(found);
      drawControls(found);
      problem.replaceChildren();
    } catch (error) {
      problem.replaceChildren(failure(error));
    }
  }
  function drawNetwork({ nodes, arcs, marginals }) {
    const lines = arcs.map(([from, to]) => {
      const [a, b] = [PLACES[from], PLACES[to]];
      const length = Math.hypot(b[0] - a[0], b[1] - a[1]);
      const [dx, dy] = [(b[0] - a[0]) / length, (b[1] - a[1]) / length];
      const out = Math.min(66 / Math.abs(dx || 1e-9), 36 / Math.abs(dy || 1e-9)); // to the edge of a box
      return svg("line", { class: "arc", x1: a[0] + out * dx, y1: a[1] + out * dy, x2: b[0] - out * dx, y2: b[1] - out * dy, "stroke-width": 2, "marker-end": "url(#arrow)" });
    });
    const boxes = nodes.map((name) => {
      const [x, y] = PLACES[name];
      const p = marginals[name].yes;
      return svg("g", {}, svg("rect", { class: "frame", x: x - 62, y: y - 28, width: 124, height: 64, rx: 10, "stroke-width": evidence[name] ? 4 : 1 }),
        svg("text", { x, y: y - 8, "text-anchor": "middle" }, evidence[name] ? `${name} (given)` : name),
        svg("rect", { class: "k0", x: x - 50, y: y + 2, width: 100 * p, height: 8 }), svg("rect", { class: "frame", x: x - 50, y: y + 2, width: 100, height: 8, "fill-opacity": 0 }),
        svg("text", { x, y: y + 24, "text-anchor": "middle" }, `yes ${percent(p)}`));
    });
    picture.replaceChildren(svg("svg", { viewBox: "0 0 460 310", role: "img", "aria-label": nodes.map((name) => `${name}: ${percent(marginals[name].yes)}`).join(", ") },
      svg("defs", {}, svg("marker", { id: "arrow", viewBox: "0 0 10 10", refX: 8, refY: 5, markerWidth: 7, markerHeight: 7, orient: "auto" }, svg("path", { d: "M0 0L10 5L0 10z", class: "k5" }))), lines, boxes));
  }
  function drawControls({ nodes, marginals }) {
    const focused = document.activeElement ? document.activeElement.id : null;
    controls.replaceChildren(...nodes.map((name) => {
      const id = `node-${name}`;
      const select = el("select", { id, onchange: () => { evidence = { ...evidence, [name]: select.value }; if (!select.value) delete evidence[name]; ask(); } },
        [["", "not observed"], ["yes", "yes"], ["no", "no"]].map(([value, title]) => el("option", { value, selected: (evidence[name] || "") === value }, title)));
      return el("div", { class: "field" }, el("label", { for: id }, name, el("span", { class: "soft" }, ` ${percent(marginals[name].yes)}`)), select);
    }));
    if (focused && document.getElementById(focused)) document.getElementById(focused).focus();
  }
  view.append(el("h2", {}, "Why is the lawn wet?"), el("p", { class: "soft" }, "Set what was observed: the probabilities of all other nodes follow. Observe Wet, then Rain: the sprinkler is explained away."),
    problem, el("div", { class: "columns" }, picture, controls));
  await ask();
}
