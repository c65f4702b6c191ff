// Boards of points: clusters by EM, and the decision surface of two classes.

import { debounced, el, failure, percent, post, svg } from "./dom.js";

const SIZE = 440;
const NUDGE = 0.02;

// A square board; points are added by a click, moved by dragging or with the arrow keys, removed with Delete.
function board(label, layers, { points, kind, changed, added }) {
  const group = svg("g", {});
  const node = svg("svg", { class: "board", viewBox: `0 0 ${SIZE} ${SIZE}`, role: "group", "aria-label": label },
    svg("rect", { class: "frame", width: SIZE, height: SIZE }), layers, group);
  let held = null;
  const where = (event) => {
    const box = node.getBoundingClientRect();
    return [(event.clientX - box.left) / box.width, 1 - (event.clientY - box.top) / box.height].map((v) => Math.min(1, Math.max(0, v)));
  };
  function draw() {
    const focused = document.activeElement && document.activeElement.dataset ? document.activeElement.dataset.place : undefined;
    group.replaceChildren(...points.map((point, i) => svg("circle", {
      class: `point k${kind(point, i)}`, cx: point[0] * SIZE, cy: (1 - point[1]) * SIZE, r: 7, tabindex: 0, "data-place": i, role: "button",
      "aria-label": `Point ${i + 1} at ${point[0].toFixed(2)}, ${point[1].toFixed(2)}; arrow keys move it, Delete removes it`,
      onpointerdown: (event) => { held = i; node.setPointerCapture(event.pointerId); event.stopPropagation(); event.preventDefault(); },
      onkeydown: (event) => key(event, i),
    })));
    if (focused !== undefined) { const again = group.querySelector(`[data-place="${focused}"]`); if (again) again.focus(); }
  }
  function key(event, i) {
    const move = { ArrowLeft: [-NUDGE, 0], ArrowRight: [NUDGE, 0], ArrowUp: [0, NUDGE], ArrowDown: [0, -NUDGE] }[event.key];
    if (move) points[i] = [Math.min(1, Math.max(0, points[i][0] + move[0])), Math.min(1, Math.max(0, points[i][1] + move[1])), ...points[i].slice(2)];
    else if (event.key === "Delete" || event.key === "Backspace") points.splice(i, 1);
    else return;
    event.preventDefault();
    draw();
    changed();
  }
  node.addEventListener("pointerdown", (event) => { points.push([...where(event), ...added()]); draw(); changed(); });
  node.addEventListener("pointermove", (event) => { if (held !== null) { points[held] = [...where(event), ...points[held].slice(2)]; draw(); changed(); } });
  node.addEventListener("pointerup", () => { held = null; });
  draw();
  return { node, draw };
}

// Repeatable pseudo-random numbers, so that the first picture is the same for everybody.
function* randoms(seed) {
  let s = seed;
  for (;;) { s = (s * 1664525 + 1013904223) % 4294967296; yield s / 4294967296; }
}

function blob(random, x, y, n, more = []) {
  return Array.from({ length: n }, () => [0, 0].map((_, i) => {
    const spread = random.next().value + random.next().value + random.next().value - 1.5;
    return Math.min(0.98, Math.max(0.02, (i ? y : x) + 0.16 * spread));
  }).concat(more));
}

