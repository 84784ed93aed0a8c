"""Vulnerable or repaired: which of two versions of a known function a hit is nearer to.

A library may hold a function with the tag ``cve=X`` and its repaired version with ``fixed=X``. The
two differ by a few instructions, other compilers change many more. So builds of one kind are
compared in pairs: what differs between the two of a pair is the repair, and only that is asked for
in the function that was found. The weights were fitted on patches that were made for it, as
``experiments/fit_patches.py`` makes them; ``experiments/patched.py`` measures them on real ones.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import numpy as np

from graphkin.graphs.words import word_hash
from graphkin.library.cascade import identity
from graphkin.library.engines.base import Engine
from graphkin.library.line_numbers import known_numbers
from graphkin.library.models import SearchModel
from graphkin.library.patch_signals import (
    SIGNALS,
    Floats,
    KnownVersions,
    VersionPair,
    version_bags,
)
from graphkin.library.records import Filter, Stored
from graphkin.library.scan import Query
from graphkin.results.document import (
    EvidenceToken,
    FunctionRef,
    FunctionResult,
    PatchVerdict,
    Repair,
)
from graphkin.results.grouping import CVE_TAG, FIXED_TAG, listed
from graphkin.results.word_text import word_text

WEIGHTS = {"distinct": 0.443, "words": 0.566, "score": 0.948, "blocks": 1.464}
"""Of each signal in the log-odds that a function is the repaired one."""
LARGEST = 2.0
"""Absolute value of a signal: none decides alone."""
CLOSENESS = 5.0
"""Scores of the matcher by which one pair of builds is closer than another, to count e times as
much."""
LEAST_SURE = 0.85
"""Probability of either, below which it cannot be told."""
EQUAL = 0.99
"""Probability of the version that has exactly the graph of the function."""
MOST_PAIRS = 12
"""Pairs of builds that a function is compared with: those of its own processor first."""
MOST_WORDS = 3
"""Words that a verdict quotes."""


class PatchJudge:
    """Says of hits whether they are repaired; reads each known pair once."""

    def __init__(self, model: SearchModel, engine: Engine) -> None:
        self._model = model
        self._engine = engine
        self._known: dict[tuple[str, str, str], KnownVersions | None] = {}
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
                known = self._known_versions(hit.id, name, query.architecture)
                if known is not None:
                    verdicts.append(judge(query, name, known))
        return result.model_copy(update={"patches": tuple(verdicts)}) if verdicts else result

    def _known_versions(self, hit: int, identifier: str, architecture: str) -> KnownVersions | None:
        assert self._model.matcher is not None, "nobody asks without a matcher"
        (stored,) = self._engine.fetch([hit])
        key = identity(stored), identifier, architecture
        if key not in self._known:
            pairs = _version_pairs(self._engine, *key[:2])
            pairs.sort(key=lambda pair: pair.architecture != architecture)
            own = KnownVersions(self._model.matcher, pairs[:MOST_PAIRS]) if pairs else None
            self._known[key] = own
        return self._known[key]


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


def judge(query: Query, identifier: str, known: KnownVersions) -> PatchVerdict:
    """Whether a function is vulnerable or repaired, by what, and how sure that is."""
    signals = known.compared([query.graph], [query.architecture])
    closeness = signals.closeness[0]
    shares = np.exp((closeness - closeness.max()) / CLOSENESS)
    shares /= shares.sum()
    weighed = np.clip(shares @ known.weighed(signals), -LARGEST, LARGEST)
    odds = float(weighed @ [WEIGHTS[name] for name in SIGNALS])
    digest = query.graph.digest()
    is_vulnerable = any(pair.vulnerable.graph_hash == digest for pair in known.pairs)
    is_fixed = any(pair.fixed.graph_hash == digest for pair in known.pairs)
    probability = 1 / (1 + math.exp(-odds))
    if is_vulnerable != is_fixed:
        probability = EQUAL if is_fixed else 1 - EQUAL
    verdict: Repair = "cannot tell"
    if max(probability, 1 - probability) >= LEAST_SURE:
        verdict = "fixed" if probability > 0.5 else "vulnerable"
    nearest = int(closeness.argmax())
    pair = known.pairs[nearest]
    return PatchVerdict(
        identifier=identifier,
        verdict=verdict,
        probability=probability,
        vulnerable=_ref(pair.vulnerable),
        fixed=_ref(pair.fixed),
        reasons=tuple(_reasons(query, pair, signals.scores[0, nearest])),
    )


def _reasons(query: Query, pair: VersionPair, scores: Floats) -> Iterable[str]:
    """What speaks for either, in words."""
    ours, left, right = version_bags(query.graph, query.architecture, pair)
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
        f"score of the matcher {scores[0]:.2f} with the vulnerable one, "
        f"{scores[1]:.2f} with the repaired"
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
