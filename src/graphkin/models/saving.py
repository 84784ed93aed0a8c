"""A model on disk: config.json, model.safetensors and a card. No pickle, no leniency."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import safetensors.numpy
from numpy.typing import NDArray
from safetensors import SafetensorError

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

if TYPE_CHECKING:
    from torch import Tensor

FORMAT = "graphkin-model"
VERSION = 1
CLASSES = ("GraphEmbedder", "GraphMatcher")
CONFIG_FILE, WEIGHTS_FILE, CARD_FILE = "config.json", "model.safetensors", "README.md"
PARTS = {"GraphEmbedder": "embedder", "GraphMatcher": "matcher"}
"""The folder of each class, where a folder holds one of each."""
ADDED_OPTIONS: dict[str, Any] = {
    "alignment_pool": "sum",
    "alignment_sharpness": 1.0,
    "alignment_rounds": 3,
    "embedder_norm": "none",
    "message_norm": "none",
    "readout": "gated",
    "token_counts": "plain",
    "node_degrees": False,
    "word_dim": 0,
    "offset_dim": 0,
    "words_known": 0,
    "words_learned": 0,
    "code_bits": 0,
    "code_offsets": False,
    "link": "none",
    "target_scale": 1.0,
    "feature_scaling": False,
    "dropout": 0.0,
    "state_norm": "none",
    "residual": False,
    "message_layers": 1,
    "edge_encoder": "identity",
}
"""Options that came after the first models were saved, whose defaults are what those do."""
KEYS = {"format", "version", "class", "config", "vocabulary", "calibration", "trained_on"}
MOST = {
    "steps": 1000,
    "message_layers": 1000,
    "alignment_rounds": 1000,
    "word_dim": 1 << 16,
    "offset_dim": 1 << 16,
}
"""Of options of a model that is read, where more takes time or memory, but no weights."""
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
    trained_on: dict[str, Any] | None = None
    """What training recorded, ready for JSON: ``task`` with its options, seed and the hash of its
    data; ``training``, the course of the run; ``step`` of the weights; and ``validation`` with the
    hash of its ``data`` and the ``metrics``."""


def shipped_names() -> list[str]:
    """The models that come with the package."""
    return sorted(path.name for path in SHIPPED.iterdir() if path.is_dir())


def model_home(name: str | Path) -> Path:
    """The folder that a name stands for.

    ``edits`` is a model that ships with the package, ``edits/matcher`` one part of it. A folder of
    your own that has such a name is ``./edits``, or a ``Path``.
    """
    if isinstance(name, Path) and name.is_dir():
        return name
    shipped, _, part = str(name).partition("/")
    if shipped in shipped_names() and part in ("", *PARTS.values()):
        return SHIPPED / shipped / part
    if Path(name).is_dir():
        return Path(name)
    raise ModelError(
        f"{name} is neither a model folder nor a model that ships with graphkin "
        f"({', '.join(shipped_names())})"
    )


def model_folder(name: str | Path, kind: str | None = None) -> Path:
    """The folder of one model: config.json, weights and card.

    Args:
        name: a model that ships with the package, a run, or a folder of one or two models.
        kind: the class to take where there is one of each; by default the matcher.
    """
    home = model_home(name)
    parts = [PARTS[kind]] if kind is not None else ["matcher", "embedder"]
    return next((home / part for part in (*parts, "model") if (home / part).is_dir()), home)


def to_files(model: SavedModel, card: str | None = None) -> dict[str, bytes]:
    """A model as the three files of its folder, by name."""
    document: dict[str, Any] = {"format": FORMAT, "version": VERSION, "class": model.kind}
    document["config"] = model.config.to_dict()
    if model.vocabulary is not None:
        document["vocabulary"] = model.vocabulary.to_json()
    if model.calibration is not None:
        document["calibration"] = score_calibration_to_json(model.calibration)
    if model.trained_on is not None:
        document["trained_on"] = model.trained_on
    # Whoever only searches does without torch, which takes a second to load.
    from safetensors import torch as torch_weights

    contiguous = {name: tensor.contiguous() for name, tensor in model.tensors.items()}
    return {
        WEIGHTS_FILE: torch_weights.save(contiguous),
        CONFIG_FILE: _to_bytes(document),
        CARD_FILE: (card or model_card(model)).encode(),
    }


def model_files(folder: Path) -> list[Path]:
    """The files of a model's folder, whether they are there or not."""
    return [folder / name for name in (WEIGHTS_FILE, CONFIG_FILE, CARD_FILE)]


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


def saved_vocabulary(name: str | Path) -> Vocabulary | None:
    """What the tokens of the nodes of a model stand for, without its weights.

    Args:
        name: as :func:`model_folder` takes it.
    """
    file = model_folder(name) / CONFIG_FILE
    return described_vocabulary(read_file(file), str(file))


def described_vocabulary(content: bytes, origin: str) -> Vocabulary | None:
    """The same, of what config.json holds; ``origin`` names it in errors."""
    document = _parse_document(content, origin)
    if "vocabulary" not in document:
        return None
    try:
        return Vocabulary.from_json(document["vocabulary"])
    except FormatError as error:
        raise FormatError(f"{origin}: {error}") from error


def load_model_files(folder: Path, kind: str) -> SavedModel:
    """Reads config, weights, vocabulary and calibration of a model of class ``kind``."""
    if not folder.is_dir():
        raise ModelError(f"{folder} is not a model folder; save_pretrained writes one")
    files = {name: read_file(folder / name) for name in (CONFIG_FILE, WEIGHTS_FILE)}
    return from_files(files, kind, str(folder))


