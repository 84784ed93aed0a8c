"""Layered drawings of control flow; see :mod:`graphkin.results.drawing.layout.layout`."""

from graphkin.results.drawing.layout.layout import Layout, lay_out
from graphkin.results.drawing.layout.routes import Spacing

__all__ = ["Layout", "Spacing", "lay_out"]
