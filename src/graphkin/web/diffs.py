"""A diff of two uploaded files, as a job."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from graphkin.binaries.function import Function
from graphkin.errors import ConfigError
from graphkin.library.diff.diff import diff_document, probable
from graphkin.library.diff.rounds import pair
from graphkin.library.diff.side import Side, side_of
from graphkin.library.diff.side_by_side import side_by_side
from graphkin.library.models import SearchModel, search_model
from graphkin.results.diff_formats import DIFF_FORMATS
from graphkin.results.document import Diff, FunctionRef
from graphkin.web import api_documents as api
from graphkin.web.jobs import Job
from graphkin.web.upload_reader import Reader
from graphkin.web.uploads import Upload, Uploads

MODEL = "functions"
"""Libraries of other models, or earlier ones, cannot pair functions."""
CHECK_EVERY = 20
"""Functions between two looks at whether the job was cancelled."""


class DiffJob(Job):
    """Reads both files, within their budgets, and pairs their functions."""

    def __init__(
        self,
        reader: Reader,
        uploads: Uploads,
        request: api.DiffRequest,
        most_functions: int,
    ) -> None:
        super().__init__()
        self._reader = reader
        self._uploads = uploads
        self._request = request
        self.left, self.right = uploads.get(request.left), uploads.get(request.right)
        for upload in (self.left, self.right):
            if upload.count > most_functions:
                raise ConfigError(
                    f"{upload.name} has {upload.count:,} functions, and this server compares files "
                    f"of at most {most_functions:,}; run graphkin diff on your machine"
                )
        self.step = "waiting"
        self.done = 0
        self.result: Diff | None = None

    def work(self) -> None:
        model = search_model(MODEL)
        left, right = self._side(model, self.left), self._side(model, self.right)
        self.step = "pairing functions"
        self.checkpoint()
        paired = probable(
            pair(model, left, right, by_name=self._request.by_name),
            left,
            right,
            self._request.min_probability,
        )
        self.checkpoint()
        self.result = self._with_references(
            diff_document(
                model,
                left,
                right,
                paired,
                names=(self.left.name, self.right.name),
                coverages=(
                    list(self.left.facts.coverages),
                    list(self.right.facts.coverages),
                ),
                by_name=self._request.by_name,
            )
        )
        self.step = "done"

    def _side(self, model: SearchModel, upload: Upload) -> Side:
        self.step = f"reading {upload.name}"
        self.checkpoint()

        def watched() -> Iterator[Function]:
            for number, function in enumerate(self._functions(upload)):
                self.done += 1
                if number % CHECK_EVERY == 0:
                    self.checkpoint()
                yield function

        return side_of(model, watched())

    def _functions(self, upload: Upload) -> Iterator[Function]:
        """With text, under the name that the client gave the file."""
        stored = upload.path.name
        for function in self._reader.with_text(upload.path):
            inside = function.binary.removeprefix(stored)
            yield replace(function, binary=f"{upload.name}{inside}")

    def _with_references(self, diff: Diff) -> Diff:
        """The document with what the API calls each function."""
        left, right = self._references(self.left), self._references(self.right)
        return diff.model_copy(
            update={
                "pairs": tuple(
                    item.model_copy(update={"left": left(item.left), "right": right(item.right)})
                    for item in diff.pairs
                ),
                "removed": tuple(map(left, diff.removed)),
                "added": tuple(map(right, diff.added)),
            }
        )

    def _references(self, upload: Upload) -> _Referring:
        numbers = {
            (upload.label(function), function.address): number
            for number, function in enumerate(self._uploads.functions(upload.id))
        }
        return _Referring(upload.id, numbers)

    def body(self) -> api.DiffState:
        """How far it is."""
        return api.DiffState(
            id=self.id,
            left=self.left.document(),
            right=self.right.document(),
            state=self.state,
            step=self.step,
            done=self.done,
            total=self.left.count + self.right.count,
            counts=None if self.result is None else _counts(self.result),
            error=self.error,
            seconds=round(self.seconds, 3),
        )

    def report(self, format_: str) -> str:
        """The diff in one of its formats; HTML reads the changed functions again."""
        if self.result is None:
            raise ConfigError("the diff is not done; ask for its report when it is")
        comparisons = {}
        if format_ == "html":
            comparisons = side_by_side(
                self.result, self._functions(self.left), self._functions(self.right)
            )
        return DIFF_FORMATS[format_](self.result, comparisons)


class _Referring:
    """Gives functions of an upload their references."""

    def __init__(self, upload: str, numbers: dict[tuple[str, int | None], int]) -> None:
        self._upload, self._numbers = upload, numbers

    def __call__(self, function: FunctionRef) -> FunctionRef:
        number = self._numbers.get((function.binary, function.address))
        if number is None:
            return function
        return function.model_copy(update={"reference": f"upload:{self._upload}:{number}"})


def _counts(diff: Diff) -> api.DiffCounts:
    return api.DiffCounts(
        identical=diff.count("identical"),
        same=diff.count("same"),
        changed=diff.count("changed"),
        removed=len(diff.removed),
        added=len(diff.added),
    )
