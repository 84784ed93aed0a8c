"""Datasets of labelled graphs in the TUDataset text format."""
