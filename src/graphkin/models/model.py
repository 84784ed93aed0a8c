"""What embedders and matchers have in common: scoring of pairs, ranking, saving and loading."""

from __future__ import annotations

import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from graphkin._support.progress import Progress
from graphkin.errors import MissingDependencyError, ModelError
from graphkin.graphs import Graph, PairBatch
from graphkin.graphs.collections import listed
from graphkin.graphs.converters.attributes import AttributeNames
from graphkin.graphs.packing import checked_pairs, distinct_graphs
from graphkin.graphs.vocabulary import Vocabulary
from graphkin.models.attention import CrossAttention
from graphkin.models.bounded_sizes import BoundedSizes, OversizedError
from graphkin.models.calibration import Logistic, check_score_calibration
from graphkin.models.config import ModelConfig, Similarity
from graphkin.models.input_graphs import attribute_names, read_graphs
from graphkin.models.layers import READOUTS, NodeUpdateCell
from graphkin.models.network import GraphNetwork
from graphkin.models.node_matching import AttentionMaps, NodeMatch, PartnerMaps, assigned
from graphkin.models.own_parts import configured_class, own_parts, put_back
from graphkin.models.saving import (
    SavedModel,
    check_vocabulary,
    from_files,
    load_model_files,
    model_folder,
    save_model_files,
    to_files,
)
from graphkin.models.similarity import (
    VECTOR_SIMILARITIES,
    Alignment,
    JointHead,
    SiameseHead,
    TargetLink,
    alignment_similarity,
)

if TYPE_CHECKING:
    from graphkin._support.progress import Progress


@dataclass(frozen=True)
class PairOutput:
    """What a model says of a batch of P pairs."""

    scores: Tensor
    """(P,) similarity, higher is more alike."""
    left: Tensor
    """(P, G) vectors of the first graphs."""
    right: Tensor
    """(P, G) vectors of the second graphs."""


@dataclass(frozen=True)
class Ranked:
    """A candidate in a ranking."""

    index: int
    """Its position in the list of candidates."""
    score: float
    """Its similarity to the query, as ``predict`` gives it."""


