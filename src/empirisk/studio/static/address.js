// The state of the playground in the address: points in 16-bit whole numbers, everything else as plain text.

const FACTOR = 1000;  // thousandths of the plane's unit

export function encode(state) {
  const numbers = new Int16Array(state.points.flatMap(([x, y, label]) => [Math.round(FACTOR * x), Math.round(FACTOR * y), label]));
  const bytes = String.fromCharCode(...new Uint8Array(numbers.buffer));
  const words = new URLSearchParams({task: state.task, family: state.family, held: state.held});
  for (const [name, value] of Object.entries(state.settings)) words.set(`_${name}`, value);
  words.set("points", btoa(bytes).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", ""));
  return words.toString();
}

/** The state of an address, or null where there is none; `kinds` tells which settings are numbers. */
export function decode(text, kinds) {
  const words = new URLSearchParams(text.replace(/^#/, ""));
  if (!words.has("points")) return null;
  try {
    const raw = atob(words.get("points").replaceAll("-", "+").replaceAll("_", "/"));
    const numbers = new Int16Array(Uint8Array.from(raw, letter => letter.charCodeAt(0)).buffer), points = [];
    for (let k = 0; k + 2 < numbers.length; k += 3) points.push([numbers[k] / FACTOR, numbers[k + 1] / FACTOR, numbers[k + 2]]);
    const settings = {};
    for (const [name, value] of words) if (name.startsWith("_")) settings[name.slice(1)] = kinds[name.slice(1)] === "number" ? Number(value) : value;
    return {task: words.get("task"), family: words.get("family"), held: Number(words.get("held")), settings, points};
  } catch { return null; }
}
