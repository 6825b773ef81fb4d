// One table: its columns, what is to be predicted, and what `learn` is to do.
import {ask, cellKind, digits, make} from "./common.js";
import {codeBlocks, crumbs, trying} from "./workbench.js";

export const spark = bars => {
  const top = Math.max(...bars, 1), d = bars.map((value, k) => `M${k} 20v-${(20 * value / top).toFixed(1)}h.9V20z`).join("");
  return make("svg:svg", {class: "spark", viewBox: `0 0 ${Math.max(bars.length, 1)} 20`, preserveAspectRatio: "none", "aria-hidden": "true"}, make("svg:path", {d}));
};
const option = ([value, words]) => make("option", {value}, words);

export async function tableView(place, name) {
  const types = {}, options = {};
  let table = await ask("/table", {name, types}), asked = 0;
  const words = table.options, columns = make("ul", {class: "columns", "aria-label": "Columns"}), notes = make("div", {id: "notes", role: "status"}), code = make("div", {class: "stack"});
  const learn = make("button", {type: "button", class: "main large", id: "learn", onclick: start}, "Learn");
  const set = (key, value) => { options[key] = value || undefined; update(); };
  const offered = make("datalist", {id: "names"}), whole = table.columns.length === table.width;
  /** A column to choose: from a menu, or, of a table with more columns than are shown, by a part of its name. */
  const chooser = (attributes, none) => whole ? make("select", attributes) : make("input", {...attributes, type: "text", list: "names", autocomplete: "off", placeholder: `${none}: type a part of its name`, onfocus: suggest, oninput: suggest});
  const suggest = ({target: {value: part}, target: typed}) => trying(async () => {
    const found = await ask("/table/names", {name, part});
    if (typed.value === part) offered.replaceChildren(...found.map(one => option([one, one])));
  });
  const target = chooser({id: "target", onchange: () => choose(target.value)}, "choose a column");
  options.target = table.target ?? undefined;

  function choose(column) {
    target.value = column;
    drawColumns();
    set("target", column);
  }

  function drawTargets() {
    if (whole) target.replaceChildren(option(["", "choose a column"]), ...table.columns.filter(column => column.target).map(column => option([column.name, column.name])));
    target.value = options.target ?? "";
  }

  function drawColumns() {
    columns.replaceChildren(...table.columns.map(column => {
      const kinds = [...new Set([column.kind, ...table.kinds])], chosen = column.name === target.value;
      const kind = make("select", {"aria-label": `Type of ${column.name}`, onchange: () => correct(column.name, kind.value)}, kinds.map(one => make("option", {value: one, selected: one === column.kind, disabled: !table.kinds.includes(one)}, one)));
      const role = chosen ? make("span", {class: "badge"}, "target") : make("button", {type: "button", class: "small", disabled: !column.target, "aria-label": `Predict ${column.name}`, onclick: () => { choose(column.name); target.focus(); }}, "predict");
      const missing = column.missing ? make("span", {class: "missing"}, make("span", {class: "meter", style: `--share:${100 * column.missing}%`}), `${digits(100 * column.missing, 2)} % missing`) : null;
      return make("li", {class: chosen ? "target" : ""}, make("b", {class: column.used ? "" : "off"}, column.name), kind, spark(column.bars), make("span", {class: "soft"}, make("span", {class: "clamp"}, column.range || column.examples.join(", ")), make("span", {class: "clamp"}, `${column.distinct.toLocaleString("en")} different`), missing), role,
        column.notes.length ? make("span", {class: "notes"}, column.notes.join(" ")) : null);
    }));
  }

  async function correct(column, kind) {
    types[column] = kind;
    await trying(async () => { table = await ask("/table", {name, types}); });
    drawTargets();
    drawColumns();
    columns.querySelector(`select[aria-label="Type of ${CSS.escape(column)}"]`)?.focus();
    update();
  }

  const asOptions = () => ({...options, ...(Object.keys(types).length ? {types} : {})});

  /** What `learn` would make of it; only the answer to the last question counts. */
  async function update() {
    learn.disabled = !options.target;
    const number = ++asked;
    if (!options.target) { notes.replaceChildren(make("p", {class: "soft"}, "Choose the column to predict.")); code.replaceChildren(); return; }
    try {
      const found = await ask("/table/notes", {name, options: asOptions()});
      if (number !== asked) return;
      const what = found.classes ? `${found.classes} classes` : "a number";
      notes.replaceChildren(make("p", {}, `${options.target}: ${what} (${found.reason}). ${found.folds} folds; a part of the rows is held out for one honest test.`), make("ul", {class: "warnings"}, found.warnings.map(warning => make("li", {}, warning))));
      offer(found);
      code.replaceChildren(make("h2", {}, "The same elsewhere"), codeBlocks(found.lines));
    } catch (error) { if (number === asked) { notes.replaceChildren(make("p", {class: "problem"}, error.message)); code.replaceChildren(); } }
  }

  const metric = make("select", {onchange: () => set("metric", metric.value)}), machines = make("div", {class: "checks", id: "machines"}), count = make("span", {}, "all");
  let task = "";
  /** Scores and machines, which differ for classes and numbers. */
  function offer(found) {
    if (task === found.task) return;
    task = found.task;
    options.metric = options.machines = undefined;
    metric.replaceChildren(...found.metrics.map(option));
    count.textContent = "all";
    machines.replaceChildren(...found.machines.map(([value, title]) => make("label", {}, make("input", {type: "checkbox", value, checked: true, onchange: () => {
      const boxes = [...machines.querySelectorAll("input")], chosen = boxes.filter(box => box.checked).map(box => box.value);
      count.textContent = chosen.length === boxes.length ? "all" : `${chosen.length} of ${boxes.length}`;
      set("machines", chosen.length && chosen.length < boxes.length ? chosen : null);
    }}), ` ${title}`)));
  }

  async function start() {
    learn.disabled = true;
    await trying(async () => { location.hash = `run=${(await ask("/learn", {name, options: asOptions()})).id}`; });
    learn.disabled = false;
  }

  const list = text => text.split(",").map(part => part.trim()).filter(Boolean);
  const field = (key, hint, read) => make("label", {}, words[key], make("input", {id: `option-${key}`, type: read === Number ? "number" : "text", min: 0, step: "any", placeholder: hint, onchange: event => set(key, event.target.value && read(event.target.value))}));
  const column = key => {
    const chosen = chooser({onchange: () => set(key, chosen.value)}, "no column");
    if (whole) chosen.replaceChildren(option(["", "no column"]), ...table.columns.map(one => option([one.name, one.name])));
    return make("label", {}, words[key], chosen);
  };
  const panel = make("div", {class: "card sticky options"}, make("h2", {}, "Learn"), make("label", {}, words.target, target), offered, field("time", "as long as it needs", Number), notes,
    make("details", {}, make("summary", {}, `${words.machines}: `, count), machines),
    make("details", {}, make("summary", {}, "More"), make("label", {}, words.metric, metric), field("drop", "id, name", list), field("missing", "ERR, -999", list), column("groups"), column("time_order"), field("test", "0.2", Number), field("folds", "5, or 3 of many rows", Number),
      make("label", {class: "check"}, make("input", {type: "checkbox", onchange: event => set("balance", event.target.checked)}), ` ${words.balance}`), field("seed", "0", Number)), make("div", {class: "foot"}, learn));
  const head = make("details", {class: "card"}, make("summary", {}, `The first ${table.head.length} rows`), make("div", {class: "wide", tabindex: "0", role: "region", "aria-label": "The first rows"}, make("table", {class: "rows", "aria-label": "The first rows"}, make("thead", {}, make("tr", {}, table.columns.map(one => make("th", {scope: "col"}, one.name)))), make("tbody", {}, table.head.map(row => make("tr", {}, row.map(cell => make("td", {class: cellKind(cell)}, cell))))))));
  drawTargets();
  drawColumns();
  place.replaceChildren(crumbs(), make("h1", {}, name), make("p", {class: "soft"}, `${table.rows.toLocaleString("en")} rows, ${table.width} columns${table.described < table.rows ? `, described by ${table.described.toLocaleString("en")} of the rows` : ""}${table.columns.length < table.width ? `; ${table.columns.length} of the columns are shown` : ""}. Is a type wrong? Choose another.`),
    make("div", {class: "split"}, make("div", {class: "stack"}, make("div", {class: "card"}, columns), head), panel, make("div", {class: "card elsewhere"}, code)));
  await update();
}
