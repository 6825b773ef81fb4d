// The playground: points, controls, and everything that is known of the machine, redrawn at every change.
import {encode, decode} from "./address.js";
import {asInk, ask, byId, chart, choices, clearChart, copy, digits, interval, make, percent} from "./common.js";
import {Plane} from "./plane.js";

const PLAY = "M2 1l10 6-10 6z", PAUSE = "M2 1h4v12H2zM8 1h4v12H8z", FORWARD = "M1 1l8 6-8 6zM10 1h3v12h-3z", BACK = "M13 1L5 7l8 6zM1 1h3v12H1z";
const icon = d => make("svg:svg", {viewBox: "0 0 14 14", width: 13, height: 13, "aria-hidden": "true"}, make("svg:path", {d, fill: "currentColor"}));
const TASKS = [["classes", "Classes"], ["numbers", "Numbers"], ["clusters", "Clusters"]];
const TERMS = {loss: "loss", number_loss: "loss", penalty: "penalty", C: "scale", features: "phi", degree: "phi", kernel: "phi", layers: "phi"};
const HIT = 11;  // pixels around a point that belong to it
const IDLE = 260;  // milliseconds without a change after which the path is computed
const FRAME = 170;  // milliseconds of a step when playing

const about = await ask("/playground/about");
const kinds = {};
for (const family of about.families) for (const control of family.controls) kinds[control.name] = ["log", "whole"].includes(control.kind) ? "number" : "text";
const familyOf = name => about.families.find(family => family.name === name);
const kept = {};  // settings of families that were left, for when they are chosen again

/** The state of the address; what it says of a machine that is not known here is left out. */
function linked() {
  const found = decode(location.hash, kinds);
  return !found || familyOf(found.family)?.tasks.includes(found.task) ? found : {...found, task: "classes", family: "equation", settings: {}};
}
const state = linked() ?? {task: "classes", family: "equation", held: 0.3, settings: {features: "kernel"}, points: []};
const view = {label: 0, erasing: false, picture: null, held: [], dataset: null, seed: 1, cursor: null, film: null, playing: 0, base: null, shifts: []};
const plane = new Plane(byId("plane"), about.reach);
const undone = [];

// --- asking -------------------------------------------------------------------------------------------------------

let waiting = false, changed = false, idle = 0;

/** Ask for the newest state; while an answer is on its way, later changes wait and only the last of them is asked. */
async function update() {
  draw();
  leaveFilm();
  changed = true;
  if (waiting) return;
  waiting = true;
  while (changed) {
    changed = false;
    const busy = setTimeout(() => { byId("busy").textContent = relevant().features === "network" ? "compiling the network, once …" : "fitting …"; byId("busy").hidden = false; }, 600);
    try {
      const answer = await ask("/playground/fit", question());
      view.picture = answer;
      view.held = answer.held;
      problem("");
    } catch (error) { view.picture = null; problem(error.message); }
    clearTimeout(busy);
    byId("busy").hidden = true;
    show();
  }
  waiting = false;
  history.replaceState(null, "", `#${encode(state)}`);
  clearTimeout(idle);
  idle = setTimeout(path, IDLE);
}

const question = () => ({task: state.task, family: state.family, held: state.held, settings: relevant(), points: state.points});

/** The settings that the family has and shows: what is hidden plays no part. */
function relevant() {
  const found = {};
  for (const control of familyOf(state.family).controls) if (isShown(control)) found[control.name] = setting(control);
  return found;
}

const setting = control => state.settings[control.name] ?? control.start;
function isShown(control) {
  return Object.entries(control.when).every(([name, values]) => {
    if (name === "task") return values.includes(state.task);
    return values.includes(setting(familyOf(state.family).controls.find(one => one.name === name)));
  });
}

function problem(sentence) {
  byId("problem").textContent = sentence;
  byId("problem").hidden = !sentence;
}

// --- what is shown --------------------------------------------------------------------------------------------------

function draw(picture = view.picture) {
  plane.show({picture, points: state.points, task: state.task, held: view.held, cursor: view.cursor});
}

function show() {
  draw();
  const answer = view.picture;
  byId("code").textContent = answer?.code ?? "";
  byId("path-card").hidden ||= !hasPath();  // at once; it comes when it is computed
  equation();
  errors(answer);
  certificate(answer);
  loss(answer);
  byId("described").textContent = described(answer);
  byId("legend").textContent = [TASK_LEGENDS[state.task], FAMILY_LEGENDS[state.task]?.[state.family], answer?.margins && MARGINS].filter(Boolean).join(" ");
}

