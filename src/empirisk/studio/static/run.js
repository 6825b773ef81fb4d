// One run: the league while it is played, and the result with everything that can be asked of it.
import {ask, cellKind, chart, digits, interval, make, moment, percent, scoreName, send, toast} from "./common.js";
import {codeBlocks, crumbs, problem, trying} from "./workbench.js";

export async function runView(place, id) {
  const run = await ask(`/runs/${id}`);
  const league = new Map(), live = {metric: "", sign: 1, best: [], limit: run.request.time ?? null, begin: performance.now() - 1000 * (run.seconds ?? 0)};
  const now = make("p", {class: "now pulse", id: "now", role: "status"}, "starting"), clock = make("span", {class: "soft number", id: "clock", role: "timer"}), time = make("div", {class: "bar", hidden: live.limit === null}, make("i", {style: "--share:0%"})), body = make("tbody", {id: "league"}), curve = make("svg:svg", {class: "chart", role: "img", "aria-label": "Best score over time: no score yet"});
  const act = word => make("button", {type: "button", id: word, onclick: () => { live.asked = word; trying(() => ask(`/runs/${id}/do`, {do: word})); }}, {finish: "Finish now", stop: "Stop"}[word]);
  const result = make("div", {class: "stack", id: "result"}), warnings = make("ul", {class: "warnings"});
  const heads = [["Machine", ""], ["Score", "number"], ["±", "number", "Two standard errors over the folds: about a 95 % interval"], ["95 % interval", "extra"], ["Seconds", "number extra"], ["Rows", "number extra"], ["Remark", "extra"]];
  const board = make("div", {class: "card"}, make("h2", {}, "The league"), make("div", {class: "wide"}, make("table", {class: "league", "aria-label": "The league"}, make("thead", {}, make("tr", {}, heads.map(([text, kind, title]) => make("th", {scope: "col", class: kind, title}, text)))), body)));
  const streaming = make("div", {class: "stack", id: "streaming"}, make("div", {class: "card"}, make("div", {class: "row live"}, now, clock, make("div", {class: "row"}, act("finish"), act("stop"))), time, curve));
  // What grows while the run goes on stands last, so that nothing jumps.
  place.replaceChildren(crumbs(), make("h1", {}, run.name), result, streaming, board, warnings);

  function row(one, best, span) {
    const known = one.score !== null, half = 2 * (one.error ?? 0), ends = [one.score - half, one.score + half];
    const remark = one.difference || one.remark || (one.state === "done" ? one.certificate : one.state), words = `${digits(one.score, 4)}, about ${digits(ends[0], 3)} to ${digits(ends[1], 3)}`;
    return make("tr", {class: best ? "best" : ""}, make("th", {scope: "row"}, one.title, make("small", {class: "narrow soft"}, remark)), make("td", {class: "number"}, known ? digits(one.score, 4) : "–"), make("td", {class: "number"}, known && one.error ? digits(half, 2) : ""), make("td", {class: "extra"}, known ? interval(one.score, ends, span, words) : ""),
      make("td", {class: "number extra"}, known ? digits(one.seconds, 2) : ""), make("td", {class: "number extra"}, one.rows ? one.rows.toLocaleString("en") : ""), make("td", {class: "soft extra"}, remark));
  }

  function draw() {
    const rows = [...league.values()].sort((a, b) => (a.score === null) - (b.score === null) || live.sign * ((b.score ?? 0) - (a.score ?? 0)));
    // Whoever guesses is far off, and would squeeze the others.
    const scored = rows.filter(one => one.score !== null), rivals = scored.filter(one => one.name !== "baseline");
    const ends = (rivals.length ? rivals : scored).flatMap(one => [one.score - 2 * (one.error ?? 0), one.score + 2 * (one.error ?? 0)]), span = [Math.min(...ends), Math.max(...ends)];
    body.replaceChildren(...rows.map((one, k) => row(one, live.winner ? one.name === live.winner : k === 0 && one.score !== null, span)));
    if (!live.best.length) return;
    // The best score stays until a better one comes: a line of steps.
    const steps = live.best.flatMap(([t, score], k) => k ? [[t, live.best[k - 1][1]], [t, score]] : [[t, score]]);
    chart(curve, {series: [{x: steps.map(([t]) => t), y: steps.map(([, score]) => score), colour: "var(--mark)"}], label: "seconds", yLabel: `best ${scoreName(live.metric)} so far`, zero: false});
    curve.setAttribute("aria-label", `Best ${scoreName(live.metric)} so far: ${digits(steps.at(-1)[1], 4)} after ${digits(steps.at(-1)[0], 2)} seconds`);
  }

  const tick = () => {
    const gone = (performance.now() - live.begin) / 1000, left = Math.max((live.limit ?? 0) - gone, 0);
    clock.textContent = live.limit === null ? `${Math.round(gone)} s so far` : `${Math.ceil(left)} s of ${digits(live.limit)} s left`;
    time.firstChild.style.setProperty("--share", `${Math.min(100 * gone / (live.limit || 1), 100)}%`);
  };
  const ticking = setInterval(tick, 500);
  tick();
  const HEARD = {
    doing: what => { now.textContent = now.title = what; },
    understood: plan => { warnings.replaceChildren(...plan.warnings.map(text => make("li", {}, text))); now.textContent = `${plan.rows.toLocaleString("en")} rows`; },
    deciding: metric => { live.metric = metric.name ?? String(metric); },
    resumed: (folds, news) => { if (news) toast(`Going on where it was: ${folds} fits are known.`); },
    played: one => { league.set(one.name, one); live.sign = one.sign; },
    stopped: (reason, news) => { if (news && live.asked !== "stop") toast(`${reason}: going on with what is done`); },
    chosen: one => { live.winner = one.name; },
  };
  const source = new EventSource(`/runs/${id}/events`);
  let frame = 0;
  let lost = false;
  source.onerror = () => { lost = true; problem("The studio does not answer; is it still running in the terminal?"); };
  source.onopen = () => { if (lost) problem(""); lost = false; };
  source.onmessage = message => {
    const event = JSON.parse(message.data);
    HEARD[event.event]?.(event.about, Number(message.lastEventId) >= run.events);
    if (event.event === "played" && event.about.score !== null && event.about.name !== "baseline") {
      const score = event.about.score, before = live.best.at(-1)?.[1] ?? score;
      live.best.push([event.seconds, live.sign * (score - before) > 0 ? score : before]);
    }
    if (event.event === "done") live.result = event.about;
    frame ||= requestAnimationFrame(() => { frame = 0; draw(); });
  };
  source.addEventListener("over", async message => {
    source.close();
    clearInterval(ticking);
    const last = JSON.parse(message.data);
    streaming.hidden = warnings.hidden = true;
    if (last.state === "done" || last.state === "model") {
      for (const one of live.result?.league ?? []) league.set(one.name, one);
      live.winner = live.result?.winner;
      draw();
      board.hidden = last.state === "model";
      await trying(async () => resultView(result, id, live.result, await ask(`/runs/${id}`)));
    } else {
      const again = make("button", {type: "button", class: "main", id: "resume", onclick: () => trying(async () => { await ask(`/runs/${id}/do`, {do: "resume"}); dispatchEvent(new Event("hashchange")); })}, last.state === "cut off" ? "Go on" : "Run again");
      result.replaceChildren(make("div", {class: "card"}, make("p", {class: "problem", id: "summary", role: "alert"}, last.summary), again));
      board.hidden = !league.size;
    }
  });
  return () => { source.close(); clearInterval(ticking); };
}

