"""What is read from instruction words alone, against capstone at the same place."""

from __future__ import annotations

import numpy as np
import pytest

from graphkin.binaries.backends.native import processor
from graphkin.binaries.image import Image, Region
from graphkin.binaries.recovery.columns import RecordColumns
from graphkin.binaries.recovery.stretches import decode_pieces
from graphkin.binaries.recovery.words import WordColumns

WORDS = 20_000
HALF = 1 << 31


@pytest.mark.parametrize("name", ["aarch64", "arm", "mips", "mipsel", "mips64", "mips64el"])
@pytest.mark.parametrize("base", [0, 0x400000, 0x0FFFFFF0, HALF - 64, 0xFFFF800000000000])
def test_any_word_is_what_capstone_says_at_any_address(name: str, base: int) -> None:
    """Addresses below 16, beyond 31 bits, and on both sides of a limit of 256 MB among them."""
    if base > 1 << 32 and "64" not in name:
        pytest.skip("the processor has no such addresses")
    order = "big" if name in ("mips", "mips64") else "little"
    words = np.random.default_rng(base & 0xFFFF).integers(0, 1 << 32, WORDS, dtype=np.uint32)
    # Short distances too, and the same instruction with several of them.
    words[::3] &= np.uint32(0xFFE0001F)
    words[1::3] &= np.uint32(0xFC00003F)
    code = words.astype("<u4" if order == "little" else ">u4").tobytes()
    image = Image("elf", name, [Region(base, code, True)], [], [], frozenset(), byte_order=order)
    architecture, state = processor(name), "a" if name == "arm" else ""
    columns = decode_pieces(image, architecture, [(base, base + len(code), state)])[0].columns
    assert isinstance(columns, WordColumns)
    table, counts = architecture.decoder(state).decode_all([(code, base)])
    expected = RecordColumns(table, counts, architecture, order, state)
    for field in ("addresses", "sizes", "mnemonics", "words", "transfers"):
        assert getattr(columns, field) == getattr(expected, field)
    assert columns.texts(range(WORDS)) == expected.texts(range(WORDS))
