"""Names as a script for Binary Ninja."""

from __future__ import annotations

from graphkin.results.document import Names
from graphkin.results.naming.python_script import python_script

HOW = "Run it in Binary Ninja: File, Run Script; bv is the view that is open."
HOST = '''\
import hashlib


def opened_hash():
    raw = bv.parent_view
    return None if raw is None else hashlib.sha256(raw.read(0, raw.length)).hexdigest()


def moved_by():
    """How far the view lies from where the file has it, in versions that can tell."""
    original = getattr(bv, "original_image_base", None)
    return 0 if original is None else bv.start - original


def function_at(address):
    return bv.get_function_at(address)


def name_of(function):
    return function.name


def is_automatic(function):
    return function.name == "sub_%x" % function.start


def rename(function, name):
    function.name = name
    return True


def reset(function):
    function.name = None


def comment_of(function):
    return function.comment


def set_comment(function, text):
    function.comment = text
'''


def binja_script(names: Names) -> str:
    """Python for the console of Binary Ninja."""
    return python_script(names, HOST, HOW)
