"""A library of graphs: kept, searched by code, and reranked by matching."""
