"""Names in every form that graphkin writes."""

from __future__ import annotations

from collections.abc import Callable

from graphkin.results.columns import WIDTH, Column, table_lines
from graphkin.results.document import Names
from graphkin.results.naming.binja import binja_script
from graphkin.results.naming.csv_names import csv_names
from graphkin.results.naming.ghidra import ghidra_script
from graphkin.results.naming.ida import ida_script
from graphkin.results.naming.radare2 import radare2_script
from graphkin.results.render import to_json
from graphkin.results.text import address_text, number_text, plural


def names_table(names: Names, *, width: int = WIDTH) -> str:
    """A line for each name, and how many there are."""
    items = names.names
    columns = [
        Column("prob.", [number_text(item.probability, 3) for item in items], right=True),
        Column("address", [address_text(item.target.address) for item in items], right=True),
        Column("name", [item.demangled or item.name for item in items], share=3),
        Column("origin", [address_text(item.origin.address) for item in items], right=True),
        Column("source file", [item.source_file or "" for item in items], share=1),
    ]
    unnamed = names.functions - names.named_before
    summary = (
        f"{plural(len(items), 'name')} for {plural(unnamed, 'function')} without one; "
        f"{names.named_before:,} have names already"
    )
    return "\n".join([*(table_lines(columns, width) if items else ()), summary])


NAME_FORMATS: dict[str, Callable[[Names], str]] = {
    "table": lambda names: f"{names_table(names)}\n",
    "ghidra": ghidra_script,
    "ida": ida_script,
    "binja": binja_script,
    "radare2": radare2_script,
    "csv": lambda names: "".join(csv_names(names)),
    "json": lambda names: f"{to_json(names)}\n",
}
"""Each gives the text of a whole file, with a line end at its end."""
