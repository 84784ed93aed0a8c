"""Pictures of functions: blocks with their instructions, and the control flow between them."""

from __future__ import annotations

import io
import math
import warnings
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from graphkin._support.files import PathLike, write_atomically
from graphkin.binaries.function import Block, Function, edge_kinds
from graphkin.errors import ConfigError
from graphkin.results.drawing.layout import Layout, Spacing, lay_out
from graphkin.results.drawing.pictures import picture_ending
from graphkin.results.function import (
    EDGE_COLORS,
    ROLE_COLORS,
    block_roles,
    evidence_lines,
    summary,
)

TEXT_LIMIT = 200
"""Blocks up to which instructions are shown."""
OUTLINE_LIMIT = 700
"""Blocks up to which a block is a box with its address; beyond, it is a dot."""
DOT_LIMIT = 5_000
"""Blocks up to which there is a picture."""

# All lengths are in points.
FONT_SIZE = 8.0
LETTER = FONT_SIZE * 0.60205
"""Advance of DejaVu Sans Mono, which comes with matplotlib."""
LINE = 11.0
PADDING = 6.0
STRIP = 13.0
"""Height of the bar with a block's address."""
TITLE = 44.0
DOT = 9.0
DOT_SPACING = Spacing(14.0, 7.0, 5.0, 8.0, 4.0, 16.0)
OUTLINE_SPACING = Spacing(16.0, 9.0, 5.0, 9.0, 12.0, 16.0)
CORNER = 4.0
"""Radius at which lines turn."""
DOTS_PER_INCH = 120
MOST_PIXELS = 50e6
PNG_OPTIONS = {"compress_level": 3}
"""Drawings are mostly white: more effort takes seconds and saves little."""
LONGEST_SIDE = 30_000
"""Pixels; the renderer takes up to 65,535."""

MAX_LINES = 16
CROWDED_LINES = 9
CROWDED = 60
"""Blocks beyond which each shows fewer lines."""
MAX_LETTERS = 44
LAST_LINES = 2
"""Instructions shown behind the gap in a long block."""

LINE_COLORS = {**EDGE_COLORS, "back": "#a0408a"}
SHARED = "#8c959f"
"""Where lines of several kinds run on as one."""
BORDER, INK, FAINT = "#8c959f", "#1f2328", "#59636e"
MNEMONIC = "#0a3069"
STRIP_COLORS = {**ROLE_COLORS, "": "#eaeef2"}
DOT_COLORS = {"entry": "#009e73", "exit": "#d55e00", "": "#57606a"}
LEGEND = {
    "taken": "branch taken",
    "not taken": "not taken",
    "next": "runs on",
    "jump": "jump",
    "case": "case",
    "back": "back",
}


class BoxLine(NamedTuple):
    """One line of a box."""

    mnemonic: str
    operands: str


def plot_function(function: Function, path: PathLike) -> None:
    """Draws a function to a file with the ending .png, .svg or .pdf.

    Up to 200 blocks show their instructions, long blocks their first and last ones. Up to 700
    show their addresses, and up to 5,000 are dots.

    Raises:
        ConfigError: for another ending, a function without blocks, or with too many.
        StorageError: where the file cannot be written.
    """
    ending = picture_ending(path)
    count = len(function.blocks)
    if not 0 < count <= DOT_LIMIT:
        raise ConfigError(
            f"{function.name} has {count} blocks; a picture takes 1 to {DOT_LIMIT}. "
            "Use --dot or --json"
        )
    import matplotlib

    # Text stays text in vector files, and equal functions make equal files.
    settings: dict[Any, Any] = {
        "font.family": ["DejaVu Sans Mono"],
        "svg.fonttype": "none",
        "svg.hashsalt": "graphkin",
        "pdf.fonttype": 42,
        "text.parse_math": False,
    }
    with matplotlib.rc_context(settings), warnings.catch_warnings():
        # Names may hold letters that the font lacks; they become boxes.
        warnings.simplefilter("ignore", UserWarning)
        figure, width, height = _Picture(function).draw()
        options: dict[str, dict[str, Any]] = {
            ".png": {"pil_kwargs": PNG_OPTIONS, "dpi": resolution(width, height)},
            ".svg": {"metadata": {"Date": None}},
            ".pdf": {"metadata": {"CreationDate": None}},
        }
        content = io.BytesIO()
        figure.savefig(content, format=ending[1:], **options[ending])
    write_atomically(path, content.getvalue())


