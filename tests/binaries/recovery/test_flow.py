"""Control flow of compiled C against structures known from the source."""

from __future__ import annotations

import subprocess
from itertools import pairwise
from pathlib import Path

import pytest

from graphkin.binaries import Function
from graphkin.binaries.backends.native import NativeSource
from tests.binaries.compiling import Compile
from tests.binaries.shapes import successors

LEVELS = ["-O0", "-O1", "-O2", "-O3"]
CASES = 12
SWITCH = f"""
extern void out(int);
int pick(int x, int y) {{
  switch (x) {{
  {" ".join(f"case {n}: out({n * n + 7} + y * {n + 3}); break;" for n in range(CASES))}
  default: out(-1); return y;
  }}
  return y + 1;
}}
"""


def functions(path: Path, **options: bool) -> dict[str, Function]:
    source = NativeSource(path, **options)
    recovered = {function.name: function for function in source.functions()}
    assert source.skipped == []
    return recovered


def edges_by_instruction(function: Function) -> None:
    """Every block has as many successors as its last instruction allows."""
    for block, targets in zip(function.blocks, successors(function), strict=True):
        last = block.mnemonics[-1]
        if last == "ret":
            assert not targets
        elif last.startswith("j") and last != "jmp":
            assert len(targets) == 2
    starts = [block.address for block in function.blocks]
    assert len(set(starts)) == len(starts)
    spans = sorted((block.address, block.address + block.size) for block in function.blocks)
    assert all(end <= start for (_, end), (start, _) in pairwise(spans))


def test_if_else_is_a_diamond(compile_c: Compile) -> None:
    source = "void a(void); void b(void); void f(int x) { if (x) a(); else b(); }"
    function = functions(compile_c(source, "-O0", "-c"))["f"]
    assert function.edges == ((0, 1), (0, 2), (1, 3), (2, 3))
    assert function.blocks[0].address == function.address
    assert function.size == sum(block.size for block in function.blocks)


def test_a_loop_has_a_back_edge(compile_c: Compile) -> None:
    source = "void a(int); void f(int n) { for (int i = 0; i < n; i++) a(i); }"
    function = functions(compile_c(source, "-O0", "-c"))["f"]
    # entry -> test; body -> test; test -> body or exit
    assert function.edges == ((0, 2), (1, 2), (2, 1), (2, 3))


def test_straight_code_is_one_block_whatever_it_calls(compile_c: Compile) -> None:
    source = "int a(int); int f(int x) { return a(x) + a(x + 1) * a(x + 2); }"
    function = functions(compile_c(source, "-O2", "-c"))["f"]
    assert (len(function.blocks), function.edges) == (1, ())
    assert function.blocks[0].mnemonics.count("call") == 3


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(
    "flags",
    [("-c", "-fPIC"), ("-c", "-fno-pic", "-fcf-protection"), ("-shared", "-fPIC"),
     ("-no-pie", "-fno-pic", "-nostartfiles", "-Wl,--unresolved-symbols=ignore-all", "-Wl,-e,pick"),
     ("-c", "-m32", "-fno-pic"), ("-c", "-m32", "-fPIC")],
    ids=["object-pic", "object-absolute", "shared", "executable", "x86-absolute", "x86-pic"],
)  # fmt: skip
def test_every_case_of_a_switch_is_reached(
    compile_c: Compile, level: str, flags: tuple[str, ...]
) -> None:
    function = functions(compile_c(SWITCH, level, *flags))["pick"]
    edges_by_instruction(function)
    widths = [
        len(targets)
        for block, targets in zip(function.blocks, successors(function), strict=True)
        if "jmp" in block.mnemonics[-1]
    ]
    assert max(widths) == CASES
    reached = {target for _, target in function.edges}
    assert reached | {0} == set(range(len(function.blocks)))


@pytest.mark.parametrize("level", LEVELS)
def test_two_tables_side_by_side_keep_their_lengths(compile_c: Compile, level: str) -> None:
    body = "".join(f"case {n}: out({n}*x+y); break;" for n in range(7))
    more = "".join(f"case {n}: out({n}+x*y*{n}); break;" for n in range(9))
    source = f"""void out(int); void f(int x, int y) {{
      switch (x) {{ {body} }} out(100); switch (y) {{ {more} }} }}"""
    function = functions(compile_c(source, level, "-c", "-fPIC"))["f"]
    widths = sorted(
        len(targets)
        for block, targets in zip(function.blocks, successors(function), strict=True)
        if block.mnemonics[-1] == "jmp" and len(targets) > 1
    )
    assert widths == [7, 9]


