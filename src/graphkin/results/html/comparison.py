"""Two functions beside each other, and which block of one the matcher takes for which."""

from __future__ import annotations

from graphkin.binaries.function import Function
from graphkin.errors import ConfigError
from graphkin.results.document import Comparison
from graphkin.results.evidence import LEAST_WEIGHT, Attention
from graphkin.results.function import summary
from graphkin.results.html.attention import SCALE, checked, steps
from graphkin.results.html.function import Drawing, draw
from graphkin.results.html.page import facts, page, text
from graphkin.results.text import distance_text, number_text, share_text

SCRIPTS = ("comparison_view", "comparison_events")


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
    last = checked(maps, len(left.blocks), len(right.blocks)) - 1
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
        "left": _places(drawings[0], left),
        "right": _places(drawings[1], right),
        "steps": steps(maps),
        "shown": shown.step,
        "scale": SCALE,
    }
    markup = {
        "left_head": _head(left),
        "right_head": _head(right),
        "facts": facts(numbers),
        "share": f"{share_text(share)} ({matched} of {len(left.blocks)})",
        "shown": str(shown.step),
        "last": str(last),
        "threshold": f"{LEAST_WEIGHT:g}",
        "left_name": text(left.name),
        "right_name": text(right.name),
        "left_drawing": drawings[0].markup,
        "right_drawing": drawings[1].markup,
    }
    title = f"{left.name} and {right.name}"
    return page("comparison", title=title, markup=markup, data=data, scripts=SCRIPTS)


def _head(function: Function) -> str:
    lines = [summary(function), function.binary]
    if function.compiler:
        lines.append(function.compiler)
    return f"<h2>{text(function.name)}</h2>" + "".join(f"<p>{text(line)}</p>" for line in lines)


def _places(drawing: Drawing, function: Function) -> dict[str, object]:
    return {
        "boxes": drawing.boxes,
        "width": drawing.width,
        "height": drawing.height,
        "addresses": [f"{block.address:x}" for block in function.blocks],
    }