def resolution(width: float, height: float) -> float:
    """As fine as text needs, and coarser where the picture would get too large."""
    inches = width / 72, height / 72
    by_area = math.sqrt(MOST_PIXELS / (inches[0] * inches[1]))
    return min(DOTS_PER_INCH, by_area, LONGEST_SIDE / max(inches))


def box_lines(block: Block, most: int) -> list[BoxLine]:
    """The lines of a block's box: all instructions, or the first, a gap and the last ones; then
    what the block says."""
    texts = block.instructions or block.mnemonics
    if len(texts) > most:
        hidden = len(texts) - most + 1
        head = most - 1 - LAST_LINES
        texts = (*texts[:head], f"… {hidden} more", *texts[-LAST_LINES:])
    lines = []
    for text in texts:
        mnemonic, _, operands = text.partition(" ")
        if mnemonic == "…":
            mnemonic, operands = text, ""
        if len(operands) > MAX_LETTERS:
            operands = operands[: MAX_LETTERS - 1] + "…"
        lines.append(BoxLine(mnemonic, operands))
    said = evidence_lines(block, MAX_LETTERS, most_lines=1)
    return lines + [BoxLine(line, "") for line in said]


class _Picture:
    """One function on its way to a figure."""

    def __init__(self, function: Function) -> None:
        self._function = function
        self._blocks = function.blocks
        self._count = len(self._blocks)
        self._lines: list[list[BoxLine]] = []
        if self._count <= TEXT_LIMIT:
            most = MAX_LINES if self._count <= CROWDED else CROWDED_LINES
            self._lines = [box_lines(block, most) for block in self._blocks]
            self._sizes = [self._text_size(number) for number in range(self._count)]
            self._spacing = Spacing()
        elif self._count <= OUTLINE_LIMIT:
            self._sizes = [
                (len(self._strip_text(number)) * LETTER + 2 * PADDING, STRIP)
                for number in range(self._count)
            ]
            self._spacing = OUTLINE_SPACING
        else:
            self._sizes = [(DOT, DOT)] * self._count
            self._spacing = DOT_SPACING
        self._layout: Layout = lay_out(self._sizes, function.edges, self._spacing)
        self._roles = block_roles(function)
        kinds = edge_kinds(function)
        back = self._layout.back
        self._kinds: list[str] = [
            "back" if edge in back else kind
            for edge, kind in zip(function.edges, kinds, strict=True)
        ]

    def draw(self) -> tuple[Any, float, float]:
        """The figure, with its width and height."""
        from matplotlib.figure import Figure

        margin = self._spacing.margin
        words = max(len(line) for line in (*self._title(), self._legend_text()))
        width = max(self._layout.width, words * LETTER + 2 * margin)
        height = self._layout.height + TITLE
        figure = Figure(figsize=(width / 72, height / 72), facecolor="white")
        axis = figure.add_axes((0, 0, 1, 1))
        axis.set_xlim(0, width)
        axis.set_ylim(height, 0)
        axis.axis("off")
        self._left = (width - self._layout.width) / 2
        self._draw_title(axis, margin)
        self._draw_edges(axis)
        self._draw_boxes(axis)
        return figure, width, height

    # --- Blocks -------------------------------------------------------------------------------

    def _strip_text(self, number: int) -> str:
        address = f"{self._blocks[number].address:x}"
        return address if self._lines else f"{address} +{len(self._blocks[number].mnemonics)}"

    def _text_size(self, number: int) -> tuple[float, float]:
        lines = self._lines[number]
        column = _column(lines)
        letters = max(
            len(self._strip_text(number)) + len("  entry"),
            *(column + len(line.operands) if line.operands else len(line.mnemonic)
              for line in lines),
        )  # fmt: skip
        return letters * LETTER + 2 * PADDING, STRIP + len(lines) * LINE + PADDING

    def _draw_boxes(self, axis: Any) -> None:
        from matplotlib.collections import EllipseCollection, PolyCollection

        corners = [(self._left + x, TITLE + y) for x, y in self._layout.corners]
        colors = [STRIP_COLORS[role] for role in self._roles]
        if self._count > OUTLINE_LIMIT:
            centres = [(x + DOT / 2, y + DOT / 2) for x, y in corners]
            dots = EllipseCollection(
                [DOT], [DOT], [0], units="xy", offsets=centres, transOffset=axis.transData,
                facecolors=[DOT_COLORS[role] for role in self._roles], edgecolors="white",
                linewidths=0.6, zorder=3,
            )  # fmt: skip
            axis.add_collection(dots)
            return
        rectangles, strips = [], []
        for (x, y), (width, height) in zip(corners, self._sizes, strict=True):
            rectangles.append(_rectangle(x, y, width, height))
            strips.append(_rectangle(x, y, width, STRIP))
        axis.add_collection(
            PolyCollection(rectangles, facecolors="white", edgecolors="none", zorder=3)
        )
        axis.add_collection(PolyCollection(strips, facecolors=colors, edgecolors="none", zorder=4))
        axis.add_collection(
            PolyCollection(
                rectangles, facecolors="none", edgecolors=BORDER, linewidths=0.8, zorder=5
            )
        )
        for number, (x, y) in enumerate(corners):
            self._write_block(axis, number, x, y)

    def _write_block(self, axis: Any, number: int, x: float, y: float) -> None:
        baseline = y + STRIP - 3.8
        _write(axis, x + PADDING, baseline, self._strip_text(number), FAINT)
        role = self._roles[number]
        if not self._lines:
            return
        if role:
            right = x + self._sizes[number][0] - PADDING
            _write(axis, right, baseline, role, INK, ha="right", weight="bold")
        column = _column(self._lines[number]) * LETTER
        for row, line in enumerate(self._lines[number], start=1):
            below = y + STRIP + row * LINE - 1.0
            is_code = not line.mnemonic.startswith(("…", ";"))
            _write(axis, x + PADDING, below, line.mnemonic, MNEMONIC if is_code else FAINT)
            if line.operands:
                _write(axis, x + PADDING + column, below, line.operands, INK)

    # --- Edges --------------------------------------------------------------------------------

    def _draw_edges(self, axis: Any) -> None:
        from matplotlib.collections import LineCollection, PathCollection, PolyCollection

        paths = [[(self._left + x, TITLE + y) for x, y in path] for path in self._layout.paths]
        if not paths:
            return
        plain = self._count > TEXT_LIMIT
        colors = [LINE_COLORS[kind] for kind in self._kinds]
        axis.add_collection(
            PathCollection(
                [_rounded(path) for path in paths],
                facecolors="none",
                edgecolors=colors,
                linewidths=0.8 if plain else 1.1,
                zorder=1,
            )
        )
        shared = _shared_parts(paths, self._kinds)
        axis.add_collection(
            LineCollection(
                shared,
                colors=SHARED,
                linewidths=0.9 if plain else 1.3,
                zorder=2,
                capstyle="butt",
            )
        )
        size = 3.0 if plain else 4.0
        heads = [
            [(x, y), (x - size * 0.7, y - 1.7 * size), (x + size * 0.7, y - 1.7 * size)]
            for x, y in (path[-1] for path in paths)
        ]
        axis.add_collection(PolyCollection(heads, facecolors=colors, edgecolors="none", zorder=2.5))

    # --- Above the drawing ----------------------------------------------------------------------

    def _title(self) -> tuple[str, str]:
        facts = summary(self._function)
        if self._count > OUTLINE_LIMIT:
            facts += f" · more than {OUTLINE_LIMIT} blocks: a dot for each"
        elif self._count > TEXT_LIMIT:
            facts += f" · more than {TEXT_LIMIT} blocks: address and +number of instructions"
        return self._function.shown, facts

    def _legend(self) -> list[str]:
        return [kind for kind in LEGEND if kind in self._kinds]

    def _legend_text(self) -> str:
        return "".join(f"     {LEGEND[kind]}   " for kind in self._legend())

    def _draw_title(self, axis: Any, margin: float) -> None:
        name, facts = self._title()
        _write(axis, margin, 16.0, name, INK, weight="bold", size=FONT_SIZE + 2)
        _write(axis, margin, 28.0, facts, FAINT)
        x = margin
        for kind in self._legend():
            color = LINE_COLORS[kind]
            axis.plot([x, x + 3 * LETTER], [37.5, 37.5], color=color, linewidth=1.6)
            _write(axis, x + 4 * LETTER, 40.5, LEGEND[kind], FAINT)
            x += (len(LEGEND[kind]) + 8) * LETTER