/** The picture in words, for those who do not see it. */
function described(answer) {
  if (!answer) return `${state.points.length} points.`;
  const {train, test} = answer.errors, wrong = one => one.wrong === undefined ? `${digits(one.value)} off on average` : `${one.wrong} of ${one.of} wrong`;
  const parts = [`${state.points.length} points, ${familyOf(state.family).title}.`, train && `Taught: ${wrong(train)}.`, test && `Held out: ${wrong(test)}.`, ...answer.facts.map(([name, value]) => `${name}: ${value}.`)];
  if (answer.centres) parts.push(`Centres at ${answer.centres.map(([x, y]) => `${digits(x, 2)}, ${digits(y, 2)}`).join("; ")}.`);
  return parts.filter(Boolean).join(" ");
}

const TASK_LEGENDS = {classes: "It learns from filled points; hollow ones are held out.", numbers: "x goes across, the target upwards. Thin lines are residuals; hollow points are held out.", clusters: "Colours are the clusters that the machine finds."};
const RINGS = "Rings: support vectors, the larger the dual variable; in pair steps, those that move are orange.", MARGINS = "Thin lines: the margin, f = ±1.";
const FAMILY_LEGENDS = {classes: {equation: RINGS, perceptron: "Orange rings: points at which the last step moved."}, clusters: {kmeans: "Crosses are their means.", mixture: "Crosses are centres, ellipses one and two standard deviations."}};
const PENALTIES = {l2: "½‖w‖²", l1: "‖w‖₁", elastic_net: "½(‖w‖₁ + ½‖w‖²)", none: "0"};
function equation() {
  const place = byId("equation"), settings = relevant(), part = (kind, text) => make("b", {class: kind}, text);
  if (state.family !== "equation") { place.replaceChildren(familyOf(state.family).formula); return; }
  const phi = {linear: "x", polynomial: `φ${["", "₁", "₂", "₃", "₄", "₅", "₆", "₇", "₈"][settings.degree] ?? ""}(x)`, kernel: "φₖ(x)", network: "φ(x; W)"}[settings.features];
  place.replaceChildren("minimise", part("penalty", PENALTIES[settings.penalty]), "+", part("scale", digits(settings.C)), "· Σᵢ", part("loss", (settings.loss ?? settings.number_loss).replaceAll("_", " ")),
    make("span", {}, "( yᵢ , ⟨w, ", part("phi", phi.replace("x", "xᵢ")), "⟩ + b )"));
}

function errors(answer) {
  const card = byId("errors-card"), found = answer?.errors ?? {};
  card.hidden = !found.train;
  if (!found.train) return;
  const reach = state.task === "classes" ? 1 : 1.1 * Math.max(found.train.high, found.test?.high ?? 0), told = state.task === "classes" ? percent : value => digits(value);
  const line = (name, one) => {
    if (!one) return [make("span", {}, name), make("span", {class: "soft"}, "hold points out to see it"), make("span")];
    const words = one.wrong === undefined ? `mean |error| of ${one.of} points` : `${one.wrong} of ${one.of} wrong`;
    const track = interval(one.value, [one.low, one.high], [0, reach], `${name}: ${words}, ${told(one.value)}, between ${told(one.low)} and ${told(one.high)}`);
    return [make("span", {}, name), track, make("span", {class: "number"}, make("strong", {}, told(one.value)), make("br"), make("small", {class: "soft"}, `${told(one.low)} – ${told(one.high)}`))];
  };
  byId("errors").replaceChildren(make("div", {class: "bars"}, line("learned from", found.train), line("held out", found.test)),
    make("p", {class: "soft"}, state.task === "classes" ? "Shares of wrong points, with 95 % intervals. Only the held-out points are an honest test." : "Mean distance from the target, with 95 % intervals."));
}

function certificate(answer) {
  byId("certificate-card").hidden = !answer;
  const rows = [], proof = answer?.certificate, add = (name, value) => rows.push(make("dt", {}, name), make("dd", {}, value));
  byId("certificate-card").querySelector("h2").textContent = proof ? "Certificate" : "Facts";
  if (proof) {
    add("primal", digits(proof.primal, 8));
    add("dual", digits(proof.dual, 8));
    add("gap", `${digits(proof.gap, 2)} (relative ${digits(proof.relative_gap, 2)})`);
    add("solver", `${proof.solver.replaceAll("_", " ")}, ${proof.iterations} iterations`);
  }
  for (const [name, value] of answer?.facts ?? []) if (!(proof && name === "iterations")) add(name, value);
  if (answer) add("time", `${digits(1000 * answer.seconds, 2)} ms`);
  const badge = proof ? [make("p", {}, make("span", {class: proof.converged ? "badge" : "badge off"}, proof.converged ? "proved optimal" : proof.status.replaceAll("_", " ")))] : [];
  byId("certificate").replaceChildren(...badge, make("dl", {class: "proof"}, rows), ...(proof ? [make("p", {class: "soft"}, proof.reason)] : []));
}

