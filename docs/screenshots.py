"""Makes the pictures of the tutorials: the page of ``graphkin serve --demo``, in Chromium, and a
comparison with the model ``mnemonics``.

    python docs/screenshots.py [FOLDER]

They go to docs/screenshots unless another folder is named. From run to run, only the seconds that a
search or a scan took differ. Needs Playwright, Pillow and Chromium.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import DEVNULL
from tempfile import TemporaryDirectory
from time import sleep
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

from PIL import Image
from playwright.sync_api import Browser, Page, expect, sync_playwright

from graphkin.binaries import samples

HERE = Path(__file__).parent
PROGRAM = Path(sysconfig.get_path("scripts")) / "graphkin"
LAPTOP = {"width": 1440, "height": 900}
PHONE = {"width": 390, "height": 844}
PATIENCE = 120_000
"""Milliseconds for anything to appear."""
COLOURS = 128
"""Colours of a picture: few enough for a small file, and enough for a page."""
NAME = samples.VULNERABLE[1]
SUSPECT = next(f"{address:#x}" for address, name in samples.true_names().items() if name == NAME)


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "screenshots"
    folder.mkdir(parents=True, exist_ok=True)
    expect.set_options(timeout=PATIENCE)
    with demo_server() as address, chromium() as browser:
        page = opened(browser, address, viewport=LAPTOP)
        search(page)
        save(page, folder / "search.png")
        compare(page)
        save(page, folder / "compare.png")
        scan(page)
        save(page, folder / "scan.png")
        link(page, "Library")
        expect(page.get_by_role("button", name="Remove").first).to_be_visible()
        save(page, folder / "library.png")
        phone = opened(browser, address, viewport=PHONE, is_mobile=True, has_touch=True)
        search(phone)
        kin = phone.get_by_role("region", name="Kin of the function")
        kin.evaluate("(kin) => kin.scrollIntoView()")
        save(phone, folder / "phone.png")
        with stepwise_comparison() as comparison_address:
            comparison = opened(browser, comparison_address, viewport=LAPTOP)
            point_at_a_block(comparison)
            save(comparison, folder / "attention.png")


@contextmanager
def demo_server() -> Iterator[str]:
    """The address of a server over the bundled samples."""
    command = [PROGRAM, "serve", "--demo", "--port", "0", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address = json.loads(process.stdout.readline())["address"]
        try:
            wait_for(address)
            yield address
        finally:
            process.terminate()


def wait_for(address: str) -> None:
    for _ in range(PATIENCE // 100):
        try:
            urlopen(f"{address}api/status").close()
        except URLError:
            sleep(0.1)
        else:
            return
    raise SystemExit(f"{address} does not answer")


@contextmanager
def chromium() -> Iterator[Browser]:
    program = shutil.which("chromium") or shutil.which("google-chrome")
    # Chromium's sandbox refuses to run as root.
    options = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=program, args=options)


def opened(browser: Browser, address: str, **options: Any) -> Page:
    context = browser.new_context(color_scheme="light", reduced_motion="reduce", **options)
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    page.goto(address)
    return page


def search(page: Page) -> None:
    """Opens the firmware, and searches for the kin of the vulnerable function."""
    page.get_by_label("Drop a binary here").set_input_files(samples.FIRMWARE)
    expect(page.get_by_role("row").nth(1)).to_be_visible()  # the list clears the filter
    page.get_by_role("searchbox", name="Filter functions").fill(SUSPECT)
    page.get_by_role("row").filter(has_text=SUSPECT).click()
    expect(page.get_by_role("row", selected=True)).to_contain_text(SUSPECT)
    kin = page.get_by_role("region", name="Kin of the function")
    kin.get_by_label("least probability").select_option("any")
    page.reload()  # shows the picked function among the others
    expect(page.get_by_role("link", name="Compare with process_heartbeat").first).to_be_visible()


def compare(page: Page) -> None:
    page.get_by_role("link", name="Compare with process_heartbeat").first.click()
    frame = page.get_by_title("Comparison of the two functions").content_frame
    expect(frame.locator("#overlay path").first).to_be_attached()


@contextmanager
def stepwise_comparison() -> Iterator[str]:
    """The address of a page about two functions, by a matcher that attends in every step."""
    samples_folder, firmware = samples.FIRMWARE.parent, samples.FIRMWARE.name
    with TemporaryDirectory() as folder:
        file = Path(folder) / "heartbeat.html"
        command = [PROGRAM, "compare", f"{firmware}:{SUSPECT}", f"gcc-O2/libkinbeat.so:{NAME}"]
        command += ["--model", "mnemonics", "--html", str(file)]
        subprocess.run(command, cwd=samples_folder, check=True, stdout=DEVNULL)
        yield file.as_uri()


def point_at_a_block(page: Page) -> None:
    page.locator("#step").fill("1")
    page.locator("#left .block").nth(2).hover()
    expect(page.locator("#right .block.seen").first).to_be_attached()


def scan(page: Page) -> None:
    link(page, "Scan")
    page.get_by_role("button", name="Start the scan").click()
    expect(page.get_by_role("button", name="Scan again")).to_be_visible()
    expect(page.get_by_role("link", name="Compare with").first).to_be_visible()


def link(page: Page, name: str) -> None:
    page.get_by_role("navigation", name="Views").get_by_role("link", name=name).click()


def save(page: Page, path: Path) -> None:
    page.screenshot(path=path, animations="disabled", caret="hide")
    picture = Image.open(path).convert("RGB")
    picture.quantize(COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)
    print(f"{path} {path.stat().st_size >> 10} KB")


if __name__ == "__main__":
    main()
