"""What functions say: the same in every format, for every processor, and in stripped files."""

from __future__ import annotations

import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from graphkin.binaries.backends.native import NativeSource
from graphkin.binaries.evidence.collect import rules_of
from graphkin.binaries.evidence.mips.syntax import parse as parse_mips
from graphkin.binaries.evidence.x86.operands import parse as parse_x86
from graphkin.binaries.evidence.x86.templates import WideTemplates
from graphkin.binaries.function import Callee, Function, Token
from graphkin.binaries.operations import OPERATIONS, operation_names
from tests.paths import BINARIES

FOLDER = BINARIES / "evidence"
FILES = sorted(path.name for path in FOLDER.iterdir())
WHOLE = [name for name in FILES if "stripped" not in name]
SAID = {
    "speaks": {("num", "4"), ("str", "the quick brown fox"), ("imp", "puts")},
    "looks": {("num", "15"), ("dat", "3512472359346b45")},
    "scales": {("flt", "3.25"), ("flt", "0.123457")},
    "fields": {("num", "77"), ("off", "44"), ("off", "40")},
    "makes": {("num", "4095"), ("imp", "malloc")},
    "inner": {("num", "1540483477")},
}
"""What the C text of the samples says; ``x > 3`` counts as ``x >= 4``."""
PUTS = "__attribute__((noipa)) int puts(const char *s) { return s[7] * 9; }"


def functions(path: Path) -> dict[str, Function]:
    return {
        function.name: function for function in NativeSource(path, with_evidence=True).functions()
    }


def tokens(function: Function) -> Counter[Token]:
    return Counter(token for block in function.blocks for token in block.evidence or ())


def operations(function: Function) -> list[str]:
    return [name for block in function.blocks for name in operation_names(block.operations or b"")]


@pytest.mark.parametrize("name", WHOLE)
def test_functions_say_what_their_source_does(name: str) -> None:
    recovered = functions(FOLDER / name)
    for function, said in SAID.items():
        assert set(tokens(recovered[function])) == said, function


@pytest.mark.parametrize("name", WHOLE)
def test_constants_of_any_width_have_one_form(name: str) -> None:
    said = tokens(functions(FOLDER / name)["counts"])
    for value in (0xDEADBEEF, 1001, 0x4000):
        assert said["num", str(value)] == 1  # type: ignore[index]


@pytest.mark.parametrize("name", WHOLE)
def test_callees_are_addresses_and_names_of_imports(name: str) -> None:
    recovered = functions(FOLDER / name)

    def callees(function: str) -> set[Callee]:
        return set(recovered[function].callees or ())

    inner = recovered["inner"].address
    assert callees("speaks") == {"puts"}
    assert callees("makes") == {inner, "malloc"}
    assert callees("looks") == {inner}
    assert callees("inner") == set()


@pytest.mark.parametrize("name", WHOLE)
def test_operations_have_the_same_names_everywhere(name: str) -> None:
    recovered = functions(FOLDER / name)
    assert {"mul", "xor"} <= set(operations(recovered["inner"]))
    assert {"fmul", "fadd"} <= set(operations(recovered["scales"]))
    assert {"call", "jump", "call_indirect", "jump_indirect"} & set(operations(recovered["speaks"]))
    assert "compare" in operations(recovered["speaks"])
    assert "load_half" in operations(recovered["looks"])
    for function in recovered.values():
        assert "other" not in operations(function)
        assert "none" not in operations(function)


def pairs() -> Iterator[tuple[Path, Path]]:
    """Samples, whole and stripped."""
    for folder in ("evidence", "x86", "aarch64", "arm", "mips", "mips64el", "pe", "macho"):
        for path in sorted((BINARIES / folder).iterdir()):
            if "-stripped" in path.name:
                yield path.with_name(path.name.replace("-stripped", "")), path


@pytest.mark.parametrize(("whole", "stripped"), list(pairs()), ids=lambda path: path.name)
def test_stripped_functions_say_the_same(whole: Path, stripped: Path) -> None:
    named = {value.address: value for value in functions(whole).values()}
    bare = {value.address: value for value in functions(stripped).values()}
    same = [
        address
        for address in named.keys() & bare.keys()
        if [block[:3] for block in named[address].blocks]
        == [block[:3] for block in bare[address].blocks]
    ]
    assert len(same) >= len(named) // 2
    for address in same:
        assert tokens(named[address]) == tokens(bare[address]), named[address].name
        assert operations(named[address]) == operations(bare[address]), named[address].name


def test_every_token_belongs_to_the_block_that_says_it() -> None:
    function = functions(FOLDER / "x86_64.so")["speaks"]
    entry, *others = function.blocks
    assert entry.evidence == (("num", "4"),)
    said = [block.evidence for block in others if block.evidence]
    assert said == [(("str", "the quick brown fox"), ("imp", "puts"))]


def test_nothing_is_collected_unless_it_is_asked_for() -> None:
    for function in NativeSource(FOLDER / "x86_64.so").functions():
        assert function.callees is None
        assert all(block.operations is None for block in function.blocks)
        assert all(block.evidence is None for block in function.blocks)


