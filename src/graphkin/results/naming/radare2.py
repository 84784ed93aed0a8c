"""Names as a script for radare2.

A line runs at the flag of an automatic name, ``@@ fcn.00001234``: where the function has another
name by now, there is no such flag and nothing happens. Texts out of binaries keep letters, digits
and signs that mean nothing to radare2.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from graphkin.results.document import Names
from graphkin.results.naming.host_names import PLAIN_SIGNS, HostName, host_names
from graphkin.results.text import address_text, number_text

UNDO = "#undo "
HARMLESS = re.compile(r"[^A-Za-z0-9_./:=,+-]")
"""No character but these has no meaning in a command; without a space, a comment is one word."""
MOST_LETTERS = 200
"""Of a file's name in a comment."""
HEAD = f"""\
# Names for the functions of
#   {{target}}
# from
#   {{source}}
# written by graphkin {{version}}: {{count}} of them, each as probable as {{least:g}} or more.
#
# Analyse the file first (aaa), then run this:  . names.r2
# Functions that still have an automatic name, such as fcn.00001234, are renamed, no others. Their
# comment says how probable the name is and where it comes from. To take the names back, run the
# lines that begin with {UNDO.strip()}:  .!sed -n 's/^{UNDO}//p' names.r2
"""


def radare2_script(names: Names) -> str:
    """Commands of radare2."""
    entries = list(host_names(names, PLAIN_SIGNS))
    head = HEAD.format(
        target=ascii(names.target),
        source=ascii(names.source),
        version=names.tool.version,
        count=len(entries),
        least=names.min_probability,
    )
    lines = [line for entry in entries for line in _rename(entry)]
    undo = [line for entry in entries for line in _undo(entry)]
    # A flag remembers where the user was.
    undo = ["f graphkin.seek", *undo, "s graphkin.seek", "f-graphkin.seek"]
    return head + "".join(f"{line}\n" for line in (*lines, *(UNDO + line for line in undo)))


def _rename(entry: HostName) -> Iterator[str]:
    automatic = _automatic(entry)
    yield f"CC {_comment(entry)} @@ {automatic}"
    yield f"afn {entry.name} @@ {automatic}"


def _undo(entry: HostName) -> Iterator[str]:
    """The comment goes if it is the one from here; then the name."""
    yield f"s {address_text(entry.address)}"
    yield f"?== {_comment(entry)} `CC.`"
    yield "?! CC-"
    yield f"afn {_automatic(entry)} @@ {entry.name}"


def _automatic(entry: HostName) -> str:
    return f"fcn.{entry.address:08x}"


def _comment(entry: HostName) -> str:
    item = entry.item
    origin = HARMLESS.sub("_", item.origin.binary)[-MOST_LETTERS:]
    text = f"graphkin:{entry.name},p={number_text(item.probability, 3)}"
    text += f",from={origin}:{address_text(item.origin.address)}"
    if item.source_file:
        text += f",in={HARMLESS.sub('_', item.source_file)[-MOST_LETTERS:]}"
    return text
