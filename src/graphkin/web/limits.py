"""What requests may cost the server."""

from __future__ import annotations

from dataclasses import dataclass

MEGABYTE = 1 << 20


@dataclass(frozen=True)
class ServerLimits:
    """Bounds that keep one client, or one hostile file, from taking the server down."""

    upload_bytes: int = 256 * MEGABYTE
    """Of one file that is sent, or that the library names and whose code is to be shown."""
    kept_bytes: int = 4096 * MEGABYTE
    """Of all uploaded files; the oldest make room for new ones."""
    kept_graphs: int = 512 * MEGABYTE
    """Of the graphs of uploaded files in memory, and of one file at most; the oldest are read
    again when asked for."""
    functions: int = 200_000
    """Of one file; more are left out."""
    upload_seconds: float = 300.0
    """For the bytes of a file to arrive."""
    extraction_seconds: float = 120.0
    """For a process to read one file."""
    extraction_bytes: int = 2048 * MEGABYTE
    """Memory of that process."""
    extractions: int = 2
    """Files that are received, and files that are looked into again, at the same time."""
    request_seconds: float = 60.0
    """For an answer to any other request."""
    document_bytes: int = 64 * 1024
    """Of the JSON of a request."""
    waiting: int = 64
    """Requests of one kind that wait or are worked on; more are sent away."""
    query_blocks: int = 10_000
    """Of a function that is searched for."""
    comparison_weights: int = 12_000_000
    """Blocks of one function times those of the other: so many weights has each attention map."""
    diff_functions: int = 40_000
    """Of each of two files that are compared function by function."""
    top: int = 200
    rerank: int = 1_000
    jobs: int = 32
    """Scans, diffs and additions that the server remembers, of each."""


MOST_WAITING_JOBS = 8
"""Scans or additions that wait their turn."""
