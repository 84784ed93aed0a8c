"""Models on disk: exact round trips, and nothing damaged or foreign is taken."""

from __future__ import annotations

import errno
import json
import os
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch
from torch import Tensor

from graphkin.errors import ConfigError, FormatError, GraphkinError, ModelError, StorageError
from graphkin.graphs import Graph
from graphkin.graphs.vocabulary import Vocabulary
from graphkin.models import GraphEmbedder, GraphMatcher, ModelConfig, load_model
from graphkin.models.config import MODEL_NAMES
from graphkin.models.saving import ADDED_OPTIONS
from tests.models.samples import SMALL, make_model, random_pairs

Model = GraphEmbedder | GraphMatcher

FILES = {"config.json", "model.safetensors", "README.md"}
PAIR = (Graph(4, [(0, 1), (1, 2), (2, 3)]), Graph(3, [(0, 1), (1, 2), (2, 0)]))


def model_of(name: str, seed: int = 0, **options: Any) -> Model:
    sizes = {key: size for key, size in SMALL.items() if key != "steps" or name != "deepset"}
    return make_model(ModelConfig.named(name, **{**sizes, **options}), seed=seed, double=False)


def assert_same(one: Model, other: Model) -> None:
    assert type(one) is type(other)
    assert one.config == other.config
    theirs = other.state_dict()
    assert list(one.state_dict()) == list(theirs)
    for name, tensor in one.state_dict().items():
        assert torch.equal(tensor, theirs[name]), name


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A saved embedder."""
    model_of("gnn").save_pretrained(tmp_path / "model")
    return tmp_path / "model"


@pytest.mark.parametrize("name", MODEL_NAMES)
def test_round_trip(name: str, tmp_path: Path) -> None:
    model = model_of(name)
    model.save_pretrained(tmp_path / "new" / "folder")
    assert {path.name for path in (tmp_path / "new" / "folder").iterdir()} == FILES
    again = type(model).from_pretrained(str(tmp_path / "new" / "folder"))
    assert_same(again, model)
    assert not again.training
    np.testing.assert_array_equal(again.predict([PAIR]), model.predict([PAIR]))
    assert_same(load_model(tmp_path / "new" / "folder"), model)


@pytest.mark.parametrize(
    "options",
    [
        {"node_input": "tokens", "node_input_size": 5, "edge_input": "types", "edge_input_size": 3},
        {"node_update": "lstm", "message_aggregation": "attention", "shared": False},
        {"reverse_messages": "separate", "node_update": "mlp"},
        {"matching": True, "attention_projections": True, "attention_similarity": "dot"},
    ],
    ids=str,
)
def test_round_trip_of_options(options: dict[str, Any], tmp_path: Path) -> None:
    model = model_of("gnn", **options)
    model.save_pretrained(tmp_path)
    again = type(model).from_pretrained(tmp_path)
    assert_same(again, model)
    pairs = random_pairs(model.config, directed="reverse_messages" in options)
    np.testing.assert_array_equal(again.predict(pairs), model.predict(pairs))


def test_a_folder_of_a_run_stands_for_its_model(tmp_path: Path) -> None:
    model = model_of("gmn")
    model.save_pretrained(tmp_path / "model")
    assert_same(load_model(tmp_path), model)


def test_saving_over_another_model(folder: Path) -> None:
    model = model_of("gmn", seed=5, node_dim=6)
    model.save_pretrained(folder)
    assert_same(GraphMatcher.from_pretrained(folder), model)
    assert {path.name for path in folder.iterdir()} == FILES


def test_saving_changes_nothing_about_the_model(folder: Path) -> None:
    model = model_of("gnn")
    before = model.predict([PAIR])
    model.save_pretrained(folder)
    np.testing.assert_array_equal(model.predict([PAIR]), before)
    assert all(parameter.requires_grad for parameter in model.parameters())


def test_the_card(folder: Path) -> None:
    card = (folder / "README.md").read_text(encoding="utf-8")
    count = sum(parameter.numel() for parameter in model_of("gnn").parameters())
    assert "GraphEmbedder" in card
    assert f"{count:,} parameters" in card
    assert "| node_update | gru |" in card
    model_of("gnn").save_pretrained(folder, card="# Größe\n")
    assert (folder / "README.md").read_text(encoding="utf-8") == "# Größe\n"


def test_the_config_file_is_for_people_too(folder: Path) -> None:
    document = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    assert document["format"] == "graphkin-model"
    assert document["version"] == 1
    assert document["class"] == "GraphEmbedder"
    assert ModelConfig.from_dict(document["config"]) == model_of("gnn").config


# What is refused.

Damage = Callable[[Path], None]


def weights(change: Callable[[dict[str, Tensor]], None]) -> Damage:
    """Rewrites the weights file with its tensors changed."""

    def damage(folder: Path) -> None:
        tensors = safetensors.torch.load_file(folder / "model.safetensors")
        change(tensors)
        safetensors.torch.save_file(tensors, folder / "model.safetensors")

    return damage


def replace(name: str, tensor: Tensor) -> Damage:
    return weights(lambda tensors: tensors.update({name: tensor}))


def document(**changes: Any) -> Damage:
    """Rewrites the config file with top-level keys changed; None removes one."""

    def damage(folder: Path) -> None:
        path = folder / "config.json"
        answer = {**json.loads(path.read_text(encoding="utf-8")), **changes}
        answer = {key: value for key, value in answer.items() if value is not None}
        path.write_text(json.dumps(answer), encoding="utf-8")

    return damage


def options(**changes: Any) -> Damage:
    """Rewrites the config file with model options changed."""

    def damage(folder: Path) -> None:
        answer = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        document(config={**answer["config"], **changes})(folder)

    return damage


def content(file: str, data: bytes) -> Damage:
    def damage(folder: Path) -> None:
        (folder / file).write_bytes(data)

    return damage


def truncated(share: float) -> Damage:
    def damage(folder: Path) -> None:
        data = (folder / "model.safetensors").read_bytes()
        (folder / "model.safetensors").write_bytes(data[: int(len(data) * share)])

    return damage


def removed(file: str) -> Damage:
    return lambda folder: (folder / file).unlink()


BIAS = "network.nodes.bias"

DAMAGED: dict[str, tuple[Damage, type[GraphkinError], str]] = {
    "missing tensor": (
        weights(lambda tensors: tensors.__delitem__(BIAS)),
        ModelError,
        f"lacks the tensor '{BIAS}'",
    ),
    "extra tensor": (
        replace("network.nodes.spare", torch.zeros(1)),
        ModelError,
        "unknown tensor 'network.nodes.spare'",
    ),
    "no tensors": (weights(lambda tensors: tensors.clear()), ModelError, "lacks the tensor"),
    "another shape": (replace(BIAS, torch.zeros(5)), ModelError, r"shape \(5,\), .* asks for \(4,"),
    "another rank": (replace(BIAS, torch.zeros(4, 1)), ModelError, r"shape \(4, 1\), .*\(4,\)"),
    "NaN": (replace(BIAS, torch.full((4,), np.nan)), ModelError, f"'{BIAS}' .* not finite"),
    "infinity": (
        replace(BIAS, torch.tensor([0.0, 0.0, -np.inf, 0.0])),
        ModelError,
        f"'{BIAS}' .* not finite",
    ),
    "integers": (replace(BIAS, torch.zeros(4, dtype=torch.int64)), ModelError, f"'{BIAS}'.*int64"),
    "double": (
        replace(BIAS, torch.full((4,), 0.1, dtype=torch.float64)),
        ModelError,
        f"'{BIAS}'.*float64",
    ),
    "truncated weights": (truncated(0.5), FormatError, "damaged or not a safetensors"),
    "weights short of a byte": (truncated(0.99999), FormatError, "damaged or not a safetensors"),
    "empty weights": (
        content("model.safetensors", b""),
        FormatError,
        "damaged or not a safetensors",
    ),
    "garbage weights": (
        content("model.safetensors", bytes(range(256)) * 40),
        FormatError,
        "damaged or not a safetensors",
    ),
    "weights of a huge header": (
        content("model.safetensors", b"\xff" * 8 + b"{}"),
        FormatError,
        "damaged or not a safetensors",
    ),
    "pickled weights": (
        lambda folder: torch.save({BIAS: torch.zeros(4)}, folder / "model.safetensors"),
        FormatError,
        "damaged or not a safetensors",
    ),
    "no weights": (removed("model.safetensors"), FormatError, "cannot read .*model.safetensors"),
    "no config": (removed("config.json"), FormatError, "cannot read .*config.json"),
    "empty config": (content("config.json", b""), FormatError, "config.json is not valid JSON"),
    "config of text": (content("config.json", b"steps: 5\n"), FormatError, "is not valid JSON"),
    "config not in UTF-8": (
        content("config.json", b"\xff\xfe{}"),
        FormatError,
        "is not valid JSON",
    ),
    "config nested without end": (
        content("config.json", b"[" * 100_000),
        FormatError,
        "is not valid JSON",
    ),
    "config of a list": (content("config.json", b"[1]"), FormatError, "must hold a JSON object"),
    "another format": (document(format="other"), FormatError, "is not a graphkin-model file"),
    "no format": (document(format=None), FormatError, "is not a graphkin-model file"),
    "a later version": (document(version=2), FormatError, "has version 2; this graphkin reads 1"),
    "version as text": (document(version="1"), FormatError, "has version '1'"),
    "no version": (document(version=None), FormatError, "has version None"),
    "unknown top-level key": (document(licence="x"), FormatError, "unknown key 'licence'"),
    "unknown class": (document(**{"class": "Path"}), FormatError, "unknown class 'Path'"),
    "no class": (document(**{"class": None}), FormatError, "unknown class None"),
    "no options": (document(config=None), FormatError, "no table 'config'"),
    "options of a list": (document(config=[1]), FormatError, "no table 'config'"),
    "unknown option": (options(colour="red"), ConfigError, "unknown model option 'colour'"),
    "unknown value": (options(node_update="gated"), ConfigError, "node_update .* got 'gated'"),
    "value of another type": (options(steps="2"), ConfigError, "steps must be of type int"),
    "value out of range": (options(steps=-2), ConfigError, "steps must be at least 0"),
    "options of another size": (options(node_dim=5), ModelError, "the configuration asks for"),
    "options of another class": (options(matching=True), ModelError, "makes a GraphMatcher"),
}


@pytest.mark.parametrize(("damage", "kind", "message"), DAMAGED.values(), ids=DAMAGED)
def test_refused(damage: Damage, kind: type[GraphkinError], message: str, folder: Path) -> None:
    damage(folder)
    with pytest.raises(kind, match=message):
        GraphEmbedder.from_pretrained(folder)


def test_each_class_loads_its_own(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="holds a GraphEmbedder, not a GraphMatcher"):
        GraphMatcher.from_pretrained(folder)
    model_of("gmn").save_pretrained(tmp_path / "matcher")
    with pytest.raises(ModelError, match="holds a GraphMatcher, not a GraphEmbedder"):
        GraphEmbedder.from_pretrained(tmp_path / "matcher")


def test_no_folder(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="nowhere is neither a model folder"):
        GraphEmbedder.from_pretrained(tmp_path / "nowhere")
    (tmp_path / "file").write_text("x", encoding="utf-8")
    with pytest.raises(ModelError, match="file is neither a model folder"):
        GraphEmbedder.from_pretrained(tmp_path / "file")


def test_a_refused_tensor_leaves_the_model_as_it_was() -> None:
    model, other = model_of("gnn"), model_of("gnn", seed=9)
    before = model.predict([PAIR])
    tensors = other.state_dict()
    tensors["network.aggregator.output"] = torch.full_like(
        tensors["network.aggregator.output"], np.nan
    )
    with pytest.raises(ModelError, match=r"a checkpoint: tensor .* not finite"):
        model.load_tensors(tensors, "a checkpoint")
    np.testing.assert_array_equal(model.predict([PAIR]), before)


# Writing that fails.


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """The system refuses to write more into a file, as it does where the disk is full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_no_room_for_the_weights(folder: Path) -> None:
    kept = GraphEmbedder.from_pretrained(folder)
    with files_of_at_most(1000), pytest.raises(StorageError, match=r"cannot write .*safetensors"):
        model_of("gnn", seed=3).save_pretrained(folder)
    assert_same(GraphEmbedder.from_pretrained(folder), kept)
    assert {path.name for path in folder.iterdir()} == FILES


