"""32-bit ARM and Thumb of gcc and clang: tables in code, literal pools, stripped files."""

from __future__ import annotations

import struct

import pytest

from graphkin.binaries.backends.native import load
from graphkin.binaries.formats.elf.exidx import index_ranges, index_starts, past_padding
from graphkin.binaries.image import Image, Region
from graphkin.binaries.processors.arm import Arm
from graphkin.binaries.starts.clues import Clues
from graphkin.binaries.starts.locate import locate
from tests.binaries import shapes

NAMES = shapes.names("arm")


@pytest.mark.parametrize("name", NAMES)
def test_tables_have_as_many_targets_as_the_source_has_cases(name: str) -> None:
    functions = shapes.functions(name)
    expected = {"dense": [12], "shifted": [10], "holes": [10], "wide": [60], "twice": [7, 9]}
    if "gcc-arm" in name:
        # The jump is conditional, so the default follows it too; where the table is a row of
        # branches, each of its entries is a block, also those that go to the default.
        expected = {key: [width + 1 for width in widths] for key, widths in expected.items()}
        if "shared" in name:
            expected["holes"] = [16]
    assert {key: shapes.widths(functions[key]) for key in expected} == expected


@pytest.mark.parametrize("name", NAMES)
def test_calls_that_never_return(name: str) -> None:
    if name.startswith("arm/clang-thumb") and not name.endswith("O0"):
        # There the call is conditional, so it ends no block.
        assert len(shapes.functions(name)["checked"].blocks) == 1
        return
    shapes.check_no_return(name)


@pytest.mark.parametrize("name", [name for name in NAMES if name.endswith("O2")])
def test_objects_and_stripped_files(name: str) -> None:
    shapes.check_object(name)
    # GNU ld folds neighbours that unwind alike into one entry, and some are never called.
    shapes.check_stripped(name, missing=6 if "gcc" in name and "static" in name else 0)


@pytest.mark.parametrize("name", [name for name in NAMES if name.endswith("O2")])
def test_the_state_of_stripped_functions(name: str) -> None:
    """ARM or Thumb is told without symbols, for what nothing calls by its looks."""
    image = load((shapes.SAMPLES / f"{name}-stripped").read_bytes(), name)
    expected = "t" if "thumb" in name else "a"
    own = {function.address for function in shapes.functions(name).values()}
    extents = [extent for extent in image.extents if extent.start in own]
    assert {image.pieces(*extent[:2])[0][2] for extent in extents} == {expected}


def test_the_index_for_unwinding() -> None:
    # At 0x2000: an entry for 0x1000, one for 0x3000
    data = bytes.fromhex("00f0ff7f 01000000 f80f0000 b0b0b080")
    assert index_starts(data, 0x2000) == [0x1000, 0x3000]
    assert index_ranges(data, 0x2000) == []


@pytest.mark.parametrize(
    ("start", "code", "first"),
    [
        (0x1000, "00000000 10b5", 4),
        (0x1002, "00bf 10b5 10bd", 2),
        (0x1002, "00bf aff30080 aff30080 4ff07707", 10),
        (0x1000, "00bf00bf aff30080 10b5 10bd", 8),
        (0x1000, "0000a0e1 00f020e3 0000a0e3", 8),
        (0x1000, "0000a0e3 1eff2fe1", 0),
        (0x1000, "00000000" * 20, 0),
    ],
    ids=["zeros", "nop", "Thumb", "wide", "ARM", "mov r0, #0", "nothing else"],
)
def test_an_entry_on_padding_is_for_what_follows(start: int, code: str, first: int) -> None:
    regions = [Region(start, bytes.fromhex(code) + b"\x10\xbd", True)]
    assert past_padding(start, regions) == start + first
    assert past_padding(start - 4, regions) == start - 4


def test_functions_that_the_index_for_unwinding_does_not_fold_have_an_end() -> None:
    """0x1000 has a description elsewhere; those of 0x1040 and 0x1080 may be of several functions;
    nothing tells where 0x10c0 ends."""
    words = [(0x1000, 0x100), (0x1040, 0x80B0B0B0), (0x1080, 1), (0x10C0, 0x100)]
    data = b"".join(
        struct.pack("<II", (start - 0x2000 - 8 * number) & 0x7FFFFFFF, description)
        for number, (start, description) in enumerate(words)
    )
    assert index_ranges(data, 0x2000) == [(0x1000, 0x1040, False)]


def test_calls_tell_starts_and_states() -> None:
    # ARM at 0x1000: bl 0x1010; blx 0x1018; bx lr; nop -- 0x1010: bx lr (ARM); nop
    # Thumb at 0x1018: bl 0x101e; bx lr -- 0x101e: bx lr
    arm = "020000eb 030000fa 1eff2fe1 00f020e3 1eff2fe1 00f020e3"
    code = bytes.fromhex(f"{arm} 00f001f8 7047 7047")
    region = Region(0x1000, code, True)
    image = Image("elf", "arm", [region], [], [], frozenset(), marks=[(0x1000, "a")])
    located = locate(image, Clues([], False, entries=[0x1000]))
    states = {extent.start: located.pieces(*extent[:2])[0][2] for extent in located.extents}
    assert states == {0x1000: "a", 0x1010: "a", 0x1018: "t", 0x101E: "t"}


@pytest.mark.parametrize(
    ("stop", "state"),
    [
        ("1eff2fe1", "a"),  # bx lr
        ("1080bde8", "a"),  # pop {r4, pc}
        ("04f09de4", "a"),  # pop {pc}
        ("f0af1be9", "a"),  # ldmdb fp, {..., pc}
        ("0ef0a0e1", "a"),  # mov pc, lr
        ("04f05ee2", "a"),  # subs pc, lr, #4
        ("f000f0e7", "a"),  # udf
        ("7047", "t"),  # bx lr
        ("10bd", "t"),  # pop {r4, pc}
        ("bde8f08f", "t"),  # pop.w {..., pc}
        ("5df804fb", "t"),  # ldr pc, [sp], #4
        ("00de", "t"),  # udf
    ],
)
def test_what_ends_a_path(stop: str, state: str) -> None:
    behind = "00f020e3 1eff2fe1" if state == "a" else "00bf 7047"
    blocks, edges = shapes.recover(Arm(), f"{stop} {behind}", state)
    assert [len(block.mnemonics) for block in blocks] == [1]
    assert edges == ()


@pytest.mark.parametrize(
    ("code", "state", "first"),
    [
        ("1eff2f11 0000a0e3 1eff2fe1", "a", ("bxne",)),
        ("1080bd18 0000a0e3 1eff2fe1", "a", ("popne",)),
        ("0ef0a001 0000a0e3 1eff2fe1", "a", ("moveq",)),
        ("18bf 7047 0020 7047", "t", ("it", "bxne")),
        ("08bf 10bd 0020 7047", "t", ("it", "popeq")),
    ],
)
def test_a_conditional_return_goes_on_too(code: str, state: str, first: tuple[str, ...]) -> None:
    blocks, edges = shapes.recover(Arm(), code, state)
    assert blocks[0].mnemonics == first
    assert edges == ((0, 1),)


def test_branches_of_thumb() -> None:
    # cbz r0, +6; cbnz r1, +4; beq +2; b +0; bx lr
    blocks, edges = shapes.recover(Arm(), "10b1 09b9 00d0 ffe7 7047", "t")
    assert [block.mnemonics[0] for block in blocks] == ["cbz", "cbnz", "beq", "b", "bx"]
    assert edges == ((0, 1), (0, 4), (1, 2), (1, 4), (2, 3), (2, 4), (3, 4))
