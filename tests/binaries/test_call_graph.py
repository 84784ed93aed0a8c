"""Who calls whom in a file: as it is read, as a record, and what is kept of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphkin.binaries.call_graph import CallGraph, FunctionCalls, FunctionNode
from graphkin.binaries.corpus import FunctionRecord
from graphkin.binaries.reading import read_functions
from graphkin.binaries.targets import parse_target
from graphkin.errors import FormatError
from tests.conftest import Compile

SOURCE = """
extern int outside(int);
int (*kept)(int);
__attribute__((noinline)) static int leaf(int x) { return x * 7 + outside(x); }
__attribute__((noinline)) int calls(int x) { return leaf(x) + 1; }
__attribute__((noinline)) int ends(int x) { return leaf(x + 3); }
void takes(void) { kept = calls; }
"""


def node(address: int, name: str, part: str = "") -> FunctionNode:
    return FunctionNode(part, address, name)


def graph_of(path: Path) -> CallGraph:
    functions = read_functions(parse_target(str(path)), with_evidence=True)
    records = [FunctionRecord.of(function, path, features="evidence") for function in functions]
    return CallGraph.of(record.calls for record in records if record.calls is not None)


def test_calls_tail_calls_and_addresses(compile_c: Compile) -> None:
    graph = graph_of(compile_c(SOURCE, "-O2", "-shared", "-fPIC", "-fvisibility=hidden"))
    names = [item.name for item in graph.functions]
    assert [item.address for item in graph.functions] == sorted(
        item.address for item in graph.functions
    )
    links = {
        (names[link.source], link.kind, (graph.imports if link.is_import else names)[link.target])
        for link in graph.links
    }
    assert {
        ("leaf", "call", "outside"),
        ("calls", "call", "leaf"),
        ("ends", "tail call", "leaf"),
        ("takes", "address", "calls"),
    } <= links
    assert not {link for link in links if link[0] == link[2]}
    assert any(line.endswith(" ends -> leaf (tail call)") for line in graph.lines())


def test_functions_are_in_the_order_of_the_file_and_strangers_are_left_out() -> None:
    graph = CallGraph.of(
        [
            FunctionCalls(node(0x30, "last"), (0x10, "puts", 0x999), bytes([1, 0, 2])),
            FunctionCalls(node(0x10, "first"), (), b""),
            FunctionCalls(node(0x10, "other", "(b.o)"), (0x30,), bytes([0])),
        ]
    )
    assert [item.name for item in graph.functions] == ["first", "last", "other"]
    assert graph.imports == ("puts",)
    assert [tuple(link) for link in graph.links] == [
        (1, 0, "tail call", False),
        (1, 0, "call", True),
    ], "other members have other addresses"
    assert graph.related == {(1, 0)}


def test_a_record_reads_as_it_was_written() -> None:
    calls = [FunctionCalls(node(0x10, "odd\udcff"), ("imp\udce9",), bytes([0]))]
    graph = CallGraph.of(calls)
    assert CallGraph.from_bytes(graph.to_bytes()) == graph


@pytest.mark.parametrize("content", [b"", b"abc", CallGraph((), (), ()).to_bytes()[:-6]])
def test_a_damaged_record_is_refused(content: bytes) -> None:
    with pytest.raises(FormatError, match="call graph"):
        CallGraph.from_bytes(content)
