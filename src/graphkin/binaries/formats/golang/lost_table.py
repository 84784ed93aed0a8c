"""Go programs whose table of functions could not be read: damaged, or of a version to come."""

from __future__ import annotations

import re

from graphkin.binaries.image import Image

BUILD_INFO = re.compile(rb"\xff Go buildinf:")
"""What the linker leaves in the data of every program since Go 1.13."""
ALIGNMENT = 16
NAMES = ("runtime.", "main.main")
"""How a name begins that every program has."""
REMARK = (
    "it is a program of Go, and its table of functions is damaged or of an unknown version; "
    "functions are found by other means, and lack their names"
)


def lost_table(image: Image) -> str | None:
    """A remark about a program without names of Go; None where they were found, by any table."""
    for extent in image.extents:
        if any(name.startswith(NAMES) for name in (extent.name, *extent.aliases)):
            return None
    for region in image.regions:
        if region.executable:
            continue
        for match in BUILD_INFO.finditer(region.data):
            if (region.start + match.start()) % ALIGNMENT == 0:
                return REMARK
    return None
