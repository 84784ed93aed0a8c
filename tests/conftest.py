"""What tests of several parts share."""

from __future__ import annotations

from pathlib import Path

import pytest

from function_samples import records, write_corpus


@pytest.fixture(scope="session")
def corpus_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus of 60 functions in 4 builds; see :func:`function_samples.records`."""
    path = tmp_path_factory.mktemp("corpus") / "corpus.graphs"
    write_corpus(path, records())
    return path
