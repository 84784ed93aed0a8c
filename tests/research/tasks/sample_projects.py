"""The bundled libraries as a corpus of projects, each in six configurations."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from graphkin.binaries import samples
from graphkin.binaries.extraction import extract


def write_projects(corpus: Path, names: Mapping[str, str] | None = None) -> None:
    """Extracts the samples, laid out as ``PROJECT/CONFIGURATION.so``.

    Args:
        corpus: the new corpus.
        names: other names for projects, which are called like their libraries.
    """
    files = corpus.with_name(f"{corpus.name}-files")
    for build in samples.BUILDS:
        for library in samples.LIBRARIES:
            project = library.removesuffix(".so")
            folder = files / (names or {}).get(project, project)
            folder.mkdir(parents=True, exist_ok=True)
            shutil.copy(samples.ELF / build / library, folder / f"x86_64-{build}.so")
    extract([files], corpus, features="evidence")
