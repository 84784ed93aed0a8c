"""Scripts in Python: what those for Ghidra, IDA and Binary Ninja have in common.

All of them are Python 2 as well, which Ghidra's Jython speaks. Texts out of binaries are in them
as literals of ASCII only.
"""

from __future__ import annotations

from graphkin.results.document import Names
from graphkin.results.naming.host_names import SIGNS, comment, host_names

HEAD = """\
# Names for the functions of
#   {target}
# from
#   {source}
# written by graphkin {version}: {count}, each as probable as {least:g} or more.
#
# {how}
# Functions that still have an automatic name are renamed, no others. A line of their comment says
# how probable the name is and where it comes from. To take the names back, set UNDO to True and run
# this again: functions that still have the name given here get their automatic name again.
{tags}
UNDO = False
SHIFT = None
\"\"\"What to add to each address; None to ask the program how far it was moved.\"\"\"
SHA256 = {file_hash}
\"\"\"Of the file that the names are for; None to name the functions of whatever file is open.\"\"\"
NAMES = [
"""
COMMON = '''\
]
"""Address, name and comment."""
MARK = "graphkin: "
"""What the line of a comment begins with."""


def commented(old, line):
    """A comment with one line of this script, or with none; other lines stay as they are."""
    lines = [own for own in (old or "").split("\\n") if own and not own.startswith(MARK)]
    return "\\n".join(lines + ([line] if line else []))

'''
MAIN = """\
def main():
    opened = opened_hash()
    if SHA256 is not None and opened is not None and opened != SHA256:
        print("graphkin: another file is open: its SHA-256 is %s, not %s" % (opened, SHA256))
        print("graphkin: set SHA256 to None to name its functions all the same")
        return
    shift = moved_by() if SHIFT is None else SHIFT
    done, absent, others = 0, 0, 0
    for address, name, line in NAMES:
        function = function_at(address + shift)
        if function is None:
            absent += 1
        elif UNDO and name_of(function) == name:
            reset(function)
            set_comment(function, commented(comment_of(function), None))
            done += 1
        elif not UNDO and is_automatic(function) and rename(function, name):
            set_comment(function, commented(comment_of(function), line))
            done += 1
        else:
            others += 1
    print("graphkin: %d functions %s, %d have other names, %d are not functions here"
          % (done, "reset" if UNDO else "named", others, absent))


main()
"""


def python_script(names: Names, host: str, how: str, tags: str = "", signs: str = SIGNS) -> str:
    """A script for a host.

    Args:
        names: what to name.
        host: the functions that talk to the host: ``opened_hash``, ``moved_by``, ``function_at``,
            ``name_of``, ``is_automatic``, ``rename``, which says whether it could, ``reset``,
            ``comment_of``, ``set_comment``.
        how: how to run it, a sentence.
        tags: lines of comments that the host reads.
        signs: what names may hold beside letters and digits.
    """
    entries = [
        f"    (0x{item.address:x}, {item.name!a}, {comment(item.item)!a}),\n"
        for item in host_names(names, signs)
    ]
    head = HEAD.format(
        target=ascii(names.target),
        source=ascii(names.source),
        version=names.tool.version,
        count=f"{len(entries)} of them",
        least=names.min_probability,
        how=how,
        tags=f"{tags}\n" if tags else "",
        file_hash=ascii(names.file_hash),
    )
    return "".join((head, *entries, COMMON, "\n\n", host, "\n\n", MAIN))
