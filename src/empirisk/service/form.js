const form = document.getElementById("row"), out = document.getElementById("answer");
form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const row = {};
  for (const field of form.elements) if (field.name) row[field.name] = field.value === "" ? null : field.value;
  out.textContent = "...";
  try {
    const reply = await fetch("predict?explain=true", {
      method: "POST", headers: {"Content-Type": "application/json"}, body: JSON.stringify(row)});
    const answer = await reply.json();
    if (!reply.ok) {
      const problems = (answer.problems || []).map((p) => `${p.field}: ${p.problem}`);
      out.textContent = [answer.error, ...problems].join("\n");
      return;
    }
    const shares = Object.entries(answer.probabilities || {}).sort((a, b) => b[1] - a[1]);
    const lines = shares.map(([name, p]) => `  ${(100 * p).toFixed(1)} %  ${name}`);
    const told = (value) => Number(value.toPrecision(4)).toLocaleString();
    const { interval } = answer;
    if (interval) lines.push(`  between ${told(interval.low)} and ${told(interval.high)} in ${100 * interval.coverage} % of cases`);
    if (answer.because) lines.push(`  reasons ${answer.because}`);
    lines.push(...(answer.warnings || []).map((warning) => `! ${warning}`));
    const said = interval ? told(answer.prediction) : answer.prediction;  // a class may be a number too
    out.textContent = [`${form.dataset.target}: ${said}`, ...lines].join("\n");
  } catch (error) { out.textContent = String(error); }
});
document.getElementById("example").addEventListener("click", () => {
  for (const field of form.elements) if (field.name) field.value = field.dataset.example;
});

const chosen = document.getElementById("file"), place = document.getElementById("drop");
const said = document.getElementById("said");
async function predictFile(file) {
  if (!file) return;
  said.textContent = "...";
  try {
    const reply = await fetch(`table?name=${encodeURIComponent(file.name)}`, {method: "POST", body: file});
    if (!reply.ok) { said.textContent = (await reply.json()).error; return; }
    const link = document.createElement("a");
    link.href = URL.createObjectURL(await reply.blob());
    link.download = `${file.name.replace(/\.[^.]*$/, "")}.predicted.csv`;
    link.textContent = `Save ${link.download}`;
    said.replaceChildren("Predicted. ", link);
  } catch (error) { said.textContent = String(error); }
}
chosen.addEventListener("change", () => predictFile(chosen.files[0]));
for (const kind of ["dragover", "drop"]) place.addEventListener(kind, (event) => {
  event.preventDefault();
  if (kind === "drop") predictFile(event.dataTransfer.files[0]);
});
