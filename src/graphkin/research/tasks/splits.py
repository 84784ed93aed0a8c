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


def split_by_hash(keys: Iterable[str], fold: int = 0) -> dict[str, str]:
    """The split of each different key, by the order of their hashes.

    So that the keys decide, and not their order, nor much what else there is. Over the folds from
    0 to 9 every key is once, or nearly so, in the test set.
    """
    order = sorted(set(keys), key=text_hash)
    begin = fold * len(order) // FOLDS
    order = order[begin:] + order[:begin]
    cuts = np.floor(np.cumsum(list(SHARES.values()))[:-1] * len(order) + 0.5)
    numbers = np.searchsorted(cuts, np.arange(len(order)), side="right").tolist()
    names = list(SHARES)
    return {key: names[number] for key, number in zip(order, numbers, strict=True)}


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
