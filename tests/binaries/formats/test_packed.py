"""Packed and encrypted binaries are named as such; ordinary ones are not."""

from __future__ import annotations

import random
import shutil
import struct
import subprocess
import zlib
from pathlib import Path

import pytest

from graphkin.binaries.backends.native import NativeSource, load
from graphkin.binaries.entropy import entropy
from graphkin.binaries.formats.archive import is_fat
from graphkin.binaries.formats.packed import MAX_ENTROPY
from graphkin.errors import FormatError
from tests.binaries.compiling import Compile
from tests.binaries.formats.test_pe import SECTION, headers
from tests.paths import BINARIES

SAMPLES = BINARIES


def test_ordinary_code_is_not_taken_for_packed() -> None:
    samples = [*SAMPLES.glob("pe/*.dll"), *SAMPLES.glob("macho/*")]
    whole = [path for path in samples if not is_fat(path.read_bytes())]
    assert len(whole) > 20
    for path in whole:
        image = load(path.read_bytes(), path.name)
        assert (
            entropy([region.data for region in image.regions if region.executable])
            < MAX_ENTROPY - 0.5
        )


def test_entropy_counts_bits() -> None:
    assert entropy([b"aaaa"]) == 0
    assert entropy([b"ab", b"ab"]) == 1
    assert entropy([bytes(range(256))]) == 8


def test_names_that_upx_leaves_are_recognised() -> None:
    """Sections as UPX names them: one that is empty in the file, one with the compressed code."""
    data, header = headers("gcc-x86_64-O2-stripped")
    for number, name in enumerate((b"UPX0", b"UPX1")):
        struct.pack_into("8s", data, header + 24 + 240 + number * SECTION.size, name)
    with pytest.raises(FormatError) as caught:
        load(bytes(data), "small.exe")
    assert str(caught.value) == "small.exe looks packed (UPX); unpack it first (upx -d)"


@pytest.mark.parametrize(
    ("section", "name"),
    [(b".vmp1", "VMProtect"), (b"PEC2TO", "PECompact"), (b".MPRESS2", "MPRESS")],
)
def test_other_packers_are_named(section: bytes, name: str) -> None:
    data, header = headers("gcc-x86_64-O2-stripped")
    struct.pack_into("8s", data, header + 24 + 240 + 3 * SECTION.size, section)
    with pytest.raises(FormatError, match=rf"looks packed \({name}\); unpack it first"):
        load(bytes(data), "small.exe")


def test_a_name_beside_the_table_of_sections_says_nothing() -> None:
    data, _ = headers("gcc-x86_64-O2-stripped")
    struct.pack_into("8s", data, 0x44, b".vmp0")
    assert load(bytes(data), "small.exe").extents


def test_an_elf_file_that_upx_made_is_recognised() -> None:
    """A header, one segment, and UPX's own header right behind: there are no sections."""
    code = zlib.compress(random.Random(1).randbytes(9000))
    size = 120 + 12 + len(code)
    ident = b"\x7fELF\x02\x01\x01" + bytes(9)
    head = ident + struct.pack("<HHIQQQIHHHHHH", 2, 62, 1, 0x400084, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    segment = struct.pack("<IIQQQQQQ", 1, 5, 0, 0x400000, 0x400000, size, size, 4096)
    packed = head + segment + struct.pack("<I4sHBB", 0, b"UPX!", 0, 13, 0) + code
    with pytest.raises(FormatError, match=r"looks packed \(UPX\); unpack it first \(upx -d\)"):
        load(packed, "tool")
    # Without the mark, the bits of the code and the lack of functions tell.
    with pytest.raises(FormatError, match=r"0 functions in \d+ bytes of code with 8.0 bits"):
        load(packed.replace(b"UPX!", b"ABC!"), "tool")


def test_what_upx_itself_makes_is_recognised(tmp_path: Path) -> None:
    upx = shutil.which("upx")
    source = shutil.which("git")
    if upx is None or source is None:
        pytest.skip("upx or git is not installed")
    packed = tmp_path / "packed"
    subprocess.run([upx, "-q", "-1", "-o", str(packed), source], check=True, capture_output=True)
    with pytest.raises(FormatError, match=r"packed looks packed \(UPX\)"):
        list(NativeSource(packed).functions())


def test_text_of_a_small_program_is_no_mark(compile_c: Compile) -> None:
    source = (
        'int f(int x) { char *s = "UPX! text"; while (x--) if (s[x] == 3) return x; return 1; }'
    )
    for flags in (["-O2", "-c"], ["-O2", "-shared", "-nostdlib", "-Wl,-z,noseparate-code"]):
        path = compile_c(source, *flags)
        assert b"UPX!" in path.read_bytes()[:2048]
        assert [function.name for function in NativeSource(path).functions()] == ["f"]


def test_encrypted_code_is_refused_whatever_the_symbols_say() -> None:
    data = bytearray((SAMPLES / "x86" / "gcc-shared-O2").read_bytes())
    image = load(bytes(data), "library")
    code = max(
        (region for region in image.regions if region.executable),
        key=lambda region: len(region.data),
    )
    assert len(image.extents) * 8192 > len(code.data) > 4096
    start = bytes(data).index(bytes(code.data))
    data[start : start + len(code.data)] = random.Random(1).randbytes(len(code.data))
    with pytest.raises(FormatError, match="looks packed or encrypted"):
        load(bytes(data), "library")
