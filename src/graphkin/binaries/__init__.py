"""From executables to control-flow graphs: one record for each function of a binary."""

from graphkin.binaries.backends.base import FunctionSource, ListSource
from graphkin.binaries.function import Block, Function, Skipped

__all__ = ["Block", "Function", "FunctionSource", "ListSource", "Skipped"]
