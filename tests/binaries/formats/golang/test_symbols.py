"""Functions of Go programs: made by hand for every version, and by the compiler where it is."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import lief
import pytest

from graphkin.binaries.backends.native import NativeSource, load
from graphkin.binaries.formats.golang.lost_table import REMARK
from graphkin.binaries.formats.golang.symbols import RANK, go_functions, with_go_functions
from graphkin.binaries.image import Extent, Region
from graphkin.binaries.recovery.ranges import Symbol
from graphkin.binaries.targets import Target, find_function
from tests.binaries.formats.golang.tables import FORMS, Form, elf, table

FILES = Path(__file__).parents[2] / "files"
CODE_AT, DATA_AT = 0x401000, 0x403000
RET = b"\xc3".ljust(16, b"\xcc")
LOOP = b"\x90" * 13 + b"\xeb\xcc".ljust(3, b"\xcc")
"""It ends in a jump back by 52 bytes, whose last byte looks like padding."""
CODE = RET + LOOP + RET
NAMES = ["main.main", "main.(*T).Loop", "type:.eq.main.T"]


def described(form: Form, base: int, text: int) -> bytes:
    """A table of the three functions in ``CODE``; starts count from ``base``."""
    starts = [CODE_AT + offset - base for offset in (0, 16, 32, 48)]
    return table(form, list(zip(starts, NAMES, strict=False)), starts[-1], text)


def data_with(form: Form) -> bytes:
    relative = form.version >= 18
    return b"\0" * 64 + described(form, CODE_AT if relative else 0, CODE_AT if relative else 0)


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_functions_of_each_version(form: Form) -> None:
    regions = [Region(CODE_AT, CODE, True), Region(DATA_AT, data_with(form), False)]
    symbols = with_go_functions([], regions, "x86-64")
    assert symbols == [
        Symbol(CODE_AT, 1, NAMES[0], RANK),
        Symbol(CODE_AT + 16, 15, NAMES[1], RANK),
        Symbol(CODE_AT + 32, 1, NAMES[2], RANK),
    ]
    sizes = [symbol.size for symbol in with_go_functions([], regions, "aarch64")]
    assert sizes == [16, 16, 16]


@pytest.mark.parametrize("version", [2, 16, 18, 20])
def test_a_program_without_sections_has_its_names(version: int, tmp_path: Path) -> None:
    path = tmp_path / "program"
    path.write_bytes(elf(CODE, CODE_AT, data_with(Form(version)), DATA_AT))
    source = NativeSource(path)
    assert [function.name for function in source.functions()] == NAMES
    assert source.skipped == []
    resolved = find_function(Target(str(path), None, "type:.eq.main.T"))
    assert resolved.address == CODE_AT + 32


@pytest.mark.parametrize("version", [2, 16, 18, 20])
@pytest.mark.parametrize("damage", ["magic", "offsets", "starts"])
def test_a_damaged_table_is_said(version: int, damage: str, tmp_path: Path) -> None:
    content = bytearray(data_with(Form(version)) + bytes(64))
    content += bytes(-len(content) % 16) + b"\xff Go buildinf:\x08\0" + bytes(32)
    path = tmp_path / "program"
    path.write_bytes(elf(CODE, CODE_AT, bytes(content), DATA_AT))
    source = NativeSource(path)
    assert [function.name for function in source.functions()] == NAMES
    assert source.skipped == []
    if damage == "magic":
        content[64] ^= 0x40
    elif damage == "offsets":
        content[64 + 8 : 64 + 64] = b"\x7f" * 56
    else:
        last = bytes(content).rindex(described_end(version))
        content[last : last + 4] = b"\xff\xff\xff\x7f"
    path.write_bytes(elf(CODE, CODE_AT, bytes(content), DATA_AT))
    source = NativeSource(path)
    functions = list(source.functions())
    assert CODE_AT in {function.address for function in functions}
    assert [(item.reason, item.is_read) for item in source.skipped] == [(REMARK, True)]


def described_end(version: int) -> bytes:
    """The end of the code, as a table has it."""
    end = CODE_AT + 48 if version < 18 else 48
    return end.to_bytes(8 if version < 18 else 4, "little")


def test_a_call_that_panics_ends_its_block(tmp_path: Path) -> None:
    call = (b"\xe8" + (11).to_bytes(4, "little") + b"\xc3").ljust(16, b"\xcc")
    for callee, mnemonics in (("runtime.panicIndexU", ("call",)), ("main.f", ("call", "ret"))):
        functions = [(0, "main.main"), (16, callee)]
        content = table(Form(20), functions, 32, text=CODE_AT)
        path = tmp_path / callee
        path.write_bytes(elf(call + RET, CODE_AT, content, DATA_AT))
        (block,) = find_function(Target(str(path), None, "main.main")).blocks
        assert block.mnemonics == mnemonics


def module_of(table_at: int, text: int, lowest: int) -> bytes:
    words = [0] * 30
    words[0], words[20], words[22] = table_at, lowest, text
    return b"".join(word.to_bytes(8, "little") for word in words)


def test_the_start_of_the_code_may_stand_in_the_module_alone() -> None:
    content = described(Form(20), CODE_AT, text=0)
    table_at = DATA_AT + 0x1000
    module = Region(DATA_AT, module_of(table_at, CODE_AT, CODE_AT), False)
    regions = [Region(CODE_AT, CODE, True), module, Region(table_at, content, False)]
    functions = with_go_functions([], regions, "x86-64")
    assert [symbol.name for symbol in functions] == NAMES
    wrong = Region(DATA_AT, module_of(table_at, CODE_AT, CODE_AT + 1), False)
    assert with_go_functions([], [regions[0], wrong, regions[2]], "x86-64") == []


def test_words_that_the_loader_fills_in() -> None:
    content = described(Form(18), CODE_AT, text=0)
    regions = [Region(CODE_AT, CODE, True), Region(DATA_AT, content, False)]
    assert with_go_functions([], regions, "x86-64") == []
    functions = with_go_functions([], regions, "x86-64", {DATA_AT + 24: CODE_AT})
    assert [symbol.name for symbol in functions] == NAMES


def test_a_table_of_functions_outside_the_code_counts_for_nothing() -> None:
    content = data_with(Form(20))
    symbols = [Symbol(CODE_AT, 4, "main")]
    for regions in (
        [Region(CODE_AT, CODE, False), Region(DATA_AT, content, False)],
        [Region(CODE_AT, CODE[:32], True), Region(DATA_AT, content, False)],
        [Region(DATA_AT, content, False)],
    ):
        assert with_go_functions(symbols, regions, "x86-64") == symbols


def test_names_of_the_linker_are_no_functions() -> None:
    regions = [Region(CODE_AT, CODE, True), Region(DATA_AT, data_with(Form(20)), False)]
    own = [Symbol(CODE_AT, 1, "runtime.text"), Symbol(CODE_AT, 1, "main.main[go.shape.int]")]
    symbols = with_go_functions(own, regions, "x86-64")
    assert symbols[0] == own[1]
    assert symbols[1:] == go_functions(symbols)


@pytest.mark.parametrize(
    ("name", "pointer"),
    [
        ("pe/gcc-i686-O2-stripped.dll", 4),
        ("pe/clang-x86_64-O2.dll", 8),
        ("macho/zig-x86_64-O2-stripped.dylib", 8),
        ("macho/lld-aarch64-O2-stripped.dylib", 8),
    ],
)
def test_the_table_in_a_file_of_windows_or_macos(name: str, pointer: int) -> None:
    """It takes the place of the last code, without a section of its own."""
    data = bytearray((FILES / name).read_bytes())
    before = load(bytes(data), name)
    (code,) = (region for region in before.regions if region.executable)
    first, second, third = (extent.start - code.start for extent in before.extents[:3])
    functions = [(first, "main.a"), (second, "main.b")]
    content = table(Form(20, pointer=pointer), functions, third, text=code.start)
    at = bytes(data).index(bytes(code.data)) + len(code.data) - len(content)
    assert len(content) < len(code.data) - third
    data[at : at + len(content)] = content
    after = load(bytes(data), name)
    names = [(extent.name, *extent.aliases)[-1] for extent in after.extents[:2]]
    assert names == ["main.a", "main.b"]
    assert after.note is None


# --- The compiler -----------------------------------------------------------------------------

SOURCE = """
package main

