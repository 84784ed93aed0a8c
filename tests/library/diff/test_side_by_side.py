"""Changed functions of the repaired firmware, block by block."""

from __future__ import annotations

import pytest

import graphkin
from graphkin.binaries.reading import read_function
from graphkin.binaries.samples.bundled import FIRMWARE, path, true_names
from graphkin.binaries.targets import parse_target
from graphkin.library.diff import side_by_side
from graphkin.library.diff.side_by_side import block_rows, changed_side_by_side
from graphkin.results.document import Diff

FIXED = path("gateway-fixed")
HEARTBEAT = next(at for at, name in true_names().items() if name == "process_heartbeat")


@pytest.fixture(scope="module")
def repaired() -> Diff:
    return graphkin.diff(FIRMWARE, FIXED)


def test_every_block_is_shown_once(repaired: Diff) -> None:
    shown = changed_side_by_side(repaired)
    ((number, rows),) = shown.items()
    pair = repaired.pairs[number]
    assert pair.left.address == HEARTBEAT
    left = [row.left.address for row in rows if row.left is not None]
    right = [row.right.address for row in rows if row.right is not None]
    assert (len(left), len(right)) == (pair.left.blocks, pair.right.blocks)
    assert left == sorted(set(left))
    assert len(right) == len(set(right))
    kinds = [row.kind for row in rows]
    assert pair.blocks is not None
    assert kinds.count("equal") == pair.blocks.equal
    assert kinds.count("changed") == len(pair.blocks.changed)
    assert kinds.count("added") == len(pair.blocks.added)


def test_what_differs_is_marked(repaired: Diff) -> None:
    (rows,) = changed_side_by_side(repaired).values()
    changed = next(row for row in rows if row.kind == "changed")
    assert changed.left is not None
    assert changed.right is not None
    assert [line.differs for line in changed.left.lines] == [False, True]
    assert changed.left.lines[0].text == changed.right.lines[0].text
    equal = next(row for row in rows if row.kind == "equal")
    assert equal.left is not None
    assert equal.left.lines == ()
    assert equal.left.instructions > 0


def test_a_function_beside_itself_is_equal() -> None:
    function = read_function(parse_target(f"{FIRMWARE}:{HEARTBEAT:#x}"))
    assert {row.kind for row in block_rows(function, function, is_one_kind=True)} == {"equal"}
    rows = list(block_rows(function, function, is_one_kind=False))
    assert {row.kind for row in rows} == {"unordered"}
    assert all(row.left is not None and row.left.lines for row in rows)


def test_what_is_shown_is_bounded(repaired: Diff, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(side_by_side, "MOST_BLOCKS", 10)
    assert changed_side_by_side(repaired) == {}
