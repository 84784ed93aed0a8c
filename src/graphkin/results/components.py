"""The components of scanned files, for people at a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from graphkin.results.columns import GAP, WIDTH, Column, table_lines
from graphkin.results.document import Component, ComponentBuild
from graphkin.results.text import address_text, number_text, plural

MOST_RANGES = 2
"""Ranges of addresses on a line; JSON has all."""


def component_lines(components: Sequence[Component], *, width: int = WIDTH) -> list[str]:
    """A title, and a line for each component; nothing where there is none.

    ``functions`` are those of the scanned file that are of the component, ``of`` those that the
    library holds of the build that fits best.
    """
    if not components:
        return []
    columns = [
        Column("prob.", [number_text(item.probability, 3) for item in components], right=True),
        Column("functions", [f"{item.functions:,}" for item in components], right=True),
        Column("of", [f"{item.builds[0].known:,}" for item in components], right=True),
        Column("component", [item.name for item in components], share=2),
        Column("fits best", [fit_text(item) for item in components], share=3),
        Column("at", [ranges_text(item) for item in components], share=3),
    ]
    if len({item.binary for item in components}) > 1:
        files = [item.binary for item in components]
        columns.insert(4, Column("in", files, share=2, are_paths=True))
    return ["components", *(GAP + line for line in table_lines(columns, width - len(GAP)))]


def fit_text(component: Component) -> str:
    """The build or version that fits best, and to how many functions it is the nearest."""
    best, *others = component.builds
    text = build_text(best)
    if not others:
        return text
    return f"{text}: nearest to {best.nearest:,}, of {len(component.builds)} builds"


def build_text(build: ComponentBuild) -> str:
    """What tells a build from others."""
    said = " ".join(filter(None, (build.version, build.architecture, build.build)))
    return said or build.binary


def ranges_text(component: Component) -> str:
    """The longest ranges of addresses."""
    longest = sorted(component.ranges, key=lambda item: -item.functions)[:MOST_RANGES]
    texts = [
        f"{address_text(item.start)}-{address_text(item.last)}"
        for item in sorted(longest, key=lambda item: item.start)
    ]
    more = len(component.ranges) - len(longest)
    return ", ".join(texts) + (f" and {plural(more, 'more range')}" if more else "")
