"""Libraries on the tests' Milvus server, each of a name of its own."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from graphkin.library.engines.base import Engine, Space
from graphkin.library.engines.milvus.collection import RECORDS
from graphkin.library.engines.milvus.engine import MilvusEngine


class Factory:
    """Makes libraries of names that no other test uses, and drops them at the end."""

    def __init__(self, address: str, graphs_folder: Path) -> None:
        self.address, self.graphs_folder = address, graphs_folder
        self._urls: list[str] = []

    def url(self) -> str:
        self._urls.append(f"milvus://{self.address}/test_{secrets.token_hex(6)}")
        return self._urls[-1]

    def create(self, space: Space, documents: Mapping[str, bytes]) -> MilvusEngine:
        return MilvusEngine.create(self.url(), space, documents, graphs_folder=self.graphs_folder)

    def reopen(self, engine: Engine) -> MilvusEngine:
        assert isinstance(engine, MilvusEngine)
        engine.close()
        return MilvusEngine.open(str(engine.address))

    def drop(self) -> None:
        client = raw_client(self.address)
        for url in self._urls:
            for name in (url.rpartition("/")[2], url.rpartition("/")[2] + RECORDS):
                client.drop_collection(name)
        client.close()


def raw_client(address: str) -> Any:
    from pymilvus import MilvusClient

    return MilvusClient(uri=f"http://{address}", dedicated=True)
