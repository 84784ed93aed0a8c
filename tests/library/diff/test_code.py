"""What counts as identical code: everything but where things lie."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphkin.binaries import Block, Function
from graphkin.binaries.reading import read_functions
from graphkin.binaries.targets import parse_target
from graphkin.library.diff.code import CodeForm, code_form
from tests.binaries.compiling import Compile

BEFORE = """
extern int printf(const char *, ...);
int table[64];
__attribute__((noinline)) int scale(int x) { return x * 3 + table[x & 63]; }
__attribute__((noinline)) int sum(int *p, int n) {
    int s = 0;
    for (int i = 0; i < n; i++) { if (p[i] > 7) s += scale(p[i]); else s -= 2; }
    printf("sum %d\\n", s);
    return s;
}
"""
MORE = """
int other[999];
__attribute__((noinline)) int pad(int x) { other[x & 511] += x; return other[(x + 1) & 511]; }
"""


def forms(path: Path) -> dict[str, CodeForm]:
    functions = read_functions(parse_target(str(path)), with_text=True, with_evidence=True)
    return {function.name: code_form(function) for function in functions}


@pytest.mark.parametrize("level", ["-O0", "-O2", "-Os"])
@pytest.mark.parametrize("kind", [("-shared", "-fPIC"), ("-c",), ("-shared", "-fPIC", "-m32")])
def test_code_that_only_moved_is_identical(
    compile_c: Compile, level: str, kind: tuple[str, ...]
) -> None:
    """Other code before it, and other data, change every address in it."""
    before = forms(compile_c(BEFORE, level, *kind, name="before.so"))
    after = forms(compile_c(MORE + BEFORE, level, *kind, name="after.so"))
    for name in ("scale", "sum"):
        assert before[name].digest == after[name].digest, name
    assert before["scale"].digest != before["sum"].digest


def test_a_program_at_a_fixed_place(compile_c: Compile) -> None:
    main = "int main(int c, char **v) { int a[2] = {c, 9}; return sum(a, 2); }"
    flags = ("-O1", "-no-pie", "-fno-pie")
    before = forms(compile_c(BEFORE + main, *flags, name="before"))
    after = forms(compile_c(MORE + BEFORE + main, *flags, name="after"))
    assert before["sum"].digest == after["sum"].digest


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("x * 3", "x * 5"),
        ("> 7", ">= 7"),
        ("> 7", "> 8"),
        ("s -= 2", "s -= 1"),
        ("sum %d", "Sum %d"),
        ("& 63", "& 31"),
        ("i = 0; i < n", "i = 1; i < n"),
    ],
)
@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_whatever_the_source_changes_is_seen(
    compile_c: Compile, level: str, old: str, new: str
) -> None:
    assert old in BEFORE
    flags = (level, "-shared", "-fPIC")
    before = forms(compile_c(BEFORE, *flags, name="before.so"))
    after = forms(compile_c(BEFORE.replace(old, new), *flags, name="after.so"))
    changed = {name for name in ("scale", "sum") if before[name].digest != after[name].digest}
    assert changed == {"scale" if old in ("x * 3", "& 63") else "sum"}


def _function(architecture: str, *lines: str, address: int = 0x1000) -> Function:
    block = Block(address, 4 * len(lines), tuple(line.split()[0] for line in lines), lines, b"", ())
    return Function(
        name="f",
        address=address,
        size=4 * len(lines),
        blocks=(block,),
        edges=(),
        architecture=architecture,
        format="elf",
        file_hash="",
        binary="f",
    )


ADDRESSES = {
    "x86-64": [
        ("lea rax, [rip + 0x2f]", "lea rax, [rip + 0x88]"),
        ("call 0x2000", "call 0x3000"),
        ("notrack jmp 0x2000", "notrack jmp 0x3000"),
        ("jne 0x2000", "jne 0x3000"),
    ],
    "aarch64": [
        ("adrp x0, #0x11000", "adrp x0, #0x12000"),
        ("adrp x0, #0x1000\nadd x0, x0, #0x10", "adrp x0, #0x2000\nadd x0, x0, #0x20"),
        ("adrp x3, #0x1000\nldr x4, [x3, #0xff8]", "adrp x3, #0x2000\nldr x4, [x3, #0xff0]"),
        ("bl #0x2000", "bl #0x3000"),
        ("b.ne #0x2000", "b.ne #0x3000"),
        ("tbnz w0, #3, #0x2000", "tbnz w0, #3, #0x3000"),
    ],
    "arm": [
        ("ldr r0, [pc, #0x10]", "ldr r0, [pc, #0x20]"),
        ("bleq #0x2000", "bleq #0x3000"),
        ("b.w #0x2000", "b.w #0x3000"),
    ],
    "mipsel": [
        ("lw $t9, -0x7fc0($gp)", "lw $t9, -0x7fbc($gp)"),
        ("lui $v0, 0x42\naddiu $v0, $v0, 0x10", "lui $v0, 0x43\naddiu $v0, $v0, 0x20"),
        ("bnez $v0, 0x2000", "bnez $v0, 0x3000"),
    ],
}
CONSTANTS = {
    "x86-64": [
        ("mov eax, 0x11", "mov eax, 0x12"),
        ("mov eax, dword ptr [rdi + 8]", "mov eax, dword ptr [rdi + 0x10]"),
        ("add rax, rbx", "add rax, rcx"),
        ("bt eax, 3", "bt eax, 4"),
    ],
    "aarch64": [
        ("add x0, x0, #0x10", "add x0, x0, #0x20"),
        ("ldr x4, [x3, #0xff8]", "ldr x4, [x3, #0xff0]"),
        ("tbnz w0, #3, #0x2000", "tbnz w0, #4, #0x2000"),
        ("adrp x0, #0x1000\nadd x1, x2, #1", "adrp x0, #0x1000\nadd x1, x2, #2"),
        (
            "adrp x0, #0x1000\nadd x0, x0, #0x10\nldr x1, [x0, #8]",
            "adrp x0, #0x1000\nadd x0, x0, #0x10\nldr x1, [x0, #0x10]",
        ),
    ],
    "arm": [("bic r0, r0, #3", "bic r0, r0, #7"), ("mov r0, #1", "mov r0, #2")],
    "mipsel": [("addiu $v0, $v0, 1", "addiu $v0, $v0, 2"), ("lw $v0, 8($a0)", "lw $v0, 12($a0)")],
}


def _digests(architecture: str, *texts: str) -> set[bytes]:
    return {code_form(_function(architecture, *text.split("\n"))).digest for text in texts}


@pytest.mark.parametrize("architecture", ADDRESSES)
def test_addresses_do_not_count(architecture: str) -> None:
    for left, right in ADDRESSES[architecture]:
        assert len(_digests(architecture, left, right)) == 1, (left, right)


@pytest.mark.parametrize("architecture", CONSTANTS)
def test_constants_and_registers_do(architecture: str) -> None:
    for left, right in CONSTANTS[architecture]:
        assert len(_digests(architecture, left, right)) == 2, (left, right)


def test_registers_alone_leave_the_mnemonics_equal() -> None:
    left, right = (
        code_form(_function("x86-64", line)) for line in ("add rax, rbx", "add rax, rcx")
    )
    assert left.mnemonics == right.mnemonics
    assert left.digest != right.digest


@pytest.mark.parametrize(
    ("architecture", "left", "right"),
    [
        ("x86-64", "mov qword ptr [rdi], rsi", "mov qword ptr [rdi + 8], rsi"),
        ("x86-64", "mov eax, dword ptr [rbp - 0x14]", "mov eax, dword ptr [rbp - 0x18]"),
        ("aarch64", "ldr x4, [x3]", "ldr x4, [x3, #0xff0]"),
        ("mipsel", "lw $v0, ($a0)", "lw $v0, 12($a0)"),
    ],
)
def test_fields_that_moved_leave_the_registers_equal(
    architecture: str, left: str, right: str
) -> None:
    old, new = (code_form(_function(architecture, line)) for line in (left, right))
    assert old.registers == new.registers
    assert old.digest != new.digest


def test_other_registers_are_seen() -> None:
    left, right = (
        code_form(_function("x86-64", line))
        for line in ("mov rax, qword ptr [rdi + 8]", "mov rax, qword ptr [rsi + 8]")
    )
    assert left.mnemonics == right.mnemonics
    assert left.registers != right.registers


def test_small_numbers_are_no_addresses_wherever_the_code_lies() -> None:
    """A shared library of some size has functions where programs for a fixed place begin."""
    texts = ("cmp byte ptr [rdi + 8], 1", "cmp byte ptr [rdi + 8], 2")
    high = {code_form(_function("x86-64", text, address=0x20000)).digest for text in texts}
    assert len(high) == 2
    texts = ("mov edi, 0x402010", "mov edi, 0x402020")
    fixed = {code_form(_function("x86-64", text, address=0x401000)).digest for text in texts}
    assert len(fixed) == 1
