"""Functions for people and programs: text, JSON and DOT; and what each edge means."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from graphkin.binaries import Block, Function
from graphkin.binaries.backends.native import NativeSource
from graphkin.binaries.function import Token, edge_kinds
from graphkin.results.function import code_of, summary, summary_of, to_dot, to_text
from graphkin.results.render import to_json
from tests.binaries.compiling import Compile

LOOP = Function(
    name="count.part.0",
    address=0x1000,
    size=12,
    blocks=(
        Block(0x1000, 4, ("xor", "nop"), ("xor eax, eax", "nop")),
        Block(0x1004, 6, ("add", "jne"), ("add eax, 1", "jne 0x1004")),
        Block(0x100A, 2, ("ret",), ("ret",)),
    ),
    edges=((0, 1), (1, 1), (1, 2)),
    architecture="x86-64",
    format="elf",
    file_hash="ab" * 32,
    binary="libx.so",
    compiler="GCC 12",
    aliases=("also",),
    unit="count.c",
)


def function(*blocks: Block, edges: tuple[tuple[int, int], ...]) -> Function:
    return replace(LOOP, blocks=blocks, edges=edges)


def block(address: int, last: str) -> Block:
    return Block(address, 0x10, (last.partition(" ")[0],), (last,))


@pytest.mark.parametrize(
    "last", ["jne 0x40", "b.eq #0x40", "tbz w0, #3, #0x40", "cbz r0, #0x40", "loop 0x40"]
)
@pytest.mark.parametrize("with_text", [True, False])
def test_a_branch_is_taken_to_where_it_points(last: str, with_text: bool) -> None:
    blocks = [block(0, last), block(0x10, "nop"), block(0x40, "ret")]
    if not with_text:
        blocks = [item._replace(instructions=None) for item in blocks]
    kinds = edge_kinds(function(*blocks, edges=((0, 1), (0, 2), (1, 2))))
    assert kinds == ("not taken", "taken", "next")


def test_a_branch_back_past_padding() -> None:
    """The next block lies behind some padding, and the branch goes back."""
    blocks = (block(0, "nop"), block(0x10, "jne 0x0"), block(0x24, "ret"))
    bare = [item._replace(instructions=None) for item in blocks]
    for chosen in (blocks, bare):
        kinds = edge_kinds(function(*chosen, edges=((0, 1), (1, 0), (1, 2))))
        assert kinds == ("next", "taken", "not taken")


def test_jumps_and_cases() -> None:
    blocks = (
        block(0, "jmp rax"),
        block(0x10, "jmp 0x20"),
        block(0x20, "jmp 0x0"),
        block(0x30, "ret"),
    )
    edges = ((0, 1), (0, 2), (0, 3), (1, 2), (2, 0))
    assert edge_kinds(function(*blocks, edges=edges)) == ("case", "case", "case", "jump", "jump")


def test_kinds_of_compiled_code(compile_c: Compile) -> None:
    source = "int a(void); int f(int x) { while (x) { if (x == 5) a(); x--; } return x; }"
    resolved = next(NativeSource(compile_c(source, "-O0", "-c"), with_text=True).functions())
    for (start, _), kind in zip(resolved.edges, edge_kinds(resolved), strict=True):
        last = resolved.blocks[start].mnemonics[-1]
        expected = {"jmp": ("jump",), "je": ("taken", "not taken"), "jne": ("taken", "not taken")}
        assert kind in expected.get(last, ("next",))


def test_text_is_a_header_and_every_block() -> None:
    assert to_text(LOOP).splitlines() == [
        "count.part.0",
        "  0x1000 · 12 bytes · 3 blocks · 3 edges · x86-64 elf",
        "  libx.so",
        "  also also",
        "  of count.c",
        "  GCC 12",
        "",
        "0x1000:  entry",
        "    xor     eax, eax",
        "    nop",
        "    -> 0x1004  next",
        "",
        "0x1004:",
        "    add     eax, 1",
        "    jne     0x1004",
        "    -> 0x1004  taken",
        "    -> 0x100a  not taken",
        "",
        "0x100a:  exit",
        "    ret",
    ]


SAID = (Token("str", 'say "\x1b[2J"'), Token("imp", "puts"), Token("num", "7"), Token("off", "8"))
TALKING = replace(LOOP, blocks=(LOOP.blocks[0]._replace(evidence=SAID), *LOOP.blocks[1:]))


def test_text_says_what_the_function_and_each_block_say() -> None:
    lines = to_text(TALKING).splitlines()
    assert lines[6:8] == [r'  strings    "say "\x1b[2J""', "  imports    puts"]
    assert lines[9:16] == [
        "0x1000:  entry",
        "    xor     eax, eax",
        "    nop",
        r'    ; strings "say "\x1b[2J""',
        "    ; imports puts",
        "    ; constants 7",
        "    -> 0x1004  next",
    ]


def test_long_lists_of_words_are_cut() -> None:
    said = tuple(Token("str", f"a string of some length, number {n}") for n in range(50))
    text = to_text(replace(LOOP, blocks=(LOOP.blocks[0]._replace(evidence=said),), edges=()))
    assert max(map(len, text.splitlines())) <= 100
    head, block = text.split("0x1000:  entry")
    assert head.endswith('number 5" and 44 more\n\n')
    assert '\n    ; strings "a string of some length, number 0", "a' in block
    assert block.endswith('\n    ;         "a string of some length, number 4" and 45 more')


def test_text_without_operands_has_the_mnemonics() -> None:
    bare = replace(LOOP, blocks=tuple(item._replace(instructions=None) for item in LOOP.blocks))
    assert "    jne\n    -> 0x1004  taken" in to_text(bare)


def test_one_of_a_kind_is_singular() -> None:
    single = replace(LOOP, size=1, blocks=LOOP.blocks[2:], edges=())
    assert summary(single) == "0x1000 · 1 byte · 1 block · 0 edges · x86-64 elf"


def test_a_name_of_cpp_is_shown_as_the_source_spells_it() -> None:
    text = to_text(replace(LOOP, name="_ZN3foo3barEi", aliases=("_ZN3foo3bazEi",)))
    assert text.startswith("foo::bar(int)\n  _ZN3foo3barEi\n  0x1000")
    assert "  also foo::baz(int)\n" in text


def test_the_document_is_complete() -> None:
    document = json.loads(to_json(code_of(LOOP)))
    assert document == {
        "function": "count.part.0",
        "demangled": None,
        "base_name": "count",
        "aliases": ["also"],
        "unit": "count.c",
        "address": "0x1000",
        "size": 12,
        "architecture": "x86-64",
        "format": "elf",
        "compiler": "GCC 12",
        "binary": "libx.so",
        "file_hash": "ab" * 32,
        "reference": None,
        "text": "disassembly",
        "picture": None,
        "callees": None,
        "blocks": [
            {
                "address": f"{item.address:#x}",
                "size": item.size,
                "mnemonics": list(item.mnemonics),
                "instructions": list(item.instructions or ()),
                "operations": None,
                "evidence": None,
                "spelled_imports": {},
            }
            for item in LOOP.blocks
        ],
        "edges": [
            {"source": 0, "target": 1, "kind": "next"},
            {"source": 1, "target": 1, "kind": "taken"},
            {"source": 1, "target": 2, "kind": "not taken"},
        ],
    }
    assert summary_of(LOOP).blocks == summary_of(LOOP).edges == 3


def test_dot_is_read_by_another_tool() -> None:
    pydot = pytest.importorskip("pydot")
    odd = replace(LOOP, name='operator"\\n<>{|}')
    (graph,) = pydot.graph_from_dot_data(to_dot(odd))
    boxes = {node.get_name(): node for node in graph.get_nodes() if node.get_name().isdigit()}
    assert boxes.keys() == {"0", "1", "2"}
    assert boxes["1"].get("label") == r'"0x1004:\ladd eax, 1\ljne 0x1004\l"'
    ends = [(edge.get_source(), edge.get_destination()) for edge in graph.get_edges()]
    assert ends == [("0", "1"), ("1", "1"), ("1", "2")]
    (talking,) = pydot.graph_from_dot_data(to_dot(TALKING))
    label = talking.get_node("0")[0].get("label")
    assert label.endswith(r'\l; strings \"say \"\\x1b[2J\"\"\l; imports puts\l; constants 7\l"')
    colors = [edge.get("color") for edge in graph.get_edges()]
    assert len(set(colors)) == 3
