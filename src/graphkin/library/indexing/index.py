"""Bulk work: every function of many files, or single ones (``BINARY:FUNCTION``), into a library."""

from __future__ import annotations

import os
from collections import defaultdict, deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from glob import escape
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from graphkin._support.files import PathLike
from graphkin._support.progress import counter
from graphkin._support.threads import one_thread, take_one_thread
from graphkin.binaries import samples
from graphkin.binaries.backends.base import Limits
from graphkin.binaries.backends.choose import Backend, is_raw
from graphkin.binaries.containers.unpack import SEPARATOR
from graphkin.binaries.corpus import DOCUMENT, FunctionRecord
from graphkin.binaries.extraction import FileSummary, build_names, check_reading
from graphkin.binaries.function import MEMBER, Skipped
from graphkin.binaries.inputs import Inputs, distinct, find_target
from graphkin.binaries.reading import read_function
from graphkin.binaries.targets import Target
from graphkin.binaries.workers import Done
from graphkin.errors import ConfigError, FormatError
from graphkin.graphs.vocabulary import Vocabulary
from graphkin.library.indexing.batches import Batch, Chunk, Embedding, Pending, batches, ready
from graphkin.library.indexing.corpora import CorpusJob, open_corpora
from graphkin.library.indexing.file_queue import FileJob, FileQueue, ReadSettings, Result
from graphkin.library.indexing.writer import IndexSummary, LibraryWriter
from graphkin.library.model_age import age_warnings
from graphkin.library.processors import processor_warnings
from graphkin.library.records import Filter, KnownFunction

if TYPE_CHECKING:
    from graphkin.library.library import Library

AHEAD = 2
"""Batches that wait to be embedded while more files are read."""


