"""The tools, called by the client of the protocol's own SDK over stdin and stdout."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graphkin import Library
from graphkin.binaries import samples
from graphkin.library.indexing.index import index_paths
from tests.web.browser.using import SUSPECT

mcp = pytest.importorskip("mcp", reason="the SDK of the extra mcp is not installed")

START = "import sys; sys.argv[0] = 'graphkin'; from graphkin.cli.main import main; main()"
TOOLS = {"list_files", "show", "compare", "search", "scan", "diff", "library_content"}
Ask = Callable[..., Any]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("library") / "samples.kin"
    with Library.create(path) as opened:
        file = samples.path("gcc-O2/libkinbeat.so")
        index_paths(opened, [file], tags=samples.tags(file))
    return path


def session(work: Callable[[Any], Any], *arguments: str) -> Any:
    """What ``work`` gives, which gets a client of a server that was started for it."""
    from mcp.client.stdio import StdioServerParameters

    command = ["-c", START, "mcp", str(samples.ELF), *arguments]
    parameters = StdioServerParameters(command=sys.executable, args=command, env=environment())

    async def run() -> Any:
        async with mcp.Client(parameters) as client:
            return await work(client)

    return asyncio.run(run())


def environment() -> dict[str, str]:
    import os

    names = ("PYTHONPATH", "TMPDIR", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS")
    return {name: os.environ[name] for name in names if name in os.environ}


async def ask(client: Any, tool: str, **arguments: Any) -> dict[str, Any]:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    answer = result.structured_content
    assert isinstance(answer, dict)
    return answer


async def refusal(client: Any, tool: str, **arguments: Any) -> str:
    result = await client.call_tool(tool, arguments)
    assert result.is_error
    return str(result.content[0].text)


def test_all_tools(library: Path) -> None:
    async def work(client: Any) -> None:
        listed = await client.list_tools()
        assert {tool.name for tool in listed.tools} == TOOLS
        assert all(tool.description for tool in listed.tools)
        files = (await ask(client, "list_files"))["files"]
        assert str(samples.FIRMWARE) in files

        functions = await ask(client, "show", target="gateway", limit=2, offset=1)
        assert functions["total"] == len(samples.true_names())
        assert [item["address"] for item in functions["functions"]] == ["0x4004c0", "0x400580"]
        code = await ask(client, "show", target=f"gateway:{SUSPECT}")
        assert "0x4024d0" in code["text"]

        known = "gcc-O2/libkinbeat.so:process_heartbeat"
        compared = await ask(client, "compare", left=f"gateway:{SUSPECT}", right=known)
        assert compared["probability"] > 0.5
        assert compared["note"] is None
        stub = "gcc-O0/libkinproto.so:word"
        small = await ask(client, "compare", left=stub, right=stub)
        assert (small["probability"], small["note"]) == (0.4, "too small to tell")
        found = await ask(client, "search", target=f"gateway:{SUSPECT}", min_probability=0.1)
        assert found["hits"][0]["function"] == "process_heartbeat"
        assert found["hits"][0]["tags"] == dict([samples.TAG])
        scanned = await ask(client, "scan", target="gateway", min_probability=0.1, limit=5)
        assert SUSPECT in [item["query"]["address"] for item in scanned["results"]]

        diff = await ask(client, "diff", old="gateway", new="gateway-fixed")
        assert (diff["identical"], diff["changed"], diff["total"]) == (118, 1, 1)
        assert diff["functions"][0]["left"]["address"] == SUSPECT
        content = await ask(client, "library_content")
        assert content["functions"] >= 1
        assert content["architectures"] == {"x86-64": content["functions"]}

    session(work, "--library", str(library))


def test_what_is_refused() -> None:
    async def work(client: Any) -> None:
        assert "there is no file" in await refusal(client, "show", target="/etc/passwd")
        assert "there is no file" in await refusal(client, "diff", old="gateway", new="../x")
        assert "--library" in await refusal(client, "search", target=f"gateway:{SUSPECT}")
        assert "name one function" in await refusal(
            client, "compare", left="gateway", right="gateway"
        )
        text = await refusal(client, "show", target="gateway", limit=100_000)
        assert "limit" in text
        assert "truth.json" in await refusal(client, "show", target="truth.json")

    session(work)
