"""The functions of one binary, with all that is compared of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from graphkin.binaries.backends.choose import Backend
from graphkin.binaries.coverage import Coverage
from graphkin.binaries.function import Function, Skipped
from graphkin.binaries.reading import read_functions
from graphkin.binaries.targets import Target
from graphkin.errors import ConfigError
from graphkin.graphs import Graph
from graphkin.library.diff.code import CodeForm, code_form
from graphkin.library.models import SearchModel
from graphkin.library.signals import Records, Surroundings

NEIGHBOURS = 4
"""How far a function sees along its file: those of one source file lie together."""


@dataclass(frozen=True, eq=False)
class Side:
    """One of the two binaries of a diff."""

    functions: Sequence[Function]
    """In the order of the file, without the text of their instructions."""
    code: Sequence[CodeForm]
    """The code of each, where addresses do not count."""
    graphs: Sequence[Graph]
    signals: Records
    calls: Sequence[tuple[int, ...]]
    """The functions that each calls, by number."""

    def __len__(self) -> int:
        return len(self.functions)

    @cached_property
    def blocks(self) -> NDArray[np.int64]:
        """(N,)"""
        return np.array([graph.num_nodes for graph in self.graphs], dtype=np.int64)

    @cached_property
    def graph_hashes(self) -> list[str]:
        return [graph.digest() for graph in self.graphs]

    @cached_property
    def callees(self) -> sparse.csr_array:
        """(N, N) 1 where the row calls the column."""
        pairs = [(row, callee) for row, own in enumerate(self.calls) for callee in own]
        rows, columns = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
        return sparse.csr_array((np.ones(len(rows)), (rows, columns)), shape=(len(self),) * 2)

    @cached_property
    def following(self) -> sparse.csr_array:
        """(N, N) 1 where the column is next to the row in the file, less where it follows later."""
        count = len(self)
        rows = np.arange(count)
        near = [(rows[:-step], step) for step in range(1, min(NEIGHBOURS + 1, count))]
        own = np.concatenate([rows[:0], *(starts for starts, _ in near)])
        others = np.concatenate([rows[:0], *(starts + step for starts, step in near)])
        return sparse.csr_array((1 / (others - own), (own, others)), shape=(count, count))


def read_side(
    model: SearchModel,
    target: Target,
    *,
    backend: Backend = "auto",
    skipped: list[Skipped] | None = None,
    coverages: list[Coverage] | None = None,
) -> Side:
    """Reads a binary, or all members of an archive.

    Raises:
        ConfigError: for a target that names a function.
        FormatError: for a file that cannot be read.
    """
    if target.function is not None:
        raise ConfigError(
            f"{target.binary}:{target.function} is one function; a diff takes whole binaries, and "
            "graphkin compare two functions"
        )
    functions = read_functions(
        target,
        backend=backend,
        with_text=True,
        with_evidence=model.vocabulary.reads == "evidence",
        skipped=skipped,
        coverages=coverages,
    )
    return side_of(model, functions)


def side_of(model: SearchModel, functions: Iterable[Function]) -> Side:
    """A side of functions that were read with the text of their instructions."""
    kept, code = [], []
    for function in functions:
        code.append(code_form(function))
        kept.append(_without_text(function))
    order = sorted(range(len(kept)), key=lambda row: (kept[row].binary, kept[row].address))
    kept, code = [kept[row] for row in order], [code[row] for row in order]
    calls = _calls(kept)
    graphs = [function.to_graph(model.vocabulary) for function in kept]
    encoded = model.encoded(
        graphs,
        [function.architecture for function in kept],
        [Surroundings(row, own) for row, own in enumerate(calls)],
    )
    if encoded.signals is None:
        raise ConfigError(
            f"the model {model.model_id} compares codes alone; a diff needs one with a ranking, "
            "such as functions"
        )
    return Side(kept, code, graphs, encoded.signals, calls)


def _without_text(function: Function) -> Function:
    return replace(
        function, blocks=tuple(block._replace(instructions=None) for block in function.blocks)
    )


def _calls(functions: Sequence[Function]) -> list[tuple[int, ...]]:
    """The numbers of the functions that each calls.

    Members of an archive call each other by name, as a linker would join them.
    """
    by_address = {(item.binary, item.address): row for row, item in enumerate(functions)}
    files = {item.binary for item in functions}
    by_name: dict[str, int] = {}
    if len(files) > 1:
        for row, item in enumerate(functions):
            for name in (item.name, *item.aliases):
                by_name.setdefault(name, row)
    calls = []
    for row, item in enumerate(functions):
        targets = (
            by_address.get((item.binary, callee))
            if isinstance(callee, int)
            else by_name.get(callee)
            for callee in item.callees or ()
        )
        calls.append(tuple(target for target in targets if target is not None and target != row))
    return calls
