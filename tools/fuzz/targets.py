"""What is fuzzed: for each kind of file its reader, and files to begin with.

A target takes bytes, and may raise a GraphkinError; anything else is a finding. Checksums that a
mutation would always break are made anew, so that what lies behind them is reached.
"""

from __future__ import annotations

import atexit
import json
import os
import shutil
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
FILES = REPOSITORY / "tests" / "binaries" / "files"
MEMORY = Path("/dev/shm")
HOME = "GRAPHKIN_FUZZ_HOME"
"""The variable with the folder for everything: libFuzzer ends its process without cleaning up."""
FOLDER = Path(
    tempfile.mkdtemp(
        prefix="graphkin-fuzz-", dir=os.environ.get(HOME) or (MEMORY if MEMORY.is_dir() else None)
    )
)
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)
SECONDS = 10.0
"""Of one input; the reader stops by itself, and the fuzzer reports one that does not."""


@dataclass(frozen=True)
class FuzzTarget:
    """A reader, and what it is first given."""

    read: Callable[[bytes], None]
    seeds: Callable[[], Iterable[bytes]]


def _written(data: bytes, name: str) -> Path:
    path = FOLDER / name
    path.write_bytes(data)
    return path


def _binary(data: bytes, name: str = "input", **options: bool) -> None:
    from graphkin.binaries.backends.base import Limits
    from graphkin.binaries.backends.choose import open_source

    limits = Limits(seconds=SECONDS / 2)
    source = open_source(
        _written(data, name), backend="native", with_evidence=True, limits=limits, **options
    )
    for _ in source.functions():
        pass


def read_binary(data: bytes) -> None:
    """ELF, PE, Mach-O and archives of them."""
    _binary(data)


def read_debug_information(data: bytes) -> None:
    """The same, with the files that functions were written in."""
    _binary(data, with_files=True, with_text=True)


def read_binexport(data: bytes) -> None:
    from graphkin.binaries.backends.binexport.reader import BinExportSource

    for _ in BinExportSource(_written(data, "input.BinExport")).functions():
        pass


def read_go_table(data: bytes) -> None:
    from graphkin.binaries.formats.golang.table import find_tables

    for _, table in find_tables(data):
        list(table.names[:10])


def read_container(data: bytes) -> None:
    from graphkin.binaries.containers.budget import Budget
    from graphkin.binaries.containers.unpack import UnpackJob, unpack

    budget = Budget(total_bytes=1 << 26, member_bytes=1 << 24, members=200, free_bytes=1 << 22)
    with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
        job = UnpackJob(str(_written(data, "container")), folder, 0, budget, SECONDS / 2)
        for _ in unpack(job):
            pass


def read_graph(data: bytes) -> None:
    from graphkin.graphs.encoding import CHECKSUM, load_graph

    content = bytearray(data)
    content[CHECKSUM] = bytes(4)
    content[CHECKSUM] = zlib.crc32(content).to_bytes(4, "little")
    load_graph(bytes(content))


def read_store(data: bytes) -> None:
    """A graph store whose manifest fits its files, and may say anything of their kind."""
    from graphkin.graphs.store import FILES as NAMES
    from graphkin.graphs.store import GraphKind, GraphStore, _Manifest

    try:
        head, _, rest = data.partition(b"\n")
        graphs, first, second, *kind = json.loads(head)
        parts = rest[:first], rest[first : first + second], rest[first + second :]
        path = FOLDER / "store"
        path.mkdir(exist_ok=True)
        manifest = _Manifest(
            graphs, GraphKind(*kind), "", [*map(len, parts)], [*map(zlib.crc32, parts)]
        )
        text = {"format": "graphkin graph store", "version": 1, "digest": manifest.digest()}
        (path / "manifest.json").write_text(json.dumps(text | manifest.to_dict()))
    except (ValueError, TypeError, AttributeError, RecursionError, OverflowError):
        return
    for name, part in zip(NAMES, parts, strict=True):
        (path / name).write_bytes(part)
    store = GraphStore.open(path, 100)
    store.verify()
    for number in range(min(len(store), 50)):
        store[number], store.metadata(number)


def read_library(data: bytes) -> None:
    import numpy as np

    from graphkin.library.engines.sqlite.engine import SqliteEngine

    path = _written(data, "library.kin")
    for ending in ("-wal", "-shm", ".cache"):
        Path(f"{path}{ending}").unlink(missing_ok=True)
    with SqliteEngine.open(path) as engine:
        queries = np.zeros((1, engine.space.columns), engine.space.dtype)
        numbers = [number for number in engine.nearest(queries, 5).ids[0].tolist() if number >= 0]
        engine.fetch(numbers)
        engine.graphs(numbers)
        engine.signals(numbers)
        engine.words(numbers)
        engine.stats()
        engine.documents()


def read_model(data: bytes) -> None:
    """The configuration of a model, beside weights that fit the one to begin with."""
    from graphkin import GraphEmbedder

    GraphEmbedder.from_files({"config.json": data, "model.safetensors": _weights()}, "model")


def read_graph_file(ending: str) -> Callable[[bytes], None]:
    def read(data: bytes) -> None:
        from graphkin.graphs.converters.graph_files import read_graphs

        read_graphs(_written(data, f"graph{ending}"))

    return read


def read_tudataset(data: bytes) -> None:
    from graphkin.graphs.converters.graph_files import read_graphs

    folder = FOLDER / "DS"
    folder.mkdir(exist_ok=True)
    names = ("A", "graph_indicator", "graph_labels", "node_labels", "edge_attributes")
    for name, part in zip_longest(names, data.split(b"---\n")[: len(names)], fillvalue=None):
        file = folder / f"DS_{name}.txt"
        file.unlink(missing_ok=True) if part is None else file.write_bytes(part)
    read_graphs(folder)


