"""TUDataset: the real COIL-DEL, round trips, and files that are refused."""

from __future__ import annotations

import os
import tempfile
import time
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from graphkin.errors import ConfigError, FormatError, GraphError, StorageError
from graphkin.graphs import Graph
from graphkin.graphs.converters.tudataset.dataset import read_tudataset, write_tudataset
from tests.graphs.graph_strategies import EDGE_KINDS, graphs
from tests.paths import REPOSITORY

SHARED = Path(os.environ.get("GRAPHKIN_SHARED", REPOSITORY.parent / "shared"))
COIL_DEL = SHARED / "data" / "COIL-DEL.zip"

SMALL = {
    "A": "1, 2\n2, 1\n2, 2\n4, 3\n3, 4\n",
    "graph_indicator": "1\n1\n2\n2\n2\n",
    "graph_labels": "-1\n1\n",
}


def folder_of(parent: Path, parts: dict[str, str], name: str = "DS") -> Path:
    folder = parent / name
    folder.mkdir()
    for part, text in parts.items():
        (folder / f"{name}_{part}.txt").write_text(text)
    return folder


@pytest.mark.skipif(not COIL_DEL.exists(), reason=f"COIL-DEL.zip is not in {COIL_DEL.parent}")
def test_coil_del_has_its_published_counts() -> None:
    start = time.process_time()
    meshes, labels = read_tudataset(COIL_DEL)
    assert time.process_time() - start < 3
    assert len(meshes) == 3900
    assert np.bincount(labels)[1:].tolist() == [39] * 100
    assert np.mean([graph.num_nodes for graph in meshes]) == pytest.approx(21.54, abs=0.005)
    assert np.mean([graph.num_edges for graph in meshes]) == pytest.approx(54.24, abs=0.005)
    first = meshes[0]
    assert (first.directed, first.node_kind, first.edge_kind) == (False, "dense", "types")
    assert first.node_features is not None
    assert first.node_features[:2].tolist() == [[7, 29], [34, 46]]
    assert first.edges[:2].tolist() == [[0, 1], [0, 4]]
    assert first.edge_types is not None
    assert first.edge_types[:2].tolist() == [0, 1]
    assert labels[:3].tolist() == [15, 100, 19]


datasets = st.tuples(
    st.sampled_from(("constant", "dense", "tokens")), st.sampled_from(EDGE_KINDS), st.booleans()
).flatmap(
    lambda kinds: st.lists(
        graphs(
            node_kind=kinds[0], edge_kind=kinds[1], directed=kinds[2], widths=(2, 3), bag_size=1
        ),
        min_size=1,
        max_size=4,
    )
)


@given(datasets, st.data())
@settings(max_examples=60)
def test_round_trip_is_exact(items: list[Graph], data: st.DataObject) -> None:
    # A dataset without a single edge has no line that could show the width.
    assume(items[0].edge_kind != "dense" or any(item.num_edges for item in items))
    labels = [data.draw(st.integers(-(2**60), 2**60)) for _ in items]
    with tempfile.TemporaryDirectory() as folder:
        write_tudataset(Path(folder) / "new", "DS", items, labels)
        read_back, labels_back = read_tudataset(Path(folder) / "new", directed=items[0].directed)
        if not items[0].directed:
            assert read_tudataset(Path(folder) / "new")[0] == read_back
    assert read_back == items
    assert labels_back.tolist() == labels


def test_folder_and_zip_read_alike_and_nothing_is_unpacked(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, SMALL)
    expected = [Graph(2, [(0, 1), (1, 1)]), Graph(3, [(1, 0)])]
    archive = tmp_path / "any-name.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as out:
        for file in sorted(folder.iterdir()):
            out.write(file, f"DS/{file.name}")
        out.writestr("__MACOSX/DS/._DS_A.txt", "junk")
        out.writestr("DS/README.txt", "about")
    for path in (folder, str(archive)):
        read_back, labels = read_tudataset(path)
        assert read_back == expected
        assert (labels.tolist(), labels.dtype) == ([-1, 1], np.int64)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["DS", "any-name.zip"]


