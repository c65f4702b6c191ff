// Paste or drop a table, get it back with label and probabilities.

import { download, dropZone, el, failure, send } from "./dom.js";

const SHOWN = 50;

export async function score(view, { model }) {
  const result = el("div", { "aria-live": "polite" });
  const text = el("textarea", { id: "csv", placeholder: "column,column,…", spellcheck: "false" });
  async function take(name, body) {
    result.replaceChildren(el("p", {}, "Scoring…"), el("progress"));
    try {
      const response = await send(`/api/models/${encodeURIComponent(model)}/score?name=${encodeURIComponent(name)}`, body);
      const csv = await response.text();
      const rows = parse(csv, SHOWN + 1);
      const total = csv.split("\n").length - 2;
      result.replaceChildren(
        el("div", { class: "buttons" }, el("button", { type: "button", id: "save", onclick: () => download("scored.csv", csv, "text/csv") }, "Download scored.csv"),
          el("span", { class: "soft small" }, `Model ${response.headers.get("X-Model-Version")}; first ${Math.min(SHOWN, rows.length - 1)} of about ${total.toLocaleString("en")} rows`)),
        el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Scored rows" }, table(rows)));
    } catch (error) {
      result.replaceChildren(failure(error));
    }
  }
  view.append(
    el("h1", {}, "Score a file"),
    el("p", { class: "soft" }, "Every row comes back with the most probable label and the probability of each class. Columns that the model does not know are kept; columns that are not there count as missing."),
    el("div", { class: "card" },
      dropZone("Drop a table here (CSV, TSV, JSON, Parquet, Arrow, Excel), or choose one:", (file) => take(file.name, file)),
      el("p", {}), el("label", { for: "csv" }, "Or paste CSV with a header line:"), text,
      el("div", { class: "buttons" }, el("button", { type: "button", id: "score", onclick: () => take("pasted.csv", text.value) }, "Score"))),
    el("section", { class: "card", "aria-label": "Result" }, result));
}

function table(rows) {
  const [head, ...body] = rows;
  return el("table", {}, el("thead", {}, el("tr", {}, head.map((name) => el("th", { scope: "col" }, name)))),
    el("tbody", {}, body.map((cells) => el("tr", {}, cells.map((value) => el("td", {}, shortened(value)))))));
}

function shortened(value) {
  return /^0\.\d{6,}(e-\d+)?$/.test(value) ? Number(value).toFixed(4) : value;
}

// The first lines of a CSV text, by RFC 4180.
export function parse(text, most) {
  const rows = [[]];
  let cell = "";
  let quoted = false;
  for (let i = 0; i < text.length && rows.length <= most; i += 1) {
    const c = text[i];
    if (quoted) {
      if (c === '"' && text[i + 1] === '"') { cell += '"'; i += 1; } else if (c === '"') quoted = false; else cell += c;
    } else if (c === '"') quoted = true;
    else if (c === ",") { rows.at(-1).push(cell); cell = ""; } else if (c === "\n") {
      rows.at(-1).push(cell.replace(/\r$/, ""));
      cell = "";
      rows.push([]);
    } else cell += c;
  }
  if (cell) rows.at(-1).push(cell);
  return rows.filter((row) => row.length).slice(0, most);
}
