// One run: the league while it is played, and the result with everything that can be asked of it.
import {ask, chart, digits, make, percent, toast} from "./common.js";
import {codeBlock, trying} from "./workbench.js";

export async function runView(place, id) {
  const run = await ask(`/runs/${id}`);
  const league = new Map(), live = {metric: "", sign: 1, best: [], limit: run.request.time ?? null, begin: performance.now(), told: 0};
  const now = make("p", {class: "now pulse", id: "now", role: "status"}), time = make("div", {class: "bar", hidden: live.limit === null}, make("i", {style: "--share:0%"})), body = make("tbody", {id: "league"}), curve = make("svg:svg", {class: "chart", role: "img", "aria-label": "Best score over time"});
  const act = word => make("button", {type: "button", id: word, onclick: () => trying(() => ask(`/runs/${id}/do`, {do: word}))}, {finish: "Finish now", stop: "Stop"}[word]);
  const buttons = make("div", {class: "row"}, act("finish"), act("stop"));
  const result = make("div", {class: "stack", id: "result"}), warnings = make("ul", {class: "warnings"});
  const board = make("div", {class: "card"}, make("h2", {}, "The league"), make("div", {class: "wide"}, make("table", {"aria-label": "The league"}, make("thead", {}, make("tr", {}, ["Machine", "Score", "±", "Seconds", "Rows", ""].map((text, k) => make("th", {scope: "col", class: k && k < 5 ? `number${k > 2 ? " extra" : ""}` : ""}, text)))), body)));
  const streaming = make("div", {class: "stack"}, make("div", {class: "card"}, make("div", {class: "row"}, now, make("span", {class: "grow"}), buttons), time, curve), warnings);
  place.replaceChildren(make("p", {class: "crumbs"}, make("a", {href: "#"}, "All tables and runs")), make("h1", {}, run.name), result, streaming, board);

  function draw() {
    const rows = [...league.values()].sort((a, b) => (b.score === null) - (a.score === null) || live.sign * ((b.score ?? 0) - (a.score ?? 0)));
    rows.sort((a, b) => (a.score === null) - (b.score === null));
    body.replaceChildren(...rows.map((one, k) => make("tr", {class: one.name === live.winner || (!live.winner && k === 0 && one.score !== null) ? "best" : ""}, make("th", {scope: "row"}, one.title), make("td", {class: "number"}, one.score === null ? "-" : digits(one.score, 4)), make("td", {class: "number"}, one.score === null ? "" : digits(one.error, 2)), make("td", {class: "number extra"}, digits(one.seconds, 2)), make("td", {class: "number extra"}, one.rows ? one.rows.toLocaleString("en") : ""), make("td", {class: "soft"}, one.difference || one.remark || (one.state === "done" ? one.certificate : one.state)))));
    if (live.best.length > 1) chart(curve, {series: [{x: live.best.map(([t]) => t), y: live.best.map(([, score]) => score), colour: "var(--mark)"}], label: "seconds", yLabel: `best ${live.metric.replaceAll("_", " ")} so far`, zero: false});
  }

  const HEARD = {
    doing: what => { now.textContent = what; },
    understood: plan => { warnings.replaceChildren(...plan.warnings.map(text => make("li", {}, text))); now.textContent = `${plan.rows.toLocaleString("en")} rows`; },
    deciding: metric => { live.metric = metric.name ?? String(metric); },
    resumed: folds => { toast(`Going on where it was: ${folds} fits are known.`); },
    played: one => { league.set(one.name, one); live.sign = one.sign; },
    stopped: reason => { toast(`${reason}: going on with what is done`); },
    chosen: one => { live.winner = one.name; },
    done: () => {}, failed: () => {},
  };
  const source = new EventSource(`/runs/${id}/events`);
  let frame = 0;
  source.onmessage = message => {
    const event = JSON.parse(message.data);
    HEARD[event.event]?.(event.about);
    if (event.event === "played" && event.about.score !== null) {
      const score = event.about.score, before = live.best.at(-1)?.[1];
      if (before === undefined || live.sign * (score - before) > 0) live.best.push([event.seconds, score]); else live.best.push([event.seconds, before]);
    }
    if (event.event === "done") live.result = event.about;
    if (live.limit) time.firstChild.style.setProperty("--share", `${Math.min(100 * event.seconds / live.limit, 100)}%`);
    frame ||= requestAnimationFrame(() => { frame = 0; draw(); });
  };
  source.addEventListener("over", message => {
    source.close();
    const last = JSON.parse(message.data);
    streaming.hidden = true;
    if (last.state === "done" || last.state === "model") {
      for (const one of live.result?.league ?? []) league.set(one.name, one);
      live.winner = live.result?.winner;
      draw();
      board.hidden = last.state === "model";
      resultView(result, id, live.result, run);
    } else {
      now.classList.remove("pulse");
      const again = make("button", {type: "button", class: "main", id: "resume", onclick: () => trying(async () => { await ask(`/runs/${id}/do`, {do: "resume"}); await runView(place, id); })}, last.state === "cut off" ? "Go on" : "Run again");
      result.replaceChildren(make("div", {class: "card"}, make("p", {class: "problem"}, last.summary), again));
    }
  });
  return () => source.close();
}

