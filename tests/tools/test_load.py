"""The load on a library and on a server: what counts as wrong, and a few seconds of each."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.paths import REPOSITORY
from tests.scripts import script

RUN = REPOSITORY / "tools" / "load" / "run.py"
history = script("tools/load/history.py")
Span = history.Span


def loaded(part: str, seconds: float, folder: Path) -> dict[str, Any]:
    """The result of one part, which is sound."""
    output = folder / "load.json"
    command = [sys.executable, RUN, part, "--minutes", str(seconds / 60), "--output", output]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return dict(json.loads(output.read_text())[part])


def test_states_follow_from_steps() -> None:
    batches, rounds = history.BATCHES, len(history.ROUND)
    assert history.state(0) == (None,) * batches
    assert history.state(batches) == tuple(range(1, batches + 1))
    assert history.state(batches + 1) == (batches + 1, *range(2, batches + 1))
    assert history.state(rounds * batches) == (None,) * batches
    assert history.kind_of(rounds * batches) == history.REMOVE


def test_a_read_must_be_between_what_was_acknowledged_and_what_had_begun() -> None:
    span = Span(acknowledged=7, begun=8)
    assert history.is_state(history.state(7), span)
    assert history.is_state(history.state(8), span)
    for stale_or_early in (6, 9):
        assert not history.is_state(history.state(stale_or_early), span)
    mixed = (*history.state(8)[:1], *history.state(6)[1:])
    assert history.is_state(mixed, Span(6, 8)), "it is the state after 7"
    assert not history.is_state((*history.state(6)[:1], *history.state(8)[1:]), Span(6, 8))
    assert history.is_version(0, 7, span)
    assert not history.is_version(0, 1, span)
    assert not history.is_version(0, None, span)


def test_a_batch_that_is_not_whole_is_refused() -> None:
    rows = history.ROWS
    assert history.seen_version(rows, {"step=7": rows, "other=1": rows}) == 7
    for functions, tags in ((rows - 1, {"step=7": rows - 1}), (rows, {"step=7": 1, "step=8": 19})):
        with pytest.raises(ValueError, match="functions of"):
            history.seen_version(functions, tags)


@pytest.mark.skipif(sys.platform != "linux", reason="counts what Linux tells of processes")
def test_readers_and_writers_on_one_library(tmp_path: Path) -> None:
    result = loaded("library", 6, tmp_path)
    assert result["operations"]["add"]["count"] > 0
    assert sum(own["count"] for own in result["operations"].values()) >= 6
    assert (result["lost"], result["inconsistent"], result["errors"]) == (0, 0, 0)


@pytest.mark.skipif(sys.platform != "linux", reason="clients have addresses of their own")
def test_a_server_under_load(tmp_path: Path) -> None:
    result = loaded("server", 6, tmp_path)
    assert result["statuses"]["200"] > 0
    assert result["bursts"]["requests"] == result["burst_size"]
    assert set(result["bursts"]["statuses"]) <= {"200", "503"}
    assert result["stop"]["left_behind"] == []
