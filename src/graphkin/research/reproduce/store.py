"""Where results are kept, and all of them at once."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from graphkin.errors import FormatError, StorageError
from graphkin.research.reproduce.adapters import ADAPTERS
from graphkin.research.reproduce.results import SUBFOLDER, Result, read_document, read_result

PACKAGED = Path(__file__).parent / "stored"
"""Results as a wheel brings them."""
CHECKOUT = Path(__file__).parents[4] / "experiments" / "results"
"""Results of a source checkout."""


def stored_folder() -> Path | None:
    """The folder of results that came with graphkin, where there is one."""
    return next((folder for folder in (PACKAGED, CHECKOUT) if folder.is_dir()), None)


def read_results(folder: Path) -> list[Result]:
    """All results of a folder, by name; of files in older forms as well."""
    if not folder.is_dir():
        raise StorageError(f"{folder} is no folder of results")
    found = [read_result(path) for path in sorted((folder / SUBFOLDER).glob("*.json"))]
    for name, adapt in ADAPTERS.items():
        path = folder / name
        if path.is_file():
            found += _adapted(path, adapt(read_document(path)))
    return found


def _adapted(path: Path, results: Iterable[Result]) -> list[Result]:
    try:
        return list(results)
    except (KeyError, TypeError, IndexError) as error:
        raise FormatError(f"{path} is not as its experiment writes it: {error!r}") from error
