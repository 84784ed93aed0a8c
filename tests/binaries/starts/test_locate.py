"""Function starts that no table tells, against the symbols of the same files."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from graphkin.binaries.backends.native import NativeSource, load
from graphkin.binaries.image import Image, Region, UnwindRange
from graphkin.binaries.recovery.ranges import Symbol
from graphkin.binaries.starts.clues import Clues, words_into_code
from graphkin.binaries.starts.locate import locate
from tests.binaries.compiling import Compile
from tests.paths import BINARIES, REPOSITORY

SOURCE = r"""
__attribute__((noinline)) static int leaf(int x) { return x * 3; }
__attribute__((noinline)) static int loop(int n) { int s = 0; while (n--) s += leaf(n); return s; }
__attribute__((noinline)) static int tail(int n) { return loop(n + 1); }
__attribute__((noinline, noreturn)) static void stop(void) { for (;;) __asm__ volatile("pause"); }
__attribute__((noinline)) static int checked(int n) { if (n > 9) stop(); return tail(n); }
__attribute__((noinline)) static int pick(int n) {
  switch (n) { case 0: return leaf(4); case 1: return loop(5); case 2: return 7; case 3: return 11;
    case 4: return leaf(n) + 2; case 5: return tail(1); case 6: return 3; default: return n; } }
