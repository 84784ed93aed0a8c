"""Copies a library into another, of the same engine or of a different one."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

from graphkin._support.progress import Progress
from graphkin.errors import ConfigError
from graphkin.library.engines.base import Engine
from graphkin.library.models import read_model_id
from graphkin.library.records import Row, Stored

if TYPE_CHECKING:
    from graphkin._support.progress import Progress

ROWS_AT_ONCE = 1_000


def copy(source: Engine, target: Engine, progress: Progress | None = None) -> int:
    """Adds to ``target`` what it lacks of ``source``, and returns how many rows that were.

    A copy that was interrupted goes on where it ended when it is started again: what is there is
    skipped. Files count as finished in the target once all of their rows are there.

    Args:
        source: only read.
        target: made for the same model; it keeps what else it holds.
        progress: called as ``progress(done, total)``, in rows of the source.

    Raises:
        ConfigError: the libraries are of different models.
    """
    _check_same_model(source, target)
    # Asked for before the rows: a file that becomes finished meanwhile may have rows that the
    # scan has passed already.
    finished = source.finished_files()
    total = source.count()
    copied = done = 0
    rows = source.scan()
    while page := list(islice(rows, ROWS_AT_ONCE)):
        copied += target.add(list(_lacking(source, target, page)))
        done += len(page)
        if progress is not None:
            progress(done, max(done, total))
    for file_hash in source.call_graph_files():
        if (call_graph := source.call_graph(file_hash)) is not None:
            target.keep_call_graphs({file_hash: call_graph.to_bytes()})
    target.finish_files(sorted(finished - target.finished_files()))
    return copied


def _lacking(source: Engine, target: Engine, page: list[Stored]) -> Iterator[Row]:
    """Those rows of a page that the target does not have."""
    keys = [stored.entry.key(stored.graph_hash) for stored in page]
    known = target.known(keys)
    new = [(key, stored) for key, stored in zip(keys, page, strict=True) if key not in known]
    ids = [stored.id for _, stored in new]
    content = source.graphs(ids), source.vectors(ids), source.signals(ids), source.words(ids)
    for (key, stored), *own in zip(new, *content, strict=True):
        yield Row(key, stored.entry, stored.graph_hash, *own)


def _check_same_model(source: Engine, target: Engine) -> None:
    if source.space != target.space:
        raise ConfigError(
            f"the libraries are of different models: one holds {source.space}, the other "
            f"{target.space}; index the files again for the other model"
        )
    theirs, ours = (read_model_id(engine.documents()) for engine in (source, target))
    if theirs.weights != ours.weights:
        raise ConfigError(
            f"the libraries are of different models, {theirs} and {ours}; index the files again "
            "for the other model"
        )
