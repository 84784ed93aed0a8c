"""The closed sets of choices that a model configuration takes."""

from typing import Literal

Propagation = Literal["message", "convolution"]
Similarity = Literal["euclidean", "cosine", "hamming", "siamese", "alignment", "joint"]
Readout = Literal["gated", "nodes"]
AlignmentPool = Literal["sum", "mean"]
NodeUpdate = Literal["gru", "mlp", "rnn", "lstm"]
MessageAggregation = Literal["sum", "mean", "max", "attention"]
MessageNorm = Literal["none", "graph"]
AttentionSimilarity = Literal["euclidean", "dot", "cosine"]
ReverseMessages = Literal["none", "shared", "separate"]
NodeInput = Literal["constant", "dense", "tokens"]
EdgeInput = Literal["constant", "dense", "types"]
