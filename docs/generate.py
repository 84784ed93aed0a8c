"""Writes the parts of the pages that follow from the source: options, exit codes, help texts.

    python docs/generate.py [--check]

A page marks such a part with ``<!-- generated: KIND [ARGUMENT] -->`` and ``<!-- end -->``.
With ``--check`` nothing is written, and a page that is out of step makes the exit code 1.
"""

from __future__ import annotations

import ast
import inspect
import json
import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import MISSING, fields
from importlib import import_module
from pathlib import Path
from types import NoneType
from typing import Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

import typer.main

from graphkin import errors
from graphkin.cli.exit_codes import MEANINGS
from graphkin.cli.main import application
from graphkin.research.reproduce.cells import fill
from graphkin.research.reproduce.render.text_tables import to_markdown
from graphkin.research.reproduce.results import CHECKOUT, read_results

HERE = Path(__file__).parent
COLUMNS = 100
PART = re.compile(r"(<!-- generated: (\S+) ?(\S*) -->\n).*?(<!-- end -->)", re.DOTALL)
TYPE_NAMES = {int: "integer", float: "number", bool: "true or false", str: "text", NoneType: "none"}


def main() -> None:
    check = sys.argv[1:] == ["--check"]
    stale = []
    for page in sorted(HERE.glob("*.md")):
        text = page.read_text(encoding="utf-8")
        fresh = regenerated(text)
        if fresh != text:
            stale.append(page.name)
            if not check:
                page.write_text(fresh, encoding="utf-8")
    if stale:
        print(f"{'out of step' if check else 'written'}: {', '.join(stale)}")
    sys.exit(1 if check and stale else 0)


def regenerated(page: str) -> str:
    """The text of a page with its generated parts as the source has them now."""

    def replacement(match: re.Match[str]) -> str:
        head, kind, argument, tail = match.groups()
        return f"{head}\n{GENERATORS[kind](argument)}\n\n{tail}"

    return PART.sub(replacement, page)


def options_table(name: str) -> str:
    """The fields of a configuration dataclass, ``module.Class``."""
    module, _, kind_name = name.rpartition(".")
    kind = getattr(import_module(module), kind_name)
    hints, meanings = get_type_hints(kind), descriptions(kind)
    rows = [
        (
            f"`{field.name}`",
            type_name(hints[field.name]),
            "needed" if field.default is MISSING else f"`{json.dumps(field.default)}`",
            meanings.get(field.name, ""),
        )
        for field in fields(kind)
    ]
    return table(("option", "takes", "default", "meaning"), rows)


