"""Scripts for Ghidra, IDA and Binary Ninja do in stubs of these what they say."""

from __future__ import annotations

import ast
from collections.abc import Callable

import pytest

from graphkin.errors import ConfigError
from graphkin.results.document import Names
from graphkin.results.naming.binja import binja_script
from graphkin.results.naming.ghidra import ghidra_script
from graphkin.results.naming.host_names import host_names
from graphkin.results.naming.ida import ida_script
from tests.results.naming.hosts import CONTENT_HASH, Binja, Ghidra, Host, Ida
from tests.results.naming.samples import carried, hostile_names, names_of

Script = Callable[[Names], str]
HOSTS = pytest.mark.parametrize(
    ("kind", "script"),
    [(Ghidra, ghidra_script), (Ida, ida_script), (Binja, binja_script)],
    ids=["ghidra", "ida", "binja"],
)
NAMES = names_of(
    carried(0x1000, "decode", source_file="src/decode.c"),
    carried(0x2000, "encode"),
    carried(0x3000, "gone"),
)


@HOSTS
def test_only_automatic_names_are_replaced(kind: type[Host], script: Script) -> None:
    host = kind(0x1000, 0x2000, 0x4000)
    host.names[0x2000] = "chosen_by_hand"
    host.comments[0x1000] = "looked at this"
    host.run(script(NAMES))
    assert host.names == {0x1000: "decode", 0x2000: "chosen_by_hand"}
    assert host.comments == {
        0x1000: "looked at this\ngraphkin: decode, probability 0.987, from libx.so at 0x900, "
        "written in src/decode.c"
    }


@HOSTS
def test_undo(kind: type[Host], script: Script) -> None:
    host = kind(0x1000, 0x2000)
    host.comments[0x1000] = "looked at this"
    text = script(NAMES)
    host.run(text)
    host.names[0x2000] = "chosen_afterwards"
    host.run(text.replace("UNDO = False", "UNDO = True"))
    assert host.names == {0x2000: "chosen_afterwards"}
    assert host.comments[0x1000] == "looked at this"


@HOSTS
def test_a_script_runs_twice(kind: type[Host], script: Script) -> None:
    host = kind(0x1000)
    for _ in range(2):
        host.run(script(NAMES))
    assert host.names == {0x1000: "decode"}
    assert host.comments[0x1000].count("graphkin: ") == 1


@HOSTS
def test_another_file_is_left_alone(
    kind: type[Host], script: Script, capsys: pytest.CaptureFixture[str]
) -> None:
    host = kind(0x1000, sha256="cd" * 32)
    text = script(NAMES)
    host.run(text)
    assert not host.names
    assert "another file is open" in capsys.readouterr().out
    own = CONTENT_HASH if kind is Binja else "cd" * 32
    host.run(script(NAMES.model_copy(update={"file_hash": own})))
    assert host.names == {0x1000: "decode"}


@pytest.mark.parametrize(("kind", "script"), [(Ghidra, ghidra_script), (Binja, binja_script)])
def test_programs_that_the_host_moved(kind: type[Host], script: Script) -> None:
    host = kind(0x1000, base=0x100000)
    host.run(script(NAMES))
    assert host.names == {0x101000: "decode"}


@HOSTS
def test_a_shift_by_hand(kind: type[Host], script: Script) -> None:
    host = kind(0x5000)
    host.run(script(NAMES).replace("SHIFT = None", "SHIFT = 0x4000"))
    assert host.names == {0x5000: "decode"}


@HOSTS
def test_names_are_never_code(kind: type[Host], script: Script) -> None:
    names = hostile_names()
    host = kind(*(item.target.address or 0 for item in names.names))
    text = script(names)
    assert text.isascii()
    assert len(ast.parse(text).body) == len(ast.parse(script(NAMES)).body)
    host.run(text)
    assert host.proof == []
    assert len(host.names) == len(set(host.names.values())) == len(names.names)
    for name in host.names.values():
        assert all(letter.isalnum() or letter in "_.$@?" for letter in name), name
    assert all("\n" not in text and "\x1b" not in text for text in host.comments.values())


@HOSTS
def test_scripts_are_python_2_too(kind: type[Host], script: Script) -> None:
    """Ghidra's Jython is; what it does not know is not in them."""
    tree = ast.parse(script(NAMES))
    newer = (ast.JoinedStr, ast.AnnAssign, ast.NamedExpr, ast.Nonlocal, ast.Starred)
    assert not [node for node in ast.walk(tree) if isinstance(node, newer)]


def test_names_that_occur_twice_are_told_apart() -> None:
    twice = names_of(carried(0x10, "init"), carried(0x20, "init"), carried(0x30, "a b"))
    assert [item.name for item in host_names(twice)] == ["init", "init_20", "a_b"]


def test_a_script_is_for_one_file() -> None:
    other = carried(0x20, "b")
    other = other.model_copy(
        update={"target": other.target.model_copy(update={"binary": "firmware.bin(second)"})}
    )
    with pytest.raises(ConfigError, match="2 binaries"):
        ghidra_script(names_of(carried(0x10, "a"), other))