class Description(NamedTuple):
    """What config.json says of a model."""

    config: ModelConfig
    vocabulary: Vocabulary | None
    calibration: Logistic | None
    trained_on: dict[str, Any] | None


def from_files(files: Mapping[str, bytes], kind: str, origin: str) -> SavedModel:
    """A model of class ``kind`` from its files, by name; nothing is read from disk.

    Args:
        files: config and weights.
        kind: the class that it must be of.
        origin: where the files come from, for errors.
    """
    from safetensors import torch as torch_weights

    config, vocabulary, calibration, trained_on = described(files, kind, origin)
    with _damage(origin):
        tensors = torch_weights.load(files[WEIGHTS_FILE])
    return SavedModel(kind, config, tensors, vocabulary, calibration, trained_on)


def weight_arrays(files: Mapping[str, bytes], origin: str) -> dict[str, NDArray[Any]]:
    """The weights in the files of a model, by name, without torch."""
    with _damage(origin):
        return safetensors.numpy.load(files[WEIGHTS_FILE])


def described(files: Mapping[str, bytes], kind: str, origin: str) -> Description:
    """What the files say of a model of class ``kind``; its weights are not read."""
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
    for name, most in MOST.items():
        if getattr(config, name) > most:
            raise FormatError(
                f"{config_file}: {name} is {getattr(config, name)}, at most {most} are read"
            )
    vocabulary = calibration = trained_on = None
    try:
        if "vocabulary" in document:
            vocabulary = Vocabulary.from_json(document["vocabulary"])
        if "calibration" in document:
            calibration = score_calibration_from_json(document["calibration"])
        if "trained_on" in document:
            trained_on = _checked_record(document["trained_on"])
    except FormatError as error:
        raise FormatError(f"{config_file}: {error}") from error
    if vocabulary is not None:
        check_vocabulary(vocabulary, config)
    return Description(config, vocabulary, calibration, trained_on)


def check_vocabulary(vocabulary: Vocabulary, config: ModelConfig) -> None:
    """Refuses a vocabulary of another size than the model's table of tokens."""
    if vocabulary.edge_words is not None:
        if config.edge_input != "types" or config.edge_input_size != vocabulary.edge_types:
            raise ModelError(
                f"a vocabulary of {vocabulary.edge_types} types of edges does not fit a model with "
                f"edge_input {config.edge_input!r} of size {config.edge_input_size}"
            )
        if not vocabulary.words:
            return
    # Labels may also be columns of dense input, behind those of features.
    columns = vocabulary.reads == "labels" and config.node_input == "dense"
    if columns and config.node_input_size > len(vocabulary):
        return
    if config.node_input != "tokens" or config.node_input_size != len(vocabulary):
        raise ModelError(
            f"a vocabulary of {len(vocabulary)} tokens does not fit a model with node_input "
            f"{config.node_input!r} of size {config.node_input_size}"
        )


def _checked_record(record: Any) -> dict[str, Any]:
    """What ``trained_on`` holds; the card is made from it, so that it must be complete."""
    kinds = {"task": dict, "training": dict, "step": int, "validation": dict}
    whole = isinstance(record, dict) and record.keys() == kinds.keys()
    if not whole or not all(isinstance(record[key], kind) for key, kind in kinds.items()):
        raise FormatError(f"trained_on must be an object with {', '.join(kinds)}, got {record!r}")
    metrics = record["validation"].get("metrics")
    numbers = isinstance(metrics, dict) and all(isinstance(v, float) for v in metrics.values())
    if not numbers or not isinstance(record["validation"].get("data"), str):
        raise FormatError(f"trained_on has no data and metrics of validation: {record!r}")
    return dict(record)


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


@contextmanager
def _damage(origin: str) -> Iterator[None]:
    """Reports weights that cannot be read."""
    try:
        yield
    except (SafetensorError, ValueError, KeyError, TypeError) as error:
        raise FormatError(
            f"{origin}/{WEIGHTS_FILE} is damaged or not a safetensors file: {error}"
        ) from error


def _to_bytes(document: dict[str, Any]) -> bytes:
    return json.dumps(document, indent=2).encode() + b"\n"


def model_card(model: SavedModel) -> str:
    """README.md of a model: what it was trained on and how well it did, or just its options."""
    record = model.trained_on
    if record is None:
        parameters = sum(tensor.numel() for tensor in model.tensors.values())
        options = _rows(model.config.to_dict(), "{}")
        return (
            f"# A graphkin {model.kind}\n\n{parameters:,} parameters. Training data and scores "
            f"were not recorded.\n\n| option | value |\n|---|---|\n{options}\n"
        )
    validation = record["validation"]
    settings = {"model": model.config.to_dict()}
    settings |= {table: record[table] for table in ("training", "task")}
    return (
        f"# {model.kind} after {record['step']} steps\n\n"
        f"Validation set {validation['data']}:\n\n"
        f"| metric | value |\n|---|---|\n{_rows(validation['metrics'], '{:.4f}')}\n\n"
        f"```json\n{json.dumps(settings, indent=2)}\n```\n"
    )


def _rows(values: Mapping[str, Any], form: str) -> str:
    return "\n".join(f"| {name} | {form.format(value)} |" for name, value in values.items())
