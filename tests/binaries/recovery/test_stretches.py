"""Functions that are decoded together are what they are alone."""

from __future__ import annotations

import pytest

from graphkin.binaries.backends.native import processor
from graphkin.binaries.image import Extent, Image, Region
from graphkin.binaries.recovery.architecture import STOP
from graphkin.binaries.recovery.listing import Listing
from graphkin.binaries.recovery.stretches import MOST_BYTES, MOST_FUNCTIONS, Batch, in_batches

BASE = 0x1000
Row = tuple[int, int, str, str]


def listed(listing: Listing) -> tuple[list[Row], list[tuple[int, int, bytes]]]:
    """All that a listing says of its instructions, and of its transfers."""
    positions = range(len(listing.addresses))
    texts = [listing.text(position) for position in positions]
    rows = zip(listing.addresses, listing.sizes, listing.mnemonics, texts, strict=True)
    controls = zip(listing.controls, listing.kinds, listing.operands, strict=True)
    return list(rows), list(controls)


def check(name: str, functions: list[str], marks: list[tuple[int, str]] | None = None) -> Batch:
    """That functions given in hexadecimal, one behind the other, are the same in a batch."""
    code = [bytes.fromhex(function) for function in functions]
    starts = [BASE + sum(map(len, code[:number])) for number in range(len(code))]
    extents = [Extent(start, start + len(own), "") for start, own in zip(starts, code, strict=True)]
    region = Region(BASE, b"".join(code), True)
    image = Image("elf", name, [region], extents, [], frozenset(), marks=marks or [])
    batch = Batch(image, processor(name), extents)
    for extent in extents:
        alone, together = Listing(image, processor(name)), Listing(image, processor(name))
        alone.add_range(extent.start, extent.end)
        together.add_range(extent.start, extent.end, batch.stretches(extent.start, extent.end))
        assert listed(together) == listed(alone)
        assert together.words() == alone.words()
    return batch


def test_decoding_starts_anew_with_each_function() -> None:
    """The first one is cut in the middle of an instruction; the second is none at all."""
    batch = check("x86-64", ["5548b8", "06", "", "ffc0c3", "48b811223344556677889090c3"])
    assert [len(batch.stretches(*own)) for own in [(BASE + 3, BASE + 4), (BASE + 4, BASE + 4)]] == [
        1,
        1,
    ]
    (nothing,) = batch.stretches(BASE + 3, BASE + 4)
    assert nothing.first == nothing.end
    (longer,) = batch.stretches(BASE + 7, BASE + 20)
    assert longer.columns.mnemonics[longer.first : longer.end] == ["movabs", "nop", "nop", "ret"]


def test_a_function_of_several_states_amid_others() -> None:
    """ARM, Thumb with a conditional instruction, data, and ARM again."""
    thumb, arm = "08bf0120704700bf", "010080e21eff2fe1"
    marks = [(BASE, "a"), (BASE + 16, "t"), (BASE + 24, "d"), (BASE + 28, "a"), (BASE + 36, "t")]
    batch = check("arm", [arm, arm + thumb + "ffffffff" + arm, thumb], marks)
    pieces = batch.stretches(BASE + 8, BASE + 36)
    assert [(piece.start - BASE, piece.state) for piece in pieces] == [
        (8, "a"),
        (16, "t"),
        (28, "a"),
    ]
    assert pieces[0].columns is pieces[2].columns


def test_a_branch_at_the_end_of_a_function_has_no_delay_slot() -> None:
    """The instruction behind it belongs to the next function, or to none."""
    jump, nop, add = "0800e003", "00000000", "01004224"
    batch = check("mipsel", [add + jump, add + jump + nop, jump])
    (first,) = batch.stretches(BASE, BASE + 8)
    transfers = first.columns.transfers
    assert transfers.rows == [1, 4, 5]
    assert transfers.kinds == [STOP] * 3
    assert transfers.slots == [4]


def test_words_that_do_not_stand_at_multiples_of_their_size() -> None:
    check("aarch64", ["c0035fd6", "00", "00000090c0035fd6"])


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ([1] * (MOST_FUNCTIONS + 1), [MOST_FUNCTIONS, 1]),
        ([MOST_BYTES, 1, MOST_BYTES - 1, 1], [1, 2, 1]),
        ([1, 9 * MOST_BYTES, 1], [1, 1, 1]),
        ([], []),
    ],
)
def test_batches_are_bounded(sizes: list[int], expected: list[int]) -> None:
    extents = [(number, Extent(0, size, "")) for number, size in enumerate(sizes)]
    batches = list(in_batches(extents))
    assert [len(batch) for batch in batches] == expected
    assert [item for batch in batches for item in batch] == extents