@pytest.mark.parametrize("position", [1, 2, 3])
def test_a_disk_that_fills_up_during_any_file(
    position: int, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Old weights with a new config, or the other way round, would be a third model."""
    kept = GraphEmbedder.from_pretrained(folder)
    full_at(position, monkeypatch)
    with pytest.raises(StorageError, match="No space left"):
        model_of("gnn", seed=3, similarity="cosine").save_pretrained(folder)
    assert_same(GraphEmbedder.from_pretrained(folder), kept)
    assert {path.name for path in folder.iterdir()} == FILES


def full_at(position: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """From its n-th flush on, the disk is full."""
    flushes = []
    flush = os.fsync

    def failing(handle: int) -> None:
        flushes.append(handle)
        if len(flushes) >= position:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        flush(handle)

    monkeypatch.setattr(os, "fsync", failing)


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x", encoding="utf-8")
    with pytest.raises(StorageError, match="cannot write"):
        model_of("gnn").save_pretrained(tmp_path / "file" / "model")


@pytest.mark.parametrize("option", ["steps", "similarity"])
def test_an_option_that_is_missing(tmp_path: Path, option: str) -> None:
    GraphEmbedder(ModelConfig.named("gnn", **SMALL)).save_pretrained(tmp_path)
    document = json.loads((tmp_path / "config.json").read_text())
    del document["config"][option]
    (tmp_path / "config.json").write_text(json.dumps(document))
    with pytest.raises(FormatError, match=f"lacks the option '{option}'"):
        GraphEmbedder.from_pretrained(tmp_path)


def test_a_model_from_before_an_option_was_added(tmp_path: Path) -> None:
    model = GraphEmbedder(ModelConfig.named("gnn", **SMALL))
    model.save_pretrained(tmp_path)
    document = json.loads((tmp_path / "config.json").read_text())
    for option in ADDED_OPTIONS:
        del document["config"][option]
    (tmp_path / "config.json").write_text(json.dumps(document))
    assert GraphEmbedder.from_pretrained(tmp_path).config == model.config


# --- Vocabulary ---------------------------------------------------------------------------

TOKENS = {"node_input": "tokens", "node_input_size": 4}
WORDS = Vocabulary(("mov", "ret", "mové"))


@pytest.mark.parametrize("name", ["gnn", "gmn"])
def test_a_vocabulary_is_kept(name: str, tmp_path: Path) -> None:
    model = model_of(name, **TOKENS)
    assert model.vocabulary is None
    model.vocabulary = WORDS
    model.save_pretrained(tmp_path / "run" / "model")
    for again in (
        type(model).from_pretrained(tmp_path / "run" / "model"),
        load_model(tmp_path / "run"),
    ):
        assert again.vocabulary == WORDS
        assert_same(again, model)


def test_a_model_without_a_vocabulary_has_none(tmp_path: Path) -> None:
    model = model_of("gnn", **TOKENS)
    model.save_pretrained(tmp_path)
    assert "vocabulary" not in json.loads((tmp_path / "config.json").read_text())
    assert GraphEmbedder.from_pretrained(tmp_path).vocabulary is None
    model.vocabulary = WORDS
    model.vocabulary = None
    assert model.vocabulary is None


@pytest.mark.parametrize("options", [{**TOKENS, "node_input_size": 5}, {}], ids=str)
def test_a_vocabulary_that_does_not_fit(options: dict[str, Any]) -> None:
    model = model_of("gnn", **options)
    with pytest.raises(ModelError, match="a vocabulary of 4 tokens does not fit"):
        model.vocabulary = WORDS
    assert model.vocabulary is None


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ("mov", FormatError),
        (["mov", 3, "x"], FormatError),
        (["mov", "mov", "x"], FormatError),
        (["<unknown>", "mov", "x"], FormatError),
        (None, FormatError),
        (["mov"], ModelError),
    ],
)
def test_a_damaged_vocabulary(words: object, error: type[GraphkinError], tmp_path: Path) -> None:
    model = model_of("gnn", **TOKENS)
    model.vocabulary = WORDS
    model.save_pretrained(tmp_path)
    document = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**document, "vocabulary": words}))
    with pytest.raises(error, match=r"vocabulary|config\.json"):
        GraphEmbedder.from_pretrained(tmp_path)


# --- What a model was trained on ----------------------------------------------------------

RECORD = {
    "task": {"task": "meshes", "split": "class", "fold": 3, "data": "ab" * 32, "seed": 1},
    "training": {"steps": 100, "seed": 1},
    "step": 80,
    "validation": {"data": "cd" * 32, "metrics": {"pair_auc": 0.91234}},
}


@pytest.mark.parametrize("name", ["gnn", "gmn"])
def test_a_record_of_the_training_is_kept(name: str, tmp_path: Path) -> None:
    model = model_of(name)
    model.trained_on = RECORD
    model.save_pretrained(tmp_path)
    assert json.loads((tmp_path / "config.json").read_text())["trained_on"] == RECORD
    again = load_model(tmp_path)
    assert again.trained_on == RECORD
    card = (tmp_path / "README.md").read_text()
    assert card.startswith(f"# {type(model).__name__} after 80 steps\n")
    assert f"Validation set {'cd' * 32}" in card
    assert "| pair_auc | 0.9123 |" in card
    assert '"fold": 3' in card
    # It is of these weights alone.
    again.start_from(model_of(name))
    assert again.trained_on is None


def test_a_model_without_a_record_has_none(tmp_path: Path) -> None:
    """As those that were saved before there were records."""
    model_of("gnn").save_pretrained(tmp_path)
    assert "trained_on" not in json.loads((tmp_path / "config.json").read_text())
    assert load_model(tmp_path).trained_on is None


@pytest.mark.parametrize(
    "record",
    [
        None,
        [],
        {},
        {**RECORD, "colour": "red"},
        {**RECORD, "step": "80"},
        {**RECORD, "task": None},
        {**RECORD, "validation": {}},
        {**RECORD, "validation": {"data": "cd", "metrics": {"pair_auc": "high"}}},
    ],
    ids=str,
)
def test_a_damaged_record(record: object, tmp_path: Path) -> None:
    model_of("gnn").save_pretrained(tmp_path)
    document = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**document, "trained_on": record}))
    with pytest.raises(FormatError, match=r"config\.json: trained_on"):
        GraphEmbedder.from_pretrained(tmp_path)


# --- Names --------------------------------------------------------------------------------


def test_every_name_of_a_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that ships, a part of it, a run, a folder of two models and a model's own folder."""
    monkeypatch.chdir(tmp_path)
    assert isinstance(load_model("edits"), GraphMatcher)
    assert isinstance(load_model("edits/embedder"), GraphEmbedder)
    assert isinstance(load_model("functions/matcher"), GraphMatcher)
    assert GraphEmbedder.from_pretrained("edits").config == load_model("edits/embedder").config
    with pytest.raises(ModelError, match="holds a GraphMatcher, not a GraphEmbedder"):
        GraphEmbedder.from_pretrained("edits/matcher")
    embedder, matcher = model_of("gnn"), model_of("gmn")
    embedder.save_pretrained("run/model")
    assert_same(GraphEmbedder.from_pretrained("run"), embedder)
    assert_same(load_model("run"), embedder)
    embedder.save_pretrained("edits/embedder")
    matcher.save_pretrained("edits/matcher")
    assert_same(load_model("./edits"), matcher)
    assert_same(load_model(tmp_path / "edits" / "embedder"), embedder)
    assert load_model("edits").config != matcher.config, "the plain name is that of what ships"
    for name in ("absent", "edits/absent", "edits/embedder/more", "absent/matcher"):
        expected = (
            rf"{name} is neither a model folder nor .* graphkin \(edits, functions, mnemonics\)"
        )
        for load in (load_model, GraphEmbedder.from_pretrained, GraphMatcher.from_pretrained):
            with pytest.raises(ModelError, match=expected):
                load(name)


@pytest.mark.parametrize(
    "options",
    [
        {"steps": 10**9},
        {"steps": 10**9, "shared": False},
        {"message_layers": 10**9},
        {"node_dim": 10**6, "message_dim": 10**6},
        {"graph_dim": 10**7},
        {"graph_dim": 2**40},
        {"node_dim": 10**30},
        {"node_input": "tokens", "node_input_size": 2**40},
        {"similarity": "cosine", "word_dim": 64, "words_known": 2**40, "words_learned": 2**40},
        {"similarity": "cosine", "code_bits": 2**40},
    ],
    ids=str,
)
def test_sizes_are_those_of_the_weights(folder: Path, options: dict[str, Any]) -> None:
    """A model that somebody sent takes no more memory and time than its weights are worth."""
    file = folder / "config.json"
    document = json.loads(file.read_text())
    document["config"] |= options
    file.write_text(json.dumps(document))
    with pytest.raises((FormatError, ModelError)) as error:
        GraphEmbedder.from_pretrained(folder)
    assert str(folder) in str(error.value)
