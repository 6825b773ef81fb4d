"""Formulas of the site as MathML, which browsers draw themselves: no script, no font and no network is needed."""

from typing import Any
from xml.etree import ElementTree

from docutils import nodes
from latex2mathml.converter import convert

SPACE = "http://www.w3.org/1998/Math/MathML"
ElementTree.register_namespace("", SPACE)
PRIME = "\u2032"
#: Signs that latex2mathml leaves as they are behind a size such as Big.
SIGNS = {"\\|": "\u2016", "\\{": "{", "\\}": "}"}
#: What stands apart from the name of a function before it, as in sin x; brackets do not.
ARGUMENTS = {f"{{{SPACE}}}{tag}" for tag in ("mi", "mn", "msub", "msup", "mfrac", "msqrt", "mover")}
#: What holds any number of nodes side by side; in others each place has its meaning.
ROWS = {f"{{{SPACE}}}{tag}" for tag in ("math", "mrow", "mstyle", "mtd", "msqrt")}
WITH_INDEX = {f"{{{SPACE}}}{tag}" for tag in ("msub", "msup", "msubsup")}


def mathml(formula: str, display: str = "inline") -> str:
    """A formula of LaTeX, with primes that fonts have raised already, and room behind the names of functions.

    >>> mathml("X'").count("msup"), mathml("\\\\sin x").count("mspace")
    (0, 1)
    """
    tree = ElementTree.fromstring(convert(formula, display=display))
    for sign in tree.iter():
        sign.text = SIGNS.get(sign.text or "", sign.text)
        if "\\" in (sign.text or ""):
            raise ValueError(f"The formula {formula!r} has {sign.text}, which latex2mathml does not know.")
    for parent in list(tree.iter()):
        if parent.tag.endswith(("msup", "msubsup")) and parent[-1].text == PRIME:
            _flatten(parent)
        for place in range(len(parent) - 2, -1, -1):
            name, behind = parent[place], parent[place + 1]
            if parent.tag in ROWS and _is_function(name) and behind.tag in ARGUMENTS:
                parent.insert(place + 1, ElementTree.Element(f"{{{SPACE}}}mspace", width="0.167em"))
    return ElementTree.tostring(tree, encoding="unicode")


def _is_function(node: ElementTree.Element) -> bool:
    """Whether a node is the name of a function, also one with an index or a power."""
    base = node[0] if node.tag in WITH_INDEX else node
    return base.tag == f"{{{SPACE}}}mi" and len(base.text or "") > 1


def _flatten(raised: ElementTree.Element) -> None:
    """Put the prime of a superscript on the line, behind the base and its index."""
    *base, _ = list(raised)
    raised[:] = base
    if len(base) > 1:
        below = ElementTree.Element(f"{{{SPACE}}}msub")
        below[:] = base
        raised[:] = [below]
    raised.tag = f"{{{SPACE}}}mrow"
    ElementTree.SubElement(raised, f"{{{SPACE}}}mo", lspace="0", rspace="0").text = PRIME


def visit(translator: Any, node: nodes.math) -> None:
    """Write a formula within a line."""
    translator.body.append(mathml(node.astext()))
    raise nodes.SkipNode


def visit_block(translator: Any, node: nodes.math_block) -> None:
    """Write a formula that stands alone."""
    translator.body.append(f'<div class="formula">{mathml(node.astext(), display="block")}</div>')
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, bool]:
    """Sphinx calls this."""
    app.add_html_math_renderer("mathml", inline_renderers=(visit, None), block_renderers=(visit_block, None))
    return {"parallel_read_safe": True}
