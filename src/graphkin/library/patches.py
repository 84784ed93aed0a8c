"""Vulnerable or repaired: which of two versions of a known function a hit is nearer to.

A library may hold a function with the tag ``cve=X`` and its repaired version with ``fixed=X``. The
two differ by a few instructions, other compilers change many more. So builds of one kind are
compared in pairs: what differs between the two of a pair is the repair, and only that is asked for
in the function that was found. The weights were fitted on five pairs from Debian's archive, which
``experiments/patched.py`` builds beside six others, and measures all of them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from graphkin.graphs import Graph
from graphkin.graphs.words import KIND_SHIFT, KINDS, OFFSETS, word_hash
from graphkin.library.cascade import identity
from graphkin.library.engines.base import Engine
from graphkin.library.line_numbers import known_numbers, line_numbers
from graphkin.library.models import SearchModel
from graphkin.library.records import Filter, Stored
from graphkin.library.scan import Query
from graphkin.models.answering import Matcher
from graphkin.results.document import (
    EvidenceToken,
    FunctionRef,
    FunctionResult,
    PatchVerdict,
    Repair,
)
from graphkin.results.grouping import CVE_TAG, FIXED_TAG, listed
from graphkin.results.shared_words import have_same_width
from graphkin.results.word_text import word_text

WEIGHTS = {"distinct": 0.9, "words": 1.1, "score": 3.2}
"""Of each signal in the log-odds that a function is the repaired one; each is from -1 to 1."""
CLOSENESS = 5.0
"""Scores of the matcher by which one pair of builds is closer than another, to count e times as
much."""
LEAST_SURE = 0.7
"""Probability of either, below which it cannot be told."""
EQUAL = 0.99
"""Probability of the version that has exactly the graph of the function."""
MOST_PAIRS = 12
"""Pairs of builds that a function is compared with: those of its own processor first."""
MOST_WORDS = 3
"""Words that a verdict quotes."""


class VersionPair(NamedTuple):
    """A known function before and after its repair, made by one compiler."""

    vulnerable: Stored
    fixed: Stored
    vulnerable_graph: Graph
    fixed_graph: Graph


class Signals(NamedTuple):
    """Which of the two a function is nearer to, from -1 (vulnerable) to 1 (repaired)."""

    distinct: float
    """By the words that only one of them says."""
    words: float
    """By how often words are said."""
    score: float
    """By the matcher, as a share of what tells the two apart themselves."""
    closeness: float
    """The better score of the matcher."""
    scores: tuple[float, float]
    """With the vulnerable one and with the repaired one."""


class PatchJudge:
    """Says of hits whether they are repaired; reads each known pair once."""

    def __init__(self, model: SearchModel, engine: Engine) -> None:
        self._model = model
        self._engine = engine
        self._pairs: dict[tuple[str, str], list[VersionPair]] = {}
        self._identifiers = _repaired_identifiers(engine)

    def judged(self, query: Query, result: FunctionResult) -> FunctionResult:
        """The result with a verdict for each vulnerability that the library knows a repair of."""
        if self._model.matcher is None or not self._identifiers:
            return result
        verdicts = []
        asked: set[tuple[str, str]] = set()
        for hit in result.hits:
            names = (*listed(hit.tags.get(CVE_TAG, "")), *listed(hit.tags.get(FIXED_TAG, "")))
            for name in self._identifiers & set(names):
                if (hit.function, name) in asked:
                    continue
                asked.add((hit.function, name))
                pairs = self._known_pairs(hit.id, name)
                if pairs:
                    verdicts.append(judge(self._model.matcher, query, name, pairs))
        return result.model_copy(update={"patches": tuple(verdicts)}) if verdicts else result

    def _known_pairs(self, hit: int, identifier: str) -> list[VersionPair]:
        (stored,) = self._engine.fetch([hit])
        key = identity(stored), identifier
        if key not in self._pairs:
            self._pairs[key] = _version_pairs(self._engine, *key)
        return self._pairs[key]


def _repaired_identifiers(engine: Engine) -> set[str]:
    """The vulnerabilities that the library holds a repaired function of."""
    tags = (tag.partition("=") for item in engine.binaries() for tag in item.tags)
    return {name for key, _, value in tags if key == FIXED_TAG for name in listed(value)}


def _version_pairs(engine: Engine, function: str, identifier: str) -> list[VersionPair]:
    """Builds of one kind of a function, vulnerable and repaired."""
    versions: list[dict[tuple[str, str, str], Stored]] = []
    for tag in (CVE_TAG, FIXED_TAG):
        own: dict[tuple[str, str, str], Stored] = {}
        for stored in engine.scan(Filter(tags={tag: "*"})):
            names = listed(stored.entry.tags[tag])
            if identifier in names and identity(stored) == function:
                entry = stored.entry
                own.setdefault((entry.architecture, entry.compiler, entry.build), stored)
        versions.append(own)
    vulnerable, fixed = versions
    keys = [key for key in vulnerable if key in fixed]
    if not keys:
        # Other builds than these are not known: what tells them apart is more than the repair.
        by_processor = {key[0]: key for key in fixed}
        couples = [(key, by_processor[key[0]]) for key in vulnerable if key[0] in by_processor]
    else:
        couples = [(key, key) for key in keys]
    pairs = [(vulnerable[left], fixed[right]) for left, right in couples]
    graphs = engine.graphs([item.id for pair in pairs for item in pair])
    return [
        VersionPair(*pair, *graphs[2 * row : 2 * row + 2])
        for row, pair in enumerate(pairs)
        if pair[0].graph_hash != pair[1].graph_hash
    ]


def judge(
    matcher: Matcher, query: Query, identifier: str, pairs: Sequence[VersionPair]
) -> PatchVerdict:
    """Whether a function is vulnerable or repaired, by what, and how sure that is."""
    pairs = sorted(
        pairs, key=lambda pair: pair.vulnerable.entry.architecture != query.architecture
    )[:MOST_PAIRS]
    signals = _signals(matcher, query, pairs)
    closeness = np.array([item.closeness for item in signals])
    shares = np.exp((closeness - closeness.max()) / CLOSENESS)
    shares /= shares.sum()
    odds = sum(
        share * WEIGHTS[name] * getattr(item, name)
        for share, item in zip(shares.tolist(), signals, strict=True)
        for name in WEIGHTS
    )
    nearest = int(closeness.argmax())
    digest = query.graph.digest()
    is_vulnerable = any(pair.vulnerable.graph_hash == digest for pair in pairs)
    is_fixed = any(pair.fixed.graph_hash == digest for pair in pairs)
    probability = 1 / (1 + math.exp(-odds))
    if is_vulnerable != is_fixed:
        probability = EQUAL if is_fixed else 1 - EQUAL
    verdict: Repair = "cannot tell"
    if max(probability, 1 - probability) >= LEAST_SURE:
        verdict = "fixed" if probability > 0.5 else "vulnerable"
    pair = pairs[nearest]
    return PatchVerdict(
        identifier=identifier,
        verdict=verdict,
        probability=probability,
        vulnerable=_ref(pair.vulnerable),
        fixed=_ref(pair.fixed),
        reasons=tuple(_reasons(query, pair, signals[nearest])),
    )


def _signals(matcher: Matcher, query: Query, pairs: Sequence[VersionPair]) -> list[Signals]:
    """By each pair."""
    couples = []
    for pair in pairs:
        left, right = pair.vulnerable_graph, pair.fixed_graph
        couples += [(query.graph, left), (query.graph, right)]
        couples += [(left, left), (left, right), (right, left), (right, right)]
    scores = matcher.predict(couples).reshape(len(pairs), 6).tolist()
    signals = []
    for pair, own in zip(pairs, scores, strict=True):
        to_left, to_right, left_left, left_right, right_left, right_right = own
        separation = (left_left - left_right + right_right - right_left) / 2
        ours, vulnerable, fixed = _bags(query, pair)
        signals.append(
            Signals(
                _nearer_by(_set_distance, ours, vulnerable, fixed),
                _nearer_by(_distance, ours, vulnerable, fixed),
                _nearer(-to_left, -to_right, separation),
                max(to_left, to_right),
                (to_left, to_right),
            )
        )
    return signals


def _nearer_by(
    distance: Callable[[Counter[int], Counter[int]], int],
    ours: Counter[int],
    vulnerable: Counter[int],
    fixed: Counter[int],
) -> float:
    return _nearer(distance(ours, vulnerable), distance(ours, fixed), distance(vulnerable, fixed))


def _nearer(to_vulnerable: float, to_fixed: float, between: float) -> float:
    """-1 for what is all on the side of the vulnerable one, 1 for the other."""
    if between <= 1e-3:
        return 0.0
    return max(-1.0, min(1.0, (to_vulnerable - to_fixed) / between))


def _bags(query: Query, pair: VersionPair) -> tuple[Counter[int], Counter[int], Counter[int]]:
    """The words of the three, without lines; offsets only where pointers are equally wide."""
    same_width = have_same_width(query.architecture, pair.vulnerable.entry.architecture)
    lines = line_numbers(pair.vulnerable_graph, pair.fixed_graph)
    graphs = (query.graph, pair.vulnerable_graph, pair.fixed_graph)
    first, second, third = (_bag(graph, lines, same_width) for graph in graphs)
    return first, second, third


def _bag(graph: Graph, lines: Collection[int], with_offsets: bool) -> Counter[int]:
    if graph.node_words is None:
        return Counter()
    words = Counter(graph.node_words.hashes.tolist())
    return Counter(
        {
            word: count
            for word, count in words.items()
            if word not in lines and (with_offsets or KINDS[word >> KIND_SHIFT] != OFFSETS)
        }
    )


def _distance(left: Counter[int], right: Counter[int]) -> int:
    return sum(abs(left[word] - right[word]) for word in left.keys() | right.keys())


def _set_distance(left: Counter[int], right: Counter[int]) -> int:
    return len(left.keys() ^ right.keys())


def _reasons(query: Query, pair: VersionPair, signals: Signals) -> Iterable[str]:
    """What speaks for either, in words."""
    ours, left, right = _bags(query, pair)
    texts = {word_hash(token.kind, token.text): token for token in query.said}
    for name, only, other in (("repaired", right, left), ("vulnerable", left, right)):
        words = only.keys() - other.keys()
        for verb, chosen in (("says", words & ours.keys()), ("does not say", words - ours.keys())):
            if chosen:
                yield f"{verb} {_quoted(chosen, texts)}, which only the {name} one says"
    blocks = [graph.num_nodes for graph in (query.graph, pair.vulnerable_graph, pair.fixed_graph)]
    if blocks[1] != blocks[2]:
        yield f"{blocks[0]} blocks; the vulnerable one has {blocks[1]}, the repaired {blocks[2]}"
    yield (
        f"score of the matcher {signals.scores[0]:.2f} with the vulnerable one, "
        f"{signals.scores[1]:.2f} with the repaired"
    )


def _quoted(words: Iterable[int], texts: Mapping[int, EvidenceToken]) -> str:
    known: list[str] = []
    unknown = 0
    for word in sorted(words):
        token = texts.get(word) or known_numbers().get(word)
        if token is not None and len(known) < MOST_WORDS:
            known.append(word_text(token))
        else:
            unknown += 1
    more = f"{unknown} {'more' if known else 'of the words'}" if unknown else ""
    return " and ".join(filter(None, (", ".join(known), more)))


def _ref(stored: Stored) -> FunctionRef:
    document = stored.to_document()
    return FunctionRef(
        **{name: document[name] for name in FunctionRef.model_fields if name in document}
    )
