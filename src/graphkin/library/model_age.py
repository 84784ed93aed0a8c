"""Whether a library carries the model that ships today, and how to make one that does."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from graphkin._support.files import read_file
from graphkin.binaries.function import file_path
from graphkin.library.models import EMBEDDER, MATCHER, RANKING_FILE
from graphkin.models.saving import WEIGHTS_FILE, model_home, shipped_names

if TYPE_CHECKING:
    from graphkin.library.library import Library

COMPARED = (f"{EMBEDDER}/{WEIGHTS_FILE}", f"{MATCHER}/{WEIGHTS_FILE}", RANKING_FILE)
"""Files that decide what a search finds, and how probable that is."""
LISTED_FILES = 5
"""That the command names."""


def age_warnings(library: Library) -> tuple[str, ...]:
    """A sentence on a library whose model ships no longer in that form, with what to do."""
    name = library.model_id.name
    if name not in shipped_names() or _is_shipped(library, name):
        return ()
    warning = (
        f"the library carries another model than the {name!r} that ships with this graphkin, and "
        f"is searched with its own ({library.model_id}); to use the one of today, make a library "
        f"from the same files: graphkin index NEW.kin {_files(library)}"
    )
    return (warning,)


def _is_shipped(library: Library, name: str) -> bool:
    home, files = model_home(name), library.model_files
    return all(
        files.get(file) == (read_file(home / file) if (home / file).exists() else None)
        for file in COMPARED
    )


def _files(library: Library) -> str:
    """The binaries that the library holds, as arguments of a command."""
    paths = list(dict.fromkeys(file_path(item.binary) for item in library.engine.binaries()))
    more = len(paths) - LISTED_FILES
    listed = " ".join(map(shlex.quote, paths[:LISTED_FILES])) or "FILES"
    return listed if more <= 0 else f"{listed} and {more} more"
