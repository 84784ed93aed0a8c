"""What a library is searched with: an embedder, and where there is one a matcher over it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from graphkin._support.files import read_file
from graphkin.binaries.function import pointer_bytes
from graphkin.errors import FormatError, ModelError
from graphkin.graphs import Graph
from graphkin.graphs.vocabulary import Vocabulary
from graphkin.library.engines.base import Metric, Space
from graphkin.library.pairing import Pairing
from graphkin.library.ranking import Ranking
from graphkin.library.records import Row, Unstored
from graphkin.library.signals import (
    AROUND,
    Records,
    Surroundings,
    rare_words_of,
    record_kind,
    signals_of,
)
from graphkin.models.answering import (
    Answering,
    Embedder,
    Matcher,
    answering_embedder,
    answering_matcher,
)
from graphkin.models.calibration import Calibration
from graphkin.models.codes import pack_codes
from graphkin.models.saving import (
    ADDED_OPTIONS,
    CONFIG_FILE,
    PARTS,
    WEIGHTS_FILE,
    described_vocabulary,
    model_folder,
    model_home,
    saved_class,
    shipped_names,
)

if TYPE_CHECKING:
    from graphkin.models import GraphEmbedder, GraphMatcher

EMBEDDER, MATCHER = PARTS["GraphEmbedder"], PARTS["GraphMatcher"]
CALIBRATION_FILE = "calibration.json"
RANKING_FILE = "ranking.json"
PAIRING_FILE = "pairing.json"
ID_FILE = "pin.json"
FILES = frozenset(
    {ID_FILE, CALIBRATION_FILE, RANKING_FILE, PAIRING_FILE}
    | {f"{part}/{file}" for part in (EMBEDDER, MATCHER) for file in (CONFIG_FILE, WEIGHTS_FILE)}
)
"""All that a library keeps of its model. A name in a library is somebody else's word: nothing is
ever written under it."""
LISTED_FILES = 10
"""Names of foreign files that an error has."""


@dataclass(frozen=True)
class ModelId:
    """Which model made a library. Codes of different models have nothing to do with each other."""

    name: str
    version: str
    """Of the graphkin that the model came with, or that read it from a folder."""
    weights: str
    """SHA-256 of the embedder's options, vocabulary and weights."""

    def __str__(self) -> str:
        return f"{self.name} {self.version} ({self.weights[:12]})"


class Encoded(NamedTuple):
    """What a library is searched by, of N graphs."""

    vectors: NDArray[Any]
    """(N, columns) codes, or float vectors."""
    signals: Records | None
    """(N,) where the model has a ranking."""
    unrounded: NDArray[np.float32] | None = None
    """(N, bits) numbers whose signs are the codes, where vectors are codes."""