def test_direction_is_asked_from_the_edges(tmp_path: Path) -> None:
    one_way = folder_of(tmp_path, SMALL | {"A": "1, 2\n4, 3\n"})
    assert all(graph.directed for graph in read_tudataset(one_way)[0])
    with pytest.raises(FormatError, match=r"DS_A.txt has no reverse"):
        read_tudataset(one_way, directed=False)
    uneven = folder_of(tmp_path, SMALL | {"edge_labels": "1\n2\n0\n0\n0\n"}, "EV")
    assert all(graph.directed for graph in read_tudataset(uneven)[0])
    both = folder_of(tmp_path, SMALL, "BOTH")
    assert [graph.num_edges for graph in read_tudataset(both, directed=True)[0]] == [3, 2]


def test_nodes_and_edges_in_any_order(tmp_path: Path) -> None:
    parts = SMALL | {
        "A": "1, 3\n2, 4\n3, 1\n4, 2\n",
        "graph_indicator": "2\n1\n2\n1\n2\n",
        "node_labels": "10\n20\n30\n40\n50\n",
        "edge_labels": "8\n7\n8\n7\n",
    }
    read_back, _ = read_tudataset(folder_of(tmp_path, parts))
    assert read_back == [
        Graph(2, [(0, 1)], node_tokens=[[20], [40]], edge_types=[7]),
        Graph(3, [(0, 1)], node_tokens=[[10], [30], [50]], edge_types=[8]),
    ]


def test_labels_become_tokens_types_or_columns(tmp_path: Path) -> None:
    edge_labels = "3\n3\n-1\n0\n0\n"
    labelled = SMALL | {"node_labels": "0\n2\n-3\n2\n1\n", "edge_labels": edge_labels}
    read_back, _ = read_tudataset(folder_of(tmp_path, labelled, "L"))
    assert token_bags(read_back) == [[[3], [5]], [[0], [5], [4]]]
    assert [graph.arrays()["edge_types"].tolist() for graph in read_back] == [[4, 0], [1]]

    wide = SMALL | {
        "node_labels": "0, 1\n1, 0\n0, 0\n0, 1\n1, 1\n",
        "edge_labels": "0, 5\n0, 5\n1, 5\n0, 4\n0, 4\n",
    }
    read_back, _ = read_tudataset(folder_of(tmp_path, wide, "W"))
    assert token_bags(read_back) == [[[0, 3], [1, 2]], [[0, 2], [0, 3], [1, 3]]]
    assert [graph.arrays()["edge_types"].tolist() for graph in read_back] == [[1, 2], [0]]

    mixed = labelled | {
        "node_attributes": "0.5\n1.5\n2.5\n3.5\n4.5\n",
        "edge_attributes": "1, 2\n1, 2\n3, 4\n5, 6\n5, 6\n",
    }
    read_back, _ = read_tudataset(folder_of(tmp_path, mixed, "M"))
    assert read_back[0].arrays()["node_features"].tolist() == [[0.5, 0, 1, 0, 0], [1.5, 0, 0, 0, 1]]
    assert read_back[0].arrays()["edge_features"].tolist() == [[1, 2, 0, 0, 1], [3, 4, 1, 0, 0]]


def test_graph_attributes_stand_in_for_labels(tmp_path: Path) -> None:
    parts = {name: text for name, text in SMALL.items() if name != "graph_labels"}
    read_back, targets = read_tudataset(
        folder_of(tmp_path, parts | {"graph_attributes": "0.5, 1\n2, 3\n"})
    )
    assert len(read_back) == 2
    assert targets.tolist() == [[0.5, 1], [2, 3]]


def token_bags(items: list[Graph]) -> list[list[list[int]]]:
    return [
        [item.node_tokens.bag(node) for node in range(item.num_nodes)]
        for item in items
        if item.node_tokens is not None
    ]


