"""A library of an earlier model says so, and how to make one of today's."""

from __future__ import annotations

from pathlib import Path

from graphkin import Library
from graphkin.binaries import samples
from graphkin.library.indexing.index import index_paths
from graphkin.library.model_age import age_warnings
from graphkin.library.report import search
from tests.library.sample_models import earlier_model, search_model

KNOWN = samples.path("gcc-O2/libkinbeat.so")


def test_an_earlier_model(tmp_path: Path) -> None:
    with Library.create(tmp_path / "old.kin", earlier_model(tmp_path)) as library:
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
