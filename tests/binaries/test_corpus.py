"""Corpora of functions on disk: what goes in comes out, and damage is named."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from graphkin.binaries.corpus import (
    BinaryRecord,
    CorpusWriter,
    FunctionCorpus,
    FunctionRecord,
    library_name,
)
from graphkin.binaries.reading import read_functions
from graphkin.binaries.samples import bundled
from graphkin.binaries.targets import parse_target
from graphkin.errors import ConfigError, FormatError, StorageError
from graphkin.graphs import Graph
from graphkin.graphs.store import GraphStore
from graphkin.graphs.vocabulary import Reads, Vocabulary
from tests.function_samples import body, function, record, write_corpus

LOOP = ([("xor", "nop"), ("add", "cmp", "jne"), ("ret",)], [(0, 1), (1, 1), (1, 2)])


def test_a_function_comes_back_as_it_went_in(tmp_path: Path) -> None:
    made = record("count.isra.0", LOOP, unit="a.c", defined_in="src/a.c", address=0x4010)
    corpus = write_corpus(tmp_path / "c", [record("other", body(1)), made])
    entry = corpus.entry(1)
    assert (entry.name, entry.base_name) == ("count.isra.0", "count")
    assert (entry.address, entry.size) == (0x4010, 48)
    assert (entry.unit, entry.defined_in) == ("a.c", "src/a.c")
    assert entry.binary == BinaryRecord(
        path="/builds/gcc-O2/libx.so",
        part="",
        build="gcc-O2",
        library="libx",
        architecture="x86-64",
        format="elf",
        file_hash="ab" * 32,
        compiler="GCC: 12",
    )
    assert corpus.entries[1] == entry
    assert len(corpus) == 2


def test_graphs_are_those_of_the_functions(tmp_path: Path) -> None:
    made = [function("a", LOOP), function("b", body(1)), function("c", ([("ret",)], []))]
    corpus = write_corpus(tmp_path / "c", [FunctionRecord.of(f, f.binary) for f in made])
    for number, item in enumerate(made):
        assert corpus.store[number] == item.to_graph(corpus.words)
    assert set(corpus.words.words) == {w for f in made for b in f.blocks for w in b.mnemonics}


def test_graphs_in_the_words_of_a_model(tmp_path: Path) -> None:
    """A corpus numbers words in the order they came, which is not that of any model."""
    made = [function("a", LOOP), function("b", body(1))]
    corpus = write_corpus(tmp_path / "c", [FunctionRecord.of(f, f.binary) for f in made])
    backwards = Vocabulary(tuple(reversed(corpus.words.words))[:-1])
    for vocabulary in (corpus.words, backwards):
        for number, item in enumerate(made):
            assert corpus.graph(number, vocabulary) == item.to_graph(vocabulary)
    assert corpus.graph(0, backwards) != corpus.store[0]
    with pytest.raises(ConfigError, match="holds mnemonics of functions, and the model reads evi"):
        corpus.graph(0, replace(backwards, reads="evidence"))


def test_token_zero_stands_for_no_mnemonic(tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path / "c", [record("a", LOOP)])
    tokens = corpus.store[0].node_tokens
    assert tokens is not None
    assert tokens.ids.min() == 1
    assert [corpus.words.decode(token) for token in tokens.bag(1)] == ["add", "cmp", "jne"]


def test_a_block_without_instructions(tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path / "c", [record("a", ([("nop",), (), ("ret",)], [(0, 1)]))])
    tokens = corpus.store[0].node_tokens
    assert tokens is not None
    assert [len(tokens.bag(node)) for node in range(3)] == [1, 0, 1]
    assert len(write_corpus(tmp_path / "d", [record("a", ([()], []))]).words) == 1


def test_batches_go_on_with_words_and_binaries(tmp_path: Path) -> None:
    made = [record(f"f{i}", body(i), build=f"gcc-O{i % 3}") for i in range(9)]
    whole = write_corpus(tmp_path / "whole", made)
    writer = CorpusWriter(tmp_path / "parts")
    for start in range(0, 9, 2):
        writer.add(made[start : start + 2])
    writer.add([])
    parts = FunctionCorpus.open(tmp_path / "parts")
    assert parts.digest() == whole.digest()
    assert parts.words == whole.words
    assert parts.entries == whole.entries
    assert len(parts.binaries) == 3


def test_the_digest_tells_words_and_builds_but_no_folders(tmp_path: Path) -> None:
    def digest(name: str, text: str, file: str) -> str:
        made = function("a", ([("nop",), (text,)], [(0, 1)]), file=file)
        return write_corpus(tmp_path / name, [FunctionRecord.of(made, file)]).digest()

    first = digest("1", "ret", "/one/gcc-O2/libx.so")
    assert digest("2", "ret", "/two/gcc-O2/libx.so") == first
    # The tokens are the same numbers, but stand for something else.
    assert digest("3", "retq", "/one/gcc-O2/libx.so") != first
    assert digest("4", "ret", "/one/gcc-O3/libx.so") != first
    assert digest("5", "ret", "/one/gcc-O2/liby.so") != first


def test_nothing_is_added_when_one_graph_is_bad(tmp_path: Path) -> None:
    writer = CorpusWriter(tmp_path / "c")
    writer.add([record("good", LOOP)])
    bad = record("bad", body(2))._replace(edges=np.array([[0, 99]], dtype=np.int32))
    with pytest.raises(ValueError, match="99"):
        writer.add([record("fine", body(3)), bad])
    writer.add([record("last", body(4))])
    corpus = FunctionCorpus.open(tmp_path / "c")
    assert [entry.name for entry in corpus.entries] == ["good", "last"]
    assert corpus.store[1] == function("last", body(4)).to_graph(corpus.words)


@pytest.mark.parametrize(
    ("name", "library"),
    [
        ("libavcodec.so.59.37.100", "libavcodec"),
        ("libz.so", "libz"),
        ("libz.a", "libz"),
        ("libz.1.2.dylib", "libz"),
        ("sqlite3.exe", "sqlite3"),
        ("KERNEL32.DLL", "KERNEL32"),
        ("libz.so.1.BinExport", "libz"),
        ("busybox", "busybox"),
        ("libm-2.36.so", "libm-2.36"),
        ("libz.so.1.old", "libz.so.1.old"),
        (".so", ".so"),
    ],
)
def test_library_names(name: str, library: str) -> None:
    assert library_name(name) == library


@pytest.mark.parametrize(
    ("file", "binary", "part", "build", "library"),
    [
        ("/b/gcc-O2/libz.a", "/b/gcc-O2/libz.a(adler32.o)", "(adler32.o)", "gcc-O2", "libz"),
        ("/b/O0/libz.a", "/b/O0/libz.a(arm64)(a.o)", "(arm64)(a.o)", "O0", "libz"),
        ("/b (copy)/O2 (new)/x (1).so", "/b (copy)/O2 (new)/x (1).so", "", "O2 (new)", "x (1)"),
        ("/b/O1/../O2/libz.so", "/b/O1/../O2/libz.so", "", "O2", "libz"),
    ],
)
def test_where_a_function_lies(file: str, binary: str, part: str, build: str, library: str) -> None:
    actual = BinaryRecord.of(function("f", LOOP, file=file, binary=binary), Path(file))
    assert (actual.part, actual.build, actual.library) == (part, build, library)


def test_a_relative_path_names_the_folder_it_is_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gcc-O2" / "inner").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "gcc-O2")
    assert BinaryRecord.of(function("f", LOOP), "libz.so").build == "gcc-O2"
    monkeypatch.chdir(tmp_path / "gcc-O2" / "inner")
    assert BinaryRecord.of(function("f", LOOP), "../libz.so").build == "gcc-O2"


def test_an_existing_folder_is_not_overwritten(tmp_path: Path) -> None:
    write_corpus(tmp_path / "c", [record("a", LOOP)])
    with pytest.raises(StorageError, match="exists"):
        CorpusWriter(tmp_path / "c")
    assert len(FunctionCorpus.open(tmp_path / "c")) == 1


# --- Damage -------------------------------------------------------------------------------


def test_a_folder_that_is_no_corpus(tmp_path: Path) -> None:
    GraphStore.create(tmp_path / "store").append([Graph(2, [(0, 1)])])
    for path in (tmp_path / "store", tmp_path, tmp_path / "absent"):
        with pytest.raises(FormatError, match=r"not a corpus of functions.*graphkin extract"):
            FunctionCorpus.open(path)


@pytest.fixture
def document(tmp_path: Path) -> Path:
    """The file functions.json of a corpus."""
    write_corpus(tmp_path / "c", [record("a", LOOP)])
    return tmp_path / "c" / "functions.json"


@pytest.mark.parametrize("text", ["", "{", "[]", "17", "null", '"x"', "[" * 5000, "{}"])
def test_a_document_that_is_none(document: Path, text: str) -> None:
    document.write_text(text)
    with pytest.raises(FormatError, match=r"functions\.json"):
        FunctionCorpus.open(document.parent)


@pytest.mark.parametrize(
    "change",
    [
        {"version": 2},
        {"format": "graphkin graph store"},
        {"words": ["nop"]},
        {"words": None},
        {"binaries": []},
        {"binaries": [{"path": 3}]},
        {"digest": "0" * 64},
        {"digest": None},
    ],
    ids=str,
)
def test_a_changed_document(document: Path, change: dict[str, object]) -> None:
    values = json.loads(document.read_text())
    document.write_text(json.dumps(values | change))
    with pytest.raises(FormatError, match=r"functions\.json"):
        FunctionCorpus.open(document.parent)


def test_a_graph_without_a_record(document: Path) -> None:
    store = GraphStore.open(document.parent)
    extra = Graph(1, directed=True, node_tokens=[[1]])
    store.append([extra] * 3, metadata=[{"binary": 7}, {}, {"binary": 0, "colour": "red"}])
    corpus = FunctionCorpus.open(document.parent)
    assert corpus.entry(0).name == "a"
    for number in (1, 2, 3):
        with pytest.raises(FormatError, match=f"graph {number} has no record"):
            corpus.entry(number)
    with pytest.raises(FormatError, match="graph 1 has no record"):
        _ = corpus.entries


def test_a_record_is_small_to_send() -> None:
    """Each word once: the instructions are numbers."""
    many = function("f", ([("vpblendvb",) * 1000] * 20, []))
    assert len(pickle.dumps(FunctionRecord.of(many, many.binary))) < 100_000
    assert FunctionRecord.of(many, many.binary).words == ("vpblendvb",)


@pytest.mark.parametrize("features", ["mnemonics", "evidence"])
def test_a_record_arrives_as_it_was_sent(features: Reads) -> None:
    sample = bundled.ELF / "gcc-O2/libkinbeat.so"
    for made in read_functions(parse_target(str(sample)), with_evidence=True):
        sent = FunctionRecord.of(made, sample, features=features)
        received = pickle.loads(pickle.dumps(sent))
        for ours, theirs in zip(_parts(sent), _parts(received), strict=True):
            if isinstance(ours, np.ndarray):
                assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
                np.testing.assert_array_equal(ours, theirs)
            else:
                assert ours == theirs


def _parts(record: FunctionRecord) -> list[object]:
    """The fields of a record, and the arrays of what it says."""
    said = () if record.said is None else (record.said.hashes, record.said.offsets)
    return [*record._replace(said=None), *said]


def test_metadata_that_are_not_known_are_left_out(tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path / "c", [record("a", LOOP)])
    assert set(corpus.store.metadata(0)) == {"binary", "address", "size"}
    assert corpus.entry(0).unit is None
    assert Vocabulary.from_json(corpus.words.to_json()) == corpus.words
    assert replace(corpus.entry(0), name="x.part.1").base_name == "x"


def test_one_changed_byte_of_any_file_is_noticed(tmp_path: Path) -> None:
    write_corpus(tmp_path / "c", [record("a", LOOP), record("b", body(1))])
    for name in ("words.u32", "index.i64", "texts.jsonl"):
        file = tmp_path / "c" / name
        content = file.read_bytes()
        for position in range(0, len(content), 3):
            damaged = bytearray(content)
            damaged[position] ^= 1 << position % 8
            file.write_bytes(damaged)
            with pytest.raises(FormatError, match=f"{name} is damaged"):
                FunctionCorpus.open(tmp_path / "c")
        file.write_bytes(content)


def test_tokens_beyond_the_words_are_damage(document: Path) -> None:
    """Whoever made the corpus could make its checksums as well."""
    store = GraphStore.open(document.parent)
    store.append([Graph(1, directed=True, node_tokens=[[10**6]])], metadata=[{"binary": 0}])
    corpus = FunctionCorpus.open(document.parent)
    for opened in (corpus.store, pickle.loads(pickle.dumps(corpus.store))):
        assert opened[0].num_nodes
        with pytest.raises(FormatError, match=r"words\.u32 is damaged: graph 1: token 1000000"):
            opened[1]


@pytest.mark.parametrize(
    "metadata",
    [
        {"address": "0", "size": 1},
        {"address": -1, "size": 1},
        {"address": 2**64, "size": 1},
        {"address": 0, "size": None},
        {"address": 0, "size": 1, "unit": 5},
        {"address": 0, "size": 1, "callees": ["x"]},
        {"address": 0, "size": 1, "callees": 5},
    ],
    ids=str,
)
def test_records_of_the_wrong_kind(document: Path, metadata: dict[str, object]) -> None:
    store = GraphStore.open(document.parent)
    extra = Graph(1, directed=True, node_tokens=[[1]])
    store.append([extra], metadata=[{"binary": 0, **metadata}])
    with pytest.raises(FormatError, match="graph 1 has no record"):
        FunctionCorpus.open(document.parent).entry(1)
