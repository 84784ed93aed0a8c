"""Names as their sources spell them, and what hostile ones may cost."""

from __future__ import annotations

import random
import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from graphkin.binaries.demangling import MAX_NAME, MAX_SPELLING, demangled, shown_name, spelled

PUSH = "_ZNSt6vectorIiSaIiEE9push_backERKi"
SPELLINGS = {
    PUSH: "std::vector<int, std::allocator<int>>::push_back(int const&)",
    f"_{PUSH}": "std::vector<int, std::allocator<int>>::push_back(int const&)",
    "_ZN3foo3barEi.part.0": "foo::bar(int) (.part.0)",
    "_ZN3foo3barEv@@LIB_1": "foo::bar()@@LIB_1",
    "_RNvCs4fqI2P2rA04_7mycrate3foo": "mycrate::foo",
    "_ZN4core3fmt9Formatter3pad17h9b2b3a0e5b4d1b31E": "core::fmt::Formatter::pad",
    "_ZN45_$LT$u8$u20$as$u20$core..default..Default$GT$3foo17h9b2b3a0e5b4d1b31E": (
        "<u8 as core::default::Default>::foo"
    ),
    "?f@@YAXH@Z": "void __cdecl f(int)",
    "??0Foo@@QEAA@XZ": "public: __cdecl Foo::Foo(void)",
}


@pytest.mark.parametrize("name", SPELLINGS)
def test_names_of_cpp_and_rust(name: str) -> None:
    assert demangled(name) == shown_name(name) == SPELLINGS[name]


@pytest.mark.parametrize(
    "name",
    ["", "main", "_R", "_Z", "_RESTORE", "?", "a?b", "main.(*T).f", "AddAlignment__9ivTS",
     "_ZN3foo", "eqdestroy___systemZassertions_23", "_D3std5stdio", "caf\udce9", "_Z\udce9"],
)  # fmt: skip
def test_other_names_stay(name: str) -> None:
    assert demangled(name) is None
    assert shown_name(name) == name


def test_every_name_of_a_cpp_library_is_what_cppfilt_says() -> None:
    library = next(Path("/usr/lib").glob("*/libstdc++.so.6"), None)
    filt, nm = shutil.which("c++filt"), shutil.which("nm")
    if library is None or filt is None or nm is None:
        pytest.skip("libstdc++, nm or c++filt is not installed")
    listing = subprocess.run(
        [nm, "-D", "--defined-only", str(library)], capture_output=True, text=True, check=True
    )
    names = [line.split()[2].partition("@")[0] for line in listing.stdout.splitlines()]
    # LLVM, whose spelling ours is, has short names for some of the standard library's types.
    names = sorted({n for n in names if n.startswith("_Z") and not re.search("S[siod]", n)})[::4]
    said = subprocess.run(
        [filt], input="\n".join(names), capture_output=True, text=True, check=True
    ).stdout.splitlines()
    different = [
        (name, ours)
        for name, ours, theirs in zip(names, map(shown_name, names), said, strict=True)
        # GNU's tool still writes a space between closing brackets.
        if ours.replace(" ", "") != theirs.replace(" ", "")
    ]
    assert len(names) > 1000
    assert len(different) < 0.01 * len(names), different[:5]


HOSTILE = {
    "deep": "_Z" + "1fI" * 5000,
    "pointers": "_Z1f" + "P" * 4000 + "i",
    "growing": "_Z1f1AIiiE" + "".join(f"1AIS{n}_S{n}_E" for n in ("", *"0123456789ABCDEFGHIJ")),
    "tuples": "_RIC0" + "TB2_B2_EB2_" * 100 + "E",
    "crates": "_RNvC" + "I" * 4000,
    "msvc": "?f@@YAX" + "PEA" * 1300 + "H@Z",
    "templates": "?" + "?$" * 2000,
    "scopes": "_ZN" + "4core" * 800 + "17h0123456789abcdefE",
    "long": "_Z" + "9" * 100_000,
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_names_cost_little(kind: str) -> None:
    started = time.process_time()
    shown = shown_name(HOSTILE[kind])
    assert time.process_time() - started < 1
    assert shown == HOSTILE[kind] or len(shown) <= MAX_SPELLING


def test_damaged_names_raise_nothing_and_stay_small() -> None:
    rng = random.Random(7)
    pieces = ["I", "E", "S_", "T_", "N", "X", "DpT_", "B_", "B0_", "?$", "@", "PEA", "1A", "0"]
    started = time.process_time()
    for _ in range(1500):
        name = rng.choice(list(SPELLINGS))
        for _ in range(rng.randint(1, 6)):
            at = rng.randrange(len(name) + 1)
            end = at + rng.randint(0, 30)
            more = rng.choice([name[at:end], rng.choice(pieces)]) * rng.randint(0, 20)
            name = name[:at] + more + name[rng.choice([at, end]) :]
        name = name[:MAX_NAME] or "_Z"
        assert len(shown_name(name)) <= max(MAX_SPELLING, len(name))
    assert time.process_time() - started < 10


def test_names_are_found_by_their_spelling() -> None:
    names = ["_ZN3foo3barEi", "_ZN3foo3barEv", "_ZN3foo3barEv.cold", "_ZN3foo6barterEv", "bar",
             "_Znwm", PUSH, "?f@@YAXH@Z", "_ZN3foo3addIiEEvT_"]  # fmt: skip
    assert spelled("foo::bar(int)", names) == {"_ZN3foo3barEi"}
    assert spelled("foo::bar( int )", names) == {"_ZN3foo3barEi"}
    assert spelled("foo::bar", names) >= {"_ZN3foo3barEi", "_ZN3foo3barEv"}
    assert spelled("bar", names) == set()
    assert spelled("operator new(unsigned long)", names) == {"_Znwm"}
    both = {PUSH}
    assert spelled("std::vector<int, std::allocator<int>>::push_back(int const&)", names) == both
    assert spelled("std::vector<int, std::allocator<int> >::push_back", names) == both
    assert spelled("void __cdecl f(int)", names) == {"?f@@YAXH@Z"}
    tagged = "_ZNK4Json5Value8asStringB5cxx11Ev"
    assert demangled(tagged) == "Json::Value::asString[abi:cxx11]() const"
    for text in ("Json::Value::asString", "Json::Value::asString[abi:cxx11]() const"):
        assert spelled(text, [tagged]) == {tagged}
    assert spelled("std::string::size", ["_ZNKSs4sizeEv"]) == {"_ZNKSs4sizeEv"}
    gnu = "std::basic_string<char, std::char_traits<char>, std::allocator<char> >::size() const"
    assert spelled(gnu, ["_ZNKSs4sizeEv"]) == {"_ZNKSs4sizeEv"}
    assert spelled("foo::add<int>", names) == {"_ZN3foo3addIiEEvT_"}
    assert spelled("", names) == spelled("::", names) == set()