const VIEWS = {whatif: ["What if", whatIf], matter: ["What matters", matter], errors: ["Where it errs", errorRows], threshold: ["Threshold", threshold], files: ["New files", files], lines: ["The same elsewhere", sameElsewhere]};

function resultView(place, id, told, run) {
  const context = {id, told, run, place: null, columns: (told?.importances ?? []).map(one => one.column)};
  const cards = told ? [...told.test.slice(0, 4).map(one => [digits(one.value, 3), `${one.name.replaceAll("_", " ")} (${digits(one.low, 3)} to ${digits(one.high, 3)})`]), [told.league.find(one => one.name === told.winner).title, "was chosen"], [`${digits(told.seconds, 2)} s`, "for all of it"]] : [];
  const panel = make("div", {role: "tabpanel", id: "panel", tabindex: "0"}), tabs = make("div", {class: "tabs", role: "tablist", "aria-label": "Result"});
  const names = Object.keys(VIEWS).filter(name => told || ["whatif", "files", "lines"].includes(name));
  const open = name => {
    for (const tab of tabs.children) { tab.setAttribute("aria-selected", tab.dataset.name === name); tab.tabIndex = tab.dataset.name === name ? 0 : -1; }
    panel.replaceChildren(make("p", {class: "soft"}, "…"));
    trying(() => VIEWS[name][1](panel, context));
  };
  context.open = open;
  tabs.append(...names.map(name => make("button", {type: "button", role: "tab", id: `tab-${name}`, "data-name": name, "aria-controls": "panel", onclick: () => open(name), onkeydown: event => {
    const step = {ArrowRight: 1, ArrowLeft: -1}[event.key];
    if (step) { const next = tabs.children[(names.indexOf(name) + step + names.length) % names.length]; next.focus(); next.click(); }
  }}, VIEWS[name][0])));
  place.replaceChildren(make("div", {class: "card"}, told ? make("p", {class: "summary", id: "summary"}, told.summary) : make("p", {class: "summary", id: "summary"}, "A model that was learned elsewhere."), make("ul", {class: "cards"}, cards.map(([value, label]) => make("li", {}, make("b", {}, value), make("span", {}, label)))),
    told?.luck ? make("p", {}, told.luck) : null, told?.warnings.length ? make("details", {}, make("summary", {}, `${told.warnings.length} remarks on the table`), make("ul", {class: "warnings"}, told.warnings.map(text => make("li", {}, text)))) : null,
    make("div", {class: "row"}, told ? make("a", {class: "button", href: `/runs/${id}/report`, target: "_blank", rel: "noopener"}, "The whole report") : null, make("a", {class: "button", href: `/runs/${id}/model`, download: "learned.model"}, "Download the model"))),
    make("div", {class: "card"}, tabs, panel));
  open("whatif");
}

