"""The parts of Ghidra, IDA and Binary Ninja that the scripts use, as their documents describe them.

Each keeps its functions in ``names`` and ``comments`` by address; a function without an entry in
``names`` has an automatic name.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType, SimpleNamespace
from typing import Any

CONTENT = b"the file"


class Host:
    """What a script changes, and how it is run."""

    def __init__(self, *addresses: int, base: int = 0, sha256: str | None = None) -> None:
        self.addresses = {address + base for address in addresses}
        self.base = base
        self.names: dict[int, str] = {}
        self.comments: dict[int, str] = {}
        self.sha256 = sha256
        self.proof: list[int] = []
        """Stays empty, unless a name was run as code."""

    def run(self, script: str) -> None:
        """Runs a script as the host would."""
        with self.modules() as scope:
            exec(compile(script, "names.py", "exec"), {"PROOF": self.proof, **scope})

    @contextmanager
    def modules(self) -> Iterator[dict[str, Any]]:
        """Modules that can be imported meanwhile; gives the global names of scripts."""
        raise NotImplementedError


@contextmanager
def imported(**modules: dict[str, Any]) -> Iterator[None]:
    """Lets modules be imported; dots in their names are written as double underscores."""
    before = dict(sys.modules)
    try:
        for name, content in modules.items():
            module = ModuleType(name.replace("__", "."))
            vars(module).update(content)
            sys.modules[name.replace("__", ".")] = module
        yield
    finally:
        sys.modules.clear()
        sys.modules.update(before)


class Ghidra(Host):
    DEFAULT, ANALYSIS, USER_DEFINED = "DEFAULT", "ANALYSIS", "USER_DEFINED"

    @contextmanager
    def modules(self) -> Iterator[dict[str, Any]]:
        kinds = SimpleNamespace(
            DEFAULT=self.DEFAULT, ANALYSIS=self.ANALYSIS, USER_DEFINED=self.USER_DEFINED
        )
        options = SimpleNamespace(
            getString=lambda name, default: {"ELF Original Image Base": "0x0"}.get(name, default)
        )
        program = SimpleNamespace(
            getExecutableSHA256=lambda: self.sha256,
            getOptions={"Program Information": options}.__getitem__,
            getImageBase=lambda: SimpleNamespace(getOffset=lambda: self.base),
        )
        empty: dict[str, Any] = {}
        symbol = {"SourceType": kinds}
        with imported(
            ghidra=empty,
            ghidra__program=empty,
            ghidra__program__model=empty,
            ghidra__program__model__symbol=symbol,
        ):
            yield {
                "currentProgram": program,
                "toAddr": lambda text: int(text, 16),
                "getFunctionAt": self._function,
            }

    def _function(self, address: int) -> SimpleNamespace | None:
        if address not in self.addresses:
            return None

        def set_name(name: str | None, source: str) -> None:
            if source == self.DEFAULT:
                assert name is None
                del self.names[address]
            else:
                assert name is not None
                assert " " not in name
                self.names[address] = name

        is_named = address in self.names
        source = self.USER_DEFINED if is_named else self.DEFAULT
        return SimpleNamespace(
            getName=lambda: self.names.get(address, f"FUN_{address:08x}"),
            setName=set_name,
            getSymbol=lambda: SimpleNamespace(getSource=lambda: source),
            getComment=lambda: self.comments.get(address),
            setComment=lambda text: _keep(self.comments, address, text),
        )


class Ida(Host):
    @contextmanager
    def modules(self) -> Iterator[dict[str, Any]]:
        def get_func(address: int) -> SimpleNamespace | None:
            starts = [start for start in self.addresses if start <= address < start + 16]
            return SimpleNamespace(start_ea=starts[0]) if starts else None

        def set_name(address: int, name: str, flags: int) -> bool:
            if name in self.names.values():
                return False
            _keep(self.names, address, name)
            return True

        digest = None if self.sha256 is None else bytes.fromhex(self.sha256)
        with imported(
            ida_bytes={"get_flags": self.names.get, "has_name": bool},
            ida_funcs={
                "get_func": get_func,
                "get_func_cmt": lambda own, repeatable: self.comments.get(own.start_ea),
                "set_func_cmt": lambda own, text, repeatable: _keep(
                    self.comments, own.start_ea, text
                ),
            },
            ida_name={
                "SN_NOWARN": 0x100,
                "SN_NOCHECK": 1,
                "get_name": lambda address: self.names.get(address, f"sub_{address:X}"),
                "set_name": set_name,
            },
            ida_nalt={"retrieve_input_file_sha256": lambda: digest},
        ):
            yield {}


class Binja(Host):
    @contextmanager
    def modules(self) -> Iterator[dict[str, Any]]:
        raw = SimpleNamespace(length=len(CONTENT), read=lambda start, size: CONTENT)
        yield {
            "bv": SimpleNamespace(
                parent_view=raw if self.sha256 is not None else None,
                start=self.base,
                original_image_base=0,
                get_function_at=lambda at: (
                    BinjaFunction(self, at) if at in self.addresses else None
                ),
            )
        }


class BinjaFunction:
    """A function whose name and comment are properties."""

    def __init__(self, host: Binja, start: int) -> None:
        self.host, self.start = host, start

    @property
    def name(self) -> str:
        return self.host.names.get(self.start, f"sub_{self.start:x}")

    @name.setter
    def name(self, name: str | None) -> None:
        _keep(self.host.names, self.start, name)

    @property
    def comment(self) -> str:
        return self.host.comments.get(self.start, "")

    @comment.setter
    def comment(self, text: str) -> None:
        _keep(self.host.comments, self.start, text)


def _keep(texts: dict[int, str], address: int, text: str | None) -> None:
    texts.pop(address, None)
    if text:
        texts[address] = text


CONTENT_HASH = hashlib.sha256(CONTENT).hexdigest()
