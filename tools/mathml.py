"""Formulas of the site as MathML, which browsers draw themselves: no script, no font and no network is needed."""

from typing import Any

from docutils import nodes
from latex2mathml.converter import convert


def visit(translator: Any, node: nodes.math) -> None:
    """Write a formula within a line."""
    translator.body.append(convert(node.astext()))
    raise nodes.SkipNode


def visit_block(translator: Any, node: nodes.math_block) -> None:
    """Write a formula that stands alone."""
    translator.body.append(f'<div class="formula">{convert(node.astext(), display="block")}</div>')
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, bool]:
    """Sphinx calls this."""
    app.add_html_math_renderer("mathml", inline_renderers=(visit, None), block_renderers=(visit_block, None))
    return {"parallel_read_safe": True}