// --- what if ------------------------------------------------------------------------------------------------------------

async function whatIf(panel, context) {
  const form = await ask(`/runs/${context.id}/form`, {place: context.place ?? (context.told ? 0 : null)});
  const row = Object.fromEntries(form.fields.map(field => [field.name, field.value]));
  const answer = make("div", {id: "answer", role: "status"}), near = make("div", {id: "nearest"});
  let asking = false, again = false;
  async function update() {
    again = true;
    if (asking) return;
    asking = true;
    while (again) {
      again = false;
      try { answer.replaceChildren(...told(await ask(`/runs/${context.id}/what-if`, {row}), form)); } catch (error) { answer.replaceChildren(make("p", {class: "problem"}, error.message)); }
    }
    asking = false;
  }
  const input = field => {
    const id = `field-${field.name}`, set = value => { row[field.name] = value === "" ? null : value; update(); };
    if (field.tag === "range") {
      const value = Number(field.value ?? (field.low + field.high) / 2), shown = make("output", {}, field.value === null ? "missing" : digits(value, 4));
      const slider = make("input", {id, type: "range", min: Math.min(field.low, value), max: Math.max(field.high, value), step: "any", value});
      slider.addEventListener("input", () => { const next = field.step === 1 ? Math.round(slider.value) : Number(Number(slider.value).toPrecision(6)); shown.textContent = digits(next, 4); slider.setAttribute("aria-valuetext", digits(next, 4)); set(next); });
      return make("label", {class: "slide"}, field.name, shown, slider);
    }
    if (field.tag === "select" || (field.choices.length && field.choices.length <= 30)) {
      const words = [...new Set(["", ...(field.value === null ? [] : [String(field.value)]), ...field.choices])];
      return make("label", {}, field.name, make("select", {id, onchange: event => set(event.target.value)}, words.map(one => make("option", {value: one, selected: one === String(field.value ?? "")}, one || "not known"))));
    }
    if (field.tag === "textarea") return make("label", {}, field.name, make("textarea", {id, rows: 2, oninput: event => set(event.target.value)}, field.value ?? ""));
    return make("label", {}, field.name, make("input", {id, type: "text", value: field.value ?? "", oninput: event => set(event.target.value)}));
  };
  const order = new Map(context.columns.map((name, k) => [name, k]));
  const fields = [...form.fields].sort((a, b) => (order.get(a.name) ?? 1e9) - (order.get(b.name) ?? 1e9));
  const another = form.tests ? make("button", {type: "button", id: "another", onclick: () => { context.place = Math.floor(Math.random() * form.tests); context.open("whatif"); }}, "Another test row") : null;
  const nearest = make("button", {type: "button", id: "find-nearest", onclick: () => trying(async () => { const found = await ask(`/runs/${context.id}/nearest`, {row}); near.replaceChildren(make("h3", {}, "The nearest known rows"), rowTable(["Row", form.target, "Distance", ...found.columns], found.rows.map(one => [one.row, one.truth, digits(one.distance, 3), ...one.values]))); })}, "Nearest known rows");
  panel.replaceChildren(make("div", {class: "two"}, make("div", {}, make("p", {class: "soft"}, "Move a slider, and see what the model makes of it. The columns that matter most come first."), make("div", {class: "fields"}, fields.map(input)), make("p", {class: "row"}, ...[another, form.tests ? nearest : null].filter(Boolean))), answer), near);
  await update();
}

