// The workbench: tables and runs, a table and its options, a run while it goes on and when it is over. The address says which.
import {ask, byId, copy, make, toast} from "./common.js";
import {compareView, runView} from "./run.js";
import {tableView} from "./table.js";

const VIEWS = {table: tableView, run: runView, compare: compareView};
let leave = () => {};

export function problem(sentence) {
  byId("problem").textContent = sentence;
  byId("problem").hidden = !sentence;
  if (sentence) byId("problem").scrollIntoView({block: "nearest"});
}

/** Do something that may fail; a failure is a sentence on the page. */
export async function trying(work) {
  try { problem(""); return await work(); } catch (error) { problem(error.message); return undefined; }
}

/** Lines to be copied: what was done here, in the shell or in Python. */
export const codeBlock = (title, text) => make("div", {}, make("h3", {}, title), make("pre", {class: "code", tabindex: "0"}, make("code", {}, text)), make("button", {type: "button", onclick: () => copy(text, "Copied.")}, "Copy"));

async function show() {
  leave();
  leave = () => {};
  const [name, value] = [...new URLSearchParams(location.hash.slice(1))][0] ?? [];
  const place = byId("view");
  const found = await trying(() => name in VIEWS ? VIEWS[name](place, value) : startView(place));
  if (typeof found === "function") leave = found;
  place.querySelector("h1")?.setAttribute("tabindex", "-1");
}

async function startView(place) {
  const {tables, runs, folder} = await ask("/list");
  const chooser = make("input", {type: "file", id: "file", "aria-label": "Choose a table", onchange: event => keep(event.target.files[0])});
  const tile = table => make("li", {}, make("a", {class: "card", href: `#table=${encodeURIComponent(table.name)}`}, make("b", {}, table.name), make("span", {class: "soft"}, table.about)));
  const own = tables.filter(table => table.kind === "own"), bundled = tables.filter(table => table.kind === "bundled");
  place.replaceChildren(...[
    make("div", {class: "hero"}, make("h1", {}, "From a table to a tested model"), make("p", {class: "soft"}, "Nothing leaves this machine."),
      make("div", {class: "drop"}, make("p", {}, "Drop a CSV, Parquet, Arrow, JSON-lines or XLSX file here"), make("button", {type: "button", class: "main", id: "choose", onclick: () => chooser.click()}, "Choose a file"), chooser)),
    own.length ? make("h2", {}, "Your tables") : null, own.length ? make("ul", {class: "tiles"}, own.map(tile)) : null,
    make("h2", {}, "Tables to try"), make("ul", {class: "tiles", id: "bundled"}, bundled.map(tile)),
    runs.length ? make("h2", {}, "Runs") : null, runs.length ? runList(runs) : null,
    make("p", {class: "soft"}, `Tables and runs are kept in ${folder}`)].filter(Boolean));
}

function runList(runs) {
  const chosen = new Set(), button = make("button", {type: "button", disabled: true, onclick: () => { location.hash = `compare=${[...chosen].join(",")}`; }}, "Compare two runs");
  const rows = runs.map(run => {
    const box = make("input", {type: "checkbox", "aria-label": `Compare ${run.name}`, disabled: run.state !== "done"});
    box.addEventListener("change", () => { box.checked ? chosen.add(run.id) : chosen.delete(run.id); button.disabled = chosen.size !== 2; });
    const act = body => trying(async () => { await ask(`/runs/${run.id}/do`, body); await show(); });
    return make("tr", {}, make("td", {}, box), make("th", {scope: "row"}, make("a", {href: `#run=${run.id}`}, run.name)), make("td", {}, make("span", {class: run.state === "done" || run.state === "running" ? "badge" : "badge off"}, run.state)),
      make("td", {class: "extra"}, run.summary ?? ""), make("td", {class: "extra"}, run.created.slice(0, 16).replace("T", " ")),
      make("td", {}, make("div", {class: "row"}, make("button", {type: "button", onclick: () => { const name = prompt("Another name for this run", run.name); if (name) act({do: "rename", name}); }}, "Rename"),
        make("button", {type: "button", class: "danger", onclick: () => { if (confirm(`Delete ${run.name}, its model and its report?`)) act({do: "delete"}); }}, "Delete"))));
  });
  return make("div", {class: "card"}, make("div", {class: "wide"}, make("table", {"aria-label": "Runs"}, make("thead", {}, make("tr", {}, ["", "Run", "State"].map(text => make("th", {scope: "col"}, text)), ["Result", "Started (UTC)"].map(text => make("th", {scope: "col", class: "extra"}, text)), make("th", {scope: "col"}, ""))), make("tbody", {}, rows))), make("p", {}, button));
}

/** Send a dropped file, and open its table. */
async function keep(file) {
  if (!file) return;
  toast(`Reading ${file.name} …`);
  await trying(async () => {
    const {name} = await ask(`/upload?name=${encodeURIComponent(file.name)}`, undefined, {method: "POST", body: file});
    location.hash = `table=${encodeURIComponent(name)}`;
  });
}

addEventListener("dragover", event => { event.preventDefault(); byId("drop-cover").hidden = Boolean(event.target.closest?.("[data-drop]")); });
addEventListener("dragleave", event => { if (!event.relatedTarget) byId("drop-cover").hidden = true; });
addEventListener("drop", event => { event.preventDefault(); byId("drop-cover").hidden = true; if (!event.target.closest?.("[data-drop]")) keep(event.dataTransfer.files[0]); });
addEventListener("hashchange", show);
show();
