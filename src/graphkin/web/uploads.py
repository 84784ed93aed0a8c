"""Files that clients sent: kept by their hash, with their functions, while there is room."""

from __future__ import annotations

import hashlib
import os
import shutil
import threading
from collections import OrderedDict
from collections.abc import AsyncIterable
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import mkstemp

from graphkin.binaries.function import Function
from graphkin.errors import FormatError, ModelError, StorageError
from graphkin.library.scan import Query
from graphkin.results.coverage import coverage_of
from graphkin.results.document import FunctionRef
from graphkin.results.text import encodable, printable
from graphkin.web import api_documents as api
from graphkin.web.http_errors import RequestError, UnknownError
from graphkin.web.limits import ServerLimits
from graphkin.web.upload_reader import FileFacts, Reader, UploadedFunction

UNNAMED = "unnamed"
NAME_BYTES = 120


@dataclass(frozen=True, eq=False)
class Upload:
    """One file, and what is in it."""

    id: str
    """SHA-256, in hexadecimal."""
    name: str
    path: Path
    bytes: int
    facts: FileFacts
    count: int
    """Functions."""

    def label(self, function: UploadedFunction) -> str:
        """What a function's binary is called."""
        member = function.member
        if member is None:
            return self.name
        return self.name + (member if member.startswith("!") else f"({member})")

    def query(self, function: UploadedFunction, reference: str) -> Query:
        """A function of the file, ready to be looked up."""
        ref = FunctionRef(
            kind="graph" if function.address is None else "function",
            function=function.name,
            binary=self.label(function),
            address=function.address,
            blocks=function.blocks,
            reference=reference,
            code_hash=function.code_hash,
        )
        return Query(ref, function.graph, self.facts.architecture, function.callees, function.said)

    def document(self) -> api.Binary:
        """The file as the API describes it."""
        compiler = self.facts.compiler
        return api.Binary(
            id=self.id,
            name=self.name,
            bytes=self.bytes,
            architecture=self.facts.architecture,
            format=self.facts.format,
            compiler=None if compiler is None else encodable(compiler),
            functions=self.count,
            skipped=self.facts.skipped,
            skipped_reasons=[encodable(reason) for reason in self.facts.reasons],
            coverage=[coverage_of(item) for item in self.facts.coverages],
        )


class Uploads:
    """Every method may be called by any thread; those that read a file take seconds."""

    def __init__(self, folder: Path, reader: Reader, limits: ServerLimits) -> None:
        self._folder = folder
        self._reader = reader
        self._limits = limits
        self._lock = threading.Lock()
        self._known: OrderedDict[str, Upload] = OrderedDict()
        """The newest last."""
        self._functions: OrderedDict[str, list[UploadedFunction]] = OrderedDict()
        """Of those that were used last; the latest last."""
        self._sizes: dict[str, int] = {}
        """Of what is in ``_functions``, in bytes."""
        self._reading: dict[str, threading.Lock] = {}

    async def receive(self, chunks: AsyncIterable[bytes]) -> tuple[Path, str]:
        """Writes what a client sends into a file; gives its path and its hash."""
        handle, temporary = mkstemp(dir=self._folder, prefix="incoming-")
        path, sha, size = Path(temporary), hashlib.sha256(), 0
        try:
            with os.fdopen(handle, "wb") as file:
                async for chunk in chunks:
                    size += len(chunk)
                    if size > self._limits.upload_bytes:
                        most = self._limits.upload_bytes >> 20
                        raise RequestError(413, f"the file is larger than {most} MB")
                    sha.update(chunk)
                    file.write(chunk)
            if not size:
                raise FormatError("the file is empty; choose another")
        except BaseException as error:
            path.unlink(missing_ok=True)
            if isinstance(error, OSError) and not isinstance(error, StorageError):
                raise StorageError(f"the file cannot be kept: {error.strerror}") from error
            raise
        return path, sha.hexdigest()

    def discard(self, incoming: Path) -> None:
        """Lets go of a file that was received, where nobody took it."""
        incoming.unlink(missing_ok=True)

    def take(self, incoming: Path, digest: str, name: str) -> Upload:
        """Keeps a file that was received, and reads it; one that is known gets the new name."""
        name = safe_name(name)
        home = self._folder / digest
        path = home / name
        try:
            with self._lock:
                known = self._known.get(digest)
                if known is not None:
                    incoming.unlink()
                    known = self._known[digest] = replace(known, name=name)
                    self._known.move_to_end(digest, last=True)
                    return known
            home.mkdir(exist_ok=True)
            os.replace(incoming, path)
        except OSError as error:
            incoming.unlink(missing_ok=True)
            raise StorageError(f"{name} cannot be kept: {error.strerror}") from error
        try:
            listed, facts = self._reader.functions(path)
        except BaseException:
            shutil.rmtree(home, ignore_errors=True)
            raise
        upload = Upload(digest, name, path, path.stat().st_size, facts, len(listed))
        with self._lock:
            self._known[digest] = upload
            self._known.move_to_end(digest, last=True)
            self._remember(digest, listed)
            self._make_room()
        return upload

    def newest_first(self) -> list[Upload]:
        with self._lock:
            return [*reversed(self._known.values())]

    def get(self, digest: str) -> Upload:
        with self._lock:
            upload = self._known.get(digest)
        if upload is None:
            raise UnknownError("the server does not have this file, or no longer; send it again")
        return upload

    def functions(self, digest: str) -> list[UploadedFunction]:
        """All functions of a file, in their order."""
        upload = self.get(digest)
        with self._lock:
            reading = self._reading.setdefault(digest, threading.Lock())
        with reading:
            with self._lock:
                if digest in self._functions:
                    self._functions.move_to_end(digest)
                    return self._functions[digest]
            listed, _ = self._reader.functions(upload.path)
            with self._lock:
                self._remember(digest, listed)
        return listed

    def function(self, digest: str, number: int) -> UploadedFunction:
        """One of them, by its number from 0."""
        listed = self.functions(digest)
        if not 0 <= number < len(listed):
            name = self.get(digest).name
            raise UnknownError(f"{name} has {len(listed)} functions; there is no number {number}")
        return listed[number]

    def with_text(self, digest: str, number: int) -> Function:
        """One of them, with its instructions."""
        upload, listed = self.get(digest), self.function(digest, number)
        if listed.address is None:
            raise ModelError(f"{listed.name} is a graph, and has no code")
        function = self._reader.function(upload.path, listed.address, listed.member)
        return replace(function, binary=upload.label(listed))

    def _remember(self, digest: str, functions: list[UploadedFunction]) -> None:
        self._functions[digest] = functions
        self._functions.move_to_end(digest)
        self._sizes[digest] = sum(function.nbytes for function in functions)
        while len(self._functions) > 1 and sum(self._sizes.values()) > self._limits.kept_graphs:
            self._forget(next(iter(self._functions)))

    def _forget(self, digest: str) -> None:
        self._functions.pop(digest, None)
        self._sizes.pop(digest, None)

    def _make_room(self) -> None:
        while (
            len(self._known) > 1
            and sum(upload.bytes for upload in self._known.values()) > self._limits.kept_bytes
        ):
            oldest, upload = self._known.popitem(last=False)
            self._forget(oldest)
            self._reading.pop(oldest, None)
            shutil.rmtree(upload.path.parent, ignore_errors=True)


def safe_name(name: str) -> str:
    """The last part of a client's name for a file, as a name that every file system takes."""
    last = printable(encodable(name.replace("\\", "/"))).rpartition("/")[2].strip(" .")
    while len(last.encode()) > NAME_BYTES:
        last = last[1:]
    return last or UNNAMED
