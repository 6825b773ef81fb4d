// The workbench: tables and runs, a table and its options, a run while it goes on and when it is over. The address says which.
import {ask, byId, copy, make, send, toast} from "./common.js";
import {compareView, runView} from "./run.js";
import {tableView} from "./table.js";

const VIEWS = {table: tableView, run: runView, compare: compareView};
const HOME = document.title;
let leave = () => {}, visited = false;

export function problem(sentence) {
  byId("problem").textContent = sentence;
  byId("problem").hidden = !sentence;
  if (sentence) byId("problem").scrollIntoView({block: "nearest"});
}

/** Do something that may fail; a failure is a sentence on the page. */
export async function trying(work) {
  try { problem(""); return await work(); } catch (error) { problem(error.message); return undefined; }
}

/** Lines to be copied: what was done here, in the shell and in Python. */
export const codeBlocks = lines => make("div", {class: "two"}, [["In the shell", lines.shell], ["In Python", lines.python]].filter(([, text]) => text).map(([title, text]) => make("div", {}, make("div", {class: "row"}, make("h3", {}, title), make("span", {class: "grow"}), make("button", {type: "button", class: "small", "aria-label": `Copy the lines ${title.toLowerCase()}`, onclick: () => copy(text, "Copied.")}, "Copy")), make("pre", {class: "code", tabindex: "0"}, make("code", {}, text)))));
export const crumbs = () => make("p", {class: "crumbs"}, make("a", {href: "#"}, "All tables and runs"));

async function show() {
  leave();
  leave = () => {};
  const [name, value] = [...new URLSearchParams(location.hash.slice(1))][0] ?? [];
  const place = byId("view");
  const found = await trying(() => name in VIEWS ? VIEWS[name](place, value) : startView(place));
  byId("toast").hidden = true;  // of the view before
  if (typeof found === "function") leave = found;
  if (name in VIEWS && !byId("problem").hidden) place.replaceChildren(crumbs());  // no view, and a way back
  const title = place.querySelector("h1");
  document.title = name in VIEWS && title ? `${title.textContent} · Empirisk studio` : HOME;
  // Who hears the page begins at the title of the new view; who opens the page begins at its top.
  title?.setAttribute("tabindex", "-1");
  if (visited) title?.focus();
  visited = true;
}

async function startView(place) {
  const {tables, runs, folder} = await ask("/list");
  const chooser = make("input", {type: "file", id: "file", "aria-label": "Choose a table", onchange: event => keep(event.target.files[0])});
  const tile = table => make("li", {class: "card"}, make("a", {href: `#table=${encodeURIComponent(table.name)}`}, make("b", {}, table.name), make("span", {class: "soft"}, table.about)), table.kind === "own" ? changes(table.name, "its rows; runs keep their models", body => ask("/table/do", {...body, name: table.name})) : null);
  const own = tables.filter(table => table.kind !== "bundled"), bundled = tables.filter(table => table.kind === "bundled");
  place.replaceChildren(...[
    make("div", {class: "hero"}, make("h1", {}, "From a table to a tested model"), make("p", {class: "soft"}, "Nothing leaves this machine."),
      make("div", {class: "drop"}, make("p", {}, "Drop a CSV, Parquet, Arrow, JSON-lines or XLSX file here"), make("button", {type: "button", class: "main large", id: "choose", onclick: () => chooser.click()}, "Choose a file"), chooser)),
    runs.length ? make("h2", {}, "Runs") : null, runs.length ? runList(runs) : null,
    own.length ? make("h2", {}, "Your tables") : null, own.length ? make("ul", {class: "tiles", id: "own"}, own.map(tile)) : null,
    make("h2", {}, "Tables to try"), make("ul", {class: "tiles", id: "bundled"}, bundled.map(tile)),
    make("p", {class: "soft"}, `Tables and runs are kept in ${folder}`)].filter(Boolean));
}

/** Buttons that rename and delete; `send` carries it out. */
function changes(name, lost, send) {
  const act = body => trying(async () => { await send(body); visited = false; await show(); });
  return make("div", {class: "row"}, make("button", {type: "button", class: "small", "aria-label": `Rename ${name}`, onclick: () => { const next = prompt(`Another name for ${name}`, name); if (next && next !== name) act({do: "rename", name: next, to: next}); }}, "Rename"),
    make("button", {type: "button", class: "small danger", "aria-label": `Delete ${name}`, onclick: () => { if (confirm(`Delete ${name} and ${lost}?`)) act({do: "delete"}); }}, "Delete"));
}

function runList(runs) {
  const chosen = new Set(), button = make("button", {type: "button", id: "compare", disabled: true, onclick: () => { location.hash = `compare=${[...chosen].join(",")}`; }}, "Compare two runs");
  const rows = runs.map(run => {
    const box = make("input", {type: "checkbox", "aria-label": `Compare ${run.name}`, disabled: run.state !== "done"});
    box.addEventListener("change", () => { box.checked ? chosen.add(run.id) : chosen.delete(run.id); button.disabled = chosen.size !== 2; });
    return make("tr", {}, make("td", {}, box), make("th", {scope: "row"}, make("a", {href: `#run=${run.id}`}, run.name), make("span", {class: "soft clamp"}, run.summary ?? "")), make("td", {}, make("span", {class: run.state === "done" || run.state === "running" ? "badge" : "badge off"}, run.state)),
      make("td", {class: "extra soft"}, run.created.slice(0, 16).replace("T", " ")), make("td", {}, changes(run.name, "its model and report", body => ask(`/runs/${run.id}/do`, body))));
  });
  const heads = [["Compare", "hidden"], ["Run", ""], ["State", ""], ["Started (UTC)", "extra"], ["Changes", "hidden"]];
  return make("div", {class: "card"}, make("div", {class: "wide"}, make("table", {class: "runs", "aria-label": "Runs"}, make("thead", {}, make("tr", {}, heads.map(([text, kind]) => make("th", {scope: "col", class: kind === "extra" ? kind : ""}, make("span", {class: kind === "hidden" ? kind : ""}, text))))), make("tbody", {}, rows))), make("p", {}, button));
}

/** Send a dropped file, and open its table. */
async function keep(file) {
  if (!file) return;
  toast(`Reading ${file.name} …`);
  await trying(async () => {
    const {name} = await send("/upload", file);
    location.hash = `table=${encodeURIComponent(name)}`;
  });
}

addEventListener("dragover", event => { event.preventDefault(); byId("drop-cover").hidden = Boolean(event.target.closest?.("[data-drop]")); });
addEventListener("dragleave", event => { if (!event.relatedTarget) byId("drop-cover").hidden = true; });
addEventListener("drop", event => { event.preventDefault(); byId("drop-cover").hidden = true; if (!event.target.closest?.("[data-drop]")) keep(event.dataTransfer.files[0]); });
addEventListener("hashchange", show);
show();