function loss(answer) {
  const card = byId("loss-card"), curve = answer?.loss;
  card.hidden = !curve;
  if (!curve) return;
  const cost = at => { const k = Math.round((at - curve.x[0]) / (curve.x[1] - curve.x[0])); return curve.y[Math.min(Math.max(k, 0), curve.y.length - 1)]; };
  const taught = state.points.filter((_, k) => !view.held.includes(k));
  const dots = curve.at.map((at, k) => ({x: at, y: cost(at), colour: `var(--c${state.task === "classes" ? taught[k]?.[2] ?? 0 : 0})`}));
  chart(byId("loss"), {series: [{x: curve.x, y: curve.y, colour: "var(--loss)"}], dots, label: curve.label, top: Math.min(4, Math.max(...curve.y.filter(Number.isFinite)))});
}

// --- the path over C --------------------------------------------------------------------------------------------------

let along = null;
const hasPath = () => state.family === "equation" && setting({name: "features", start: "linear"}) !== "network" && Boolean(view.picture);
async function path() {
  const card = byId("path-card");
  card.hidden = !hasPath();
  if (card.hidden) return;
  try { along = await ask("/playground/path", question()); } catch { card.hidden = true; return; }
  drawPath();
}

let scale = null;
function drawPath() {
  if (!along || byId("path-card").hidden) return;
  const x = along.C.map(Math.log10), series = [{x, y: along.train, colour: "var(--mark)", dash: "5 4", name: "learned from"}];
  if (along.test) series.push({x, y: along.test, colour: "var(--c5)", name: "held out"});
  const C = setting({name: "C", start: 1});
  scale = chart(byId("path"), {series, at: Math.log10(C), log: true, label: "C"});
  byId("path").setAttribute("aria-valuenow", Math.log10(C).toFixed(2));
  byId("path").setAttribute("aria-valuetext", `C = ${digits(C)}`);
}

function chooseC(power) {
  state.settings.C = Number((10 ** Math.min(Math.max(power, -3), 4)).toPrecision(3));
  controls();
  drawPath();
  update();
}

byId("path").addEventListener("pointerdown", event => {
  const svg = byId("path"), move = one => chooseC(scale.xOf(one.clientX - svg.getBoundingClientRect().left));
  svg.setPointerCapture(event.pointerId);
  move(event);
  svg.addEventListener("pointermove", move);
  svg.addEventListener("pointerup", () => svg.removeEventListener("pointermove", move), {once: true});
});
byId("path").addEventListener("keydown", event => {
  const step = {ArrowRight: .1, ArrowUp: .1, ArrowLeft: -.1, ArrowDown: -.1, PageUp: 1, PageDown: -1}[event.key];
  if (!step) return;
  event.preventDefault();
  chooseC(Math.log10(setting({name: "C", start: 1})) + step);
});

// --- the film -----------------------------------------------------------------------------------------------------------

function leaveFilm() {
  clearInterval(view.playing);
  view.playing = 0;
  view.film = null;
  const possible = familyOf(state.family).play;
  byId("player").hidden = !possible;
  playing(false);
  byId("step").disabled = true;
  byId("step").value = 0;
  byId("step-label").textContent = "Play the steps of the fit";
  clearChart(byId("film"));
}

function playing(on) {
  byId("play").replaceChildren(icon(on ? PAUSE : PLAY));
  byId("play").setAttribute("aria-label", on ? "Pause" : "Play the steps of the fit");
}

async function film() {
  if (view.film) return true;
  byId("step-label").textContent = "recording …";
  try {
    const found = await ask("/playground/film", question());
    view.film = {...found, pictures: [], question: question(), at: 0};
  } catch (error) { problem(error.message); leaveFilm(); return false; }
  const slider = byId("step");
  slider.max = view.film.labels.length - 1;
  slider.disabled = false;
  return true;
}