def _files(*patterns: str) -> Callable[[], Iterable[bytes]]:
    def seeds() -> Iterable[bytes]:
        for pattern in patterns:
            for path in sorted(FILES.glob(pattern)):
                if path.is_file() and path.stat().st_size < 1 << 17:
                    yield path.read_bytes()

    return seeds


def _model_files() -> dict[str, bytes]:
    import torch

    from graphkin import GraphEmbedder

    torch.manual_seed(0)
    return dict(GraphEmbedder("gnn").to_files())


def _weights() -> bytes:
    path = FOLDER / "weights"
    if not path.exists():
        path.write_bytes(_model_files()["model.safetensors"])
    return path.read_bytes()


def _library_seeds() -> Iterable[bytes]:
    from tests.library.engines.contract import sample_rows

    from graphkin.library.engines.base import Space
    from graphkin.library.engines.sqlite.engine import SqliteEngine

    for space in (Space("hamming", 64), Space("cosine", 12)):
        path = FOLDER / f"seed-{space.metric}.kin"
        path.unlink(missing_ok=True)
        with SqliteEngine.create(path, space, {"config.json": b"{}"}) as engine:
            engine.add(sample_rows(space, 12))
        yield path.read_bytes()


def _graph_seeds() -> Iterable[bytes]:
    from graphkin import Graph
    from graphkin.graphs.encoding import dump_graph

    yield dump_graph(Graph(3, [(0, 1), (1, 2)], directed=True, node_tokens=[[1], [2, 3], []]))
    yield dump_graph(Graph(2, [(0, 1)], node_features=[[0.5], [1.0]], edge_types=[3]))


def _store_seeds() -> Iterable[bytes]:
    index = struct.pack("<8q", 0, 0, 0, 0, 2, 1, 3, 8)
    words = struct.pack("<7i", 0, 1, 4, 5, 6, 2, 1)
    head = json.dumps([1, len(index), len(words), True, "tokens", 1, "constant", 0]).encode()
    yield head + b"\n" + index + words + b'["a",{}]'


def _go_seeds() -> Iterable[bytes]:
    from tests.binaries.formats.golang.tables import FORMS, table

    for form in FORMS:
        yield table(form, [(0, "main.main"), (64, "runtime.x")], 128)


def _container_seeds() -> Iterable[bytes]:
    import bz2
    import gzip
    import io
    import lzma
    import tarfile

    content = (FILES / "show" / "shapes.o").read_bytes()
    archive, packed = io.BytesIO(), io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        info = tarfile.TarInfo("bin/shapes.o")
        info.size = len(content)
        tar.addfile(info, io.BytesIO(content))
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as zipped:
        zipped.writestr("shapes.o", content)
    yield from (archive.getvalue(), packed.getvalue(), gzip.compress(archive.getvalue()))
    yield from (bz2.compress(content), lzma.compress(content))
    header = f"070701{'0' * 8}{'000081a4'}{'0' * 16}{'00000001'}{'0' * 8}{len(content):08x}"
    yield f"{header}{'0' * 32}{9:08x}{'0' * 8}".encode() + b"shapes.o\0".ljust(12, b"\0") + content
    yield from _files("squashfs/*")()


def _texts(*texts: str) -> Callable[[], Iterable[bytes]]:
    return lambda: (text.encode() for text in texts)


GRAPHML = """<?xml version="1.0"?><graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<key id="d" for="node" attr.name="label" attr.type="string"/><graph edgedefault="directed">
<node id="a"><data key="d">x</data></node><node id="b"/><edge source="a" target="b"/></graph>
</graphml>"""
GEXF = """<gexf xmlns="http://www.gexf.net/1.2draft" version="1.2"><graph
defaultedgetype="directed"><nodes><node id="0" label="a"/><node id="1" label="b"/></nodes><edges>
<edge id="0" source="0" target="1"/></edges></graph></gexf>"""
TARGETS: dict[str, FuzzTarget] = {
    "elf": FuzzTarget(read_binary, _files("evidence/*.so", "evidence/*.o")),
    "pe": FuzzTarget(read_binary, _files("evidence/*.dll", "pe/*")),
    "macho": FuzzTarget(read_binary, _files("evidence/*.dylib", "macho/*")),
    "debug-information": FuzzTarget(read_debug_information, _files("show/*.o", "x86/*O2.o")),
    "binexport": FuzzTarget(read_binexport, _texts("\n\x06\n\x01a\x12\x01b")),
    "go-table": FuzzTarget(read_go_table, _go_seeds),
    "containers": FuzzTarget(read_container, _container_seeds),
    "graph": FuzzTarget(read_graph, _graph_seeds),
    "store": FuzzTarget(read_store, _store_seeds),
    "library": FuzzTarget(read_library, _library_seeds),
    "model": FuzzTarget(read_model, lambda: [_model_files()["config.json"]]),
    "dot": FuzzTarget(read_graph_file(".dot"), _texts("digraph { a -> b [label=x]; b -> c }")),
    "graphml": FuzzTarget(read_graph_file(".graphml"), _texts(GRAPHML)),
    "gexf": FuzzTarget(read_graph_file(".gexf"), _texts(GEXF)),
    "tudataset": FuzzTarget(
        read_tudataset,
        _texts("1, 2\n2, 1\n3, 4\n4, 3\n---\n1\n1\n2\n2\n---\n0\n1\n---\n0\n1\n2\n0\n"),
    ),
    "json-lines": FuzzTarget(
        read_graph_file(".jsonl"), _texts('{"num_nodes": 2, "edges": [[0, 1]], "name": "a"}\n')
    ),
}
