// Tables are sorted by a click on a heading and filtered by what is typed above them; without a script, all of it is there to read.
"use strict";
const value = cell => {
  const key = cell.dataset.key ?? cell.textContent.trim().replace(/,(?=\d{3})/g, "");
  return key !== "" && !isNaN(key) ? Number(key) : key;
};
const compare = (one, other) => typeof one === typeof other
  ? (typeof one === "number" ? one - other : one.localeCompare(other))
  : typeof one === "number" ? -1 : 1;

for (const table of document.querySelectorAll("table.sorted")) {
  const body = table.tBodies[0], heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const order = head.ariaSort === "ascending" ? -1 : 1;
      heads.forEach(one => one.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", order > 0 ? "ascending" : "descending");
      body.append(...[...body.rows].sort((one, other) => order * compare(value(one.cells[column]), value(other.cells[column]))));
    });
  });
  if (table.parentElement.classList.contains("long")) {
    const label = document.createElement("label"), input = document.createElement("input");
    label.className = "filter soft";
    input.type = "search";
    input.addEventListener("input", () => {
      const wanted = input.value.toLowerCase();
      for (const row of body.rows) row.hidden = !row.textContent.toLowerCase().includes(wanted);
    });
    label.append("Show rows with ", input);
    table.parentElement.before(label);
  }
}

const chooser = document.getElementById("chooser");
if (chooser) {
  const counts = JSON.parse(document.getElementById("counts").textContent);
  const part = name => document.getElementById(name);
  const price = place => part("alarm-cost").value * counts.alarms[place] + part("miss-cost").value * (counts.positives - counts.found[place]);
  const share = (some, all) => all ? `${(100 * some / all).toFixed(1)} %` : "-";
  const show = () => {
    const place = Number(part("slider").value), found = counts.found[place], alarms = counts.alarms[place];
    const all = counts.positives + counts.negatives;
    part("threshold").textContent = counts.thresholds[place].toFixed(3);
    part("hits").textContent = `${found} of ${counts.positives}`;
    part("misses").textContent = counts.positives - found;
    part("alarms").textContent = alarms;
    part("cost").textContent = price(place).toLocaleString("en", {maximumFractionDigits: 2});
    part("chosen").textContent = `Recall ${share(found, counts.positives)}, precision ${share(found, found + alarms)}, `
      + `right in ${share(found + counts.negatives - alarms, all)} of ${all} test rows.`;
  };
  const cheapest = () => {
    const prices = counts.thresholds.map((_, place) => price(place));
    part("slider").value = prices.indexOf(Math.min(...prices));
    show();
  };
  part("cheapest").addEventListener("click", cheapest);
  for (const name of ["slider", "alarm-cost", "miss-cost"]) part(name).addEventListener("input", show);
  chooser.hidden = false;
  show();
}
