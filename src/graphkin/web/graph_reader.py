"""Uploaded files of graphs are read in processes of their own, within a budget."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from graphkin.binaries.function import Function
from graphkin.binaries.inputs import Input
from graphkin.errors import ModelError
from graphkin.graphs.converters.attributes import AttributeNames
from graphkin.graphs.converters.graph_files import read_graphs
from graphkin.graphs.converters.named import NamedGraph
from graphkin.library.own_graphs import checked_inputs
from graphkin.models.answering import Embedder
from graphkin.web.limits import ServerLimits
from graphkin.web.upload_reader import FileFacts, Reader, UploadedFunction, cut

NO_CODE = "the library holds graphs, and graphs have no code to show or to diff"

ADVICE = (
    "upload JSON lines with {item}_labels or {item}_features, or search on the command line, where "
    "--{item}-labels names the attribute"
)
"""The page has no options for attributes of files."""


class GraphReader(Reader):
    """Reads files of graphs; every method may be called by any thread."""

    def __init__(self, limits: ServerLimits, embedder: Embedder) -> None:
        self._limits = limits
        self._embedder = embedder

    def functions(self, path: Path) -> tuple[list[UploadedFunction], FileFacts]:
        """Every graph of a file.

        Raises:
            FormatError: for a file that cannot be read within its budget, or that holds graphs
                which the model does not take.
        """
        names = self._embedder.attribute_names
        task = partial(list_graphs, names=names, most_graphs=self._limits.functions)
        items = self._results(task, Input(str(path)), path)
        graphs = [item for item in items if isinstance(item, UploadedFunction)]
        checked_inputs(
            self._embedder,
            [NamedGraph(item.name, item.graph, source=path.name) for item in graphs],
            ADVICE,
        )
        return graphs, next(item for item in items if isinstance(item, FileFacts))

    def function(self, path: Path, address: int, member: str | None) -> Function:
        raise ModelError(NO_CODE)

    def with_text(self, path: Path) -> Iterator[Function]:
        raise ModelError(NO_CODE)


def list_graphs(
    file: Input, *, names: AttributeNames, most_graphs: int
) -> Iterator[UploadedFunction | FileFacts]:
    """The task of a worker process: every graph, then the facts of the file."""
    graphs = read_graphs(file.path, names)
    for named in graphs[:most_graphs]:
        yield UploadedFunction(
            name=cut(named.name),
            demangled=None,
            address=None,
            size=None,
            blocks=named.graph.num_nodes,
            edges=named.graph.num_edges,
            member=None,
            unit=None,
            graph=named.graph,
            code_hash="",
            label=None if named.label is None else cut(str(named.label)),
        )
    left = len(graphs) - most_graphs
    reasons = () if left <= 0 else (f"it has {left:,} graphs more; the rest is left out",)
    ending = Path(file.path).suffix.removeprefix(".").lower()
    yield FileFacts("", ending, None, len(reasons), reasons)
