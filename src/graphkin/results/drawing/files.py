"""Files of pictures."""

from __future__ import annotations

from pathlib import Path

from graphkin._support.files import PathLike
from graphkin.errors import ConfigError

PICTURES = (".png", ".svg", ".pdf")


def picture_ending(path: PathLike) -> str:
    """The ending of a picture's file, in small letters; another than ``PICTURES`` is refused."""
    ending = Path(path).suffix.lower()
    if ending not in PICTURES:
        raise ConfigError(f"cannot draw {path}: name a file that ends in {', '.join(PICTURES)}")
    return ending