export async function em(view) {
  const random = randoms(7);
  const points = [...blob(random, 0.3, 0.35, 14), ...blob(random, 0.7, 0.65, 14)];
  const components = svg("g", {});
  const problem = el("div", { "aria-live": "polite" });
  const step = el("input", { type: "range", id: "em-step", min: 0, max: 0, value: 0, oninput: () => draw() });
  const told = el("p", { id: "em-told", "aria-live": "polite" });
  const k = el("select", { id: "em-k", onchange: () => ask() }, [1, 2, 3, 4, 5, 6].map((n) => el("option", { value: n, selected: n === 2 }, n)));
  let found = null;
  const area = board("Points to cluster", [components], {
    points, added: () => [], changed: debounced(() => ask(), 120),
    kind: (_, i) => (found && found.responsibilities[i] ? found.responsibilities[i].indexOf(Math.max(...found.responsibilities[i])) : 5),
  });

  function draw() {
    if (!found) return;
    const at = found.steps[Number(step.value)];
    components.replaceChildren(...at.mean.flatMap((mean, c) => [1, 2].map((times) => svg("ellipse", {
      class: `ellipse s${c}`, cx: mean[0] * SIZE, cy: (1 - mean[1]) * SIZE, rx: times * at.deviation[c][0] * SIZE, ry: times * at.deviation[c][1] * SIZE,
    }))));
    told.textContent = `Step ${step.value} of ${found.steps.length - 1}: log-likelihood ${at.log_likelihood.toFixed(2)}; weights ${at.weights.map(percent).join(", ")}`;
    area.draw();
  }
  async function ask() {
    try {
      found = await post("/api/lab/em", { points: points.map((p) => p.slice(0, 2)), k: Number(k.value) });
      step.max = found.steps.length - 1;
      step.value = step.max;
      problem.replaceChildren();
      draw();
    } catch (error) {
      problem.replaceChildren(failure(error));
    }
  }
  let timer = 0;
  const play = () => {
    clearInterval(timer);
    step.value = 0;
    draw();
    timer = setInterval(() => {
      if (Number(step.value) >= Number(step.max) || !step.isConnected) clearInterval(timer);
      step.value = Number(step.value) + 1;
      draw();
    }, 350);
  };
  view.append(
    el("h2", {}, "Clusters by EM"),
    el("p", { class: "soft" }, "Click to add a point, drag or use the arrow keys to move one, Delete removes it. Ellipses are one and two deviations of each component."),
    el("div", { class: "buttons" }, el("label", { class: "inline", for: "em-k" }, "Components ", k), el("button", { type: "button", class: "quiet", onclick: play }, "Play the steps"),
      el("button", { type: "button", class: "quiet", onclick: () => { points.length = 0; found = null; components.replaceChildren(); area.draw(); } }, "Remove all")),
    problem, area.node, el("label", { for: "em-step" }, "Step of EM"), step, told);
  await ask();
}

export async function surface(view) {
  const random = randoms(3);
  const points = [...blob(random, 0.3, 0.4, 12, ["A"]), ...blob(random, 0.68, 0.62, 12, ["B"])];
  const cells = svg("g", { "aria-hidden": "true" });
  const problem = el("div", { "aria-live": "polite" });
  const told = el("p", { id: "surface-told", "aria-live": "polite" });
  const kind = el("select", { id: "surface-class" }, ["A", "B", "C"].map((name) => el("option", { value: name }, name)));
  const family = el("select", { id: "surface-family", onchange: () => ask() },
    [["gaussian", "Gaussian, independent"], ["joint", "Gaussian, correlated"], ["binned", "histograms"]].map(([value, title]) => el("option", { value }, title)));
  const area = board("Points of the classes", [cells], {
    points, added: () => [kind.value], changed: debounced(() => ask(), 60), kind: (point) => "ABC".indexOf(point[2]),
  });
  async function ask() {
    try {
      const found = await post("/api/lab/surface", { points, family: family.value });
      const size = SIZE / found.size;
      cells.replaceChildren(...found.probabilities.map((shares, i) => {
        const best = shares.indexOf(Math.max(...shares));
        return svg("rect", {
          class: `k${"ABC".indexOf(found.classes[best])}`, x: (i % found.size) * size, y: SIZE - size * (1 + Math.floor(i / found.size)),
          width: size, height: size, "shape-rendering": "crispEdges", "fill-opacity": (0.08 + 0.5 * Math.max(0, (shares[best] - 1 / shares.length) / (1 - 1 / shares.length))).toFixed(2),
        });
      }));
      told.textContent = `${percent(found.accuracy)} of the points lie in the region of their own class.`;
      problem.replaceChildren();
    } catch (error) {
      problem.replaceChildren(failure(error));
    }
  }
  view.append(
    el("h2", {}, "Decision surface"),
    el("p", { class: "soft" }, "The stronger the colour, the surer the class. Click to add a point of the chosen class, drag or use the arrow keys to move one."),
    el("div", { class: "buttons" }, el("label", { class: "inline", for: "surface-class" }, "New points are ", kind), el("label", { class: "inline", for: "surface-family" }, "Columns are ", family)),
    problem, area.node, told);
  await ask();
}
