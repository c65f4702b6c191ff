"use strict";
(() => {
  const data = JSON.parse(document.getElementById("report-data").textContent);
  const NS = "http://www.w3.org/2000/svg";
  const byId = (id) => document.getElementById(id);
  const make = (name, attributes, text) => {
    const element = document.createElementNS(NS, name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    if (text !== undefined) element.textContent = text;
    return element;
  };
  const pen = document.createElement("canvas").getContext("2d");
  const wide = (text, size) => {
    pen.font = `${size}px ${getComputedStyle(document.body).fontFamily}`;
    return pen.measureText(text).width;
  };
  const cut = (text, most) => (text.length <= most ? text : text.slice(0, most - 1) + "…");

  const ticks = (low, high) => {
    const step = 10 ** Math.floor(Math.log10((high - low) / 5));
    const size = [1, 2, 5, 10].map((m) => m * step).find((s) => (high - low) / s <= 8);
    const found = [];
    for (let i = Math.ceil(low / size); i * size <= high; i += 1) found.push(+(i * size).toPrecision(10));
    return found;
  };

  const ORDERS = {
    evidence: (a, b) => b.evidence - a.evidence,
    name: (a, b) => a.name.localeCompare(b.name),
    positive: (a, b) => b.high - a.high,
    negative: (a, b) => a.low - b.low,
    model: (a, b) => a.place - b.place,
  };

  function nomogram() {
    const holder = byId("nomogram-picture");
    if (!holder) return;
    const c = +byId("nomogram-class").value;
    const points = byId("nomogram-scale").value === "points";
    const row = data.predictions[+byId("nomogram-row").value];
    const lines = data.columns.map((column, place) => {
      const weights = column.levels.map((level) => level.weights[c]);
      const mark = row?.marks[column.name]?.[c] ?? null;
      return { ...column, place, weights, mark, low: Math.min(...weights), high: Math.max(...weights) };
    });
    lines.sort(ORDERS[byId("nomogram-order").value]);
    const kept = lines.slice(0, +byId("nomogram-top").value);
    const range = Math.max(...kept.map((l) => l.high - l.low), 1e-9);
    const scaled = (line, w) => (points ? (100 * (w - line.low)) / range : w);
    const all = kept.flatMap((l) => [...l.weights, ...(l.mark === null ? [] : [l.mark])].map((w) => scaled(l, w)));
    const low = Math.min(0, ...all), high = Math.max(points ? 100 : 0.5, ...all);
    const left = 26 + Math.max(...[...kept.map((l) => cut(l.name, 24)), "probability"].map((name) => wide(name, 13)));
    const width = 900, right = width - 40, head = 34, line = 42, bottom = head + line * kept.length;
    const whole = data.classes.length === 2 && !points;
    const height = bottom + (whole ? 64 : 12);
    const x = (v) => left + ((v - low) / (high - low)) * (right - left);
    const sum = row ? total(row, c) : null;
    const label = `Nomogram for ${data.classes[c]}: ${kept.map((l) => `${l.name} from ${l.low.toFixed(2)} to ${l.high.toFixed(2)}`).join("; ")}`;
    const svg = make("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": label });
    svg.append(make("text", { class: "lk-faint", x: left - 10, y: 18, "font-size": 12, "text-anchor": "end" }, points ? "points" : "log-odds"));
    for (const tick of ticks(low, high)) {
      svg.append(make("path", { class: tick === 0 ? "lk-zero" : "lk-grid", d: `M${x(tick)} ${head - 8}V${bottom}` }));
      svg.append(make("text", { class: "lk-faint", x: x(tick), y: 18, "font-size": 12, "text-anchor": "middle" }, String(tick)));
    }
    kept.forEach((each, i) => drawScale(svg, each, scaled, x, head + line * i + line / 2, left, right));
    if (whole) drawSum(svg, c, lines, sum, bottom + 26, left, right);
    holder.replaceChildren(svg);
    byId("nomogram-sum").textContent = sum === null ? sentence(c) : `Row ${row.row}: P(${data.classes[c]}) = ${(100 * sum).toFixed(1)} %, all columns and interactions together.`;
  }

  const sentence = (c) => `Before any column is looked at, P(${data.classes[c]}) = ${(100 * data.prior[c]).toFixed(1)} %.`;
  const total = (row, c) => row.probabilities[c];

  function drawScale(svg, each, scaled, x, y, left, right) {
    svg.append(make("text", { class: "lk-ink", x: left - 10, y: y + 4.5, "font-size": 13, "text-anchor": "end" }, cut(each.name, 24)));
    svg.append(make("path", { class: "lk-axis", "stroke-width": 1.5, d: `M${x(scaled(each, each.low))} ${y}H${x(scaled(each, each.high))}` }));
    const order = each.levels.map((level, i) => ({ label: level.label, at: scaled(each, each.weights[i]), weight: each.weights[i] }));
    order.sort((a, b) => a.at - b.at);
    const taken = { "-9": [], 17: [] };
    const sequence = [...new Set([0, order.length - 1, ...order.keys()])];
    for (const point of order) {
      const circle = make("circle", { class: "lk-p0", cx: x(point.at), cy: y, r: 4, "stroke-width": 1 });
      circle.append(make("title", {}, `${each.name} = ${point.label}: ${point.weight >= 0 ? "+" : ""}${point.weight.toFixed(3)}`));
      svg.append(circle);
    }
    sequence.forEach((i, n) => {
      const text = cut(order[i].label, 18), half = wide(text, 11.5) / 2 + 3;
      const at = Math.min(Math.max(x(order[i].at), left + half - 20), right + 36 - half);
      for (const place of n % 2 ? [17, -9] : [-9, 17]) {
        if (taken[place].every(([a, b]) => at + half < a || at - half > b)) {
          taken[place].push([at - half, at + half]);
          svg.append(make("text", { class: "lk-faint", x: at, y: y + place, "font-size": 11.5, "text-anchor": "middle" }, text));
          break;
        }
      }
    });
    if (each.mark !== null) {
      const mark = make("path", { class: "lk-p1", "stroke-width": 1, d: `M${x(scaled(each, each.mark))} ${y - 8}l8 8l-8 8l-8 -8Z` });
      mark.append(make("title", {}, `this row: ${each.mark.toFixed(3)}`));
      svg.append(mark);
    }
  }

  // The sum of all weights and the prior log-odds, as a probability.
  function drawSum(svg, c, lines, probability, y, left, right) {
    const base = (data.bias[c] ?? -30) - (data.bias[1 - c] ?? -30);
    const ends = [base + lines.reduce((s, l) => s + l.low, 0), base + lines.reduce((s, l) => s + l.high, 0)];
    const reach = Math.min(9, Math.max(2, ...ends.map(Math.abs)));
    const x = (odds) => left + ((Math.min(Math.max(odds, -reach), reach) + reach) / (2 * reach)) * (right - left);
    svg.append(make("text", { class: "lk-ink", x: left - 10, y: y + 4.5, "font-size": 13, "font-weight": 600, "text-anchor": "end" }, "probability"));
    svg.append(make("path", { class: "lk-axis", "stroke-width": 1.5, d: `M${left} ${y}H${right}` }));
    let last = -99;
    for (const p of [0.001, 0.01, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.99, 0.999]) {
      const odds = Math.log(p / (1 - p));
      if (Math.abs(odds) > reach || x(odds) - last < 44) continue;
      last = x(odds);
      svg.append(make("path", { class: "lk-axis", d: `M${last} ${y - 4}v8` }));
      svg.append(make("text", { class: "lk-faint", x: last, y: y + 21, "font-size": 12, "text-anchor": "middle" }, `${+(100 * p).toFixed(1)} %`));
    }
    const start = make("circle", { class: "lk-p0", cx: x(base), cy: y, r: 5, "stroke-width": 1 });
    start.append(make("title", {}, "before any column"));
    svg.append(start);
    if (probability === null) return;
    const at = x(Math.log(probability / (1 - probability)));
    const mark = make("path", { class: "lk-p1 lk-sum", "stroke-width": 1, d: `M${at} ${y - 8}l8 8l-8 8l-8 -8Z` });
    mark.append(make("title", {}, `this row: ${(100 * probability).toFixed(1)} %`));
    svg.append(mark);
  }

  function chooser(id, prefix) {
    const select = byId(id);
    if (!select) return;
    const show = () => {
      for (const option of select.options) byId(prefix + option.value).classList.toggle("hidden", option.value !== select.value);
    };
    select.addEventListener("change", show);
    show();
  }

  function thresholds() {
    const t = data.thresholds;
    const [alarm, miss] = [byId("cost-alarm"), byId("cost-miss")];
    if (!t || !alarm) return;
    const update = () => {
      const [a, m] = [Math.max(0, +alarm.value || 0), Math.max(0, +miss.value || 0)];
      const whole = t.positives + t.negatives;
      const cost = (hits, alarms) => (alarms * a + (t.positives - hits) * m) / whole;
      for (const cell of document.querySelectorAll("[data-hits]")) {
        cell.textContent = cost(+cell.dataset.hits, +cell.dataset.alarms).toFixed(4);
      }
      let best = { at: 1, cost: cost(0, 0) };
      t.curve.threshold.forEach((at, i) => {
        const here = cost(t.curve.true_positives[i], t.curve.false_positives[i]);
        if (at !== null && here < best.cost) best = { at, cost: here };
      });
      byId("cost-best").textContent = `Lowest mean cost on these rows: ${best.cost.toFixed(4)} with the threshold ${best.at.toFixed(3)}.`;
    };
    for (const input of [alarm, miss]) input.addEventListener("input", update);
  }

  for (const id of ["class", "scale", "order", "top", "row"]) byId(`nomogram-${id}`)?.addEventListener("change", nomogram);
  for (const controls of document.querySelectorAll(".controls")) controls.classList.remove("hidden");
  nomogram();
  chooser("prediction-choice", "prediction-");
  thresholds();
  addEventListener("beforeprint", () => {
    for (const details of document.querySelectorAll("details")) details.open = true;
  });
})();