REFUSED: dict[str, tuple[dict[str, str | None], str]] = {
    "no indicator": ({"graph_indicator": None}, "has no DS_graph_indicator.txt"),
    "no labels": ({"graph_labels": None}, "neither DS_graph_labels.txt nor"),
    "no edges file": ({"A": None}, r"has no \*_A.txt"),
    "words": ({"A": "1, 2\n2, one\n"}, "DS_A.txt, line 2: cannot be read as numbers"),
    "blank line before": ({"A": "1, 2\n\n2, x\n"}, "DS_A.txt, line 3: cannot"),
    "floats": ({"A": "1.5, 2\n"}, "DS_A.txt, line 1"),
    "cut line": ({"A": "1, 2\n2, 1\n4"}, "DS_A.txt, line 3"),
    "huge number": ({"A": "1, 99999999999999999999\n"}, "DS_A.txt"),
    "three columns": ({"A": "1, 2, 3\n"}, "DS_A.txt: needs 2 columns, has 3"),
    "not text": ({"graph_labels": "é\n1\n"}, "DS_graph_labels.txt: is not text"),
    "edge to node 0": ({"A": "1, 2\n0, 1\n"}, r"DS_A.txt, line 2: edge \[0, 1\], but .* 1..5"),
    "edge past the end": ({"A": "1, 6\n"}, r"DS_A.txt, line 1: edge \[1, 6\]"),
    "edge across graphs": ({"A": "1, 2\n2, 3\n"}, r"line 2: edge \[2, 3\] joins two graphs"),
    "graph 0": ({"graph_indicator": "0\n1\n"}, "DS_graph_indicator.txt, line 1: graph 0"),
    "graph past the labels": (
        {"graph_indicator": "1\n1\n2\n2\n900000000000\n"},
        "line 5: graph 900000000000, but the labels make it 1..2",
    ),
    "cut indicator": ({"graph_indicator": "1\n1\n"}, "graph 2 of 2 has no nodes"),
    "empty labels": ({"graph_labels": "\n"}, "DS_graph_labels.txt: is empty"),
    "cut node labels": ({"node_labels": "1\n2\n"}, "node_labels.txt: has 2 lines for 5 nodes"),
    "cut edge labels": ({"edge_labels": "1\n2\n"}, "edge_labels.txt: has 2 lines for 5 edges"),
    "long attributes": (
        {"node_attributes": "1\n" * 6},
        "node_attributes.txt: has 6 lines for 5 nodes",
    ),
    "nan": ({"node_attributes": "1\nnan\n1\n1\n1\n"}, "node_attributes.txt, line 2: .* finite"),
    "past float32": ({"edge_attributes": "1\n1\n1\n1e99\n1\n"}, "edge_attributes.txt, line 4"),
    "label past int32": ({"node_labels": "1\n2\n3\n4\n3000000000\n"}, "node_labels.txt: labels"),
    "labels far apart": (
        {"edge_labels": "-9223372036854775808\n2\n3\n4\n9223372036854775807\n"},
        "edge_labels.txt: labels",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.filterwarnings("error")
def test_refusals_name_file_and_line(case: str, tmp_path: Path) -> None:
    changes, message = REFUSED[case]
    parts = {name: text for name, text in (SMALL | changes).items() if text is not None}
    with pytest.raises(FormatError, match=message):
        read_tudataset(folder_of(tmp_path, parts))


def test_paths_that_hold_no_dataset(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="does not exist"):
        read_tudataset(tmp_path / "none")
    text = tmp_path / "text.zip"
    text.write_text("no zip")
    with pytest.raises(FormatError, match=r"cannot read .*text.zip"):
        read_tudataset(text)
    folder = folder_of(tmp_path, SMALL)
    (folder / "B_A.txt").write_text("1, 2\n")
    with pytest.raises(FormatError, match=r"several datasets \(B, DS\)"):
        read_tudataset(folder)


@pytest.mark.parametrize("prefix", ["../../", "/", "/tmp/"])
def test_names_in_a_zip_are_no_paths(prefix: str, tmp_path: Path) -> None:
    write_tudataset(tmp_path / "DS", "DS", [PLAIN], [0])
    folder = tmp_path / "a" / "b"
    folder.mkdir(parents=True)
    with zipfile.ZipFile(folder / "evil.zip", "w") as out:
        for file in (tmp_path / "DS").iterdir():
            out.writestr(zipfile.ZipInfo(f"{prefix}{file.name}"), file.read_bytes())
    before = sorted(tmp_path.rglob("*"))
    assert read_tudataset(folder / "evil.zip")[0] == [PLAIN]
    assert sorted(tmp_path.rglob("*")) == before


def test_damaged_zips_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "DS.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out:
        for part, text in SMALL.items():
            out.writestr(f"DS/DS_{part}.txt", text)
    whole = path.read_bytes()
    for damaged in (whole[:-30], whole[:40] + b"\xff\xff\xff" + whole[43:]):
        path.write_bytes(damaged)
        with pytest.raises(FormatError, match="cannot read"):
            read_tudataset(path)


def test_absurd_sizes_are_refused_before_unpacking(tmp_path: Path) -> None:
    path = tmp_path / "bomb.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out:
        for part, text in SMALL.items():
            out.writestr(f"DS/DS_{part}.txt", text)
        out.writestr("DS/DS_node_labels.txt", "0\n" * (1 << 20))
    assert path.stat().st_size < 1 << 14
    with pytest.raises(FormatError, match="past the limit of 1,000,000; pass a larger max_bytes"):
        read_tudataset(path, max_bytes=1_000_000)
    folder = folder_of(tmp_path, SMALL)
    with pytest.raises(FormatError, match="past the limit of 20"):
        read_tudataset(folder, max_bytes=20)


def test_too_many_one_hot_columns_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("graphkin.graphs.converters.tudataset.raw_files.MAX_ONE_HOT_CELLS", 24)
    parts = SMALL | {"node_labels": "1\n2\n3\n4\n5\n", "node_attributes": "1\n" * 5}
    with pytest.raises(FormatError, match=r"node_labels.txt: has 5 values"):
        read_tudataset(folder_of(tmp_path, parts))


PLAIN = Graph(1)
UNWRITABLE: list[tuple[Any, Any, str]] = [
    ([], [], "at least one graph"),
    ([PLAIN], [1, 2], r"labels must be 1 integers.*\(2,\)"),
    ([PLAIN], [0.5], "float64"),
    ([PLAIN, Graph(1, directed=True)], [0, 1], "graph 1 has directed True"),
    ([PLAIN, Graph(1, node_features=[[1]])], [0, 1], "node_kind 'dense'"),
    ([PLAIN, Graph(1, edge_types=[])], [0, 1], "edge_kind 'types'"),
    (
        [Graph(1, node_features=[[1]]), Graph(1, node_features=[[1, 2]])],
        [0, 1],
        "graph 1 has width of node_features 2, graph 0 has 1",
    ),
    ([Graph(2, node_tokens=[[1], []])], [0], "node 1 of graph 0 has 0 tokens"),
    ([Graph(1, node_tokens=[[1, 2]])], [0], "node 0 of graph 0 has 2 tokens"),
]


@pytest.mark.parametrize(("items", "labels", "message"), UNWRITABLE)
def test_what_the_format_cannot_hold_is_refused(
    items: list[Graph], labels: Any, message: str, tmp_path: Path
) -> None:
    with pytest.raises(GraphError, match=message):
        write_tudataset(tmp_path / "out", "DS", items, labels)
    assert not (tmp_path / "out").exists()


def test_names_and_folders_that_cannot_be_written(tmp_path: Path) -> None:
    for name in ("", "../up", "a/b"):
        with pytest.raises(ConfigError, match="plain file name"):
            write_tudataset(tmp_path, name, [PLAIN], [0])
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match="cannot make"):
        write_tudataset(tmp_path / "file", "DS", [PLAIN], [0])
