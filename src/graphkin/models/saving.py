"""A model on disk: config.json, model.safetensors and a card. No pickle, no leniency."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import safetensors.torch
from safetensors import SafetensorError
from torch import Tensor

from graphkin._support.files import read_file, write_all_atomically, write_atomically
from graphkin.errors import FormatError, ModelError
from graphkin.graphs.vocabulary import Vocabulary
from graphkin.models.calibration import (
    Logistic,
    check_score_calibration,
    score_calibration_from_json,
    score_calibration_to_json,
)
from graphkin.models.config import ModelConfig

FORMAT = "graphkin-model"
VERSION = 1
CLASSES = ("GraphEmbedder", "GraphMatcher")
CONFIG_FILE, WEIGHTS_FILE, CARD_FILE = "config.json", "model.safetensors", "README.md"
PARTS = {"GraphEmbedder": "embedder", "GraphMatcher": "matcher"}
"""The folder of each class, where a folder holds one of each."""
ADDED_OPTIONS: dict[str, Any] = {
    "alignment_pool": "sum",
    "alignment_sharpness": 1.0,
    "embedder_norm": "none",
    "message_norm": "none",
    "readout": "gated",
}
"""Options that came after the first models were saved, whose defaults are what those do."""
KEYS = {"format", "version", "class", "config", "vocabulary", "calibration"}
SHIPPED = Path(__file__).parent / "shipped"


@dataclass(frozen=True)
class SavedModel:
    """What a model folder holds."""

    kind: str
    """The class of the model."""
    config: ModelConfig
    tensors: dict[str, Tensor]
    vocabulary: Vocabulary | None = None
    """What the tokens of nodes stand for."""
    calibration: Logistic | None = None
    """From a score to a probability."""


def shipped_names() -> list[str]:
    """The models that come with the package."""
    return sorted(path.name for path in SHIPPED.iterdir() if path.is_dir())


def model_home(path: str | Path) -> Path:
    """The folder of a model: one that ships with the package where ``path`` is its plain name."""
    name = str(path)
    if name in shipped_names():
        return SHIPPED / name
    if Path(path).is_dir():
        return Path(path)
    raise ModelError(
        f"{name} is neither a model folder nor a model that ships with graphkin "
        f"({', '.join(shipped_names())})"
    )


def part_home(path: str | Path, kind: str) -> Path:
    """The folder of a model of class ``kind``, which may lie beside one of the other class."""
    home = model_home(path)
    part = home / PARTS[kind]
    return part if part.is_dir() else home


def weights_home(folder: Path) -> Path:
    """The folder of a model, or that of the best weights where ``folder`` is a run's."""
    nested = folder / "model"
    return nested if nested.is_dir() else folder


def to_files(model: SavedModel, card: str | None = None) -> dict[str, bytes]:
    """A model as the three files of its folder, by name."""
    document: dict[str, Any] = {"format": FORMAT, "version": VERSION, "class": model.kind}
    document["config"] = model.config.to_dict()
    if model.vocabulary is not None:
        document["vocabulary"] = model.vocabulary.to_json()
    if model.calibration is not None:
        document["calibration"] = score_calibration_to_json(model.calibration)
    contiguous = {name: tensor.contiguous() for name, tensor in model.tensors.items()}
    return {
        WEIGHTS_FILE: safetensors.torch.save(contiguous),
        CONFIG_FILE: _to_bytes(document),
        CARD_FILE: (card or _default_card(model)).encode(),
    }


def save_model_files(folder: Path, model: SavedModel, card: str | None) -> None:
    """Writes the three files; they replace older ones only when all are complete."""
    contents = to_files(model, card)
    write_all_atomically({folder / name: content for name, content in contents.items()})


def save_calibration(folder: Path, calibration: Logistic) -> None:
    """Writes a calibration into the folder of a model, and leaves all else there as it is."""
    check_score_calibration(calibration)
    document = _read_document(folder)
    document["calibration"] = score_calibration_to_json(calibration)
    write_atomically(folder / CONFIG_FILE, _to_bytes(document))


def saved_class(folder: Path) -> str:
    """The class of the model in a folder."""
    return str(_read_document(folder)["class"])