@dataclass(frozen=True, eq=False)
class SearchModel:
    """Models that belong together, as files, and as what they compute with."""

    model_id: ModelId
    files: Mapping[str, bytes]
    """Everything that is needed to load it again, by name."""
    embedder: Embedder
    matcher: Matcher | None = None
    calibration: Calibration | None = None
    """Of a model that is searched by codes and a matcher alone."""
    ranking: Ranking | None = None
    """Of a model that reads what functions say."""
    pairing: Pairing | None = None
    """Of one that can tell which function of a binary is which of another."""

    @classmethod
    def load(cls, path: str | Path, matcher: str | Path | None = None) -> SearchModel:
        """A model that ships with graphkin, by name, or from a folder.

        The folder holds ``embedder/`` and, by choice, ``matcher/``, ``calibration.json``,
        ``ranking.json`` and ``pairing.json``; or it is that of an embedder alone, or of a training
        run. ``matcher`` is the folder of one, or of its training run, that was trained apart.
        """
        home = model_home(path)
        name = str(path) if str(path) in shipped_names() else home.resolve().name
        parts = {EMBEDDER: _first(home / EMBEDDER, home / "model", home), MATCHER: home / MATCHER}
        if saved_class(parts[EMBEDDER]) == "GraphMatcher":
            raise ModelError(
                f"{path} is a matcher, which compares graphs in pairs and has no vectors to search "
                "by; name an embedder as the model, and this one as its matcher"
            )
        if matcher is not None:
            parts[MATCHER] = model_folder(matcher, "GraphMatcher")
        files = {
            f"{part}/{file}": read_file(folder / file)
            for part, folder in parts.items()
            if folder.is_dir()
            for file in (CONFIG_FILE, WEIGHTS_FILE)
        }
        for file in (CALIBRATION_FILE, RANKING_FILE, PAIRING_FILE):
            if (home / file).exists():
                files[file] = read_file(home / file)
        return cls.from_files({**files, ID_FILE: _id_file(name, files)})

    @classmethod
    def of(
        cls,
        embedder: GraphEmbedder,
        matcher: GraphMatcher | None = None,
        calibration: Calibration | None = None,
        name: str = "unnamed",
        ranking: Ranking | None = None,
        pairing: Pairing | None = None,
    ) -> SearchModel:
        """A model from its parts, as they are now."""
        files = _prefixed(EMBEDDER, embedder.to_files())
        if matcher is not None:
            files |= _prefixed(MATCHER, matcher.to_files())
        if calibration is not None:
            files[CALIBRATION_FILE] = calibration.to_json().encode()
        if ranking is not None:
            files[RANKING_FILE] = ranking.to_json().encode()
        if pairing is not None:
            files[PAIRING_FILE] = pairing.to_json().encode()
        return cls.from_files({**files, ID_FILE: _id_file(name, files)})

    @classmethod
    def from_files(cls, files: Mapping[str, bytes]) -> SearchModel:
        """A model from its files, as a library keeps them; none of them touches the disk."""
        model_id = read_model_id(files)
        embedder = answering_embedder(_part(EMBEDDER, files), f"{EMBEDDER} of {model_id}")
        matcher = None
        if own := _part(MATCHER, files):
            matcher = answering_matcher(own, f"{MATCHER} of {model_id}")
        calibration = None
        if CALIBRATION_FILE in files:
            calibration = Calibration.from_json(files[CALIBRATION_FILE])
        ranking = None
        if RANKING_FILE in files:
            ranking = Ranking.from_json(files[RANKING_FILE])
        pairing = None
        if PAIRING_FILE in files:
            pairing = Pairing.from_json(files[PAIRING_FILE])
        if matcher is not None and matcher.vocabulary != embedder.vocabulary:
            raise ModelError(f"embedder and matcher of {model_id} differ in what their tokens mean")
        space_of(embedder)
        return cls(model_id, dict(files), embedder, matcher, calibration, ranking, pairing)

    @property
    def space(self) -> Space:
        """Where the embedder's vectors live."""
        return space_of(self.embedder)

    @property
    def knows_probabilities(self) -> bool:
        """Whether hits have a probability."""
        return self.ranking is not None or self.calibration is not None

    @property
    def reads_functions(self) -> bool:
        """Whether it reads functions of binaries; else it is one of somebody's own graphs."""
        vocabulary = self.embedder.vocabulary
        return vocabulary is not None and vocabulary.reads != "labels"

    @property
    def vocabulary(self) -> Vocabulary:
        """The mnemonics that the model knows; one without cannot read functions."""
        vocabulary = self.embedder.vocabulary
        if vocabulary is None or not self.reads_functions:
            raise ModelError(
                f"the model {self.model_id} reads graphs, and has no vocabulary of mnemonics for "
                "functions"
            )
        return vocabulary

    def value(self, distance: float, score: float | None) -> float | None:
        """What it predicts, in the unit of the targets that it was trained on; None without any.

        Args:
            distance: of the embedder's vectors.
            score: the matcher's, where it was asked.
        """
        model: Answering = self.embedder
        if score is not None and self.matcher is not None:
            model = self.matcher
        elif model.config.similarity == "euclidean":
            score = -distance
        else:
            score = 1 - distance
        if model.config.link == "none":
            return None
        return float(model.linked(np.array([score], dtype=np.float32))[0])

    def vectors(self, graphs: Sequence[Graph]) -> NDArray[Any]:
        """(N, columns) what a library is searched by: codes, or float vectors."""
        return self.encoded(graphs).vectors

    def encoded(
        self,
        graphs: Sequence[Graph],
        architectures: Sequence[str] = (),
        surroundings: Sequence[Surroundings] | None = None,
        vectors: NDArray[np.float32] | None = None,
    ) -> Encoded:
        """All that a search compares of graphs before it reads them.

        Args:
            graphs: N of them.
            architectures: the processor of each, where it is known.
            surroundings: where each stands, if they are all the functions of one file.
            vectors: (N, V) of the embedder, where they are known.
        """
        if vectors is None:
            vectors = self.embedder.encode(graphs)
        signals = None
        if self.ranking is not None:
            known = architectures or [""] * len(graphs)
            narrow = [pointer_bytes(architecture) == 4 for architecture in known]
            signals = signals_of(
                self.embedder, graphs, vectors, narrow, surroundings, self.ranking.around
            )
        if self.space.metric != "hamming":
            return Encoded(vectors, signals)
        unrounded = self.embedder.unrounded_codes(vectors)
        return Encoded(pack_codes(unrounded), signals, unrounded)

    def rows(self, functions: Sequence[Unstored], encoded: Encoded) -> list[Row]:
        """Graphs on their way into a library."""
        vectors = [encoded.vectors[item.number] for item in functions]
        heads = [item[:4] for item in functions]
        if encoded.signals is None:
            return [Row(*head, vector) for head, vector in zip(heads, vectors, strict=True)]
        signals = [encoded.signals[item.number].tobytes() for item in functions]
        words = rare_words_of(self.embedder, [item.graph for item in functions])
        return [
            Row(*head, *rest) for head, *rest in zip(heads, vectors, signals, words, strict=True)
        ]

    def signals_from(self, contents: Sequence[bytes]) -> Records:
        """Signals as a library keeps them."""
        around = AROUND if self.ranking is None else self.ranking.around
        kind = record_kind(self.embedder, around)
        if not {kind.itemsize}.issuperset(map(len, contents)):
            raise FormatError(
                "functions of the library have no signals, or those of another model; make the "
                "library anew: graphkin index NEW.kin FILES"
            )
        return np.frombuffer(b"".join(contents), kind)


