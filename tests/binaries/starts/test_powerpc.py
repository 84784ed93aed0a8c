"""What PowerPC code tells of function starts."""

from __future__ import annotations

from graphkin.binaries.image import Image, Region
from graphkin.binaries.starts.clues import Clues
from graphkin.binaries.starts.locate import locate

RETURN, NOP, LI = "4e800020", "60000000", "38600001"
CONTENTS = "3c4c0001 38420000"
"""``addis r2, r12, 1; addi r2, r2, 0``."""


def starts(code: str, architecture: str = "ppc", **more: object) -> list[int]:
    content = bytes.fromhex(code)
    if architecture == "ppc64le":
        content = b"".join(content[at : at + 4][::-1] for at in range(0, len(content), 4))
    image = Image("elf", architecture, [Region(0x1000, content, True)], [], [], frozenset())
    image.byte_order = "big" if architecture == "ppc" else "little"
    for name, value in more.items():
        setattr(image, name, value)
    return [extent.start for extent in locate(image, Clues([], False)).extents]


def test_words_of_either_byte_order() -> None:
    code = f"{LI} {RETURN} {NOP} 60420000 {LI} {RETURN}"
    assert starts(code) == starts(code, "ppc64le") == [0x1000, 0x1010]


def test_a_jump_after_the_frame_is_gone_is_a_call() -> None:
    # stwu r1, -16(r1); RELEASE; b 1010; nop; 1010: li r3, 1; blr
    code = "9421fff0 {} 48000008 60000000 38600001 4e800020"
    assert starts(code.format("38210010")) == [0x1000, 0x1010]
    assert starts(code.format("80210000")) == [0x1000, 0x1010]
    assert starts(code.format(NOP)) == [0x1000]


def test_a_conditional_return_ends_nothing() -> None:
    assert starts(f"4d820020 {LI} {RETURN}") == [0x1000]


def test_what_computes_the_table_of_contents_is_a_start() -> None:
    # The code runs on from the first function to the second, as behind a call that never returns.
    code = f"{LI} 4e800421 {CONTENTS} {LI} {RETURN}"
    assert starts(code, "ppc64le", got=0x1008 + 0x10000) == [0x1000, 0x1008]
    assert starts(code, "ppc64le", got=0x5000) == [0x1000]


def test_a_call_of_the_local_entry_is_one_of_the_function() -> None:
    # bl to the local entry; blr; the table of contents; li r3, 1; blr
    code = f"48000010 {RETURN} {CONTENTS} {LI} {RETURN}".replace("48000010", "48000011")
    assert starts(code, "ppc64le", got=0x1008 + 0x10000) == [0x1000, 0x1008]
    # Without such code ahead of it, the target is the start.
    code = f"48000011 {RETURN} {LI} {LI} {LI} {RETURN}"
    assert starts(code, "ppc64le", got=0x20000) == [0x1000, 0x1008, 0x1010]
    told = {"got": 0x20000, "forwards": {0x1010: 0x1008}}
    assert starts(code, "ppc64le", **told) == [0x1000, 0x1008]


def test_what_restores_the_table_behind_a_last_call_is_no_start() -> None:
    # bl 2000, which never returns; ld r2, 24(r1) | li r3, 1; blr
    code = f"48001001 e8410018 {LI} {RETURN}"
    assert starts(code, "ppc64le") == [0x1000]
    assert starts(code, "ppc64le", noreturn=frozenset([0x2000])) == [0x1000, 0x1008]


def test_what_is_behind_a_call_of_abort_is_a_function() -> None:
    # bcl; mflr r30; addis r30, r30, 2; addi r30, r30, 12; bl to the stub; li r3, 1; blr
    # lwz r11, 16(r30); mtctr r11; bctr
    stub = "817e0010 7d6903a6 4e800420"
    code = f"429f0005 7fc802a6 3fde0002 3bde000c 4800000d {LI} {RETURN} {stub}"
    slot = 0x1004 + 0x2000C + 0x10
    assert 0x1014 not in starts(code)
    assert 0x1014 in starts(code, noreturn=frozenset([slot]))


def test_a_jump_through_a_pointer_in_memory_leaves_the_function() -> None:
    # lwz r9, 16(r3); mtctr r9; bctr | li r3, 1; blr
    assert starts(f"81230010 7d2903a6 4e800420 {LI} {RETURN}") == [0x1000, 0x100C]
    # The same from an array, with stwu ahead: perhaps labels of the same function.
    code = f"9421fff0 7d23202e 7d2903a6 4e800420 {LI} {RETURN}"
    assert starts(code) == [0x1000]


def test_tables_behind_functions_are_no_functions() -> None:
    # blr; a table with two words that look like instructions | li r3, 1; blr
    code = f"{RETURN} 00000000 03000000 04001280 {LI} {RETURN}"
    assert starts(code, "ppc64le") == [0x1000, 0x1010]
