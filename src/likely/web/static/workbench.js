// From a table to a model: choose, check how it was read, learn, judge, compare, take along.

import { dropZone, el, failure, get, post, send } from "./dom.js";

const NAMES = { auto: "automatic", categorical: "categories", binned: "number, histogram", bernoulli: "yes or no, Bernoulli", gaussian: "number, Gaussian", poisson: "count, Poisson", text: "text, words", ignore: "leave out" };

export async function workbench(view, context) {
  const { examples } = await get("/api/workbench/examples");
  const problem = el("div", { "aria-live": "assertive" });
  const second = el("div");
  const third = el("div", { "aria-live": "polite" });
  const choice = el("select", { id: "example" }, examples.map((name) => el("option", { value: name }, name)));

  async function take(promise, name) {
    problem.replaceChildren();
    third.replaceChildren();
    second.replaceChildren(el("div", { class: "card" }, el("p", {}, `Reading ${name}…`), el("progress")));
    try {
      const found = await promise;
      second.replaceChildren(columnsCard(found, name, (asked) => learn(asked, found.table)));
      second.querySelector("h2").scrollIntoView({ block: "nearest" });
    } catch (error) {
      second.replaceChildren();
      problem.replaceChildren(failure(error));
    }
  }

  async function learn(asked, table) {
    problem.replaceChildren();
    try {
      const { job } = await post("/api/workbench/learn", { table, ...asked });
      const done = await finished(job, third, `Learning ${asked.target}`);
      await context.refresh(done.result.model);
      third.replaceChildren(resultCard(done.result, { ...asked, table }, context));
      third.querySelector("h2").scrollIntoView({ block: "nearest" });
    } catch (error) {
      third.replaceChildren();
      problem.replaceChildren(failure(error));
    }
  }

  view.append(
    el("h1", {}, "Learn from a table"),
    el("p", { class: "soft" }, "The table stays on this machine. Likely reads it as it is: text and numbers side by side, empty cells included."),
    el("section", { class: "card", "aria-label": "1. Choose a table" }, el("h2", {}, "1. Choose a table"),
      dropZone("Drop a table here (CSV, TSV, JSON, Parquet, Arrow, Excel), or choose one:", (file) =>
        take(send(`/api/workbench/tables?name=${encodeURIComponent(file.name)}`, file).then((r) => r.json()), file.name)),
      el("div", { class: "buttons" }, el("label", { for: "example", class: "inline" }, "Or a bundled example ", choice),
        el("button", { type: "button", class: "quiet", id: "use-example", onclick: () => take(post("/api/workbench/tables", { example: choice.value }), choice.value) }, "Use it"))),
    problem, second, third);
}

function columnsCard(found, name, learn) {
  const families = {};
  const last = found.columns.at(-1).column;
  const target = el("select", { id: "target" }, found.columns.map((each) => el("option", { value: each.column, selected: each.column === last }, each.column)));
  const plain = el("input", { type: "checkbox", id: "plain" });
  const rows = found.columns.map((each, i) => {
    const select = el("select", { id: `family-${i}`, "aria-label": `How ${each.column} is used`, onchange: () => { families[each.column] = select.value; } },
      found.families.map((family) => el("option", { value: family }, NAMES[family] || family)));
    const notes = [each.doubt, each.look_alikes].filter(Boolean).map((note) => el("div", { class: "small" }, note));
    const range = each.from === null || each.from === undefined ? `${each.different.toLocaleString("en")} values` : `${short(each.from)} to ${short(each.to)}`;
    return el("tr", {}, el("th", { scope: "row" }, each.column), el("td", {}, each.used ? each.kind : "left out", el("div", { class: "small soft" }, each.reason.split("; families=")[0]),
        el("div", { class: "small narrow-only" }, `${range}, ${each.missing.toLocaleString("en")} missing`), notes),
      el("td", { class: "wide-only" }, range), el("td", { class: "num wide-only" }, each.missing.toLocaleString("en")), el("td", {}, select));
  });
  const submit = (event) => {
    event.preventDefault();
    const asked = Object.fromEntries(Object.entries(families).filter(([column, family]) => family !== "auto" && column !== target.value));
    learn({ target: target.value, families: asked, plain: plain.checked });
  };
  return el("form", { class: "card", "aria-label": "2. How it was read", onsubmit: submit }, el("h2", {}, `2. How ${name} was read`),
    el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Columns" }, el("table", { class: "read" }, el("thead", {}, el("tr", {}, ["Column", "Read as", "Range", "Missing", "Use as"].map((head, i) => el("th", { scope: "col", class: [null, null, "wide-only", "num wide-only", null][i] }, head)))), el("tbody", {}, rows))),
    el("div", { class: "buttons" }, el("label", { class: "inline", for: "target" }, "Predict ", target),
      el("label", { class: "inline", for: "plain" }, plain, "textbook model (counts only)"),
      el("button", { type: "submit", id: "learn" }, "Learn")));
}

