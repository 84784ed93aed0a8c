"""Names as a script for Ghidra."""

from __future__ import annotations

from graphkin.results.document import Names
from graphkin.results.naming.python_script import python_script

HOW = "Run it in Ghidra's Script Manager, or headless: analyzeHeadless ... -postScript names.py."
TAGS = "#@category graphkin"
HOST = '''\
from ghidra.program.model.symbol import SourceType


def opened_hash():
    return currentProgram.getExecutableSHA256()


def moved_by():
    """Ghidra moves programs that may lie anywhere, and keeps where the file has them."""
    options = currentProgram.getOptions("Program Information")
    original = options.getString("ELF Original Image Base", None)
    if original is None:
        return 0
    return currentProgram.getImageBase().getOffset() - int(str(original), 16)


def function_at(address):
    return getFunctionAt(toAddr(hex(address).rstrip("L")))


def name_of(function):
    return function.getName()


def is_automatic(function):
    return function.getSymbol().getSource() == SourceType.DEFAULT


def rename(function, name):
    function.setName(name, SourceType.ANALYSIS)
    return True


def reset(function):
    function.setName(None, SourceType.DEFAULT)


def comment_of(function):
    return function.getComment()


def set_comment(function, text):
    function.setComment(text or None)
'''


def ghidra_script(names: Names) -> str:
    """Python that Ghidra runs, as Jython or in PyGhidra."""
    return python_script(names, HOST, HOW, TAGS)
