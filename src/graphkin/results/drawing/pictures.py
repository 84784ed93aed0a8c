"""Files of pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from graphkin._support.files import PathLike
from graphkin.errors import ConfigError, StorageError

PICTURES = (".png", ".svg", ".pdf")


def headless_pyplot() -> Any:
    """Matplotlib's pyplot, which is slow to import, without a display."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    return pyplot


def picture_ending(path: PathLike) -> str:
    """The ending of a picture's file, in small letters; another than ``PICTURES`` is refused."""
    ending = Path(path).suffix.lower()
    if ending not in PICTURES:
        raise ConfigError(f"cannot draw {path}: name a file that ends in {', '.join(PICTURES)}")
    return ending


def save_picture(figure: Any, path: str | Path) -> None:
    """Writes a figure, and closes it."""
    from matplotlib import pyplot

    try:
        figure.savefig(path, dpi=90)
    except (OSError, ValueError) as error:
        raise StorageError(f"cannot write the picture {path}: {error}") from error
    finally:
        pyplot.close(figure)
