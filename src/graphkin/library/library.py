"""A library of graphs that is searched by code and reranked by matching."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from graphkin.errors import ConfigError, GraphError, GraphkinError, ModelError, StorageError
from graphkin.graphs import Graph
from graphkin.library.engines.base import Engine, UnknownIdError, Verification
from graphkin.library.records import Filter, Row
from graphkin.results.document import Hit
from graphkin.results.known_function import KnownFunction

if TYPE_CHECKING:
    from graphkin._support.progress import Progress
    from graphkin.library.models import ModelId, SearchModel
    from graphkin.models import GraphEmbedder

MILVUS = "milvus://"
DEFAULT_MODEL = "functions"
PAIRS_AT_ONCE = 5_000
"""Pairs whose graphs are in memory together while they are scored."""
EVIDENCE_NODES = 4_000_000
"""Attention weights of a pair, above which no evidence is computed for it."""


class Library:
    """A durable library: one SQLite file, or a Milvus collection (``milvus://host:port/name``).

    It carries the models that it is searched with, so that it opens anywhere, and takes nothing
    that another model made.

    Example:
        >>> from graphkin import Graph, GraphEmbedder, Library, ModelConfig
        >>> from graphkin.library.models import SearchModel
        >>> import tempfile, pathlib
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "library.kin"
        >>> embedder = GraphEmbedder(ModelConfig.named("gnn", similarity="hamming"))
        >>> ring = Graph(3, [(0, 1), (1, 2), (2, 0)])
        >>> with Library.create(path, SearchModel.of(embedder)) as index:
        ...     added = index.add([ring], [{"function": "ring"}])
        ...     [hit.entry.function for hit in index.search(ring)]
        ['ring']
    """

    def __init__(self, engine: Engine | None, path: str | Path = "") -> None:
        self._engine = engine
        self._path = path
        self._is_open = True

    @property
    def engine(self) -> Engine:
        """What keeps the graphs."""
        if not self._is_open:
            raise StorageError(f"the library {self._path} is closed; open it again")
        if self._engine is None:
            raise StorageError(f"{self._path} does not exist, and nothing was added to it yet")
        return self._engine

    @classmethod
    def create(
        cls,
        path: str | Path,
        model: str | Path | SearchModel = DEFAULT_MODEL,
        *,
        approximate: bool = False,
        payloads: str | Path | None = None,
    ) -> Self:
        """A new, empty library.

        Args:
            path: the file, which must not exist, or the address of a Milvus collection.
            model: what makes its codes: a model that ships with graphkin, a folder, or models
                at hand. The library keeps a copy.
            approximate: search by an inverted file, which is faster beyond tens of millions of
                graphs and misses some of the nearest; see :meth:`verify`.
            payloads: where a Milvus library keeps its graphs.
        """
        from graphkin.library.models import SearchModel

        if not isinstance(model, SearchModel):
            model = SearchModel.load(model)
        index = cls(_new_engine(path, model, approximate, payloads), path)
        index.__dict__["model"] = model
        return index

    @classmethod
    def open(
        cls,
        path: str | Path,
        model: str | Path | SearchModel | None = None,
        *,
        payloads: str | Path | None = None,
    ) -> Self:
        """A library that exists; a file that does not is made by the first :meth:`add`.

        Args:
            path: the file, or the address of a Milvus collection.
            model: refuse a library that another model made.
            payloads: where a Milvus library keeps its graphs, if they were moved.
        """
        from graphkin.library.models import SearchModel

        if model is not None and not isinstance(model, SearchModel):
            model = SearchModel.load(model)
        engine: Engine
        if str(path).startswith(MILVUS):
            from graphkin.library.engines.milvus.engine import MilvusEngine

            engine = MilvusEngine.open(str(path), payloads=payloads)
        else:
            from graphkin.library.engines.sqlite.engine import SqliteEngine

            if not os.path.lexists(path):
                absent = cls(None, path)
                absent.__dict__["model"] = model or SearchModel.load(DEFAULT_MODEL)
                return absent
            engine = SqliteEngine.open(path)
        index = cls(engine, path)
        if model is not None and model.model_id.weights != index.model_id.weights:
            engine.close()
            raise ModelError(
                f"{path} was made by the model {index.model_id}, not by {model.model_id}; make "
                "a new library for another model"
            )
        return index

    @cached_property
    def model(self) -> SearchModel:
        """The models that the library carries."""
        from graphkin.library.models import SearchModel

        return SearchModel.from_files(self.engine.documents())

    @cached_property
    def model_id(self) -> ModelId:
        """Which model made the library."""
        from graphkin.library.models import read_model_id

        return read_model_id(self.engine.documents())

    @property
    def embedder(self) -> GraphEmbedder:
        return self.model.embedder

    def add(
        self,
        graphs: Sequence[Graph],
        metadata: Sequence[Mapping[str, Any] | KnownFunction] | None = None,
    ) -> int:
        """Adds graphs, and returns how many were new.

        A graph that is there already, of the same file, name and address, is skipped. What was
        added survives whatever happens after the call.

        Args:
            graphs: with tokens of the vocabulary of ``embedder``, where it has one.
            metadata: what is known of each; the fields of :class:`KnownFunction` are the keys.
        """
        if metadata is None:
            metadata = [{}] * len(graphs)
        if len(metadata) != len(graphs):
            raise ConfigError(f"{len(graphs)} graphs with metadata for {len(metadata)}")
        entries = [
            item if isinstance(item, KnownFunction) else KnownFunction.from_mapping(item)
            for item in metadata
        ]
        return self.add_rows(self.rows(graphs, entries))

    def rows(self, graphs: Sequence[Graph], entries: Sequence[KnownFunction]) -> list[Row]:
        """Embeds graphs; equal ones once."""
        hashes = [graph.digest() for graph in graphs]
        first: dict[str, int] = {}
        for place, content in enumerate(hashes):
            first.setdefault(content, place)
        places = dict(zip(first, range(len(first)), strict=True))
        vectors = self.model.vectors([graphs[place] for place in first.values()])
        return [
            Row(entry.key(content), entry, content, graph, vectors[places[content]])
            for graph, content, entry in zip(graphs, hashes, entries, strict=True)
        ]

    def add_rows(self, rows: Sequence[Row]) -> int:
        """Adds rows that :meth:`rows` of a library of the same model made."""
        if self._engine is None:
            self._engine = _new_engine(self._path, self.model)
        return self.engine.add(rows)

    def remove(self, where: Filter) -> int:
        """Removes what fits, and returns how many that was; an empty filter is refused."""
        if where.is_empty():
            raise ConfigError("a filter without a condition would remove everything")
        return self.engine.remove(where)

    def tag(self, where: Filter, tags: Mapping[str, str]) -> int:
        """Adds tags to what fits, and returns how many that was; an empty filter is refused.

        A tag that is there already gets the new value, other tags stay.
        """
        if where.is_empty():
            raise ConfigError("a filter without a condition would tag everything")
        if not tags:
            raise ConfigError("no tags are given; name at least one, such as {'reviewed': 'yes'}")
        return self.engine.tag(where, KnownFunction.from_mapping({"tags": tags}).tags)

    def search(
        self,
        query: Graph,
        top_k: int = 10,
        *,
        rerank: int = 0,
        where: Filter | None = None,
        evidence: bool = False,
    ) -> list[Hit]:
        """The kin of one graph, best first; see :meth:`search_many`."""
        if not isinstance(query, Graph):
            raise GraphError(f"search takes a graph, got {type(query).__name__}")
        return self.search_many([query], top_k, rerank=rerank, where=where, evidence=evidence)[0]

    def search_many(
        self,
        queries: Sequence[Graph],
        top_k: int = 10,
        *,
        rerank: int = 0,
        where: Filter | None = None,
        evidence: bool = False,
        progress: Progress | None = None,
    ) -> list[list[Hit]]:
        """The kin of each graph, best first.

        Args:
            queries: graphs like those in the library.
            top_k: hits of each query.
            rerank: candidates, the nearest by code, that the matcher scores again; 0 for none.
            where: the part of the library to search.
            evidence: say of every hit which nodes match.
            progress: called as ``progress(done, total)``, in queries.
        """
        for name, value, least in (("top_k", top_k, 1), ("rerank", rerank, 0)):
            if not isinstance(value, int) or isinstance(value, bool) or value < least:
                raise ConfigError(f"{name} must be a number from {least}, got {value!r}")
        if rerank and self.model.matcher is None:
            raise ModelError(
                f"the library's model {self.model_id} has no matcher to rerank with; use rerank 0"
            )
        if not len(queries):
            return []
        vectors, count = self.model.vectors(queries), max(top_k, rerank)
        try:
            found = self._found(queries, vectors, count, rerank > 0, where, progress)
        except UnknownIdError:
            # Another process removed something between finding and reading it.
            found = self._found(queries, vectors, count, rerank > 0, where, progress)
        found = [hits[:top_k] for hits in found]
        if evidence:
            found = [
                self.explained(query, hits) for query, hits in zip(queries, found, strict=True)
            ]
        return found

    def _found(
        self,
        queries: Sequence[Graph],
        vectors: NDArray[Any],
        count: int,
        rerank: bool,
        where: Filter | None,
        progress: Progress | None,
    ) -> list[list[Hit]]:
        """The nearest ``count`` of each query, in the order of the matcher where it is asked."""
        nearest = self.engine.nearest(vectors, count, where)
        found = [
            self._hits(query, ids[ids >= 0].tolist(), distances[ids >= 0])
            for query, ids, distances in zip(queries, nearest.ids, nearest.distances, strict=True)
        ]
        return self._reranked(queries, found, progress) if rerank else found

    def rank(self, query: Graph, ids: Sequence[int], top_k: int | None = None) -> list[Hit]:
        """Graphs of the library, by id, in the order of the matcher."""
        if self.model.matcher is None:
            raise ModelError(f"the library's model {self.model_id} has no matcher to rank with")
        if any(isinstance(number, Graph) for number in ids):
            raise ConfigError("rank takes ids of the library; a matcher's rank takes graphs")
        if not len(ids):
            return []
        from graphkin.library.probability import distances as distances_of

        own = self.model.vectors([query])[0]
        distances = distances_of(self.engine.space, own, self.engine.vectors(ids))
        order = np.argsort(distances, kind="stable")
        hits = self._hits(query, [ids[place] for place in order.tolist()], distances[order])
        return self._reranked([query], [hits], None)[0][:top_k]

    def _hits(self, query: Graph, ids: Sequence[int], distances: NDArray[np.float32]) -> list[Hit]:
        """Hits in the order of distance, with the probability that the distance alone gives."""
        from graphkin.library.probability import probabilities

        stored = self.engine.fetch(ids)
        others = [(item.nodes, item.graph_hash) for item in stored]
        chances = probabilities(self.model, query, others, distances)
        return [
            Hit(
                id=item.id,
                entry=item.entry,
                nodes=item.nodes,
                distance=float(distance),
                rank_before=rank,
                probability=chance,
                graph_hash=item.graph_hash,
            )
            for rank, (item, distance, chance) in enumerate(
                zip(stored, distances.tolist(), chances, strict=True), start=1
            )
        ]

    def _reranked(
        self, queries: Sequence[Graph], found: Sequence[list[Hit]], progress: Progress | None
    ) -> list[list[Hit]]:
        from graphkin.library.rerank import score_pairs

        matcher = self.model.matcher
        assert matcher is not None, "callers check that there is one"
        ranked: list[list[Hit]] = []
        for chunk in _chunks(found, PAIRS_AT_ONCE):
            part = queries[chunk]
            ids = sorted({hit.id for hits in found[chunk] for hit in hits})
            graphs = dict(zip(ids, self.engine.graphs(ids), strict=True))
            pairs = [
                (query, query_hash, graphs[hit.id], hit.graph_hash)
                for query, query_hash, hits in zip(
                    part, (query.digest() for query in part), found[chunk], strict=True
                )
                for hit in hits
            ]
            scores = score_pairs(matcher, pairs)
            start = 0
            for query, hits in zip(part, found[chunk], strict=True):
                own = scores[start : start + len(hits)]
                start += len(hits)
                ranked.append(self._sorted(query, hits, own))
            if progress is not None:
                progress(len(ranked), len(queries))
        return ranked

    def _sorted(self, query: Graph, hits: list[Hit], scores: NDArray[np.float32]) -> list[Hit]:
        """Hits with their scores, the most probable first."""
        from graphkin.library.probability import probabilities

        distances = np.array([hit.distance for hit in hits], dtype=np.float32)
        others = [(hit.nodes, hit.graph_hash) for hit in hits]
        chances = probabilities(self.model, query, others, distances, scores)
        scored = [
            replace(hit, score=float(score), probability=chance)
            for hit, score, chance in zip(hits, scores, chances, strict=True)
        ]
        return sorted(scored, key=_order)

    def explained(self, query: Graph, hits: Sequence[Hit]) -> list[Hit]:
        """Hits with evidence: which nodes match.

        Pairs of very large graphs have none, and neither has what was removed since it was found.
        """
        from graphkin.library.rerank import evidence

        matcher = self.model.matcher
        if matcher is None:
            raise ModelError(f"the library's model {self.model_id} has no matcher to explain with")
        return [
            replace(hit, evidence=evidence(matcher, query, graph))
            if graph is not None and query.num_nodes * graph.num_nodes <= EVIDENCE_NODES
            else hit
            for hit, graph in zip(hits, self._graphs([hit.id for hit in hits]), strict=True)
        ]

    def _graphs(self, ids: Sequence[int]) -> Sequence[Graph | None]:
        """Graphs by id, None for what is gone."""
        try:
            return self.engine.graphs(ids)
        except UnknownIdError:
            if len(ids) == 1:
                return [None]
            return [graph for number in ids for graph in self._graphs([number])]

    def stats(self) -> dict[str, Any]:
        """What is in the library, and the model that made it."""
        return {"model": vars(self.model_id), **self.engine.stats()}

    def verify(self) -> Verification:
        """Reads everything, and says what is damaged, or has no business in a library."""
        from graphkin.library.models import SearchModel

        verification = self.engine.verify()
        try:
            SearchModel.from_files(self.engine.documents())
        except GraphkinError as error:
            verification.damage.append(str(error))
        return verification

    def compact(self) -> None:
        """Gives back the space of what was removed."""
        self.engine.compact()

    def close(self) -> None:
        """Lets go of the library; a second time does nothing."""
        if self._engine is not None and self._is_open:
            self._engine.close()
        self._is_open = False

    def __len__(self) -> int:
        return self.engine.count()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _new_engine(
    path: str | Path,
    model: SearchModel,
    approximate: bool = False,
    payloads: str | Path | None = None,
) -> Engine:
    if str(path).startswith(MILVUS):
        from graphkin.library.engines.milvus.engine import MilvusEngine

        if approximate:
            raise ConfigError("approximate search is an option of a library in a file")
        return MilvusEngine.create(str(path), model.space, model.files, payloads=payloads)
    from graphkin.library.engines.sqlite.engine import SqliteEngine

    return SqliteEngine.create(path, model.space, model.files, approximate=approximate)


def _order(hit: Hit) -> tuple[float, float, int]:
    likeness = hit.probability if hit.probability is not None else hit.score
    return (-(likeness or 0.0), hit.distance, hit.id)


def _chunks(found: Sequence[list[Hit]], most: int) -> Iterator[slice]:
    """Runs of queries with at most so many hits in all, but at least one query."""
    start = total = 0
    for place, hits in enumerate(found):
        if place > start and total + len(hits) > most:
            yield slice(start, place)
            start, total = place, 0
        total += len(hits)
    yield slice(start, len(found))
