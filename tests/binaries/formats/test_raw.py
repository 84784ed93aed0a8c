"""Raw images: code of a known file without its headers gives most of its functions."""

from __future__ import annotations

import re
import struct
from pathlib import Path

import lief
import pytest

from graphkin.binaries.backends.choose import check_backend, open_source
from graphkin.binaries.formats.raw import load_raw, parse_raw
from graphkin.binaries.function import Function
from graphkin.errors import ConfigError, FormatError
from tests.paths import BINARIES

BASE = 0x8000000
PROCESSORS = ("x86", "x86-64", "aarch64", "arm", "thumb", "mips", "mips64el", "riscv64", "ppc",
              "ppc64le")  # fmt: skip
LEAF = b"\x70\x47"
"""``bx lr``, Thumb."""


def functions(path: Path, backend: str) -> dict[int, Function]:
    return {f.address: f for f in open_source(path, backend=backend).functions()}


def _write_memory(binary: lief.ELF.Binary, path: Path) -> int:
    """Writes code, and constants behind it, as they lie in memory; returns the address."""
    text, constants = binary.get_section(".text"), binary.get_section(".rodata")
    assert text is not None
    assert constants is not None
    memory = bytes(text.content)
    if constants.virtual_address > text.virtual_address:
        memory = memory.ljust(constants.virtual_address - text.virtual_address, b"\0")
        memory += bytes(constants.content)
    path.write_bytes(memory)
    return int(text.virtual_address)


@pytest.mark.parametrize(
    ("sample", "processor"),
    [
        ("x86/gcc-static-O2", "x86"),
        ("aarch64/gcc-static-O2", "aarch64"),
        ("arm/clang-arm-static-O2", "arm"),
        ("arm/clang-thumb-static-O2", "thumb"),
        ("mips/gcc-static-O2", "mips"),
        ("mipsel/clang-static-O2", "mipsel"),
        ("mips64el/gcc-static-O2", "mips64el"),
        ("riscv64/gcc-static-O2", "riscv64"),
        ("ppc/gcc-static-O2", "ppc"),
        ("ppc64le/gcc-static-O2", "ppc64le"),
        ("ppc64le/clang-static-O2", "ppc64le"),
    ],
)
def test_code_without_headers(sample: str, processor: str, tmp_path: Path) -> None:
    path = BINARIES / sample
    if not path.exists():
        pytest.skip(f"{sample} is not among the samples")
    binary = lief.ELF.parse(path)
    assert binary is not None
    raw = tmp_path / "image.bin"
    base = _write_memory(binary, raw)
    recovered = functions(raw, f"raw:{processor}@{base:#x}")
    expected = functions(path, "native")
    same = recovered.keys() & expected.keys()
    assert len(same) >= 0.8 * len(expected)
    # Code whose jump tables lie elsewhere has fewer blocks.
    assert sum(recovered[address].blocks == expected[address].blocks for address in same) >= 6
    function = next(iter(recovered.values()))
    assert (function.format, function.binary) == ("raw", str(raw))


def test_a_vector_table_of_thumb() -> None:
    """Stack, reset, a handler twice, an empty slot, then code; the table ends where it begins."""
    handlers = [0x20, 0x22, 0x22]
    table = struct.pack("<I", 0x20001000)
    table += b"".join(struct.pack("<I", BASE + handler + 1) for handler in handlers)
    table += bytes(4) + struct.pack("<3I", 0xDEADBEEF, 0, 0)
    image = load_raw(table + 8 * LEAF, "x", parse_raw(f"thumb@{BASE:#x}"))
    assert {0x20, 0x22} <= {extent.start - BASE for extent in image.extents}
    assert all(extent.start >= BASE + 0x14 for extent in image.extents)
    assert image.architecture == "arm"


def test_a_vector_table_of_arm() -> None:
    """``ldr pc`` through a table to Thumb code, and a jump to ARM code."""
    load = struct.pack("<I", 0xE59FF018)
    jump = struct.pack("<I", 0xEA000000 | (0x48 - 0x04 - 8) // 4)
    content = load + jump + 6 * struct.pack("<I", 0xE1A00000)
    content += struct.pack("<8I", BASE + 0x41, *[0] * 7)
    content += 4 * LEAF + 2 * struct.pack("<I", 0xE12FFF1E)
    image = load_raw(content, "x", parse_raw(f"arm@{BASE:#x}"))
    states = dict(image.marks)
    assert states[BASE] == "a"
    assert states[BASE + 0x40] == "t"
    assert states[BASE + 0x48] == "a"


@pytest.mark.parametrize(
    "text", ["", "arm", "vax@0", "arm@", "arm@x", "arm@-4", "x86@0x8000000000000000"]
)
def test_what_it_takes(text: str) -> None:
    with pytest.raises(ConfigError, match="--raw takes"):
        check_backend(f"raw:{text}")


@pytest.mark.parametrize(
    ("text", "example"),
    [
        ("thumb@0x8000001", "0x8000000, without the bit that marks Thumb; got '0x8000001'"),
        ("arm@0x8002", "a multiple of 4, such as 0x8000; got"),
        ("arm64@3", "a multiple of 4, such as 0x0; got"),
        ("mipsel@0x80000002", "such as 0x80000000; got"),
        ("riscv64@0x1001", "a multiple of 2, such as 0x1000; got"),
        ("ppc@6", "such as 0x4; got"),
    ],
)
def test_a_base_that_no_instruction_can_have(text: str, example: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(example)):
        check_backend(f"raw:{text}")


@pytest.mark.parametrize("text", ["thumb@0x8000002", "x86@1", "x86-64@0x7", "riscv64@0x1002"])
def test_a_base_that_an_instruction_can_have(text: str) -> None:
    assert parse_raw(text).base > 0


def test_an_unknown_processor_is_told_all_that_are_read() -> None:
    with pytest.raises(ConfigError) as error:
        parse_raw("sparc@0")
    assert all(processor in str(error.value) for processor in PROCESSORS)


def test_an_image_must_fit_into_memory() -> None:
    with pytest.raises(FormatError, match="x does not fit: 64 bytes from 0xfffffff0 on"):
        load_raw(bytes(64), "x", parse_raw("arm@0xfffffff0"))


def test_bytes_that_are_no_code_do_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "zeros"
    path.write_bytes(bytes(4096))
    for processor in PROCESSORS:
        list(open_source(path, backend=f"raw:{processor}@0").functions())
    path.write_bytes(b"\x01")
    for processor in PROCESSORS:
        list(open_source(path, backend=f"raw:{processor}@0").functions())
