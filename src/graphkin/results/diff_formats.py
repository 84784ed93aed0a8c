"""A diff in every form that graphkin writes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from graphkin.results.diff_table import diff_rows, diff_table
from graphkin.results.document import Diff
from graphkin.results.html.diff import diff_page
from graphkin.results.render import to_json
from graphkin.results.side_by_side import BlockRow

Comparisons = Mapping[int, Sequence[BlockRow]]
"""The blocks of changed pairs, by the number of the pair."""

DIFF_FORMATS: dict[str, Callable[[Diff, Comparisons], str]] = {
    "table": lambda diff, _: f"{diff_table(diff)}\n",
    "json": lambda diff, _: f"{to_json(diff)}\n",
    "csv": lambda diff, _: "".join(diff_rows(diff)),
    "html": diff_page,
}
"""Each gives the text of a whole file, with a line end at its end; only ``html`` shows blocks."""