def load_model_files(folder: Path, kind: str) -> SavedModel:
    """Reads config, weights, vocabulary and calibration of a model of class ``kind``."""
    if not folder.is_dir():
        raise ModelError(f"{folder} is not a model folder; save_pretrained writes one")
    files = {name: read_file(folder / name) for name in (CONFIG_FILE, WEIGHTS_FILE)}
    return from_files(files, kind, str(folder))


def from_files(files: Mapping[str, bytes], kind: str, origin: str) -> SavedModel:
    """A model of class ``kind`` from its files, by name; nothing is read from disk.

    Args:
        files: config and weights.
        kind: the class that it must be of.
        origin: where the files come from, for errors.
    """
    for name in (CONFIG_FILE, WEIGHTS_FILE):
        if name not in files:
            raise FormatError(f"{origin} lacks the file {name}")
    config_file = f"{origin}/{CONFIG_FILE}"
    document = _parse_document(files[CONFIG_FILE], config_file)
    if document.get("class") != kind:
        raise ModelError(f"{origin} holds a {document.get('class')}, not a {kind}")
    if not isinstance(document.get("config"), dict):
        raise FormatError(f"{config_file} has no table 'config'")
    for field in fields(ModelConfig):
        if field.name not in document["config"] and field.name not in ADDED_OPTIONS:
            raise FormatError(f"{config_file} lacks the option {field.name!r}")
    config = ModelConfig.from_dict(document["config"])
    vocabulary = calibration = None
    try:
        if "vocabulary" in document:
            vocabulary = Vocabulary.from_json(document["vocabulary"])
        if "calibration" in document:
            calibration = score_calibration_from_json(document["calibration"])
    except FormatError as error:
        raise FormatError(f"{config_file}: {error}") from error
    if vocabulary is not None:
        check_vocabulary(vocabulary, config)
    tensors = _parse_tensors(files[WEIGHTS_FILE], f"{origin}/{WEIGHTS_FILE}")
    return SavedModel(kind, config, tensors, vocabulary, calibration)


def check_vocabulary(vocabulary: Vocabulary, config: ModelConfig) -> None:
    """Refuses a vocabulary of another size than the model's table of tokens."""
    if config.node_input != "tokens" or config.node_input_size != len(vocabulary):
        raise ModelError(
            f"a vocabulary of {len(vocabulary)} tokens does not fit a model with node_input "
            f"{config.node_input!r} of size {config.node_input_size}"
        )


def _read_document(folder: Path) -> dict[str, Any]:
    if not folder.is_dir():
        raise ModelError(f"{folder} is not a model folder; save_pretrained writes one")
    return _parse_document(read_file(folder / CONFIG_FILE), str(folder / CONFIG_FILE))


def _parse_document(content: bytes, origin: str) -> dict[str, Any]:
    try:
        document = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{origin} is not valid JSON: {error}") from error
    if not isinstance(document, dict):
        raise FormatError(f"{origin} must hold a JSON object")
    if document.get("format") != FORMAT:
        raise FormatError(f"{origin} is not a {FORMAT} file")
    unknown = sorted(set(document) - KEYS)
    if unknown:
        raise FormatError(f"{origin} has an unknown key {unknown[0]!r}")
    if document.get("version") != VERSION:
        raise FormatError(
            f"{origin} has version {document.get('version')!r}; this graphkin reads {VERSION}"
        )
    if document.get("class") not in CLASSES:
        raise FormatError(f"{origin} names an unknown class {document.get('class')!r}")
    return document


def _parse_tensors(content: bytes, origin: str) -> dict[str, Tensor]:
    try:
        return safetensors.torch.load(content)
    except (SafetensorError, ValueError, KeyError) as error:
        raise FormatError(f"{origin} is damaged or not a safetensors file: {error}") from error


def _to_bytes(document: dict[str, Any]) -> bytes:
    return json.dumps(document, indent=2).encode() + b"\n"


def _default_card(model: SavedModel) -> str:
    parameters = sum(tensor.numel() for tensor in model.tensors.values())
    options = "\n".join(f"| {name} | {value} |" for name, value in model.config.to_dict().items())
    return (
        f"# A graphkin {model.kind}\n\n{parameters:,} parameters. Training data and scores were "
        f"not recorded.\n\n| option | value |\n|---|---|\n{options}\n"
    )