def index_paths(
    library: Library,
    paths: Sequence[PathLike],
    *,
    tags: Mapping[str, str] | None = None,
    jobs: int = 1,
    min_blocks: int = 5,
    backend: Backend = "auto",
    limits: Limits | None = None,
    ray: str | None = None,
    named_only: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> IndexSummary:
    """Adds every function of some files to a library.

    A file is read once: when all its functions are stored, the library remembers its hash, and
    a later run with the same settings does not read it again. A run that was interrupted, or
    killed, goes on where it stopped when it is started again.

    Args:
        library: the library.
        paths: binaries, containers, folders that are searched for both, and corpora of
            functions; or ``BINARY:FUNCTION`` for one function, whatever its size.
        tags: given to every function, also to those that were there already.
        jobs: processes that read files, while this one embeds. With Ray, the cluster decides.
        min_blocks: functions with fewer basic blocks are left out.
        backend: which source of functions reads the files.
        limits: what one file may cost.
        ray: ``local``, or the address of a Ray cluster, to read and embed files there.
        named_only: functions whose names nobody knows are left out, but for those that are named
            as ``BINARY:0x1234``.
        progress: called as ``progress(done, total)``, in files.

    Raises:
        FormatError: where there is nothing to read.
        StorageError: the library cannot be written; what was stored before is there.
    """
    if jobs < 1 or min_blocks < 1:
        raise ConfigError(f"jobs and min_blocks count from 1, got {jobs} and {min_blocks}")
    features = library.model.vocabulary.reads
    settings = ReadSettings(min_blocks, backend, limits or Limits(), features, named_only)
    check_reading(backend, settings.limits)
    tags = KnownFunction.from_mapping({"tags": dict(tags or {})}).tags
    summary = IndexSummary()
    with Inputs(settings.limits, as_is=is_raw(backend)) as inputs:
        sources = _sort_paths(paths, settings, inputs, summary.skipped, opens_known=bool(tags))
        with LibraryWriter(
            library, summary, sources.queue, tags, settings.text, progress
        ) as writer:
            _add(library, sources, writer, settings, tags, jobs, ray)
    summary.warnings = (
        *age_warnings(library),
        *processor_warnings(library.model, summary.architectures),
    )
    return summary


class _Sources(NamedTuple):
    """What a run adds."""

    queue: FileQueue
    corpora: list[CorpusJob]
    targets: list[Target]


def _add(
    library: Library,
    sources: _Sources,
    writer: LibraryWriter,
    settings: ReadSettings,
    tags: Mapping[str, str],
    jobs: int,
    ray: str | None,
) -> None:
    vocabulary = library.model.vocabulary
    finished = library.engine.finished_files()
    files = sources.queue.jobs(finished, settings.text)
    writer.expect(sources.corpora, finished, len({target.path for target in sources.targets}))
    if ray is None:
        with closing(_file_batches(files, settings, jobs, vocabulary, tags)) as read:
            writer.take(_embedded(library, read))
    else:
        from graphkin.library.indexing.ray_cluster import ray_chunks

        writer.take(ray_chunks(files, library.model, settings, tags, ray, writer.restart))
    with closing(_corpus_batches(sources.corpora, vocabulary, tags)) as read:
        writer.take(_embedded(library, read))
    writer.tag_files()
    # After the files, because what is known of these functions says nothing of their files.
    functions = list(ready(_read_functions(sources.targets, settings), vocabulary, tags))
    writer.take(_embedded(library, batches(iter(functions), settings.text)))
    writer.tag(
        [_filter_of(item.entry, job.path) for job, item in functions if isinstance(item, Pending)]
    )


def _sort_paths(
    paths: Sequence[PathLike],
    settings: ReadSettings,
    inputs: Inputs,
    skipped: list[Skipped],
    opens_known: bool,
) -> _Sources:
    """The binaries and the corpora under some paths, and single functions."""
    targets = {path: target for path in paths if (target := _function_target(path)) is not None}
    are_corpora = {path: os.path.isfile(Path(path, DOCUMENT)) for path in paths}
    corpora = open_corpora(
        distinct(Path(path) for path in paths if are_corpora[path]),
        settings.min_blocks,
        skipped,
        named_only=settings.named_only,
    )
    others = [path for path in paths if path not in targets and not are_corpora[path]]
    files = inputs.files(others)
    if not files and not targets and not any(are_corpora.values()):
        names = ", ".join(map(str, paths))
        raise FormatError(
            f"there is no binary and no corpus in {names or 'no paths at all'}; a library of "
            "your own graphs is made with a model of them: --model"
        )
    return _Sources(FileQueue(files, inputs, opens_known), corpora, list(targets.values()))


def _file_batches(
    files: Iterable[FileJob],
    settings: ReadSettings,
    jobs: int,
    vocabulary: Vocabulary,
    tags: Mapping[str, str],
) -> Generator[Batch]:
    # Closed at once, so that no worker outlives an error.
    with closing(settings.pool(jobs).run(files)) as results:
        functions = ready(
            results, vocabulary, tags, settings.min_blocks, named_only=settings.named_only
        )
        yield from batches(functions, settings.text)


def _corpus_batches(
    corpora: Iterable[CorpusJob], vocabulary: Vocabulary, tags: Mapping[str, str]
) -> Generator[Batch]:
    for corpus in corpora:
        yield from batches(corpus.stream(vocabulary, tags), corpus.settings)


def _embedded(library: Library, read: Iterator[Batch]) -> Generator[Chunk]:
    """Embeds batches by a thread of their own, while the next are read.

    Reading stays with the caller's thread, so that Ctrl-C ends it at once; and so does the
    library, which belongs to one thread.
    """
    embedding = Embedding(library.model)
    waiting: deque[Future[Chunk]] = deque()
    worker = ThreadPoolExecutor(1, initializer=take_one_thread)
    with one_thread():
        try:
            for batch in read:
                new = batch.without(library.engine.known)
                waiting.append(worker.submit(embedding.chunk, new))
                if len(waiting) > AHEAD:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            worker.shutdown(cancel_futures=True)


def _function_target(path: PathLike) -> Target | None:
    """The function that a path stands for, where it is not a path but a file with a function."""
    if os.path.lexists(path):
        return None
    try:
        target = find_target(os.fspath(path))
    except ConfigError:
        return None
    if target.function is None or not os.path.isfile(target.path):
        return None
    return target._replace(path=str(Path(target.path)))


def _read_functions(
    targets: Sequence[Target], settings: ReadSettings
) -> list[tuple[FileJob, Result]]:
    """What reading of the files gives, as if they held nothing but these functions.

    The jobs have no hash, so that the library does not count the files as finished.
    """
    builds = build_names(list(dict.fromkeys(Path(target.path) for target in targets)))
    results: list[tuple[FileJob, Result]] = []
    for file, build in builds.items():
        results += _read_file(file, build, targets, settings)
    return results


def _read_file(
    file: Path, build: str, targets: Sequence[Target], settings: ReadSettings
) -> Iterator[tuple[FileJob, Result]]:
    job = FileJob(str(file), build, file_hash="")
    skipped: list[Skipped] = []
    for target in targets:
        if target.path != job.path:
            continue
        try:
            function = read_function(target, settings.backend, limits=settings.limits)
            yield job, FunctionRecord.of(function, file, build, settings.features)
        except (ConfigError, FormatError) as error:
            skipped.append(Skipped(target.binary, target.function or "", str(error)))
    yield job, FileSummary(0, skipped)
    yield job, Done()


def _filter_of(entry: KnownFunction, path: str) -> Filter:
    """What matches one function of the file at a path, wherever that was added from.

    The container that it lies in does not count, the member of a static library does.
    """
    member = entry.binary.removeprefix(path)
    if member.startswith(SEPARATOR):
        match = MEMBER.match(member)
        member = f"({match[2]})" if match else ""
    return Filter(
        function=escape(entry.function),
        binary=f"*{escape(member)}" if member else None,
        file_hash=entry.file_hash,
        address=entry.address,
    )


def index_samples(library: Library) -> None:
    """Adds the bundled sample libraries, the vulnerable one with its tag."""
    by_tags: dict[tuple[tuple[str, str], ...], list[Path]] = defaultdict(list)
    for file in samples.KNOWN:
        by_tags[tuple(samples.tags(file).items())].append(file)
    with counter("indexing files") as progress:
        for tags, files in by_tags.items():
            index_paths(library, files, tags=dict(tags), progress=progress)
