// Elements, requests and small drawings: everything that a user or a table wrote is set as text, never as markup.

const SVG = "http://www.w3.org/2000/svg";

function build(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "style") Object.assign(node.style, value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

// Children appended to a node; what is null or false is left out.
export const fill = (node, ...children) => build(node, {}, children);

export const el = (tag, attributes = {}, ...children) => build(document.createElement(tag), attributes, children);
export const svg = (tag, attributes = {}, ...children) => build(document.createElementNS(SVG, tag), attributes, children);

export class Refused extends Error {
  constructor(status, error) {
    super(error.message);
    this.status = status;
    this.details = error.details || {};
  }
}

async function answered(response) {
  if (response.ok) return response;
  let error = { message: `The server answered ${response.status}.` };
  try { error = (await response.json()).error || error; } catch { /* no JSON: the status says enough */ }
  throw new Refused(response.status, error);
}

export async function get(path) {
  return (await answered(await fetch(path))).json();
}

export async function post(path, document, signal) {
  const headers = { "Content-Type": "application/json" };
  return (await answered(await fetch(path, { method: "POST", headers, body: JSON.stringify(document), signal }))).json();
}

export async function send(path, body) {
  return answered(await fetch(path, { method: "POST", headers: { "Content-Type": "application/octet-stream" }, body }));
}

export const percent = (p) => (p >= 0.9995 && p < 1 ? ">99.9 %" : p > 0 && p < 0.0005 ? "<0.1 %" : `${(100 * p).toFixed(1)} %`);
export const signed = (x) => (x === null ? "−∞" : (x < 0 ? "−" : "+") + Math.abs(x).toFixed(2));

export function message(text, bad = false) {
  return el("p", { class: bad ? "message bad" : "message", role: bad ? "alert" : "status" }, text);
}

export function failure(error) {
  const remedy = error.details && error.details.remedy;
  const text = remedy && !error.message.includes(remedy) ? `${error.message}: ${remedy}` : error.message;
  return message(text, true);
}

export function debounced(work, milliseconds) {
  let timer = 0;
  return (...args) => { clearTimeout(timer); timer = setTimeout(() => work(...args), milliseconds); };
}

// Bars of probabilities; called again with other numbers, the same bars move.
export function bars(names, label) {
  const rows = names.map((name, i) => {
    const fill = el("div", { class: `fill b${i % 6}` });
    const value = el("span", { class: "value" });
    const row = el("div", { class: "bar-row" }, el("span", { class: "name" }, String(name)), el("div", { class: "track" }, fill), value);
    return { row, fill, value };
  });
  const node = el("div", { class: "bars", role: "group", "aria-label": label }, rows.map((each) => each.row));
  const update = (shares) => {
    const best = shares.indexOf(Math.max(...shares));
    rows.forEach(({ row, fill, value }, i) => {
      fill.style.width = `${100 * shares[i]}%`;
      value.textContent = percent(shares[i]);
      row.classList.toggle("best", i === best);
    });
  };
  return { node, update };
}

// A place to drop a file on or to choose one; `taken` is called with the file.
export function dropZone(label, taken) {
  const input = el("input", { type: "file", id: `file-${Math.random().toString(36).slice(2)}`, onchange: () => input.files[0] && taken(input.files[0]) });
  const zone = el("div", { class: "drop" }, el("label", { for: input.id }, label, " "), input);
  const over = (on) => (event) => { event.preventDefault(); zone.classList.toggle("over", on); };
  zone.addEventListener("dragover", over(true));
  zone.addEventListener("dragleave", over(false));
  zone.addEventListener("drop", (event) => { over(false)(event); if (event.dataTransfer.files[0]) taken(event.dataTransfer.files[0]); });
  return zone;
}

export function download(name, data, kind) {
  const address = URL.createObjectURL(new Blob([data], { type: kind }));
  const link = el("a", { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
