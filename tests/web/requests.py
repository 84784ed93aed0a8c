"""What tests ask of a server."""

from __future__ import annotations

import hashlib
import json
import time
from typing import Any

from fastapi.testclient import TestClient
from httpx import Response

from graphkin.binaries import samples

FIRMWARE = samples.FIRMWARE.read_bytes()
FIRMWARE_ID = hashlib.sha256(FIRMWARE).hexdigest()


def send(client: TestClient, content: bytes = FIRMWARE, name: str = "gateway") -> Response:
    return client.post("/api/binaries", params={"name": name}, content=content)


def number_of(client: TestClient, binary: str, address: int) -> int:
    """Which function of an uploaded file begins at an address."""
    rows = client.get(f"/api/binaries/{binary}/functions").json()["functions"]
    return next(row["number"] for row in rows if int(row["address"], 16) == address)


def suspect(client: TestClient) -> str:
    """The reference of the vulnerable function of the firmware, which is sent first."""
    assert send(client).status_code == 201
    names = {name: address for address, name in samples.true_names().items()}
    return f"upload:{FIRMWARE_ID}:{number_of(client, FIRMWARE_ID, names['process_heartbeat'])}"


def events(response: Response) -> list[tuple[str, Any]]:
    """Name and document of each server-sent event."""
    received = []
    for block in response.text.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if ": " in line)
        if "event" in fields:
            received.append((fields["event"], json.loads(fields["data"])))
    return received


def message(response: Response) -> str:
    """Of an error."""
    return str(response.json()["error"]["message"])


def wait_for(client: TestClient, path: str, seconds: float = 120) -> dict[str, Any]:
    """A job when it is over."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        job: dict[str, Any] = client.get(path).json()
        if job["state"] in ("done", "failed", "cancelled"):
            return job
        time.sleep(0.05)
    raise TimeoutError(path)
