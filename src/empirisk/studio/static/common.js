// What both rooms share: asking the server, making elements, numbers as people read them.

/** The answer to a question, a file as a blob, or an Error whose message is the server's sentence. */
export async function ask(path, body, options = {}) {
  const init = body === undefined ? options : {method: "POST", headers: {"Content-Type": "application/json"}, body: JSON.stringify(body), ...options};
  let reply;
  try { reply = await fetch(path, init); } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("The studio does not answer; is it still running in the terminal?");
  }
  const answer = reply.headers.get("content-type").includes("json") ? await reply.json() : await reply.blob();
  if (!reply.ok || answer.error) throw new Error(answer.error);
  return answer;
}

/** Send a file. One that is too large, or no table, is not even begun: a browser that is refused in the middle of it hears no reason. */
export async function send(path, file) {
  await ask("/upload/fits", {name: file.name, size: file.size});
  return ask(`${path}?name=${encodeURIComponent(file.name)}`, undefined, {method: "POST", body: file});
}

/** An element with attributes and children; texts are always texts, never markup. */
export function make(tag, attributes = {}, ...children) {
  const element = tag.startsWith("svg:") ? document.createElementNS("http://www.w3.org/2000/svg", tag.slice(4)) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter(child => child !== null && child !== undefined));
  return element;
}

export const byId = name => document.getElementById(name);

/** A number with so many digits that count. */
export function digits(value, count = 3) {
  if (value === null || value === undefined || Number.isNaN(value)) return "-";
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-4 || size >= 1e7)) return value.toExponential(count - 1).replace("e+", "e");
  return Number(value.toPrecision(count)).toLocaleString("en", {maximumFractionDigits: 12});
}

export const percent = value => `${(100 * value).toFixed(1)}\u00a0%`;

let timer = 0;
/** A short message at the lower edge. */
export function toast(text) {
  const place = byId("toast");
  place.textContent = text;
  place.hidden = false;
  clearTimeout(timer);
  timer = setTimeout(() => { place.hidden = true; }, 2600);
}

export async function copy(text, said) {
  try { await navigator.clipboard.writeText(text); toast(said); } catch { toast("The browser does not let pages copy; mark the text instead."); }
}

/** A group of buttons of which one is chosen; arrow keys move, as in any group of radio buttons. */
export function choices(place, entries, chosen, choose) {
  const select = (button, name) => { for (const one of place.children) mark(one, one === button); choose(name); };
  const mark = (one, on) => { one.setAttribute("aria-checked", on); one.tabIndex = on ? 0 : -1; };
  place.replaceChildren(...entries.map(([name, content, label]) => {
    const button = make("button", {type: "button", role: "radio", "data-name": name, "aria-label": label}, content);
    mark(button, name === chosen);
    button.addEventListener("click", () => select(button, name));
    button.addEventListener("keydown", event => {
      const step = {ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1}[event.key];
      if (!step) return;
      event.preventDefault();
      const all = [...place.children], next = all[(all.indexOf(button) + step + all.length) % all.length];
      next.focus();
      next.click();
    });
    return button;
  }));
}

const DAY = 864e8;  // microseconds: moments are counted in them
/** A moment as people write it, to the day or to the minute. */
export const moment = (at, minutes = false) => new Date(at / 1000).toISOString().slice(0, minutes ? 16 : 10).replace("T", " ");
/** Beginnings of years or months, or days, or hours. */
function dateTicks(low, high) {
  const span = high - low, step = [...[1, 2, 3, 6].map(hours => hours * DAY / 24), DAY / 2, DAY, 2 * DAY, 7 * DAY, 14 * DAY].find(one => span / one <= 4), months = [1, 3, 6, 12, 24, 60, 120, 240].find(one => span / one / DAY / 30.5 <= 4) ?? 1200;
  if (step) return Array.from({length: Math.floor(high / step) - Math.ceil(low / step) + 1}, (_, k) => (Math.ceil(low / step) + k) * step);
  const first = new Date(low / 1000), begin = first.getUTCFullYear() * 12 + first.getUTCMonth() + 1, ticks = [];
  for (let month = Math.ceil(begin / months) * months; ; month += months) { const at = 1000 * Date.UTC(Math.floor(month / 12), month % 12); if (at > high) return ticks; ticks.push(at); }
}
const axisTicks = (low, high, log) => {
  if (log) return Array.from({length: Math.floor(high) - Math.ceil(low) + 1}, (_, k) => Math.ceil(low) + k);
  const step = 10 ** Math.floor(Math.log10((high - low) / 3 || 1)), nice = [1, 2, 5, 10].map(k => k * step).find(k => (high - low) / k <= 5);
  const ticks = [];
  for (let at = Math.ceil(low / nice) * nice; at <= high + 1e-9; at += nice) ticks.push(at);
  return ticks;
};

const drawn = new WeakMap();  // what each chart shows, for when its width changes
const watcher = new ResizeObserver(entries => { for (const {target} of entries) if (drawn.has(target)) drawChart(target, drawn.get(target)); });

/** A chart that is drawn again whenever its width changes; see `drawChart`. */
export function chart(svg, content) {
  if (!drawn.has(svg)) watcher.observe(svg);
  drawn.set(svg, content);
  return drawChart(svg, content);
}

export function clearChart(svg) {
  watcher.unobserve(svg);
  drawn.delete(svg);
  svg.replaceChildren();
}

