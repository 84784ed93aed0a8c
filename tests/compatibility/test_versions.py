"""Files of earlier versions are opened and say what they said; those of later ones are refused."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, safe_open, save_file

from graphkin import GraphEmbedder, Library, search
from graphkin.binaries import samples
from graphkin.binaries.corpus import FunctionCorpus
from graphkin.errors import FormatError
from graphkin.learning.training.loop import train
from tests.compatibility.make import COURSE, HERE, TASK, facts, tiny

VERSIONS = sorted(file.parent.name for file in HERE.glob("*/expected.json"))


@pytest.fixture(params=VERSIONS)
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return Path(shutil.copytree(HERE / request.param, tmp_path / "files"))


def test_there_are_earlier_versions() -> None:
    assert "0.1" in VERSIONS


def test_corpora_models_and_libraries(folder: Path) -> None:
    expected, found = json.loads((folder / "expected.json").read_text()), facts(folder)
    np.testing.assert_allclose(found.pop("vector"), expected.pop("vector"), atol=1e-5)
    assert found == expected


def test_a_library_is_searched(folder: Path) -> None:
    asked = f"{samples.path('clang-O1/libkinproto.so')}:dns_expand_name"
    (result,) = search(folder / "library.kin", asked).results
    assert result.hits[0].function == "dns_expand_name"


def test_a_run_goes_on(folder: Path, tmp_path: Path) -> None:
    resumed, whole = tiny(), tiny()
    assert train(resumed, TASK, COURSE, folder / "run", resume=True).step == COURSE.steps
    train(whole, TASK, COURSE, tmp_path / "whole")
    for name, parameter in whole.state_dict().items():
        torch.testing.assert_close(resumed.state_dict()[name], parameter, atol=1e-6, rtol=1e-4)


def _as_json(name: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        document = json.loads((folder / name).read_text())
        document["version"] = 99
        (folder / name).write_text(json.dumps(document))

    return change


def _as_library(folder: Path) -> None:
    connection = sqlite3.connect(folder / "library.kin")
    connection.execute("PRAGMA user_version = 99")
    connection.close()


def _as_checkpoint(folder: Path) -> None:
    file = folder / "run" / "checkpoint.safetensors"
    with safe_open(file, "pt") as opened:
        metadata = dict(opened.metadata())
    save_file(load_file(file), file, metadata | {"format": "graphkin-checkpoint 99"})


@pytest.mark.parametrize(
    ("change", "read"),
    [
        (_as_json("corpus/functions.json"), lambda at: FunctionCorpus.open(at / "corpus")),
        (_as_json("corpus/manifest.json"), lambda at: FunctionCorpus.open(at / "corpus").store),
        (_as_json("model/config.json"), lambda at: GraphEmbedder.from_pretrained(at / "model")),
        (_as_library, lambda at: Library.open(at / "library.kin")),
        (_as_checkpoint, lambda at: train(tiny(), TASK, COURSE, at / "run", resume=True)),
    ],
    ids=["corpus", "store", "model", "library", "checkpoint"],
)
def test_what_is_newer_is_refused(
    folder: Path, change: Callable[[Path], None], read: Callable[[Path], object]
) -> None:
    change(folder)
    with pytest.raises(FormatError, match="graphkin") as caught:
        read(folder)
    assert "99" in str(caught.value), "it says which version"
