"""What a library is searched with: an embedder, and where there is one a matcher over it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, get_args

from numpy.typing import NDArray

from graphkin.errors import FormatError, ModelError
from graphkin.files import read_file, write_all_atomically
from graphkin.graphs import Graph
from graphkin.models import GraphEmbedder, GraphMatcher
from graphkin.models.calibration import Calibration
from graphkin.models.pretrained import CONFIG_FILE, PARTS, WEIGHTS_FILE, model_home, shipped_names
from graphkin.search.engine import Metric, Space

EMBEDDER, MATCHER = PARTS["GraphEmbedder"], PARTS["GraphMatcher"]
CALIBRATION_FILE = "calibration.json"
PIN_FILE = "pin.json"


@dataclass(frozen=True)
class Pin:
    """Which model made a library. Codes of different models have nothing to do with each other."""

    name: str
    version: str
    """Of the graphkin that the model came with, or that read it from a folder."""
    weights: str
    """SHA-256 of the embedder's configuration and weights."""

    def __str__(self) -> str:
        return f"{self.name} {self.version} ({self.weights[:12]})"


@dataclass(frozen=True, eq=False)
class SearchModel:
    """Models that belong together, as files, and as what they compute with."""

    pin: Pin
    files: Mapping[str, bytes]
    """Everything that is needed to load it again, by name."""
    embedder: GraphEmbedder
    matcher: GraphMatcher | None = None
    calibration: Calibration | None = None

    @classmethod
    def load(cls, path: str | Path) -> SearchModel:
        """A model that ships with graphkin, by name, or from a folder.

        The folder holds ``embedder/`` and, by choice, ``matcher/`` and ``calibration.json``; or it
        is that of an embedder alone, or of a training run.
        """
        from graphkin import __version__

        home = model_home(path)
        name = str(path) if str(path) in shipped_names() else home.resolve().name
        parts = {EMBEDDER: _first(home / EMBEDDER, home / "model", home), MATCHER: home / MATCHER}
        files = {
            f"{part}/{file}": read_file(folder / file)
            for part, folder in parts.items()
            if folder.is_dir()
            for file in (CONFIG_FILE, WEIGHTS_FILE)
        }
        if (home / CALIBRATION_FILE).exists():
            files[CALIBRATION_FILE] = read_file(home / CALIBRATION_FILE)
        pin = {"name": name, "version": __version__, "weights": _weights_hash(files)}
        return cls.from_files({**files, PIN_FILE: json.dumps(pin).encode()})

    @classmethod
    def of(
        cls,
        embedder: GraphEmbedder,
        matcher: GraphMatcher | None = None,
        calibration: Calibration | None = None,
        name: str = "unnamed",
    ) -> SearchModel:
        """A model from its parts, as they are now."""
        with TemporaryDirectory() as folder:
            home = Path(folder) / name
            embedder.save_pretrained(home / EMBEDDER)
            if matcher is not None:
                matcher.save_pretrained(home / MATCHER)
            if calibration is not None:
                write_all_atomically({home / CALIBRATION_FILE: calibration.to_json().encode()})
            return cls.load(home)

    @classmethod
    def from_files(cls, files: Mapping[str, bytes]) -> SearchModel:
        """Reads the files of a model, as a library keeps them."""
        pin = read_pin(files)
        if pin.weights != _weights_hash(files):
            raise FormatError(f"the weights of the model {pin} are not those that its pin names")
        with TemporaryDirectory() as folder:
            home = Path(folder)
            write_all_atomically({home / name: content for name, content in files.items()})
            embedder = GraphEmbedder.from_pretrained(home / EMBEDDER)
            matcher = None
            if (home / MATCHER).is_dir():
                matcher = GraphMatcher.from_pretrained(home / MATCHER)
        calibration = None
        if CALIBRATION_FILE in files:
            calibration = Calibration.from_json(files[CALIBRATION_FILE])
        if matcher is not None and matcher.vocabulary != embedder.vocabulary:
            raise ModelError(f"embedder and matcher of {pin} differ in what their tokens mean")
        space_of(embedder)
        return cls(pin, dict(files), embedder, matcher, calibration)

    @property
    def space(self) -> Space:
        """Where the embedder's vectors live."""
        return space_of(self.embedder)

    def vectors(self, graphs: Sequence[Graph]) -> NDArray[Any]:
        """(N, columns) what a library is searched by: codes, or float vectors."""
        if self.space.metric == "hamming":
            return self.embedder.codes(graphs)
        return self.embedder.encode(graphs)


def space_of(embedder: GraphEmbedder) -> Space:
    """The space of an embedder's vectors; a Siamese one has none that can be searched."""
    metric = next((name for name in get_args(Metric) if name == embedder.config.similarity), None)
    if metric is None:
        raise ModelError(
            f"a model of {embedder.config.similarity} similarity cannot be searched by distance; "
            f"choose one of {', '.join(get_args(Metric))}"
        )
    return Space(metric, embedder.config.graph_dim)


def read_pin(files: Mapping[str, bytes]) -> Pin:
    """The pin among the files of a model; torch is not needed for it."""
    try:
        return Pin(**json.loads(files[PIN_FILE]))
    except (KeyError, ValueError, TypeError) as error:
        raise FormatError(f"the model of the library is damaged: {PIN_FILE}: {error}") from error


def _weights_hash(files: Mapping[str, bytes]) -> str:
    sha = hashlib.sha256()
    for name in (CONFIG_FILE, WEIGHTS_FILE):
        content = files.get(f"{EMBEDDER}/{name}")
        if content is None:
            raise FormatError(f"a model for a library needs the file {EMBEDDER}/{name}")
        sha.update(hashlib.sha256(content).digest())
    return sha.hexdigest()


def _first(*folders: Path) -> Path:
    return next((folder for folder in folders if folder.is_dir()), folders[-1])
