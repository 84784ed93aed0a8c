"""What MIPS code tells of function starts: delay slots, and the address in ``$t9``."""

from __future__ import annotations

from graphkin.binaries.image import Image, Region, UnwindRange
from graphkin.binaries.starts.clues import Clues
from graphkin.binaries.starts.locate import locate

LOAD_PAGE, ADD_LOW, CALL_T9 = "8f998010", "27391018", "0320f809"
"""``lw $t9, -32752($gp)``, ``addiu $t9, $t9, 0x1018``, ``jalr $t9``."""
RETURN, NOP = "03e00008", "00000000"


def starts(
    code: str,
    got: int | None = None,
    table: bytes = b"",
    unwind: tuple[UnwindRange, ...] = (),
    **more: object,
) -> list[int]:
    regions = [Region(0x1000, bytes.fromhex(code), True)]
    if got is not None:
        regions.append(Region(got - 0x7FF0, table, False, True))
    image = Image("elf", "mips", regions, [], [], frozenset(), got=got, byte_order="big")
    for name, value in more.items():
        setattr(image, name, value)
    return [extent.start for extent in locate(image, Clues([], False, unwind)).extents]


def test_the_slot_of_a_return_belongs_to_its_function() -> None:
    # jr $ra; li $v0, 1 | jr $ra; nop
    assert starts(f"{RETURN} 24020001 {RETURN} {NOP}") == [0x1000, 0x1008]


def test_words_of_either_byte_order() -> None:
    code = bytes.fromhex("0800e003 01000224 0800e003 00000000")
    image = Image("elf", "mipsel", [Region(0x1000, code, True)], [], [], frozenset())
    assert [item.start for item in locate(image, Clues([], False)).extents] == [0x1000, 0x1008]


def test_a_jump_whose_slot_gives_the_frame_back_is_a_call() -> None:
    # addiu $sp, -32; b 1010; SLOT; nop; 1010: li $v0, 1; jr $ra; nop
    code = "27bdffe0 10000002 {} 00000000 24020001 03e00008 00000000"
    assert starts(code.format("27bd0020")) == [0x1000, 0x1010]
    assert starts(code.format(NOP)) == [0x1000]


def test_a_function_that_finds_its_table_tells_its_address() -> None:
    # jalr $t9, of which nothing is known; nop | lui $gp, 1; addiu $gp, 16; addu $gp, $gp, $t9
    code = f"{CALL_T9} {NOP} 3c1c0001 279c0010 0399e021 {RETURN} {NOP}"
    assert starts(code, got=0x1008 + 0x10010) == [0x1000, 0x1008]
    assert starts(code, got=0x100C + 0x10010) == [0x1000, 0x100C]
    assert starts(code) == [0x1000]


def test_what_is_called_through_the_table_is_a_function() -> None:
    # The code runs on from 1010 to 1018, so that only the call tells of a function there.
    body = f"24020001 24420001 24420001 {RETURN} {NOP}"
    code = f"{LOAD_PAGE} {ADD_LOW} {CALL_T9} {NOP} {body}"
    assert starts(code, got=0x20000, table=bytes(64)) == [0x1000, 0x1018]
    # Behind a jump, the register may hold anything.
    code = f"{LOAD_PAGE} 10000001 {ADD_LOW} {CALL_T9} {NOP} 24420001 {RETURN} {NOP}"
    assert 0x1018 not in starts(code, got=0x20000, table=bytes(64))


def test_what_is_behind_a_call_of_abort_is_a_function() -> None:
    slot = 0x20000 - 0x7FF0
    code = f"{LOAD_PAGE} {CALL_T9} {NOP} 24020001 {RETURN} {NOP}"
    table = (0x5000).to_bytes(4, "big")
    assert starts(code, got=0x20000, table=table) == [0x1000]
    imports = {"imports": {slot: "abort"}, "noreturn": frozenset([slot])}
    assert starts(code, got=0x20000, table=table, **imports) == [0x1000, 0x100C]


def test_a_call_of_what_follows_asks_for_its_address() -> None:
    # bal 1008; nop; 1008: jr $ra; nop
    assert starts(f"04110001 {NOP} {RETURN} {NOP}") == [0x1000]


def test_the_end_of_a_failed_system_call_is_no_function_though_a_table_lists_it() -> None:
    # 1000: lw $t9, -32752($gp); jr $t9; nop | 100c: syscall; bnez $a3, 1000; nop; jr $ra; nop
    code = f"{LOAD_PAGE} 03200008 {NOP} 0000000c 14e0fffb {NOP} {RETURN} {NOP}"
    unwind = (UnwindRange(0x1000, 0x100C, False), UnwindRange(0x100C, 0x1020, False))
    assert starts(code, unwind=unwind) == [0x100C]
    # The same for n64: move $at, $gp; lui, addiu and daddu of $gp; ld $t9; jr $t9; move $gp, $at
    ask = "03800825 3c1c0009 279ca414 0399e02d df998ae8 03200008 0020e025"
    unwind = (UnwindRange(0x1000, 0x101C, False), UnwindRange(0x101C, 0x1024, False))
    assert starts(f"{ask} {RETURN} {NOP}", unwind=unwind) == [0x101C]
