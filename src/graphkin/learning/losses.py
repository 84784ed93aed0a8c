"""The losses of the paper, a contrastive one, and of targets, each averaged over its examples."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional

from graphkin.errors import ConfigError
from graphkin.models.config import Link, Similarity
from graphkin.models.similarity import distances_of, similarity_matrix

Loss = Literal["margin", "hamming", "contrastive", "mse", "huber"]
TARGET_LOSSES = ("mse", "huber")
"""Of pairs with target values; the others are of pairs that are similar or not."""


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


def contrastive_list_loss(scores: Tensor, scale: float) -> Tensor:
    """The first of each list is told from the others: mean -log softmax of its scaled score.

    Args:
        scores: (T, 1 + M) similarities, of the similar pair first; triplets have M = 1.
        scale: how much a difference counts, 1 / temperature.

    Example:
        >>> import torch
        >>> contrastive_list_loss(torch.zeros(1, 5), 10.0).exp().item()
        5.0
    """
    return ((scale * scores).logsumexp(dim=1) - scale * scores[:, 0]).mean()


def contrastive_loss(
    left: Tensor, right: Tensor, groups: Tensor, scale: float, similarity: Similarity
) -> Tensor:
    """Every graph of a batch tells its partner from all graphs of other groups (InfoNCE).

    The mean over 2P graphs of -log softmax of the scaled similarity to the partner, among the
    partner and all graphs of other groups. One batch of P pairs makes 4P(P - 1) comparisons.

    Args:
        left: (P, G) vectors.
        right: (P, G) vectors of graphs that are similar to those on the left.
        groups: (P,) pairs of one group are not told apart.
        scale: how much a difference counts, 1 / temperature.
        similarity: how vectors are compared.

    Example:
        >>> import torch
        >>> same = torch.eye(2)
        >>> contrastive_loss(same, same, torch.arange(2), 0.0, "cosine").exp().item()
        3.0
    """
    vectors = torch.cat([left, right])
    scores = scale * similarity_matrix(vectors, similarity)
    pairs = len(left)
    partners = torch.cat([scores.diagonal(pairs), scores.diagonal(-pairs)])
    groups = groups.repeat(2)
    others = scores.masked_fill(groups[:, None] == groups[None], -torch.inf)
    return (torch.cat([others, partners[:, None]], dim=1).logsumexp(dim=1) - partners).mean()


def target_loss(values: Tensor, targets: Tensor, loss: Loss, delta: float) -> Tensor:
    """mean (v - t)^2, or with ``huber`` that of small errors, and linear beyond ``delta``.

    Args:
        values: (P,) v, what a model predicts.
        targets: (P,) t.
        loss: ``mse`` or ``huber``.
        delta: where the Huber loss becomes linear.

    Example:
        >>> import torch
        >>> target_loss(torch.tensor([0.5, 1.0]), torch.tensor([0.0, 1.0]), "mse", 1.0).item()
        0.125
    """
    if loss == "mse":
        return functional.mse_loss(values, targets)
    return functional.huber_loss(values, targets, delta=delta)


def scores_loss(
    scores: Tensor,
    labels: Tensor | None,
    loss: Loss,
    margin: float,
    similarity: Similarity,
    scale: float = 1.0,
) -> Tensor:
    """The loss of a batch from its scores.

    Args:
        scores: (P,) as models return them.
        labels: (P,) for pairs; None for triplets, whose two pairs take turns.
        loss: which of them.
        margin: gamma, for the margin losses.
        similarity: what the scores are.
        scale: 1 / temperature, for the contrastive loss.
    """
    check_loss(loss, similarity)
    values = distances_of(scores, similarity) if loss == "margin" else scores
    if labels is not None:
        if loss == "contrastive":
            raise ConfigError(
                "the contrastive loss takes mode='kin', 'lists' or 'triplets', not 'pairs'"
            )
        if loss == "margin":
            return margin_pair_loss(values, labels, margin)
        return hamming_pair_loss(values, labels)
    positive, negative = values.view(-1, 2).unbind(dim=1)
    if loss == "contrastive":
        return contrastive_list_loss(values.view(-1, 2), scale)
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


def check_link(loss: Loss, link: Link) -> None:
    """The losses of targets, and only they, need a model with a link to their values."""
    if (loss in TARGET_LOSSES) != (link != "none"):
        raise ConfigError(
            f"loss={loss!r} does not go with link={link!r} of the model: the losses of target "
            "values, mse and huber, need the link exp, sigmoid, distance or root; others need none"
        )
