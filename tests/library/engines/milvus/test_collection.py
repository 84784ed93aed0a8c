"""What a collection says of itself, which anybody may have written."""

from __future__ import annotations

import json

import pytest

from graphkin.errors import FormatError
from graphkin.library.engines.base import Space
from graphkin.library.engines.milvus.collection import Description

DESCRIPTION = Description(Space("hamming", 64), "/mnt/graphs", "known_code-0a1b2c3d", {"a": "b"})


def test_a_description_comes_out_as_it_went_in() -> None:
    text = DESCRIPTION.to_text()
    assert Description.from_text(text, "milvus://x/y") == DESCRIPTION
    assert json.loads(text)["payloads"] == "/mnt/graphs", "as the first libraries call the folder"


@pytest.mark.parametrize(
    "folder", ["../../home/me", "/etc", "..", "", "a/b-0a1b2c3d", "x-0a1b2c3d/..", 7, None]
)
def test_a_server_cannot_lead_to_another_folder(folder: object) -> None:
    """Bundles are written below it, and deleted."""
    values = {**json.loads(DESCRIPTION.to_text()), "folder": folder}
    with pytest.raises(FormatError, match=r"made to harm|damaged"):
        Description.from_text(json.dumps(values), "milvus://x/y")