async function finished(job, place, title) {
  // The heading is read out once; what changes several times a second is not.
  const stage = el("p", { id: "job-stage", "aria-live": "off" });
  const detail = el("p", { class: "soft", id: "job-detail", "aria-live": "off" });
  const bar = el("progress", { "aria-label": title, id: "job-bar" });
  place.replaceChildren(el("div", { class: "card" }, el("h2", {}, title), stage, bar, detail));
  for (;;) {
    const found = await get(`/api/workbench/jobs/${job}`);
    stage.textContent = `${found.stage}… ${found.seconds.toFixed(0)} s`;
    detail.textContent = described(found.progress);
    if (found.progress?.total) {
      bar.max = found.progress.total;
      bar.value = found.progress.done;
    } else bar.removeAttribute("value");
    if (found.state === "failed") throw Object.assign(new Error(found.error.message), { details: found.error.details });
    if (found.state === "done") return found;
    await new Promise((resolve) => { setTimeout(resolve, 300); });
  }
}

// What is being done, how much of it is done, and how long the rest may take.
function described(told) {
  if (!told) return "";
  const done = told.done.toLocaleString("en");
  const count = told.total ? `${done} of ${told.total.toLocaleString("en")}` : told.done ? `${done} ${told.unit}` : "";
  const left = told.seconds_left >= 1 ? `about ${Math.round(told.seconds_left)} s left` : "";
  return [told.detail ? `${told.doing}: ${told.detail}` : told.doing, count, left].filter(Boolean).join(", ");
}

function resultCard(result, asked, context) {
  const learned = result.learned;
  const judged = learned.evaluation || learned.cross_validation || learned;
  const names = { accuracy: "accuracy", log_loss: "log loss", brier: "Brier score", calibration_error: "calibration error" };
  const figures = Object.entries(names).filter(([key]) => typeof judged[key] === "number").map(([key, title]) => el("div", {}, el("strong", {}, judged[key].toFixed(3)), title));
  const comparison = el("div", { "aria-live": "polite" });
  const address = `/api/workbench/models/${encodeURIComponent(result.model)}`;
  async function compare() {
    try {
      const { job } = await post("/api/workbench/compare", { table: asked.table, target: asked.target });
      const done = await finished(job, comparison, "Comparing with baselines");
      comparison.replaceChildren(comparisonTable(done.result));
    } catch (error) {
      comparison.replaceChildren(failure(error));
    }
  }
  return el("section", { class: "card", "aria-label": "3. The model", id: "result" }, el("h2", {}, `3. A model of ${learned.target}`),
    el("p", { class: "soft" }, `Learned from ${learned.rows.toLocaleString("en")} rows; judged by 5-fold cross-validation.`),
    el("div", { class: "figures" }, figures),
    el("div", { class: "buttons" },
      el("button", { type: "button", id: "try", onclick: () => context.open("predict") }, "Try it"),
      el("a", { class: "button quiet", id: "download", href: `${address}/download`, download: `${learned.target}.likely` }, "Download the model"),
      result.report ? el("a", { class: "button quiet", id: "open-report", href: `${address}/report`, target: "_blank", rel: "noopener" }, "Open the report") : null,
      el("button", { type: "button", class: "quiet", id: "compare", onclick: compare }, "Compare with baselines")),
    comparison,
    result.report ? el("iframe", { src: `${address}/report`, title: "Report of the model", id: "report", sandbox: "allow-scripts" }) : columnList(learned));
}

function columnList(learned) {
  const rows = learned.columns.map((each) => el("tr", {}, el("th", { scope: "row" }, each.column), el("td", {}, each.family), el("td", {}, each.chosen || "")));
  return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Columns of the model" }, el("table", {}, el("thead", {}, el("tr", {}, ["Column", "Family", "Chosen"].map((head) => el("th", { scope: "col" }, head)))), el("tbody", {}, rows)));
}

function comparisonTable(found) {
  const ok = found.results.filter((each) => !each.failed).sort((a, b) => a.log_loss - b.log_loss);
  const rows = ok.map((each) => el("tr", {}, el("th", { scope: "row" }, each.title || each.name), ["accuracy", "log_loss", "brier"].map((key) => el("td", { class: "num" }, each[key].toFixed(3)))));
  return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Comparison" }, el("table", {}, el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Model"), ["Accuracy", "Log loss", "Brier"].map((head) => el("th", { scope: "col", class: "num" }, head)))), el("tbody", {}, rows)));
}

const short = (x) => Number(x.toPrecision(6)).toLocaleString("en");
