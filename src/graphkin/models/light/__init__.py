"""Trained models that only answer: the forward pass in numpy, without torch.

Torch takes more than a second to load, many times what a search takes. The equations are those of
:mod:`graphkin.models.network` and :mod:`graphkin.models.late`, for the kinds of models that
libraries of functions are made with; other models answer by torch. Both give the same numbers up
to rounding, and neither is noticed by who asks.
"""

from graphkin.models.light.embedder import LightEmbedder
from graphkin.models.light.matcher import LightMatcher

__all__ = ["LightEmbedder", "LightMatcher"]
