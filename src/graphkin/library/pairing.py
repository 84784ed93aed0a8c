"""How probable it is that two functions of two binaries are the same: regressions, round by round.

The first round goes by what two functions are; each further one also by whether their callers,
callees and neighbours are pairs, as far as the round before could tell.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphkin.errors import FormatError
from graphkin.models.calibration import Logistic

Floats = NDArray[np.float64]
Features = Mapping[str, Floats]
"""(P,) each, by name, of P pairs."""
FORMAT = {"format": "graphkin pairing", "version": 1}
OWN_NAMES = (
    "graph", "words", "offsets", "callees", "callers", "total", "total_by_row", "total_by_column",
    "callee_count", "caller_count", "blocks", "edges", "operations", "strength", "least_strength",
    "strengths", "words_against", "shape_against", "size", "small", "widths_differ", "equal",
    "has_callees", "has_callers", "score", "score_by_row", "score_by_column", "exact_words", "seen",
)  # fmt: skip
CONTEXT_NAMES = (
    "callees_share", "callees_agree", "callees_differ", "callers_share", "callers_agree",
    "callers_differ", "neighbours", "neighbours_on_both_sides", "neighbours_crossed",
)  # fmt: skip
INLINING_NAMES = (
    "inlined_words", "inlined_gain", "inlined_against", "inlined_operations", "claimed_by_callers",
    "claimed_by_callees", "through_callees_share", "through_callees_agree",
    "through_callees_differ", "through_callers_share", "through_callers_agree",
    "through_callers_differ",
)  # fmt: skip
ORDER_NAMES = (
    "order_inside", "order_apart", "order_outside", "order_exact", "order_tight",
)  # fmt: skip
COMPETING_NAMES = (
    "exponent", "by_row", "by_column", "by_either", "little_by_row", "little_by_column",
)  # fmt: skip
"""The exponent of a first regression, and how far it is above that of other pairs."""
MOST_EXPONENT = 12.0
"""Beyond it a pair is as probable, or as improbable, as it needs to be."""


@dataclass(frozen=True)
class Round:
    """Two regressions: the first over what is known of a pair, the second over how it competes."""

    known: Logistic
    competing: Logistic
    is_late: bool = False
    """Whether it also knows what functions are with those that a compiler may have put inside, and
    of their order."""

    def exponents(self, features: Features, names: tuple[str, ...]) -> Floats:
        """(P,) what the probabilities follow from, within bounds."""
        columns = np.column_stack([features[name] for name in names])
        values: Floats = columns @ np.array(self.known.weights) + self.known.bias
        return np.clip(values, -MOST_EXPONENT, MOST_EXPONENT)


@dataclass(frozen=True)
class Pairing:
    """How two binaries are paired; see ``pairing.json`` of a model."""

    rounds: tuple[Round, ...]
    """The first knows what functions are, the others their surroundings too."""
    fitted_on: dict[str, Any]
    """Projects of the fit, and how many pairs of files."""
    order: dict[str, float] = field(default_factory=dict)
    """The weights of the sum that ``total`` was in the fit; without any, those of the ranking."""

    def to_json(self) -> str:
        return json.dumps({**FORMAT, **asdict(self)}, indent=1)

    @classmethod
    def from_json(cls, text: str | bytes) -> Pairing:
        """Reads what :meth:`to_json` wrote."""
        try:
            values = json.loads(text)
            kind = {name: values.get(name) for name in FORMAT}
            if kind != FORMAT:
                raise FormatError(f"this is not a pairing that this graphkin reads: {kind}")
            rounds: list[Round] = []
            for own in values["rounds"]:
                is_late = bool(own.get("is_late", False))
                known = names_of(len(rounds), is_late=is_late)
                rounds.append(
                    Round(
                        Logistic.from_dict(own["known"], len(known)),
                        Logistic.from_dict(own["competing"], len(COMPETING_NAMES)),
                        is_late,
                    )
                )
            if not rounds:
                raise FormatError("a pairing needs at least one round")
            order = {str(name): float(value) for name, value in values.get("order", {}).items()}
            if not np.isfinite(list(order.values())).all():
                raise FormatError(f"a pairing needs finite weights, got {order}")
            return cls(tuple(rounds), dict(values["fitted_on"]), order)
        except FormatError:
            raise
        except (ValueError, TypeError, LookupError, AttributeError, OverflowError) as error:
            raise FormatError(f"a pairing is damaged: {error!r}") from error


def names_of(number: int, *, is_late: bool = False) -> tuple[str, ...]:
    """The features that a round knows, by its number from 0, and whether it is a late one."""
    if not number:
        return OWN_NAMES
    return OWN_NAMES + CONTEXT_NAMES + (INLINING_NAMES + ORDER_NAMES if is_late else ())
