"""A diff in every form that graphkin writes."""

from __future__ import annotations

from collections.abc import Callable

from graphkin.results.diff_table import diff_rows, diff_table
from graphkin.results.document import Diff
from graphkin.results.render import to_json

DIFF_FORMATS: dict[str, Callable[[Diff], str]] = {
    "table": lambda diff: f"{diff_table(diff)}\n",
    "json": lambda diff: f"{to_json(diff)}\n",
    "csv": lambda diff: "".join(diff_rows(diff)),
}
"""Each gives the text of a whole file, with a line end at its end."""