/** Series are {x, y, colour, dash, name}; x holds powers of ten where `log` is set. Names become a legend. */
function drawChart(svg, {series, dots = [], at = null, log = false, dates = false, label = "", yLabel = "", axes = true, height = 176, top = null, zero = true}) {
  const width = Math.max(svg.clientWidth, 120), left = axes ? 40 : 4, bottom = axes ? 34 : 4, right = 8, up = axes ? 16 : 4;
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  const xs = series.flatMap(one => one.x), ys = series.flatMap(one => one.y).filter(Number.isFinite);
  let [xLow, xHigh, yLow, yHigh] = [Math.min(...xs), Math.max(...xs), zero && axes ? Math.min(0, ...ys) : Math.min(...ys), top ?? Math.max(...ys)];
  if (!(xHigh > xLow)) xHigh = xLow + 1;
  if (!(yHigh > yLow)) { const room = zero && axes ? 1 : .1 * Math.abs(yLow) || .5; [yLow, yHigh] = [zero && axes ? yLow : yLow - room, yLow + room]; }
  const toX = x => left + (x - xLow) / (xHigh - xLow) * (width - left - right);
  const toY = y => height - bottom - (Math.min(y, yHigh) - yLow) / (yHigh - yLow) * (height - bottom - up);
  const parts = [];
  if (axes) {
    const name = dates ? tick => moment(tick, xHigh - xLow < 4 * DAY).slice(xHigh - xLow < 4 * DAY ? 5 : 0) : log ? powerOfTen : digits;
    for (const tick of dates ? dateTicks(xLow, xHigh) : axisTicks(xLow, xHigh, log)) {
      parts.push(make("svg:text", {x: toX(tick), y: height - bottom + 15, "text-anchor": "middle"}, name(tick)));
      parts.push(make("svg:line", {class: "axis", x1: toX(tick), x2: toX(tick), y1: up, y2: height - bottom}));
    }
    for (const tick of axisTicks(yLow, yHigh, false)) {
      parts.push(make("svg:text", {x: left - 6, y: toY(tick) + 4, "text-anchor": "end"}, digits(tick)));
      parts.push(make("svg:line", {class: "axis", x1: left, x2: width - right, y1: toY(tick), y2: toY(tick)}));
    }
    const names = series.filter(one => one.name).flatMap(one => [make("svg:tspan", {style: `fill:${asInk(one.colour)}`, "font-weight": 600}, `${one.dash ? "╌" : "━"} ${one.name}`), "   "]);
    parts.push(make("svg:text", {x: width - right, y: height - 3, "text-anchor": "end"}, label));
    if (names.length) parts.push(make("svg:text", {x: left, y: height - 3, "xml:space": "preserve"}, names));
    if (yLabel) parts.push(make("svg:text", {x: left, y: up - 5}, yLabel));
  }
  for (const {x, y, colour, dash} of series) {
    let text = "", pen = "M";
    x.forEach((one, k) => { if (Number.isFinite(y[k]) && y[k] <= yHigh) { text += `${pen}${toX(one).toFixed(1)} ${toY(y[k]).toFixed(1)}`; pen = "L"; } else pen = "M"; });
    parts.push(make("svg:path", {d: text, stroke: colour, "stroke-dasharray": dash}));
  }
  for (const dot of dots) parts.push(make("svg:circle", {cx: toX(Math.min(Math.max(dot.x, xLow), xHigh)), cy: toY(dot.y), r: dot.r ?? 3.2, fill: dot.colour, "fill-opacity": dot.opacity ?? .75}));
  if (at !== null) parts.push(make("svg:line", {x1: toX(at), x2: toX(at), y1: up, y2: height - bottom, stroke: "var(--scale)", "stroke-width": 2.5}));
  svg.replaceChildren(...parts);
  return {xOf: pixel => xLow + (pixel - left) / (width - left - right) * (xHigh - xLow)};
}

/** How a cell of a table is set: long words and dates get room. */
export const cellKind = text => text.length > 24 ? "long" : /^\d{4}-\d\d-\d\d/.test(text) ? "date" : "";

/** A colour of a line, dark enough (or light, on dark paper) to be read as text. */
export const asInk = colour => `color-mix(in srgb, ${colour} 60%, var(--ink))`;

/** An interval as a bar with its value as a line, on a track that reaches from `low` to `high`. */
export function interval(value, [from, to], [low, high], words) {
  const share = one => 100 * Math.min(Math.max((one - low) / (high - low || 1), 0), 1);
  return make("span", {class: "track", role: "img", "aria-label": words, title: words}, make("i", {style: `left:${share(from)}%;width:${share(to) - share(from)}%`}), make("b", {style: `left:${share(value)}%`}));
}

const SCORES = {roc_auc: "area under the ROC", roc_auc_ovr: "area under the ROC", f1: "F1", f1_macro: "F1", r2: "R²", rmse: "root mean squared error", mae: "mean absolute error"};
/** The name of a score in words. */
export const scoreName = name => SCORES[name] ?? name.replace("neg_", "negative ").replaceAll("_", " ");

const RAISED = {"-": "⁻", 0: "⁰", 1: "¹", 2: "²", 3: "³", 4: "⁴", 5: "⁵", 6: "⁶", 7: "⁷", 8: "⁸", 9: "⁹"};
export const powerOfTen = power => `10${[...String(power)].map(letter => RAISED[letter]).join("")}`;
