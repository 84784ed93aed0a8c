"""One HTML file that needs nothing else: no network, no other file, no inline handlers."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

from graphkin.results.html.line_ends import pieces
from graphkin.results.text import printable


def page(
    name: str,
    *,
    title: str,
    markup: Mapping[str, str],
    data: Any,
    scripts: Sequence[str] = (),
    styles: Sequence[str] = (),
) -> str:
    """Fills the page ``name``: its template, style sheet and script, with ``common.css``.

    The policy in its head lets the browser load nothing and run that one script only, so that
    text which slipped through as markup could still do nothing.

    Args:
        name: of the files in ``pages``.
        title: plain text.
        markup: what stands for each ``$name`` in the template; already escaped.
        data: what the script reads, as JSON.
        scripts: further parts of the script, which follow it.
        styles: other pages whose style sheets it builds on.
    """
    style = "".join(_asset(f"{part}.css") for part in ("common", *styles, name))
    script = "\n".join(_asset(f"{part}.js") for part in (name, *scripts))
    policy = (
        "default-src 'none'; base-uri 'none'; form-action 'none'; "
        f"style-src '{_digest(style)}'; script-src '{_digest(script)}'"
    )
    body = Template(_asset(f"{name}.html")).substitute(markup)
    return "\n".join(
        (
            "<!doctype html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            '<meta name="referrer" content="no-referrer">',
            f"<title>{text(title)}</title>",
            f"<style>{style}</style>",
            "</head>",
            "<body>",
            body,
            f'<script type="application/json" id="data">{script_json(data)}</script>',
            f"<script>{script}</script>",
            "</body>",
            "</html>",
            "",
        )
    )


def text(content: str) -> str:
    """Text as text, in an element or in a quoted attribute; unseen characters are shown."""
    return escape(printable(content))


def name_markup(content: str) -> str:
    """The name of a function or a file, whose lines end only at its joints."""
    return f'<span class="name">{"<wbr>".join(map(escape, pieces(printable(content))))}</span>'


def script_json(data: Any) -> str:
    """JSON in ASCII that cannot end the script element which holds it."""
    content = json.dumps(data, separators=(",", ":"), allow_nan=False)
    for letter in "<>&":
        content = content.replace(letter, f"\\u{ord(letter):04x}")
    return content


def facts(items: Sequence[tuple[str, str]]) -> str:
    """A list of names and values."""
    rows = (
        f"<div><dt>{text(name)}</dt><dd>{text(value)}</dd></div>" for name, value in items if value
    )
    return f'<dl class="facts">{"".join(rows)}</dl>'


def table_cell(markup: str, key: str | None = None) -> str:
    """A cell of a table that sorts by the key, or by its text."""
    return f"<td>{markup}</td>" if key is None else f'<td data-key="{text(key)}">{markup}</td>'


def notices(sentences: Sequence[str]) -> str:
    """What a reader should know ahead of all else."""
    return "".join(
        f'<p class="notice caution">{text(sentence[:1].upper() + sentence[1:])}.</p>'
        for sentence in sentences
    )


def _asset(name: str) -> str:
    return files("graphkin.results.html").joinpath("pages", name).read_text(encoding="utf-8")


def _digest(content: str) -> str:
    digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
    return f"sha256-{digest}"
