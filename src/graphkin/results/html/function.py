"""A function as markup: boxes with its instructions, and lines for its control flow."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

from graphkin.binaries.function import Block, Function, edge_kinds
from graphkin.results.drawing.layout import Spacing, lay_out
from graphkin.results.function import block_roles, evidence_lines
from graphkin.results.html.page import text
from graphkin.results.text import printable

# All lengths are in pixels of the page at its full size; the style sheet has the same.
LETTER = 6.75
"""Advance of the widest usual monospaced font, at 11 pixels."""
LINE = 14.0
STRIP = 18.0
"""Height of the bar with a block's address."""
PADDING = 6.0
MOST_LINES = 24
MOST_LETTERS = 52
"""What is longer is scrolled inside its block."""
COLUMN = 8
"""Letters from mnemonics to operands."""
SPACING = Spacing(28.0, 14.0, 8.0, 14.0, 18.0, 24.0)


@dataclass(frozen=True)
class Drawing:
    """A function laid out."""

    markup: str
    boxes: list[tuple[int, int, int, int]]
    """(left, top, width, height) of each block."""
    width: int
    height: int


def draw(function: Function) -> Drawing:
    """One picture with all lines, then the blocks in their order, in a template.

    The page's script puts those blocks in place, by ``boxes``, that a person can see: a browser
    takes seconds to lay out the text of thousands.
    """
    lines = [_lines(block) for block in function.blocks]
    said = [list(evidence_lines(block, MOST_LETTERS)) for block in function.blocks]
    sizes = list(map(_size, lines, said, function.blocks))
    layout = lay_out(sizes, function.edges, SPACING)
    kinds = [
        "back" if edge in layout.back else kind
        for edge, kind in zip(function.edges, edge_kinds(function), strict=True)
    ]
    width, height = round(layout.width), round(layout.height)
    paths = "".join(
        f'<path class="{kind.replace(" ", "-")}" d="{_path(points)}"/>'
        for kind, points in zip(kinds, layout.paths, strict=True)
    )
    picture = (
        f'<svg class="edges" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" aria-hidden="true">{paths}</svg>'
    )
    roles = block_roles(function)
    blocks = "".join(
        _block(number, block, code, words, role)
        for number, (block, code, words, role) in enumerate(
            zip(function.blocks, lines, said, roles, strict=True)
        )
    )
    boxes = [
        (round(x), round(y), round(size[0]), round(size[1]))
        for (x, y), size in zip(layout.corners, sizes, strict=True)
    ]
    return Drawing(f"{picture}<template>{blocks}</template>", boxes, width, height)


def _lines(block: Block) -> list[tuple[str, str]]:
    """Mnemonic and operands of each instruction, printable."""
    lines = []
    for instruction in block.instructions or block.mnemonics:
        mnemonic, _, operands = printable(instruction).partition(" ")
        lines.append((mnemonic, operands))
    return lines


def _size(lines: list[tuple[str, str]], said: list[str], block: Block) -> tuple[float, float]:
    longest = max(
        (
            *(max(len(mnemonic) + 1, COLUMN) + len(operands) for mnemonic, operands in lines),
            *map(len, said),
        ),
        default=0,
    )
    head = len(f"{block.address:x}") + len("#0000  entry")
    letters = min(max(longest, head), MOST_LETTERS)
    height = STRIP + (min(len(lines), MOST_LINES) + len(said)) * LINE + PADDING
    return letters * LETTER + 2 * PADDING, height


def _path(points: tuple[tuple[float, float], ...]) -> str:
    """An upright and level line; an arrow's head ends it."""
    (x, y), *rest = points
    parts = [f"M{x:.0f} {y:.0f}"]
    for next_x, next_y in rest:
        parts.append(f"V{next_y:.0f}" if round(next_x) == round(x) else f"H{next_x:.0f}")
        x, y = next_x, next_y
    return "".join(parts) + "l-3-6m3 6l3-6"


def _block(
    number: int, block: Block, lines: list[tuple[str, str]], said: list[str], role: str
) -> str:
    code = "\n".join(
        f"<b>{escape(mnemonic)}</b>{' ' * max(COLUMN - len(mnemonic), 1)}{escape(operands)}"
        if operands
        else f"<b>{escape(mnemonic)}</b>"
        for mnemonic, operands in lines
    )
    note = f"<i>{text(role)}</i>" if role else ""
    # Apart from the code, which may scroll: what a block says is always in sight.
    words = f'<pre class="words">{escape(chr(10).join(said))}</pre>' if said else ""
    return (
        f'<div class="block" tabindex="0"><div class="strip"><span>{block.address:x}</span>'
        f"<small>#{number}</small>{note}</div><pre>{code}</pre>{words}</div>"
    )
