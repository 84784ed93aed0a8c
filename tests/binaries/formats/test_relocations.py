"""Relocations, written into instructions that capstone then reads."""

from __future__ import annotations

import capstone
import pytest

from graphkin.binaries.formats.elf.relocations import Site, apply

PLACE, SYMBOL, GOT = 0x1_1000, 0x1_2348, 0x1_5000
MACHINES = {
    "AARCH64": (capstone.CS_ARCH_ARM64, capstone.CS_MODE_LITTLE_ENDIAN),
    "ARM_THM": (capstone.CS_ARCH_ARM, capstone.CS_MODE_THUMB),
    "ARM": (capstone.CS_ARCH_ARM, capstone.CS_MODE_ARM),
}


def written(kind: str, code: str, addend: int | None, symbol: int = SYMBOL) -> bytes:
    content = bytearray(bytes.fromhex(code))
    apply(kind, Site(content, 0, PLACE, symbol, addend, GOT))
    return bytes(content)


@pytest.mark.parametrize(
    ("kind", "code", "text"),
    [
        ("AARCH64_CALL26", "00000094", "bl #0x12350"),
        ("AARCH64_JUMP26", "00000014", "b #0x12350"),
        ("AARCH64_CONDBR19", "00000054", "b.eq #0x12350"),
        ("AARCH64_TSTBR14", "00001836", "tbz w0, #3, #0x12350"),
        ("AARCH64_ADR_PREL_LO21", "01000010", "adr x1, #0x12350"),
        ("AARCH64_ADR_PREL_PG_HI21", "01000090", "adrp x1, #0x12000"),
        ("AARCH64_ADR_GOT_PAGE", "01000090", "adrp x1, #0x12000"),
        ("AARCH64_ADD_ABS_LO12_NC", "21000091", "add x1, x1, #0x350"),
        ("AARCH64_LDST8_ABS_LO12_NC", "21004039", "ldrb w1, [x1, #0x350]"),
        ("AARCH64_LDST16_ABS_LO12_NC", "21004079", "ldrh w1, [x1, #0x350]"),
        ("AARCH64_LDST32_ABS_LO12_NC", "210040b9", "ldr w1, [x1, #0x350]"),
        ("AARCH64_LDST64_ABS_LO12_NC", "210040f9", "ldr x1, [x1, #0x350]"),
        ("AARCH64_LDST128_ABS_LO12_NC", "2100c03d", "ldr q1, [x1, #0x350]"),
        ("AARCH64_LD64_GOT_LO12_NC", "210040f9", "ldr x1, [x1, #0x350]"),
        ("AARCH64_LD_PREL_LO19", "01000058", "ldr x1, #0x12350"),
    ],
)
def test_aarch64_instructions(kind: str, code: str, text: str) -> None:
    assert _decode("AARCH64", written(kind, code, 8)) == text


@pytest.mark.parametrize("thumb", [0, 1])
@pytest.mark.parametrize(
    ("kind", "code", "text"),
    [
        ("ARM_CALL", "feffffeb", "bl #0x12348"),
        ("ARM_JUMP24", "feffff0a", "beq #0x12348"),
        ("ARM_THM_CALL", "fff7feff", "bl #0x12348"),
        ("ARM_THM_JUMP24", "fff7febf", "b.w #0x12348"),
        ("ARM_THM_JUMP19", "3ff4feaf", "beq.w #0x12348"),
        ("ARM_MOVW_ABS_NC", "000000e3", "movw r0, #0x2348"),
        ("ARM_MOVT_ABS", "000040e3", "movt r0, #1"),
        ("ARM_THM_MOVW_ABS_NC", "40f20000", "movw r0, #0x2348"),
        ("ARM_THM_MOVT_ABS", "c0f20000", "movt r0, #1"),
    ],
)
def test_arm_instructions_keep_their_addends(kind: str, code: str, text: str, thumb: int) -> None:
    """The bit that says Thumb belongs to an address, and to no branch."""
    if "MOVW" in kind and thumb:
        text = text.replace("8", "9")
    machine = "ARM_THM" if "THM" in kind else "ARM"
    assert _decode(machine, written(kind, code, None, SYMBOL | thumb)) == text


@pytest.mark.parametrize(("distance", "kind"), [(-4096, "ARM_THM_CALL"), (0x7FFFFE, "ARM_THM_CALL"),
                                                (-0x800000, "ARM_THM_JUMP24")])  # fmt: skip
def test_far_and_backward_branches_of_thumb(distance: int, kind: str) -> None:
    code = "fff7feff" if kind == "ARM_THM_CALL" else "fff7febf"
    target = 0x100_0000 + distance
    content = bytearray(bytes.fromhex(code))
    apply(kind, Site(content, 0, 0x100_0000, target, None, GOT))
    decoder = capstone.Cs(*MACHINES["ARM_THM"])
    (item,) = decoder.disasm(bytes(content), 0x100_0000)
    assert item.op_str == f"#{target:#x}"


@pytest.mark.parametrize(
    ("kind", "before", "after"),
    [
        ("X86_32", 4, SYMBOL + 4),
        ("X86_PC32", -4, SYMBOL - 4 - PLACE),
        ("X86_PLT32", -4, SYMBOL - 4 - PLACE),
        ("X86_GOTOFF", 0x30, SYMBOL + 0x30 - GOT),
        ("X86_GOTPC", 2, GOT + 2 - PLACE),
        ("X86_GOT32X", 0, SYMBOL - GOT),
        ("ARM_ABS32", 8, SYMBOL + 8),
        ("ARM_REL32", 8, SYMBOL + 8 - PLACE),
        ("ARM_PREL31", 0, SYMBOL - PLACE),
        ("ARM_GOTOFF32", 0, SYMBOL - GOT),
    ],
)
def test_words_with_the_addend_in_place(kind: str, before: int, after: int) -> None:
    code = (before % (1 << 32)).to_bytes(4, "little").hex()
    assert written(kind, code, None) == (after % (1 << 32)).to_bytes(4, "little")


@pytest.mark.parametrize(
    ("kind", "width", "after"),
    [
        ("X86_64_64", 8, SYMBOL + 8),
        ("X86_64_PC32", 4, SYMBOL + 8 - PLACE),
        ("AARCH64_ABS64", 8, SYMBOL + 8),
        ("AARCH64_PREL32", 4, SYMBOL + 8 - PLACE),
        ("AARCH64_PREL64", 8, SYMBOL + 8 - PLACE),
    ],
)
def test_words_with_an_addend_of_their_own(kind: str, width: int, after: int) -> None:
    assert written(kind, "ff" * width, 8) == after.to_bytes(width, "little")


@pytest.mark.parametrize("kind", ["ARM_ABS32", "AARCH64_CALL26", "X86_64_64", "ARM_NO_SUCH"])
def test_a_place_past_the_end_is_left_alone(kind: str) -> None:
    assert written(kind, "112233", 0) == bytes.fromhex("112233")


def _decode(machine: str, code: bytes) -> str:
    (item,) = capstone.Cs(*MACHINES[machine]).disasm(code, PLACE)
    return f"{item.mnemonic} {item.op_str}"