async function go(number) {
  if (!await film()) return;
  const film_ = view.film;
  film_.at = Math.min(Math.max(number, 0), film_.labels.length - 1);
  const at = film_.at;
  film_.pictures[at] ??= await ask("/playground/step", {...film_.question, step: at});
  if (view.film !== film_ || film_.at !== at) return;
  draw({...film_.pictures[at]});
  byId("step").value = at;
  byId("step").setAttribute("aria-valuetext", film_.labels[at]);
  const x = film_.labels.map((_, k) => k), colours = ["var(--mark)", "var(--c5)"];
  const series = Object.entries(film_.curves).map(([name, y], k) => ({x, y, colour: colours[k], name}));
  const values = series.map(one => make("b", {style: `color:${asInk(one.colour)}`}, `${one.name} ${digits(one.y[at], 4)}`));
  byId("step-label").replaceChildren(film_.labels[at], make("br"), ...values.flatMap(one => [one, " "]));
  if (!series.length) return;
  chart(byId("film"), {series, at, axes: false, height: 51});
  byId("film").setAttribute("aria-label", `${film_.labels[at]}: ${values.map(one => one.textContent).join(", ")}`);
}

function pause() {
  clearInterval(view.playing);
  view.playing = 0;
  playing(false);
}

async function play() {
  if (view.playing) { pause(); return; }
  if (!await film()) return;
  await go(view.film.at >= view.film.labels.length - 1 ? 0 : view.film.at);
  playing(true);
  const length = view.film.labels.length;
  view.playing = setInterval(async () => {
    if (!view.film || view.film.at >= length - 1) pause(); else await go(view.film.at + 1);
  }, Math.max(FRAME, Math.min(700, 4000 / length)));
}
byId("play").addEventListener("click", play);
/** A step by hand, which ends the playing. */
const byHand = async step => { pause(); await film() && go(step(view.film.at)); };
byId("forward").addEventListener("click", () => byHand(at => at + 1));
byId("back").addEventListener("click", () => byHand(at => at - 1));
byId("step").addEventListener("input", event => byHand(() => Number(event.target.value)));
byId("forward").replaceChildren(icon(FORWARD));
byId("back").replaceChildren(icon(BACK));

// --- controls -----------------------------------------------------------------------------------------------------------

function controls() {
  const active = document.activeElement?.id;
  byId("controls").replaceChildren(...familyOf(state.family).controls.filter(isShown).map(control => {
    const value = setting(control), id = `control-${control.name}`, term = TERMS[control.name];
    const title = [term && state.family === "equation" ? make("span", {class: "dot", style: `--dot:var(--${term})`}) : null, control.label];
    const hint = control.hint ? make("span", {class: "hint"}, control.hint) : null;
    const set = (next, redraw) => { state.settings[control.name] = next; if (redraw) controls(); update(); };
    if (control.kind === "choice") return make("label", {}, title, make("select", {id, onchange: event => set(event.target.value, true)},
      control.choices.map(one => make("option", {value: one, selected: one === value}, one.replaceAll("_", " ")))), hint);
    if (control.kind === "text" || control.kind === "layers") return make("label", {}, title, make("input", {id, type: "text", value, spellcheck: "false", autocomplete: "off", oninput: event => set(event.target.value, false)}), hint);
    const log = control.kind === "log", shown = make("span", {class: "shown", "aria-hidden": "true"}, digits(value));
    const slider = make("input", {id, type: "range", min: control.low, max: control.high, step: log ? .02 : 1, value: log ? Math.log10(value) : value, "aria-valuetext": digits(value)});
    slider.addEventListener("input", () => {
      const next = log ? Number((10 ** Number(slider.value)).toPrecision(3)) : Number(slider.value);
      shown.textContent = digits(next);
      slider.setAttribute("aria-valuetext", digits(next));
      set(next, false);
      if (control.name === "C") drawPath();
    });
    return make("label", {class: "slide"}, title, shown, slider, hint);
  }));
  if (active?.startsWith("control-")) byId(active)?.focus();
}

function families() {
  const suited = about.families.filter(family => family.tasks.includes(state.task));
  choices(byId("families"), suited.map(family => [family.name, family.title]), state.family, name => {
    kept[state.family] = state.settings;
    state.family = name;
    state.settings = kept[name] ?? {};
    controls();
    update();
  });
}

