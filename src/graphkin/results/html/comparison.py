"""Two functions beside each other, and which block of one the matcher takes for which."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphkin.binaries.function import Function
from graphkin.errors import ConfigError
from graphkin.results.document import Comparison, EvidenceToken
from graphkin.results.evidence import LEAST_WEIGHT, Attention, mutual_pairs
from graphkin.results.function import summary
from graphkin.results.html.function import Drawing, draw
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
    last = checked_steps(maps, len(left.blocks), len(right.blocks)) - 1
    shown = comparison.evidence
    share = shown.matched_share or 0.0
    matched = round(share * len(left.blocks))
    numbers = [
        ("probability", number_text(comparison.probability, 3)),
        ("score", number_text(comparison.score, 3)),
        ("distance", distance_text(comparison.distance)),
    ]
    drawings = draw(left), draw(right)
    data = {
        "left": _geometry(drawings[0], left),
        "right": _geometry(drawings[1], right),
        "steps": _steps(maps),
        "shown": shown.step,
        "scale": SCALE,
    }
    markup = {
        "left_head": _head(left),
        "right_head": _head(right),
        "facts": facts(numbers),
        "warnings": notices(comparison.warnings),
        "said": _said(comparison),
        "share": f"{share_text(share)} ({matched} of {len(left.blocks)})",
        "shown": str(shown.step),
        "last": str(last),
        "threshold": f"{LEAST_WEIGHT:g}",
        "left_name": text(left.shown),
        "right_name": text(right.shown),
        "left_drawing": drawings[0].markup,
        "right_drawing": drawings[1].markup,
    }
    title = f"{left.shown} and {right.shown}"
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


def _geometry(drawing: Drawing, function: Function) -> dict[str, object]:
    return {
        "boxes": drawing.boxes,
        "width": drawing.width,
        "height": drawing.height,
        "addresses": [f"{block.address:x}" for block in function.blocks],
    }


def checked_steps(maps: Attention, left: int, right: int) -> int:
    """How many steps there are, if all maps fit functions of so many blocks."""
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
                    f"attention is {weights.shape}, but the functions have {left} and {right} "
                    f"blocks: expected {shape}"
                )
    return len(left_to_right)


def largest_weights(weights: NDArray[np.float32]) -> dict[str, Any]:
    """The largest weights of each row, largest first: counts of the rows, then all in one list."""
    rows, columns = np.nonzero(weights >= LEAST)
    values = weights[rows, columns]
    order = np.lexsort((-values, rows))
    rows, columns, values = rows[order], columns[order], values[order]
    starts = np.searchsorted(rows, np.arange(len(weights)))
    is_kept = np.arange(len(rows)) - starts[rows] < MOST_PER_BLOCK
    return {
        "counts": np.bincount(rows[is_kept], minlength=len(weights)).tolist(),
        "targets": columns[is_kept].tolist(),
        "weights": np.rint(values[is_kept] * SCALE).astype(int).tolist(),
    }


def _steps(maps: Attention) -> list[dict[str, Any]]:
    """What a page shows of each step: the pairs, and where every block looks.

    Weights of pairs are rounded down, so that none passes a threshold that it is below.
    """
    return [
        {
            "pairs": [
                [pair.left, pair.right, int(pair.weight * SCALE)]
                for pair in mutual_pairs(left_to_right, right_to_left)
            ],
            "forth": largest_weights(left_to_right),
            "back": largest_weights(right_to_left),
        }
        for left_to_right, right_to_left in zip(maps.left_to_right, maps.right_to_left, strict=True)
    ]