static int pointed(int n) { return n - 1; }
int (*volatile table[])(int) = {pointed, pick};
int never_called(int n) { return n ? checked(n) : -1; }
void _start(void) { table[0](checked(2) + pick(3)); stop(); }
"""
PROCESSORS = ("x86", "aarch64", "arm", "mips", "mipsel", "mips64el", "riscv64", "ppc",
              "ppc64le")  # fmt: skip


@pytest.mark.parametrize("level", ["-O0", "-O1", "-O2"])
@pytest.mark.parametrize("position", ["-static", "-static-pie"])
def test_all_functions_of_a_stripped_program(level: str, position: str, compile_c: Compile) -> None:
    path = compile_c(SOURCE, level, position, "-fPIE" if "pie" in position else "-fno-pie",
                     "-nostdlib", "-fno-asynchronous-unwind-tables")  # fmt: skip
    whole = {function.address: function.blocks for function in NativeSource(path).functions()}
    subprocess.run(["strip", str(path)], check=True)
    source = NativeSource(path)
    assert {function.address: function.blocks for function in source.functions()} == whole
    (coverage,) = source.coverages
    assert coverage.share == 1.0
    assert coverage.tried[-1] == "ends of functions"


@pytest.mark.parametrize("processor", PROCESSORS)
def test_starts_without_symbols_unwind_tables_and_exports(processor: str) -> None:
    """The benchmark, on the samples of this repository: they have more than programs do of what
    is hard, such as code behind abort() and conditional tail calls."""
    samples = sorted(
        path for path in (BINARIES / processor).iterdir()
        if not path.suffix and "stripped" not in path.name
    )  # fmt: skip
    command = [sys.executable, str(REPOSITORY / "benchmarks" / "function_starts.py"), "--json"]
    done = subprocess.run([*command, *map(str, samples)], capture_output=True, check=True)
    rows = json.loads(done.stdout)
    assert {row["hidden"] for row in rows} == {"symbols", "unwind", "exports"}
    for row in rows:
        assert row["f1"] >= 0.85, row


def image(code: str, architecture: str = "x86-64") -> Image:
    region = Region(0x1000, bytes.fromhex(code), True)
    return Image("elf", architecture, [region], [], [], frozenset())


def starts(code: str, **clues: object) -> list[int]:
    located = locate(image(code), Clues([], False, **clues))  # type: ignore[arg-type]
    return [extent.start for extent in located.extents]


def test_a_branch_across_a_return_keeps_a_function_together() -> None:
    # test edi, edi; je 1007; mov eax, edi; ret | 1007: xor eax, eax; ret | 100a: ret
    assert starts("85ff 7403 89f8 c3 31c0 c3 c3") == [0x1000, 0x100A]


def test_a_jump_after_the_frame_is_gone_is_a_call() -> None:
    # push rbx; pop rbx; jmp 1008 | nops | 1008: mov eax, 1; ret
    assert starts("53 5b eb04 66906690 b801000000 c3") == [0x1000, 0x1008]
    # push rbx; jmp 1008 | ... | 1008: pop rbx; ret
    assert starts("53 eb05 660f1f440000 5b c3".replace("660f1f440000", "0f1f440000")) == [0x1000]


def test_a_jump_to_what_the_function_branches_to_is_no_call() -> None:
    # push rbx; test eax, eax; je 100e; dec eax; je 100c; mov eax, eax; ret
    # 100c: pop rbx; ret | 100e: add rsp, 16; jmp 100c | 1014: ret
    code = "53 85c0 7409 ffc8 7403 89c0 c3 5b c3 4883c410 ebf8 c3"
    assert starts(code) == [0x1000, 0x1014]


def test_what_is_between_known_functions_is_searched_and_they_are_not_split() -> None:
    code = "c3 c3 c3 c3"
    unwind = [UnwindRange(0x1000, 0x1002, False), UnwindRange(0x1003, 0x1004, False)]
    assert starts(code, unwind=unwind) == [0x1000, 0x1002, 0x1003]


def test_a_complete_symbol_table_is_believed() -> None:
    located = locate(image("c3 c3 c3 c3"), Clues([Symbol(0x1000, 1, "f")], True))
    assert [extent.name for extent in located.extents] == ["f"]
    assert (located.code_bytes, located.recovered_bytes) == (4, 1)


def test_padding_and_stubs_are_no_code_that_is_missing() -> None:
    code = "c3" + "cc" * 15 + "c3" + "90" * 7 + "ff25aabbccdd 6690"
    symbols = [Symbol(0x1000, 1, "f"), Symbol(0x1010, 1, "g")]
    located = locate(image(code), Clues(symbols, True, stubs=[(0x1018, 0x1020)]))
    assert (located.code_bytes, located.recovered_bytes) == (2, 2)


def test_words_of_data_that_point_into_code() -> None:
    code = Region(0x1000, bytes(16), True)
    data = Region(0x2002, bytes(2) + b"".join(
        word.to_bytes(4, "little") for word in (0x1004, 0xFFF, 0x1010, 0x100F)
    ), False)  # fmt: skip
    assert words_into_code([code, data], 4).tolist() == [0x1004, 0x100F]


@pytest.mark.parametrize("size", [0, 1, 3, 7])
@pytest.mark.parametrize(
    "architecture",
    ["x86", "x86-64", "aarch64", "arm", "mips", "mips64el", "riscv64", "ppc", "ppc64le", "other"],
)
def test_tiny_code(architecture: str, size: int) -> None:
    region = Region(0x1000, bytes(size), True)
    empty = Image("elf", architecture, [region] if size else [], [], [], frozenset())
    assert locate(empty, Clues([], False)).extents == []


def test_stripped_samples_keep_their_coverage() -> None:
    for path in sorted(Path(BINARIES / "aarch64").glob("*-stripped")):
        loaded = load(path.read_bytes(), path.name)
        assert loaded.recovered_bytes / loaded.code_bytes > 0.95


COLD_FIRST = r"""
#include <stdlib.h>
#include <string.h>
int main(int c, char **v) {
  int t = 0;
  for (int i = 1; i < c; i++) { t += strcmp(v[i], "-x") * (int)strlen(v[i]); if (t < 0) abort(); }
  return t & 1;
}
"""


def test_a_function_behind_its_own_cold_part(compile_c: Compile) -> None:
    """gcc puts the calls of ``abort`` ahead of main, which jumps back to them."""
    path = compile_c(COLD_FIRST, "-O2", "-fno-asynchronous-unwind-tables")
    (main,) = (function for function in NativeSource(path).functions() if function.name == "main")
    subprocess.run(["strip", str(path)], check=True)
    assert main.address in {function.address for function in NativeSource(path).functions()}


def test_jumps_across_known_functions_join_nothing() -> None:
    """Where tables know nearly all of the code, only what lies between their functions is read."""
    # 1000: test edi, edi; je 17fa; ret | known | 1400: ret | known | 17f8: xor eax, eax; ret
    pad, known = "cc" * 8, "c3" * 1000
    first, middle, last = (
        f"85ff 0f84f2070000 c3 {'cc' * 7}",
        f"{pad} c3 {'cc' * 7}",
        f"{pad} 31c0 c3",
    )
    spans = [(0x1010, 0x13F8), (0x1408, 0x17F0)]
    unwind = [UnwindRange(start, end, False) for start, end in spans]
    addresses = starts(first + known + middle + known + last, unwind=unwind)
    assert {0x1000, 0x1400} <= set(addresses)


ASSEMBLY = """__asm__(
".globl _start\\n_start: call between\\n lea rejects(%rip), %rax\\n call *%rax\\n hlt\\n"
".p2align 4\\nbetween: mov $3, %eax\\n ret\\n"
".p2align 4\\nfirst: test %edi, %edi\\n jne shared\\n mov $1, %eax\\n ret\\n"
".p2align 4\\nrejects: mov (%rdx), %rax\\n test %eax, %eax\\n jne shared\\n ret\\n"
".p2align 4\\nshared: xor %eax, %eax\\n ret\\n"
".p2align 4\\ncopies: lea table(%rip), %r11\\n movslq (%r11,%rdx,4), %rcx\\n"
" lea (%r11,%rcx), %rcx\\n jmp *%rcx\\n"
".p2align 4\\nnone: ret\\n.p2align 4\\none: movb $1, (%rdi)\\n ret\\n"
".p2align 4\\ntwo: movw $2, (%rdi)\\n ret\\n"
".data\\n.quad copies\\n.section .rodata\\n"
"table: .long none-table, one-table, two-table\\n.text");"""


def test_assembly_that_shares_its_ends_and_jumps_through_tables(compile_c: Compile) -> None:
    """``rejects`` is a function, though a branch leads across it: another one takes its address.
    What ``copies`` jumps to are parts of it, though they are aligned as functions are."""
    path = compile_c(ASSEMBLY, "-nostdlib", "-static", "-no-pie")
    listed = subprocess.run(["nm", str(path)], capture_output=True, text=True, check=True).stdout
    symbols = {name: int(value, 16) for value, _, name in map(str.split, listed.splitlines())}
    subprocess.run(["strip", str(path)], check=True)
    starts = {extent.start for extent in load(path.read_bytes(), str(path)).extents}
    assert {symbols[name] for name in ("_start", "between", "rejects", "copies")} <= starts
    assert starts.isdisjoint(symbols[name] for name in ("none", "one", "two"))
    blocks = {function.address: function.blocks for function in NativeSource(path).functions()}
    assert len(blocks[symbols["copies"]]) == 4


@pytest.mark.parametrize(("base", "is_start"), [(0x1000, False), (0x400000, True)])
def test_numbers_are_addresses_in_files_that_are_not_moved(base: int, is_start: bool) -> None:
    """``mov eax, 0x1040`` in code that the loader moves is a number."""
    number = (base + 0x40).to_bytes(4, "little").hex()
    # call +0x10; mov eax, number; ret; ...; xor eax, eax; ret; ...; je +0x21; ret; ...
    code = f"e80b000000 b8{number} c3 {'90' * 5} 31c0c3 {'90' * 13} 7429 c3 {'90' * 29}"
    code += f" 89f8c3 {'90' * 13} c3"
    region = Region(base, bytes.fromhex(code), True)
    located = locate(Image("elf", "x86-64", [region], [], [], frozenset()), Clues([], False))
    assert (base + 0x40 in {extent.start for extent in located.extents}) is is_start
