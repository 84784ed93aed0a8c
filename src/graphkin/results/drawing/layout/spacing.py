"""Distances of a drawing."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Spacing:
    """All in the unit of the boxes' sizes."""

    between_boxes: float = 26.0
    beside_lane: float = 13.0
    """From a lane to the box, or the lane, next to it."""
    between_tracks: float = 8.0
    """From one level part of a line to the next, between two rows."""
    beside_row: float = 13.0
    """From a row of boxes to the first track; room for the head of an arrow."""
    between_ports: float = 18.0
    """Where lines leave a box at its lower side."""
    margin: float = 16.0
