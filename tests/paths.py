"""Where tests find what they read."""

import importlib.util
from pathlib import Path
from types import ModuleType

REPOSITORY = Path(__file__).resolve().parents[1]
BINARIES = REPOSITORY / "tests" / "binaries" / "files"
"""Small binaries of several formats and processors; ``build.py`` there says how they were made."""


def load_script(path: str) -> ModuleType:
    """A script of the repository, such as ``tools/samples/build.py``, as a module."""
    spec = importlib.util.spec_from_file_location(Path(path).stem, REPOSITORY / path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
