"""Two functions side by side, as text."""

from __future__ import annotations

from graphkin.binaries.function import Function
from graphkin.results.document import Comparison
from graphkin.results.text import (
    address_text,
    distance_text,
    number_text,
    plural,
    share_text,
    shortened,
)

INSTRUCTIONS = 3
"""Of a block, in the list of matched ones."""
HALF = 44
"""Columns for the instructions of one side."""


def comparison_text(comparison: Comparison, left: Function, right: Function) -> str:
    """What the models say, and the strongest pairs of blocks with how they begin."""
    lines = [
        f"{shortened(side.function, HALF)} of {shortened(side.binary, HALF)} "
        f"at {address_text(side.address)}, {plural(side.blocks, 'block')}"
        for side in (comparison.left, comparison.right)
    ]
    evidence = comparison.evidence
    probability = number_text(comparison.probability, 3) or "not calibrated"
    lines += [
        "",
        f"probability of the same function  {probability}",
        f"score of the matcher              {number_text(comparison.score, 3)}",
        f"distance of the codes             {distance_text(comparison.distance)}",
        f"blocks that have a partner        {share_text(evidence.matched_share or 0.0)}",
    ]
    if evidence.pairs:
        lines += ["", "strongest pairs of blocks"]
    for pair in evidence.pairs:
        beginning = _beginning(left, pair.left)
        lines.append(f"  {pair.weight:.2f}  {beginning:<{HALF}}  {_beginning(right, pair.right)}")
    return "\n".join(line.rstrip() for line in lines)


def _beginning(function: Function, number: int) -> str:
    mnemonics = function.blocks[number].mnemonics
    more = " …" if len(mnemonics) > INSTRUCTIONS else ""
    text = f"{number}: {'; '.join(mnemonics[:INSTRUCTIONS])}{more}"
    return shortened(text, HALF)
