"""Libraries are copied between engines, with the same results, and go on after an interruption."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from graphkin.errors import ConfigError
from graphkin.library import copying
from graphkin.library.copying import copy
from graphkin.library.engines.base import Engine, Space
from graphkin.library.engines.sqlite.engine import SqliteEngine
from graphkin.library.records import Filter, Row
from tests.library.engines.contract import SPACES, sample_rows, sample_vectors
from tests.library.engines.milvus.libraries import Factory
from tests.library.engines.milvus.server import milvus_address
from tests.library.sample_models import search_model

FINISHED = {("aa" * 32, "settings"), ("bb" * 32, "settings"), ("bb" * 32, "others")}


class Power(Exception):
    """Went out."""


class FailingEngine(SqliteEngine):
    """Takes so many rows, and no more."""

    left = 120

    def add(self, rows: Sequence[Row]) -> int:
        if self.left < len(rows):
            raise Power
        self.left -= len(rows)
        return super().add(rows)


def files_of(space: Space, seed: int = 0) -> dict[str, bytes]:
    """The files of some model; only its id counts."""
    return dict(search_model(space.metric, seed=seed, matcher=False).files)


def proper_rows(space: Space) -> list[Row]:
    """Rows with the keys that libraries give them."""
    rows = sample_rows(space, 150)
    return [row._replace(key=row.entry.key(row.graph_hash)) for row in rows]


def filled(path: Path, space: Space = SPACES[0], count: int = 150) -> SqliteEngine:
    engine = SqliteEngine.create(path, space, files_of(space))
    engine.add(proper_rows(space)[:count])
    engine.finish_files(FINISHED)
    return engine


def assert_same(one: Engine, other: Engine) -> None:
    """Same rows, whatever their ids, and the same answers."""
    contents = []
    for engine in (one, other):
        stored = list(engine.scan())
        ids = [item.id for item in stored]
        content = engine.vectors(ids), engine.words(ids)
        rows = zip(stored, engine.graphs(ids), engine.signals(ids), *content, strict=True)
        contents.append(
            sorted((repr(item.entry), item.graph_hash, graph.digest(), signals,
                    *(array.tobytes() for array in arrays))
                   for item, graph, signals, *arrays in rows)
        )  # fmt: skip
        assert any(own for *_, own in contents[-1])
    assert contents[0] == contents[1]
    assert one.finished_files() == other.finished_files()
    queries = sample_vectors(one.space, 10, np.random.default_rng(1))
    for where in (None, Filter(architecture="arm*", min_blocks=3), Filter(tags={"cve": "*"})):
        nearest = [engine.nearest(queries, 20, where).distances for engine in (one, other)]
        np.testing.assert_allclose(*nearest, rtol=1e-4, atol=1e-5)


@pytest.fixture(scope="module")
def factory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Factory]:
    factory = Factory(milvus_address(), tmp_path_factory.mktemp("graphs"))
    yield factory
    factory.drop()


@pytest.mark.parametrize("space", SPACES, ids=lambda space: space.metric)
def test_to_milvus_and_back(factory: Factory, tmp_path: Path, space: Space) -> None:
    with (
        filled(tmp_path / "from.kin", space) as source,
        factory.create(space, files_of(space)) as milvus,
        SqliteEngine.create(tmp_path / "to.kin", space, files_of(space)) as target,
    ):
        total = source.count()
        assert copy(source, milvus) == total
        assert_same(source, milvus)
        assert copy(source, milvus) == 0
        assert copy(milvus, target) == total
        assert_same(source, target)


def test_an_interrupted_copy_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copying, "ROWS_AT_ONCE", 50)
    with filled(tmp_path / "from.kin") as source:
        target = FailingEngine.create(tmp_path / "to.kin", SPACES[0], files_of(SPACES[0]))
        with target, pytest.raises(Power):
            copy(source, target)
        with SqliteEngine.open(tmp_path / "to.kin") as target:
            assert target.count() == 100
            assert target.finished_files() == set(), "some of their rows are missing"
            assert copy(source, target) == source.count() - 100
            assert_same(source, target)


def test_what_the_target_holds_already_stays(tmp_path: Path) -> None:
    with (
        filled(tmp_path / "from.kin", count=100) as source,
        filled(tmp_path / "to.kin") as target,
    ):
        target.remove(Filter(architecture="arm*"))
        before = {stored.id for stored in target.scan()}
        lacking = source.count(Filter(architecture="arm*"))
        assert copy(source, target) == lacking > 0
        assert before < {stored.id for stored in target.scan()}
        assert target.count() == len(before) + lacking
        assert target.finished_files() == FINISHED


def test_progress_counts_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copying, "ROWS_AT_ONCE", 40)
    told: list[tuple[int, int]] = []
    with (
        filled(tmp_path / "from.kin", count=100) as source,
        SqliteEngine.create(tmp_path / "to.kin", SPACES[0], files_of(SPACES[0])) as target,
    ):
        copy(source, target, lambda done, total: told.append((done, total)))
        total = source.count()
    assert told == [(40, total), (80, total), (total, total)]


def test_libraries_of_different_models_are_not_mixed(tmp_path: Path) -> None:
    files = files_of(SPACES[0])
    with filled(tmp_path / "from.kin") as source:
        for space, documents, message in (
            (SPACES[1], files, "different models: one holds Space"),
            (Space("hamming", 128), files, "different models: one holds Space"),
            (SPACES[0], files_of(SPACES[0], seed=1), r"different models, test-0 .* and test-1"),
        ):
            path = tmp_path / f"{len(list(tmp_path.iterdir()))}.kin"
            with SqliteEngine.create(path, space, documents) as target:
                with pytest.raises(ConfigError, match=message):
                    copy(source, target)
                assert target.count() == 0


def test_what_does_not_change_a_code_is_the_same_model(tmp_path: Path) -> None:
    files = files_of(SPACES[0])
    config = json.loads(files["embedder/config.json"])
    config["calibration"] = {"weights": [1.0], "bias": 0.5}
    calibrated = {**files, "embedder/config.json": json.dumps(config).encode()}
    names = ("embedder/config.json", "embedder/model.safetensors")
    digests = b"".join(hashlib.sha256(files[name]).digest() for name in names)
    values = {**json.loads(files["pin.json"]), "weights": hashlib.sha256(digests).hexdigest()}
    first = {**files, "pin.json": json.dumps(values).encode()}
    with_matcher = dict(search_model().files)
    with filled(tmp_path / "from.kin") as source:
        for name, documents in (
            ("calibrated since", calibrated),
            ("an id of the first libraries", first),
            ("with a matcher", with_matcher),
        ):
            with SqliteEngine.create(tmp_path / name, SPACES[0], documents) as target:
                assert copy(source, target) == source.count()
