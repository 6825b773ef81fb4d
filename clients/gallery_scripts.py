"""Scripts of scikit-learn's gallery, in our own words, run as they are and with class names swapped alone."""

import re
from pathlib import Path

import empirisk as er
from empirisk.names import CLASSES

#: Scripts that ask for what has another form here, and what they would write.
OTHER_FORM = {
    "plot_iris_svc": "kernel= and gamma= belong to the kernel in features=",
    "plot_rbf_parameters": "features__width in place of gamma",
    "plot_quantile_regression": "levels=, or the loss er.losses.Quantile(level)",
}


def swapped(source: str) -> str:
    """The script with our classes in place of theirs."""

    def line(found: re.Match[str]) -> str:
        ours, theirs = [], []
        for name in found[2].split(", "):
            known = CLASSES.get(name, name)
            (ours if known in er._HOMES else theirs).append((known, name))
        lines = [f"from {found[1]} import {', '.join(name for _, name in theirs)}"] if theirs else []
        return "\n".join([*lines, *(f"from empirisk import {known} as {name}" for known, name in ours)])

    return re.sub(r"^from (sklearn\.\w+) import (.+)$", line, source, flags=re.MULTILINE)


ran = []
for script in sorted((Path(__file__).parent / "gallery").glob("plot_*.py")):
    wanted, found = {}, {}
    exec(compile(script.read_text(), script.name, "exec"), wanted)
    source = swapped(script.read_text())
    assert "from empirisk import" in source, script.name
    try:
        exec(compile(source, script.name, "exec"), found)
    except (TypeError, ValueError):
        if script.stem not in OTHER_FORM:
            raise
        continue
    assert str(found["result"]) == str(wanted["result"]), (script.stem, found["result"], wanted["result"])
    ran.append(script.stem)
assert len(ran) >= 10
print(f"{len(ran)} of {len(ran) + len(OTHER_FORM)} scripts run with class names swapped alone")
