"""A library of graphs that is searched by code and reranked by matching."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from graphkin.errors import ConfigError, GraphError, GraphkinError, ModelError, StorageError
from graphkin.graphs import Graph
from graphkin.graphs.collections import listed
from graphkin.library.engines.base import Engine, Verification
from graphkin.library.engines.open import engine_of
from graphkin.library.records import Filter, Hits, KnownFunction, Row, SearchOptions, Unstored
from graphkin.results.document import Hit

if TYPE_CHECKING:
    from graphkin._support.progress import Progress
    from graphkin.graphs.vocabulary import Vocabulary
    from graphkin.library.candidates import EncodedQuery
    from graphkin.library.models import ModelId, SearchModel
    from graphkin.models import GraphEmbedder
    from graphkin.models.answering import Embedder

DEFAULT_MODEL = "functions"


class Library:
    """A durable library: one SQLite file, or a Milvus collection (``milvus://host:port/name``).

    It carries the models that it is searched with, so that it opens anywhere, and takes nothing
    that another model made.

    Example:
        >>> from graphkin import Graph, GraphEmbedder, Library, ModelConfig
        >>> import tempfile, pathlib
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "library.kin"
        >>> embedder = GraphEmbedder(ModelConfig.named("gnn", similarity="hamming"))
        >>> ring = Graph(3, [(0, 1), (1, 2), (2, 0)])
        >>> with Library.create(path, embedder) as library:
        ...     added = library.add([ring], [{"function": "ring"}])
        ...     [hit.function for hit in library.search(ring)]
        ['ring']
    """

    def __init__(
        self, engine: Engine, path: str | Path = "", model: SearchModel | None = None
    ) -> None:
        self._engine = engine
        self._path = path
        self._model = model
        self._is_open = True

    @property
    def engine(self) -> Engine:
        """What keeps the graphs."""
        if not self._is_open:
            raise StorageError(f"the library {self._path} is closed; open it again")
        return self._engine

    @property
    def path(self) -> str | Path:
        """Its file, or its address."""
        return self._path

    @classmethod
    def create(
        cls,
        path: str | Path,
        model: str | Path | SearchModel | GraphEmbedder = DEFAULT_MODEL,
        *,
        approximate: bool = False,
        graphs_folder: str | Path | None = None,
    ) -> Self:
        """A new, empty library.

        Args:
            path: the file, which must not exist, or the address of a Milvus collection.
            model: what makes its codes: a model that ships with graphkin, a folder, an embedder,
                or an embedder with a matcher. The library keeps a copy.
            approximate: search by an inverted file, which is faster beyond tens of millions of
                graphs and misses some of the nearest; see :meth:`verify`.
            graphs_folder: folder in which a Milvus library keeps its graphs.
        """
        from graphkin.library.models import search_model

        model = search_model(model)
        engine = engine_of(path).create(
            str(path),
            model.space,
            model.files,
            approximate=approximate,
            graphs_folder=graphs_folder,
        )
        return cls(engine, path, model)

    @classmethod
    def open(
        cls,
        path: str | Path,
        model: str | Path | SearchModel | GraphEmbedder | None = None,
        *,
        graphs_folder: str | Path | None = None,
    ) -> Self:
        """A library that exists.

        Args:
            path: the file, or the address of a Milvus collection.
            model: refuse a library that another model made.
            graphs_folder: folder in which a Milvus library keeps its graphs, if they were moved.

        Raises:
            FormatError: there is no such library, or it is damaged.
        """
        library = cls(engine_of(path).open(str(path), graphs_folder=graphs_folder), path)
        if model is not None:
            try:
                library._check_model(model)
            except BaseException:
                library.close()
                raise
        return library

    def _check_model(self, model: str | Path | SearchModel | GraphEmbedder) -> None:
        from graphkin.library.models import search_model

        model_id = search_model(model).model_id
        if model_id.weights != self.model_id.weights:
            raise ModelError(
                f"{self._path} was made by the model {self.model_id}, not by {model_id}; make a "
                "new library for another model"
            )

    @property
    def model(self) -> SearchModel:
        """The models that the library carries."""
        from graphkin.library.models import SearchModel

        if self._model is None:
            self._model = SearchModel.from_files(self.model_files)
        return self._model

    @cached_property
    def model_id(self) -> ModelId:
        """Which model made the library."""
        from graphkin.library.models import read_model_id

        return read_model_id(self.model_files)

    @cached_property
    def vocabulary(self) -> Vocabulary | None:
        """What the tokens of its graphs mean; known before the model is loaded."""
        from graphkin.library.models import read_vocabulary

        if self._model is not None:
            return self._model.embedder.vocabulary
        _ = self.model_id  # which refuses files that are not those of a model
        return read_vocabulary(self.model_files)

    @property
    def reads_functions(self) -> bool:
        """Whether it holds functions of binaries; else graphs of somebody's own."""
        return self.vocabulary is not None and self.vocabulary.reads != "labels"

    @property
    def has_ranking(self) -> bool:
        """Whether its model compares signals; known before the model is loaded."""
        from graphkin.library.models import RANKING_FILE

        return RANKING_FILE in self.model_files

    @cached_property
    def model_files(self) -> Mapping[str, bytes]:
        """The files of its models, by name."""
        return self.engine.documents() if self._model is None else self._model.files

    @property
    def embedder(self) -> Embedder:
        return self.model.embedder

    def add(
        self,
        graphs: Iterable[Any],
        metadata: Iterable[Mapping[str, Any] | KnownFunction] | None = None,
    ) -> int:
        """Adds graphs, and returns how many were new.

        A graph that is there already, of the same file, name and address, is skipped. What was
        added survives whatever happens after the call.

        Args:
            graphs: of graphkin, NetworkX or PyG; labels as text are read by the vocabulary of
                ``embedder``, tokens are taken to be of it.
            metadata: what is known of each; the fields of :class:`KnownFunction` are the keys.
        """
        graphs = self.embedder.read(graphs)
        metadata = [{}] * len(graphs) if metadata is None else list(metadata)
        if len(metadata) != len(graphs):
            raise ConfigError(f"{len(graphs)} graphs with metadata for {len(metadata)}")
        entries = [
            item if isinstance(item, KnownFunction) else KnownFunction.from_mapping(item)
            for item in metadata
        ]
        return self.add_rows(self.rows(graphs, entries))

    def rows(self, graphs: Sequence[Graph], entries: Sequence[KnownFunction]) -> list[Row]:
        """Embeds graphs; equal ones once."""
        graphs = self.embedder.read(graphs)
        hashes = [graph.digest() for graph in graphs]
        distinct: dict[str, Graph] = {}
        for content, graph in zip(hashes, graphs, strict=True):
            distinct.setdefault(content, graph)
        encoded = self.model.encoded(list(distinct.values()))
        rows = {content: row for row, content in enumerate(distinct)}
        functions = [
            Unstored(entry.key(content), entry, content, graph, rows[content])
            for graph, content, entry in zip(graphs, hashes, entries, strict=True)
        ]
        return self.model.rows(functions, encoded)

    def add_rows(self, rows: Sequence[Row]) -> int:
        """Adds rows that :meth:`rows` of a library of the same model made."""
        return self.engine.add(rows)

    def remove(self, where: Filter) -> int:
        """Removes what matches, and returns how many that was; an empty filter is refused."""
        if where.is_empty():
            raise ConfigError("a filter without a condition would remove everything")
        return self.engine.remove(where)

    def tag(self, where: Filter, tags: Mapping[str, str]) -> int:
        """Adds tags to what matches, and returns how many that was; an empty filter is refused.

        A tag that is there already gets the new value, other tags stay.
        """
        if where.is_empty():
            raise ConfigError("a filter without a condition would tag everything")
        if not tags:
            raise ConfigError("no tags are given; name at least one, such as {'reviewed': 'yes'}")
        return self.engine.tag(where, KnownFunction.from_mapping({"tags": tags}).tags)

    def search(
        self,
        query: Any,
        top_k: int = 10,
        *,
        rerank: int = 0,
        where: Filter | None = None,
        evidence: bool = False,
    ) -> list[Hit]:
        """The kin of one graph, best first; see :meth:`search_many`."""
        if isinstance(query, list | tuple):
            raise GraphError(f"search takes one graph, got {len(query)}; use search_many")
        return self.search_many([query], top_k, rerank=rerank, where=where, evidence=evidence)[0]

    def search_many(
        self,
        queries: Iterable[Any],
        top_k: int = 10,
        *,
        rerank: int = 0,
        where: Filter | None = None,
        evidence: bool = False,
        progress: Progress | None = None,
    ) -> list[list[Hit]]:
        """The kin of each graph, best first.

        Args:
            queries: graphs like those in the library, of graphkin, NetworkX or PyG.
            top_k: hits of each query.
            rerank: candidates, the nearest by code, that the matcher scores again; 0 for none.
            where: the part of the library to search.
            evidence: say of every hit which nodes match.
            progress: called as ``progress(done, total)``, in queries.
        """
        from graphkin.library.candidates import encode_queries

        options = SearchOptions(top_k, rerank, where, evidence=evidence)
        hits: list[list[Hit]] = []
        queries = listed(queries)
        if not queries:
            return hits
        for own in self.hits(encode_queries(self.model, queries), options):
            hits.append(list(own.hits))
            if progress is not None:
                progress(len(hits), len(queries))
        return hits

    def hits(self, queries: Sequence[EncodedQuery], options: SearchOptions) -> Iterator[Hits]:
        """What each query finds, as it is found; see :mod:`graphkin.library.search`."""
        from graphkin.library.search import search

        return search(self.model, self.engine, queries, options)

    def rank(self, query: Graph, ids: Sequence[int], top_k: int | None = None) -> list[Hit]:
        """Graphs of the library, by id, in the order of the matcher."""
        from graphkin.library.candidates import encode_queries
        from graphkin.library.search import rank

        if any(isinstance(number, Graph) for number in ids):
            raise ConfigError("rank takes ids of the library; a matcher's rank takes graphs")
        options = SearchOptions(top_k or max(len(ids), 1), rerank=max(len(ids), 1))
        (encoded,) = encode_queries(self.model, [query])
        return list(rank(self.model, self.engine, encoded, ids, options).hits)

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
        if self._is_open:
            self._engine.close()
        self._is_open = False

    def __len__(self) -> int:
        return self.engine.count()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