def _column(lines: Sequence[BoxLine]) -> int:
    """Letters from a box's mnemonics to its operands."""
    return max((len(line.mnemonic) for line in lines if line.operands), default=0) + 1


def _write(axis: Any, x: float, y: float, text: str, color: str, **options: Any) -> None:
    axis.text(x, y, text, color=color, **{"size": FONT_SIZE, "zorder": 6, **options})


def _rectangle(x: float, y: float, width: float, height: float) -> list[tuple[float, float]]:
    return [(x, y), (x + width, y), (x + width, y + height), (x, y + height)]


def _rounded(points: Sequence[tuple[float, float]]) -> Any:
    """A line with round corners."""
    from matplotlib.path import Path as Curve

    vertices, codes = [points[0]], [Curve.MOVETO]
    for before, corner, after in zip(points, points[1:], points[2:], strict=False):
        radius = min(CORNER, _length(before, corner) / 2, _length(corner, after) / 2)
        vertices += [_towards(corner, before, radius), corner, _towards(corner, after, radius)]
        codes += [Curve.LINETO, Curve.CURVE3, Curve.CURVE3]
    vertices.append(points[-1])
    codes.append(Curve.LINETO)
    return Curve(vertices, codes)


def _length(a: tuple[float, float], b: tuple[float, float]) -> float:
    return abs(a[0] - b[0]) + abs(a[1] - b[1])


