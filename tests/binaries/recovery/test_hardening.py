"""Graphs of builds that differ only by a flag that hardens them."""

from __future__ import annotations

import subprocess
from collections import Counter
from pathlib import Path

import pytest

from graphkin.binaries import Function
from graphkin.binaries.backends.native import NativeSource
from graphkin.binaries.processors.aarch64 import AArch64
from graphkin.binaries.processors.x86.processor import X86
from tests.binaries import shapes
from tests.binaries.compiling import Compile
from tests.paths import BINARIES

OFF = ("-fcf-protection=none", "-fno-stack-protector", "-fno-stack-clash-protection")
CODE = (BINARIES / "hardening.c").read_text()
WIDTHS = pytest.mark.parametrize("width", ["-m64", "-m32"])
MARKS = {"endbr64", "endbr32", "bti", "paciasp", "autiasp", "retaa", "notrack jmp"}


def functions(path: Path) -> dict[str, Function]:
    source = NativeSource(path, with_text=True)
    recovered = {function.name: function for function in source.functions()}
    assert source.skipped == []
    return recovered


def graph(function: Function) -> tuple[object, ...]:
    return [block.mnemonics for block in function.blocks], function.edges


def bags(function: Function) -> tuple[object, ...]:
    """The graph, whatever the order in a block, and the padding in front of loops."""
    blocks = [sorted(word for word in b.mnemonics if word != "nop") for b in function.blocks]
    return blocks, function.edges


def check_alike(hardened: Function, plain: Function) -> None:
    """A compiler that takes a register for the guard changes an instruction here and there."""
    assert hardened.edges == plain.edges
    for one, other in zip(hardened.blocks, plain.blocks, strict=True):
        left, right = Counter(one.mnemonics), Counter(other.mnemonics)
        left["nop"] = right["nop"] = 0
        assert max((left - right).total(), (right - left).total()) <= 2


def text(function: Function) -> list[str]:
    return [line for block in function.blocks for line in block.instructions or ()]


@WIDTHS
@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_marks_of_branch_targets_are_no_words(compile_c: Compile, level: str, width: str) -> None:
    flags = (level, width, "-c", "-fPIC", *OFF)
    plain = functions(compile_c(CODE, *flags, name="plain.o"))
    marked = functions(compile_c(CODE, *flags, "-fcf-protection", name="marked.o"))
    for name in ("sum", "pick", "large"):
        assert bags(marked[name]) == bags(plain[name]), name
        assert text(marked[name])[0] == ("endbr64" if width == "-m64" else "endbr32")
        assert marked[name].blocks[0].address == marked[name].address
    assert graph(marked["pick"]) == graph(plain["pick"])
    assert any(line.startswith("notrack jmp") for line in text(marked["pick"]))


@WIDTHS
@pytest.mark.parametrize("level", ["-O0", "-O2"])
@pytest.mark.parametrize("kind", [("-c",), ("-shared",), ("-shared", "-fno-plt")])
def test_the_stack_protector_is_no_code(
    compile_c: Compile, kind: tuple[str, ...], level: str, width: str
) -> None:
    if kind[0] == "-shared" and width == "-m32":
        pytest.skip("needs the C library of 32 bits")
    flags = (level, width, "-fPIC", *kind, *OFF)
    plain = functions(compile_c(CODE, *flags, name="plain"))
    guarded = functions(compile_c(CODE, *flags, "-fstack-protector-strong", name="guarded"))
    for name in ("sum", "large"):
        check_alike(guarded[name], plain[name])
        if (level, width) != ("-O2", "-m32"):
            assert bags(guarded[name]) == bags(plain[name]), name
        # It still shows.
        assert any("s:[0x" in line for line in text(guarded[name]))
    assert graph(guarded["pick"]) == graph(plain["pick"])


def test_the_stack_protector_needs_no_names(compile_c: Compile) -> None:
    own = "void fill(char *p, int n) {} int out(int n) { return n; }"
    own += "void __stack_chk_fail(void) { for (;;) out(1); } void _start(void) { sum(3); }"
    flags = ("-O2", "-static", "-nostdlib", "-fno-inline", "-fno-ipa-ra", "-fno-ipa-pure-const")
    plain = functions(compile_c(CODE + own, *flags, *OFF, name="plain"))
    whole = compile_c(CODE + own, *flags, *OFF, "-fstack-protector-strong", name="whole")
    bare = whole.with_name("bare")
    subprocess.run(["strip", "-o", str(bare), str(whole)], check=True)
    address = functions(whole)["sum"].address
    function = next(item for item in NativeSource(bare).functions() if item.address == address)
    assert bags(function) == bags(plain["sum"])


@WIDTHS
def test_probes_of_large_frames_are_no_code(compile_c: Compile, width: str) -> None:
    for size in (5000, 20000, 200000):
        code = CODE.replace("20000", str(size))
        flags = ("-O2", width, "-c", "-fPIC", *OFF)
        plain = functions(compile_c(code, *flags, name="plain.o"))["large"]
        probed = compile_c(code, *flags, "-fstack-clash-protection", name="probed.o")
        function = functions(probed)["large"]
        assert bags(function) == bags(plain), size
        assert any(line.startswith("or") and line.endswith("sp], 0") for line in text(function))