@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_computed_goto(compile_c: Compile, level: str) -> None:
    source = """int run(const unsigned char *p, int x) {
      static const void *const at[] = {&&add, &&sub, &&mul, &&done};
      goto *at[*p & 3];
      add: x += 3; p++; goto *at[*p & 3];
      sub: x -= 5; p++; goto *at[*p & 3];
      mul: x *= x; p++; goto *at[*p & 3];
      done: return x; }"""
    function = functions(compile_c(source, level, "-shared", "-fPIC"))["run"]
    assert max(len(targets) for targets in successors(function)) == 4


def test_a_tail_call_leaves_the_function(compile_c: Compile) -> None:
    source = "int g(int); int f(int x) { return x ? g(x + 1) : 7; }"
    function = functions(compile_c(source, "-O2", "-c"))["f"]
    jumps = [n for n, block in enumerate(function.blocks) if block.mnemonics[-1] == "jmp"]
    assert jumps
    assert all(not successors(function)[number] for number in jumps)


@pytest.mark.parametrize("flags", [("-c",), ("-shared", "-fPIC"), ("-shared", "-fPIC", "-fno-plt")])
def test_a_call_that_never_returns_ends_its_block(
    compile_c: Compile, flags: tuple[str, ...]
) -> None:
    source = """void abort(void); void use(int);
      void f(int x) { if (x == 3) abort(); use(x); }
      void stop(void) { abort(); }
      void after(void) { use(1); }"""
    recovered = functions(compile_c(source, "-O0", *flags))
    ends = [
        block
        for block, targets in zip(recovered["f"].blocks, successors(recovered["f"]), strict=True)
        if block.mnemonics[-1] == "call" and not targets
    ]
    assert len(ends) == 1
    assert recovered["stop"].blocks[-1].mnemonics[-1] == "call"


def test_cold_parts_belong_to_their_function(compile_c: Compile) -> None:
    source = """void abort(void); __attribute__((cold)) void bad(int);
      int f(int *p, int n) { int s = 0; for (int i = 0; i < n; i++) {
        if (__builtin_expect(p[i] < 0, 0)) { bad(p[i]); bad(i); s ^= 5; }
        s += p[i]; } return s; }"""
    recovered = functions(compile_c(source, "-O2", "-shared", "-fPIC"))
    assert "f" in recovered
    assert "f.cold" not in recovered
    outside = [
        block
        for block in recovered["f"].blocks
        if not recovered["f"].address
        <= block.address
        < recovered["f"].address + recovered["f"].size
    ]
    assert outside


def test_data_between_instructions_does_not_derail(compile_c: Compile) -> None:
    source = r"""__asm__(".globl f\n.type f,@function\nf: test %edi,%edi\n jmp 1f\n"
      ".byte 0x0f,0x0b,0xff,0xff,0x06,0xe8,0x48\n1: je 2f\n mov $1,%eax\n ret\n"
      ".quad 0x1122334455667788\n2: xor %eax,%eax\n ret\n.size f,.-f");"""
    function = functions(compile_c(source, "-c"))["f"]
    expected = {("test", "jmp"), ("je",), ("mov", "ret"), ("xor", "ret")}
    assert {block.mnemonics for block in function.blocks} == expected
    assert len(function.edges) == 3


def test_padding_is_no_block(compile_c: Compile) -> None:
    source = r"""__asm__(".globl f\n.type f,@function\nf: endbr64\n1: test %edi,%edi\n je 3f\n"
      " nopw 0(%rax,%rax,1)\n nop\n2: dec %edi\n jne 2b\n jmp 1b\n3: ret\n.size f,.-f");"""
    function = functions(compile_c(source, "-c"))["f"]
    assert [block.mnemonics for block in function.blocks] == [
        ("test", "je"),
        ("dec", "jne"),
        ("jmp",),
        ("ret",),
    ]
    assert function.edges == ((0, 1), (0, 3), (1, 1), (1, 2), (2, 0))


