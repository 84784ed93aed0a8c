"""Your own graphs in files: into a library, and looked up in it.

A graph is known by its name and its file: ``mol.jsonl:ethanol`` is one of the file, as
``libx.so:decode`` is a function. Its class is the tag ``label``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from glob import escape
from pathlib import Path
from typing import Any

from graphkin._support.files import PathLike
from graphkin.binaries.function import Skipped
from graphkin.errors import ConfigError, FormatError, GraphError, GraphkinError
from graphkin.graphs.converters.attributes import AttributeNames
from graphkin.graphs.converters.graph_files import check_names, read_graphs
from graphkin.graphs.converters.named import NamedGraph
from graphkin.library.corpus_graphs import corpus_graphs, corpus_target
from graphkin.library.indexing.writer import IndexSummary
from graphkin.library.library import Library
from graphkin.library.records import Filter, KnownFunction
from graphkin.library.scan import Query
from graphkin.models.answering import Answering
from graphkin.results.document import FunctionRef, SearchedFile

AT_ONCE = 1000
"""Graphs that are embedded and stored together."""
ADVICE = "name the attribute that holds it: --{item}-labels, or --{item}-features"
LABEL = "label"
"""The tag that says which class a graph is of."""


def read_one(text: PathLike, names: AttributeNames | None = None) -> NamedGraph:
    """The graph of ``FILE`` or ``FILE:NAME``; a file of several is refused without a name."""
    graphs = read_graphs(text, names)
    if len(graphs) > 1:
        raise ConfigError(
            f"{text} holds {len(graphs)} graphs; name one of them, such as {text}:{graphs[0].name}"
        )
    return graphs[0]


def checked_inputs(
    model: Answering, graphs: list[NamedGraph], advice: str = ADVICE
) -> list[NamedGraph]:
    """Graphs whose nodes and edges have what a model reads.

    Args:
        model: what reads them.
        graphs: of files.
        advice: how to name an attribute of an ``{item}``, a node or an edge.

    Raises:
        FormatError: says which attribute is to be named, where that is what is missing.
    """
    for named in graphs:
        for item, reads, kind in (
            ("node", model.config.node_input, named.graph.node_kind),
            ("edge", model.config.edge_input, named.graph.edge_kind),
        ):
            if reads != "constant" and kind == "constant":
                raise FormatError(
                    f"{named.source}: its {item}s say nothing, and the model reads what they say; "
                    f"{advice.format(item=item)}"
                )
    return graphs


def read_for(model: Answering, paths: Any, names: AttributeNames | None) -> list[NamedGraph]:
    """The graphs of files, with what a model reads; see :func:`checked_inputs`."""
    graphs = checked_inputs(model, _read(model, paths, names))
    words = model.vocabulary
    for named in graphs:
        if words is not None and words.mistakes(named.graph):
            raise FormatError(
                f"{named.source}: the nodes of {named.name} have whole numbers, and the model "
                "reads labels as text: it would take them for numbers of its vocabulary; give "
                "node_labels"
            )
    return graphs


def _read(model: Answering, paths: Any, names: AttributeNames | None) -> list[NamedGraph]:
    targets: list[Any] = [paths] if isinstance(paths, str | Path) else list(paths)
    corpora = [corpus_target(target) for target in targets]
    if not any(corpora):
        return read_graphs(targets, names)
    graphs: list[NamedGraph] = []
    for target, corpus in zip(targets, corpora, strict=True):
        graphs += corpus_graphs(model, *corpus) if corpus else read_graphs(target, names)
    check_names(graphs)
    return graphs


def known_graph(named: NamedGraph, tags: Mapping[str, str]) -> KnownFunction:
    """What a library keeps of a graph beside the graph itself."""
    label = {} if named.label is None else {LABEL: str(named.label)}
    return KnownFunction(function=named.name, binary=named.source, tags={**label, **tags})


def index_graphs(
    library: Library,
    paths: Sequence[PathLike],
    *,
    names: AttributeNames | None = None,
    tags: Mapping[str, str] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> IndexSummary:
    """Adds the graphs of files to a library; those that it holds already are left as they are.

    Args:
        library: made by a model of such graphs.
        paths: files and folders of graphs, or ``FILE:NAME`` for one of them.
        names: which attributes of the files are the input; by default those of the training.
        tags: given to every graph, also to those that were there already.
        progress: called as ``progress(done, total)``, in paths.
    """
    started = time.perf_counter()
    names = names or library.embedder.attribute_names
    tags = KnownFunction.from_mapping({"tags": dict(tags or {})}).tags
    summary = IndexSummary(files=len(paths))
    for done, path in enumerate(paths, start=1):
        try:
            graphs = read_for(library.embedder, path, names)
            for start in range(0, len(graphs), AT_ONCE):
                _add(library, graphs[start : start + AT_ONCE], tags, summary)
        except (FormatError, GraphError) as error:
            summary.skipped.append(Skipped(str(path), "", str(error)))
        if progress is not None:
            progress(done, len(paths))
    summary.known = summary.functions - summary.added
    summary.seconds["total"] = time.perf_counter() - started
    return summary


def _add(
    library: Library, graphs: Sequence[NamedGraph], tags: Mapping[str, str], summary: IndexSummary
) -> None:
    added = library.add(
        (item.graph for item in graphs), [known_graph(item, tags) for item in graphs]
    )
    summary.functions += len(graphs)
    summary.added += added
    if not tags or added == len(graphs):
        return
    for item in graphs:
        part = Filter(function=escape(item.name), binary=escape(item.source))
        summary.tagged += library.tag(part, tags)


def graph_queries(
    library: Library,
    targets: Iterable[PathLike],
    names: AttributeNames | None = None,
    *,
    files: list[SearchedFile] | None = None,
    on_error: Callable[[GraphkinError], None] | None = None,
) -> list[Query]:
    """The graphs of files, ready to be looked up.

    Args:
        library: whose model reads them.
        targets: files and folders of graphs, or ``FILE:NAME``.
        names: which attributes of the files are the input; by default those of the training.
        files: is filled with what could be read.
        on_error: is told of a target that cannot be read; without it, the error is raised.
    """
    names = names or library.embedder.attribute_names
    queries: list[Query] = []
    for target in targets:
        try:
            graphs = read_for(library.embedder, target, names)
            read = library.embedder.read(item.graph for item in graphs)
            queries += [
                Query(graph_ref(item), graph) for item, graph in zip(graphs, read, strict=True)
            ]
        except GraphkinError as error:
            if on_error is None:
                raise
            on_error(error)
        else:
            if files is not None:
                files.append(SearchedFile(binary=str(target), functions=len(graphs)))
    return queries


def graph_ref(named: NamedGraph, reference: str | None = None) -> FunctionRef:
    """Which graph is meant."""
    return FunctionRef(
        kind="graph",
        function=named.name,
        binary=named.source,
        blocks=named.graph.num_nodes,
        reference=reference,
    )
