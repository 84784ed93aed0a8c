"""Lines that functions pass on, and constants that look like them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from graphkin.binaries.function import Block, Function, Token
from graphkin.binaries.operations import OPERATION
from graphkin.library.diff.line_shifts import Shift, functions_that_shift, shifts_of

CALLING, ADDING = bytes([OPERATION["move"], OPERATION["call"]]), bytes([OPERATION["add"]] * 2)


def function(blocks: Sequence[tuple[bytes, Sequence[Token]]]) -> Function:
    """A function whose blocks do and say this."""
    return Function(
        name="f",
        address=0x1000,
        size=64,
        blocks=tuple(
            Block(0x1000 + 8 * row, 8, ("mov", "call"), None, operations, tuple(said))
            for row, (operations, said) in enumerate(blocks)
        ),
        edges=(),
        architecture="x86-64",
        format="elf",
        file_hash="",
        binary="f",
    )


def number(value: int) -> Token:
    return Token("num", str(value))


def passing(value: int, operations: bytes = CALLING) -> Function:
    return function([(ADDING, [number(7)]), (operations, [number(value), Token("off", "8")])])


def test_a_number_beside_a_call_may_be_a_line() -> None:
    assert shifts_of(passing(700), passing(705)) == {Shift(700, 705)}
    assert Shift(700, 705).lines == 5
    assert not shifts_of(passing(700, ADDING), passing(705, ADDING)), "no call takes it"
    assert not shifts_of(passing(700), passing(1700)), "no patch adds as many"
    assert not shifts_of(passing(10), passing(11)), "no function begins there"
    assert not shifts_of(passing(1000), passing(1024)), "that is a size"


def test_offsets_of_fields_may_differ_and_nothing_else() -> None:
    ours = passing(700)
    blocks = passing(705).blocks
    moved = (Token("off", "16"), number(705))
    assert shifts_of(ours, replace(ours, blocks=(blocks[0], blocks[1]._replace(evidence=moved))))
    other = blocks[0]._replace(evidence=(number(9),))
    assert not shifts_of(ours, replace(ours, blocks=(other, blocks[1])))
    said = blocks[1]._replace(evidence=(number(705), Token("str", "new")))
    assert not shifts_of(ours, replace(ours, blocks=(blocks[0], said)))


def test_other_functions_confirm_a_shift() -> None:
    def shifting(*shifts: tuple[int, int]) -> set[int]:
        return functions_that_shift(
            {row: frozenset({Shift(before, after)}) for row, (before, after) in enumerate(shifts)}
        )

    assert shifting((700, 705)) == set(), "a constant that somebody changed"
    assert shifting((700, 705), (900, 905)) == {0, 1}
    assert shifting((700, 705), (900, 912)) == set()
    assert shifting((500, 505), (600, 605), (700, 708), (900, 912), (950, 962)) == {0, 1, 2, 3, 4}
    assert shifting((500, 505), (600, 605), (700, 702), (900, 912), (950, 962)) == {0, 1, 3, 4}


def test_a_function_needs_all_its_shifts_confirmed() -> None:
    shifts = {
        0: frozenset({Shift(700, 705), Shift(710, 790)}),
        1: frozenset({Shift(900, 905)}),
        2: frozenset[Shift](),
    }
    assert functions_that_shift(shifts) == {1}