function swatches() {
  byId("swatches").hidden = state.task !== "classes";
  const shapes = ["M12 3a9 9 0 1 0 .01 0z", "M4 4h16v16H4z", "M12 2l10 18H2z", "M12 1l11 11-11 11L1 12z"];
  choices(byId("swatches"), shapes.map((d, k) => [k, make("svg:svg", {viewBox: "0 0 24 24", "aria-hidden": "true"}, make("svg:path", {d, fill: `var(--c${k})`})), `class ${k + 1}`]), view.label, label => { view.label = label; erasing(false); });
}

function datasets() {
  byId("datasets").replaceChildren(...about.datasets[state.task].map(name => make("button", {type: "button", "data-name": name, onclick: () => { view.seed += 1; load(name); }}, name)));
}

async function load(name) {
  if (byId("count").disabled) { byId("noise").value = .2; byId("count").value = 150; outputs(); }  // after points by hand
  const wanted = {task: state.task, name, count: Number(byId("count").value), noise: Number(byId("noise").value), seed: view.seed};
  try {
    const found = await ask("/playground/data", wanted);
    remember();
    view.dataset = name;
    byId("count").disabled = false;
    for (const button of byId("datasets").children) button.setAttribute("aria-pressed", button.dataset.name === name);
    state.points = found.points;
    update();
  } catch (error) { problem(error.message); }
}

function outputs() {
  byId("noise-out").textContent = byId("noise").value;
  byId("count-out").textContent = byId("count").value;
  byId("held-out").textContent = `${Math.round(100 * byId("held").value)} %`;
}
/** Points that were changed by hand: noise is added to them, and their number is theirs. */
function byHandNow() {
  if (view.dataset !== null) byId("noise").value = 0;
  view.dataset = view.base = null;
  byId("count").disabled = true;
  byId("count").value = state.points.length;
  outputs();
}

/** Normal noise on points made by hand, the same for the same amount. */
function shaken(amount) {
  if (!view.base) { remember(); view.base = structuredClone(state.points); view.shifts = view.base.map(() => [normal(), normal()]); }
  state.points = view.base.map(([x, y, label], k) => [clip(x + amount * view.shifts[k][0] * (state.task !== "numbers")), clip(y + amount * view.shifts[k][1]), label]);
  update();
}
const normal = () => Math.sqrt(-2 * Math.log(1 - Math.random())) * Math.cos(2 * Math.PI * Math.random());
byId("noise").addEventListener("input", () => { outputs(); if (view.dataset) load(view.dataset); else shaken(Number(byId("noise").value)); });
byId("count").addEventListener("input", () => { outputs(); if (view.dataset) load(view.dataset); });
byId("held").addEventListener("input", () => { outputs(); state.held = Number(byId("held").value); update(); });

function room() {
  choices(byId("tasks"), TASKS, state.task, async task => {
    state.task = task;
    kept[state.family] = state.settings;
    const suited = about.families.find(family => family.tasks.includes(task));
    if (!familyOf(state.family).tasks.includes(task)) Object.assign(state, {family: suited.name, settings: kept[suited.name] ?? {}});
    rebuild();
    await load(about.datasets[task][0]);
  });
  rebuild();
}

function rebuild() {
  families();
  swatches();
  datasets();
  controls();
  byId("held").closest("label").hidden = state.task === "clusters";
}

// --- points -------------------------------------------------------------------------------------------------------------

function remember() { undone.push(JSON.stringify(state.points)); if (undone.length > 60) undone.shift(); }
function erasing(on) { view.erasing = on; byId("erase").setAttribute("aria-pressed", on); }
byId("erase").addEventListener("click", () => erasing(!view.erasing));
byId("clear").addEventListener("click", () => { remember(); state.points = []; view.held = []; changedByHand(); });
const undo = () => { if (undone.length) { state.points = JSON.parse(undone.pop()); changedByHand(); } };
function changedByHand() { byHandNow(); for (const button of byId("datasets").children) button.setAttribute("aria-pressed", false); update(); }
byId("undo").addEventListener("click", undo);

const canvas = byId("plane"), clip = value => Math.round(1000 * Math.min(Math.max(value, -about.reach), about.reach)) / 1000;
const placeOf = event => { const box = canvas.getBoundingClientRect(); return plane.toPlace(event.clientX - box.left, event.clientY - box.top); };
function nearest([x, y], reach = HIT) {
  let best = -1, least = (reach / plane.size * 2 * about.reach) ** 2;
  state.points.forEach(([px, py], k) => { const d = (px - x) ** 2 + (py - y) ** 2; if (d <= least) { least = d; best = k; } });
  return best;
}
function add([x, y]) {
  if (state.points.length >= about.most) { problem(`The plane holds ${about.most} points; erase some.`); return -1; }
  remember();
  state.points.push([clip(x), clip(y), state.task === "classes" ? view.label : 0]);
  changedByHand();
  return state.points.length - 1;
}
function erase(k) { if (k >= 0) { remember(); state.points.splice(k, 1); changedByHand(); } }

