"""Two graphs of somebody's own, compared, for people at a terminal."""

from __future__ import annotations

from graphkin.results.columns import GAP, WIDTH, Column, table_lines
from graphkin.results.document import Comparison
from graphkin.results.graph import ShownGraph
from graphkin.results.text import distance_text, number_text, plural, share_text, shortened

MOST_PAIRS = 20
NAME = 40


def graph_comparison_text(comparison: Comparison, left: ShownGraph, right: ShownGraph) -> str:
    """What the models say, and the strongest pairs of nodes with their labels."""
    evidence = comparison.evidence
    numbers = [
        ("probability that they are similar", number_text(comparison.probability, 3)),
        ("predicted value", number_text(comparison.value, 3)),
        ("score of the model", number_text(comparison.score, 3)),
        ("distance of the vectors", distance_text(comparison.distance)),
        ("nodes that have a partner", share_text(evidence.matched_share or 0.0)),
    ]
    numbers = [(name, value) for name, value in numbers if value]
    lines = [
        *(_head(side) for side in (left, right)),
        "",
        *(f"{name:<34}{value}" for name, value in numbers),
    ]
    shown = evidence.pairs[:MOST_PAIRS]
    if shown:
        columns = [
            Column("weight", [f"{pair.weight:.2f}" for pair in shown], right=True),
            Column("left node", [left.node_text(pair.left) for pair in shown], share=1),
            Column("right node", [right.node_text(pair.right) for pair in shown], share=1),
        ]
        rest = len(evidence.pairs) - len(shown)
        lines += ["", "strongest pairs of nodes"]
        lines += [GAP + line for line in table_lines(columns, WIDTH - len(GAP))]
        lines += [f"{GAP}and {plural(rest, 'more pair')}"] if rest else []
    return "\n".join(lines)


def _head(shown: ShownGraph) -> str:
    where = f" of {shortened(shown.file, NAME)}" if shown.file else ""
    return f"{shortened(shown.name, NAME)}{where}: {shown.facts}"