import "os"

type Stack[T any] struct{ items []T }

//go:noinline
func (s *Stack[T]) Push(v T) { s.items = append(s.items, v) }

type Größe struct{ n int }

//go:noinline
func (g *Größe) Fläche() int { return g.n * g.n }

func main() {
	s := &Stack[string]{}
	s.Push("a")
	os.Exit((&Größe{len(s.items)}).Fläche())
}
"""
TARGETS = [
    "linux/amd64",
    # Compiling the standard library for another system takes half a minute.
    *(
        pytest.param(target, marks=pytest.mark.slow)
        for target in ("linux/arm", "linux/386", "windows/amd64", "darwin/arm64")
    ),
]
Build = Callable[[str], tuple[Path, Path]]


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """Builds the sample for a target: a whole and a stripped program."""
    compiler = shutil.which("go")
    if compiler is None:
        pytest.skip("go is not installed")
    folder = tmp_path_factory.mktemp("go")
    (folder / "main.go").write_text(SOURCE)
    (folder / "go.mod").write_text("module example.com/sample\ngo 1.18\n")

    def run(target: str) -> tuple[Path, Path]:
        system, processor = target.split("/")
        environment = {"CGO_ENABLED": "0", "GOOS": system, "GOARCH": processor}
        environment |= {"GOFLAGS": "-mod=mod", "GOPROXY": "off", "GOTOOLCHAIN": "local"}
        outputs = folder / f"{system}-{processor}", folder / f"{system}-{processor}-stripped"
        for out, flags in zip(outputs, ("", "-s -w"), strict=True):
            done = subprocess.run(
                [compiler, "build", f"-ldflags={flags}", "-o", str(out), "."],
                cwd=folder,
                env={**os.environ, **environment},
                capture_output=True,
                text=True,
            )
            if done.returncode:
                pytest.skip(f"go cannot build for {target}: {done.stderr[-200:]}")
        return outputs

    return run


def extents(path: Path) -> list[Extent]:
    return load(path.read_bytes(), str(path)).extents


@pytest.mark.parametrize("target", TARGETS)
def test_a_stripped_program_has_the_functions_of_the_whole_one(build: Build, target: str) -> None:
    whole, stripped = map(extents, build(target))
    assert [(e.start, e.end) for e in stripped] == [(e.start, e.end) for e in whole]
    names = {e.name for e in stripped}
    assert {"main.main", "main.(*Größe).Fläche", "runtime.mallocgc"} <= names
    assert any(name.startswith("main.(*Stack[") for name in names)
    assert not {"go.buildid", "go:buildid", "runtime.text", "runtime.etext"} & names
    unnamed = [name for name in names if name.startswith("sub_")]
    assert len(unnamed) <= 3, "entries of Windows, which are no Go functions"


@pytest.mark.parametrize("target", TARGETS[:3])
def test_the_table_agrees_with_the_symbol_table(build: Build, target: str) -> None:
    path, _ = build(target)
    image = load(path.read_bytes(), str(path))
    functions = with_go_functions([], image.regions, image.architecture, image.pointers)
    binary = lief.ELF.parse(str(path))
    assert binary is not None
    symbols = {
        item.value: item
        for item in binary.symtab_symbols
        if item.type == lief.ELF.Symbol.TYPE.FUNC and item.size
    }
    assert {symbol.address for symbol in functions} == set(symbols)
    same = [s for s in functions if str(symbols[s.address].name).removesuffix(".abi0") == s.name]
    assert len(same) > 0.97 * len(functions), "generics are written [...] in the table"
    if target != "linux/arm":  # whose functions have space behind them
        assert all(symbols[symbol.address].size == symbol.size for symbol in functions)
