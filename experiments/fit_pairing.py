"""Fits how the functions of two binaries are paired, on projects that no model saw.

    python experiments/fit_pairing.py FOLDER... --projects NAME,NAME,... [--keep] [-o pairing.json]

A folder holds ``PROJECT/CONFIGURATION.so``, unstripped: the names say which functions are the same.
The projects must be left out of the training of the model. With ``--keep`` the rounds of the model
that know nothing of inlining and order stay as they are, and only those that do are fitted.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from project_search import DIRECTIONS

from graphkin._support.files import write_atomically
from graphkin.binaries.function import is_unnamed
from graphkin.binaries.targets import parse_target
from graphkin.library.diff.context import context_features
from graphkin.library.diff.inlining import Inlining
from graphkin.library.diff.order import order_features
from graphkin.library.diff.pairs import Pairs, likely_pairs, own_features, with_related
from graphkin.library.diff.rounds import competing_features, round_probabilities
from graphkin.library.diff.side import Side, read_side
from graphkin.library.models import PAIRING_FILE, SearchModel
from graphkin.library.pairing import Features, Floats, Pairing, Round, names_of
from graphkin.models.calibration import Logistic
from graphkin.models.saving import SHIPPED

ROUNDS = 3
"""Without inlining and order."""
LATE_ROUNDS = 1
DROPPED = 0.25
"""Share of the functions that every other example lacks, on each side."""
FURTHER = {
    "levels": ("x86_64-gcc-O0", "x86_64-gcc-O2"),
    "levels and processors": ("x86_64-clang-O3", "aarch64-gcc-O2"),
    "32 bits": ("i386-gcc-O2", "mipsel-gcc-O2"),
    "compilers and widths": ("x86_64-clang-O1", "i386-gcc-O2"),
    "compilers and levels": ("x86_64-gcc-O2", "x86_64-clang-O3"),
}
"""Directions of projects that were built in few configurations."""


class Example(NamedTuple):
    """Two builds of a project, and which of their pairs are right."""

    pairs: Pairs
    features: dict[str, Floats]
    is_right: NDArray[np.bool_]
    is_known: NDArray[np.bool_]
    """Whether names tell."""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--projects", required=True, help="with commas")
    parser.add_argument("--model", default="functions")
    parser.add_argument("-o", "--output", type=Path, default=SHIPPED / "functions" / PAIRING_FILE)
    parser.add_argument("--keep", action="store_true", help="fit the last rounds alone")
    options = parser.parse_args()
    shipped = SearchModel.load(options.model)
    model = shipped if options.keep else replace(shipped, pairing=None)
    projects = options.projects.split(",")
    examples = [
        example
        for project in projects
        for folder in options.folders
        if (folder / project).is_dir()
        for example in examples_of(model, folder / project)
    ]
    fitted_on: dict[str, Any] = {"projects": projects, "examples": len(examples)}
    assert model.ranking is not None, "sides were made by it"
    kept: tuple[Round, ...] = ()
    order = model.ranking.order
    if options.keep:
        assert shipped.pairing is not None, "there are rounds to keep"
        kept = tuple(own for own in shipped.pairing.rounds if not own.is_late)
        fitted_on["first_rounds"] = shipped.pairing.fitted_on.get(
            "first_rounds", shipped.pairing.fitted_on
        )
        order = shipped.pairing.order
    pairing = Pairing(fit(model, examples, kept), fitted_on, order)
    write_atomically(options.output, pairing.to_json().encode() + b"\n")
    print(f"{options.output}: {len(examples)} pairs of files")


def examples_of(model: SearchModel, folder: Path) -> list[Example]:
    """Every direction for which there are both builds."""
    sides: dict[str, Side] = {}
    examples: list[Example] = []
    rng = np.random.default_rng(0)
    for builds in (DIRECTIONS | FURTHER).values():
        paths = [folder / f"{build}.so" for build in builds]
        if not all(path.exists() for path in paths):
            continue
        for build, path in zip(builds, paths, strict=True):
            if build not in sides:
                sides[build] = read_side(model, parse_target(str(path)))
        both = [sides[build] for build in builds]
        if len(examples) % 2:
            both = [thinned(side, rng) for side in both]
        examples.append(example_of(model, likely_pairs(model, *both)))
    return examples


def thinned(side: Side, rng: Generator) -> Side:
    """The same file without some of its functions: versions of a program drop and add some.

    Without such examples, a function in the place of another would be taken for it.
    """
    kept = np.flatnonzero(rng.random(len(side)) >= DROPPED)
    number = {row: place for place, row in enumerate(kept.tolist())}
    return Side(
        [side.functions[row] for row in kept],
        [side.code[row] for row in kept],
        [side.graphs[row] for row in kept],
        side.signals[kept],
        [tuple(number[callee] for callee in side.calls[row] if callee in number) for row in kept],
    )


def example_of(model: SearchModel, pairs: Pairs) -> Example:
    """What is known of pairs, and which names agree."""
    sides = pairs.left, pairs.right
    names = [np.array([item.base_name for item in side.functions]) for side in sides]
    is_right = names[0][pairs.rows] == names[1][pairs.columns]
    is_named = [np.array([not is_unnamed(item.name) for item in side.functions]) for side in sides]
    is_known = is_named[0][pairs.rows] | is_named[1][pairs.columns]
    return Example(pairs, own_features(model, pairs), is_right, is_known)


def fit(
    model: SearchModel, examples: Sequence[Example], kept: Sequence[Round] = ()
) -> tuple[Round, ...]:
    """Round by round: each sees what those before it have found, as it will be at work.

    Args:
        model: what compares functions.
        examples: pairs of files.
        kept: the first rounds, if they are not to be fitted.
    """
    features = [example.features for example in examples]
    first = kept[0] if kept else fit_round(examples, features, 0)
    related = [
        with_related(example.pairs, round_probabilities(example.pairs, example.features, first, 0))
        for example in examples
    ]
    examples = [example_of(model, pairs) for pairs in related]
    fitted: list[Round] = []
    features = [example.features for example in examples]
    first_rounds = len(kept) or ROUNDS
    inlining = [
        Inlining(model.embedder, example.pairs.left, example.pairs.right) for example in examples
    ]
    for number in range(first_rounds + LATE_ROUNDS):
        is_last = number + 1 >= first_rounds
        own = (
            kept[number]
            if number < len(kept)
            else fit_round(examples, features, number, is_late=number >= first_rounds)
        )
        fitted.append(own)
        probabilities = [
            round_probabilities(example.pairs, known, own, number)
            for example, known in zip(examples, features, strict=True)
        ]
        features = [
            example.features
            | context_features(example.pairs, own_probabilities)
            | (late_features(inside, example.pairs, own_probabilities) if is_last else {})
            for example, own_probabilities, inside in zip(
                examples, probabilities, inlining, strict=True
            )
        ]
    return tuple(fitted)


def late_features(inlining: Inlining, pairs: Pairs, probabilities: Floats) -> dict[str, Floats]:
    return inlining.features(pairs, probabilities) | order_features(pairs, probabilities)


def fit_round(
    examples: Sequence[Example],
    features: Sequence[Features],
    number: int,
    *,
    is_late: bool = False,
) -> Round:
    names = names_of(number, is_late=is_late)
    columns = [np.column_stack([own[name] for name in names]) for own in features]
    known = _logistic(examples, columns)
    unsettled = Round(known, known, is_late)
    competing = [
        competing_features(example.pairs, unsettled.exponents(own, names))
        for example, own in zip(examples, features, strict=True)
    ]
    return Round(known, _logistic(examples, competing), is_late)


def _logistic(examples: Sequence[Example], columns: Sequence[Floats]) -> Logistic:
    chosen = [own[example.is_known] for example, own in zip(examples, columns, strict=True)]
    labels = [example.is_right[example.is_known] for example in examples]
    return Logistic.fit(np.concatenate(chosen), np.concatenate(labels))


if __name__ == "__main__":
    main()
