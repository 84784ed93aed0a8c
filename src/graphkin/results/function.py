"""A function as text, as a JSON document, and in Graphviz's language."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, repeat

from graphkin.binaries.demangling import shown_name
from graphkin.binaries.function import Block, Function, edge_kinds
from graphkin.binaries.operations import operation_names
from graphkin.results.document import (
    CodeBlock,
    CodeEdge,
    EvidenceToken,
    FunctionCode,
    FunctionRef,
    FunctionSummary,
)
from graphkin.results.text import address_text, plural
from graphkin.results.word_text import packed, titled_lines, titled_words

EDGE_COLORS = {
    "taken": "#009e73",
    "not taken": "#d55e00",
    "next": "#57606a",
    "jump": "#0072b2",
    "case": "#0072b2",
}
"""Okabe and Ito's colours, which stay apart for colour-blind eyes."""
BLOCK_TITLES = ("strings", "imports", "constants", "tables")
"""What is shown of the words of a block."""
HEAD_TITLES = ("strings", "imports")
"""What is shown of the words of a whole function, ahead of its blocks."""
HEAD_WIDTH = 98
"""Columns of those lines, behind their indent."""
ROLE_COLORS = {"entry": "#b7e4c7", "exit": "#f8c4bd"}


def to_text(function: Function) -> str:
    """A header, then every block with its instructions and where they lead."""
    return "\n".join((*_header(function), *_block_lines(function)))


def summary(function: Function) -> str:
    """The facts of a function on one line, without its name."""
    facts = (
        f"0x{function.address:x}",
        plural(function.size, "byte"),
        plural(len(function.blocks), "block"),
        plural(len(function.edges), "edge"),
        f"{function.architecture} {function.format}",
    )
    return " · ".join(facts)


def block_roles(function: Function) -> list[str]:
    """``entry`` for the first block, ``exit`` for those that lead nowhere, nothing for others."""
    sources = {source for source, _ in function.edges}
    count = len(function.blocks)
    return ["entry" if n == 0 else "" if n in sources else "exit" for n in range(count)]


def _header(function: Function) -> Iterator[str]:
    yield function.shown
    if function.shown != function.name:
        yield f"  {function.name}"
    yield f"  {summary(function)}"
    yield f"  {function.binary}"
    if function.aliases:
        yield f"  also {', '.join(map(shown_name, function.aliases))}"
    if function.unit:
        yield f"  of {function.unit}"
    if function.compiler:
        yield f"  {function.compiler}"
    yield from (
        f"  {line}" for line in titled_lines(said_by(function), HEAD_TITLES, width=HEAD_WIDTH)
    )


def is_understood(function: Function) -> bool:
    """Whether it is known what the blocks of a function say."""
    return all(block.evidence is not None for block in function.blocks)


def _block_lines(function: Function) -> Iterator[str]:
    leads: dict[int, list[str]] = {}
    for (source, target), kind in zip(function.edges, edge_kinds(function), strict=True):
        leads.setdefault(source, []).append(f"    -> 0x{function.blocks[target].address:x}  {kind}")
    for number, (block, role) in enumerate(
        zip(function.blocks, block_roles(function), strict=True)
    ):
        yield ""
        yield f"0x{block.address:x}:  {role}".rstrip()
        for mnemonic, operands in map(_parts, _instructions(block)):
            yield f"    {mnemonic:<8}{operands}".rstrip()
        yield from (f"    {line}" for line in evidence_lines(block))
        yield from leads.get(number, ())


def evidence_lines(block: Block, width: int = 90, most_lines: int = 3) -> Iterator[str]:
    """What a block says to people: strings, imports, constants and tables.

    Args:
        block: with its evidence, where that is known.
        width: columns of a line.
        most_lines: of each kind of words; those that do not fit are counted.
    """
    for title, texts in titled_words(block.evidence or (), BLOCK_TITLES):
        starts = chain([f"; {title} "], repeat(f"; {' ' * len(title)} "))
        lines = packed(texts, width - len(title) - len(";  "), most_lines)
        yield from map("".join, zip(starts, lines, strict=False))


