"""The losses of the paper, each averaged over its examples."""

from __future__ import annotations

from typing import Literal

from torch import Tensor

from graphkin.errors import ConfigError
from graphkin.models.options import Similarity

Loss = Literal["margin", "hamming"]


def margin_pair_loss(distances: Tensor, labels: Tensor, margin: float) -> Tensor:
    """mean max(0, margin - t (1 - d)): similar pairs below 1 - margin, others above 1 + margin.

    Args:
        distances: (P,) d >= 0.
        labels: (P,) t, +1 similar or -1 dissimilar.
        margin: gamma > 0.

    Example:
        >>> import torch
        >>> margin_pair_loss(torch.tensor([0.5, 3.0]), torch.tensor([1.0, -1.0]), 0.1).item()
        0.0
    """
    return (margin - labels * (1 - distances)).relu().mean()


def margin_triplet_loss(positive: Tensor, negative: Tensor, margin: float) -> Tensor:
    """mean max(0, d(G1, G2) - d(G1, G3) + margin).

    Args:
        positive: (T,) distances of the similar pairs.
        negative: (T,) distances of the dissimilar ones.
        margin: gamma > 0.

    Example:
        >>> import torch
        >>> margin_triplet_loss(torch.tensor([1.0]), torch.tensor([1.5]), 1.0).item()
        0.5
    """
    return (positive - negative + margin).relu().mean()


def hamming_pair_loss(similarities: Tensor, labels: Tensor) -> Tensor:
    """mean (t - s)^2 / 4, in [0, 1].

    Args:
        similarities: (P,) s in [-1, 1].
        labels: (P,) t, +1 similar or -1 dissimilar.

    Example:
        >>> import torch
        >>> hamming_pair_loss(torch.tensor([1.0, 1.0]), torch.tensor([1.0, -1.0])).item()
        0.5
    """
    return (labels - similarities).square().mean() / 4


def hamming_triplet_loss(positive: Tensor, negative: Tensor) -> Tensor:
    """mean ((s(G1, G2) - 1)^2 + (s(G1, G3) + 1)^2) / 8, in [0, 1].

    Args:
        positive: (T,) similarities of the similar pairs, in [-1, 1].
        negative: (T,) similarities of the dissimilar ones.

    Example:
        >>> import torch
        >>> hamming_triplet_loss(torch.tensor([1.0]), torch.tensor([1.0])).item()
        0.5
    """
    return ((positive - 1).square() + (negative + 1).square()).mean() / 8


def distances_of(scores: Tensor, similarity: Similarity) -> Tensor:
    """The distance behind a model's score: 0 for equal graphs where the similarity has a top."""
    if similarity in ("euclidean", "siamese"):
        return -scores
    return 1 - scores


def scores_loss(
    scores: Tensor, labels: Tensor | None, loss: Loss, margin: float, similarity: Similarity
) -> Tensor:
    """The loss of a batch from its scores.

    Args:
        scores: (P,) as models return them.
        labels: (P,) for pairs; None for triplets, whose two pairs take turns.
        loss: which of the paper's two.
        margin: gamma, for the margin losses.
        similarity: what the scores are.
    """
    check_loss(loss, similarity)
    values = distances_of(scores, similarity) if loss == "margin" else scores
    if labels is not None:
        if loss == "margin":
            return margin_pair_loss(values, labels, margin)
        return hamming_pair_loss(values, labels)
    positive, negative = values.view(-1, 2).unbind(dim=1)
    if loss == "margin":
        return margin_triplet_loss(positive, negative, margin)
    return hamming_triplet_loss(positive, negative)


def check_loss(loss: Loss, similarity: Similarity) -> None:
    """The Hamming losses need similarities in [-1, 1]."""
    if loss == "hamming" and similarity not in ("hamming", "cosine"):
        raise ConfigError(
            f"the Hamming loss needs Hamming or cosine similarity, the model's is {similarity}; "
            "use loss='margin'"
        )