function told(found, form) {
  const parts = [make("p", {class: "soft"}, form.target), make("p", {class: "says"}, typeof found.prediction === "number" ? digits(found.prediction, 4) : String(found.prediction))];
  if (found.interval) parts.push(make("p", {}, `between ${digits(found.interval[0], 4)} and ${digits(found.interval[1], 4)} in nine of ten cases`));
  if (found.probabilities) parts.push(make("div", {class: "bars"}, found.probabilities.toSorted((a, b) => b[1] - a[1]).slice(0, 8).map(([name, share]) => [make("span", {}, name), make("span", {class: "track"}, make("i", {style: `left:0;width:${100 * share}%;opacity:.75`})), make("span", {class: "number"}, percent(share))])));
  if (found.adds) {
    const top = found.adds.filter(([, value]) => value).toSorted((a, b) => Math.abs(b[1]) - Math.abs(a[1])).slice(0, 12), reach = Math.max(...top.map(([, value]) => Math.abs(value)), 1e-12);
    parts.push(make("h3", {}, form.classes.length ? `What speaks for ${found.prediction}` : "What every column adds"), make("div", {class: "adds"}, top.map(([name, value]) => [make("span", {}, name), make("span", {class: "track"}, make("i", {style: `${value < 0 ? "right" : "left"}:50%;width:${48 * Math.abs(value) / reach}%;background:var(${value < 0 ? "--c5" : "--mark"})`})), make("span", {class: "number"}, `${value < 0 ? "−" : "+"}${digits(Math.abs(value), 3)}`)])));
  }
  if (found.no_adds) parts.push(make("p", {class: "soft"}, found.no_adds));
  parts.push(make("ul", {class: "warnings"}, found.warnings.map(text => make("li", {}, text))));
  return parts;
}

// --- what matters -------------------------------------------------------------------------------------------------------

async function matter(panel, context) {
  const list = context.told.importances, reach = Math.max(...list.map(one => one.fall), 1e-12), drawing = make("div", {id: "effect"});
  const open = column => trying(async () => {
    const found = await ask(`/runs/${context.id}/effect`, {column}), svg = make("svg:svg", {class: "chart", role: "img", "aria-label": `Effect of ${column}`});
    if (found.none) { drawing.replaceChildren(make("h3", {}, column), make("p", {class: "soft"}, found.none)); return false; }
    const words = found.outputs.length > 1 || context.told.task === "classification" ? `average probability of ${found.outputs.join(", ")}` : `average ${found.outputs[0]}`;
    drawing.replaceChildren(make("h3", {}, column), make("p", {class: "soft"}, `${words}, if every row had this value`), ...found.numbers ? [svg] : [rowTable(["Value", ...found.outputs], found.values.map((value, k) => [value, ...found.mean.map(line => digits(line[k], 3))]))]);
    if (found.numbers) chart(svg, {series: found.outputs.flatMap((_, k) => [{x: found.values, y: found.mean[k], colour: `var(--c${k})`}, {x: found.values, y: found.low[k], colour: `var(--c${k})`, dash: "2 4"}, {x: found.values, y: found.high[k], colour: `var(--c${k})`, dash: "2 4"}]), label: column});
  });
  panel.replaceChildren(make("div", {class: "two"}, make("div", {}, make("p", {class: "soft"}, `How much ${context.told.metric.replaceAll("_", " ")} falls when a column is shuffled. Choose one to see its effect.`), make("div", {class: "bars", id: "importances"}, list.slice(0, 30).map(one => [make("button", {type: "button", onclick: () => open(one.column)}, one.column), make("span", {class: "track"}, make("i", {style: `left:0;width:${100 * Math.max(one.fall, 0) / reach}%;opacity:.75`})), make("span", {class: "number"}, digits(one.fall, 2))]))), drawing));
  for (const one of list.slice(0, 5)) if (await open(one.column) !== false) break;
}

// --- rows, thresholds, files --------------------------------------------------------------------------------------------