def _instructions(block: Block) -> tuple[str, ...]:
    return block.mnemonics if block.instructions is None else block.instructions


def _parts(instruction: str) -> tuple[str, str]:
    mnemonic, _, operands = instruction.partition(" ")
    # A space, where a mnemonic is as wide as its column.
    return (mnemonic if len(mnemonic) < 8 else f"{mnemonic} "), operands


def said_by(function: Function) -> tuple[EvidenceToken, ...]:
    """What a function says, each once, in order."""
    tokens = (token for block in function.blocks for token in block.evidence or ())
    return tuple(dict.fromkeys(EvidenceToken(*token) for token in tokens))


def ref_of(function: Function, reference: str | None = None) -> FunctionRef:
    """Which function is meant."""
    return FunctionRef(
        function=function.name,
        binary=function.binary,
        address=function.address,
        blocks=len(function.blocks),
        reference=reference,
        code_hash=function.code_hash(),
    )


def summary_of(function: Function) -> FunctionSummary:
    """A function in a list of functions."""
    return FunctionSummary(
        function=function.name,
        binary=function.binary,
        address=function.address,
        size=function.size,
        blocks=len(function.blocks),
        edges=len(function.edges),
        unit=function.unit,
    )


def code_of(
    function: Function,
    reference: str | None = None,
    *,
    has_text: bool = True,
    picture: str | None = None,
) -> FunctionCode:
    """Everything that is known of a function; edges count blocks from 0.

    Args:
        function: what is described.
        reference: what the HTTP API calls it.
        has_text: whether its instructions are known, and not only their mnemonics.
        picture: the file that it was drawn into.
    """
    return FunctionCode(
        function=function.name,
        base_name=function.base_name,
        aliases=tuple(function.aliases),
        binary=function.binary,
        unit=function.unit,
        address=function.address,
        size=function.size,
        architecture=function.architecture,
        format=function.format,
        compiler=function.compiler,
        file_hash=function.file_hash,
        blocks=tuple(
            CodeBlock(
                address=block.address,
                size=block.size,
                mnemonics=tuple(block.mnemonics),
                instructions=tuple(_instructions(block)),
                operations=None if block.operations is None else operation_names(block.operations),
                evidence=None
                if block.evidence is None
                else tuple(EvidenceToken(*token) for token in block.evidence),
            )
            for block in function.blocks
        ),
        edges=tuple(
            CodeEdge(source=source, target=target, kind=kind)
            for (source, target), kind in zip(function.edges, edge_kinds(function), strict=True)
        ),
        callees=_callees(function),
        reference=reference,
        text="disassembly" if has_text else "mnemonics",
        picture=picture,
    )


def _callees(function: Function) -> tuple[str, ...] | None:
    if function.callees is None:
        return None
    return tuple(
        callee if isinstance(callee, str) else address_text(callee) for callee in function.callees
    )


def to_dot(function: Function) -> str:
    """A digraph for Graphviz: a box with the instructions for each block."""
    lines = [
        f"digraph {_quoted(function.name)} {{",
        f"  label={_quoted(f'{function.shown}  {summary(function)}')}; labelloc=t;",
        '  node [shape=box, fontname="monospace", fontsize=10, style=filled, fillcolor=white];',
        "  edge [arrowsize=0.7];",
    ]
    roles = block_roles(function)
    for number, block in enumerate(function.blocks):
        text = [f"0x{block.address:x}:", *_instructions(block), *evidence_lines(block)]
        # \l ends a line that is aligned to the left.
        label = "".join(_escaped(line) + r"\l" for line in text)
        fill = ROLE_COLORS.get(roles[number], "white")
        lines.append(f'  {number} [label="{label}", fillcolor="{fill}"];')
    for (source, target), kind in zip(function.edges, edge_kinds(function), strict=True):
        lines.append(f'  {source} -> {target} [color="{EDGE_COLORS[kind]}", tooltip="{kind}"];')
    return "\n".join([*lines, "}"])


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")


def _quoted(text: str) -> str:
    return f'"{_escaped(text)}"'
