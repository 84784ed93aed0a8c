"""Two functions side by side, as text, as JSON and as a page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from graphkin.binaries.function import Function
from graphkin.results.html.comparison import comparison_page
from graphkin.results.json_lines import finite
from graphkin.results.text import (
    address_text,
    distance_text,
    encodable,
    number_text,
    plural,
    share_text,
    shortened,
)

if TYPE_CHECKING:
    from graphkin.library.scan import Comparison

INSTRUCTIONS = 3
"""Of a block, in the list of matched ones."""
HALF = 44
"""Columns for the instructions of one side."""


def comparison_document(found: Comparison) -> dict[str, Any]:
    """A comparison, ready for JSON."""
    return {
        "left": _side(found.left),
        "right": _side(found.right),
        "distance": finite(found.distance),
        "score": finite(found.score),
        "probability": finite(found.probability),
        "matched_share": finite(found.evidence.matched_share),
        "pairs": [[pair.left, pair.right, pair.weight] for pair in found.evidence.pairs],
    }


def comparison_html(found: Comparison) -> str:
    """A comparison as one HTML file; see :func:`comparison_page`."""
    return comparison_page(
        found.left,
        found.right,
        maps=found.maps,
        score=found.score,
        probability=found.probability,
        distance=found.distance,
    )


def _side(function: Function) -> dict[str, Any]:
    return {
        "binary": encodable(function.binary),
        "function": encodable(function.name),
        "address": function.address,
        "nodes": len(function.blocks),
    }


def comparison_text(found: Comparison) -> str:
    """What the models say, and the strongest pairs of blocks with how they begin."""
    lines = [
        f"{shortened(side.name, HALF)} of {shortened(side.binary, HALF)} "
        f"at {address_text(side.address)}, {plural(len(side.blocks), 'block')}"
        for side in (found.left, found.right)
    ]
    chance = number_text(found.probability, 3) or "not calibrated"
    lines += [
        "",
        f"probability of the same function  {chance}",
        f"score of the matcher              {number_text(found.score, 3)}",
        f"distance of the codes             {distance_text(found.distance)}",
        f"blocks that have a partner        {share_text(found.evidence.matched_share)}",
    ]
    if found.evidence.pairs:
        lines += ["", "strongest pairs of blocks"]
    for pair in found.evidence.pairs:
        left = _beginning(found.left, pair.left)
        lines.append(f"  {pair.weight:.2f}  {left:<{HALF}}  {_beginning(found.right, pair.right)}")
    return "\n".join(line.rstrip() for line in lines)


def _beginning(function: Function, number: int) -> str:
    mnemonics = function.blocks[number].mnemonics
    more = " …" if len(mnemonics) > INSTRUCTIONS else ""
    text = f"{number}: {'; '.join(mnemonics[:INSTRUCTIONS])}{more}"
    return shortened(text, HALF)
