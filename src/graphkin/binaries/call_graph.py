"""Which function of a file calls which, in one record for each file.

Calls and jumps to other functions are those that the code names. Whose address is taken, or loaded
to be called from a register, is linked as well: what becomes of it later is not followed. On MIPS
what is loaded into ``$t9`` counts as called, as that is what the register is for.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Any, NamedTuple

from graphkin.binaries.function import LINKS, Callee
from graphkin.errors import FormatError

FORMAT = 1
MOST_BYTES = 1 << 30
"""Of a record that is read."""


class FunctionNode(NamedTuple):
    """A function of a file."""

    part: str
    """The member of an archive, as ``(member)``; else empty."""
    address: int
    name: str


class Link(NamedTuple):
    """That a function refers to another."""

    source: int
    """Number of the function."""
    target: int
    """Number of the other function, or of an import."""
    kind: str
    """One of ``LINKS``."""
    is_import: bool


class FunctionCalls(NamedTuple):
    """A function as it is read, with what it refers to."""

    node: FunctionNode
    callees: Sequence[Callee]
    links: bytes
    """The kind of each, as numbers of ``LINKS``."""


@dataclass(frozen=True)
class CallGraph:
    """The call graph of a file. Functions are in the order of the file."""

    functions: tuple[FunctionNode, ...]
    imports: tuple[str, ...]
    links: tuple[Link, ...]

    @classmethod
    def of(cls, functions: Iterable[FunctionCalls]) -> CallGraph:
        """The call graph of all functions of a file, in whatever order they came.

        An address at which no function was found is left out.
        """
        ordered = sorted(functions, key=lambda item: (item.node.part, item.node.address))
        numbers = {item.node[:2]: number for number, item in enumerate(ordered)}
        imports: dict[str, int] = {}
        links = []
        for number, (node, callees, kinds) in enumerate(ordered):
            for callee, kind in zip(callees, kinds, strict=True):
                is_import = isinstance(callee, str)
                if isinstance(callee, str):
                    target = imports.setdefault(callee, len(imports))
                elif (node.part, callee) in numbers:
                    target = numbers[node.part, callee]
                else:
                    continue
                links.append(Link(number, target, LINKS[kind], is_import))
        return cls(tuple(item.node for item in ordered), tuple(imports), tuple(links))

    @cached_property
    def numbers(self) -> dict[tuple[str, int], int]:
        """The number of the function of a part at an address."""
        return {node[:2]: number for number, node in enumerate(self.functions)}

    @cached_property
    def related(self) -> frozenset[tuple[int, int]]:
        """(source, target) of the links between functions."""
        return frozenset((link.source, link.target) for link in self.links if not link.is_import)

    def to_bytes(self) -> bytes:
        """The record as a library keeps it."""
        links = [(*link[:2], LINKS.index(link.kind), int(link.is_import)) for link in self.links]
        document = [FORMAT, self.functions, self.imports, links]
        return zlib.compress(json.dumps(document).encode())

    @classmethod
    def from_bytes(cls, content: bytes) -> CallGraph:
        """What :meth:`to_bytes` wrote."""
        try:
            reader = zlib.decompressobj()
            version, functions, imports, links = json.loads(reader.decompress(content, MOST_BYTES))
            if version != FORMAT:
                raise FormatError(f"a call graph of format {version}, not {FORMAT}")
            return cls(
                tuple(FunctionNode(*node) for node in functions),
                tuple(imports),
                tuple(
                    Link(source, target, LINKS[kind], bool(is_import))
                    for source, target, kind, is_import in links
                ),
            )
        except (ValueError, TypeError, LookupError, zlib.error, RecursionError) as error:
            raise FormatError(f"a call graph is damaged: {error!r}") from error

    def lines(self) -> Iterator[str]:
        """A line for each function that refers to others: its address, its name, and theirs."""
        for source, links in groupby(self.links, key=lambda link: link.source):
            part, address, name = self.functions[source]
            targets = (
                (self.imports[link.target] if link.is_import else self.functions[link.target].name)
                + ("" if link.kind == LINKS[0] else f" ({link.kind})")
                for link in links
            )
            yield f"{address:#14x}  {name}{part} -> {', '.join(targets)}"

    def to_dict(self) -> dict[str, Any]:
        """The graph as JSON has it; links by the numbers of functions and imports."""
        return {
            "functions": [node._asdict() for node in self.functions],
            "imports": list(self.imports),
            "links": [link._asdict() for link in self.links],
        }
