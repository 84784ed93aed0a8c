"""Targets as people type them, and the function that each finds."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from graphkin.binaries import Block, Function, ListSource, Skipped
from graphkin.binaries.backends.base import Wants
from graphkin.binaries.image import Extent
from graphkin.binaries.targets import Target, choose, find_function, parse_target
from graphkin.errors import ConfigError, FormatError
from tests.binaries.compiling import Compile

BASE = Function(
    name="decode",
    address=0x1000,
    size=0x20,
    blocks=(Block(0x1000, 0x20, ("ret",), ("ret",)),),
    edges=(),
    architecture="x86-64",
    format="elf",
    file_hash="00" * 32,
    binary="lib.so",
)


def function(name: str, address: int, **changes: object) -> Function:
    blocks = (Block(address, 0x20, ("ret",), ("ret",)),)
    return replace(BASE, name=name, address=address, **{"blocks": blocks, **changes})  # type: ignore[arg-type]


def feed(*functions: Function) -> Callable[[Wants | None], ListSource]:
    return lambda wants: ListSource(functions, wants=wants)


def find(name: str, *functions: Function, path: str = "lib.so") -> Function:
    return choose(Target(path, None, name), feed(*functions))


# --- Targets --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("lib.so", ("lib.so", None, None)),
        ("lib.so:f", ("lib.so", None, "f")),
        ("lib.so:0x1F", ("lib.so", None, "0x1F")),
        ("a:b.so", ("a:b.so", None, None)),
        ("a:b.so:f", ("a:b.so", None, "f")),
        ("a:b.so:std::sort", ("a:b.so", None, "std::sort")),
        ("lib.so:-[Window draw:]", ("lib.so", None, "-[Window draw:]")),
        ("lib.a(one.o):f", ("lib.a", "one.o", "f")),
        ("lib.a(one.o)", ("lib.a", "one.o", None)),
        ("odd(1).so:f", ("odd(1).so", None, "f")),
        ("absent.so:f", ("absent.so", None, "f")),
        ("absent.so", ("absent.so", None, None)),
        ("lib.so!usr/bin/x", ("lib.so", None, None, "usr/bin/x")),
        ("lib.so!usr/bin/x:main", ("lib.so", None, "main", "usr/bin/x")),
        ("lib.so!a.zip!x:std::sort", ("lib.so", None, "std::sort", "a.zip!x")),
        ("lib.so!../l.a(one.o):f", ("lib.so", "one.o", "f", "../l.a")),
        ("odd!1.so:f", ("odd!1.so", None, "f")),
        ("odd!1.so!x:f", ("odd!1.so", None, "f", "x")),
        ("absent.zip!x:f", ("absent.zip!x", None, "f")),
    ],
)
def test_the_longest_file_is_the_path(
    text: str, expected: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("lib.so", "a:b.so", "lib.a", "odd(1).so", "odd!1.so"):
        Path(name).touch()
    assert parse_target(text) == Target(*expected)


@pytest.mark.parametrize("text", ["", "lib.so:", ":f", ":"])
def test_targets_that_name_nothing(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("lib.so").touch()
    with pytest.raises(ConfigError, match="BINARY:FUNCTION"):
        parse_target(text)


def test_addresses_are_hexadecimal_with_a_prefix() -> None:
    assert Target("x", None, "0x1F").address == 0x1F
    assert Target("x", None, "1f").address is None
    assert Target("x").address is None


def test_a_target_too_long_for_a_path_is_no_file() -> None:
    text = "x" * 10_000
    assert parse_target(text) == Target(text)


# --- Names ----------------------------------------------------------------------------------


def test_the_exact_name_comes_before_aliases_and_clones() -> None:
    exact = function("decode", 0x1000)
    alias = function("other", 0x2000, aliases=("decode",))
    clone = function("decode.part.0", 0x3000)
    assert find("decode", clone, alias, exact) is exact
    assert find("decode", clone, alias) is alias
    assert find("decode", clone) is clone
    assert find("decode.part.0", exact, clone) is clone


def test_several_of_one_name_are_listed_with_address_and_unit() -> None:
    with pytest.raises(ConfigError) as caught:
        find("init", function("init", 0x1000, unit="one.c"), function("init", 0x2000))
    assert str(caught.value) == (
        "lib.so has 2 functions init; name one by its address: 0x1000 (one.c), 0x2000"
    )


def test_clones_that_fit_equally_are_listed_by_their_names() -> None:
    with pytest.raises(ConfigError, match=r"0x1000 \(f\.part\.0\), 0x2000 \(f\.isra\.0\)"):
        find("f", function("f.part.0", 0x1000), function("f.isra.0", 0x2000))


def test_a_long_list_is_cut() -> None:
    many = [function("f", 0x1000 * number) for number in range(1, 41)]
    with pytest.raises(ConfigError, match=r"40 functions f; .*0xc000, and 28 more$"):
        find("f", *many)


def test_an_absent_name_brings_the_closest_ones() -> None:
    with pytest.raises(ConfigError, match=r"no function decod; the closest names are decode$"):
        find("decod", function("decode", 0x1000), function("unlike", 0x2000))
    with pytest.raises(ConfigError, match=r"`graphkin show lib\.so` lists"):
        find("zzz", function("decode", 0x1000))


def test_an_alias_is_among_the_closest_names() -> None:
    with pytest.raises(ConfigError, match="closest names are strcpy"):
        find("strcyp", function("x", 0x1000, aliases=("strcpy",)))


def test_names_of_cpp_and_rust_are_found_as_the_source_spells_them() -> None:
    by_number = function("_ZN3foo3barEi", 0x1000)
    alone = function("_ZN3foo3barEv", 0x2000)
    rust = function("_RNvCs4fqI2P2rA04_7mycrate3foo", 0x3000)
    named = function("foo::bar()", 0x4000)
    thunk = function("x", 0x5000, aliases=("_ZN3foo5otherEv",))
    everything = (by_number, alone, rust, thunk)
    assert find("_ZN3foo3barEi", *everything) is by_number
    assert find("foo::bar(int)", *everything) is by_number
    assert find("mycrate::foo", *everything) is rust
    assert find("foo::other", *everything) is thunk
    assert find("foo::bar()", *everything) is alone
    assert find("foo::bar()", *everything, named) is named, "a name in the file comes first"
    with pytest.raises(ConfigError, match=r"0x1000 \(foo::bar\(int\)\), 0x2000 \(foo::bar\(\)\)"):
        find("foo::bar", *everything)
    with pytest.raises(ConfigError, match=r"closest names are foo::bar\(int\), foo::bar\(\)$"):
        find("bar", *everything)


# --- Addresses ------------------------------------------------------------------------------


def test_an_address_finds_the_function_around_it() -> None:
    low, high = function("low", 0x1000), function("high", 0x1020)
    assert find("0x1000", low, high) is low
    assert find("0x101f", low, high) is low
    assert find("0x1020", low, high) is high


def test_of_overlapping_functions_the_inner_one_is_found() -> None:
    outer, inner = function("outer", 0x1000, size=0x100), function("inner", 0x1010)
    assert find("0x1018", outer, inner) is inner
    assert find("0x1008", outer, inner) is outer
    assert find("0x1080", outer, inner) is outer


def test_an_address_in_a_part_that_was_split_off() -> None:
    cold = Block(0x9000, 8, ("call",), ("call 0x1",))
    parent = function("parent", 0x2000, blocks=(*BASE.blocks, cold))
    assert find("0x9004", function("low", 0x1000), parent) is parent


def test_an_address_that_no_function_holds() -> None:
    with pytest.raises(ConfigError, match=r"no function of lib\.so holds the address 0x5000"):
        find("0x5000", function("f", 0x1000))


def test_members_of_an_archive_are_told_apart() -> None:
    first = function("f", 0x1000, binary="lib.a(one.o)")
    second = function("f", 0x1004, binary="lib.a(two.o)")
    for name, wrong in (("f", "2 functions f"), ("0x1008", "2 functions at 0x1008")):
        with pytest.raises(ConfigError, match=rf"{wrong}; .*\(one\.o\):0x1000.*\(two\.o\):0x1004"):
            find(name, first, second, path="lib.a")
        assert choose(Target("lib.a", "two.o", name), feed(first, second)) is second


# --- What a source could not read -----------------------------------------------------------


def test_a_function_that_was_skipped_says_why() -> None:
    functions = [function("other", 0x1000)]
    skipped = [Skipped("lib.so", "decode", "too large")]
    with pytest.raises(FormatError, match="decode skipped: too large"):
        choose(
            Target("lib.so", None, "decode"),
            lambda wants: ListSource(functions, wants=wants, skipped=skipped),
        )


def test_a_file_without_functions_says_why() -> None:
    source = ListSource(skipped=[Skipped("lib.so", "", "no symbols")])
    with pytest.raises(FormatError, match=r"lib\.so skipped: no symbols"):
        choose(Target("lib.so", None, "decode"), lambda wants: source)
    with pytest.raises(FormatError, match=r"lib\.so has no functions"):
        find("decode")


def test_names_that_a_source_left_out_are_still_suggested() -> None:
    def open_file(wants: Wants | None) -> ListSource:
        assert wants is not None
        assert not wants(Extent(0, 16, "decode"))
        assert wants(Extent(0, 16, "decode_all"))
        return ListSource([])

    with pytest.raises(ConfigError, match=r"no function decode_all; .*decode"):
        choose(Target("lib.so", None, "decode_all"), open_file)


# --- Real files -----------------------------------------------------------------------------


def test_only_the_function_asked_for_is_decoded(
    compile_c: Compile, monkeypatch: pytest.MonkeyPatch
) -> None:
    from graphkin.binaries.recovery.flow import Flow

    decoded = []
    recover = Flow.recover

    def watched(flow: Flow, with_text: bool = False) -> object:
        decoded.append(flow)
        return recover(flow, with_text)

    monkeypatch.setattr(Flow, "recover", watched)
    path = compile_c("".join(f"int f{n}(int x) {{ return x * {n}; }}" for n in range(20)), "-c")
    resolved = find_function(parse_target(f"{path}:f7"))
    assert resolved.name == "f7"
    assert resolved.blocks[0].instructions is not None
    assert len(decoded) == 1


def test_static_functions_of_two_files(compile_c: Compile) -> None:
    source = "static __attribute__((noinline)) int in(int x) {{ return x * {0}; }} int {1}(int x) {{ return in(x) + in(x + 1); }}"  # noqa: E501
    first = compile_c(source.format(3, "a"), "-O1", "-c", "-fPIC", name="one.o")
    second = compile_c(source.format(5, "b"), "-O1", "-c", "-fPIC", name="two.o")
    both = first.with_name("both.so")
    subprocess.run(["gcc", "-shared", "-o", str(both), str(first), str(second)], check=True)
    with pytest.raises(ConfigError, match=r"2 functions in; .*\(one\.o\.c\), .*\(two\.o\.c\)"):
        find_function(parse_target(f"{both}:in"))
    address = find_function(parse_target(f"{both}:b")).address
    assert find_function(parse_target(f"{both}:{address:#x}")).name == "b"


def test_a_member_of_a_real_archive(compile_c: Compile) -> None:
    first = compile_c("int f(int x) { return x + 1; }", "-O1", "-c", name="one.o")
    second = compile_c("int f(int x) { return x + 2; }", "-O1", "-c", name="two.o")
    archive = first.with_name("both.a")
    subprocess.run(["ar", "rc", str(archive), str(first), str(second)], check=True)
    with pytest.raises(ConfigError, match=r"both\.a\(one\.o\):0x"):
        find_function(parse_target(f"{archive}:f"))
    resolved = find_function(parse_target(f"{archive}(two.o):f"))
    assert resolved.blocks[0].instructions == ("lea eax, [rdi + 2]", "ret")


def test_a_missing_file_is_named() -> None:
    with pytest.raises(FormatError, match=r"cannot read absent\.so"):
        find_function(parse_target("absent.so:f"))