const VIEWS = {whatif: ["What if", whatIf], matter: ["What matters", matter], errors: ["Where it errs", errorRows], threshold: ["Threshold", threshold], files: ["New files", files], learn: ["The same elsewhere", sameElsewhere]};

function resultView(place, id, told, run) {
  const context = {id, told, run, place: null, columns: (told?.importances ?? []).map(one => one.column)};
  const cards = told ? [...told.test.slice(0, 4).map(one => [digits(one.value, 3), scoreName(one.name), `${digits(one.low, 3)} to ${digits(one.high, 3)}`]), [told.league.find(one => one.name === told.winner).title, "was chosen", `${told.rows.toLocaleString("en")} learned from, ${told.tested.toLocaleString("en")} tested`], [`${digits(told.seconds, 2)} s`, "for all of it", ""]] : [];
  const panel = make("div", {role: "tabpanel", id: "panel", tabindex: "0"}), tabs = make("div", {class: "tabs", role: "tablist", "aria-label": "Result"});
  const names = Object.keys(VIEWS).filter(name => name === "whatif" || run.lines[name]);
  const open = name => {
    for (const tab of tabs.children) { tab.setAttribute("aria-selected", tab.dataset.name === name); tab.tabIndex = tab.dataset.name === name ? 0 : -1; }
    const chosen = tabs.children[names.indexOf(name)];
    tabs.scrollLeft = chosen.offsetLeft - tabs.offsetLeft - (tabs.clientWidth - chosen.offsetWidth) / 2;  // on a phone they stand beyond the edge
    panel.setAttribute("aria-labelledby", `tab-${name}`);
    const code = make("div"), lines = make("details", {class: "lines", hidden: true}, make("summary", {}, "The same in the shell and in Python"), code), body = make("div", {}, make("p", {class: "soft"}, "…"));
    context.tell = told => { lines.hidden = false; code.replaceChildren(codeBlocks(told)); };
    if (name !== "learn" && run.lines[name]) context.tell(run.lines[name]);
    panel.replaceChildren(body, lines);
    return trying(() => VIEWS[name][1](body, context));
  };
  context.open = open;
  tabs.append(...names.map(name => make("button", {type: "button", role: "tab", id: `tab-${name}`, "data-name": name, "aria-controls": "panel", onclick: () => open(name), onkeydown: event => {
    const step = {ArrowRight: 1, ArrowLeft: -1}[event.key];
    if (step) { const next = tabs.children[(names.indexOf(name) + step + names.length) % names.length]; next.focus(); next.click(); }
  }}, VIEWS[name][0])));
  place.replaceChildren(make("div", {class: "card"}, make("p", {class: "summary", id: "summary", role: "status"}, told ? told.summary : "A model that was learned elsewhere."), make("ul", {class: "cards"}, cards.map(([value, label, more]) => make("li", {}, make("b", {}, value), make("span", {}, label), make("small", {}, more)))),
    told?.luck ? make("p", {}, told.luck) : null, told?.warnings.length ? make("details", {}, make("summary", {}, told.warnings.length === 1 ? "1 remark on the table" : `${told.warnings.length} remarks on the table`), make("ul", {class: "warnings"}, told.warnings.map(text => make("li", {}, text)))) : null,
    make("div", {class: "row"}, told ? make("a", {class: "button", href: `/runs/${id}/report`, target: "_blank", rel: "noopener"}, "The whole report") : null, make("a", {class: "button", href: `/runs/${id}/model`, download: "learned.model"}, "Download the model"))),
    make("div", {class: "card"}, tabs, panel));
  return open("whatif");
}