def descriptions(kind: type[Any]) -> dict[str, str]:
    """What a dataclass says of its fields: strings below them, or ``Args`` of its docstring."""
    texts = dict(argument_descriptions(inspect.getdoc(kind) or ""))
    definition = ast.parse(textwrap.dedent(inspect.getsource(kind))).body[0]
    assert isinstance(definition, ast.ClassDef)
    for field, below in zip(definition.body, definition.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(below, ast.Expr):
            assert isinstance(field.target, ast.Name)
            texts[field.target.id] = plain(ast.literal_eval(below.value))
    return texts


def argument_descriptions(docstring: str) -> Iterator[tuple[str, str]]:
    section = re.search(r"^Args:\n((?:    .*\n?|\n)*)", docstring, re.MULTILINE)
    for argument in re.split(r"\n(?=\S)", textwrap.dedent(section[1])) if section else ():
        name, _, text = argument.partition(":")
        yield name.strip(), plain(text)


def plain(docstring: str) -> str:
    """Docstring markup as Markdown, on one line; a last full stop, and a first capital for words.

    A symbol such as ``f_node`` or ``gamma`` stays as it is.
    """
    text = " ".join(docstring.split())
    text = re.sub(r":\w+:`~?([^`]*)`", r"`\1`", text).replace("``", "`")
    symbol = re.match(r"(\w_\w+|gamma|mu|rho)\b", text)
    return (text if symbol else text[0].upper() + text[1:]).rstrip(".") + "."


def type_name(hint: Any) -> str:
    if get_origin(hint) is Literal:
        return ", ".join(f"`{choice}`" for choice in get_args(hint))
    if get_origin(hint) is tuple and get_args(hint)[-1] is Ellipsis:
        return f"a list of {type_name(get_args(hint)[0])}"
    if get_origin(hint) is tuple:
        return f"[{', '.join(map(type_name, get_args(hint)))}]"
    parts = get_args(hint) or (hint,)
    return " or ".join(TYPE_NAMES.get(part) or type_name(part) for part in parts)


def exit_codes(_: str) -> str:
    kinds = [
        kind
        for _, kind in inspect.getmembers(errors, inspect.isclass)
        if issubclass(kind, errors.GraphkinError) and kind is not errors.GraphkinError
    ]
    rows = [("0", "", "Success."), ("1", "", "An error that graphkin did not foresee.")]
    rows += [("2", "", "Wrong usage of the command line.")]
    for kind in sorted(kinds, key=lambda kind: kind.exit_code):
        rows.append((str(kind.exit_code), f"`{kind.__name__}`", plain(kind.__doc__ or "")))
    rows += [(str(code), "", meaning) for code, meaning in MEANINGS.items()]
    rows.append(("130", "", "Interrupted by Ctrl-C; training has left a checkpoint."))
    rows.append(
        ("141", "", "Nobody read the output to its end, as in `graphkin show FILE | head`.")
    )
    rows.append(("143", "", "Ended by SIGTERM; training leaves a checkpoint, and 130."))
    return table(("code", "error", "meaning"), rows)


def table(header: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [header, tuple("---" for _ in header), *rows]
    return "\n".join("| " + " | ".join(cell or " " for cell in line) + " |" for line in lines)


def help_texts(_: str) -> str:
    """The help of every command, in the order of the command line."""
    parts = []
    for path, _ in commands(typer.main.get_command(application()), ("graphkin",)):
        parts.append(f"## {' '.join(path)}\n\n```text\n{help_text(path)}\n```")
    return "\n\n".join(parts)


def commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command and group with the words that call it."""
    yield path, command
    for name, child in getattr(command, "commands", {}).items():
        yield from commands(child, (*path, name))


class Meaning(NamedTuple):
    """Of an option."""

    text: str
    type: str
    least: float | None
    most: float | None
    panel: str | None
    """Of the help, where it stands in one with a title."""


def meanings() -> dict[str, dict[Meaning, list[str]]]:
    """What each option means, and the commands that have it so; a test refuses a second meaning."""
    options: dict[str, dict[Meaning, list[str]]] = {}
    for path, command in commands(typer.main.get_command(application())):
        for option in command.params:
            if option.param_type_name == "option":
                limits = (option.min, option.max)
                kind = Meaning(option.help, option.bare_type(), *limits, option.rich_help_panel)
                for name in option.opts:
                    options.setdefault(name, {}).setdefault(kind, []).append(" ".join(path))
    return dict(sorted(options.items()))


def command_options(_: str) -> str:
    """All options of all commands: what each means, and who has it."""
    everything = [path for path, command in commands(typer.main.get_command(application()))]
    leaves = [" ".join(path) for path in everything if not any(o[:-1] == path for o in everything)]
    rows = []
    for name, kinds in meanings().items():
        having = [command for each in kinds.values() for command in each]
        verbs = dict.fromkeys(command.partition(" ")[0] for command in having)
        shown = []
        for verb in verbs:
            whole = [leaf for leaf in leaves if leaf.partition(" ")[0] == verb]
            part = [command for command in having if command.partition(" ")[0] == verb]
            shown += [verb] if set(whole) == set(part) else part
        meaning = " / ".join(kind.text for kind in kinds)
        rows.append((f"`{name}`", meaning, ", ".join(shown) or "graphkin"))
    return table(("option", "meaning", "commands"), rows)


def help_text(command: tuple[str, ...]) -> str:
    """What ``command --help`` prints on a terminal of ``COLUMNS`` columns."""
    program = "import sys; from graphkin.cli.main import main; sys.argv[0] = 'graphkin'; main()"
    columns = {"COLUMNS": str(COLUMNS), "TERMINAL_WIDTH": str(COLUMNS), "NO_COLOR": "1"}
    output = subprocess.run(
        [sys.executable, "-c", program, *command[1:], "--help"],
        env={**os.environ, **columns, "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        encoding="utf-8",
        check=True,
    ).stdout
    lines = re.sub(r"\x1b\[[0-9;]*m", "", output).splitlines()
    return "\n".join(line.rstrip() for line in lines).strip("\n")


def results(target: str) -> str:
    """A table of the paper with our values, from the stored result files."""
    return to_markdown(fill(target, read_results(CHECKOUT)))


def unseen_projects(_: str) -> str:
    """Recall of each stage of a search, and more of the last, in per cent."""
    stages = json.loads((CHECKOUT / "unseen-projects.json").read_text())
    shown = {
        "codes": "codes",
        "unrounded": "codes, query not rounded",
        "vectors": "vectors",
        "matched": "all stages",
        "vectors in files": "vectors, in files",
        "matched in files": "all stages, in files",
    }
    last = stages["matched in files"]

    def per_cent(stage: str, direction: str, name: str) -> str:
        return f"{100 * stages[stage][direction][name]:.1f}"

    recall = [
        (direction, *(per_cent(stage, direction, "recall@1") for stage in shown))
        for direction in last
    ]
    details = [
        (
            direction,
            per_cent("candidates", direction, "recall@100"),
            per_cent("candidates in files", direction, "recall@100"),
            per_cent("matched in files", direction, "recall@1 of 100"),
            per_cent("matched in files", direction, "silent recall@1"),
            f"{last[direction]['calibration error']:.3f}",
        )
        for direction in last
    ]
    header = (
        "direction",
        "first stage, recall@100",
        "in files",
        "recall@1 in pools of 100, in files",
        "recall@1 of silent functions, in files",
        "calibration error, in files",
    )
    return f"{table(('recall@1', *shown.values()), recall)}\n\n{table(header, details)}"


GENERATORS: dict[str, Callable[[str], str]] = {
    "options": options_table,
    "exit-codes": exit_codes,
    "command-options": command_options,
    "help": help_texts,
    "results": results,
    "unseen-projects": unseen_projects,
}

if __name__ == "__main__":
    main()