canvas.addEventListener("pointerdown", event => {
  const place = placeOf(event);
  let held = nearest(place);
  view.cursor = null;
  if (view.erasing || event.button === 2 || event.shiftKey) { erase(held); return; }
  if (event.button !== 0) return;
  if (held < 0) held = add(place); else remember();
  canvas.setPointerCapture(event.pointerId);
  const move = one => { if (held < 0) return; const [x, y] = placeOf(one); state.points[held][0] = clip(x); state.points[held][1] = clip(y); changedByHand(); };
  canvas.addEventListener("pointermove", move);
  canvas.addEventListener("pointerup", () => canvas.removeEventListener("pointermove", move), {once: true});
});
canvas.addEventListener("contextmenu", event => event.preventDefault());
canvas.addEventListener("pointermove", event => {
  const k = event.buttons ? -1 : nearest(placeOf(event)), tip = byId("tip");
  tip.hidden = k < 0;
  if (k < 0) return;
  const [px, py] = plane.toPixel(state.points[k]), dual = view.picture?.duals?.[k], said = view.picture?.said?.[k];
  const lines = [state.task === "classes" ? `class ${state.points[k][2] + 1}` : `y = ${digits(state.points[k][1])}`];
  if (said !== undefined) lines.push(state.task === "classes" ? (said === state.points[k][2] ? "right" : `called ${said + 1}`) : `f(x) = ${digits(said)}`);
  if (view.held.includes(k)) lines.push("held out"); else if (dual !== undefined) lines.push(`dual = ${digits(dual)}`);
  tip.textContent = lines.join("\n");
  tip.style.left = `${Math.min(px + 14, plane.size - 110)}px`;
  tip.style.top = `${Math.max(py - 12, 0)}px`;
});
canvas.addEventListener("pointerleave", () => { byId("tip").hidden = true; });
canvas.addEventListener("keydown", event => {
  const step = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1]}[event.key];
  if (step) { const [x, y] = view.cursor ?? [0, 0], size = event.shiftKey ? .5 : .1; view.cursor = [clip(x + size * step[0]), clip(y + size * step[1])]; draw(); tellCursor(); }
  else if (event.key === "Enter" || event.key === " ") { view.cursor ??= [0, 0]; add(view.cursor); }
  else if (event.key === "Delete" || event.key === "Backspace") erase(nearest(view.cursor ?? [0, 0], 40));
  else return;
  event.preventDefault();
});
function tellCursor() {
  const [x, y] = view.cursor, k = nearest(view.cursor, 20);
  byId("cursor").textContent = `${digits(x, 2)}, ${digits(y, 2)}${k < 0 ? "" : `: ${state.task === "classes" ? `class ${state.points[k][2] + 1}` : "a point"}`}`;
}
canvas.addEventListener("blur", () => { view.cursor = null; draw(); });
addEventListener("keydown", event => {
  if (event.target.matches("input[type=text], select, textarea")) return;
  if ((event.ctrlKey || event.metaKey) && event.key === "z") { event.preventDefault(); undo(); }
  else if (event.ctrlKey || event.metaKey || event.altKey) return;
  else if (/^[1-4]$/.test(event.key) && state.task === "classes") { view.label = Number(event.key) - 1; swatches(); erasing(false); }
  else if (event.key === "e") erasing(!view.erasing);
});

// --- sharing ------------------------------------------------------------------------------------------------------------

byId("copy").addEventListener("click", async () => {
  try {
    byId("script").textContent = (await ask("/playground/script", question())).script;
    byId("script-dialog").showModal();
  } catch (error) { problem(error.message); }
});
byId("script-copy").addEventListener("click", () => copy(byId("script").textContent, "The script is copied."));
byId("link").addEventListener("click", () => copy(location.href, "The link is copied: it reopens these points and this machine in your studio."));

addEventListener("hashchange", () => { const next = linked(); if (next && encode(next) !== encode(state)) { Object.assign(state, next); byId("held").value = state.held; outputs(); room(); changedByHand(); } });
byId("held").value = state.held;
outputs();
room();
if (state.points.length) changedByHand(); else await load(about.datasets[state.task][0]);
