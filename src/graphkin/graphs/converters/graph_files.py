"""Graphs from files of any format that graphkin reads, with their names.

====================================== =====================================================
path                                   holds
====================================== =====================================================
``.graphml``, ``.gexf``, ``.gml``,     one graph, called by the name of its file
``.dot``, ``.gv``
``.jsonl``, ``.ndjson``                a graph in each line
``.smi``, ``.smiles``                  a molecule in each line, and its name
``.zip``, folder with ``*_A.txt``      a TUDataset; graphs are called 0, 1, ...
folder of a ``GraphStore``             its graphs; ``label`` and ``split`` in their metadata
any other folder                       all graph files in it and its folders; without labels,
                                       the folder of a file is its class
``PATH:NAME``                          the graph of that name, of one of the above
====================================== =====================================================
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from graphkin._support.files import PathLike, read_file
from graphkin.errors import FormatError, GraphError
from graphkin.graphs.converters.attributes import AttributeNames
from graphkin.graphs.converters.dot import read_dot
from graphkin.graphs.converters.from_networkx import from_networkx
from graphkin.graphs.converters.graphml import read_graphml
from graphkin.graphs.converters.json_lines import read_json_lines
from graphkin.graphs.converters.named import NamedGraph
from graphkin.graphs.converters.smiles import read_smiles
from graphkin.graphs.converters.tudataset.dataset import read_tudataset
from graphkin.graphs.graph import Graph
from graphkin.graphs.store import GraphStore

LISTS: dict[str, Callable[[Path], list[NamedGraph]]] = {
    ".jsonl": read_json_lines,
    ".ndjson": read_json_lines,
    ".smi": read_smiles,
    ".smiles": read_smiles,
}
"""Endings of files with a graph in each line."""
MOST_LISTED = 5
"""Names of graphs that an error proposes."""


def is_graph_file(path: PathLike) -> bool:
    """Whether a path has an ending of files that hold graphs and nothing else."""
    return Path(path).suffix.lower() in (*READERS, *LISTS)


def read_graphs(
    paths: PathLike | Iterable[PathLike], names: AttributeNames | None = None
) -> list[NamedGraph]:
    """All graphs of files and folders.

    Args:
        paths: one of them, or several; see the table above.
        names: which attributes of GraphML, GEXF, GML and DOT are the input of nodes and edges;
            without, graphs that graphkin did not write have constant input.

    Raises:
        FormatError: a file is of an unknown format or broken, or two graphs have one name.
    """
    one = isinstance(paths, str | Path) or not isinstance(paths, Iterable)
    several: list[Any] = [paths] if one else list(paths)  # type: ignore[arg-type]
    graphs = [
        named for path in several for named in _read_target(Path(path), names or AttributeNames())
    ]
    if not graphs:
        files = ", ".join(map(str, several))
        problem = f"{files} holds no graph" if files else "there are no graphs to read"
        raise FormatError(f"{problem}; name at least one file with graphs")
    check_names(graphs)
    return graphs


def check_names(graphs: Iterable[NamedGraph]) -> None:
    """Refuses two graphs of one name."""
    known: set[str] = set()
    for named in graphs:
        if named.name in known:
            raise FormatError(
                f"two graphs are called {named.name!r}, so that nothing could refer to one of "
                "them; rename one"
            )
        known.add(named.name)


def _read_target(path: Path, names: AttributeNames) -> list[NamedGraph]:
    """The graphs of a path, or the one of ``PATH:NAME``; each knows its file."""
    home, _, name = str(path).rpartition(":")
    if path.exists() or not home or not Path(home).exists():
        home, name = str(path), ""
    graphs = [
        named if named.source else replace(named, source=home) for named in _read(Path(home), names)
    ]
    if not name:
        return graphs
    chosen = [named for named in graphs if name in (named.name, Path(named.name).stem)]
    if not chosen:
        known = ", ".join(named.name for named in graphs[:MOST_LISTED])
        more = f" and {len(graphs) - MOST_LISTED} more" if len(graphs) > MOST_LISTED else ""
        raise FormatError(f"{home} has no graph {name!r}; it has {known}{more}")
    return chosen


def _read(path: Path, names: AttributeNames) -> list[NamedGraph]:
    if path.is_dir():
        return _read_folder(path, names)
    if not path.exists():
        raise FormatError(f"{path} does not exist; name a file or folder of graphs")
    ending = path.suffix.lower()
    if ending in LISTS:
        return LISTS[ending](path)
    if ending == ".zip":
        return _read_tudataset(path)
    if ending not in READERS:
        known = ", ".join((*READERS, *LISTS, ".zip"))
        raise FormatError(f"{path} is not of a format that graphkin reads; known: {known}")
    return [NamedGraph(path.name, READERS[ending](path, names))]


def _read_folder(folder: Path, names: AttributeNames) -> list[NamedGraph]:
    if any(folder.glob("*_A.txt")):
        return _read_tudataset(folder)
    if (folder / "manifest.json").exists():
        return _read_store(folder)
    files = sorted(file for file in folder.rglob("*") if file.suffix.lower() in (*READERS, *LISTS))
    if not files:
        raise FormatError(
            f"{folder} holds neither a TUDataset, nor a graph store, nor files of "
            f"{', '.join((*READERS, *LISTS))}"
        )
    graphs = []
    for file in files:
        parent = file.parent.relative_to(folder)
        place = parent.as_posix() if parent.parts else None
        for named in _read(file, names):
            name = named.name if file.suffix.lower() in LISTS else file.relative_to(folder)
            label = place if named.label is None else named.label
            graphs.append(NamedGraph(str(name), named.graph, label, named.split, str(file)))
    return graphs


def _read_tudataset(path: Path) -> list[NamedGraph]:
    graphs, labels = read_tudataset(path)
    known = labels.ndim == 1 and labels.dtype.kind in "iu"
    classes = labels.tolist() if known else [None] * len(graphs)
    pairs = enumerate(zip(graphs, classes, strict=True))
    return [NamedGraph(str(number), graph, label) for number, (graph, label) in pairs]


def _read_store(path: Path) -> list[NamedGraph]:
    store = GraphStore.open(path)
    store.verify()
    graphs = []
    for number, graph in enumerate(store):
        about = store.metadata(number)
        name = store.name(number) or str(number)
        graphs.append(NamedGraph(name, graph, about.get("label"), about.get("split")))
    return graphs


def _keywords(names: AttributeNames) -> dict[str, Any]:
    return dict(vars(names))


def _with_networkx(read: str) -> Callable[[Path, AttributeNames], Graph]:
    """A reader of one of networkx's formats."""

    def reader(path: Path, names: AttributeNames) -> Graph:
        import networkx

        if b"<!DOCTYPE" in read_file(path):
            raise FormatError(f"{path}: a document type declaration (DTD) is refused; remove it")
        try:
            graph = getattr(networkx, read)(path)
        except Exception as error:  # whatever a third-party parser does on a foreign file
            kind = path.suffix[1:].upper()
            raise FormatError(f"{path} is not {kind} that networkx can read: {error}") from error
        try:
            return from_networkx(graph, **_keywords(names))
        except GraphError as error:
            raise FormatError(f"{path}: {error}") from error

    return reader


READERS: dict[str, Callable[[Path, AttributeNames], Graph]] = {
    ".graphml": lambda path, names: read_graphml(path, **_keywords(names)),
    ".gexf": _with_networkx("read_gexf"),
    ".gml": _with_networkx("read_gml"),
    ".dot": lambda path, names: read_dot(path, **_keywords(names)),
    ".gv": lambda path, names: read_dot(path, **_keywords(names)),
}
