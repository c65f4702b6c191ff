// A form made from the columns of the model; posterior and evidence follow every change.

import { bars, debounced, el, failure, fill, get, message, post, signed } from "./dom.js";

const MANY = 200; // values of a category, beyond which they are typed instead of chosen
const SHOWN = 12; // weights of evidence

export async function predict(view, { model }) {
  const about = await get(`/api/models/${encodeURIComponent(model)}`);
  const columns = about.columns.filter((column) => !column.derived_from);
  const derived = [...new Set(about.columns.filter((column) => column.derived_from).map((column) => column.derived_from))];
  for (const name of derived) if (!columns.some((column) => column.name === name)) columns.push({ name, kind: "text", short: true });
  const row = {};
  const keys = Object.keys(about.class_prior);
  const ordered = about.classes.map((label) => (typeof label === "string" ? label : JSON.stringify(label)));
  const posterior = bars(ordered, "Probability of each class");
  const evidence = el("div", { class: "evidence" });
  const problem = el("div", { "aria-live": "polite" });
  const verdict = el("p", { id: "verdict", "aria-live": "polite" });
  const chosen = el("select", { id: "evidence-class", onchange: () => draw() },
    el("option", { value: "" }, "the most probable class"), ordered.map((name) => el("option", { value: name }, name)));
  let last = null;
  let sent = 0;
  let all = false;
  const more = el("button", { type: "button", class: "quiet small", "aria-expanded": "false", onclick: () => {
    all = !all;
    more.setAttribute("aria-expanded", String(all));
    draw();
  } }, "");

  function draw() {
    if (!last) return;
    const left = drawEvidence(evidence, last, ordered, chosen.value, all ? 200 : SHOWN);
    more.hidden = !all && left === 0;
    more.textContent = all ? "Show the strongest only" : `Show ${left} weaker ones`;
  }

  async function ask() {
    const number = ++sent;
    const cells = Object.fromEntries(Object.entries(row).filter(([, value]) => value !== null));
    if (!Object.keys(cells).length) cells[columns[0].name] = null;
    try {
      const found = await post(`/api/models/${encodeURIComponent(model)}/explain`, { rows: [cells] });
      if (number !== sent) return;
      last = found.explanations[0];
      posterior.update(ordered.map((name) => last.probabilities[name]));
      verdict.replaceChildren("Most probable ", el("b", {}, about.target), ": ", el("b", { id: "label" }, String(last.label)),
        el("span", { class: "soft small" }, ` (model ${found.model_version})`));
      problem.replaceChildren();
      draw();
    } catch (error) {
      if (number === sent) problem.replaceChildren(failure(error));
    }
  }
  const changed = debounced(ask, 40);
  const fields = columns.map((column, i) => field(column, i, row, changed));
  const reset = el("button", { type: "button", class: "quiet", onclick: () => { fields.forEach((each) => each.clear()); ask(); } }, "Clear all");

  fill(view,
    el("h1", {}, "What is ", about.target, "?"),
    el("p", { class: "soft" }, `${about.rows_counted.toLocaleString("en")} rows counted, ${keys.length} classes, ${about.columns.length} columns. Empty fields are missing cells.`),
    about.stale ? message("Rows were learned since the weights were fitted: recalibrate the model for the best probabilities.") : null,
    el("div", { class: "columns" },
      el("form", { class: "card", "aria-label": "The row to predict", onsubmit: (event) => { event.preventDefault(); ask(); } },
        el("h2", {}, "The row"), fields.map((each) => each.node), el("div", { class: "buttons" }, reset)),
      el("div", { class: "sticky" },
        el("section", { class: "card posterior", "aria-label": "Posterior" }, el("h2", {}, "Posterior"), verdict, posterior.node, problem),
        el("section", { class: "card", "aria-label": "Evidence" }, el("h2", {}, "Evidence"),
          el("p", { class: "small" }, el("label", { for: "evidence-class", class: "inline" }, "Weights of evidence for ", chosen)),
          el("p", { class: "small soft" }, el("span", { class: "key pro" }), "for ", el("span", { class: "key contra" }), "against, in nats: a weight of 0.7 doubles the odds, and they add up."),
          evidence, more))));
  await ask();
}

