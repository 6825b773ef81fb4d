"""Two small pages: a form to try the model, and the description for people. Nothing comes from elsewhere."""

import json
from html import escape
from typing import Any

from empirisk.service.openapi import example_row, levels
from empirisk.tables.columns import Column
from empirisk.tables.model import TableModel

STYLE = """
:root { color-scheme: light dark; } small { opacity: .75; font-weight: 400; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 44rem; margin: 2rem auto; padding: 0 1rem; }
label { display: block; margin: .7rem 0 .1rem; font-weight: 600; }
input, select, textarea { width: 100%; box-sizing: border-box; padding: .4rem; font: inherit; }
button { margin: 1rem 0; padding: .5rem 1.2rem; font: inherit; }
pre { background: color-mix(in srgb, currentColor 7%, transparent); padding: .8rem; overflow: auto;
  white-space: pre-wrap; }
table { border-collapse: collapse; } td, th { text-align: left; padding: .2rem .8rem .2rem 0; vertical-align: top; }
"""

SCRIPT = """
const form = document.getElementById("row"), out = document.getElementById("answer");
form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const row = {};
  for (const field of form.elements) if (field.name) row[field.name] = field.value === "" ? null : field.value;
  out.textContent = "...";
  try {
    const reply = await fetch("predict", {
      method: "POST", headers: {"Content-Type": "application/json"}, body: JSON.stringify(row)});
    const answer = await reply.json();
    if (!reply.ok) {
      const problems = (answer.problems || []).map((p) => `${p.field}: ${p.problem}`);
      out.textContent = [answer.error, ...problems].join("\\n");
      return;
    }
    const shares = Object.entries(answer.probabilities || {}).sort((a, b) => b[1] - a[1]);
    const lines = shares.map(([name, p]) => `  ${(100 * p).toFixed(1)} %  ${name}`);
    lines.push(...(answer.warnings || []).map((warning) => `! ${warning}`));
    out.textContent = [`${form.dataset.target}: ${answer.prediction}`, ...lines].join("\\n");
  } catch (error) { out.textContent = String(error); }
});
"""


def form(model: TableModel) -> str:
    """The page with a form to try the model."""
    target = model.target.name
    inputs = "\n".join(_input(column, levels(model, column.name)) for column in model.schema.used)
    return _page(
        f"Predict {target}",
        f"<h1>Predict {escape(target)}</h1>"
        f"<p>{escape(type(model.machine).__name__)}. Leave empty what you do not know. "
        '<a href="docs">How to ask from a program</a>.</p>'
        f'<form id="row" data-target="{escape(target)}" autocomplete="off">{inputs}<button>Predict</button></form>'
        '<pre id="answer" aria-live="polite"></pre><script src="form.js"></script>',
    )


def docs(model: TableModel, document: dict[str, Any]) -> str:
    """The page that describes the service."""
    row = example_row(model)
    body = escape(json.dumps(row, ensure_ascii=False, indent=1))
    fields = "".join(
        f"<tr><td><code>{escape(column.name)}</code></td><td>{_hint(column)}</td></tr>" for column in model.schema.used
    )
    paths = "".join(
        f"<tr><td><code>{escape(method.upper())} {escape(path)}</code></td><td>{escape(entry['summary'])}</td></tr>"
        for path, methods in document["paths"].items()
        for method, entry in methods.items()
    )
    return _page(
        document["info"]["title"],
        f"<h1>{escape(document['info']['title'])}</h1><p>{escape(document['info']['description'])}</p>"
        f"<table>{paths}</table><h2>One row</h2><pre>POST /predict\n\n{body}</pre>"
        "<p>Send a list of such rows for a list of answers. A field that is missing or wrong is answered with status "
        "422 and its name; send <code>null</code> for a value that is not known.</p>"
        f'<h2>Fields</h2><table>{fields}</table><p><a href="openapi.json">OpenAPI</a> · <a href=".">Form</a></p>',
    )


def _hint(column: Column) -> str:
    return escape(str(column).removeprefix(f"{column.name}: "))


def _input(column: Column, words: list[str]) -> str:
    name = escape(column.name)
    label = f'<label for="f-{name}">{name} <small>{_hint(column)}</small></label>'
    value = column.type.example(column, words)
    example = "" if value is None else escape(f"{value:g}" if isinstance(value, float) else str(value))
    attributes = f'id="f-{name}" name="{name}"'
    tag, offered = column.type.input(words)
    choices = "".join(f"<option>{escape(choice)}</option>" for choice in offered)
    if tag == "select":
        return f"{label}<select {attributes}><option value=''>?</option>{choices}</select>"
    if tag == "textarea":
        return f'{label}<textarea {attributes} rows="3" placeholder="{example}"></textarea>'
    offers = f'<datalist id="l-{name}">{choices}</datalist>' if choices else ""
    link = f' list="l-{name}"' if choices else ""
    return f'{label}<input {attributes}{link} placeholder="{example}">{offers}'


def _page(title: str, body: str) -> str:
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head><body>{body}</body></html>"
    )