class GraphModel(nn.Module, ABC):
    """A network with a similarity on top; :class:`GraphEmbedder` and :class:`GraphMatcher`."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self._vocabulary: Vocabulary | None = None
        self._calibration: Logistic | None = None
        self.trained_on: dict[str, Any] | None = None
        """What training recorded of task, data and scores; saved with the model."""
        self.name: str | None = None
        """Which model it was asked for by name, if it was."""
        self.history: list[dict[str, Any]] = []
        """Loss and validation metrics in the course of the last :meth:`fit`."""
        self.network = GraphNetwork(config)
        self.head: SiameseHead | JointHead
        if config.similarity == "siamese":
            self.head = SiameseHead(config.graph_dim)
        if config.similarity == "joint":
            self.head = JointHead()
            self.embedding = GraphNetwork(config.embedding())
        if config.link != "none":
            self.link = TargetLink(config)

    @abstractmethod
    def forward(self, batch: PairBatch, steps: int | None = None) -> PairOutput:
        """Scores and vectors of a packed batch of pairs."""

    @abstractmethod
    def _scores(
        self, pairs: list[tuple[Graph, Graph]], steps: int | None, progress: Progress | None
    ) -> NDArray[np.float32]:
        """(P,) the score of each pair, of graphs as the network takes them."""

    @abstractmethod
    def explain(self, left: Graph, right: Graph, *, steps: int | None = None) -> AttentionMaps:
        """Where the nodes of each graph look in the other."""

    def partners(self, left: Graph, right: Graph) -> PartnerMaps:
        """Where each node of either graph looks most in the other.

        Attention in every step, and assignments, take memory for |V1| x |V2| weights all the same.
        """
        return PartnerMaps.of(self.explain(left, right))

    def match(self, left: Graph, right: Graph, *, steps: int | None = None) -> list[NodeMatch]:
        """Which node of one graph is which of the other: the best one-to-one assignment.

        Two nodes fit as well as they look at each other after the last step, the geometric mean of
        their attention both ways; the sum of that is largest. Where one graph is larger, some of
        its nodes have no partner.
        """
        maps = self.explain(left, right, steps=steps)
        return assigned(maps.left_to_right[-1], maps.right_to_left[-1])

    def predict(
        self,
        pairs: Iterable[Sequence[Graph]],
        *,
        steps: int | None = None,
        progress: Progress | None = None,
        probability: bool = False,
    ) -> NDArray[np.float32]:
        """Similarity of each pair, (P,) float32; higher is more alike.

        A model that was trained on target values gives such values instead, in their unit. With
        ``probability`` it is the probability that the pair is similar, from 0 to 1, by the
        model's calibration.
        """
        if probability:
            self._check_probability(steps)
        scores = self._scores(self._read_pairs(pairs), steps, progress)
        if probability:
            assert self.calibration is not None, "it was checked"
            return self.calibration(scores.astype(np.float64)[:, None]).astype(np.float32)
        return self.linked(scores)

    def similarities(
        self,
        pairs: Iterable[Sequence[Graph]],
        *,
        steps: int | None = None,
        progress: Progress | None = None,
    ) -> NDArray[np.float32]:
        """Of each pair, (P,) float32: higher is more alike, whatever targets it was trained on."""
        return self._scores(self._read_pairs(pairs), steps, progress)

    @torch.no_grad()
    def linked(self, scores: NDArray[np.float32]) -> NDArray[np.float32]:
        """Scores as values in the unit of targets, where the model was trained on some."""
        if self.config.link == "none":
            return scores
        values: Tensor = self.link(torch.from_numpy(scores).to(self.device))
        return values.float().cpu().numpy()

    def scores(
        self, queries: Iterable[Graph], pool: Iterable[Graph], *, steps: int | None = None
    ) -> NDArray[np.float32]:
        """(Q, P) float32: what :meth:`predict` gives for every query with every graph of a pool."""
        queries, pool = self.read(queries), self.read(pool)
        matrix = np.empty((len(queries), len(pool)), dtype=np.float32)
        for row, query in enumerate(queries):
            matrix[row] = self.predict([(query, graph) for graph in pool], steps=steps)
        return matrix

    def read(self, graphs: Iterable[Graph]) -> list[Graph]:
        """Graphs as the model takes them: labels become tokens by its vocabulary.

        Graphs of NetworkX and PyG are converted, by the attributes that the model was trained on.
        """
        return read_graphs(graphs, self.vocabulary, self.attribute_names)

    @property
    def attribute_names(self) -> AttributeNames:
        """Which attributes of graph files and NetworkX graphs the model was trained on."""
        return attribute_names(self.trained_on)

    def _read_pairs(self, pairs: Iterable[Sequence[Graph]]) -> list[tuple[Graph, Graph]]:
        checked = checked_pairs(pairs, self.attribute_names)
        if not checked or not checked[0][0].has_text:
            return checked
        graphs, left, right = distinct_graphs(checked)
        known = self.read(graphs)
        return [(known[a], known[b]) for a, b in zip(left.tolist(), right.tolist(), strict=True)]

    def fit(self, examples: Any, answers: Any = None, **options: Any) -> Self:
        """Trains the model on your own graphs; see :func:`graphkin.learning.fitting.fit`.

        Args:
            examples: graphs and their classes as ``answers``; pairs with labels or target values;
                triplets without answers; or one of the datasets of ``graphkin.learning.datasets``.
            answers: one for each example.
            options: further options of that function, such as ``seed`` and ``steps``.

        Returns:
            The model itself, with its best weights; :attr:`history` tells how it came to them.
        """
        # Training lies above models: it is looked up when it is asked for.
        fit = import_module("graphkin.learning.fitting").fit
        fit(self, examples, answers, **options)
        return self

    def begin_anew(self, config: ModelConfig, seed: int) -> None:
        """Becomes an untrained model of other options, with weights drawn by ``seed``.

        Modules that a person put into it stay, and so do their weights.
        """
        kept = own_parts(self)
        with torch.random.fork_rng(devices=()):
            torch.manual_seed(seed)
            name, history = self.name, self.history
            configured_class(type(self)).__init__(self, config)
            self.name, self.history = name, history
        put_back(self, kept)

    def lessons(self, vectors: Tensor) -> list[tuple[Tensor, Similarity]]:
        """What a contrastive loss compares, each with its similarity: the vectors."""
        return [(vectors, self.config.similarity)]

    def compare(self, left: Tensor, right: Tensor) -> Tensor:
        """Similarity of graph vectors: (P, G) x (P, G) -> (P,)."""
        if self.config.similarity in ("siamese", "joint"):
            distances: Tensor = self.head(left, right)
            return -distances
        if self.config.similarity == "alignment":
            return alignment_similarity(left, right)
        return VECTOR_SIMILARITIES[self.config.similarity](left, right)

    def prepare(self, batch: PairBatch) -> PairBatch:
        """Computes what the model derives from a batch: off a training loop's critical path."""
        if self.config.attends:
            _ = batch.groups
        if self.config.reverse_messages != "none" or self.config.node_degrees:
            _ = batch.graphs.outgoing
        if self.network.starts_alike:
            _ = batch.graphs.degree_classes
        return batch

    def rank(
        self,
        query: Graph,
        candidates: Iterable[Graph],
        top_k: int | None = None,
        *,
        steps: int | None = None,
    ) -> list[Ranked]:
        """The candidates most similar to the query, best first; all of them without ``top_k``."""
        if top_k is not None and (not isinstance(top_k, Integral) or top_k < 1):
            raise ModelError(f"top_k must be at least 1, got {top_k}")
        pairs = self._read_pairs((query, candidate) for candidate in listed(candidates))
        scores = self._scores(pairs, steps, None)
        values = self.linked(scores)
        order = np.argsort(-scores, kind="stable")[:top_k]
        return [Ranked(int(index), float(values[index])) for index in order]

    @property
    def vocabulary(self) -> Vocabulary | None:
        """What the tokens of nodes stand for; saved with the model."""
        return self._vocabulary

    @vocabulary.setter
    def vocabulary(self, vocabulary: Vocabulary | None) -> None:
        if vocabulary is not None:
            check_vocabulary(vocabulary, self.config)
        self._vocabulary = vocabulary

    @property
    def calibration(self) -> Logistic | None:
        """From a score to the probability that a pair is similar; saved with the model.

        It holds where similar and dissimilar pairs are equally many. Where the similar ones are
        rare, as among the candidates of a search, the probability is lower: a library has a
        :class:`~graphkin.models.calibration.Calibration` of its own.
        """
        return self._calibration

    @calibration.setter
    def calibration(self, calibration: Logistic | None) -> None:
        if calibration is not None:
            check_score_calibration(calibration)
        self._calibration = calibration

    def _check_probability(self, steps: int | None) -> None:
        """Refuses to give probabilities where there is no calibration for them."""
        if self.calibration is None:
            raise ModelError(
                "the model has no calibration, so its scores have no probability; "
                "`graphkin calibrate` fits one"
            )
        if steps not in (None, self.config.steps):
            raise ModelError(
                f"the calibration is for {self.config.steps} propagation steps, not for {steps}; "
                "leave steps out"
            )

    @property
    def device(self) -> torch.device:
        return next(self.parameters()).device

    def as_tensor(self, vectors: NDArray[Any]) -> Tensor:
        """Vectors as a tensor of the model's own device and dtype."""
        weight = next(self.parameters())
        return torch.from_numpy(np.ascontiguousarray(vectors)).to(weight.device, weight.dtype)

    def save_pretrained(self, path: str | Path, card: str | None = None) -> None:
        """Writes config.json, model.safetensors and a model card (README.md) into a folder.

        Raises:
            ModelError: the model has a class or modules of a person's own, which config.json cannot
                describe.
        """
        save_model_files(Path(path), self._saved(), card)

    def push_to_hub(self, repository: str, *, token: str | None = None) -> str:
        """Uploads what :meth:`save_pretrained` writes to a model repository; returns its address.

        Args:
            repository: ``owner/name``; it is made where it does not exist.
            token: of your account; by default the one that ``huggingface-cli login`` stored.

        Raises:
            MissingDependencyError: huggingface_hub is not installed.
        """
        try:
            from huggingface_hub import HfApi
        except ImportError as error:
            raise MissingDependencyError(
                "huggingface_hub is not installed; run: pip install 'graphkin[hub]'"
            ) from error
        api = HfApi(token=token)
        address = api.create_repo(repository, repo_type="model", exist_ok=True)
        with tempfile.TemporaryDirectory() as folder:
            self.save_pretrained(folder)
            api.upload_folder(repo_id=repository, folder_path=folder, repo_type="model")
        return str(address)

    def to_files(self) -> dict[str, bytes]:
        """What :meth:`save_pretrained` writes, by name."""
        return to_files(self._saved())

    @property
    def own_parts(self) -> list[str]:
        """What a configuration does not make: the class, and modules that a person put here."""
        kind = type(self)
        parts = [] if kind is configured_class(kind) else [f"the class {kind.__name__}"]
        return parts + [
            f"{type(part).__name__} at {path}" for path, part in own_parts(self).items()
        ]

    def _saved(self) -> SavedModel:
        own = self.own_parts
        if own:
            raise ModelError(
                f"a model folder cannot hold {', '.join(own)}: config.json does not describe it; "
                "keep model.state_dict() with safetensors.torch.save_file, and to load, build the "
                "model again and call its load_state_dict"
            )
        tensors = {name: tensor.detach().cpu() for name, tensor in self.state_dict().items()}
        kind = type(self).__name__
        about = (self.vocabulary, self.calibration, self.trained_on)
        return SavedModel(kind, self.config, tensors, *about)

    @classmethod
    def from_pretrained(cls, path: str | Path) -> Self:
        """Loads a folder that :meth:`save_pretrained` wrote; nothing but an exact fit is taken.

        A run stands for its best weights, and the plain name of a model that ships with the
        package, ``functions``, for its folder; one of that name of your own is ``./functions``.
        """
        if cls is not configured_class(cls):
            raise ModelError(
                f"{cls.__name__} is a class of your own, and a model folder holds a "
                f"{configured_class(cls).__name__}; build yours, and call its load_state_dict"
            )
        return cls._restored(load_model_files(model_folder(path, cls.__name__), cls.__name__), path)

    @classmethod
    def from_files(cls, files: Mapping[str, bytes], origin: str) -> Self:
        """The model of files that :meth:`to_files` made; ``origin`` names them in errors."""
        return cls._restored(from_files(files, cls.__name__, origin), origin)

    @classmethod
    def _restored(cls, saved: SavedModel, origin: str | Path) -> Self:
        # Whoever wrote the configuration chose its sizes.
        try:
            with BoundedSizes(saved.tensors):
                model = cls(saved.config)
        except OversizedError as error:
            raise ModelError(
                f"{origin} does not hold the weights that its configuration asks for: {error}"
            ) from error
        model.load_tensors(saved.tensors, str(origin))
        model.vocabulary = saved.vocabulary
        model.calibration = saved.calibration
        model.trained_on = saved.trained_on
        model.eval()
        return model

    def start_from(self, other: GraphModel) -> None:
        """Takes over the weights of a model of the same shape, trained before.

        A matcher may start from an embedder: what matching adds begins at 0, so that it first
        computes just what the embedder does.
        """
        if self.vocabulary != other.vocabulary:
            raise ModelError("the model to start from has another vocabulary; use its words")
        tensors = other.state_dict()
        if self.config.encodes_apart and other.config.similarity != self.config.similarity:
            # It compares nodes: the encoder and the steps are what the two have in common, and
            # how rare words are.
            own = self.state_dict()
            shared = [f"words.{name}" for name in ("hashes", "rarity", "unseen")]
            shared += [name for name in own if name.startswith("network.")]
            tensors = own | {name: tensors[name] for name in shared if name in tensors}
        elif self.config.matching and not other.config.matching:
            own = self.state_dict()
            added = _tensor_names(self, CrossAttention)
            if self.config.similarity == "alignment":
                # It compares nodes, and has no use for a readout.
                readouts = _tensor_names(other, *READOUTS.values())
                tensors = {name: tensors[name] for name in tensors if name not in readouts}
                added |= _tensor_names(self, Alignment)
            tensors |= {name: own[name] for name in added}
            for path, module in self.named_modules():
                if isinstance(module, NodeUpdateCell):
                    tensors[f"{path}.match_weight"] = torch.zeros_like(module.match_weight)
        self.load_tensors(tensors, "the model to start from")

    def load_tensors(self, tensors: dict[str, Tensor], origin: str) -> None:
        """Takes over weights that fit by name and shape; ``origin`` names them in errors.

        A calibration, and the record of a training, do not outlive the weights that they are of.
        """
        own = self.state_dict()
        for name in own:
            if name not in tensors:
                raise ModelError(f"{origin} lacks the tensor {name!r}")
        for name, tensor in tensors.items():
            if name not in own:
                raise ModelError(f"{origin} holds an unknown tensor {name!r}")
            if tensor.shape != own[name].shape:
                raise ModelError(
                    f"{origin}: tensor {name!r} has shape {tuple(tensor.shape)}, "
                    f"the configuration asks for {tuple(own[name].shape)}"
                )
            if tensor.dtype != own[name].dtype:
                raise ModelError(
                    f"{origin}: tensor {name!r} is of {tensor.dtype}, "
                    f"the model's is of {own[name].dtype}"
                )
            if not tensor.isfinite().all():
                raise ModelError(f"{origin}: tensor {name!r} holds values that are not finite")
        self.load_state_dict(tensors)
        self.calibration = self.trained_on = None


def _tensor_names(model: nn.Module, *kinds: type[nn.Module]) -> set[str]:
    """The names, in the model's state, of the tensors of all its layers of some kinds."""
    return {
        f"{path}.{name}"
        for path, module in model.named_modules()
        if isinstance(module, kinds)
        for name in module.state_dict()
    }


def as_config(config: ModelConfig | str, *, matching: bool) -> ModelConfig:
    """The options of a model to make, given as such or by the name of a model.

    Args:
        config: what a person gave.
        matching: whether a matcher is to be made of it.
    """
    options = ModelConfig.named(config) if isinstance(config, str) else config
    if not isinstance(options, ModelConfig):
        raise ModelError(f"a model is made from a ModelConfig or a name, got {config!r}")
    if options.matching != matching:
        kind = "GraphMatcher" if options.matching else "GraphEmbedder"
        raise ModelError(f"a config with matching={options.matching} makes a {kind}")
    return options
