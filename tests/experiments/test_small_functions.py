"""Small functions: only those that say little count, each with its answer and without."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from graphkin.research.tasks.projects import ProjectTask
from tests.library.sample_models import ranking_model
from tests.paths import REPOSITORY
from tests.research.tasks.sample_projects import write_projects
from tests.scripts import script

SMALL = 12
"""The samples have no functions that are as small as those that are meant."""
ASKED, OTHERS = ("libkinbeat", "libkinproto"), ("libkinparse", "libkinmedia")


def test_best_hits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(REPOSITORY / "experiments"))
    small = script("experiments/small_functions.py")
    monkeypatch.setattr(small, "ASKED", ("levels",))
    monkeypatch.setattr(small, "DIRECTIONS", {"levels": ("x86_64-gcc-O0", "x86_64-clang-O1")})
    monkeypatch.setattr(small, "is_small", lambda query, blocks: blocks < SMALL)
    write_projects(tmp_path / "corpus")
    task = replace(ProjectTask(str(tmp_path / "corpus")), min_nodes=1)
    rows = small.best_hits(small.Searches(task, ranking_model(), ASKED, others=OTHERS))
    assert rows, "the samples have such functions"
    for blocks, hits in rows:
        assert blocks < SMALL
        assert len(hits) % 2 == 0, "with the answer and without"
        assert sum(right for _, right in hits) <= len(hits) / 2
        assert all(0 <= probability <= 1 for probability, _ in hits)