def search_model(model: str | Path | SearchModel | GraphEmbedder) -> SearchModel:
    """Whatever a person may name as the model of a library."""
    if isinstance(model, SearchModel):
        return model
    if isinstance(model, str | Path):
        return SearchModel.load(model)
    from graphkin.models import GraphEmbedder  # whoever has one has loaded torch

    if isinstance(model, GraphEmbedder):
        return SearchModel.of(model)
    raise ModelError(
        f"a library is made by an embedder, a folder or a name, not by a {type(model).__name__}"
    )


def space_of(embedder: Embedder) -> Space:
    """The space of an embedder's vectors; a Siamese one has none that can be searched."""
    if embedder.config.code_bits:
        return Space("hamming", embedder.config.code_bits)
    metric = next((name for name in get_args(Metric) if name == embedder.config.similarity), None)
    if metric is None:
        raise ModelError(
            f"a model of {embedder.config.similarity} similarity cannot be searched by distance; "
            f"choose one of {', '.join(get_args(Metric))}"
        )
    return Space(metric, embedder.config.vector_dim)


def read_model_id(files: Mapping[str, bytes]) -> ModelId:
    """Which model some files are.

    Raises:
        FormatError: where the files are not those of a model, or not those of the model that
            they name.
    """
    foreign = sorted(set(files).difference(FILES))
    if foreign:
        names = ", ".join(map(repr, foreign[:LISTED_FILES]))
        more = f" and {len(foreign) - LISTED_FILES} more" if len(foreign) > LISTED_FILES else ""
        raise FormatError(
            f"the library holds {names}{more}, which no model has; it may have been made to harm "
            "whoever opens it"
        )
    try:
        model_id = ModelId(**json.loads(files[ID_FILE]))
    except (KeyError, ValueError, TypeError) as error:
        raise FormatError(f"the model of the library is damaged: {ID_FILE}: {error}") from error
    identity = _identity(files)
    if model_id.weights not in (identity, _identity_of_bytes(files)):
        raise FormatError(f"the files of the model {model_id} are not those that its id names")
    return replace(model_id, weights=identity)


def read_vocabulary(files: Mapping[str, bytes]) -> Vocabulary | None:
    """What the tokens of a model's graphs mean, without loading its weights."""
    return described_vocabulary(_embedder_file(files, CONFIG_FILE), f"{EMBEDDER}/{CONFIG_FILE}")


def _id_file(name: str, files: Mapping[str, bytes]) -> bytes:
    own = {"name": name, "version": version("graphkin"), "weights": _identity(files)}
    return json.dumps(own).encode()


def _identity(files: Mapping[str, bytes]) -> str:
    """What decides an embedder's vectors: options, vocabulary and weights; not its calibration."""
    content = _embedder_file(files, CONFIG_FILE)
    try:
        document = json.loads(content)
        options = {
            name: value
            for name, value in document["config"].items()
            if not (name in ADDED_OPTIONS and ADDED_OPTIONS[name] == value)
        }
        deciding = [document["class"], options, document.get("vocabulary")]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise FormatError(f"{EMBEDDER}/{CONFIG_FILE} of the model is damaged: {error}") from error
    canonical = json.dumps(deciding, sort_keys=True).encode()
    return _joint_hash(canonical, _embedder_file(files, WEIGHTS_FILE))


def _identity_of_bytes(files: Mapping[str, bytes]) -> str:
    """How the first libraries named a model: by the bytes of its configuration and weights."""
    return _joint_hash(*(_embedder_file(files, name) for name in (CONFIG_FILE, WEIGHTS_FILE)))


def _joint_hash(*contents: bytes) -> str:
    digests = (hashlib.sha256(content).digest() for content in contents)
    return hashlib.sha256(b"".join(digests)).hexdigest()


def _embedder_file(files: Mapping[str, bytes], name: str) -> bytes:
    content = files.get(f"{EMBEDDER}/{name}")
    if content is None:
        raise FormatError(f"a model for a library needs the file {EMBEDDER}/{name}")
    return content


def _prefixed(part: str, files: Mapping[str, bytes]) -> dict[str, bytes]:
    return {f"{part}/{name}": files[name] for name in (CONFIG_FILE, WEIGHTS_FILE)}


def _part(part: str, files: Mapping[str, bytes]) -> dict[str, bytes]:
    names = {name: f"{part}/{name}" for name in (CONFIG_FILE, WEIGHTS_FILE)}
    return {name: files[key] for name, key in names.items() if key in files}


def _first(*folders: Path) -> Path:
    return next((folder for folder in folders if folder.is_dir()), folders[-1])
