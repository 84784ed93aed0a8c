"""A library of samples, and servers over copies of it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from graphkin import Library
from graphkin.binaries import samples
from graphkin.library.indexing.index import index_paths
from graphkin.library.models import SearchModel
from graphkin.web.app import create_app
from graphkin.web.server import Options

HERE = "http://localhost"
INDEXED = ("gcc-O2/libkinbeat.so", "gcc-O2/libkinproto.so")

Serve = Callable[..., TestClient]


@pytest.fixture(scope="session")
def sample_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two of the sample files, the vulnerable one tagged."""
    return create_library(tmp_path_factory.mktemp("library"), INDEXED, "functions")


@pytest.fixture(scope="session")
def mnemonics_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The vulnerable file, in a library whose matcher attends in every propagation step."""
    return create_library(tmp_path_factory.mktemp("mnemonics"), INDEXED[:1], "mnemonics")


def create_library(folder: Path, names: Sequence[str], model: str | SearchModel) -> Path:
    path = folder / "samples.kin"
    with Library.create(path, model) as opened:
        for name in names:
            file = samples.path(name)
            index_paths(opened, [file], tags=samples.tags(file))
    return path


@pytest.fixture
def library(sample_library: Path, tmp_path: Path) -> Path:
    """A copy of it to change."""
    return Path(shutil.copy(sample_library, tmp_path / "samples.kin"))


@pytest.fixture
def serve(library: Path) -> Iterator[Serve]:
    """Starts servers in this process; options are those of :class:`Options`."""
    with ExitStack() as stack:

        def start(**options: Any) -> TestClient:
            opened = stack.enter_context(Library.open(library))
            app = create_app(opened, Options(str(library), **options))
            client = TestClient(app, base_url=HERE, raise_server_exceptions=False)
            return stack.enter_context(client)

        yield start


@pytest.fixture
def client(serve: Serve) -> TestClient:
    return serve()
