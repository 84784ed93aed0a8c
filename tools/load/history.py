"""What each writer does to a library, step by step, and what readers may find meanwhile.

A writer has some batches of functions. Its step n adds, tags, tags again or removes one of them,
and the number of the step is a tag of the batch, so that whoever reads can tell which step a state
is from. A reader notes which steps were acknowledged before it began, and which had begun when it
ended: what it read must be the state after one of the steps between the two.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

BATCHES = 6
"""Of each writer."""
ROWS = 20
"""Functions of a batch."""
ADD, TAG, REMOVE = "add", "tag", "remove"
ROUND = (ADD, TAG, TAG, REMOVE)
"""What becomes of a batch, over and over."""
STEP = "step"
"""The tag with the number of the last step that changed a batch."""


class Span(NamedTuple):
    """Steps of one writer, any of which a read may have come after."""

    acknowledged: int
    """The last one before the read began."""
    begun: int
    """The last one when it had ended."""

    @property
    def steps(self) -> range:
        return range(self.acknowledged, self.begun + 1)


def batch_of(step: int) -> int:
    """The batch that a step changes; the first step is 1."""
    return (step - 1) % BATCHES


def kind_of(step: int) -> str:
    """What a step does to its batch."""
    return ROUND[(step - 1) // BATCHES % len(ROUND)]


def version(batch: int, step: int) -> int | None:
    """The step that last changed a batch, after a step; None where the batch is not there."""
    last = step - (step - 1 - batch) % BATCHES
    return None if last < 1 or kind_of(last) == REMOVE else last


def state(step: int) -> tuple[int | None, ...]:
    """The version of every batch after a step."""
    return tuple(version(batch, step) for batch in range(BATCHES))


def is_state(seen: Sequence[int | None], span: Span) -> bool:
    """Whether the batches, all read at once, are as some step left them."""
    return any(tuple(seen) == state(step) for step in span.steps)


def is_version(batch: int, seen: int | None, span: Span) -> bool:
    """Whether one batch is as some step left it."""
    return any(version(batch, step) == seen for step in span.steps)


def seen_version(functions: int, tags: Mapping[str, int]) -> int | None:
    """The version of a batch by its tags and how often each occurs.

    Raises:
        ValueError: for a batch that is not whole, or not of one step.
    """
    if not functions:
        return None
    steps = {tag: count for tag, count in tags.items() if tag.startswith(f"{STEP}=")}
    if functions != ROWS or list(steps.values()) != [ROWS]:
        raise ValueError(f"{functions} functions of {ROWS}, with the tags {steps}")
    return int(next(iter(steps)).partition("=")[2])