// Draws the strongest weights; returns how many are left out.
function drawEvidence(node, found, classes, chosen, most) {
  const at = classes.indexOf(chosen) >= 0 ? classes.indexOf(chosen) : found.classes.findIndex((label) => label === found.label);
  const lines = found.evidence.map((entry) => ({
    what: entry.columns.join(" with "), value: entry.values, weight: entry.weight[at], flags: entry.flags, words: entry.words || [],
  }));
  const prior = Math.log(Math.max(1e-300, Math.exp(found.log_prior[at]))) - Math.log(Math.max(1e-300, 1 - Math.exp(found.log_prior[at])));
  lines.sort((a, b) => Math.abs(b.weight ?? 99) - Math.abs(a.weight ?? 99));
  const all = [{ what: "Prior", value: [], weight: prior, flags: [], words: [] }, ...lines];
  const largest = Math.max(0.5, ...all.map((line) => Math.abs(line.weight ?? 0)));
  const cells = all.slice(0, most).flatMap((line) => {
    const width = 50 * Math.min(1, Math.abs(line.weight ?? -largest) / largest);
    const bar = el("div", { class: (line.weight ?? -1) < 0 ? "contra" : "pro" });
    bar.style.width = `${width}%`;
    bar.style.left = (line.weight ?? -1) < 0 ? `${50 - width}%` : "50%";
    const shown = line.value.filter((value) => value !== "" && value !== null).map(cell).join(", ");
    return [
      el("div", { class: "what" }, line.what, shown ? el("span", { class: "soft" }, ` = ${shown}`) : null, line.flags.map((flag) => el("span", { class: "flag" }, flag))),
      el("div", { class: "axis", "aria-hidden": "true" }, bar),
      el("div", { class: "value" }, signed(line.weight)),
    ];
  });
  node.replaceChildren(...cells);
  return Math.max(0, all.length - most);
}

function cell(value) {
  if (typeof value === "number" && !Number.isInteger(value)) return Number(value.toPrecision(5)).toString();
  const text = String(value);
  return text.length > 60 ? `${text.slice(0, 60)}…` : text;
}

// One field of the form: writes its value into `row` and calls `changed`.
function field(column, i, row, changed) {
  const id = `field-${i}`;
  const put = (value) => { row[column.name] = value; changed(); };
  row[column.name] = null;
  if (column.kind === "number") return numberField(column, id, put, row);
  if (column.kind === "text") return textField(column, id, put, row);
  const values = column.values;
  const first = Math.max(0, values.indexOf(column.typical));
  row[column.name] = values.length ? values[first] : null;
  const input = values.length > MANY
    ? el("input", { type: "text", id, list: `${id}-list`, oninput: () => put(input.value === "" ? null : input.value) })
    : el("select", { id, onchange: () => put(input.value === "" ? null : values[Number(input.value)]) },
      el("option", { value: "" }, "(missing)"), values.map((value, place) => el("option", { value: place }, String(value))));
  input.value = values.length > MANY ? String(values[first]) : values.length ? String(first) : "";
  const list = values.length > MANY ? el("datalist", { id: `${id}-list` }, values.map((value) => el("option", { value: String(value) }))) : null;
  return { node: el("div", { class: "field" }, el("label", { for: id }, column.name), el("div", {}, input, list)), clear: () => { input.value = ""; row[column.name] = null; } };
}

function numberField(column, id, put, row) {
  const bounded = Number.isFinite(column.low) && Number.isFinite(column.high) && column.high > column.low;
  const whole = /whole/.test(column.reason || "");
  const step = whole ? 1 : bounded ? Number(((column.high - column.low) / 200).toPrecision(1)) : "any";
  const start = Number.isFinite(column.middle) ? (whole ? Math.round(column.middle) : Number(column.middle.toPrecision(4))) : null;
  row[column.name] = start;
  const input = el("input", { type: "number", id, step: "any", value: start, placeholder: "missing", oninput: () => {
    const value = input.value === "" ? null : Number(input.value);
    if (slider && value !== null) slider.value = value;
    put(value);
  } });
  const slider = bounded ? el("input", { type: "range", min: column.low, max: column.high, step, value: start, "aria-label": `${column.name}, slider`, oninput: () => {
    input.value = slider.value;
    put(Number(slider.value));
  } }) : null;
  return { node: el("div", { class: "field" }, el("label", { for: id }, column.name), el("div", { class: slider ? "number" : "" }, slider, input)), clear: () => { input.value = ""; row[column.name] = null; } };
}

function textField(column, id, put, row) {
  const input = el(column.short ? "input" : "textarea", { id, type: column.short ? "text" : null, oninput: () => put(input.value === "" ? null : input.value) });
  return { node: el("div", { class: "field wide" }, el("label", { for: id }, column.name), input), clear: () => { input.value = ""; row[column.name] = null; } };
}