def test_aliases_overlaps_and_symbols_without_size(compile_c: Compile) -> None:
    source = r"""int real(int x) { return x * 3; }
      int other(int x) __attribute__((alias("real")));
      __asm__(".globl bare\n.type bare,@function\nbare: mov $1,%eax\n ret\n"
      ".globl outer\n.type outer,@function\nouter: nop\n inc %eax\n"
      ".globl inner\n.type inner,@function\ninner: dec %eax\n ret\n"
      ".size outer,.-outer\n.size inner,.-inner");"""
    recovered = functions(compile_c(source, "-O2", "-c"))
    assert {"bare", "outer", "inner"} < recovered.keys()
    both = recovered.get("real") or recovered["other"]
    assert {both.name, *both.aliases} == {"real", "other"}
    assert recovered["bare"].blocks[0].mnemonics == ("mov", "ret")
    assert [m for block in recovered["outer"].blocks for m in block.mnemonics][-2:] == [
        "dec",
        "ret",
    ]


@pytest.mark.parametrize("level", LEVELS)
def test_a_stripped_file_gives_the_same_graphs(compile_c: Compile, level: str) -> None:
    whole = compile_c(SWITCH + "int also(int a) { return a ? pick(a, 2) : pick(2, a) + 1; }",
                      level, "-shared", "-fPIC")  # fmt: skip
    bare = whole.with_name("bare.so")
    subprocess.run(["strip", "-o", str(bare), str(whole)], check=True)
    expected = {item.address: item for item in NativeSource(whole).functions()}
    recovered = {item.address: item for item in NativeSource(bare).functions()}
    assert {expected[address].name for address in recovered} >= {"pick", "also"}
    for address, function in recovered.items():
        assert function.blocks == expected[address].blocks
        assert function.edges == expected[address].edges


def test_names_are_made_up_where_nothing_is_exported(compile_c: Compile) -> None:
    source = """static __attribute__((noinline)) int in(int x) { return x * x; }
      int main(int c, char **v) { return in(c); }"""
    whole = compile_c(source, "-O1")
    bare = whole.with_name("bare")
    subprocess.run(["strip", "-o", str(bare), str(whole)], check=True)
    address = functions(whole)["in"].address
    recovered = {function.address: function for function in NativeSource(bare).functions()}
    assert recovered[address].name == f"sub_{address:x}"


def test_archive_members_and_objects_agree(compile_c: Compile) -> None:
    first = compile_c(SWITCH, "-O2", "-c", name="first.o")
    second = compile_c("int g(int x) { return x ? 1 : 2; }", "-O0", "-c",
                       name="a_name_of_more_than_fifteen_letters.o")  # fmt: skip
    archive = first.with_name("both.a")
    subprocess.run(["ar", "rc", str(archive), str(first), str(second)], check=True)
    recovered = functions(archive)
    assert recovered["pick"].binary == f"{archive}(first.o)"
    assert recovered["g"].binary == f"{archive}({second.name})"
    assert recovered["pick"].blocks == functions(first)["pick"].blocks


def test_what_a_function_says_of_its_file(compile_c: Compile) -> None:
    path = compile_c("int f(void) { return 1; }", "-O2", "-shared", "-fPIC")
    function = functions(path)["f"]
    assert (function.architecture, function.format) == ("x86-64", "elf")
    assert function.binary == str(path)
    assert len(function.file_hash) == 64
    assert function.compiler is not None
    assert function.compiler.startswith("GCC")


def test_text_of_instructions_on_request(compile_c: Compile) -> None:
    path = compile_c("int f(void) { return 42; }", "-O2", "-c")
    assert functions(path)["f"].blocks[0].instructions is None
    assert functions(path, with_text=True)["f"].blocks[0].instructions == ("mov eax, 0x2a", "ret")


def test_a_last_call_does_not_run_on_into_parts_of_others(compile_c: Compile) -> None:
    """``f`` ends in a call of what never returns, which nothing says; a cold part follows."""
    source = r"""__asm__(".globl f, g\n.type f,@function\nf: push %rax\n call g\n.size f,.-f\n"
      ".type f.cold,@function\nf.cold: test %edi,%edi\n je 1f\n nop\n1: ret\n"
      ".size f.cold,.-f.cold\n"
      ".type g,@function\ng: jmp g\n.size g,.-g");"""
    functions = {
        function.name: function for function in NativeSource(compile_c(source, "-c")).functions()
    }
    assert [block.mnemonics for block in functions["f"].blocks] == [("push", "call")]
