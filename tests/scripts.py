"""Scripts of the repository that are in no package."""

from __future__ import annotations

import importlib.util
import sys
from functools import cache
from types import ModuleType

from tests.paths import REPOSITORY


@cache
def script(path: str) -> ModuleType:
    """A script, by its path in the repository, as a module."""
    file = REPOSITORY / path
    name = path.removesuffix(".py").replace("/", "_")
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look for their module there
    spec.loader.exec_module(module)
    return module
