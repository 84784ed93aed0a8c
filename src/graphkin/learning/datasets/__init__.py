"""Your own graphs as tasks: in classes, in labelled pairs, in triplets, or with target values."""

from graphkin.learning.datasets.classes import ClassDataset
from graphkin.learning.datasets.dataset import Dataset
from graphkin.learning.datasets.files import read_dataset
from graphkin.learning.datasets.pairs import PairDataset, TargetDataset, TripletDataset

__all__ = [
    "ClassDataset",
    "Dataset",
    "PairDataset",
    "TargetDataset",
    "TripletDataset",
    "read_dataset",
]
