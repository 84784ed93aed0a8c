"""Two functions or graphs beside each other, and which block or node is taken for which."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphkin.binaries.function import Function
from graphkin.errors import ConfigError
from graphkin.models.node_matching import Partners
from graphkin.results.document import BlockPair, Comparison, EvidenceToken
from graphkin.results.drawing.force import aligned, force_layout
from graphkin.results.evidence import (
    LEAST_WEIGHT,
    Attention,
    Looks,
    equal_pairs,
    mutual_pairs,
    node_pairs,
)
from graphkin.results.function import summary
from graphkin.results.graph import ShownGraph
from graphkin.results.html.function import Drawing, draw
from graphkin.results.html.graph import draw_graph
from graphkin.results.html.page import facts, notices, page, text
from graphkin.results.shared_words import said_lists
from graphkin.results.text import distance_text, number_text, share_text
from graphkin.results.word_text import titled_words, word_text

SCRIPTS = ("comparison_view",)
LEAST = 0.01
"""Weights below it are left out."""
MOST_PER_BLOCK = 12
"""Weights that are kept of each block, the largest."""
SCALE = 1000
"""Weights are written as whole numbers, in thousandths."""


def comparison_page(
    comparison: Comparison, left: Function, right: Function, maps: Attention
) -> str:
    """One HTML file with both control-flow graphs.

    Blocks that look at each other most share a colour; lines between them are as strong as the
    attention. The page begins with the propagation step at which most blocks have a partner, and
    can be set to any step, and to the least weight that counts.

    Args:
        comparison: what the models say.
        left: with the text of its instructions; mnemonics stand in where there is none.
        right: likewise.
        maps: the attention between their blocks, from ``GraphMatcher.explain``.

    Raises:
        ConfigError: for a function without blocks, or maps of other functions.
    """
    for function in (left, right):
        if not function.blocks:
            raise ConfigError(f"{function.name} of {function.binary} has no blocks to compare")
    sides = _function_side(left), _function_side(right)
    words = EQUAL_BLOCKS if comparison.evidence.equal else BLOCKS
    return _page(comparison, sides, maps, words)


def graph_comparison_page(
    comparison: Comparison, left: ShownGraph, right: ShownGraph, maps: Attention
) -> str:
    """One HTML file with both graphs, laid out by forces, nodes with their labels.

    Partners of the one-to-one assignment share a colour, and the right graph is turned so that
    they stand alike.

    Args:
        comparison: what the models say.
        left: one graph.
        right: the other.
        maps: the attention between their nodes, from ``explain``.
    """
    places = force_layout(left.graph), force_layout(right.graph)
    pairs = [(pair.left, pair.right) for pair in comparison.evidence.pairs]
    turned = aligned(*places, pairs)
    sides = (
        _graph_side(left, draw_graph(left, places[0])),
        _graph_side(right, draw_graph(right, turned)),
    )
    return _page(comparison, sides, maps, NODES)


@dataclass(frozen=True)
class _Words:
    """How a page speaks of what it compares, and which pairs it shows."""

    item: str
    detail: str
    """What is said of an item beside its name."""
    least: float
    """The least weight that the page begins with."""
    pairs: Callable[[Looks, Looks], list[BlockPair]]


BLOCKS = _Words("block", "begins with", LEAST_WEIGHT, mutual_pairs)
EQUAL_BLOCKS = _Words("block", "begins with", 0.0, equal_pairs)
NODES = _Words("node", "beside", 0.0, node_pairs)


@dataclass(frozen=True)
class _Side:
    """What is drawn on one side."""

    name: str
    head: str
    drawing: Drawing
    names: list[str]
    """Of its blocks or nodes."""

    def geometry(self) -> dict[str, object]:
        drawing = self.drawing
        return {
            "boxes": drawing.boxes,
            "width": drawing.width,
            "height": drawing.height,
            "addresses": self.names,
        }


def _function_side(function: Function) -> _Side:
    names = [f"{block.address:x}" for block in function.blocks]
    return _Side(function.shown, _head(function), draw(function), names)


def _graph_side(shown: ShownGraph, drawing: Drawing) -> _Side:
    lines = "".join(f"<p>{text(line)}</p>" for line in (shown.facts, shown.file) if line)
    head = f"<h2>{text(shown.name)}</h2>{lines}"
    return _Side(shown.name, head, drawing, list(shown.node_texts))


def _page(
    comparison: Comparison, sides: tuple[_Side, _Side], maps: Attention, words: _Words
) -> str:
    left, right = sides
    last = checked_steps(maps, len(left.names), len(right.names), words.item) - 1
    shown = comparison.evidence
    share = shown.matched_share or 0.0
    matched = round(share * len(left.names))
    numbers = [
        ("probability", number_text(comparison.probability, 3)),
        ("note", comparison.note or ""),
        ("predicted value", number_text(comparison.value, 3)),
        ("score", number_text(comparison.score, 3)),
        ("distance", distance_text(comparison.distance)),
    ]
    data = {
        "left": left.geometry(),
        "right": right.geometry(),
        "steps": _steps(maps, words),
        "shown": shown.step,
        "scale": SCALE,
    }
    markup = {
        "item": words.item,
        "detail": words.detail,
        "left_head": left.head,
        "right_head": right.head,
        "facts": facts(numbers),
        "warnings": notices(comparison.warnings),
        "said": _said(comparison),
        "share": f"{share_text(share)} ({matched} of {len(left.names)})",
        "shown": str(shown.step),
        "last": str(last),
        "threshold": f"{words.least:g}",
        "left_name": text(left.name),
        "right_name": text(right.name),
        "left_drawing": left.drawing.markup,
        "right_drawing": right.drawing.markup,
    }
    title = f"{left.name} and {right.name}"
    return page("comparison", title=title, markup=markup, data=data, scripts=SCRIPTS)


def _head(function: Function) -> str:
    lines = [summary(function), function.binary]
    if function.shown != function.name:
        lines.insert(0, function.name)
    if function.compiler:
        lines.append(function.compiler)
    return f"<h2>{text(function.shown)}</h2>" + "".join(f"<p>{text(line)}</p>" for line in lines)


def _said(comparison: Comparison) -> str:
    """What both say on one line, which opens to all that both or one of them says."""
    lists = said_lists(comparison)
    if not lists:
        return ""
    (title, both), *_ = lists
    first = ", ".join(map(word_text, both))
    sections = "".join(
        f"<section><h2>{text(name)}</h2>{_word_lists(words)}</section>" for name, words in lists
    )
    return (
        f'<details class="said"><summary><b>{text(title)}</b> <span>{text(first)}</span></summary>'
        f'<div class="lists">{sections}</div></details>'
    )


def _word_lists(words: Sequence[EvidenceToken]) -> str:
    rows = "".join(
        f"<div><dt>{title}</dt><dd>{text(', '.join(texts))}</dd></div>"
        for title, texts in titled_words(words)
    )
    return f"<dl>{rows}</dl>"


def checked_steps(maps: Attention, left: int, right: int, item: str = "block") -> int:
    """How many steps there are, if all maps fit functions of so many blocks, or such graphs."""
    left_to_right, right_to_left = maps.left_to_right, maps.right_to_left
    if not left_to_right or len(left_to_right) != len(right_to_left):
        raise ConfigError(
            f"attention has {len(left_to_right)} maps from left to right and {len(right_to_left)} "
            "from right to left; give one each way for every step"
        )
    for direction, shape in ((left_to_right, (left, right)), (right_to_left, (right, left))):
        for weights in direction:
            if weights.shape != shape:
                raise ConfigError(
                    f"attention is {weights.shape}, but there are {left} and {right} {item}s: "
                    f"expected {shape}"
                )
    return len(left_to_right)


def largest_weights(weights: Looks) -> dict[str, Any]:
    """The largest weights of each row, largest first: counts of the rows, then all in one list."""
    if isinstance(weights, Partners):
        rows = np.flatnonzero(weights.weights >= LEAST)
        columns, values = weights.nodes[rows], weights.weights[rows]
    else:
        rows, columns = np.nonzero(weights >= LEAST)
        values = weights[rows, columns]
    order = np.lexsort((-values, rows))
    rows, columns, values = rows[order], columns[order], values[order]
    starts = np.searchsorted(rows, np.arange(weights.shape[0]))
    is_kept = np.arange(len(rows)) - starts[rows] < MOST_PER_BLOCK
    return {
        "counts": np.bincount(rows[is_kept], minlength=weights.shape[0]).tolist(),
        "targets": columns[is_kept].tolist(),
        "weights": np.rint(values[is_kept] * SCALE).astype(int).tolist(),
    }


def _steps(maps: Attention, words: _Words) -> list[dict[str, Any]]:
    """What a page shows of each step: the pairs, and where every block looks.

    Weights of pairs are rounded down, so that none passes a threshold that it is below.
    """
    return [
        {
            "pairs": [
                [pair.left, pair.right, int(pair.weight * SCALE)]
                for pair in words.pairs(left_to_right, right_to_left)
            ],
            "forth": largest_weights(left_to_right),
            "back": largest_weights(right_to_left),
        }
        for left_to_right, right_to_left in zip(maps.left_to_right, maps.right_to_left, strict=True)
    ]
