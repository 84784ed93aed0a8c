"""Names as a script for IDA."""

from __future__ import annotations

from graphkin.results.document import Names
from graphkin.results.naming.host_names import SIGNS
from graphkin.results.naming.python_script import python_script

HOW = 'Run it in IDA: File, Script file; or headless: idat -A -S"names.py" FILE.'
HOST = '''\
import binascii

import ida_bytes
import ida_funcs
import ida_name
import ida_nalt


def opened_hash():
    digest = ida_nalt.retrieve_input_file_sha256()
    return None if not digest else binascii.hexlify(digest).decode("ascii")


def moved_by():
    """IDA leaves files at their own addresses; after a rebase, set SHIFT."""
    return 0


def function_at(address):
    function = ida_funcs.get_func(address)
    return function if function is not None and function.start_ea == address else None


def name_of(function):
    return ida_name.get_name(function.start_ea)


def is_automatic(function):
    return not ida_bytes.has_name(ida_bytes.get_flags(function.start_ea))


def rename(function, name):
    return ida_name.set_name(function.start_ea, name, ida_name.SN_NOWARN | ida_name.SN_NOCHECK)


def reset(function):
    ida_name.set_name(function.start_ea, "", ida_name.SN_NOWARN)


def comment_of(function):
    return ida_funcs.get_func_cmt(function, False)


def set_comment(function, text):
    ida_funcs.set_func_cmt(function, text, False)
'''


def ida_script(names: Names) -> str:
    """IDAPython."""
    return python_script(names, HOST, HOW, signs=SIGNS.replace(".", ""))
