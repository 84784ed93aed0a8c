"""Verdicts on vulnerable and repaired versions, in words."""

from __future__ import annotations

from graphkin.results.document import PatchVerdict
from graphkin.results.text import number_text

LIKELY = {
    "vulnerable": "vulnerable, not repaired",
    "fixed": "repaired",
    "cannot tell": "cannot tell whether it is repaired",
}


def verdict_text(patch: PatchVerdict) -> str:
    """A line: the verdict, how sure it is, and why."""
    return f"{short_verdict(patch)}: {'; '.join(patch.reasons)}"


def short_verdict(patch: PatchVerdict) -> str:
    """The verdict, and how sure it is."""
    text = f"{patch.identifier}: {LIKELY[patch.verdict]}"
    if patch.probability is not None:
        sure = max(patch.probability, 1 - patch.probability)
        text += f" ({number_text(sure, 2)})"
    return text