@pytest.mark.parametrize("width", [64, 32])
def test_frames_of_one_slot_where_clang_probes_the_stack(width: int) -> None:
    plain = functions(BINARIES / "hardening" / f"clang-{width}-plain.o")
    probed = functions(BINARIES / "hardening" / f"clang-{width}-probes.o")
    assert plain.keys() == probed.keys() >= {"one_slot", "behind_pushes", "two_pages"}
    for name, function in plain.items():
        assert bags(probed[name]) == bags(function), name
    if width == 64:
        assert text(probed["one_slot"])[0] == "sub rsp, 8", "it still shows"
        assert probed["one_slot"].blocks[0].mnemonics[0] == "push"


def test_frames_of_gcc_stay(compile_c: Compile) -> None:
    source = "int out(int); int f(int n) { return out(n) + 1; }"
    function = functions(compile_c(source, "-O2", "-c", *OFF))["f"]
    assert function.blocks[0].mnemonics[0] == "sub"


def test_a_call_to_the_failure_that_is_no_test_stays(compile_c: Compile) -> None:
    source = """void __stack_chk_fail(void); int use(int);
      int f(int x) { if (x == 3) __stack_chk_fail(); return use(x) + 1; }"""
    function = functions(compile_c(source, "-O2", "-c", *OFF))["f"]
    assert len(function.blocks) == 3
    assert len(function.edges) == 2


@WIDTHS
def test_a_call_ahead_of_the_failure_does_not_come_back(compile_c: Compile, width: str) -> None:
    """Nothing names ``give_up`` as one that never returns, and the failure is right behind it."""
    source = """__attribute__((noreturn)) void give_up(int); int read(char *, int);
      int f(int n) { char text[40]; if (read(text, n) < n) give_up(n); return text[n]; }"""
    flags = ("-O2", width, "-c", "-fPIC", *OFF)
    plain = functions(compile_c(source, *flags, name="plain.o"))["f"]
    guarded = compile_c(source, *flags, "-fstack-protector-strong", name="guarded.o")
    check_alike(functions(guarded)["f"], plain)


@pytest.mark.parametrize(
    ("code", "words"),
    [
        # sub rsp, 0x1000; mov qword ptr [rsp], 0; ret: the frame of a function that clears a word
        ("4881ec00100000 48c7042400000000 c3", ("sub", "mov", "ret")),
        # the same, and the frame goes on
        ("4881ec00100000 48c7042400000000 4883ec10 c3", ("sub", "ret")),
        # behind push rbx, sub rsp, 8 of clang, which the probe tells, is push rax without probes
        ("53 4883ec08 4881ec00100000 48c7042400000000 4883ec10 c3", ("push", "push", "sub", "ret")),
        # mov eax, edi; sub rsp, 8; push 1: it aligns arguments
        (
            "4881ec00100000 48c7042400000000 4883ec10 89f8 4883ec08 6a01 c3",
            ("sub", "mov", "sub", "push", "ret"),
        ),
        # mov rax, fs:[0x28]; ret: the guard is read, and not put on the stack
        ("64488b042528000000 c3", ("mov", "ret")),
        # a function of nothing but a mark has that
        ("f30f1efa", ("endbr64",)),
    ],
)
def test_only_the_exact_code_is_left_out(code: str, words: tuple[str, ...]) -> None:
    blocks, _ = shapes.recover(X86(64), code)
    assert [block.mnemonics for block in blocks] == [words]


def test_signed_returns_and_landing_pads_of_aarch64() -> None:
    # paciasp; stp; bl; ldp; autiasp; ret, and bti c; retaa
    code = "3f2303d5 fd7bbfa9 00000094 fd7bc1a8 bf2303d5 c0035fd6"
    blocks, _ = shapes.recover(AArch64(), code)
    assert [block.mnemonics for block in blocks] == [("stp", "bl", "ldp", "ret")]
    blocks, _ = shapes.recover(AArch64(), "5f2403d5 ff0b5fd6")
    assert [block.mnemonics for block in blocks] == [("ret",)]


@pytest.mark.parametrize(
    ("processor", "kinds"),
    [("aarch64", ["branches", "returns", "stack"]), ("arm", ["stack", "probes"])],
)
def test_other_processors(processor: str, kinds: list[str]) -> None:
    for level in ("O0", "O2"):
        plain = functions(BINARIES / "hardening" / f"{processor}-{level}-plain.o")
        for kind in kinds:
            recovered = functions(BINARIES / "hardening" / f"{processor}-{level}-{kind}.o")
            assert graph(recovered["pick"]) == graph(plain["pick"]), (level, kind)
            check_alike(recovered["sum"], plain["sum"])
            if (level, kind) != ("O2", "stack"):
                assert bags(recovered["sum"]) == bags(plain["sum"]), (level, kind)
            words = {
                word for value in recovered.values() for b in value.blocks for word in b.mnemonics
            }
            assert not words & MARKS