function rowTable(head, rows, choose) {
  const body = make("tbody"), draw = list => body.replaceChildren(...list.map(([cells, k]) => make("tr", choose ? {tabindex: "0", onclick: () => choose(k), onkeydown: event => { if (event.key === "Enter") choose(k); }} : {}, cells.map(cell => make("td", {class: typeof cell === "number" ? "number" : ""}, cell === null ? "" : typeof cell === "number" ? digits(cell, 4) : String(cell))))));
  const all = rows.map((cells, k) => [cells, k]);
  const heads = head.map((text, column) => {
    const cell = make("th", {scope: "col"}, make("button", {type: "button", onclick: () => {
      const up = cell.getAttribute("aria-sort") !== "ascending";
      for (const one of heads) one.removeAttribute("aria-sort");
      cell.setAttribute("aria-sort", up ? "ascending" : "descending");
      draw(all.toSorted(([a], [b]) => (up ? 1 : -1) * String(a[column] ?? "").localeCompare(String(b[column] ?? ""), "en", {numeric: true})));
    }}, text));
    return cell;
  });
  draw(all);
  return make("div", {class: "wide"}, make("table", {}, make("thead", {}, make("tr", {}, heads)), body));
}

async function errorRows(panel, context) {
  const found = await ask(`/runs/${context.id}/errors`, {columns: context.columns}), numbers = context.told.task !== "classification";
  const rows = found.rows.map(one => [one.row, one.truth, one.said, numbers ? digits(one.size, 3) : percent(one.size), ...one.values]);
  const table = rowTable(["Row", "Truth", "Said", numbers ? "Off by" : "How sure", ...found.columns], rows, k => { context.place = found.rows[k].place; context.open("whatif"); });
  const filter = make("input", {type: "search", placeholder: "show rows with …", "aria-label": "Show rows with", oninput: event => { const wanted = event.target.value.toLowerCase(); for (const row of table.querySelectorAll("tbody tr")) row.hidden = !row.textContent.toLowerCase().includes(wanted); }});
  panel.replaceChildren(make("p", {}, numbers ? `The largest errors of ${found.of.toLocaleString("en")} test rows.` : `${found.wrong.toLocaleString("en")} of ${found.of.toLocaleString("en")} test rows are wrong; those it was most sure of come first.`, " Choose a row to look at it."), make("p", {}, filter), table);
}

async function threshold(panel, context) {
  const {threshold: found} = await ask(`/runs/${context.id}/threshold`, {});
  if (!found) { panel.replaceChildren(make("p", {}, "Thresholds are for two classes with probabilities.")); return; }
  const {counts} = found, cost = {alarm: make("input", {type: "number", min: 0, step: "any", value: 1}), miss: make("input", {type: "number", min: 0, step: "any", value: 1})};
  const slider = make("input", {type: "range", id: "threshold", min: 0, max: counts.thresholds.length - 1, value: found.start, "aria-label": "Threshold"}), shown = make("output"), cards = make("ul", {class: "cards", "aria-live": "polite"});
  const price = k => cost.alarm.value * counts.alarms[k] + cost.miss.value * (counts.positives - counts.found[k]);
  const draw = () => {
    const k = Number(slider.value), hits = counts.found[k], alarms = counts.alarms[k];
    shown.textContent = counts.thresholds[k].toFixed(3);
    const entries = [[`${hits} of ${counts.positives}`, "found"], [counts.positives - hits, "missed"], [alarms, "false alarms"], [hits + alarms ? percent(hits / (hits + alarms)) : "-", "of those named are right"], [digits(price(k), 4), "cost of the mistakes"]];
    cards.replaceChildren(...entries.map(([value, label]) => make("li", {}, make("b", {}, String(value)), make("span", {}, label))));
  };
  const cheapest = () => { const prices = counts.thresholds.map((_, k) => price(k)); slider.value = prices.indexOf(Math.min(...prices)); draw(); };
  for (const one of [slider, cost.alarm, cost.miss]) one.addEventListener("input", draw);
  panel.replaceChildren(make("p", {}, `A row is called ${found.positive} if its probability of it is at least the threshold.`), make("div", {class: "row"}, make("label", {}, "A false alarm costs ", cost.alarm), make("label", {}, "A missed one costs ", cost.miss), make("button", {type: "button", class: "main", onclick: cheapest}, "Take the cheapest threshold")), make("p", {class: "slide"}, "Threshold", shown, slider), cards, make("p", {class: "soft"}, "Counted on the test part: a threshold that is chosen here has seen it, so expect a little less of new rows."));
  draw();
}

