"""What ARM code tells of function starts: the runtime of gcc, and tables in Thumb code."""

from __future__ import annotations

import numpy as np

from graphkin.binaries.image import Image, Region
from graphkin.binaries.starts.clues import Clues
from graphkin.binaries.starts.locate import locate
from graphkin.binaries.starts.sweep import NOT_CODE
from graphkin.binaries.starts.thumb_instructions import read_thumb


def starts(code: str) -> list[int]:
    region = Region(0x1000, bytes.fromhex(code), True)
    image = Image("elf", "arm", [region], [], [], frozenset())
    return [extent.start for extent in locate(image, Clues([], False)).extents]


def test_a_call_of_a_second_entry_comes_from_another_function() -> None:
    # cmp r1, #0; beq.w 100a; 1006: adds r0, #1; bx lr; 100a: movs r0, #0; bx lr
    # 100e: push {r0, r1, lr}; bl 1006; pop {r1, r2, pc}
    code = "0029 00f00280 0130 7047 0020 7047 03b5 fff7f9ff 06bd"
    assert starts(code) == [0x1000, 0x100E]


def test_three_entries_of_an_addition() -> None:
    # eor r1, r1, #1 << 31; b 100c; nop | 1008: eor r3, r3, #1 << 31
    # 100c: push {r4, r5, lr}; pop {r4, r5, pc}
    assert starts("81f00041 02e0 00bf 83f00043 30b5 30bd") == [0x1000, 0x1008, 0x100C]


def test_a_function_that_jumps_into_another() -> None:
    # push {r4, lr}; movs r0, #1; 1004: adds r0, #2; pop {r4, pc} | 1008: movs r0, #2
    # push {r4, lr}; b 1004
    assert starts("10b5 0120 0230 10bd 0220 10b5 fae7") == [0x1000, 0x1008]


def test_a_table_is_no_longer_than_the_comparison_says() -> None:
    # cmp r0, #1; bhi 1016; tbb [pc, r0]; .byte 7, 6; ldr r1, [pc, #16]; bx lr; movs r0, #9; bx lr
    # movs r0, #8; bx lr; movs r0, #7; bx lr; nop; .word | 1020: push {r4, lr}; pop {r4, pc}
    code = "0128 08d8 dfe800f0 0706 0449 7047 0920 7047 0820 7047 0720 7047 00bf {} 10b5 10bd"
    assert starts(code.format("00b500b5"))[-1] == 0x1020
    assert 0x101C not in starts(code.format("00b500b5"))


def test_a_table_of_distances_is_no_code() -> None:
    # push {r4, lr}; cmp r0, #1; bhi 1018; adr r1, 1010; ldr.w r2, [r1, r0, lsl #2]; add r1, r2
    # bx r1 | 1010: two distances, like push {r0, lr} | 1018: pop {r4, pc}
    code = "10b5 0128 08d8 02a1 51f8 2020 1144 {} 01b50000 01b50000 10bd"

    def data(jump: str) -> list[int]:
        halves = np.frombuffer(bytes.fromhex(code.format(jump)), "<u2").astype(np.int64)
        sweep = read_thumb(halves, 0x1000)
        return [int(address) for address in sweep.address[sweep.kind == NOT_CODE]]

    assert data("0847") == [0x1010, 0x1012, 0x1014, 0x1016]
    # Of bx r2, which is not where the sum is, only what adr may load is known.
    code = code.replace("01b50000 01b50000", "01b50000 01b50000 01b50000").replace("0128", "0228")
    assert len(data("0847")) == 6
    assert len(data("1047")) == 4


def test_constants_ahead_of_what_loads_them_are_no_code() -> None:
    # push {r4, lr}; b 1010; nop; nop | 1008: two words, like push {lr} | 1010: LOAD; pop {r4, pc}
    code = "10b5 05e0 00bf 00bf {}00b500b5 {} 10bd"
    single, double, pair = "1fed020a", "1fed030b", "5fe9030c"
    assert starts(code.format("00bf00bf", single)) == [0x1000]
    assert starts(code.format("00b500b5", double)) == [0x1000]
    assert starts(code.format("00b500b5", pair)) == [0x1000]
    assert starts(code.format("00b500b5", "00bf00bf")) != [0x1000]


def test_jumps_behind_padding_are_thumb() -> None:
    """Code for a switch that is not optimised: ``nop; b`` begins like words of ARM."""
    # movs r0, #0 40 times; nop; b 2 further on, 16 times; pop {r7, pc} | push {r7, lr}; pop
    code = "0020" * 40 + "00bf 00e0" * 16 + "00bf 80bd 80b5 80bd"
    assert starts(code) == [0x1000, 0x1094]


def test_a_bridge_from_thumb_to_arm_is_one_function() -> None:
    """Nothing else says so: ``bx pc`` goes on in ARM behind the next instruction."""
    # push {r4, lr}; bl 1010; pop {r4, pc} ... | 1010: bx pc; b 1010; b 1020 (ARM) | 1018: the same
    # with nop, and b 1020 | 1020: ARM, mov r0, #1; bx lr
    thumb = "10b5 00f005f8 10bd" + "0020" * 3 + "7047"
    bridges = "7847 fde7 010000ea" + "7847 c046 ffffffea"
    assert starts(thumb + bridges + "0100a0e3 1eff2fe1")[-3:] == [0x1010, 0x1018, 0x1020]


def test_arm_between_thumb_begins_with_its_first_word() -> None:
    """Its looks are those of the Thumb code around it, up to half of a window."""
    thumb = "10b5 0020 0130 10bd" * 60
    # push {r0-r4}; ldr r0, [lr, #-4]; sub; sub; add; blx; mov; pop; bx ip | 20 x add; bx lr
    first = "1f002de9 04001ee5 0e104ce0 041041e2 011081e0 c70e00fa 00c0a0e1 1f40bde8 1cff2fe1"
    second = "011081e0" * 20 + "1eff2fe1"
    begin = 0x1000 + 8 * 60
    end = begin + 4 * (9 + 21)
    inside = [start for start in starts(thumb + first + second + thumb) if begin <= start <= end]
    assert inside == [begin, begin + 36, end]
