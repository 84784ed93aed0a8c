"""Stages of a search that are left out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from graphkin import Library, scan
from graphkin.binaries import samples
from graphkin.errors import ConfigError
from graphkin.library import cascade, whole_files
from graphkin.library.indexing.index import index_paths
from graphkin.library.records import STAGES, SearchOptions
from tests.command_line import Graphkin

FIRMWARE = samples.path("gateway")


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("library") / "library.kin"
    with Library.create(path) as library:
        index_paths(library, [samples.path("gcc-O2/libkinbeat.so")])
    return path


@pytest.fixture
def library(path: Path) -> Iterator[Library]:
    with Library.open(path) as library:
        yield library


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_that_is_left_out_is_not_asked(
    stage: str, library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def watch(owner: Any, name: str, what: str) -> None:
        original = getattr(owner, name)

        def watched(*args: Any, **options: Any) -> Any:
            asked.append(what)
            return original(*args, **options)

        monkeypatch.setattr(owner, name, watched)

    watch(library.engine, "sharing", "words")
    watch(library.engine, "beside", "neighbours")
    watch(cascade, "_probable", "ranking")
    watch(whole_files, "in_context", "context")
    everything = list(scan(library, FIRMWARE, min_probability=0))
    assert set(asked) == STAGES.keys()
    asked.clear()
    results = list(scan(library, FIRMWARE, min_probability=0, without=[stage]))
    assert stage not in asked
    others = STAGES.keys() - {stage}
    assert set(asked) == (set() if stage == "ranking" else others)
    assert len(results) == len(everything)
    named = {result.query.address: result.hits[0].function for result in results if result.hits}
    assert named[0x4024D0] == samples.VULNERABLE[1]


def test_unknown_stages_are_refused(path: Path, run: Graphkin) -> None:
    with pytest.raises(ConfigError, match="no stage 'codes' to leave out; choose among words"):
        SearchOptions(without=frozenset(["codes"]))
    result = run("scan", path, FIRMWARE, "--without", "codes")
    assert result.code == ConfigError.exit_code
    assert "choose among words, neighbours, ranking, context" in result.err


def test_a_report_says_what_was_left_out(path: Path, run: Graphkin) -> None:
    result = run("scan", path, FIRMWARE, "--without", "words", "--without", "context", "--json")
    assert json.loads(result.out)["options"]["without"] == ["context", "words"]
