"""Backwards through the instructions of one function, for any processor."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator

from graphkin.binaries.image import Image
from graphkin.binaries.recovery.architecture import BRANCH, CALL, JUMP, STOP, Architecture
from graphkin.binaries.recovery.listing import Listing


class Walk:
    """Walks back from positions of one function.

    Where nothing falls through from above, as behind a return or a call that never comes back,
    it goes on at a branch that leads to the place.
    """

    def __init__(self, architecture: Architecture, image: Image) -> None:
        self._architecture = architecture
        self._image = image
        self._sources: dict[int, int] = {}
        """Address to the position of a direct branch to it."""
        self._known = 0

    def back(self, listing: Listing, position: int, reach: int) -> Iterator[int]:
        """Up to ``reach`` positions ahead of one, the nearest first."""
        crossed: set[int] = set()
        for _ in range(reach):
            before = self._before(listing, position, crossed)
            if before is None:
                return
            position = before
            yield position

    def _before(self, listing: Listing, position: int, crossed: set[int]) -> int | None:
        address = listing.addresses[position]
        above = position - 1
        is_next = above >= 0 and listing.addresses[above] + listing.sizes[above] == address
        kind = self._kind(listing, above)
        if is_next and kind not in (JUMP, STOP, CALL):
            return above
        source = self._source(listing, address)
        if source is None or source in crossed:
            return above if above >= 0 else None
        if is_next and kind == CALL and not self._never_returns(listing, above):
            return above
        crossed.add(source)
        return source

    def _kind(self, listing: Listing, position: int) -> int | None:
        number = bisect_left(listing.controls, position)
        if number < len(listing.controls) and listing.controls[number] == position:
            return listing.kinds[number]
        return None

    def _never_returns(self, listing: Listing, call: int) -> bool:
        control = bisect_left(listing.controls, call)
        target = self._architecture.called(self._image, listing, control)
        return target in self._image.noreturn

    def _source(self, listing: Listing, address: int) -> int | None:
        for control in range(self._known, len(listing.controls)):
            if listing.kinds[control] in (BRANCH, JUMP):
                target = listing.targets[control]
                if target is not None:
                    self._sources.setdefault(target, listing.controls[control])
        self._known = len(listing.controls)
        return self._sources.get(address)