@pytest.mark.parametrize("architecture", ["riscv64", "ppc", "ppc64le"])
def test_processors_without_rules_say_nothing(architecture: str) -> None:
    path = BINARIES / architecture / "gcc-shared-O2"
    for function in NativeSource(path, with_evidence=True).functions():
        assert function.callees is None
        assert all(block.operations is None for block in function.blocks)
        assert all(block.evidence is None for block in function.blocks)


def test_a_delay_slot_speaks_for_the_block_of_its_branch() -> None:
    """The lower half of the string's address is added in the slot of the call."""
    function = functions(FOLDER / "mipsel.so")["speaks"]
    said = [block.evidence for block in function.blocks if block.evidence]
    assert [sorted(tokens) for tokens in said] == [
        [("num", "4")],
        [("imp", "puts"), ("str", "the quick brown fox")],
    ]


@pytest.mark.skipif(shutil.which("mipsel-linux-gnu-gcc") is None, reason="needs gcc for mipsel")
def test_addresses_in_halves_are_read_in_files_that_are_not_moved(tmp_path: Path) -> None:
    """Executables for MIPS without a global offset table."""
    target = tmp_path / "fixed"
    flags = "-O2 -ffreestanding -fno-pic -mno-abicalls -static -nostdlib -fno-stack-protector"
    source = tmp_path / "stand-alone.c"
    text = (BINARIES / "speech.c").read_text().replace("IMPORTED int puts(const char *);", PUTS)
    source.write_text(text.replace("return malloc(", "return (void *)("))
    subprocess.run(
        ["mipsel-linux-gnu-gcc", *flags.split(), "-w", "-Wl,-e,speaks", source, "-o", target],
        check=True,
    )
    recovered = functions(target)
    assert set(tokens(recovered["speaks"])) == {("num", "4"), ("str", "the quick brown fox")}
    assert set(tokens(recovered["looks"])) == SAID["looks"]
    assert set(tokens(recovered["scales"])) == SAID["scales"]
    assert set(tokens(recovered["inner"])) == SAID["inner"]
    assert set(recovered["looks"].callees or ()) == {recovered["inner"].address}
    assert set(recovered["speaks"].callees or ()) == {recovered["puts"].address}


def test_what_was_read_before_changes_nothing() -> None:
    """Parsed instructions are shared by the files that a process reads."""
    path = FOLDER / "aarch64.so"
    rules_of.cache_clear()
    fresh = functions(path)
    for name in FILES:
        functions(FOLDER / name)
    assert functions(path) == fresh


def test_plain_instructions_keep_the_registers_that_they_read() -> None:
    """MIPS asks which register a load with an index counts from, so equal ones may not be any."""
    for base in ("v0", "a1", "s3"):
        step = parse_mips("lwx", f"$t1, $t2(${base})".encode(), frozenset(["sp"]), "l")
        assert (step.dst, step.base) == ("t1", base)


@pytest.mark.parametrize("framed", [False, True])
def test_texts_of_x86_that_are_alike_mean_what_they_say(framed: bool) -> None:
    """Whatever was taken apart before, an instruction means what it does alone."""
    registers = ("rax", "rbx", "rsp", "rbp", "esp", "r8d", "ah", "xmm1", "0x30", "48")
    numbers = ("1", "0x10", "-1", "0x7fffffff", "0xffffffff")
    places = ("[rax]", "[rbp - 8]", "[rsp + 0x20]", "[rip]", "[rdi + rax]", "[rdi + rsi*8 - 1]",
              "[rcx*4]", "[rcx*4 + 0x20]", "[0x601040]", "[rbx + 0x601040]")  # fmt: skip
    texts = [*registers, *places]
    texts += [f"{left}, {right}" for left in registers for right in (*registers, *numbers)]
    texts += [f"{left}, {place}" for left in registers for place in places]
    for place in (f"{size} ptr {place}" for size in ("byte", "qword") for place in places):
        texts += [place, *(f"{place}, {right}" for right in (*registers, *numbers))]
        texts += [f"{left}, {place}" for left in registers]
    names = ("mov", "push", "add", "and", "cmp", "lea", "xor", "test", "shl", "movsd", "imul")
    templates = WideTemplates()
    for name in names:
        for text in texts:
            alike = templates.parse(name, text.encode(), framed)
            alone = parse_x86(name, text, framed, False)
            for field in ("code", "tokens", "role", "offset", "real", "against", "value"):
                if field == "offset" and not alone.role:
                    continue
                assert getattr(alike, field) == getattr(alone, field), (name, text, field)
            assert bool(alike.base) == bool(alone.base) or not alone.role


def test_operations_fit_a_byte_and_are_there_once() -> None:
    assert len(set(OPERATIONS)) == len(OPERATIONS) < 128


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
def test_code_that_makes_no_sense_is_read(tmp_path: Path) -> None:
    """A far call and a far jump, which name two numbers."""
    source = tmp_path / "odd.s"
    source.write_text(
        ".globl odd\n.type odd, @function\nodd:\n"
        ".byte 0x9a, 1, 2, 3, 4, 5, 6\n.byte 0xea, 1, 2, 3, 4, 5, 6\n.size odd, .-odd\n"
    )
    target = tmp_path / "odd.o"
    subprocess.run(["gcc", "-m32", "-c", str(source), "-o", str(target)], check=True)
    (function,) = functions(target).values()
    assert function.callees == ()
    assert operations(function) == ["call", "jump"]
