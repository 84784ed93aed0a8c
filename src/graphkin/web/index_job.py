"""The job that adds an uploaded file to the library."""

from __future__ import annotations

import shutil
from pathlib import Path

from graphkin._support.files import replacing
from graphkin.binaries.backends.base import Limits
from graphkin.library.indexing.index import index_paths
from graphkin.library.indexing.writer import IndexSummary
from graphkin.library.library import Library
from graphkin.library.own_graphs import index_graphs
from graphkin.web import api_documents as api
from graphkin.web.jobs import Job
from graphkin.web.limits import ServerLimits
from graphkin.web.uploads import Upload


class IndexJob(Job):
    """Adds all functions of a file. The file is kept, so that its code can be shown later."""

    def __init__(
        self,
        library: Library,
        upload: Upload,
        request: api.AdditionRequest,
        folder: Path,
        limits: ServerLimits,
    ) -> None:
        super().__init__()
        self._library = library
        self.upload = upload
        self._request = request
        self._folder = folder
        self._limits = limits
        self.added = self.known = self.small = self.skipped = 0
        self.warnings: tuple[str, ...] = ()

    def work(self) -> None:
        summary = self._indexed()
        self.added, self.known, self.small = summary.added, summary.known, summary.small
        self.skipped = len(summary.skipped)
        self.warnings = summary.warnings

    def _indexed(self) -> IndexSummary:
        if not self._library.model.reads_functions:
            return index_graphs(self._library, [self._keep()], tags=self._request.tags)
        seconds, most = self._limits.extraction_seconds, self._limits.upload_bytes
        return index_paths(
            self._library,
            [self._keep()],
            tags=self._request.tags,
            min_blocks=self._request.min_blocks,
            limits=Limits(seconds=seconds, file_bytes=most),
            progress=lambda done, total: self.checkpoint(),
        )

    def _keep(self) -> Path:
        """The file beside the library; the last folder is the name of its build."""
        path = self._folder / self.upload.id[:16] / "uploaded" / self.upload.name
        if not path.exists():
            with replacing(path) as temporary:
                shutil.copyfile(self.upload.path, temporary)
        return path

    def body(self) -> api.Addition:
        return api.Addition(
            id=self.id,
            binary=self.upload.document(),
            state=self.state,
            added=self.added,
            known=self.known,
            small=self.small,
            skipped=self.skipped,
            error=self.error,
            seconds=round(self.seconds, 3),
            warnings=self.warnings,
        )