async function files(panel, context) {
  const said = make("div", {id: "scored"});
  const send = async (what, file) => {
    const reply = await fetch(`/runs/${context.id}/file/${what}?name=${encodeURIComponent(file.name)}`, {method: "POST", body: file});
    if (!reply.ok) throw new Error((await reply.json()).error);
    return reply;
  };
  const predict = file => trying(async () => {
    const url = URL.createObjectURL(await (await send("predict", file)).blob()), name = `${file.name.split(".")[0]}.predictions.csv`;
    make("a", {href: url, download: name}).click();
    said.replaceChildren(make("p", {id: "predicted"}, `Predictions were downloaded as ${name}. `, make("a", {href: url, download: name}, "Once more")));
  });
  const scoreFile = file => trying(async () => {
    const found = await (await send("score", file)).json();
    said.replaceChildren(make("h3", {}, `${found.rows.toLocaleString("en")} rows`), rowTable(["Score", "Now", "95 % interval", "In the test"], found.scores.map(one => [one.name.replaceAll("_", " "), digits(one.value, 4), `${digits(one.low, 3)} to ${digits(one.high, 3)}`, digits(one.before?.value, 4)])), make("h3", {}, found.drift.length ? "Columns that have moved" : "The columns look as before."), make("ul", {}, found.drift.map(one => make("li", {}, one.what))), make("ul", {class: "warnings"}, found.warnings.map(text => make("li", {}, text))));
  });
  const drop = (id, title, words, work) => {
    const input = make("input", {type: "file", id, "aria-label": title, onchange: event => event.target.files[0] && work(event.target.files[0])});
    return make("div", {class: "drop", "data-drop": id, ondrop: event => { event.preventDefault(); if (event.dataTransfer.files[0]) work(event.dataTransfer.files[0]); }}, make("p", {}, make("b", {}, title)), make("p", {class: "soft"}, words), make("button", {type: "button", onclick: () => input.click()}, "Choose a file"), input);
  };
  panel.replaceChildren(make("div", {class: "two"}, drop("predict-file", "Predict a file", "Drop rows without the answer: you get them back with predictions.", predict), drop("score-file", "Score a file", "Drop rows with the answer: see how the model does on them, and what has moved.", scoreFile)), said);
}

function sameElsewhere(panel, context) {
  const {lines} = context.run;
  panel.replaceChildren(...[lines.shell && codeBlock("Learn it in the shell", lines.shell), lines.python && codeBlock("Learn it in Python", lines.python), codeBlock("Predict in the shell", lines.predict), codeBlock("Use it in Python", lines.load)].filter(Boolean));
}

// --- two runs -----------------------------------------------------------------------------------------------------------

export async function compareView(place, pair) {
  const ids = pair.split(","), runs = await Promise.all(ids.map(id => ask(`/runs/${id}`))), found = await ask("/compare", {runs: ids});
  const side = (run, k) => make("div", {class: "card"}, make("h3", {}, make("a", {href: `#run=${run.id}`}, run.name)), make("p", {class: "says"}, found.what.startsWith("share") ? percent(found.errors[k]) : digits(found.errors[k], 4)), make("p", {class: "soft"}, found.what), make("p", {}, run.summary));
  const told_ = value => found.what.startsWith("share") ? percent(value) : digits(value, 3);
  const sure = found.low > 0 || found.high < 0;
  place.replaceChildren(make("p", {class: "crumbs"}, make("a", {href: "#"}, "All tables and runs")), make("h1", {}, "Two runs side by side"), make("div", {class: "two"}, runs.map(side)), make("div", {class: "card", id: "difference"}, make("p", {class: "summary"}, `On the ${found.rows.toLocaleString("en")} test rows that both have, the first has an error of ${told_(found.difference)} more than the second (95 % interval ${told_(found.low)} to ${told_(found.high)}).`), make("p", {}, sure ? "That is more than chance." : "That may be chance.")));
}
