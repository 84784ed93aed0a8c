"""What RISC-V code tells of function starts."""

from __future__ import annotations

from graphkin.binaries.image import Image, Region
from graphkin.binaries.starts.clues import Clues
from graphkin.binaries.starts.locate import locate

RETURN = "8280"


def starts(code: str) -> list[int]:
    regions = [Region(0x1000, bytes.fromhex(code), True)]
    image = Image("elf", "riscv64", regions, [], [], frozenset())
    return [extent.start for extent in locate(image, Clues([], False)).extents]


def test_instructions_of_two_and_four_bytes() -> None:
    # ret | lui a0, 0x8082, whose upper half looks like a return; ret
    assert starts(f"{RETURN} 37258280 {RETURN}") == [0x1000, 0x1002]


def test_a_jump_after_the_frame_is_gone_is_a_call() -> None:
    # addi sp, -32; RELEASE; j 1008; nop; 1008: li a0, 1; ret
    code = "0111 {} 11a0 0100 0545 8280"
    assert starts(code.format("0561")) == [0x1000, 0x1008]
    assert starts(code.format("0100")) == [0x1000]


def test_a_jump_through_a_pointer_in_memory_leaves_the_function() -> None:
    # auipc a5, 0; addi a5, a5, 64; ld a5, 16(a5); jr a5 | ret
    assert starts(f"97070000 93870704 9c6b 8287 {RETURN}") == [0x1000, 0x100C]
    # The same with add a5, a5, a0 ahead of the load: perhaps labels of the same function.
    assert starts(f"97070000 93870704 aa97 9c63 8287 {RETURN}") == [0x1000]


def test_calls_of_two_instructions() -> None:
    # auipc ra, 0; jalr 12(ra); nop; li a0, 1: called, although the code ahead runs on; ret
    assert starts(f"97000000 e780c000 0100 0100 0545 {RETURN}") == [0x1000, 0x100C]
