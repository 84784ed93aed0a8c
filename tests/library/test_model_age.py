"""A library of an earlier model says so, and how to make one of today's."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from graphkin import Library
from graphkin.binaries import samples
from graphkin.library.indexing.index import index_paths
from graphkin.library.model_age import age_warnings
from graphkin.library.models import RANKING_FILE, SearchModel
from graphkin.library.report import search
from graphkin.models.saving import model_home
from tests.library.sample_models import search_model

KNOWN = samples.path("gcc-O2/libkinbeat.so")


@pytest.fixture
def earlier(tmp_path: Path) -> Path:
    """A model of the same name with another ranking."""
    folder = tmp_path / "functions"
    shutil.copytree(model_home("functions"), folder)
    document = json.loads((folder / RANKING_FILE).read_text())
    document["order"]["words"] += 0.1
    (folder / RANKING_FILE).write_text(json.dumps(document))
    return folder


def test_an_earlier_model(earlier: Path, tmp_path: Path) -> None:
    with Library.create(tmp_path / "old.kin", SearchModel.load(earlier)) as library:
        summary = index_paths(library, [KNOWN])
        (warning,) = age_warnings(library)
        assert "carries another model than the 'functions' that ships" in warning
        assert warning.endswith(f"graphkin index NEW.kin {KNOWN}")
        assert summary.warnings == (warning,)
    assert search(tmp_path / "old.kin", KNOWN).warnings == (warning,)


def test_the_model_of_today_and_those_of_others(tmp_path: Path) -> None:
    with Library.create(tmp_path / "new.kin") as library:
        assert age_warnings(library) == ()
    with Library.create(tmp_path / "own.kin", search_model()) as library:
        assert age_warnings(library) == ()
