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
    if (answer.because) lines.push(`  because ${answer.because}`);
    lines.push(...(answer.warnings || []).map((warning) => `! ${warning}`));
    out.textContent = [`${form.dataset.target}: ${answer.prediction}`, ...lines].join("\n");
  } catch (error) { out.textContent = String(error); }
});
