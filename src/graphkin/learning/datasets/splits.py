"""Splits of what a dataset holds, and the random generators of each split."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Protocol

import numpy as np
from numpy.random import Generator, SeedSequence
from numpy.typing import NDArray

from graphkin.errors import ConfigError
from graphkin.graphs import Graph
from graphkin.learning.task import Split

SHARES = {"training": 0.8, "validation": 0.1, "test": 0.1}
STREAMS = {"training": 1, "validation": 2, "test": 3}


class Numbered(Protocol):
    """Graphs by number, such as a list of them."""

    def __getitem__(self, number: int, /) -> Graph: ...


FOLDS = 10


def split_by_hash(keys: Iterable[str], fold: int = 0, least: int = 0) -> dict[str, str]:
    """The split of each different key, by the order of their hashes.

    So that the keys decide, and not their order, nor much what else there is. Over the folds from
    0 to 9 every key is once, or nearly so, in the test set.

    Args:
        keys: what is divided.
        fold: which tenth is the test set.
        least: keys that validation and test get at least, where training is left with as many.
    """
    order = sorted(set(keys), key=text_hash)
    begin = fold * len(order) // FOLDS
    order = order[begin:] + order[:begin]
    cuts = np.floor(np.cumsum(list(SHARES.values()))[:-1] * len(order) + 0.5)
    if len(order) >= 3 * least:
        cuts[1] = min(cuts[1], len(order) - least)
        cuts[0] = min(cuts[0], cuts[1] - least)
    numbers = np.searchsorted(cuts, np.arange(len(order)), side="right").tolist()
    names = list(SHARES)
    return {key: names[number] for key, number in zip(order, numbers, strict=True)}


def split_classes(
    classes: NDArray[np.int64],
    labels: Sequence[str],
    digests: Sequence[str],
    by: str,
    fold: int,
    least: int = 0,
) -> NDArray[np.str_]:
    """(G,) the split of each graph: whole classes are divided, or the graphs of each class.

    Args:
        classes: (G,) the place in ``labels`` of each graph's class.
        labels: the name of each class.
        digests: (G,) of each graph; equal graphs of a class stay together.
        by: ``class`` or ``graph``.
        fold: which tenth is the test set.
        least: classes, or graphs of a class, that a split gets at least where there are enough.
    """
    if by == "class":
        split_of = split_by_hash(labels, fold, least)
        return np.array([split_of[labels[number]] for number in classes.tolist()])
    splits = np.empty(len(classes), dtype=f"U{max(map(len, SHARES))}")
    for number in range(len(labels)):
        members = np.flatnonzero(classes == number)
        own = [digests[member] for member in members.tolist()]
        split_of = split_by_hash(own, fold, least)
        splits[members] = [split_of[digest] for digest in own]
    return splits


def given_splits(splits: Iterable[object], count: int) -> NDArray[np.str_]:
    """(count,) splits as a person wrote them; ``train``, ``val`` and ``valid`` are understood."""
    short = {"train": "training", "val": "validation", "valid": "validation"}
    names = [short.get(str(name), str(name)) for name in splits]
    unknown = sorted(set(names) - set(SHARES))
    if unknown:
        raise ConfigError(f"unknown split {unknown[0]!r}; choose one of {', '.join(SHARES)}")
    if len(names) != count:
        raise ConfigError(f"{len(names)} splits for {count} examples; give one for each")
    return np.array(names)


def check_split(split: str) -> Split:
    """Refuses what is not a split to evaluate on."""
    if split not in ("validation", "test"):
        raise ConfigError(
            f"split must be 'validation' or 'test', got {split!r}; training data is drawn anew at "
            "every step, so there is no set of it to evaluate on"
        )
    return split  # type: ignore[return-value]


def check_recipe(kind: str, known: Sequence[str] = ("paper",)) -> None:
    """Refuses the name of a recipe that a task does not have."""
    if kind not in known:
        raise ConfigError(f"unknown recipe {kind!r}; choose one of {', '.join(known)}")


def text_hash(text: str) -> str:
    """SHA-256, in hexadecimal; names out of binaries may not be Unicode."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def generator(seed: int, stream: str, number: int) -> Generator:
    """The random generator of the ``number``-th draw of a split."""
    return np.random.default_rng(SeedSequence([seed, STREAMS[stream], number]))


def signs(count: int) -> NDArray[np.float32]:
    """(count,) +1 and -1 in turn."""
    return np.where(np.arange(count) % 2, -1, 1).astype(np.float32)


def labelled(
    graphs: Numbered, triplets: Sequence[Sequence[int]], labels: Iterable[float]
) -> list[tuple[Graph, Graph]]:
    """The similar or the dissimilar pair of each triplet, as its label says."""
    chosen = zip(triplets, labels, strict=True)
    return [(graphs[a], graphs[b if label > 0 else c]) for (a, b, c), label in chosen]
