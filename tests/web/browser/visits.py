"""Pages in fresh contexts, and what goes wrong on them."""

from __future__ import annotations

import re
from typing import Any

from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Request, WebError

PATIENCE = 30_000
"""Milliseconds to wait for what is expected: the machine may be busy with other tests."""
STATUS = re.compile(r"Failed to load resource: the server responded with a status of (\d+)")
LAPTOP = {"width": 1440, "height": 900}


class Visits:
    """Opens pages. Errors of scripts, refusals by a page's policy and requests to other places
    than the page's own are problems; so is a status that the test did not provoke."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._contexts: list[BrowserContext] = []
        self._provoked: set[int] = set()
        self._problems: list[str] = []

    def open(self, address: str, **options: Any) -> Page:
        """A page in a context of its own; options are those of ``Browser.new_context``."""
        context = self._browser.new_context(**{"viewport": LAPTOP, **options})
        self._contexts.append(context)
        context.set_default_timeout(PATIENCE)
        context.on("weberror", self._on_error)
        context.on("console", self._on_console)
        home = "/".join(address.split("/", 3)[:3])
        context.on("request", lambda request: self._on_request(request, home))
        page = context.new_page()
        page.goto(address)
        return page

    def provoke(self, *statuses: int) -> None:
        """Lets the server answer with these."""
        self._provoked.update(statuses)

    def close(self) -> list[str]:
        """Closes all pages; gives the problems."""
        for context in self._contexts:
            context.close()
        return self._problems

    def _on_error(self, error: WebError) -> None:
        self._problems.append(f"error of a script: {error.error}")

    def _on_console(self, message: ConsoleMessage) -> None:
        status = STATUS.match(message.text)
        if message.type != "error" or (status and int(status[1]) in self._provoked):
            return
        self._problems.append(f"{message.text} ({message.location.get('url')})")

    def _on_request(self, request: Request, home: str) -> None:
        if not request.url.startswith((f"{home}/", "data:", "blob:")):
            self._problems.append(f"{home} asks {request.url}")