def _towards(
    start: tuple[float, float], end: tuple[float, float], by: float
) -> tuple[float, float]:
    share = by / (_length(start, end) or 1.0)
    return start[0] + (end[0] - start[0]) * share, start[1] + (end[1] - start[1]) * share


def _shared_parts(
    paths: Iterable[Sequence[tuple[float, float]]], kinds: Iterable[str]
) -> list[list[tuple[float, float]]]:
    """Stretches where lines of different kinds lie on each other."""
    lines: dict[tuple[bool, float], list[tuple[float, float, str]]] = {}
    for path, kind in zip(paths, kinds, strict=True):
        for (x, y), (next_x, next_y) in pairwise(path):
            upright = x == next_x
            low, high = sorted((y, next_y) if upright else (x, next_x))
            lines.setdefault((upright, x if upright else y), []).append((low, high, kind))
    parts = []
    for (upright, level), stretches in lines.items():
        if len({kind for _, _, kind in stretches}) < 2:
            continue
        stops = sorted({stop for low, high, _ in stretches for stop in (low, high)})
        for start, end in pairwise(stops):
            over = {kind for low, high, kind in stretches if low <= start and end <= high}
            if len(over) > 1:
                ends = [start, end]
                parts.append([(level, at) if upright else (at, level) for at in ends])
    return parts
