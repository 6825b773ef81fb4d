// One table: its columns, what is to be predicted, and what `learn` is to do.
import {ask, digits, make} from "./common.js";
import {codeBlock, trying} from "./workbench.js";

const MACHINES = "centroid, knn, logistic, svm, tree, forest, boosting";

export const spark = bars => {
  const top = Math.max(...bars, 1), d = bars.map((value, k) => `M${k} 20v-${(20 * value / top).toFixed(1)}h.9V20z`).join("");
  return make("svg:svg", {class: "spark", viewBox: `0 0 ${Math.max(bars.length, 1)} 20`, preserveAspectRatio: "none", "aria-hidden": "true"}, make("svg:path", {d}));
};

export async function tableView(place, name) {
  const types = {}, options = {};
  let table = await ask("/table", {name, types});
  let asked = 0;
  const title = make("h1", {}, name), columns = make("ul", {class: "columns", "aria-label": "Columns"}), notes = make("div", {id: "notes"}), code = make("div"), learn = make("button", {type: "button", class: "main", id: "learn", onclick: start}, "Learn");
  const target = make("select", {id: "target", onchange: () => { options.target = target.value || undefined; drawColumns(); update(); }});
  options.target = table.target ?? undefined;

  function drawTargets() {
    target.replaceChildren(make("option", {value: ""}, "choose a column"), ...table.columns.filter(column => column.target).map(column => make("option", {value: column.name, selected: column.name === options.target}, column.name)));
  }

  function drawColumns() {
    columns.replaceChildren(...table.columns.map(column => {
      const kind = make("select", {"aria-label": `What ${column.name} holds`, onchange: async () => { types[column.name] = kind.value; await trying(async () => { table = await ask("/table", {name, types}); }); drawTargets(); drawColumns(); update(); }},
        [...new Set([column.kind, ...table.kinds])].map(one => make("option", {value: one, selected: one === column.kind, disabled: !table.kinds.includes(one)}, one)));
      const chosen = column.name === options.target;
      const role = chosen ? make("span", {class: "badge"}, "target") : make("button", {type: "button", disabled: !column.target, "aria-label": `Predict ${column.name}`, onclick: () => { options.target = column.name; target.value = column.name; drawColumns(); update(); }}, "predict");
      const missing = column.missing ? make("span", {}, make("span", {class: "meter", style: `--share:${100 * column.missing}%`}), `${digits(100 * column.missing, 2)} % missing`) : null;
      return make("li", {class: chosen ? "target" : ""}, make("b", {class: column.used ? "" : "off"}, column.name), kind, spark(column.bars), make("span", {class: "soft"}, make("span", {class: "clamp"}, column.range || column.examples.join(", ")), `${column.distinct.toLocaleString("en")} different `, missing), role,
        column.notes.length ? make("span", {class: "notes"}, column.notes.join(" ")) : null);
    }));
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
      code.replaceChildren(codeBlock("In the shell", found.lines.shell), codeBlock("In Python", found.lines.python));
    } catch (error) { if (number === asked) { notes.replaceChildren(make("p", {class: "problem"}, error.message)); code.replaceChildren(); } }
  }

  async function start() {
    learn.disabled = true;
    await trying(async () => { location.hash = `run=${(await ask("/learn", {name, options: asOptions()})).id}`; });
    learn.disabled = false;
  }

  const column = (key, words) => make("label", {}, words, make("select", {onchange: event => { options[key] = event.target.value || undefined; update(); }}, make("option", {value: ""}, "no"), table.columns.map(one => make("option", {value: one.name}, one.name))));
  const field = (key, words, hint, read) => make("label", {}, words, make("input", {id: `option-${key}`, type: "text", placeholder: hint, onchange: event => { const value = event.target.value.trim(); options[key] = value ? read(value) : undefined; update(); }}));
  const list = text => text.split(",").map(part => part.trim()).filter(Boolean);
  const panel = make("div", {class: "card sticky options"}, make("h2", {}, "Learn"), make("label", {}, "Predict", target), field("time", "Seconds it may take", "as long as it needs", Number), field("machines", "Machines that compete", `all, or some of ${MACHINES}`, list),
    make("details", {}, make("summary", {}, "More"), field("metric", "Score that decides", "accuracy, auc, f1, rmse, mae …", text => text), field("test", "Share held out for the test", "0.2", Number), field("folds", "Folds", "5, or 3 of many rows", Number), field("drop", "Columns to leave out", "id, name", list), column("groups", "Keep the rows of one value together"), column("time_order", "A column orders the rows in time"),
      make("label", {}, make("input", {type: "checkbox", onchange: event => { options.balance = event.target.checked || undefined; update(); }}), " all classes count alike"), field("seed", "Seed", "0", Number)), notes, learn);
  const head = make("details", {class: "card"}, make("summary", {}, `The first ${table.head.length} rows`), make("div", {class: "wide"}, make("table", {}, make("thead", {}, make("tr", {}, table.columns.map(one => make("th", {scope: "col"}, one.name)))), make("tbody", {}, table.head.map(row => make("tr", {}, row.map(cell => make("td", {}, cell))))))));
  drawTargets();
  drawColumns();
  place.replaceChildren(make("p", {class: "crumbs"}, make("a", {href: "#"}, "All tables and runs")), title, make("p", {class: "soft"}, `${table.rows.toLocaleString("en")} rows, ${table.width} columns${table.described < table.rows ? `, described by ${table.described.toLocaleString("en")} of the rows` : ""}. Is a type wrong? Choose another.`),
    make("div", {class: "split"}, make("div", {class: "stack"}, make("div", {class: "card"}, columns), head, make("div", {class: "card"}, make("h2", {}, "The same elsewhere"), code)), panel));
  await update();
}
