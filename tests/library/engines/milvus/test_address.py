"""The URLs of Milvus libraries."""

from __future__ import annotations

import pytest

from graphkin.errors import ConfigError, StorageError
from graphkin.library.engines.milvus.address import MilvusAddress
from graphkin.library.engines.milvus.client import server_errors


@pytest.mark.parametrize("option", ["graphs-folder", "payloads"])
def test_the_parts_of_an_address(option: str) -> None:
    """A folder of graphs was called payloads at first."""
    url = f"milvus://me:p%40ss%2Fword@db.example:1234/known_code?{option}=/mnt/my%20graphs&shards=4"
    address = MilvusAddress.parse(url + "&secure=true")
    assert address == MilvusAddress(
        host="db.example",
        collection="known_code",
        port=1234,
        token="me:p@ss/word",
        secure=True,
        graphs_folder="/mnt/my graphs",
        shards=4,
    )
    assert address.uri == "https://db.example:1234"
    assert str(address) == "milvus://db.example:1234/known_code", "messages show no password"


def test_what_may_be_left_out() -> None:
    address = MilvusAddress.parse("milvus://localhost/library")
    assert address == MilvusAddress(host="localhost", collection="library", port=19530)
    assert address.uri == "http://localhost:19530"


def test_a_token_alone_and_an_address_of_version_6() -> None:
    address = MilvusAddress.parse("milvus://secret@[::1]:99/library")
    assert address.token == "secret"
    assert address.uri == "http://[::1]:99"
    assert MilvusAddress.parse(str(address)) == MilvusAddress("::1", "library", 99)


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("library.kin", "write milvus://"),
        ("milvus:///library", "write milvus://"),
        ("http://localhost:19530/library", "write milvus://"),
        ("milvus://localhost:port/library", "port"),
        ("milvus://localhost:99999/library", "[Pp]ort"),
        ("milvus://localhost", "'' cannot name a collection"),
        ("milvus://localhost/two/parts", "'two/parts' cannot name"),
        ("milvus://localhost/my-library", "'my-library' cannot name"),
        ("milvus://localhost/1st", "'1st' cannot name"),
        ("milvus://localhost/" + "x" * 201, "cannot name"),
        ("milvus://localhost/library?payload=/x", "unknown option 'payload'"),
        ("milvus://localhost/library?shards=0", "shards must be .* got '0'"),
        ("milvus://localhost/library?shards=many", "shards must be .* got 'many'"),
        ("milvus://localhost/library?secure=yes", "secure must be true or false, got 'yes'"),
    ],
)
def test_other_urls_are_refused(url: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        MilvusAddress.parse(url)


@pytest.mark.parametrize(
    ("reason", "hint"),
    [
        ("failed to search: collection not loaded[collection=1]", "again in a minute"),
        ("Fail connecting to server on 127.0.0.1:1", "is the server up"),
    ],
)
def test_what_to_do_about_an_error_of_the_server(reason: str, hint: str) -> None:
    exceptions = pytest.importorskip("pymilvus.exceptions")
    with (
        pytest.raises(StorageError, match=f"cannot search in it: .*{hint}"),
        server_errors("search in it"),
    ):
        raise exceptions.MilvusException(message=reason)