// --- what if ------------------------------------------------------------------------------------------------------------

async function whatIf(panel, context) {
  const form = await ask(`/runs/${context.id}/form`, {place: context.place ?? (context.told ? 0 : null)});
  const row = Object.fromEntries(form.fields.map(field => [field.name, field.value]));
  const said = make("div", {id: "answer", role: "status"}), adds = make("div", {id: "adds"}), near = make("div", {id: "nearest"});
  let asking = false, again = false;
  async function update() {
    again = true;
    if (asking) return;
    asking = true;
    while (again) {
      again = false;
      try {
        const found = await ask(`/runs/${context.id}/what-if`, {row});
        said.replaceChildren(...answered(found, form));
        adds.replaceChildren(...added(found, form));
        context.tell(found.lines);
      } catch (error) { said.replaceChildren(make("p", {class: "problem"}, error.message)); }
    }
    asking = false;
  }
  const input = field => {
    const id = `field-${field.name}`, set = value => { row[field.name] = value === "" ? null : value; update(); };
    if (field.tag === "range") {
      const dates = field.drawn === "dates", minutes = field.step < 864e8;
      const read = one => dates ? 1000 * Date.parse(one.length > 10 ? `${one.replace(" ", "T")}Z` : one) : Number(one);
      const write = one => dates ? moment(one, minutes) : field.step === 1 ? Math.round(one) : Number(Number(one).toPrecision(6));
      const told = one => dates ? moment(one, minutes) : digits(one, 4);
      const value = field.value === null ? (field.low + field.high) / 2 : read(field.value), shown = make("span", {class: "shown", "aria-hidden": "true"}, field.value === null ? "missing" : told(value));
      const slider = make("input", {id, type: "range", min: Math.min(field.low, value), max: Math.max(field.high, value), step: "any", value, "aria-valuetext": shown.textContent, oninput: () => take(false)});
      const none = make("input", {type: "checkbox", id: `missing-${field.name}`, "aria-label": `${field.name} is missing`, checked: field.value === null, onchange: () => take(none.checked)});
      const take = missing => {
        const next = missing ? null : write(Number(slider.value));
        none.checked = missing;
        shown.textContent = missing ? "missing" : dates ? next : told(next);
        slider.setAttribute("aria-valuetext", shown.textContent);
        set(next);
      };
      return make("div", {class: "slide"}, make("label", {}, field.name, shown, slider), field.missing || field.value === null ? make("label", {class: "check"}, none, " missing") : null);
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
  const nearest = make("button", {type: "button", id: "find-nearest", onclick: () => trying(async () => { const found = await ask(`/runs/${context.id}/nearest`, {row, columns: context.columns}); near.replaceChildren(make("h3", {}, "The nearest known rows"), rowTable(["Row", form.target, "Distance", ...found.columns], found.rows.map(one => [one.row, one.truth, digits(one.distance, 3), ...one.values])), make("details", {class: "lines"}, make("summary", {}, "The same in Python"), codeBlocks(found.lines))); })}, "Nearest known rows");
  panel.replaceChildren(make("div", {class: "whatif"}, said, make("div", {class: "form"}, make("p", {class: "soft"}, "Move a slider, and see what the model makes of it. The columns that matter most come first."), make("div", {class: "fields"}, fields.map(input)), make("p", {class: "row"}, ...[another, form.tests ? nearest : null].filter(Boolean))), adds), near);
  await update();
}

const bar = (share, style = "") => make("span", {class: "track", "aria-hidden": "true"}, make("i", {style: `left:0;width:${100 * Math.max(share, 0)}%;opacity:.75;${style}`}));

/** The prediction, and how sure it is. */
function answered(found, form) {
  const parts = [make("p", {class: "soft"}, form.target), make("p", {class: "says"}, typeof found.prediction === "number" ? digits(found.prediction, 4) : String(found.prediction))];
  if (found.interval) parts.push(make("p", {}, `between ${digits(found.interval[0], 4)} and ${digits(found.interval[1], 4)} in nine of ten cases`));
  if (found.probabilities) parts.push(make("div", {class: "bars"}, found.probabilities.toSorted((a, b) => b[1] - a[1]).slice(0, 8).map(([name, share]) => [make("span", {}, name), bar(share), make("span", {class: "number"}, percent(share))])));
  return [...parts, make("ul", {class: "warnings"}, found.warnings.map(text => make("li", {}, text)))];
}

/** What every column adds. */
function added(found, form) {
  if (!found.adds) return [make("p", {class: "soft"}, found.no_adds ?? "")];
  const top = found.adds.filter(([, value]) => value).toSorted((a, b) => Math.abs(b[1]) - Math.abs(a[1])).slice(0, 12), reach = Math.max(...top.map(([, value]) => Math.abs(value)), 1e-12);
  return [make("h3", {}, form.classes.length ? `What speaks for ${found.prediction}` : "What every column adds"), make("div", {class: "adds"}, top.map(([name, value]) => [make("span", {}, name), make("span", {class: "track", "aria-hidden": "true"}, make("i", {style: `${value < 0 ? "right" : "left"}:50%;width:${48 * Math.abs(value) / reach}%;background:var(${value < 0 ? "--c5" : "--mark"})`})), make("span", {class: "number"}, `${value < 0 ? "−" : "+"}${digits(Math.abs(value), 3)}`)]))];
}

// --- what matters -------------------------------------------------------------------------------------------------------

async function matter(panel, context) {
  const falls = new Map(context.told.importances.map(one => [one.column, one.fall])), columns = [...falls.keys(), ...context.run.columns.filter(name => !falls.has(name))], reach = Math.max(...falls.values(), 1e-12), drawing = make("div", {id: "effect", role: "status"});
  let chosen = "";  // the column that was asked for last: an answer about another one comes too late
  const open = column => trying(async () => {
    chosen = column;
    for (const button of panel.querySelectorAll("#importances button")) button.setAttribute("aria-pressed", button.textContent === column);
    const found = await ask(`/runs/${context.id}/effect`, {column}), svg = make("svg:svg", {class: "chart", role: "img"});
    if (chosen !== column) return true;
    if (found.none) { drawing.replaceChildren(make("h3", {}, column), make("p", {class: "soft"}, found.none)); return false; }
    const classes = context.told.task === "classification", words = classes ? `average probability of ${found.outputs.join(", ")}` : `average ${found.outputs[0]}`, most = Math.max(...found.mean.flat(), 1e-12);
    const levels = () => found.outputs.length > 1 ? rowTable(["Value", ...found.outputs], found.values.map((value, k) => [value, ...found.mean.map(line => digits(line[k], 3))])) : make("div", {class: "bars"}, found.values.map((value, k) => [make("span", {}, value), bar(found.mean[0][k] / (classes ? 1 : most)), make("span", {class: "number"}, digits(found.mean[0][k], 3))]));
    drawing.replaceChildren(make("h3", {}, column), make("p", {class: "soft"}, `${words}, if every row had this value`), found.drawn === "levels" ? levels() : svg);
    if (found.drawn === "levels") return true;
    const dates = found.drawn === "dates";
    svg.setAttribute("aria-label", `${words}: ${found.values.map((value, k) => `${digits(found.mean[0][k], 3)} at ${dates ? moment(value) : digits(value, 3)}`).join(", ")}`);
    chart(svg, {series: found.outputs.flatMap((name, k) => [{x: found.values, y: found.mean[k], colour: `var(--c${k})`, name: found.outputs.length > 1 ? name : ""}, {x: found.values, y: found.low[k], colour: `var(--c${k})`, dash: "2 4"}, {x: found.values, y: found.high[k], colour: `var(--c${k})`, dash: "2 4"}]), label: column, zero: classes, dates});
    return true;
  });
  panel.replaceChildren(make("div", {class: "two"}, make("div", {}, make("p", {class: "soft"}, `How much worse the ${scoreName(context.told.metric)} gets when a column is shuffled. Choose one to see its effect.`), make("div", {class: "bars tall", id: "importances"}, columns.map(name => [make("button", {type: "button", class: "small", onclick: () => open(name)}, name), bar((falls.get(name) ?? 0) / reach), make("span", {class: "number"}, falls.has(name) ? digits(falls.get(name), 2) : "")]))), drawing));
  for (const name of columns.slice(0, 5)) if (await open(name) !== false) break;
}

// --- rows, thresholds, files --------------------------------------------------------------------------------------------

/** A table whose heads sort; with `choose`, rows can be chosen, and a field shows those with some letters alone. */
function rowTable(head, rows, choose) {
  const body = make("tbody"), all = rows.map((cells, k) => [cells, k]), filter = make("input", {type: "search", placeholder: "show rows with …", "aria-label": "Show rows with", oninput: () => draw()});
  let by = -1, up = true;
  const text = cell => cell === null ? "" : typeof cell === "number" ? digits(cell, 4) : String(cell);
  const size = cell => typeof cell === "number" ? cell : cell === null || cell === "" ? NaN : Number(String(cell).replaceAll(/[\s%,]/g, "").replace("−", "-"));
  const numeric = head.map((_, column) => rows.some(cells => !Number.isNaN(size(cells[column]))) && rows.every(cells => text(cells[column]) === "" || !Number.isNaN(size(cells[column]))));
  /** Numbers by their size, words by their letters, and what is missing last. */
  const order = (a, b) => text(a) === "" || text(b) === "" ? (text(a) === "") - (text(b) === "") : (up ? 1 : -1) * (numeric[by] ? size(a) - size(b) : text(a).localeCompare(text(b), "en", {numeric: true}));
  const cell = (value, column, k) => make("td", {class: numeric[column] ? "number" : cellKind(text(value))}, choose && column === 0 ? make("button", {type: "button", class: "small", "aria-label": `Look at row ${value}`}, text(value)) : text(value));
  function draw() {
    const wanted = filter.value.toLowerCase(), shown = all.filter(([cells]) => cells.some(one => text(one).toLowerCase().includes(wanted)));
    if (by >= 0) shown.sort(([a], [b]) => order(a[by], b[by]));
    body.replaceChildren(...shown.map(([cells, k]) => make("tr", choose ? {class: "chosen", onclick: () => choose(k)} : {}, cells.map((value, column) => cell(value, column, k)))));
  }
  const heads = head.map((name, column) => {
    const place = make("th", {scope: "col", class: numeric[column] ? "number" : ""}, make("button", {type: "button", onclick: () => {
      [by, up] = [column, by !== column || !up];
      for (const one of heads) one.removeAttribute("aria-sort");
      place.setAttribute("aria-sort", up ? "ascending" : "descending");
      draw();
    }}, name));
    return place;
  });
  draw();
  const table = make("div", {class: "wide", tabindex: "0", role: "region", "aria-label": "Rows"}, make("table", {class: "rows", "aria-label": head.slice(0, 3).join(", ")}, make("thead", {}, make("tr", {}, heads)), body));
  return choose ? make("div", {}, make("p", {}, filter), table) : table;
}

async function errorRows(panel, context) {
  const found = await ask(`/runs/${context.id}/errors`, {columns: context.columns}), numbers = context.told.task !== "classification";
  const rows = found.rows.map(one => [one.row, one.truth, one.said, numbers ? digits(one.size, 3) : percent(one.size), ...one.values]);
  const table = rowTable(["Row", "Truth", "Said", numbers ? "Off by" : "How sure", ...found.columns], rows, k => { context.place = found.rows[k].place; context.open("whatif"); document.getElementById("tab-whatif").focus(); });
  panel.replaceChildren(make("p", {}, numbers ? `The largest errors of ${found.of.toLocaleString("en")} test rows.` : `${found.wrong.toLocaleString("en")} of ${found.of.toLocaleString("en")} test rows are wrong; those it was most sure of come first.`, " Choose a row to look at it."), table);
}

async function threshold(panel, context) {
  const {threshold: found} = await ask(`/runs/${context.id}/threshold`, {});
  if (!found) { panel.replaceChildren(make("p", {}, "Thresholds are for two classes with probabilities.")); return; }
  const {counts} = found, cost = {alarm: make("input", {type: "number", min: 0, step: "any", value: 1}), miss: make("input", {type: "number", min: 0, step: "any", value: 1})};
  const slider = make("input", {type: "range", id: "threshold", min: 0, max: counts.thresholds.length - 1, value: found.start, "aria-label": "Threshold"}), shown = make("span", {class: "shown", "aria-hidden": "true"}), cards = make("ul", {class: "cards", "aria-live": "polite"}), svg = make("svg:svg", {class: "chart", role: "img"});
  const price = k => cost.alarm.value * counts.alarms[k] + cost.miss.value * (counts.positives - counts.found[k]);
  const draw = () => {
    const k = Number(slider.value), hits = counts.found[k], alarms = counts.alarms[k], prices = counts.thresholds.map((_, at) => price(at));
    shown.textContent = counts.thresholds[k].toFixed(3);
    context.tell({...context.run.lines.threshold, python: context.run.lines.threshold.python.replace(">= 0.5", `>= ${counts.thresholds[k]}`)});
    slider.setAttribute("aria-valuetext", shown.textContent);
    const entries = [[`${hits} of ${counts.positives}`, "found"], [counts.positives - hits, "missed"], [alarms, "false alarms"], [hits + alarms ? percent(hits / (hits + alarms)) : "–", "of those named are right"], [digits(price(k), 4), "cost of the mistakes"]];
    cards.replaceChildren(...entries.map(([value, label]) => make("li", {}, make("b", {}, String(value)), make("span", {}, label))));
    chart(svg, {series: [{x: counts.thresholds, y: prices, colour: "var(--c5)"}], at: counts.thresholds[k], label: "threshold", yLabel: "cost of the mistakes"});
    const least = prices.indexOf(Math.min(...prices));
    svg.setAttribute("aria-label", `Cost of the mistakes over the threshold; least, ${digits(prices[least], 4)}, at ${counts.thresholds[least].toFixed(3)}`);
  };
  const cheapest = () => { const prices = counts.thresholds.map((_, k) => price(k)); slider.value = prices.indexOf(Math.min(...prices)); draw(); };
  for (const one of [slider, cost.alarm, cost.miss]) one.addEventListener("input", draw);
  panel.replaceChildren(make("p", {}, `A row is called ${found.positive} if its probability of it is at least the threshold.`), make("div", {class: "row costs"}, make("label", {}, "A false alarm costs ", cost.alarm), make("label", {}, "A missed one costs ", cost.miss), make("button", {type: "button", class: "main", id: "cheapest", onclick: cheapest}, "Take the cheapest threshold")), make("p", {class: "slide"}, "Threshold", shown, slider), cards, svg, make("p", {class: "soft"}, "Counted on the test part: a threshold that is chosen here has seen it, so expect a little less of new rows."));
  draw();
}

async function files(panel, context) {
  const said = make("div", {id: "scored", role: "status"});
  const predict = file => trying(async () => {
    const url = URL.createObjectURL(await send(`/runs/${context.id}/file/predict`, file)), name = `${file.name.split(".")[0]}.predictions.csv`;
    make("a", {href: url, download: name}).click();
    said.replaceChildren(make("p", {id: "predicted"}, `Predictions were downloaded as ${name}. `, make("a", {href: url, download: name}, "Once more")));
  });
  const scoreFile = file => trying(async () => {
    const found = await send(`/runs/${context.id}/file/score`, file);
    said.replaceChildren(make("h3", {}, `${found.rows.toLocaleString("en")} rows`), rowTable(["Score", "Now", "95 % interval", "In the test"], found.scores.map(one => [scoreName(one.name), digits(one.value, 4), `${digits(one.low, 3)} to ${digits(one.high, 3)}`, digits(one.before?.value, 4)])), make("h3", {}, found.drift.length ? "Columns that have moved" : "The columns look as before."), make("ul", {}, found.drift.map(one => make("li", {}, one.what))), make("ul", {class: "warnings"}, found.warnings.map(text => make("li", {}, text))));
  });
  const drop = (id, title, words, work) => {
    const input = make("input", {type: "file", id, "aria-label": title, onchange: event => event.target.files[0] && work(event.target.files[0])});
    return make("div", {class: "drop", "data-drop": id, ondrop: event => { event.preventDefault(); if (event.dataTransfer.files[0]) work(event.dataTransfer.files[0]); }}, make("p", {}, make("b", {}, title)), make("p", {class: "soft"}, words), make("button", {type: "button", "aria-label": `${title}: choose a file`, onclick: () => input.click()}, "Choose a file"), input);
  };
  panel.replaceChildren(make("div", {class: "two"}, drop("predict-file", "Predict a file", "Drop rows without the answer: you get them back with predictions.", predict), drop("score-file", "Score a file", "Drop rows with the answer: see how the model does on them, and what has moved.", scoreFile)), said);
}

function sameElsewhere(panel, context) {
  const {lines} = context.run, parts = [["Learn it", lines.learn], ["Predict and score files", lines.files]];
  panel.replaceChildren(...parts.flatMap(([title, one]) => [make("h2", {}, title), codeBlocks(one)]));
}

// --- two runs -----------------------------------------------------------------------------------------------------------

export async function compareView(place, pair) {
  const ids = pair.split(","), runs = await Promise.all(ids.map(id => ask(`/runs/${id}`))), found = await ask("/compare", {runs: ids});
  const share = found.what.startsWith("share"), told = value => share ? percent(value) : digits(value, 3), sure = found.low > 0 || found.high < 0;
  const side = (run, k) => make("div", {class: "card"}, make("h3", {}, make("a", {href: `#run=${run.id}`}, run.name)), make("p", {class: "says"}, told(found.errors[k])), make("p", {class: "soft"}, found.what), make("p", {}, run.summary), make("p", {class: "soft"}, `${["The first", "The second"][k]}: ${run.winner.replaceAll("_", " ")}, started ${run.created.slice(0, 16).replace("T", " ")} UTC`));
  const reach = Math.max(Math.abs(found.low), Math.abs(found.high), 1e-12), words = `difference ${told(found.difference)}, 95 % interval ${told(found.low)} to ${told(found.high)}`;
  const verdict = found.difference === 0 ? "both err alike" : `the ${found.difference > 0 ? "second" : "first"} errs less, by ${told(Math.abs(found.difference))}`;
  place.replaceChildren(crumbs(), make("h1", {}, "Two runs side by side"), make("div", {class: "two"}, runs.map(side)),
    make("div", {class: "card", id: "difference"}, make("p", {class: "summary"}, `On the ${found.rows.toLocaleString("en")} test rows that both have, ${verdict}. ${found.difference === 0 ? "" : sure ? "That is more than chance." : "That may be chance."}`), interval(found.difference, [found.low, found.high], [-reach, reach], words), make("p", {class: "row soft ends"}, make("span", {}, "← the first is better"), make("span", {class: "number"}, words), make("span", {}, "the second is better →"))),
    make("div", {class: "card elsewhere"}, make("h2", {}, "The same elsewhere"), codeBlocks(found.lines)));
}
