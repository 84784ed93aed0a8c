"""Similarities of graph vectors. Higher means more alike."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional


def euclidean_similarity(left: Tensor, right: Tensor) -> Tensor:
    """-|x - y|^2, (P, G) x (P, G) -> (P,): the negative of the paper's distance d."""
    return -(left - right).square().sum(dim=-1)


def cosine_similarity(left: Tensor, right: Tensor) -> Tensor:
    """x.y / (|x| |y|), (P, G) x (P, G) -> (P,)"""
    return functional.cosine_similarity(left, right, dim=-1)


def hamming_similarity(left: Tensor, right: Tensor) -> Tensor:
    """mean_k tanh(x_k) tanh(y_k), (P, G) x (P, G) -> (P,): relaxed agreement of bits in [-1, 1]."""
    return (torch.tanh(left) * torch.tanh(right)).mean(dim=-1)


VECTOR_SIMILARITIES = {
    "euclidean": euclidean_similarity,
    "cosine": cosine_similarity,
    "hamming": hamming_similarity,
}


def pack_codes(vectors: NDArray[np.float32]) -> NDArray[np.uint8]:
    """The sign bits of graph vectors: (N, G) -> (N, G / 8), the first component in the top bit."""
    return np.packbits(vectors > 0, axis=1)


def hamming_distances(left: NDArray[np.uint8], right: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Differing bits of every code on the left with every one on the right: (A, B)."""
    different = left[:, None, :] ^ right[None, :, :]
    counts: NDArray[np.int64] = np.bitwise_count(different).sum(axis=2, dtype=np.int64)
    return counts
