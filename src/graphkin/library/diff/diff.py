"""``diff``: two binaries, function by function."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from graphkin.binaries.backends.choose import Backend
from graphkin.binaries.coverage import Coverage
from graphkin.binaries.function import Skipped
from graphkin.binaries.inputs import find_target
from graphkin.library.diff.pairs import Paired, same_names
from graphkin.library.diff.rounds import SURROUNDINGS, pair
from graphkin.library.diff.side import Side, read_side
from graphkin.library.diff.verdict import Judge
from graphkin.library.models import SearchModel, search_model
from graphkin.library.processors import processor_warnings
from graphkin.results.coverage import coverage_of
from graphkin.results.document import Diff, DiffSide, FoundBy, FunctionPair, Tool
from graphkin.results.function import ref_of
from graphkin.results.text import printable

MIN_PROBABILITY = 0.1
"""Of a pair. A function has few candidates in another build of its program, and each is taken once:
of the pairs above it at least 95 of 100 were right in every direction of the validation projects.
Between programs that have nothing to do with each other, that does not hold."""


@dataclass(frozen=True, eq=False)
class DiffedFiles:
    """A diff, and what it was made from: too large for the document, needed to look closer."""

    document: Diff
    left: Side
    right: Side


def diff(
    left: str | Path,
    right: str | Path,
    model: str | Path | SearchModel = "functions",
    *,
    min_probability: float = MIN_PROBABILITY,
    by_name: bool = True,
    backend: Backend = "auto",
    on_step: Callable[[str], None] | None = None,
) -> Diff:
    """Says of every function of two binaries what became of it.

    Example::

        for pair in graphkin.diff("libssl.so.1", "libssl.so.3").pairs:
            if pair.verdict == "changed":
                print(pair.left.function, pair.right.function, pair.similarity)

    Args:
        left: the old binary.
        right: the new one.
        model: a model that ships with graphkin, or a folder.
        min_probability: functions whose best partner is less probable have none.
        by_name: functions whose name both files have once are pairs; else names do not count.
        backend: what reads the files.
        on_step: is told what happens next, for people who wait.

    Raises:
        FormatError: for a file that cannot be read.
    """
    return diff_files(
        left,
        right,
        model,
        min_probability=min_probability,
        by_name=by_name,
        backend=backend,
        on_step=on_step,
    ).document


def diff_files(
    left: str | Path,
    right: str | Path,
    model: str | Path | SearchModel = "functions",
    *,
    min_probability: float = MIN_PROBABILITY,
    by_name: bool = True,
    backend: Backend = "auto",
    on_step: Callable[[str], None] | None = None,
) -> DiffedFiles:
    """What :func:`diff` does, with the functions of both sides."""
    step = on_step or (lambda _: None)
    loaded = search_model(model)
    skipped: list[Skipped] = []
    coverages = list[Coverage](), list[Coverage]()
    old, new = (
        _read(loaded, str(name), backend, skipped, own, step)
        for name, own in zip((left, right), coverages, strict=True)
    )
    step("pairing functions")
    everything = pair(loaded, old, new, by_name=by_name)
    paired = probable(everything, old, new, min_probability)
    document = diff_document(
        loaded,
        old,
        new,
        paired,
        names=(str(left), str(right)),
        coverages=coverages,
        skipped=skipped,
        by_name=by_name,
    )
    return DiffedFiles(document, old, new)


def _read(
    model: SearchModel,
    name: str,
    backend: Backend,
    skipped: list[Skipped],
    coverages: list[Coverage],
    step: Callable[[str], None],
) -> Side:
    step(f"reading {printable(name)}")
    target = find_target(name)
    return read_side(model, target, backend=backend, skipped=skipped, coverages=coverages)


def probable(
    paired: Iterable[Paired], left: Side, right: Side, min_probability: float
) -> list[Paired]:
    """The pairs that are as probable as asked for, and those of identical code."""
    return [
        item
        for item in paired
        if item.probability >= min_probability
        or left.code[item.row].digest == right.code[item.column].digest
    ]


def diff_document(
    model: SearchModel,
    left: Side,
    right: Side,
    paired: list[Paired],
    *,
    names: tuple[str, str],
    coverages: tuple[list[Coverage], list[Coverage]] = ([], []),
    skipped: list[Skipped] = [],  # noqa: B006 (only read)
    by_name: bool = True,
) -> Diff:
    """The document of two sides whose functions are paired."""
    judge = Judge(left, right, paired)
    named = same_names(left, right) if by_name else {}
    with_partner = {item.row for item in paired}, {item.column for item in paired}
    architectures = [item.architecture for side in (left, right) for item in side.functions]
    return Diff(
        tool=Tool(version=version("graphkin")),
        model=str(model.model_id),
        left=_side(left, names[0], coverages[0]),
        right=_side(right, names[1], coverages[1]),
        is_one_kind_of_build=judge.is_one_kind,
        pairs=tuple(_pair(judge, left, right, item, named) for item in paired),
        removed=tuple(
            ref_of(item) for row, item in enumerate(left.functions) if row not in with_partner[0]
        ),
        added=tuple(
            ref_of(item) for row, item in enumerate(right.functions) if row not in with_partner[1]
        ),
        skipped=tuple(map(str, skipped)),
        warnings=processor_warnings(model, architectures),
    )


def _pair(
    judge: Judge, left: Side, right: Side, item: Paired, names: Mapping[int, int]
) -> FunctionPair:
    judged = judge.judge(item)
    found_by: FoundBy = "likeness" if item.alone >= SURROUNDINGS else "surroundings"
    if left.code[item.row].digest == right.code[item.column].digest:
        found_by = "identical code"
    elif names.get(item.row) == item.column:
        found_by = "name"
    return FunctionPair(
        left=ref_of(left.functions[item.row]),
        right=ref_of(right.functions[item.column]),
        probability=item.probability,
        found_by=found_by,
        **judged._asdict(),
    )


def _side(side: Side, name: str, coverages: list[Coverage]) -> DiffSide:
    architectures = Counter(item.architecture for item in side.functions)
    compilers = Counter(item.compiler for item in side.functions if item.compiler)
    return DiffSide(
        binary=name,
        functions=len(side),
        architecture=", ".join(name for name, _ in architectures.most_common()),
        compiler=compilers.most_common(1)[0][0] if compilers else None,
        coverage=tuple(map(coverage_of, coverages)),
    )
