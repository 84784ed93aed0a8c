"""A library as a collection of a Milvus server."""
