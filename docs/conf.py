"""Configuration of the documentation; ``make docs`` builds it."""

from __future__ import annotations

import re
from typing import Any

from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx

import graphkin

project = "graphkin"
copyright = "the graphkin authors"
release = version = graphkin.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]

html_theme = "furo"
html_title = "graphkin"
html_static_path = ["_static"]
html_css_files = ["custom.css"]
html_copy_source = False
html_math_renderer = "mathml"

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
autodoc_type_aliases = {
    name: name
    for name in (
        "ArrayLike",
        "NDArray",
        "FloatArray",
        "IntArray",
        "OffsetArray",
        "Index",
        "PathLike",
    )
}
add_module_names = False
python_use_unqualified_type_names = True


def setup(app: Sphinx) -> None:
    # MathML needs no script and no network, unlike Sphinx's own renderers.
    inline = (lambda writer, node: add_math(writer, node, block=False), None)
    block = (lambda writer, node: add_math(writer, node, block=True), None)
    app.add_html_math_renderer("mathml", inline, block)
    app.connect("autodoc-process-docstring", protect, priority=400)  # napoleon has 500
    app.connect("autodoc-process-docstring", restore, priority=600)
    app.connect("autodoc-process-signature", unwrap_aliases)


def add_math(writer: Any, node: Any, *, block: bool) -> None:
    from docutils.nodes import SkipNode

    mathml = tex2mathml(node.astext(), as_block=block)
    writer.body.append(f'<div class="math">{mathml}</div>' if block else mathml)
    raise SkipNode


COLON = "\ue000"


def protect(app: Sphinx, what: str, name: str, obj: object, options: object, lines: Any) -> None:
    """Keeps two things from being taken for markup."""
    # |x| is a length, not a substitution.
    lines[:] = [line.replace("|", r"\|") for line in lines]
    # What stands before a colon in the first line of a field is not its type.
    if what in ("attribute", "property") and lines:
        lines[0] = lines[0].replace(":", COLON)


def restore(app: Sphinx, what: str, name: str, obj: object, options: object, lines: Any) -> None:
    lines[:] = [line.replace(COLON, ":") for line in lines]


def unwrap_aliases(
    app: Sphinx, what: str, name: str, obj: object, options: object, *signature: str | None
) -> tuple[str | None, ...]:
    wrapped = r"TypeAliasForwardRef\('(\w+)'\)"
    return tuple(part and re.sub(wrapped, r"\1", part) for part in signature)
