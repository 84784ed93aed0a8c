"""Server-sent events: what a job has to tell, while it runs and when it is over."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from time import monotonic

from fastapi.responses import StreamingResponse
from pydantic import BaseModel

from graphkin.web.jobs import Job

LOOK_SECONDS = 0.1
"""Between two looks at a job: a person sees no difference, and nothing crosses threads."""
QUIET_SECONDS = 15.0
"""After which a comment is sent, so that nothing between takes the stream for dead."""
AT_ONCE = 200
"""Results in one event."""


def stream(
    job: Job,
    body: Callable[[], BaseModel],
    results: Sequence[BaseModel] = (),
    seen: int = 0,
) -> StreamingResponse:
    """The events of a job: ``results`` as they come, ``progress``, and at last ``end``.

    Args:
        job: is watched.
        body: the job as a document.
        results: results so far; a list that only grows. Each event's id says how many were sent.
        seen: results that the client has already.
    """
    events = _events(job, body, results, max(seen, 0))
    return StreamingResponse(events, media_type="text/event-stream")


async def _events(
    job: Job, body: Callable[[], BaseModel], results: Sequence[BaseModel], sent: int
) -> AsyncIterator[str]:
    changes, told = -1, monotonic()
    while True:
        # Read first, so that nothing that came before the end is left out.
        is_over, latest = job.is_over, job.changes
        while sent < len(results):
            batch = results[sent : sent + AT_ONCE]
            sent += len(batch)
            listed = ",".join(result.model_dump_json() for result in batch)
            yield _event("results", f'{{"results":[{listed}]}}', sent)
        if is_over:
            yield _event("end", body().model_dump_json(), sent)
            return
        if latest != changes:
            document = body().model_dump_json()
            # One that has ended meanwhile has results that come first.
            if not job.is_over:
                changes, told = latest, monotonic()
                yield _event("progress", document, sent)
        elif monotonic() - told > QUIET_SECONDS:
            told = monotonic()
            yield ": still here\n\n"
        await asyncio.sleep(LOOK_SECONDS)


def _event(name: str, data: str, number: int) -> str:
    return f"event: {name}\nid: {number}\ndata: {data}\n\n"
