"""The changed functions of a diff, block by block, with the text of their instructions.

A diff keeps no text, because it would be most of its memory. So the files are read again for it,
and only so many functions are kept as a person may look at.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from itertools import zip_longest

from graphkin.binaries.backends.choose import Backend
from graphkin.binaries.function import Block, Function
from graphkin.binaries.inputs import find_target
from graphkin.binaries.reading import read_functions
from graphkin.library.diff.code import ARM_PC, BRANCH, LAST_NUMBER, X86_PC, code_form
from graphkin.library.diff.verdict import block_changes
from graphkin.results.document import Diff, FunctionPair, FunctionRef
from graphkin.results.side_by_side import BlockRow, CodeLine, RowKind, ShownBlock

MOST_PAIRS = 500
"""Changed pairs that are shown, those that changed most first."""
MOST_BLOCKS = 40_000
"""Of all functions that are shown, on both sides."""

Place = tuple[str, int | None]


def changed_side_by_side(diff: Diff, backend: Backend = "auto") -> dict[int, tuple[BlockRow, ...]]:
    """The rows of changed pairs, by the number of the pair: as many as are worth their room.

    Args:
        diff: of two files that are still where they were.
        backend: what read the files.

    Raises:
        FormatError: for a file that cannot be read any more.
    """
    left, right = (
        read_functions(find_target(name), backend=backend, with_text=True, with_evidence=True)
        for name in (diff.left.binary, diff.right.binary)
    )
    return side_by_side(diff, left, right)


def side_by_side(
    diff: Diff, left_functions: Iterable[Function], right_functions: Iterable[Function]
) -> dict[int, tuple[BlockRow, ...]]:
    """The same, from functions that are read with the text of their instructions.

    Nothing is read where nothing changed.
    """
    numbers = list(_shown_pairs(diff))
    if not numbers:
        return {}
    left = _chosen(left_functions, [diff.pairs[number].left for number in numbers])
    right = _chosen(right_functions, [diff.pairs[number].right for number in numbers])
    return {
        number: tuple(block_rows(*functions, is_one_kind=diff.is_one_kind_of_build))
        for number, pair in ((number, diff.pairs[number]) for number in numbers)
        if (functions := _both(pair, left, right)) is not None
    }


def _shown_pairs(diff: Diff) -> Iterator[int]:
    changed = [number for number, pair in enumerate(diff.pairs) if pair.verdict == "changed"]
    changed.sort(key=lambda number: (diff.pairs[number].similarity or 0.0, number))
    blocks = 0
    for number in changed[:MOST_PAIRS]:
        pair = diff.pairs[number]
        blocks += pair.left.blocks + pair.right.blocks
        if blocks > MOST_BLOCKS:
            return
        yield number


def _chosen(functions: Iterable[Function], wanted: Sequence[FunctionRef]) -> dict[Place, Function]:
    places = {_place(ref) for ref in wanted}
    own = (((function.binary, function.address), function) for function in functions)
    return {place: function for place, function in own if place in places}


def _place(ref: FunctionRef) -> Place:
    return ref.binary, ref.address


def _both(
    pair: FunctionPair, left: dict[Place, Function], right: dict[Place, Function]
) -> tuple[Function, Function] | None:
    """The functions of a pair, unless a file changed meanwhile."""
    ours, theirs = left.get(_place(pair.left)), right.get(_place(pair.right))
    return None if ours is None or theirs is None else (ours, theirs)


def block_rows(left: Function, right: Function, *, is_one_kind: bool) -> Iterator[BlockRow]:
    """The blocks of two functions beside each other, in the order of the left one.

    Args:
        left: read with the text of its instructions.
        right: likewise.
        is_one_kind: whether equal source gives equal code in both.
    """
    if not is_one_kind:
        for ours, theirs in zip_longest(left.blocks, right.blocks):
            yield BlockRow("unordered", _whole(ours), _whole(theirs))
        return
    forms = code_form(left).blocks, code_form(right).blocks
    changes = block_changes(*forms)
    partners: dict[int, tuple[RowKind, int | None]] = {
        ours: ("changed", theirs) for ours, theirs in changes.changed
    }
    partners |= dict.fromkeys(changes.removed, ("removed", None))
    other = {theirs for _, theirs in changes.changed} | set(changes.added)
    equal: defaultdict[bytes, list[int]] = defaultdict(list)
    for number, form in reversed(list(enumerate(forms[1]))):
        if number not in other:
            equal[form].append(number)
    added = sorted(changes.added)
    for number, block in enumerate(left.blocks):
        kind, theirs = partners.get(number) or ("equal", equal[forms[0][number]].pop())
        # What is new stands ahead of the block that follows it.
        while theirs is not None and added and added[0] < theirs:
            yield BlockRow("added", None, _whole(right.blocks[added.pop(0)]))
        yield _row(kind, block, None if theirs is None else right.blocks[theirs])
    yield from (BlockRow("added", None, _whole(right.blocks[number])) for number in added)


def _row(kind: RowKind, left: Block, right: Block | None) -> BlockRow:
    if right is None:
        return BlockRow(kind, _whole(left), None)
    if kind == "equal":
        return BlockRow(kind, _shown(left, ()), _shown(right, ()))
    texts = _texts(left), _texts(right)
    keys = [[_without_address(text) for text in own] for own in texts]
    matcher = SequenceMatcher(None, keys[0], keys[1], autojunk=False)
    same = set[int](), set[int]()
    for ours, theirs, count in matcher.get_matching_blocks():
        same[0].update(range(ours, ours + count))
        same[1].update(range(theirs, theirs + count))
    shown = [
        _shown(block, [CodeLine(text, at not in equal) for at, text in enumerate(own)])
        for block, own, equal in zip((left, right), texts, same, strict=True)
    ]
    return BlockRow(kind, *shown)


def _without_address(text: str) -> str:
    if BRANCH.match(text):
        return LAST_NUMBER.sub("", text)
    return ARM_PC.sub("", X86_PC.sub("", text))


def _texts(block: Block) -> Sequence[str]:
    return block.instructions or block.mnemonics


def _whole(block: Block | None) -> ShownBlock | None:
    if block is None:
        return None
    return _shown(block, [CodeLine(text, False) for text in _texts(block)])


def _shown(block: Block, lines: Sequence[CodeLine]) -> ShownBlock:
    return ShownBlock(block.address, len(block.mnemonics), tuple(lines))
