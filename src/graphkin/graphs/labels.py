"""Labels of pairs: similar or not."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphkin.errors import GraphError


def similarity_labels(labels: ArrayLike) -> NDArray[np.float32]:
    """(P,) float32, +1 similar and -1 dissimilar, from labels of either usual kind.

    Args:
        labels: (P,) of 1 and -1, of 1 and 0, or of booleans.

    Example:
        >>> similarity_labels([True, False, True]).tolist()
        [1.0, -1.0, 1.0]
    """
    values = np.asarray(labels)
    if values.dtype.kind == "O" and values.ndim == 1:
        values = np.array(values.tolist())
    if values.dtype.kind not in "biuf" or values.ndim != 1:
        raise GraphError(
            f"labels must be a flat list of +1 and -1, of 1 and 0, or of booleans; got dtype "
            f"{values.dtype} and shape {values.shape}"
        )
    present = np.unique(values.astype(np.float64))
    if not (np.isin(present, (-1, 1)).all() or np.isin(present, (0, 1)).all()):
        raise GraphError(
            "labels must be +1 and -1, 1 and 0, or booleans, and of one kind; got "
            f"{', '.join(f'{value:g}' for value in present[:6].tolist())}. Other numbers are "
            "target values: use fit or a TargetDataset, and the loss mse or huber; in a "
            "loop of your own, PairBatch.pack(pairs, values=...)"
        )
    return np.where(values > 0, 1, -1).astype(np.float32)
